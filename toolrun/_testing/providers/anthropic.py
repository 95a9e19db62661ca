"""Anthropic Messages, by themselves and inside Bedrock's InvokeModel."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final

from toolrun._testing.providers._lines import Lines, Stream, Writer, Written, present

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject

_SIGNATURE: Final = "c2lnbmF0dXJl"


def _stream(lines: Lines) -> Stream:
    begin: list[JsonObject] = [
        {"type": "message_start", "message": {**_head(lines), "content": [], "stop_reason": None}}
    ]
    first = 0
    if lines.thinking:
        deltas: list[JsonObject] = [{"type": "thinking_delta", "thinking": piece} for piece in lines.thinking]
        signed: JsonObject = {"type": "signature_delta", "signature": _SIGNATURE}
        begin += _block(first, {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed])
        first += 1
    if lines.text:
        begin += _block(
            first, {"type": "text", "text": ""}, [{"type": "text_delta", "text": text} for text in lines.text]
        )
        first += 1
    calls = [_call(index, call) for index, call in enumerate(lines.calls, first)]
    return Stream(begin, calls, _end(lines))


def _call(index: int, call: Written) -> list[JsonObject]:
    deltas: list[JsonObject] = [{"type": "input_json_delta", "partial_json": piece} for piece in call.pieces]
    return _block(index, present(type="tool_use", id=call.id, name=call.name, input={}), deltas)


def _block(index: int, block: JsonObject, deltas: list[JsonObject]) -> list[JsonObject]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _end(lines: Lines) -> list[JsonObject]:
    end: list[JsonObject] = [_error(lines)] if lines.error else []
    if lines.finish is not None:
        usage = {"output_tokens": lines.usage[1] if lines.usage else 0}
        delta = {"stop_reason": lines.finish, "stop_sequence": None}
        end.append({"type": "message_delta", "delta": delta, "usage": usage})
    if lines.terminated:
        end.append({"type": "message_stop"})
    return end


def _whole(lines: Lines) -> JsonObject:
    if lines.error:
        return _error(lines)
    content: list[JsonObject] = []
    if thoughts := "".join(lines.thinking):
        content.append({"type": "thinking", "thinking": thoughts, "signature": _SIGNATURE})
    if text := "".join(lines.text):
        content.append({"type": "text", "text": text})
    content += [present(type="tool_use", id=call.id, name=call.name, input=call.given) for call in lines.calls]
    head = _head(lines, lines.usage[1] if lines.usage else 0)
    return {**head, "content": content, "stop_reason": lines.finish}


def _head(lines: Lines, output_tokens: int = 1) -> JsonObject:
    """The usage is there in any case: the SDK adds up what it has of it."""
    return {
        "id": f"msg_{lines.number}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_sequence": None,
        "usage": {"input_tokens": lines.usage[0] if lines.usage else 0, "output_tokens": output_tokens},
    }


def _error(lines: Lines) -> JsonObject:
    return {"type": "error", "error": {"type": "overloaded_error", "message": lines.error}}


def _invoke_stream(lines: Lines) -> Stream:
    begin, calls, end = _stream(lines._replace(error=None))
    error: JsonObject = {"modelStreamErrorException": {"message": lines.error, "originalStatusCode": 500}}
    return Stream(
        [*map(_inside, begin)],
        [[*map(_inside, call)] for call in calls],
        [error] if lines.error else [*map(_inside, end)],
    )


def _inside(event: JsonObject) -> JsonObject:
    return {"chunk": {"bytes": base64.b64encode(json.dumps(event).encode()).decode()}}


_FINISHES: Final = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
MESSAGES: Final = Writer(_stream, _whole, _FINISHES)
INVOKE: Final = Writer(_invoke_stream, _whole, _FINISHES)
