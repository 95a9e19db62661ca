"""What an OpenAI Responses request takes back: output items as input items, and results."""

from __future__ import annotations

import json
from mimetypes import guess_extension
from typing import TYPE_CHECKING, Final, cast

from toolrun._core.calls import CallStatus
from toolrun._core.content import Image
from toolrun.wires._content import content_blocks, url_of
from toolrun.wires._history import history_arguments, history_name, history_text
from toolrun.wires._reading import as_text, fields, items
from toolrun.wires._responses_items import as_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.content import File
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Part, Response
    from toolrun._core.seams import ToolResult

ANSWERED: Final = "answered_in_response"
"""The mark, in a call's `extra`, of a client's kind of call whose output the response itself has."""

FINAL: Final = "final"
"""The field of a block that lists the final copies of its item; the first one counts."""

RESPONSE: Final = "response"
"""The key of the block that keeps what is said of the whole response."""

_OBJECT_FIELDS: Final = {
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}
_REFERRED: Final = frozenset(("function_call", "custom_tool_call", "message"))


def assistant_items(response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
    """Write the output as input items, in order; what never got its final copy and cannot be sent is left out."""
    by_position = {call.position: call for call in calls}
    own = {call.id for call in calls if _is_own(call)}
    stored = not any(part.key == RESPONSE for part in response.parts)
    written: list[tuple[JsonObject, bool]] = []
    left_out = False
    for part in response.parts:
        if part.position is not None:
            call = by_position.pop(part.position, None)
            if call is not None and (item := _call_item(call)) is not None:
                written.append((item, _is_own(call)))
        elif part.data.get("type") == "reasoning":
            reasoning = _reasoning_item(part, stored=stored)
            left_out = left_out or reasoning is None
            if reasoning is not None:
                written.append((reasoning, False))
        elif (item := _other_item(part, own)) is not None:
            written.append((item, False))
    written += [(item, _is_own(call)) for call in by_position.values() if (item := _call_item(call)) is not None]
    if left_out:
        # An id refers to an item that is to come with its reasoning; without one, the item stands for itself.
        written = [(_without_id(item) if item.get("type") in _REFERRED else item, is_own) for item, is_own in written]
    return _calls_together(written)


def _is_own(call: ToolCall) -> bool:
    return not call.provider_executed and ANSWERED not in call.extra


def _without_id(item: JsonObject) -> JsonObject:
    """The item as a new one; a message without an id is a plain one, unless that would lose annotations."""
    rest = {key: value for key, value in item.items() if key != "id"}
    parts = [fields(part) for part in items(item.get("content"))] if item.get("type") == "message" else []
    if parts and all(part.get("type") == "output_text" and not part.get("annotations") for part in parts):
        rest["content"] = "".join(as_text(part.get("text")) for part in parts)
    return rest


def _calls_together(written: list[tuple[JsonObject, bool]]) -> list[JsonObject]:
    """Put messages that stand behind a client call before the first: DeepSeek refuses what splits calls and results.

    Reasoning belongs to the item after it, so where there is any in between, the order stays.
    """
    ordered = [item for item, _ in written]
    places = [place for place, (_, is_own) in enumerate(written) if is_own]
    if not places:
        return ordered
    first, last = places[0], places[-1]
    end = last if _has_reasoning(ordered[last:]) else len(ordered)
    behind = ordered[first:end]
    if _has_reasoning(behind):
        return ordered
    messages = [item for item in behind if item.get("type") == "message"]
    others = [item for item in behind if item.get("type") != "message"]
    return [*ordered[:first], *messages, *others, *ordered[end:]]


def _has_reasoning(listed: Sequence[JsonObject]) -> bool:
    return any(item.get("type") == "reasoning" for item in listed)


def _call_item(call: ToolCall) -> JsonObject | None:
    extra = {key: value for key, value in call.extra.items() if key != ANSWERED}
    if call.provider_executed:
        return extra or None  # without a final copy, there is nothing that could be repeated
    kind = extra.get("type", "custom_tool_call" if call.kind == "custom" else "function_call")
    ok = call.status is CallStatus.OK
    if kind in _OBJECT_FIELDS:
        item = {**extra, "call_id": call.id}
        if ok and call.arguments is not None:
            field = _OBJECT_FIELDS[str(kind)]
            item.update(call.arguments if "actions" in call.arguments else {field: call.arguments})
        return item
    if kind == "tool_search_call":
        return {**extra, "call_id": call.id, "arguments": history_arguments(call)}
    if not ok:
        # What was not finished or not valid is not what the provider has under that id.
        extra = {key: value for key, value in extra.items() if key not in ("id", "status")}
    item = {**extra, "type": kind, "call_id": call.id, "name": history_name(call)}
    item.pop("input", None)
    item.pop("arguments", None)
    if kind == "custom_tool_call":
        return {**item, "input": call.raw_arguments}
    return {**item, "arguments": history_text(call)}


def _copies(part: Part) -> list[JsonObject]:
    return cast("list[JsonObject]", part.data.get(FINAL, []))


def _reasoning_item(part: Part, *, stored: bool) -> JsonObject | None:
    """Reasoning goes back whole or not at all; if nothing was stored, its id alone refers to nothing."""
    item = next(iter(_copies(part)), None)
    if item is None or stored or item.get("encrypted_content") or item.get("content"):
        return item
    return None


def _other_item(part: Part, own: set[str]) -> JsonObject | None:
    if part.data.get("type") == "message":
        return _message_item(part)
    # What the response lists as the output of a client's call gives way to the client's own.
    return next(
        (item for item in _copies(part) if item.get("call_id") is None or as_id(item["call_id"]) not in own), None
    )


def _message_item(part: Part) -> JsonObject | None:
    for item in _copies(part):
        if item.get("content"):
            return item
    text = "".join(str(value) for key, value in part.data.items() if key.startswith(("output_text:", "refusal:")))
    phase = {"phase": part.data["phase"]} if part.data.get("phase") else {}
    return {"type": "message", "role": "assistant", "content": text, **phase} if text else None


def result_item(result: ToolResult) -> JsonObject:
    """Write one result as the item that its call wants; this protocol has few marks for errors, the text says it."""
    kind = str(result.call.extra.get("type", "custom_tool_call" if result.call.kind == "custom" else "function_call"))
    body = _RESULTS.get(kind, _text_result)(result)
    output = "tool_search_output" if kind == "tool_search_call" else f"{kind}_output"
    caller = result.call.extra.get("caller")  # a program's call says so, and so must its output
    return {"type": output, "call_id": result.call.id, **body, **({"caller": caller} if caller else {})}


def _text_result(result: ToolResult) -> JsonObject:
    return {"output": result.text}


def _output(result: ToolResult) -> JsonObject:
    """Text, or a list of content items where there is more than text."""
    return {"output": content_blocks(result, _input_text, _input_block) if result.parts else result.text}


def _input_text(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def _input_block(part: Image | File) -> JsonObject:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": url_of(part)}
    if part.url:
        return {"type": "input_file", "file_url": part.url}
    name = part.name or f"file{guess_extension(part.media_type) or ''}"
    return {"type": "input_file", "filename": name, "file_data": url_of(part)}


def _found_tools(result: ToolResult) -> JsonObject:
    """The tools that a search found: a list, or an object with `tools`; the item has no room for anything else."""
    told = _decoded(result.text)
    tools = told.get("tools") if isinstance(told, dict) else told
    good = isinstance(tools, list) and not result.is_error
    return {"execution": "client", "status": "completed" if good else "incomplete", "tools": tools if good else []}


def _shell_result(result: ToolResult) -> JsonObject:
    told = _decoded(result.text)
    chunks = told if isinstance(told, list) else [told]
    if result.is_error or not all(isinstance(chunk, dict) and chunk.keys() >= _CHUNK for chunk in chunks):
        text, code = result.text, int(result.is_error)
        streams = {"stdout": "", "stderr": text} if code else {"stdout": text, "stderr": ""}
        chunks = [{**streams, "outcome": {"type": "exit", "exit_code": code}}]
    action = result.call.extra.get("action")
    limit = action.get("max_output_length") if isinstance(action, dict) else None
    return {"output": chunks, **({} if limit is None else {"max_output_length": limit})}


def _patch_result(result: ToolResult) -> JsonObject:
    return {"status": "failed" if result.is_error else "completed", "output": result.text}


def _screenshot(result: ToolResult) -> JsonObject:
    """A screenshot: an image, its URL, or the item's `output` object as JSON. There is no form for words."""
    told = _decoded(result.text)
    if result.is_error:
        return {"output": {"type": "computer_screenshot"}, "status": "incomplete"}
    if image := next((part for part in result.parts if isinstance(part, Image)), None):
        return {"output": {"type": "computer_screenshot", "image_url": url_of(image)}}
    if isinstance(told, dict):
        return {"output": told}
    return {"output": {"type": "computer_screenshot", "image_url": result.text}}


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


_CHUNK: Final = frozenset(("stdout", "stderr", "outcome"))
_RESULTS: Final[dict[str, Callable[[ToolResult], JsonObject]]] = {
    "function_call": _output,
    "custom_tool_call": _output,
    "tool_search_call": _found_tools,
    "shell_call": _shell_result,
    "apply_patch_call": _patch_result,
    "computer_call": _screenshot,
}
