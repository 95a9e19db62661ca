"""OpenAI Chat Completions, and the many servers that speak it more or less.

Reads `chat.completion.chunk`s, whole `chat.completion`s, the events of the SDK's `.stream()`
helper, legacy `function_call`s, and tools that the provider ran itself (`executed_tools`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from toolrun.wires._history import history_name, history_text
from toolrun.wires._reading import as_index, as_name, as_text, error_message, fields, items, plain, plain_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Response
    from toolrun._core.seams import Decode, Sink, ToolResult

_MESSAGE: Final = "message"
_CALL_KEYS: Final = frozenset(("index", "id", "type", "function", "custom"))
_TEXT_FIELDS: Final[dict[str, Literal["text", "reasoning", "refusal"]]] = {
    "content": "text",
    "reasoning_content": "reasoning",
    "reasoning": "reasoning",
    "refusal": "refusal",
}
_ITEM_FIELDS: Final = ("reasoning_details",)
_LEFT_OUT_OF_HISTORY: Final = frozenset(("refusal",))


class OpenAIChat:
    """The `openai-chat` wire."""

    name = "openai-chat"
    dialect = "openai-chat"

    def recognises(self, event: Mapping[str, object]) -> bool:
        """Chunks and completions have choices; some servers leave `object` out, Azure sends it empty."""
        return "choices" in event or str(event.get("object", "")).startswith("chat.completion")

    def decoder(self, sink: Sink) -> Decode:
        """Make the reader of one response."""
        return _Decoder(sink).decode

    def synthetic_id(self, digest: str) -> str:
        """`call_` and 24 characters, like the provider's own."""
        return f"call_{digest[:24]}"

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
        """One assistant message: text and reasoning as they came, then the calls."""
        data = next((part.data for part in response.parts if part.key == _MESSAGE), {})
        message: JsonObject = {"role": "assistant", "content": data.get("content") or None}
        message.update(
            {key: value for key, value in data.items() if key not in _LEFT_OUT_OF_HISTORY and key != "content"}
        )
        if entries := [_history_call(call) for call in calls if not call.provider_executed]:
            message["tool_calls"] = entries
        elif message["content"] is None:
            message["content"] = data.get("refusal") or ""
        return [message]

    def result_messages(self, results: Sequence[ToolResult]) -> list[JsonObject]:
        """One `tool` message a call; this wire has no mark for errors, the text says it."""
        return [{"role": "tool", "tool_call_id": result.call.id, "content": result.text} for result in results]

    def continues(self, finish_reason: str | None) -> bool:  # noqa: ARG002  # the seam's signature
        """This protocol has no paused turns."""
        return False


def _history_call(call: ToolCall) -> JsonObject:
    if call.kind == "custom":
        body: JsonObject = {"custom": {"name": history_name(call), "input": call.raw_arguments}}
    else:
        body = {"function": {"name": history_name(call), "arguments": history_text(call)}}
    return {"id": call.id, "type": call.kind, **body, **call.extra}


class _Decoder:
    """Reads the events of one response."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def decode(self, event: object) -> None:
        if type(event) is not dict:
            event = fields(event)
        choices = event.get("choices")
        if choices:
            for choice in items(choices):
                self._choice(choice if type(choice) is dict else fields(choice))
        if "usage" in event and (usage := fields(event["usage"])):
            self._sink.usage(plain_object(usage))
        if not choices:
            self._without_choices(event)

    def _without_choices(self, event: Mapping[str, object]) -> None:
        if error := event.get("error"):
            self._sink.error(error_message(error))
            if failed := as_text(fields(error).get("failed_generation")):
                self._sink.diagnose("failed_generation", failed)
        elif event.get("type") == "chunk" and (chunk := fields(event.get("chunk"))):
            self.decode(chunk)  # the SDK's .stream() helper wraps each chunk and adds events of its own

    def _choice(self, choice: Mapping[str, object]) -> None:
        number = as_index(choice.get("index")) or 0
        delta = choice.get("delta")
        if delta:
            self._delta(number, delta if type(delta) is dict else fields(delta))
        elif message := fields(choice.get("message")):
            self._delta(number, message)
        reason = choice.get("finish_reason")
        if reason:
            self._sink.finish(number, str(reason))
        if error := choice.get("error"):
            self._sink.error(error_message(error))

    def _delta(self, choice: int, delta: Mapping[str, object]) -> None:
        calls = delta.get("tool_calls")
        if calls:
            for call in calls if type(calls) is list else items(calls):
                self._call(choice, call if type(call) is dict else fields(call))
        for field, value in delta.items():
            if value and field in _TEXT_FIELDS:
                self._text(choice, field, value)
        if legacy := delta.get("function_call"):
            told = fields(legacy)
            self._sink.tool_delta(choice, None, None, as_name(told.get("name")), as_text(told.get("arguments")))
        for field in _ITEM_FIELDS:
            for item in items(delta.get(field)):
                self._sink.block_item(choice, _MESSAGE, field, plain(item))
        for executed in items(delta.get("executed_tools")):
            self._executed(choice, fields(executed))

    def _text(self, choice: int, field: str, value: object) -> None:
        kind = _TEXT_FIELDS[field]
        for piece in (value,) if isinstance(value, str) else items(value):
            text = piece if isinstance(piece, str) else as_text(fields(piece).get("text"))
            self._sink.block_text(choice, _MESSAGE, field, text, kind)

    def _call(self, choice: int, call: Mapping[str, object]) -> None:
        index = call.get("index")
        if type(index) is not int:
            index = as_index(index)
        id = call.get("id")
        body = call.get("function")
        custom = call.get("custom") if body is None else None
        told = body if type(body) is dict else fields(body if custom is None else custom)
        name = told.get("name")
        text = told.get("arguments" if custom is None else "input")
        id = as_name(id) if id else None
        name = as_name(name) if name else None
        if custom is not None and not self._sink.has_call(choice, index):
            self._sink.tool_open(choice, index, id, name, kind="custom")
        self._sink.tool_delta(choice, index, id, name, text if type(text) is str else as_text(text))
        if (id or name) and (extra := call.keys() - _CALL_KEYS):
            self._sink.tool_extra(choice, {key: plain(call[key]) for key in extra if call[key] is not None})

    def _executed(self, choice: int, tool: Mapping[str, object]) -> None:
        """A tool that the provider ran; it is told twice, with the query and again with the result."""
        index = -1 - (as_index(tool.get("index")) or 0)
        if not self._sink.has_call(choice, index):
            name = as_name(tool.get("name")) or as_name(tool.get("type"))
            self._sink.tool_open(
                choice, index, None, name, provider_executed=True, placeholder=as_text(tool.get("arguments"))
            )
