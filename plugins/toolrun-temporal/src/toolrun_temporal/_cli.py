"""The command `toolrun-temporal`."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.service import RPCError, RPCStatusCode

from toolrun.cli import InputError, Parser, complain, entry, number, registry_from, seconds
from toolrun_temporal._server import ADDRESS, TASK_QUEUE, connect, pause_at_exit, settings
from toolrun_temporal._worker import Calls, worker_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from temporalio.client import Client

    from toolrun import ToolRegistry

SUCCEEDED: Final = 0
CUT: Final = 1
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130

_MAIN: Final = """\
examples:
  toolrun-temporal worker --tools tools.py
  toolrun-temporal worker --tools tools.py --address temporal.internal:7233

What the options and exit codes mean: toolrun-temporal worker --help
"""

_WORKER: Final = f"""\
environment:
  TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_... and
  Temporal's configuration file say how to connect; --address and --namespace
  come first.

stopping:
  Ctrl-C and SIGTERM: no more calls are taken, and those that run have --drain
  seconds to end. Then they are cancelled; a call that may run twice is begun
  again on another worker. A second Ctrl-C ends the worker at once.

exit code:
    0  stopped; every call that ran has ended
    1  stopped; calls had to be cancelled, or the connection failed for good
    2  bad input, or no server or namespace; one line on standard error says what
  130  a second Ctrl-C; calls that ran are lost to this worker

examples:
  toolrun-temporal worker --tools tools.py
  toolrun-temporal worker --tools tools.py:registry --address {ADDRESS}
  toolrun-temporal worker --tools tools.py --task-queue billing --drain 120
"""


def build_parser() -> argparse.ArgumentParser:
    """Make the parser; it raises `InputError` for arguments that it does not take."""
    parser = Parser(
        prog="toolrun-temporal",
        description="Run tool calls that agents send over Temporal.",
        epilog=_MAIN,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    worker = commands.add_parser(
        "worker",
        help="take calls from a task queue, and run them with the tools of a file",
        description="Take calls from a task queue, and run them with the tools of a file.",
        epilog=_WORKER,
    )
    worker.add_argument(
        "--tools",
        required=True,
        metavar="FILE.py[:NAME]",
        help="the file with the tools; NAME is its ToolRegistry, `registry` if left out",
    )
    worker.add_argument("--address", metavar="HOST:PORT", help=f"the server; {ADDRESS} if nothing says otherwise")
    worker.add_argument("--namespace", metavar="NAME", help="the namespace; `default` if nothing says otherwise")
    worker.add_argument(
        "--task-queue", default=TASK_QUEUE, metavar="NAME", help=f"where calls are taken; `{TASK_QUEUE}` if left out"
    )
    worker.add_argument(
        "--max-concurrency", type=number, default=100, metavar="N", help="calls that run at once; 100 if left out"
    )
    worker.add_argument(
        "--drain", type=seconds, default=30.0, metavar="SECONDS", help="for calls that run, to end; 30 if left out"
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
        with registry_from(options.tools) as registry:
            return asyncio.run(_work(options, registry))
    except SystemExit as done:  # --help
        return done.code if isinstance(done.code, int) else SUCCEEDED
    except InputError as error:
        _say(error)
        return BAD_INPUT
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED


def run() -> NoReturn:
    """Run the command for this process, and end it."""
    entry(main)


async def _work(options: argparse.Namespace, registry: ToolRegistry) -> int:
    """Take calls until the process is asked to end.

    Raises:
        InputError: There are no tools, or no server.
    """
    if not len(registry):
        raise InputError("there are no tools in the registry", place=options.tools)
    client = await _connected(options)
    pause_at_exit()
    calls = Calls(registry)
    worker = worker_of(
        calls,
        client,
        task_queue=options.task_queue,
        max_concurrency=options.max_concurrency,
        drain=options.drain,
    )
    stopped = _signalled()
    working = asyncio.ensure_future(worker.run())
    address = client.service_client.config.target_host
    tools = ", ".join(registry.names)
    _say(f"takes calls of {tools} from {options.task_queue!r} on {address} ({client.namespace}); Ctrl-C ends it")
    await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    if not working.done():
        _say(f"stopping; calls that run have {options.drain:g} seconds")
        await worker.shutdown()
    try:
        await working
    except Exception as error:  # noqa: BLE001  # the worker's own words
        _say(f"the worker failed: {error.__cause__ or error}")
        return CUT
    if calls.cut:
        _say(f"calls that had to be cancelled: {calls.cut}")
    return CUT if calls.cut else SUCCEEDED


async def _connected(options: argparse.Namespace) -> Client:
    """Connect, and see that the namespace is there.

    Raises:
        InputError: It is not, or there is no server.
    """
    address, namespace = settings(options.address, options.namespace)
    try:
        client = await connect(address, namespace)
        await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
    except RPCError as error:
        known = error.status is not RPCStatusCode.NOT_FOUND
        reason = str(error) if known else f"there is no namespace {namespace!r}"
        raise InputError(reason, place=address) from error
    except (RuntimeError, ValueError) as error:  # an address that is none is a ValueError
        raise InputError(f"no Temporal server can be reached: {error}", place=address) from error
    return client


def _signalled() -> asyncio.Future[None]:
    """What is done once the process is asked to end; asked again, it ends."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[None] = loop.create_future()

    def stop() -> None:
        if not stopped.done():
            stopped.set_result(None)
            return
        _say("interrupted")
        os._exit(INTERRUPTED)

    for asked in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C is a KeyboardInterrupt there
            loop.add_signal_handler(asked, stop)
    return stopped


def _say(text: object) -> None:
    complain(text, command="toolrun-temporal")
