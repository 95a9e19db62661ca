"""Cohere's chat API, version 2: one event type for each step of a message, and whole responses.

The plan that comes before the calls is a thought, not the answer. The end of a call's events proves
nothing: only `message-end` says how the message ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun.wires._history import history_name, history_text
from toolrun.wires._reading import as_index, as_name, as_text, error_message, fields, items, plain, plain_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.events import TextKind
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Response
    from toolrun._core.seams import Decode, Sink, ToolResult

_MESSAGE: Final = "message"
_PLAN: Final = "tool_plan"
_CITATIONS: Final = "citations"
_CALL_KEYS: Final = frozenset(("index", "id", "type", "function"))
_GROWING: Final[dict[str, TextKind]] = {"text": "text", "thinking": "reasoning"}


class CohereV2:
    """The `cohere-v2` wire."""

    name = "cohere-v2"
    dialect = "cohere-v2"

    def recognises(self, event: Mapping[str, object]) -> bool:
        """Most events have a type of this protocol's own; a whole response has a message and its finish reason."""
        kind = event.get("type")
        if kind is None:
            return "finish_reason" in event and bool(fields(event.get("message")))
        return isinstance(kind, str) and kind in _OWN_TYPES

    def decoder(self, sink: Sink) -> Decode:
        """Make the reader of one response."""
        return _Decoder(sink).decode

    def synthetic_id(self, digest: str) -> str:
        """`call_` and 24 characters; any text is accepted."""
        return f"call_{digest[:24]}"

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
        """One assistant message: calls, plan, content blocks and citations as they came.

        The plan goes back as Cohere's guide has it, although clients drop it: the model goes on from it.
        Empty blocks are left out, and so is a message of which only the plan came.
        """
        data = next((part.data for part in response.parts if part.key == _MESSAGE), {})
        content = [
            part.data
            for part in response.parts
            if part.position is None and part.key != _MESSAGE and _says_something(part.data)
        ]
        message: JsonObject = {"role": "assistant"}
        if entries := [_history_call(call) for call in calls]:
            message["tool_calls"] = entries
        if content:
            message["content"] = content
        if len(message) == 1:
            return []
        return [message | {key: value for key, value in data.items() if value}]

    def result_messages(self, results: Sequence[ToolResult]) -> list[JsonObject]:
        """One `tool` message a call; this wire has no mark for errors, the text says it."""
        return [{"role": "tool", "tool_call_id": result.call.id, "content": result.text} for result in results]

    def continues(self, finish_reason: str | None) -> bool:  # noqa: ARG002  # the seam's signature
        """This protocol has no paused turns."""
        return False


def _says_something(block: Mapping[str, object]) -> bool:
    return any(value for key, value in block.items() if key != "type")


def _history_call(call: ToolCall) -> JsonObject:
    function = {"name": history_name(call), "arguments": history_text(call)}
    return {"id": call.id, "type": "function", "function": function, **call.extra}


class _Decoder:
    """Reads the events of one response."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._tool_delta = sink.tool_delta
        self._blocks: set[int] = set()
        self._block = 0

    def decode(self, event: object) -> None:
        if type(event) is dict:
            # Nearly every event of a call is one piece of text for a known index, and nothing else.
            try:
                call = event["delta"]["message"]["tool_calls"]
                body = call["function"]
                text = body["arguments"]
                index = event["index"]
                bare = event["type"] == "tool-call-delta" and len(call) == len(body) == 1
                if bare and type(text) is str and type(index) is int:
                    self._tool_delta(0, index, None, None, text)
                    return
            except (KeyError, TypeError):
                pass
        told = event if type(event) is dict else fields(event)
        kind = told.get("type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            message = fields(fields(told.get("delta")).get("message"))
            handler(self, told, message)
        elif kind is None and (whole := fields(told.get("message"))):
            self._whole(told, whole)
        elif kind == "error" or (kind is None and "message" in told):
            self._sink.error(error_message(told))

    def message_start(self, event: Mapping[str, object], message: Mapping[str, object]) -> None:
        self._sink.begin(as_name(event.get("id")))
        self._message(message)

    def plan(self, _event: Mapping[str, object], message: Mapping[str, object]) -> None:
        if text := as_text(message.get(_PLAN)):
            self._sink.block_text(0, _MESSAGE, _PLAN, text, "reasoning")

    def call_start(self, event: Mapping[str, object], message: Mapping[str, object]) -> None:
        index = as_index(event.get("index"))
        for call in items(message.get("tool_calls")) or ({},):
            self._call(index, fields(call))

    def call_delta(self, event: Mapping[str, object], message: Mapping[str, object]) -> None:
        index = as_index(event.get("index"))
        for call in items(message.get("tool_calls")):
            if told := fields(call):
                self._call(index, told)

    def content_start(self, event: Mapping[str, object], message: Mapping[str, object]) -> None:
        index = as_index(event.get("index")) or 0
        for block in items(message.get("content")):
            self._begin(index, fields(block))

    def content_delta(self, event: Mapping[str, object], message: Mapping[str, object]) -> None:
        index = as_index(event.get("index"))
        for block in items(message.get("content")):
            self._grow(self._block if index is None else index, fields(block))

    def citation(self, _event: Mapping[str, object], message: Mapping[str, object]) -> None:
        for citation in items(message.get(_CITATIONS)):
            self._sink.block_item(0, _MESSAGE, _CITATIONS, plain(citation))
            self._sink.citation(0, plain_object(citation))

    def message_end(self, event: Mapping[str, object], _message: Mapping[str, object]) -> None:
        delta = fields(event.get("delta"))
        if usage := fields(delta.get("usage")):
            self._sink.usage(plain_object(usage))
        self._finish(delta.get("finish_reason"), delta.get("error"))
        self._sink.terminate()

    def _whole(self, response: Mapping[str, object], message: Mapping[str, object]) -> None:
        self._sink.begin(as_name(response.get("id")))
        self._message(message)
        if usage := fields(response.get("usage")):
            self._sink.usage(plain_object(usage))
        self._finish(response.get("finish_reason"), response.get("error"))

    def _message(self, message: Mapping[str, object]) -> None:
        """What a whole message holds; a message that just begins holds nothing."""
        self.plan(message, message)
        for index, block in enumerate(items(message.get("content"))):
            self._begin(index, fields(block))
        for index, call in enumerate(items(message.get("tool_calls"))):
            self._call(index, fields(call))
        self.citation(message, message)

    def _finish(self, reason: object, error: object) -> None:
        if error:
            self._sink.error(error_message(error))
        if reason:
            self._sink.finish(0, str(reason))

    def _call(self, index: int | None, call: Mapping[str, object]) -> None:
        body = fields(call.get("function"))
        call_id = as_name(call.get("id"))
        name = as_name(body.get("name"))
        self._tool_delta(0, index, call_id, name, as_text(body.get("arguments")))
        if (call_id or name) and (extra := call.keys() - _CALL_KEYS):
            self._sink.tool_extra(0, {key: plain(call[key]) for key in extra if call[key] is not None})

    def _begin(self, index: int, block: Mapping[str, object]) -> None:
        self._block = index
        self._blocks.add(index)
        self._sink.block(0, index, {key: plain(value) for key, value in block.items() if key not in _GROWING})
        self._grow(index, block)

    def _grow(self, index: int, block: Mapping[str, object]) -> None:
        for field, shown in _GROWING.items():
            if text := as_text(block.get(field)):
                if index not in self._blocks:
                    self._begin(index, {"type": field})
                self._sink.block_text(0, index, field, text, shown)


_HANDLERS: Final[dict[str, Callable[[_Decoder, Mapping[str, object], Mapping[str, object]], None]]] = {
    "message-start": _Decoder.message_start,
    "tool-plan-delta": _Decoder.plan,
    "tool-call-start": _Decoder.call_start,
    "tool-call-delta": _Decoder.call_delta,
    "content-start": _Decoder.content_start,
    "content-delta": _Decoder.content_delta,
    "citation-start": _Decoder.citation,
    "message-end": _Decoder.message_end,
}

_OWN_TYPES: Final = _HANDLERS.keys() | {"tool-call-end", "content-end", "citation-end"}
