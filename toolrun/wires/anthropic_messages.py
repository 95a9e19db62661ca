"""Anthropic Messages: content blocks with starts, deltas and stops, and whole messages.

A `tool_use` block's `input` at its start is a placeholder unless no delta follows. A block stop proves
nothing: a call that was cut before its first byte stops too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from toolrun._core.content import Image
from toolrun._core.policy import says_whole
from toolrun.wires._content import base64_of, content_blocks
from toolrun.wires._history import history_arguments, history_name
from toolrun.wires._reading import as_index, as_name, as_text, error_message, fields, items, plain, plain_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.content import File
    from toolrun._core.events import TextKind
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Response
    from toolrun._core.seams import Decode, ReadPiece, Sink, ToolResult

_CLIENT_CALL: Final = "tool_use"
_DELTA: Final = "content_block_delta"
_PIECE: Final = "input_json_delta"
_PROVIDER_CALLS: Final = frozenset(("server_tool_use", "mcp_tool_use"))
_CALL_KEYS: Final = frozenset(("type", "id", "name", "input"))
_TEXT_DELTAS: Final[dict[str, tuple[str, TextKind | None]]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "reasoning"),
    "signature_delta": ("signature", None),
}
_GROWING: Final[dict[str, TextKind | None]] = {"text": "text", "thinking": "reasoning", "signature": None}


_IMAGES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_PDF: Final = "application/pdf"


class AnthropicMessages:
    """The `anthropic-messages` wire."""

    name = "anthropic-messages"
    dialect = "anthropic"

    def recognises(self, event: Mapping[str, object]) -> bool:
        """Most events have a type of this protocol's own; a whole message has type `message`."""
        return event.get("type") in _OWN_TYPES

    def decoder(self, sink: Sink) -> Decode:
        """Make the reader of one response."""
        return _Decoder(sink).decode

    def piece_reader(self, sink: Sink) -> ReadPiece:
        """Make the quick reader of one response, for decoded events and for the SDK's objects."""
        return _piece_reader(sink)

    def synthetic_id(self, digest: str) -> str:
        """`toolu_` and 24 characters, like the provider's own."""
        return f"toolu_{digest[:24]}"

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
        """One assistant message: every block as it came, in order, signatures included.

        What the API refuses is left out: blank texts, thoughts that were cut before their signature, and, unless the
        turn is paused, a call that the provider was to run and has not answered.
        """
        by_position = {call.position: call for call in calls}
        answered = {part.data.get("tool_use_id") for part in response.parts}
        paused = self.continues(response.finish_reason)
        content: list[object] = []
        for part in response.parts:
            if part.position is None:
                data = {"type": _type_of(part.data), **part.data}
                if _is_accepted(data):
                    content.append(data)
            elif (call := by_position.get(part.position)) and (
                paused or not call.provider_executed or call.id in answered
            ):
                content.append(_history_call(call))
        return [{"role": "assistant", "content": content}] if content else []

    def result_messages(self, results: Sequence[ToolResult]) -> list[JsonObject]:
        """One user message with every result, in call order."""
        if not results:
            return []
        blocks = [
            {
                "type": "tool_result",
                "tool_use_id": result.call.id,
                "content": content_blocks(result, _text_block, _media_block) if result.parts else result.text,
                **({"is_error": True} if result.is_error else {}),
            }
            for result in results
        ]
        return [{"role": "user", "content": blocks}]

    def continues(self, finish_reason: str | None) -> bool:
        """A paused turn goes on when it is sent back as it is."""
        return finish_reason == "pause_turn"


def _type_of(data: JsonObject) -> str:
    """The type of a block whose start never came, by what grew in it."""
    return "thinking" if "thinking" in data else "text"


def _is_accepted(block: JsonObject) -> bool:
    """A signature that stayed empty belongs to a thought that was cut; other servers of this protocol send none at all."""
    if block["type"] == "text":
        return bool(str(block.get("text", "")).strip())
    return block["type"] != "thinking" or block.get("signature") != ""


def _text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _media_block(part: Image | File) -> JsonObject | None:
    """An image, a PDF or a plain text, as data or by its URL; the API takes no other documents."""
    is_image = isinstance(part, Image)
    kind = "image" if is_image else "document"
    title = {"title": part.name} if not isinstance(part, Image) and part.name else {}
    if part.url:
        fits = is_image or part.media_type in ("", _PDF)
        return {"type": kind, "source": {"type": "url", "url": part.url}, **title} if fits else None
    if part.media_type == "text/plain" and not is_image:
        source = {"type": "text", "media_type": part.media_type, "data": part.data.decode(errors="replace")}
    elif part.media_type in _IMAGES if is_image else part.media_type == _PDF:
        source = {"type": "base64", "media_type": part.media_type, "data": base64_of(part)}
    else:
        return None
    return {"type": kind, "source": source, **title}


def _history_call(call: ToolCall) -> JsonObject:
    extra = dict(call.extra)
    kind = extra.pop("type", _CLIENT_CALL)
    name = call.name if call.provider_executed else history_name(call)
    return {"type": kind, "id": call.id, "name": name, "input": history_arguments(call), **extra}


def _piece_reader(sink: Sink) -> ReadPiece:
    tool_text = sink.tool_text

    def read_piece(event: Any) -> bool:
        # Written out for speed: whatever is not exactly one piece fails or is told apart.
        try:
            if type(event) is dict:
                delta, index, kind = event["delta"], event["index"], event["type"]
                text, part = delta["partial_json"], delta["type"]
            else:
                delta, index, kind = event.delta, event.index, event.type
                text, part = delta.partial_json, delta.type
            ours = kind == _DELTA and part == _PIECE and type(text) is str and type(index) is int
            return ours and tool_text(0, index, text)
        except (AttributeError, KeyError, TypeError):
            return False

    return read_piece


class _Decoder:
    """Reads the events of one response."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._stopped: list[int] = []

    def decode(self, event: object) -> None:
        if type(event) is not dict:
            event = fields(event)
        kind = event.get("type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            handler(self, event)

    def message_start(self, event: Mapping[str, object]) -> None:
        self._message(fields(event.get("message")))

    def whole_message(self, event: Mapping[str, object]) -> None:
        self._message(event)
        if event.get("stop_reason"):
            self._sink.terminate()

    def _message(self, message: Mapping[str, object]) -> None:
        self._sink.begin(as_name(message.get("id")))
        for index, block in enumerate(items(message.get("content"))):
            self._block(index, block)
        self._close(message, message.get("usage"))

    def block_start(self, event: Mapping[str, object]) -> None:
        self._prove()
        self._block(as_index(event.get("index")) or 0, event.get("content_block"))

    def block_delta(self, event: Mapping[str, object]) -> None:
        raw_index = event.get("index")
        index = raw_index if type(raw_index) is int else as_index(raw_index) or 0
        delta = event.get("delta")
        told = delta if type(delta) is dict else fields(delta)
        kind = told.get("type")
        if kind == _PIECE:
            text = told.get("partial_json")
            text = text if type(text) is str else as_text(text)
            if not self._sink.tool_text(0, index, text) and text:
                self._sink.orphan(0, text)
        elif kind == "citations_delta":
            self._cite(index, told.get("citation"))
        elif isinstance(kind, str) and kind in _TEXT_DELTAS:
            field, shown = _TEXT_DELTAS[kind]
            self._sink.block_text(0, index, field, as_text(told.get(field)), shown)

    def block_stop(self, event: Mapping[str, object]) -> None:
        self._stopped.append(as_index(event.get("index")) or 0)

    def _prove(self) -> None:
        """A block's own stop is no proof: one that was cut stops too. What comes after it is."""
        for index in self._stopped:
            self._sink.tool_proven(0, index)
        self._stopped.clear()

    def message_delta(self, event: Mapping[str, object]) -> None:
        told = fields(event.get("delta"))
        if says_whole(as_name(told.get("stop_reason"))):
            self._prove()
        self._close(told, event.get("usage"))

    def message_stop(self, event: Mapping[str, object]) -> None:  # noqa: ARG002  # one signature for all handlers
        self._sink.terminate()

    def error(self, event: Mapping[str, object]) -> None:
        self._sink.error(error_message(event.get("error") or event))

    def _close(self, told: Mapping[str, object], usage: object) -> None:
        reason = told.get("stop_reason")
        self._sink.finish(0, str(reason) if reason else None)
        if counts := fields(usage):
            self._sink.usage(plain_object(counts))

    def _block(self, index: int, value: object) -> None:
        block = fields(value)
        kind = block.get("type")
        if kind == _CLIENT_CALL or (isinstance(kind, str) and kind in _PROVIDER_CALLS):
            self._call(index, block)
            return
        # Text that came with the start and text that follows are one field.
        told = plain_object(value)
        grown = {field: as_text(told.pop(field)) for field in _GROWING if field in told}
        citations = told.pop("citations", None)
        self._sink.block(0, index, told)
        for field, text in grown.items():
            self._sink.block_text(0, index, field, text, _GROWING[field])
        for citation in items(citations):
            self._cite(index, citation)

    def _cite(self, index: int, citation: object) -> None:
        self._sink.block_item(0, index, "citations", plain(citation))
        self._sink.citation(0, plain_object(citation))

    def _call(self, index: int, block: Mapping[str, object]) -> None:
        kind = block.get("type")
        extra = {key: plain(block[key]) for key in block.keys() - _CALL_KEYS if block[key] is not None}
        if kind != _CLIENT_CALL:
            extra["type"] = kind
        given = block.get("input")
        self._sink.tool_open(
            0,
            index,
            as_name(block.get("id")),
            as_name(block.get("name")),
            provider_executed=kind != _CLIENT_CALL,
            placeholder=as_text(given) if given else "",
            extra=extra,
        )


_HANDLERS: Final[dict[str, Callable[[_Decoder, Mapping[str, object]], None]]] = {
    _DELTA: _Decoder.block_delta,
    "content_block_start": _Decoder.block_start,
    "content_block_stop": _Decoder.block_stop,
    "message_start": _Decoder.message_start,
    "message_delta": _Decoder.message_delta,
    "message_stop": _Decoder.message_stop,
    "message": _Decoder.whole_message,
    "error": _Decoder.error,
}

_OWN_TYPES: Final = _HANDLERS.keys() - {"error"}
