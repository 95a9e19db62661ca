"""`toolrun-mcp serve`: the tools of a file as an MCP server."""

from __future__ import annotations

import argparse
import functools
import runpy
import signal
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final, NoReturn

import anyio

from toolrun import Runner, ToolRegistry
from toolrun_mcp._server import STDIO, serve

_DEFAULT_NAME: Final = "registry"


def entry() -> NoReturn:
    """Run the command that the arguments name, and exit."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """Run a command.

    Returns:
        0 when the client has gone, 2 if the file, the registry or the address cannot be had, 130 after Ctrl-C. Over
        stdio, Ctrl-C ends the process at once.
    """
    options = _parser().parse_args(arguments)
    try:
        with redirect_stdout(sys.stderr):  # standard output is the connection
            registry = _registry_from(options.tools)
        if options.http is None:
            # The thread that waits for input cannot be stopped, and Python would wait for it.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        anyio.run(_serve, registry, options)
    except (_BadInput, OSError) as error:
        print(f"toolrun-mcp: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


async def _serve(registry: ToolRegistry, options: argparse.Namespace) -> None:
    await serve(
        registry,
        http=options.http,
        name=options.name,
        runner=functools.partial(Runner, timeout=options.timeout),
        task_status=_Announcement(len(registry)),
    )


class _Announcement:
    """Says where the tools are, once they are there; over stdio whoever started the program knows."""

    def __init__(self, count: int) -> None:
        self._count = count

    def started(self, value: str | None = None) -> None:
        if value is not None and value != STDIO:
            tools = "1 tool" if self._count == 1 else f"{self._count} tools"
            print(f"serving {tools} at {value}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="toolrun-mcp", description="toolrun tools for MCP clients.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "serve",
        help="serve the tools of a file as an MCP server",
        description="Serve the tools of a Python file as an MCP server, over stdio or streamable HTTP.",
    )
    command.add_argument(
        "--tools",
        required=True,
        metavar="FILE.py[:NAME]",
        help=f"the file, and the name of the registry in it (default: {_DEFAULT_NAME})",
    )
    command.add_argument(
        "--http", type=_address, metavar="HOST:PORT", help="serve streamable HTTP there instead of stdio; port 0 is any"
    )
    command.add_argument("--name", default="toolrun", help="what the server is called (default: toolrun)")
    command.add_argument(
        "--timeout", type=_seconds, default=60.0, metavar="SECONDS", help="for an attempt of a tool (default: 60)"
    )
    return parser


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:  # noqa: PLR2004  # the highest port
        raise argparse.ArgumentTypeError(f"{text!r} is no HOST:PORT, such as 127.0.0.1:8000")
    return host.strip("[]"), int(port)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return seconds


class _BadInput(Exception):
    """What the user gave cannot be used; the message says what and why."""


def _registry_from(spec: str) -> ToolRegistry:
    path, name = spec, _DEFAULT_NAME
    if not Path(spec).exists() and ":" in spec:
        path, _, name = spec.rpartition(":")
    sys.path.insert(0, str(Path(path).resolve().parent))  # it may import its neighbours, as a script does
    try:
        found = runpy.run_path(path, run_name="__toolrun_tools__")
    except OSError as error:
        raise _BadInput(f"{path}: {error.strerror or error}") from error
    except (Exception, SystemExit) as error:
        raise _BadInput(f"{path}: raised on import: {type(error).__name__}: {error}") from error
    registry = found.get(name)
    if not isinstance(registry, ToolRegistry):
        others = ", ".join(sorted(key for key, value in found.items() if isinstance(value, ToolRegistry))) or "none"
        raise _BadInput(f"{path}: there is no ToolRegistry named {name!r}; in it: {others}")
    return registry
