"""Ollama's chat: a line of JSON a piece, and arguments that are objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._testing.providers._lines import Lines, Stream, Writer, Written, present

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject

_HEAD: Final[JsonObject] = {"model": "m", "created_at": "2023-11-14T22:13:20Z"}


def _stream(lines: Lines) -> Stream:
    thoughts = [_line(content="", thinking=piece) for piece in lines.thinking]
    texts = [_line(content=piece) for piece in lines.text]
    calls = [[_line(content="", tool_calls=[_call(call)])] for call in lines.calls]
    end: list[JsonObject] = [{"error": lines.error}] if lines.error else []
    if lines.finish is not None or lines.terminated:
        end.append({**_line(content=""), **_end(lines)})
    return Stream([*thoughts, *texts], calls, end)


def _whole(lines: Lines) -> JsonObject:
    if lines.error:
        return {"error": lines.error}
    told = _line(
        content="".join(lines.text),
        thinking="".join(lines.thinking) or None,
        tool_calls=[_call(call) for call in lines.calls] or None,
    )
    return {**told, **_end(lines)}


def _line(**message: object) -> JsonObject:
    return {**_HEAD, "message": {"role": "assistant", **present(**message)}, "done": False}


def _end(lines: Lines) -> JsonObject:
    given, written = lines.usage or (None, None)
    return {"done": True, **present(done_reason=lines.finish, prompt_eval_count=given, eval_count=written)}


def _call(call: Written) -> JsonObject:
    return present(id=call.id, function=present(name=call.name, arguments=call.given))


WRITER: Final = Writer(_stream, _whole, {"tool_calls": "stop"}, indexed=False, keeps_ids=False)
