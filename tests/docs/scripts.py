"""What the provider of the examples says, in each protocol: a call of the weather tool, then an answer with its result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]

TOOL = "get_weather"
PIECES = ('{"city": "Os', "lo, Norw", 'ay"}')
ANSWER = "The tool says: "


def chat(request: Json) -> Iterator[Json]:
    """Chat Completions, and whoever speaks it."""
    results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    if results:
        deltas: list[Json] = [{"role": "assistant", "content": ANSWER}, {"content": results[-1]}, {}]
    else:
        first = {"index": 0, "id": "call_9f", "type": "function", "function": {"name": TOOL, "arguments": ""}}
        deltas = [
            {"role": "assistant", "content": None, "tool_calls": [first]},
            *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in PIECES),
            {},
        ]
    finishes = [*[None] * (len(deltas) - 1), "stop" if results else "tool_calls"]
    for delta, finish in zip(deltas, finishes, strict=True):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        yield {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": request["model"],
            "choices": [choice],
        }


def responses(request: Json) -> Iterator[Json]:
    """Responses: a reasoning item that has to come back, then a call in pieces, or a text."""
    results = [item["output"] for item in request["input"] if item.get("type") == "function_call_output"]
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbGVk"}
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": request["model"], "output": []}
    texts = (ANSWER, results[-1]) if results else PIECES
    if results:
        assert reasoning in request["input"]
        place = {"output_index": 0, "content_index": 0, "item_id": "msg_1"}
        part = {"type": "output_text", "text": "".join(texts), "annotations": []}
        begun = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
        done = {**begun, "status": "completed", "content": [part]}
        kind, first = "response.output_text.delta", []
    else:
        place = {"output_index": 1, "item_id": "fc_1"}
        begun = {"type": "function_call", "id": "fc_1", "call_id": "call_9f", "name": TOOL, "arguments": ""}
        done = {**begun, "arguments": "".join(texts), "status": "completed"}
        kind, first = "response.function_call_arguments.delta", [reasoning]
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    for item in first:
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.output_item.added", "output_index": place["output_index"], "item": begun}
    for text in texts:
        yield {"type": kind, **place, "delta": text}
    yield {"type": "response.output_item.done", "output_index": place["output_index"], "item": done}
    yield {"type": "response.completed", "response": {**response, "status": "completed", "output": [*first, done]}}


def mistral(request: Json) -> Iterator[Json]:
    """Mistral's chat: ids of nine characters, a call whole in one chunk, a text as a piece of its own."""
    results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    call = {"id": "call9f000", "index": 0, "function": {"name": TOOL, "arguments": "".join(PIECES)}}
    deltas: list[Json] = (
        [{"content": ANSWER}, {"content": results[-1]}] if results else [{"content": "", "tool_calls": [call]}]
    )
    finishes = [*[None] * (len(deltas) - 1), "stop" if results else "tool_calls"]
    for delta, finish in zip(deltas, finishes, strict=True):
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
        yield {
            "id": "1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": request["model"],
            "choices": [choice],
        }


def messages(request: Json) -> Iterator[Json]:
    """Anthropic Messages."""
    last = request["messages"][-1]["content"]
    results = [block["content"] for block in last if block["type"] == "tool_result"] if isinstance(last, list) else []
    if results:
        block: Json = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": ANSWER}, {"type": "text_delta", "text": results[-1]}]
    else:
        block = {"type": "tool_use", "id": "toolu_9f", "name": TOOL, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in PIECES]
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn" if results else "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 20},
    }
    yield {"type": "message_stop"}


def gemini(request: Json) -> Iterator[Json]:
    """generateContent: a call has no id, its arguments are an object, and its signature has to come back."""
    parts = [part for content in request["contents"] for part in content["parts"]]
    results = [part["functionResponse"]["response"]["result"] for part in parts if "functionResponse" in part]
    signed = {"thoughtSignature": "c2lnbmVk"}
    if results:
        assert [part["thoughtSignature"] for part in parts if "functionCall" in part] == [signed["thoughtSignature"]]
        told: list[Json] = [{"text": ANSWER}, {"text": results[-1]}]
    else:
        told = [{"functionCall": {"name": TOOL, "args": json.loads("".join(PIECES))}, **signed}]
    for part in told:
        yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "responseId": "r1"}
    yield {"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}]}


class Script(NamedTuple):
    """A protocol: what is said, and how the stream of it ends."""

    events: Callable[[Json], Iterator[Json]]
    end: bytes = b""

    def stream(self, request: Json) -> Iterator[bytes]:
        """Server-sent events, named where they have a type."""
        for event in self.events(request):
            name = f"event: {event['type']}\n" if "type" in event else ""
            yield f"{name}data: {json.dumps(event)}\n\n".encode()
        if self.end:
            yield self.end


SCRIPTS = {
    "/mistral/v1/chat/completions": Script(mistral, b"data: [DONE]\n\n"),
    "/v1/chat/completions": Script(chat, b"data: [DONE]\n\n"),
    "/v1/responses": Script(responses),
    "/v1/messages": Script(messages),
    ":streamGenerateContent": Script(gemini),
}
"""By what the path of a request has in it."""
