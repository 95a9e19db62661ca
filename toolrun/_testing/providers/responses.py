"""OpenAI's Responses: items, each announced, grown and repeated whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._testing.providers._lines import Lines, Stream, Writer, Written, present

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject

_COMPLETED: Final = "completed"


def _stream(lines: Lines) -> Stream:
    opened = _response(lines, "in_progress", [])
    begin: list[JsonObject] = [
        {"type": "response.created", "response": opened},
        {"type": "response.in_progress", "response": opened},
    ]
    items = _items(lines)
    for index, item in enumerate(items[: len(items) - len(lines.calls)]):
        begin += _reasoning(index, item, lines) if item["type"] == "reasoning" else _message(index, item, lines)
    first = len(items) - len(lines.calls)
    calls = [_call(first + place, items[first + place], call) for place, call in enumerate(lines.calls)]
    return Stream(begin, calls, _end(lines, items))


def _items(lines: Lines) -> list[JsonObject]:
    """The items of the response, as they are at its end."""
    items: list[JsonObject] = []
    if lines.thinking:
        summary = [{"type": "summary_text", "text": "".join(lines.thinking)}]
        items.append({"type": "reasoning", "id": f"rs_{lines.number}", "summary": summary})
    if lines.text:
        content = [{"type": "output_text", "text": "".join(lines.text), "annotations": []}]
        message = {"type": "message", "id": f"msg_{lines.number}", "status": _COMPLETED, "role": "assistant"}
        items.append({**message, "content": content})
    for place, call in enumerate(lines.calls):
        told = present(id=f"fc_{lines.number}_{place}", call_id=call.id, name=call.name, arguments=call.text)
        items.append({"type": "function_call", "status": _COMPLETED, **told})
    return items


def _reasoning(index: int, item: JsonObject, lines: Lines) -> list[JsonObject]:
    place = {"item_id": item["id"], "output_index": index, "summary_index": 0}
    kind = "response.reasoning_summary"
    text = "".join(lines.thinking)
    return [
        {"type": "response.output_item.added", "output_index": index, "item": {**item, "summary": []}},
        {"type": f"{kind}_part.added", **place, "part": {"type": "summary_text", "text": ""}},
        *({"type": f"{kind}_text.delta", **place, "delta": piece} for piece in lines.thinking),
        {"type": f"{kind}_text.done", **place, "text": text},
        {"type": f"{kind}_part.done", **place, "part": {"type": "summary_text", "text": text}},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _message(index: int, item: JsonObject, lines: Lines) -> list[JsonObject]:
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    part: JsonObject = {"type": "output_text", "text": "", "annotations": []}
    text = "".join(lines.text)
    opened = {**item, "status": "in_progress", "content": []}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": opened},
        {"type": "response.content_part.added", **place, "part": part},
        *({"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []} for piece in lines.text),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": {**part, "text": text}},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _call(index: int, item: JsonObject, call: Written) -> list[JsonObject]:
    place = {"item_id": item["id"], "output_index": index}
    opened = {**item, "status": "in_progress", "arguments": ""}
    kind = "response.function_call_arguments"
    return [
        {"type": "response.output_item.added", "output_index": index, "item": opened},
        *({"type": f"{kind}.delta", **place, "delta": piece} for piece in call.pieces),
        {"type": f"{kind}.done", **place, **present(name=call.name), "arguments": call.text},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _end(lines: Lines, items: list[JsonObject]) -> list[JsonObject]:
    if lines.error:
        return [{"type": "response.failed", "response": _whole(lines)}]
    if lines.finish is None:
        return []
    whole = _response(lines, _status(lines), items)
    return [{"type": f"response.{whole['status']}", "response": whole}]


def _whole(lines: Lines) -> JsonObject:
    if lines.error:
        failed = _response(lines, "failed", [])
        return {**failed, "error": {"code": "server_error", "message": lines.error}}
    return _response(lines, _status(lines), _items(lines))


def _status(lines: Lines) -> str:
    if lines.finish is None:
        return "in_progress"
    return _COMPLETED if lines.finish == _COMPLETED else "incomplete"


def _response(lines: Lines, status: str, items: list[JsonObject]) -> JsonObject:
    over = status != "in_progress"
    return {
        "id": f"resp_{lines.number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": lines.finish} if status == "incomplete" else None,
        "model": "m",
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(lines.usage) if lines.usage and over else None,
    }


def _usage(usage: tuple[int, int]) -> JsonObject:
    given, written = usage
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + written,
    }


WRITER: Final = Writer(
    _stream,
    _whole,
    {"tool_calls": _COMPLETED, "stop": _COMPLETED, "length": "max_output_tokens"},
    numbered=True,
)
