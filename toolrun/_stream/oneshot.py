"""`finalize` and `afinalize`: a whole stream in, its calls out."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, cast

from toolrun._stream.finalizer import StreamFinalizer
from toolrun._stream.sources import SourceKind, kind_of

if TYPE_CHECKING:
    from toolrun._core.calls import ToolCall
    from toolrun._core.policy import FinishPolicy
    from toolrun._core.seams import Wire
    from toolrun._stream.finalizer import EndOfStream


def finalize(
    events: object,
    *,
    wire: str | Wire = "auto",
    end: EndOfStream = "auto",
    policy: FinishPolicy | None = None,
) -> tuple[ToolCall, ...]:
    """Read a whole stream, or one whole response, and give its calls.

    Args:
        events: An iterable of events, bytes or text; or one response (a mapping, an SDK's object, or
            raw SSE, NDJSON or JSON).
        wire: `"auto"`, a wire's name, or a `Wire`.
        end: How the source ended. `"auto"`: error if the iterator raises, normal if a finish reason or a
            terminator was seen, else end of file.
        policy: What to make of a missing or doubtful finish.

    Returns:
        Every call of every choice, in order of arrival, also those that were cut or malformed.

    Raises:
        TypeError: `events` is not a source, or an asynchronous one (use `afinalize`).
        UnknownWire: Events came, and none was recognised.
        Exception: What the iterator raises is not raised here: the calls are incomplete then. `Runner.run`
            tells the difference.

    Examples:
        >>> call = {"id": "c1", "function": {"name": "add", "arguments": '{"a": 1'}}
        >>> response = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "length"}]}
        >>> [(call.name, call.status.value, call.code) for call in finalize(response)]
        [('add', 'incomplete', 'truncated')]
    """
    kind = kind_of(events)
    if kind is SourceKind.ASYNC:
        raise TypeError("this source is asynchronous; use `await afinalize(...)`")
    finalizer = StreamFinalizer(wire, policy=policy, deltas=False)
    try:
        for event in (events,) if kind is SourceKind.WHOLE else cast("Iterable[object]", events):
            finalizer.feed(event)
    except Exception:  # noqa: BLE001  # whatever the source raised, its calls are incomplete
        end = "error"
    return _close(finalizer, end)


async def afinalize(
    events: object,
    *,
    wire: str | Wire = "auto",
    end: EndOfStream = "auto",
    policy: FinishPolicy | None = None,
) -> tuple[ToolCall, ...]:
    """`finalize` for an asynchronous source; any other source is read in place, without waiting.

    Args:
        events: An async iterable of events, bytes or text; or whatever `finalize` takes.
        wire: `"auto"`, a wire's name, or a `Wire`.
        end: As for `finalize`.
        policy: As for `finalize`.

    Returns:
        Every call of every choice, in order of arrival.

    Raises:
        TypeError: `events` is not a source.
        UnknownWire: Events came, and none was recognised.
    """
    if kind_of(events) is not SourceKind.ASYNC:
        return finalize(events, wire=wire, end=end, policy=policy)
    finalizer = StreamFinalizer(wire, policy=policy, deltas=False)
    try:
        async for event in cast("AsyncIterable[object]", events):
            finalizer.feed(event)
    except Exception:  # noqa: BLE001  # whatever the source raised, its calls are incomplete
        end = "error"
    return _close(finalizer, end)


def _close(finalizer: StreamFinalizer, end: EndOfStream) -> tuple[ToolCall, ...]:
    finalizer.close(end)
    if end != "error":
        finalizer.require_wire()
    return finalizer.calls
