"""What a stream without an end costs: nothing beyond the limits."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from toolrun import CallDelta, CallFinalized, StreamFinalizer

from .events import chunk, input_delta, message_start, piece, sse, tool_start

if TYPE_CHECKING:
    from toolrun import ToolCall

MEGABYTE = 1 << 20
GIGABYTE = 1 << 30


def fed_a_gigabyte(wire: str, start: list[Any], more: Any) -> tuple[ToolCall, int, int]:
    """The call that a gigabyte of deltas makes, how many characters listeners got, and the peak of memory in bytes."""
    finalizer = StreamFinalizer(wire)
    told = 0
    tracemalloc.start()
    try:
        for event in itertools.chain(start, itertools.repeat(more, GIGABYTE // MEGABYTE)):
            told += sum(len(item.text) for item in finalizer.feed(event) if isinstance(item, CallDelta))
        (call,) = (item.call for item in finalizer.close() if isinstance(item, CallFinalized))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return call, told, peak


TEXT = "x" * MEGABYTE
DELTAS: dict[str, tuple[str, list[Any], Any]] = {
    "openai-chat": ("openai-chat", [chunk(piece('{"a": "', index=0, id="c", name="f"))], chunk(piece(TEXT, index=0))),
    "openai-chat as bytes": (
        "openai-chat",
        [sse([chunk(piece('{"a": "', index=0, id="c", name="f"))])],
        sse([chunk(piece(TEXT, index=0))]),
    ),
    "anthropic-messages": (
        "anthropic-messages",
        [message_start(), tool_start(0, "c", "f"), input_delta(0, '{"a": "')],
        input_delta(0, TEXT),
    ),
    "openai-responses": (
        "openai-responses",
        [
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": ""},
            }
        ],
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": TEXT},
    ),
    "bedrock-converse": (
        "bedrock-converse",
        [{"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c", "name": "f"}}}}],
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": TEXT}}}},
    ),
    "cohere-v2": (
        "cohere-v2",
        [
            {
                "type": "tool-call-start",
                "index": 0,
                "delta": {"message": {"tool_calls": {"id": "c", "function": {"name": "f", "arguments": ""}}}},
            }
        ],
        {
            "type": "tool-call-delta",
            "index": 0,
            "delta": {"message": {"tool_calls": {"function": {"arguments": TEXT}}}},
        },
    ),
}


@pytest.mark.parametrize("name", DELTAS)
def test_a_gigabyte_for_one_call(name: str) -> None:
    """A call over the limit ends with a clear status; what comes after the limit is neither kept nor told."""
    call, told, peak = fed_a_gigabyte(*DELTAS[name])

    assert (call.name, call.status.value, call.code, call.executable) == ("f", "incomplete", "limit", False)
    assert len(call.raw_arguments) == told <= 16 * MEGABYTE
    assert peak < 80 * MEGABYTE
