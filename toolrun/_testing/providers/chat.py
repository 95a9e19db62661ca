"""Chat Completions, and Mistral's: chunks with a delta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._testing.providers._lines import Lines, Stream, Writer, Written, present

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject

_CREATED: Final = 1_700_000_000


def _openai_head(lines: Lines, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{lines.number}", "object": kind, "created": _CREATED, "model": "m"}


def _mistral_head(lines: Lines, kind: str) -> JsonObject:
    """By the form of the id and the name of the model, whose it is can be told."""
    return {"id": f"{lines.number:032x}", "object": kind, "created": _CREATED, "model": "mistral-small-latest"}


def _openai_stream(lines: Lines) -> Stream:
    head = _openai_head(lines, "chat.completion.chunk")
    end = _error(lines)
    if lines.finish is not None:
        end.append(_chunk(head, {}, lines.finish))
        end += [{**head, "choices": [], "usage": _usage(lines.usage)}] if lines.usage else []
    begin = [
        _chunk(head, {"role": "assistant", "content": None}),
        *(_chunk(head, {"reasoning_content": piece}) for piece in lines.thinking),
        *(_chunk(head, {"content": piece}) for piece in lines.text),
    ]
    return Stream(begin, _calls(head, lines), end)


def _mistral_stream(lines: Lines) -> Stream:
    head = _mistral_head(lines, "chat.completion.chunk")
    end = _error(lines)
    if lines.finish is not None:
        usage = {} if lines.usage is None else {"usage": _usage(lines.usage)}
        end.append({**_chunk(head, {"content": ""}, lines.finish), **usage})
    begin = [
        _chunk(head, {"role": "assistant", "content": ""}),
        *(_chunk(head, {"content": [_thought(piece)]}) for piece in lines.thinking),
        *(_chunk(head, {"content": piece}) for piece in lines.text),
    ]
    return Stream(begin, _calls(head, lines, name=""), end)


def _chunk(head: JsonObject, delta: JsonObject, finish: str | None = None) -> JsonObject:
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _calls(head: JsonObject, lines: Lines, **each: str) -> list[list[JsonObject]]:
    """The chunks of each call; `each` is repeated with every piece of arguments."""
    written: list[list[JsonObject]] = []
    for index, call in enumerate(lines.calls):
        first = present(index=index, id=call.id, type="function", function=present(name=call.name, arguments=""))
        pieces = ({"index": index, "function": {**each, "arguments": piece}} for piece in call.pieces if piece)
        written.append([_chunk(head, {"tool_calls": [entry]}) for entry in (first, *pieces)])
    return written


def _openai_whole(lines: Lines) -> JsonObject:
    thoughts = "".join(lines.thinking)
    text = "".join(lines.text) or None
    message: JsonObject = {"role": "assistant", "content": text, **present(reasoning_content=thoughts or None)}
    return _whole(_openai_head(lines, "chat.completion"), message, lines)


def _mistral_whole(lines: Lines) -> JsonObject:
    text = "".join(lines.text)
    thoughts = "".join(lines.thinking)
    content = [_thought(thoughts), {"type": "text", "text": text}] if thoughts else text
    return _whole(_mistral_head(lines, "chat.completion"), {"role": "assistant", "content": content}, lines)


def _whole(head: JsonObject, message: JsonObject, lines: Lines) -> JsonObject:
    if lines.error:
        return _error(lines)[0]
    message["tool_calls"] = [_entry(call) for call in lines.calls] or None
    choice = {"index": 0, "message": message, "finish_reason": lines.finish}
    return {**head, "choices": [choice], **present(usage=lines.usage and _usage(lines.usage))}


def _entry(call: Written) -> JsonObject:
    return present(id=call.id, type="function", function=present(name=call.name, arguments=call.text))


def _thought(text: str) -> JsonObject:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _error(lines: Lines) -> list[JsonObject]:
    return [{"error": {"message": lines.error, "type": "server_error", "code": 500}}] if lines.error else []


def _usage(usage: tuple[int, int]) -> JsonObject:
    given, written = usage
    return {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}


OPENAI: Final = Writer(_openai_stream, _openai_whole, {})
MISTRAL: Final = Writer(_mistral_stream, _mistral_whole, {})
