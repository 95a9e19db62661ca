"""The command `toolrun-mcp`."""

from __future__ import annotations

import argparse
import functools
import signal
import sys
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, Final, NoReturn

import anyio

from toolrun import Runner
from toolrun.cli import InputError, Parser, complain, entry, registry_from, seconds
from toolrun_mcp._server import STDIO, serve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun import ToolRegistry

SUCCEEDED: Final = 0
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130

_HIGHEST_PORT: Final = 65_535

_MAIN: Final = """\
examples:
  toolrun-mcp serve --tools tools.py
  toolrun-mcp serve --tools tools.py --http 127.0.0.1:8000

What the options and exit codes mean: toolrun-mcp serve --help
"""

_SERVE: Final = """\
Over stdio, standard input and output are the connection; what the file and its
tools print goes to standard error. Over HTTP there is no authentication.

exit code:
    0  the client has gone
    2  bad input, or the address cannot be had; one line on standard error says what
  130  Ctrl-C. Over HTTP, calls that run are answered with an error; over stdio,
       the process ends at once.

examples:
  toolrun-mcp serve --tools tools.py
  toolrun-mcp serve --tools tools.py:registry --name weather
  toolrun-mcp serve --tools tools.py --http 127.0.0.1:8000
"""


def build_parser() -> argparse.ArgumentParser:
    """Make the parser; it raises `InputError` for arguments that it does not take."""
    parser = Parser(
        prog="toolrun-mcp",
        description="Give tools to MCP clients.",
        epilog=_MAIN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    command = commands.add_parser(
        "serve",
        help="serve the tools of a file as an MCP server",
        description="Serve the tools of a file as an MCP server, over stdio or streamable HTTP.",
        epilog=_SERVE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument(
        "--tools",
        required=True,
        metavar="FILE.py[:NAME]",
        help="the file with the tools; NAME is its ToolRegistry, `registry` if left out",
    )
    command.add_argument(
        "--http",
        type=_address,
        metavar="HOST:PORT",
        help="serve streamable HTTP there, at /mcp; port 0 is any. Without it, stdio",
    )
    command.add_argument(
        "--name", default="toolrun", metavar="NAME", help="what the server is called; `toolrun` if left out"
    )
    command.add_argument(
        "--timeout",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="for an attempt of a tool without a timeout of its own; 60 if left out",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The arguments after the command's name; None takes those of the process.

    Returns:
        The exit code; see the help.
    """
    try:
        options = build_parser().parse_args(argv)
        with ExitStack() as stack:
            with redirect_stdout(sys.stderr):  # standard output is the connection
                registry = stack.enter_context(registry_from(options.tools))
            if options.http is None:
                # The thread that waits for input cannot be stopped, and the event loop would wait for it.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            anyio.run(_serve, registry, options)
    except SystemExit as done:  # --help
        return done.code if isinstance(done.code, int) else SUCCEEDED
    except (InputError, OSError) as error:
        _say(error)
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    return SUCCEEDED


def run() -> NoReturn:
    """Run the command for this process, and end it."""
    entry(main)


async def _serve(registry: ToolRegistry, options: argparse.Namespace) -> None:
    await serve(
        registry,
        http=options.http,
        name=options.name,
        runner=functools.partial(Runner, timeout=options.timeout),
        task_status=_Announcement(registry),
    )


class _Announcement:
    """Says where the tools are, once they are there; over stdio whoever started the program knows."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    def started(self, value: str | None = None) -> None:
        if value is not None and value != STDIO:
            _say(f"serving {', '.join(self._registry.names) or 'no tools'} at {value}")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no HOST:PORT, such as 127.0.0.1:8000")
    return host.strip("[]"), int(port)


def _say(what: object) -> None:
    complain(what, command="toolrun-mcp")
