"""Ollama's chat API: newline-delimited JSON, calls whole in one event, usually without ids.

Two identical calls are two calls: this protocol sends each call exactly once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._core.content import Image
from toolrun.wires._content import base64_of, beside
from toolrun.wires._history import history_arguments, history_name
from toolrun.wires._reading import as_name, as_text, error_message, fields, items, plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.content import File
    from toolrun._core.events import TextKind
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Response
    from toolrun._core.seams import Decode, Sink, ToolResult

_MESSAGE: Final = "message"
_TEXT_FIELDS: Final[dict[str, TextKind]] = {"thinking": "reasoning", "content": "text"}
_CALL_KEYS: Final = frozenset(("id", "type", "function"))
_COUNTS: Final = (
    "prompt_eval_count", "eval_count", "total_duration", "load_duration", "prompt_eval_duration", "eval_duration",
)  # fmt: skip


class Ollama:
    """The `ollama` wire."""

    name = "ollama"
    dialect = "ollama"

    def recognises(self, event: Mapping[str, object]) -> bool:
        """Every event of a chat has a message and says whether it is done."""
        return "done" in event and bool(fields(event.get("message")))

    def decoder(self, sink: Sink) -> Decode:
        """Make the reader of one response."""
        return _Decoder(sink).decode

    def synthetic_id(self, digest: str) -> str:
        """`call_` and 24 characters; the API pairs results by name and order."""
        return f"call_{digest[:24]}"

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
        """One assistant message: text and thinking as they came, then the calls."""
        data = next((part.data for part in response.parts if part.key == _MESSAGE), {})
        message: JsonObject = {"role": "assistant", "content": data.get("content") or ""}
        message.update({key: value for key, value in data.items() if key != "content" and value})
        if entries := [_history_call(call) for call in calls]:
            message["tool_calls"] = entries
        return [message] if message["content"] or len(message) > len(("role", "content")) else []

    def result_messages(self, results: Sequence[ToolResult]) -> list[JsonObject]:
        """One `tool` message a call, in call order; an id goes back only if the provider gave one."""
        return [_result_message(result) for result in results]

    def continues(self, finish_reason: str | None) -> bool:  # noqa: ARG002  # the seam's signature
        """This protocol has no paused turns."""
        return False


def _result_message(result: ToolResult) -> JsonObject:
    text, images = beside(result, _image)
    return {
        "role": "tool",
        "tool_name": history_name(result.call),
        **({} if result.call.synthetic_id else {"tool_call_id": result.call.id}),
        "content": text,
        **({"images": [image["data"] for image in images]} if images else {}),
    }


def _image(part: Image | File) -> JsonObject | None:
    return {"data": base64_of(part)} if isinstance(part, Image) and part.data else None


def _history_call(call: ToolCall) -> JsonObject:
    given = {} if call.synthetic_id else {"id": call.id}
    return {**call.extra, **given, "function": {"name": history_name(call), "arguments": history_arguments(call)}}


class _Decoder:
    """Reads the events of one response."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._calls = 0

    def decode(self, event: object) -> None:
        told = event if type(event) is dict else fields(event)
        message = fields(told.get("message"))
        if error := told.get("error"):
            self._sink.error(error_message(error))
        elif not message and "done" not in told and told:
            # A server that lost its way, for instance `{"error parsing tool call": "…"}`.
            self._sink.error(f"not a part of a chat: {as_text(told)}")
        for field, kind in _TEXT_FIELDS.items():
            if text := as_text(message.get(field)):
                self._sink.block_text(0, _MESSAGE, field, text, kind)
        for image in items(message.get("images")):
            self._sink.block_item(0, _MESSAGE, "images", plain(image))
        for call in items(message.get("tool_calls")):
            self._call(fields(call))
        if usage := {key: told[key] for key in _COUNTS if told.get(key) is not None}:
            self._sink.usage(usage)
        if told.get("done") is True:
            self._done(told.get("done_reason"))

    def _call(self, call: Mapping[str, object]) -> None:
        body = fields(call.get("function")) or call
        given = body.get("arguments")
        extra = {key: plain(call[key]) for key in call.keys() - _CALL_KEYS if call[key] is not None}
        # An index of its own for each call keeps identical ones apart; the provider's starts again in each event.
        self._sink.tool_open(
            0,
            self._calls,
            as_name(call.get("id")),
            as_name(body.get("name")),
            placeholder="{}" if given is None else as_text(given),
            extra=extra if body is not call else None,
        )
        self._calls += 1

    def _done(self, reason: object) -> None:
        if reason:
            self._sink.finish(0, str(reason))
        else:
            self._sink.terminate()
