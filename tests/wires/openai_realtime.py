"""The OpenAI Realtime protocol as somebody outside would add it, with what is public and nothing else.

A session carries more than one response, and they may overlap. A finalizer is for one, so this wire reads the first
response that it sees and leaves the others' events alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from toolrun.wires.helpers import as_name, error_message, fields, history_name, history_text, items, plain_object

if TYPE_CHECKING:
    from toolrun import ToolCall
    from toolrun.abc import Decode, Response, Sink, ToolResult

Event = Mapping[str, Any]

_CALLS: Final = {"function_call": False, "mcp_call": True, "mcp_approval_request": True}
"""The types of items that are calls, and whether the provider executes them."""

_TEXTS: Final = {
    "response.output_text.delta": "text",
    "response.text.delta": "text",
    "response.output_audio_transcript.delta": "transcript",
    "response.audio_transcript.delta": "transcript",
}
"""Deltas that say something readable, and the field of the content part that they fill."""

_ENDED: Final = frozenset(("completed", "incomplete", "failed", "cancelled"))


class OpenAIRealtime:
    """The `openai-realtime` wire.

    The server keeps the conversation, so only results go back, as `conversation.item.create` events. With `replay`
    the response's own items come before them: what a new session needs after the old one broke.
    """

    name = "openai-realtime"
    dialect = "openai-responses"

    def __init__(self, *, replay: bool = False) -> None:
        self._replay = replay

    def recognises(self, event: Mapping[str, object]) -> bool:
        """Every event of a session has an id of its own; those that matter here are a response's."""
        kind = event.get("type")
        return isinstance(kind, str) and kind.startswith("response.") and "event_id" in event

    def decoder(self, sink: Sink) -> Decode:
        return _Decoder(sink).decode

    def synthetic_id(self, digest: str) -> str:
        return f"call_{digest[:16]}"

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[dict[str, object]]:
        if not self._replay:
            return []
        written: list[dict[str, object]] = []
        for part in response.parts:
            if part.position is not None:
                call = next(call for call in calls if call.position == part.position)
                if not call.provider_executed:
                    written.append(_create(_call_item(call)))
            elif text := "".join(str(part.data[field]) for field in ("text", "transcript") if field in part.data):
                content = [{"type": "output_text", "text": text}]
                written.append(_create({"type": "message", "role": "assistant", "content": content}))
        return written

    def result_messages(self, results: Sequence[ToolResult]) -> list[dict[str, object]]:
        written = []
        for result in results:
            if result.call.synthetic_id and not self._replay:
                written.append(_create(_call_item(result.call)))  # the server knows no call by the id that is answered
            written.append(_create({"type": "function_call_output", "call_id": result.call.id, "output": result.text}))
        return written

    def continues(self, finish_reason: str | None) -> bool:
        return False


def _create(item: dict[str, object]) -> dict[str, object]:
    return {"type": "conversation.item.create", "item": item}


def _call_item(call: ToolCall) -> dict[str, object]:
    """A call as a client may write it: arguments that are no object are shown whole, under a key that says so."""
    return {"type": "function_call", "call_id": call.id, "name": history_name(call), "arguments": history_text(call)}


class _Decoder:
    """Reads the events of one response."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._begun = False
        self._response_id: str | None = None
        self._indexes: dict[str, int] = {}
        """The output index of each item by its id: the list at the end has positions of its own."""

    def decode(self, event: object) -> None:
        told = fields(event)
        kind = as_name(told.get("type"))
        if kind == "error":
            self._sink.error(error_message(told.get("error")))
        elif kind in _HANDLERS and self._is_ours(told):
            _HANDLERS[kind](self, told)

    def _is_ours(self, told: Event) -> bool:
        mine = as_name(told.get("response_id")) or as_name(fields(told.get("response")).get("id"))
        if not self._begun:
            self._begun = True
            self._response_id = mine
            self._sink.begin(mine)
        if mine in (None, self._response_id):
            return True
        if told.get("type") == "response.created":
            self._sink.diagnose("other_response", f"response {mine!r} needs a finalizer of its own")
        return False

    # -- items ------------------------------------------------------------------------------

    def created(self, event: Event) -> None:
        """Nothing more than what every event says: whose it is."""

    def item_added(self, event: Event) -> None:
        item = fields(event.get("item"))
        self._open(item, self._place(event, item.get("id")))

    def item_done(self, event: Event) -> None:
        item = fields(event.get("item"))
        self._copy(item, self._place(event, item.get("id")))

    def _place(self, event: Event, item_id: object) -> int:
        """The output index of an event, or that of its item; an item that nothing places comes after the others."""
        index = event.get("output_index")
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            known = self._indexes.get(item_id) if isinstance(item_id, str) else None
            index = max(self._indexes.values(), default=-1) + 1 if known is None else known
        if isinstance(item_id, str):
            self._indexes[item_id] = index
        return index

    def _open(self, item: Event, index: int) -> None:
        kind = as_name(item.get("type"))
        if kind not in _CALLS:
            self._sink.block(0, index, {"type": kind, "role": item.get("role")})
            return
        call_id = item.get("id" if _CALLS[kind] else "call_id")
        self._sink.tool_open(0, index, as_name(call_id), as_name(item.get("name")), provider_executed=_CALLS[kind])
        # A start alone is no call: until a piece or a copy of its arguments came, they may all be lost.
        self._sink.tool_whole(0, index, whole=False)

    def _copy(self, item: Event, index: int) -> None:
        """The final copy of an item, which wins over what its deltas made; a message's texts came as deltas."""
        if as_name(item.get("type")) not in _CALLS:
            return
        if not self._sink.has_call(0, index):
            self._open(item, index)
        self._final(item, index, whole=item.get("status") != "incomplete")

    def _final(self, told: Event, index: int, *, whole: bool) -> None:
        self._sink.tool_delta(0, index, as_name(told.get("call_id")), as_name(told.get("name")), "")
        text = told.get("arguments")
        if isinstance(text, str) and text.strip():
            self._sink.tool_replace(0, index, text)
        self._sink.tool_whole(0, index, whole=whole)

    # -- texts ------------------------------------------------------------------------------

    def arguments_delta(self, event: Event) -> None:
        text = event.get("delta")
        if isinstance(text, str) and text:
            index = self._place(event, event.get("item_id"))
            self._sink.tool_delta(0, index, as_name(event.get("call_id")), None, text)
            self._sink.tool_whole(0, index, whole=True)

    def arguments_done(self, event: Event) -> None:
        self._final(event, self._place(event, event.get("item_id")), whole=True)

    def text(self, event: Event) -> None:
        text = event.get("delta")
        if isinstance(text, str):
            index = self._place(event, event.get("item_id"))
            self._sink.block_text(0, index, _TEXTS[str(event["type"])], text, "text")

    # -- the end ----------------------------------------------------------------------------

    def done(self, event: Event) -> None:
        response = fields(event.get("response"))
        for item in map(fields, items(response.get("output"))):
            self._copy(item, self._place({}, item.get("id")))
        self._sink.usage(plain_object(response.get("usage")))
        details = fields(response.get("status_details"))
        if details.get("error"):
            self._sink.error(error_message(details["error"]))
        status = as_name(response.get("status"))
        if status in _ENDED:
            self._sink.finish(0, status)
            self._sink.terminate()
        if status == "incomplete":
            self._sink.finish(0, as_name(details.get("reason")))


_HANDLERS: Final[dict[str, Callable[[_Decoder, Event], None]]] = {
    "response.created": _Decoder.created,
    "response.output_item.added": _Decoder.item_added,
    "response.output_item.done": _Decoder.item_done,
    "response.function_call_arguments.delta": _Decoder.arguments_delta,
    "response.function_call_arguments.done": _Decoder.arguments_done,
    "response.mcp_call_arguments.delta": _Decoder.arguments_delta,
    "response.mcp_call_arguments.done": _Decoder.arguments_done,
    **dict.fromkeys(_TEXTS, _Decoder.text),
    "response.done": _Decoder.done,
}
