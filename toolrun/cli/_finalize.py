"""`toolrun finalize`: the finished calls of a stream; nothing runs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from toolrun import Diagnostic, StreamFinalizer
from toolrun.cli._batch import finalize_case, run_batch
from toolrun.cli._exits import BAD_INPUT, SUCCEEDED, InputError, complain
from toolrun.cli._paint import paint
from toolrun.cli._progress import ProgressBar
from toolrun.cli._records import call_record
from toolrun.cli._sources import open_sources, recognised, size_of
from toolrun.cli._text import json_line, one_line, shorten
from toolrun.cli._wire import wire_named

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from toolrun import ToolCall
    from toolrun.abc import Wire
    from toolrun.cli._sources import Source

_SHOWN_ARGUMENTS: Final = 160


def finalize(options: Namespace) -> int:
    """Print the calls of each stream, or of each case of a batch.

    Raises:
        InputError: A file is not there, there is no such wire, or neither or both kinds of input are given.
    """
    wire = wire_named(options.wire)
    if (options.batch is None) == (not options.streams):
        raise InputError("name streams, or one --batch file (see toolrun finalize --help)")
    if options.batch is not None:
        return run_batch(options.batch, lambda case: finalize_case(case, options.wire, options.end))
    sources = open_sources(options.streams)
    code = SUCCEEDED
    for source in sources:
        calls, fault = _read(source, wire, options.end)
        if options.json:
            for call in calls:
                print(json_line({"stream": source.path, **call_record(call)}), flush=True)
        else:
            _print_lines(calls, heading=source.name if len(sources) > 1 else None, known=fault is None)
        if fault is not None:
            complain(fault)
            code = BAD_INPUT
    return code


def _read(source: Source, wire: str | Wire, end: str) -> tuple[Sequence[ToolCall], InputError | None]:
    finalizer = StreamFinalizer(wire, deltas=False)
    events: list[object] = []
    bar = ProgressBar(source.name, size_of(source.path), shown=True)  # nothing is printed before the end
    with suppress(OSError), bar:  # the source keeps what it raised
        for block in bar.follow(source):
            events += finalizer.feed(block)
    events += finalizer.close("error" if source.error is not None else end)  # type: ignore[arg-type]  # the parser's choices
    diagnostics = [event for event in events if isinstance(event, Diagnostic)]
    try:
        source.check(
            recognised=recognised(
                wire=finalizer.wire,
                named=wire != "auto",
                calls=finalizer.calls,
                response=finalizer.response,
                diagnostics=diagnostics,
            ),
            diagnostics=diagnostics,
        )
    except InputError as error:
        return finalizer.calls, error
    return finalizer.calls, None


def _print_lines(calls: Sequence[ToolCall], *, heading: str | None, known: bool) -> None:
    styled = paint()
    if heading is not None:
        print(styled(one_line(heading), "title"))
    rows = [
        (str(call.position), _verdict(call), one_line(call.name or "(no name)"), one_line(call.id)) for call in calls
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for call, row in zip(calls, rows, strict=True):
        styles = ("dim", "good" if call.executable else "doubtful", "title", "dim")
        cells = [styled(cell.ljust(width), style) for cell, width, style in zip(row, widths, styles, strict=True)]
        print("  ".join((*cells, _arguments(call))).rstrip())
    if not rows and known:
        print("no calls")


def _verdict(call: ToolCall) -> str:
    """The status, and why it is that or why it would not run."""
    if call.provider_executed:
        return f"{call.status.value} (provider)"
    if call.status == "ok" and call.choice != 0:
        return f"{call.status.value} (choice {call.choice})"
    return f"{call.status.value} ({call.code})" if call.code else call.status.value


def _arguments(call: ToolCall) -> str:
    shown = shorten(one_line(call.raw_arguments), _SHOWN_ARGUMENTS)
    if call.issue is None or call.status == "incomplete":
        return shown
    return f"{shown}  <- {one_line(call.issue.message)}, line {call.issue.line}, column {call.issue.column}"
