"""Responses as the providers write them, from calls written as `(id, name, pieces of the arguments)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    Event: TypeAlias = dict[str, object]
    Call: TypeAlias = tuple[str, str, Iterable[str]]


def chunk(delta: Event, finish: str | None = None) -> Event:
    """One OpenAI chunk."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def openai_chunks(*calls: Call, text: str = "", finish: str | None = "tool_calls") -> list[Event]:
    """The chunks of a streamed chat completion; `finish=None` leaves the finish reason out."""
    chunks = [chunk({"role": "assistant", "content": text or None})]
    for index, (call_id, name, pieces) in enumerate(calls):
        function = {"name": name, "arguments": ""}
        chunks.append(
            chunk({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]})
        )
        chunks += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in pieces if piece
        ]
    return chunks if finish is None else [*chunks, chunk({}, finish)]


def openai_completion(*calls: Call, text: str | None = None, finish: str = "tool_calls") -> Event:
    """A whole chat completion."""
    entries = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": "".join(pieces)}}
        for call_id, name, pieces in calls
    ]
    message = {"role": "assistant", "content": text, "tool_calls": entries or None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def response(*calls: tuple[str, str], finish: str = "tool_calls") -> Event:
    """A whole chat completion with calls written as `(name, arguments)`; their ids are c0, c1 …."""
    return openai_completion(
        *((f"c{number}", name, [arguments]) for number, (name, arguments) in enumerate(calls)), finish=finish
    )


def anthropic_events(*calls: Call, text: str = "", stop: str | None = "tool_use") -> list[Event]:
    """The events of a streamed message; `stop=None` leaves the end out."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 1},
    }
    events: list[Event] = [{"type": "message_start", "message": message}]
    blocks: list[tuple[Event, list[Event]]] = []
    if text:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": text}]))
    for call_id, name, pieces in calls:
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        blocks.append(({"type": "tool_use", "id": call_id, "name": name, "input": {}}, deltas))
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    if stop is not None:
        delta = {"stop_reason": stop, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}})
        events.append({"type": "message_stop"})
    return events


def anthropic_message(*calls: tuple[str, str, Event], text: str = "", stop: str = "tool_use") -> Event:
    """A whole message; the arguments are objects here, as they are on this wire."""
    content: list[Event] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": call_id, "name": name, "input": given} for call_id, name, given in calls]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }
