"""The target `finalizer`: a stream made of a fuzzer's bytes, and what `StreamFinalizer` promises of any stream."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from toolrun import (
    ArgumentsReplaced,
    CallDelta,
    CallFinalized,
    CallStarted,
    CallStatus,
    StreamFinalizer,
    ToolCall,
)

from .reader import Reader
from .vocabulary import ABSENT, ENDS, FILLINGS, ODD, SHAPES, Gap

_WIRES = tuple(SHAPES)
_NAMED = (*_WIRES, "auto")
_STREAM_ENDS = ("auto", "eof", "error", "normal")
_FEEDS = ("events", "sse", "ndjson", "bytes")
_CUTS = (1, 2, 3, 5, 16, 64, 255)
_ODD_ONE_IN = 24
_MAX_EVENTS = 24


class Case(NamedTuple):
    """A stream: its feeds, the same cut in another way, how it ends, and whether anything in it says that it ended."""

    wire: str
    feeds: list[object]
    recut: list[object]
    end: Any
    ends: bool


def read(data: bytes) -> Case:
    """Make a stream of bytes; any bytes make one."""
    reader = Reader(data)
    vocabulary = reader.pick(_WIRES)
    wire = reader.pick((vocabulary, *_NAMED))
    form = reader.pick(_FEEDS)
    end = reader.pick(_STREAM_ENDS)
    cut = reader.pick(_CUTS)
    if form == "bytes":
        raw = reader.rest()
        return Case(wire, [raw], _cut(raw, cut), end, ends=True)
    ends = reader.pick((True, False))
    shapes = SHAPES[vocabulary] + (ENDS[vocabulary] if ends else ())
    events: list[object] = []
    while reader and len(events) < _MAX_EVENTS:
        events.append(_fill(reader.pick(shapes), reader))
    events = [event for event in events if event is not ABSENT]
    if form == "events":
        return Case(wire, events, events, end, ends)
    raw = _text(events, form).encode(errors="surrogatepass")
    return Case(wire, [raw], _cut(raw, cut), end, ends)


def check(data: bytes) -> None:
    """Hold the promise against the stream that the bytes make.

    Raises:
        AssertionError: It is broken.
        Exception: Whatever came out of `feed` or `close`; nothing may.
    """
    case = read(data)
    told, finalizer = _follow(case, case.feeds)
    calls = finalizer.calls
    _check_lifecycle(told, calls)
    for call in calls:
        _check_text(told, call)
        _check_verdict(call)
    if case.end != "normal":
        assert case.ends or not any(call.executable for call in calls), "runs, and nothing in the stream said an end"
    ids = [call.id for call in calls if call.choice == 0]
    assert all(ids)
    assert len(set(ids)) == len(ids), "two calls have one id"
    assert _follow(case, case.recut)[1].calls == calls, "other pieces, other calls"
    assert _follow(case, case.feeds, deltas=False)[1].calls == calls, "the calls depend on the deltas being told"


def _follow(case: Case, feeds: list[object], *, deltas: bool = True) -> tuple[list[Any], StreamFinalizer]:
    finalizer = StreamFinalizer(case.wire, deltas=deltas)
    told = [item for event in feeds for item in finalizer.feed(event)]
    told += finalizer.close(case.end)
    return told, finalizer


def _check_lifecycle(told: list[Any], calls: tuple[ToolCall, ...]) -> None:
    assert [item.position for item in told if isinstance(item, CallStarted)] == list(range(len(calls)))
    assert [item.call for item in told if isinstance(item, CallFinalized)] == list(calls)
    kinds = (CallStarted, CallDelta, ArgumentsReplaced, CallFinalized)
    for call in calls:
        mine = [type(item) for item in told if isinstance(item, kinds) and item.position == call.position]
        assert mine[0] is CallStarted
        assert mine[-1] is CallFinalized


def _check_text(told: list[Any], call: ToolCall) -> None:
    text = ""
    for item in told:
        if isinstance(item, CallDelta) and item.position == call.position:
            text += item.text
        elif isinstance(item, ArgumentsReplaced) and item.position == call.position:
            text = item.after
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert call.raw_arguments == joined, "the deltas are not the text"


def _check_verdict(call: ToolCall) -> None:
    ok = call.status is CallStatus.OK
    assert ok or not call.executable
    assert (call.arguments is not None) == (ok and call.kind == "function")
    if call.arguments is not None:
        assert call.arguments == (json.loads(call.raw_arguments) if call.raw_arguments.strip() else {})
    if call.executable:
        assert call.choice == 0
        assert call.name
        assert not call.provider_executed
        assert call.code != "held"
        assert call.finish_reason is not None or call.code == "finish_inferred", "runs without a finish or a terminator"


def _fill(shape: Any, reader: Reader) -> Any:
    if isinstance(shape, Gap):
        filling = reader.pick(FILLINGS[shape])
        return filling if shape is Gap.REASON or reader.number(_ODD_ONE_IN) != _ODD_ONE_IN - 1 else reader.pick(ODD)
    if isinstance(shape, dict):
        filled = {key: _fill(value, reader) for key, value in shape.items()}
        return {key: value for key, value in filled.items() if value is not ABSENT}
    if isinstance(shape, list):
        return [value for value in (_fill(item, reader) for item in shape) if value is not ABSENT]
    return shape


def _text(events: list[object], form: str) -> str:
    lines = [event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in events]
    return "".join(f"data: {line}\r\n\r\n" if form == "sse" else f"{line}\n" for line in lines)


def _cut(data: bytes, size: int) -> list[object]:
    return [data[at : at + size] for at in range(0, len(data), size)]
