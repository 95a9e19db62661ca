"""Bedrock's Converse: events with one key, their name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._testing.providers._lines import Lines, Stream, Writer, Written, present

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject

_SIGNATURE: Final = "c2lnbmF0dXJl"


def _stream(lines: Lines) -> Stream:
    begin: list[JsonObject] = [{"messageStart": {"role": "assistant"}}]
    first = 0
    if lines.thinking:
        thoughts: list[JsonObject] = [{"reasoningContent": {"text": piece}} for piece in lines.thinking]
        begin += _block(first, [*thoughts, {"reasoningContent": {"signature": _SIGNATURE}}])
        first += 1
    if lines.text:
        begin += _block(first, [{"text": piece} for piece in lines.text])
        first += 1
    calls = [_call(index, call) for index, call in enumerate(lines.calls, first)]
    return Stream(begin, calls, _end(lines))


def _call(index: int, call: Written) -> list[JsonObject]:
    start = {"toolUse": present(toolUseId=call.id, name=call.name)}
    opened: JsonObject = {"contentBlockStart": {"start": start, "contentBlockIndex": index}}
    return [opened, *_block(index, [{"toolUse": {"input": piece}} for piece in call.pieces])]


def _block(index: int, deltas: list[JsonObject]) -> list[JsonObject]:
    events: list[JsonObject] = [{"contentBlockDelta": {"delta": delta, "contentBlockIndex": index}} for delta in deltas]
    events.append({"contentBlockStop": {"contentBlockIndex": index}})
    return events


def _end(lines: Lines) -> list[JsonObject]:
    if lines.error:
        return [{"modelStreamErrorException": {"message": lines.error, "originalStatusCode": 500}}]
    if lines.finish is None:
        return []
    end: list[JsonObject] = [{"messageStop": {"stopReason": lines.finish}}]
    if lines.usage is not None:
        end.append({"metadata": {"usage": _usage(lines.usage), "metrics": {"latencyMs": 4}}})
    return end


def _whole(lines: Lines) -> JsonObject:
    if lines.error:
        return {"message": lines.error}
    content: list[JsonObject] = []
    if thoughts := "".join(lines.thinking):
        content.append({"reasoningContent": {"reasoningText": {"text": thoughts, "signature": _SIGNATURE}}})
    if text := "".join(lines.text):
        content.append({"text": text})
    content.extend({"toolUse": present(toolUseId=call.id, name=call.name, input=call.given)} for call in lines.calls)
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        **present(stopReason=lines.finish),
        "usage": _usage(lines.usage or (0, 0)),
        "metrics": {"latencyMs": 4},
    }


def _usage(usage: tuple[int, int]) -> JsonObject:
    given, written = usage
    return {"inputTokens": given, "outputTokens": written, "totalTokens": given + written}


WRITER: Final = Writer(
    _stream,
    _whole,
    {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens", "content_filter": "content_filtered"},
)
