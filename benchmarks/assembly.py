"""From the first event to parsed arguments: `StreamFinalizer` against append, join and `json.loads`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from benchmarks import streams
from benchmarks.harness import Effort, Measured, Row, exponent, peak, ratio, repeated
from toolrun import StreamFinalizer

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk

_SIZES = (10_000, 100_000, 1_000_000)


@cache
def _events(calls: int, size: int) -> list[streams.Event]:
    return streams.chat(streams.pieces(streams.arguments(size, seed), seed) for seed in range(calls))


def floor(events: Iterable[streams.Event]) -> list[Any]:
    """The least that gives the arguments of dict events."""
    parts: dict[int, list[str]] = {}
    for event in events:
        for call in event["choices"][0]["delta"].get("tool_calls") or ():
            mine = parts.get(call["index"])
            if mine is None:
                mine = parts[call["index"]] = []
            piece = call["function"].get("arguments")
            if piece:
                mine.append(piece)
    return [json.loads("".join(mine)) for mine in parts.values()]


def floor_of_objects(chunks: Iterable[ChatCompletionChunk]) -> list[Any]:
    """The same for the SDK's objects."""
    parts: dict[int, list[str]] = {}
    for chunk in chunks:
        for call in chunk.choices[0].delta.tool_calls or ():
            mine = parts.get(call.index)
            if mine is None:
                mine = parts[call.index] = []
            piece = call.function and call.function.arguments
            if piece:
                mine.append(piece)
    return [json.loads("".join(mine)) for mine in parts.values()]


def floor_of_bytes(blocks: Iterable[bytes]) -> list[Any]:
    """The same for raw server-sent events."""
    rest = b""
    parts: dict[int, list[str]] = {}
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if not line.startswith(b"data: ") or line == b"data: [DONE]":
                continue
            for call in json.loads(line[6:])["choices"][0]["delta"].get("tool_calls") or ():
                parts.setdefault(call["index"], []).append(call["function"].get("arguments") or "")
    return [json.loads("".join(mine)) for mine in parts.values()]


def assemble(events: Iterable[object], *, deltas: bool = False) -> list[Any]:
    """The same with toolrun."""
    finalizer = StreamFinalizer("openai-chat", deltas=deltas)
    feed = finalizer.feed
    for event in events:
        for _ in feed(event):
            pass
    finalizer.close()
    return [call.arguments for call in finalizer.calls]


def dicts(effort: Effort, *, size: int, calls: int = 1, deltas: bool = False) -> Measured:
    """Decoded chunks; with `deltas`, every piece is told to a listener."""
    return _against(floor, _events(calls, size), effort, deltas=deltas)


def characters(effort: Effort) -> Measured:
    """Many tiny deltas, as some servers send them."""
    return _against(floor, streams.chat([list(streams.arguments(100_000)[:-1] + "}")]), effort)


def objects(effort: Effort) -> Measured:
    """Chunks as the OpenAI SDK hands them over; making them is not counted."""
    from openai.types.chat import ChatCompletionChunk  # noqa: PLC0415  # dear to import, and needed for this row alone

    chunks = [ChatCompletionChunk.model_validate(event) for event in _events(1, 10_000)]
    return _against(floor_of_objects, chunks, effort)


def raw(effort: Effort) -> Measured:
    """Server-sent events in blocks of 4 KB."""
    events = _events(1, 100_000)
    return _against(floor_of_bytes, streams.blocks(streams.sse(events)), effort, units=len(events))


def growth(effort: Effort) -> Measured:
    """How the time grows with the size."""
    return exponent({size: repeated(partial(assemble, _events(1, size))) for size in _SIZES}, effort)


def memory(_effort: Effort) -> Measured:
    """The peak while assembling, the parsed arguments included."""
    events = _events(1, 100_000)
    ours, least = peak(partial(assemble, events)), peak(partial(floor, events))
    return Measured(ours / least, f"{ours / 1024:.0f} against {least / 1024:.0f} KiB")


def _against(
    least: Callable[[Iterable[Any]], list[Any]],
    events: list[Any],
    effort: Effort,
    *,
    units: int | None = None,
    deltas: bool = False,
) -> Measured:
    ours = partial(assemble, events, deltas=deltas)
    if ours() != least(events):
        raise AssertionError("the two sides of this row give different arguments")
    return ratio(repeated(ours), repeated(partial(least, events)), effort, per=units or len(events))


ROWS = (
    Row("dicts-1k", "dict events, 1 KB of arguments", "x", 2.2, partial(dicts, size=1_000)),
    Row("dicts-10k", "dict events, 10 KB", "x", 2.2, partial(dicts, size=10_000)),
    Row("dicts-100k", "dict events, 100 KB", "x", 2.2, partial(dicts, size=100_000)),
    Row("dicts-1m", "dict events, 1 MB", "x", 1.8, partial(dicts, size=1_000_000)),
    Row("dicts-parallel", "dict events, 32 calls of 4 KB in turns", "x", 1.8, partial(dicts, size=4_000, calls=32)),
    Row("events", "the same with an event a delta, 10 KB", "x", 3.0, partial(dicts, size=10_000, deltas=True)),
    Row("objects", "the OpenAI SDK's chunk objects, 10 KB", "x", 1.8, objects),
    Row("growth", "growth of the time from 10 KB to 1 MB", "exponent", 1.15, growth),
    Row("characters", "100,000 deltas of one character", "x", 2.2, characters),
    Row("memory", "peak memory, 100 KB", "x", 1.1, memory),
    Row("bytes", "raw SSE bytes, 100 KB, against split and json.loads", "x", 0.6, raw),
)
