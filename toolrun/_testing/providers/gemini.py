"""Gemini's generateContent: a response a chunk, and arguments that are objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._testing.providers._lines import Lines, Stream, Writer, Written, present

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject


def _stream(lines: Lines) -> Stream:
    thoughts = [_chunk(lines, [{"text": piece, "thought": True}]) for piece in lines.thinking]
    texts = [_chunk(lines, [{"text": piece}]) for piece in lines.text]
    end = [_error(lines)] if lines.error else []
    if lines.finish is not None:
        end.append(_chunk(lines, [], finish=lines.finish))
    return Stream([*thoughts, *texts], [[_chunk(lines, [_call(call)])] for call in lines.calls], end)


def _whole(lines: Lines) -> JsonObject:
    if lines.error:
        return _error(lines)
    parts: list[JsonObject] = []
    if lines.thinking:
        parts.append({"text": "".join(lines.thinking), "thought": True})
    if lines.text:
        parts.append({"text": "".join(lines.text)})
    return _chunk(lines, [*parts, *map(_call, lines.calls)], finish=lines.finish)


def _call(call: Written) -> JsonObject:
    return {"functionCall": present(id=call.id, name=call.name, args=call.given)}


def _chunk(lines: Lines, parts: list[JsonObject], finish: str | None = None) -> JsonObject:
    content = {"role": "model", "parts": parts} if parts else {"role": "model"}
    candidate = present(content=content, finishReason=finish, index=0)
    return {"candidates": [candidate], **present(usageMetadata=lines.usage and _usage(lines.usage)), **_head(lines)}


def _head(lines: Lines) -> JsonObject:
    return {"modelVersion": "gemini-m", "responseId": f"r{lines.number}"}


def _error(lines: Lines) -> JsonObject:
    return {"error": {"code": 500, "message": lines.error, "status": "INTERNAL"}}


def _usage(usage: tuple[int, int]) -> JsonObject:
    given, written = usage
    return {"promptTokenCount": given, "candidatesTokenCount": written, "totalTokenCount": given + written}


WRITER: Final = Writer(
    _stream,
    _whole,
    {"tool_calls": "STOP", "stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"},
    indexed=False,
)
