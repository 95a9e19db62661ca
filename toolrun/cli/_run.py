"""`toolrun run`: the calls of streams, run, and shown while they run."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio

from toolrun import Runner, Succeeded, UnknownWire
from toolrun.cli._exits import BAD_INPUT, FAILED, SUCCEEDED, InputError, complain
from toolrun.cli._paint import on_terminal
from toolrun.cli._rows import Rows
from toolrun.cli._sources import open_sources, recognised
from toolrun.cli._tools import registry_from
from toolrun.cli._views import JsonView, LinesView
from toolrun.cli._wire import wire_named

if TYPE_CHECKING:
    from argparse import Namespace

    from toolrun import RunStream, ToolRegistry, Turn
    from toolrun.abc import Wire
    from toolrun.cli._sources import Source
    from toolrun.cli._views import View

_FRAME_SECONDS: Final = 0.1

MakeView: TypeAlias = Callable[[str, "str | None", Rows], "View"]


def run(options: Namespace) -> int:
    """Run the calls of each stream, one stream after the other.

    Raises:
        InputError: A file is not there, the tools cannot be had, or there is no such wire. Nothing ran.
    """
    wire = wire_named(options.wire)
    sources = open_sources(options.streams)
    with ExitStack() as stack:
        make_view = _view_maker(as_json=options.json)
        if options.json:  # what tools print must not get between the objects
            stack.enter_context(redirect_stdout(sys.stderr))
        registry = stack.enter_context(registry_from(options.tools))
        return anyio.run(_run_all, options, registry, sources, wire, make_view)


async def _run_all(
    options: Namespace, registry: ToolRegistry, sources: list[Source], wire: str | Wire, make_view: MakeView
) -> int:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(_Impatient())
    loop.set_exception_handler(_report_unless_interrupted)
    code = SUCCEEDED
    async with Runner(
        registry, timeout=options.timeout, max_concurrency=options.max_concurrency, on_stream_error="return"
    ) as runner:
        for number, source in enumerate(sources):
            if number and not options.json:
                print(flush=True)
            view = make_view(source.path, source.name if len(sources) > 1 else None, Rows())
            turn = await _show(runner.stream(source, wire=wire, end=options.end, previews=view.previews), view)
            fault = _fault(source, turn, named=wire != "auto")
            if fault is None or turn.calls:
                view.finish(turn, show_messages=options.show_messages)
            if fault is not None:
                complain(fault)
                code = BAD_INPUT
            elif not all(isinstance(outcome, Succeeded) for outcome in turn.outcomes):
                code = max(code, FAILED)
    return code


async def _show(run: RunStream, view: View) -> Turn:
    """Follow a run to its end, or show how far it came when it is cancelled."""
    failure: Exception | KeyboardInterrupt | None = None
    try:
        with view:
            try:
                async with anyio.create_task_group() as group:
                    over = anyio.Event()
                    group.start_soon(_show_frames, view, over)
                    failure = await _follow(run, view)
                    over.set()
            finally:
                for row in view.rows.settle(run.turn):
                    view.changed(row)
    except anyio.get_cancelled_exc_class():
        if run.turn.calls:
            view.finish(run.turn, show_messages=False)
        raise
    if failure is not None:
        raise failure
    return run.turn


async def _follow(run: RunStream, view: View) -> Exception | KeyboardInterrupt | None:
    """Show every event; what the showing itself raises is handed over, since a task group would wrap it."""
    async with run:
        try:
            async for event in run:
                row = view.rows.apply(event)
                if row is not None:
                    view.changed(row)
        except UnknownWire:
            return None  # the check of the source says it, with the line
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # raised by the caller
            return error
    return None


async def _show_frames(view: View, over: anyio.Event) -> None:
    """Ten frames a second: fast enough to follow, too slow to flicker.

    It also keeps the loop awake: the system may give Ctrl-C to another thread, and a loop asleep would not know.
    """
    while not over.is_set():
        view.frame()
        with anyio.move_on_after(_FRAME_SECONDS):
            await over.wait()


def _fault(source: Source, turn: Turn, *, named: bool) -> InputError | None:
    known = recognised(
        wire=turn.wire, named=named, calls=turn.calls, response=turn.response, diagnostics=turn.diagnostics
    )
    try:
        source.check(recognised=known, diagnostics=turn.diagnostics)
    except InputError as error:
        return error
    return None


def _view_maker(*, as_json: bool) -> MakeView:
    if as_json:
        return functools.partial(JsonView, output=sys.stdout)
    if not on_terminal():
        return LinesView
    try:
        from toolrun.cli._live import LiveView  # noqa: PLC0415  # rich is an extra, and slow to import
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "rich":
            raise
        return LinesView
    return LiveView


def _report_unless_interrupted(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A second Ctrl-C leaves tasks behind that die of it; that is no news."""
    error = context.get("exception")
    group = error if isinstance(error, BaseExceptionGroup) else None
    if not isinstance(error, KeyboardInterrupt) and (group is None or group.subgroup(KeyboardInterrupt) is None):
        loop.default_exception_handler(context)


class _Impatient(ThreadPoolExecutor):
    """For tools that use `asyncio.to_thread`: closing the loop does not wait for one that was given up."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT002  # the base's
        super().shutdown(wait=False, cancel_futures=True)
