"""The command itself: from arguments to an exit code."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final, NoReturn

from toolrun.cli._exits import BAD_INPUT, BROKEN_PIPE, FAILED, INTERRUPTED, SUCCEEDED, InputError, complain, os_reason
from toolrun.cli._parser import build_parser

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

_PATIENCE_SECONDS: Final = 0.2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the `toolrun` command.

    Args:
        argv: The arguments after the command's name; None takes those of the process.

    Returns:
        The exit code: 0, 1 (a call did not succeed), 2 (bad input), 130 (Ctrl-C) or 141 (nobody reads the output).
    """
    try:
        code = _run(argv)
        if sys.stdout is not None:
            sys.stdout.flush()
    except InputError as error:
        complain(error)
        return BAD_INPUT
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except OSError as error:
        _drop_output()
        complain(f"standard output: {os_reason(error)}")
        return FAILED
    return code


def entry(command: Callable[[], int] = main) -> NoReturn:
    """Run a command for this process, and end the process with its exit code.

    A thread cannot be stopped: one that still runs a tool that was given up, or still waits for input, must not keep
    the user waiting after the last line of output.

    Args:
        command: Gives the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # None if it was closed by the shell
            stream.reconfigure(errors="backslashreplace")
    code = command()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    for thread in others:
        if not thread.daemon:
            thread.join(max(deadline - time.monotonic(), 0))
    if any(thread.is_alive() and not thread.daemon for thread in others):
        _leave(code)
    sys.exit(code)


def _run(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    try:
        options = parser.parse_args(argv)
    except SystemExit as done:  # --help and --version
        return done.code if isinstance(done.code, int) else SUCCEEDED
    return _command(options)


def _command(options: Namespace) -> int:
    match options.command:
        case "run":
            from toolrun.cli._run import run  # noqa: PLC0415  # each command imports what it alone needs

            return run(options)
        case "finalize":
            from toolrun.cli._finalize import finalize  # noqa: PLC0415

            return finalize(options)
        case "schema":
            from toolrun.cli._schema import print_schema  # noqa: PLC0415

            return print_schema(options)
        case "repair":
            from toolrun.cli._repair import repair  # noqa: PLC0415

            return repair(options)
        case "journal":
            from toolrun.cli._journal import journal  # noqa: PLC0415

            return journal(options)
        case "completion":
            from toolrun.cli._completion import print_completion  # noqa: PLC0415

            return print_completion(build_parser(), options.shell)
        case _:
            from toolrun.cli._list import list_plugins  # noqa: PLC0415

            return list_plugins(options)


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not complain about it while it ends."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _leave(code: int) -> NoReturn:
    import atexit  # noqa: PLC0415

    atexit._run_exitfuncs()  # noqa: SLF001  # os._exit would leave them out
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
