"""Cohere's chat, version 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._testing.providers._lines import Lines, Stream, Writer, Written, present

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject


def _stream(lines: Lines) -> Stream:
    start = {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}}
    begin: list[JsonObject] = [{"type": "message-start", "id": f"message_{lines.number}", "delta": start}]
    kinds = (("thinking", lines.thinking), ("text", lines.text))
    for index, (kind, pieces) in enumerate((kind, pieces) for kind, pieces in kinds if pieces):
        begin += _content(index, kind, pieces)
    return Stream(begin, [_call(index, call) for index, call in enumerate(lines.calls)], _end(lines))


def _content(index: int, kind: str, pieces: list[str]) -> list[JsonObject]:
    started: JsonObject = {"message": {"content": {"type": kind, kind: ""}}}
    return [
        {"type": "content-start", "index": index, "delta": started},
        *(
            {"type": "content-delta", "index": index, "delta": {"message": {"content": {kind: piece}}}}
            for piece in pieces
        ),
        {"type": "content-end", "index": index},
    ]


def _call(index: int, call: Written) -> list[JsonObject]:
    entry = present(id=call.id, type="function", function=present(name=call.name, arguments=""))
    pieces = ({"function": {"arguments": piece}} for piece in call.pieces)
    return [
        {"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": entry}}},
        *({"type": "tool-call-delta", "index": index, "delta": {"message": {"tool_calls": piece}}} for piece in pieces),
        {"type": "tool-call-end", "index": index},
    ]


def _end(lines: Lines) -> list[JsonObject]:
    if lines.finish is None and not lines.error:
        return []
    finish = "ERROR" if lines.error else lines.finish
    delta = present(finish_reason=finish, error=lines.error, usage=lines.usage and _usage(lines.usage))
    return [{"type": "message-end", "delta": delta}]


def _whole(lines: Lines) -> JsonObject:
    if lines.error:
        return {"message": lines.error}
    content: list[JsonObject] = []
    for kind, pieces in (("thinking", lines.thinking), ("text", lines.text)):
        if text := "".join(pieces):
            content.append({"type": kind, kind: text})
    calls = [
        present(id=call.id, type="function", function=present(name=call.name, arguments=call.text))
        for call in lines.calls
    ]
    message: JsonObject = {"role": "assistant", **present(content=content or None, tool_calls=calls or None)}
    usage = present(usage=lines.usage and _usage(lines.usage))
    return {"id": f"message_{lines.number}", **present(finish_reason=lines.finish), "message": message, **usage}


def _usage(usage: tuple[int, int]) -> JsonObject:
    return {"tokens": {"input_tokens": usage[0], "output_tokens": usage[1]}}


WRITER: Final = Writer(
    _stream,
    _whole,
    {"tool_calls": "TOOL_CALL", "stop": "COMPLETE", "length": "MAX_TOKENS", "content_filter": "ERROR_TOXIC"},
)
