"""Mistral's chat completions: `openai-chat` chunks with a few things of their own.

Content may be a list of typed pieces (text, thinking, references), ids of calls are nine letters or
digits, the SDK wraps each chunk in an event, and one response may hold several messages when the
provider ran a tool itself. Everything else is read by the `openai-chat` wire.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from operator import is_
from typing import TYPE_CHECKING, Any, Final

from toolrun._core.content import Image
from toolrun.wires._content import content_blocks, url_of
from toolrun.wires._history import history_name
from toolrun.wires._reading import as_index, as_text, error_message, fields, items, plain
from toolrun.wires.openai_chat import OpenAIChat

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.content import File
    from toolrun._core.events import TextKind
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Part, Response
    from toolrun._core.seams import Decode, Sink, ToolResult

_CHAT: Final = OpenAIChat()

_SDK: Final = "mistralai"
_RESPONSE_ID: Final = re.compile(r"[0-9a-f]{32}")
_MODEL: Final = re.compile(r"(open-)?(mistral|ministral|magistral|mixtral|codestral|devstral|pixtral|voxtral)-.+")
_PADDING: Final = string.ascii_lowercase + string.digits
"""Against traffic analysis, chunks are filled up with the beginning of this, under the key `p`."""

_ID_LETTERS: Final = string.digits + string.ascii_letters
_ID_LENGTH: Final = 9

_CONTENT: Final = "content-"
_TEXT_KEYS: Final = frozenset(("type", "text"))
_PIECE_KEYS: Final = _TEXT_KEYS | {"thinking"}


class Mistral:
    """The `mistral` wire."""

    name = "mistral"
    dialect = "mistral"

    def recognises(self, event: Mapping[str, object]) -> bool:
        """Only what no other server sends: the shapes of `openai-chat` alone say nothing.

        The SDK's own objects, padded chunks, thinking in a list, or a response id of 32 hexadecimal
        digits together with a model of Mistral's by its bare name.
        """
        told = event if "choices" in event else fields(event.get("data"))
        choices = items(told.get("choices"))
        if not choices:
            return False
        return (
            _is_padding(told.get("p"))
            or _is_of_mistral(told)
            or any(_is_of_sdk(choice) or _holds_thinking(fields(choice)) for choice in choices)
        )

    def decoder(self, sink: Sink) -> Decode:
        """Make the reader of one response."""
        return _Decoder(sink).decode

    def synthetic_id(self, digest: str) -> str:
        """Nine letters and digits: the API refuses every other form."""
        number = int(digest, 16)
        return "".join(_ID_LETTERS[number // 62**place % 62] for place in range(_ID_LENGTH))

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
        """One assistant message; content that came as a list stays one, pieces of one thought joined.

        A message with neither content nor calls is left out: the API refuses it.
        """
        [message] = _CHAT.assistant_messages(response, calls)
        message["content"] = _content(response.parts) or message["content"] or ""
        return [message] if message["content"] or message.get("tool_calls") else []

    def result_messages(self, results: Sequence[ToolResult]) -> list[JsonObject]:
        """One `tool` message a call; this wire has no mark for errors, the text says it.

        It has the tool's name, which the request's type asks for and clients leave out.
        """
        return [
            {
                "role": "tool",
                "tool_call_id": result.call.id,
                "name": history_name(result.call),
                "content": content_blocks(result, _text_chunk, _media_chunk) if result.parts else result.text,
            }
            for result in results
        ]

    def continues(self, finish_reason: str | None) -> bool:  # noqa: ARG002  # the seam's signature
        """This protocol has no paused turns."""
        return False


def _text_chunk(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _media_chunk(part: Image | File) -> JsonObject | None:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": url_of(part)}
    if part.url or part.media_type == "application/pdf":
        named = {"document_name": part.name} if part.name else {}
        return {"type": "document_url", "document_url": url_of(part), **named}
    return None


def _is_padding(value: object) -> bool:
    return isinstance(value, str) and bool(value) and _PADDING.startswith(value[: len(_PADDING)])


def _is_of_mistral(told: Mapping[str, object]) -> bool:
    response_id, model = told.get("id"), told.get("model")
    return (
        isinstance(response_id, str)
        and isinstance(model, str)
        and _RESPONSE_ID.fullmatch(response_id) is not None
        and _MODEL.fullmatch(model) is not None
    )


def _is_of_sdk(choice: object) -> bool:
    return str(type(choice).__module__).partition(".")[0] == _SDK


def _holds_thinking(choice: Mapping[str, object]) -> bool:
    content = fields(choice.get("delta") or choice.get("message")).get("content")
    return isinstance(content, list) and any(isinstance(fields(piece).get("thinking"), list) for piece in content)


def _holds_calls_alone(event: dict[str, Any]) -> bool:
    """Nearly every event of a long call has nothing of this wire's own; asking more of it costs four times as much."""
    try:
        [choice] = event["choices"]
        delta = choice["delta"]
        return len(delta) == 1 and "tool_calls" in delta and "messages" not in choice
    except (KeyError, TypeError, ValueError):
        return False


def _content(parts: Iterable[Part]) -> str | list[JsonObject]:
    """The content as it came: one text, or a list of typed pieces."""
    pieces: list[JsonObject] = []
    plain_text = True
    for part in parts:
        if part.position is not None or not str(part.key).startswith(_CONTENT):
            continue
        piece = dict(part.data)
        if piece.keys() <= _TEXT_KEYS and not piece.get("text"):
            continue
        plain_text = plain_text and "type" not in piece
        piece.setdefault("type", "text")
        if isinstance(piece.get("thinking"), str):
            piece["thinking"] = [{"type": "text", "text": piece["thinking"]}]
        if pieces and _is_more_of(pieces[-1], piece):
            pieces[-1].update({**piece, "thinking": [*_thinking(pieces[-1]), *_thinking(piece)]})
        else:
            pieces.append(piece)
    if plain_text:
        return "".join(as_text(piece.get("text")) for piece in pieces)
    return pieces


def _is_more_of(last: JsonObject, piece: JsonObject) -> bool:
    """A thought comes in many pieces; its signature, or `closed`, ends it."""
    both = last["type"] == piece["type"] == "thinking"
    return both and not last.get("signature") and last.get("closed") is not True


def _thinking(piece: JsonObject) -> Sequence[object]:
    return items(piece.get("thinking"))


def _sent(value: object) -> object:
    """Turn SDK objects into plain data with the fields that the provider sent.

    The SDK fills in what was not sent: `index: 0` and `id: "null"` on calls, markers elsewhere. It
    keeps what it does not know under `raw`. What has no fields stays as it is.
    """
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, list | tuple):
        return [_sent(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _sent(item) for key, item in value.items()}
    told = fields(value)
    if not told:
        return value
    if told.get("is_unknown") is True:
        return _sent(told.get("raw"))
    known = getattr(value, "__pydantic_fields_set__", None)
    sent = known if isinstance(known, set | frozenset) else told.keys()
    return {key: _sent(item) for key, item in told.items() if key in sent}


def _mapping(event: object) -> Mapping[str, object]:
    return event if isinstance(event, Mapping) else fields(_sent(event))


class _Decoder:
    """Reads the events of one response."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._chat = _CHAT.decoder(sink)
        self._blocks = 0
        self._growing: dict[int, tuple[str, str]] = {}
        self._results: set[tuple[int, int | None]] = set()

    def decode(self, event: object) -> None:
        if type(event) is dict and _holds_calls_alone(event):
            self._chat(event)
            return
        told = _mapping(event)
        if "choices" not in told and (inner := _mapping(told.get("data"))):
            told = inner
        if choices := items(told.get("choices")):
            rest = [self._choice(position, fields(choice), told.get("id")) for position, choice in enumerate(choices)]
            if not all(map(is_, rest, choices)):
                told = {**told, "choices": rest}
        elif "error" not in told and ("message" in told or "detail" in told):
            self._sink.error(error_message(told))
        self._chat(told)

    def _choice(self, position: int, choice: Mapping[str, object], response_id: object) -> Mapping[str, object]:
        """Take out what is read here; the rest is `openai-chat`'s."""
        given = as_index(choice.get("index"))
        number = position if given is None else given
        if messages := items(choice.get("messages")):
            for message in messages:
                only = {"index": number, "message": self._message(number, fields(message))}
                self._chat({"id": response_id, "choices": [only]})
            return {key: value for key, value in choice.items() if key not in ("message", "messages")}
        for key in ("delta", "message"):
            if message := fields(choice.get(key)):
                rest = self._message(number, message)
                return choice if rest is message else {**choice, key: rest}
        return choice

    def _message(self, number: int, message: Mapping[str, object]) -> Mapping[str, object]:
        place = (number, as_index(message.get("index")))
        role = message.get("role")
        if role == "tool":
            self._results.add(place)
            self._provider_ran(number)
        elif role:
            self._results.discard(place)
        content = message.get("content")
        if not content:
            return message
        if place not in self._results:
            for piece in (content,) if isinstance(content, str) else items(content):
                self._piece(number, piece)
        return {key: value for key, value in message.items() if key != "content"}

    def _provider_ran(self, number: int) -> None:
        """A result inside a response: the provider ran a tool, and went on.

        Which of the calls were its own comes too late to tell them apart, so none of them runs.
        """
        self._sink.diagnose("provider_result", "the provider answered a call itself; no call of this response runs")
        self._sink.finish(number, "error")

    def _piece(self, number: int, piece: object) -> None:
        if isinstance(piece, str):
            self._grow(number, "", "text", piece, "text")
            return
        told = fields(piece)
        kind = told.get("type")
        rest = {key: plain(value) for key, value in told.items() if key not in _PIECE_KEYS and value is not None}
        if kind == "thinking":
            self._think(number, told.get("thinking"), rest)
        elif kind != "text":
            piece = {key: plain(value) for key, value in told.items()}
            self._whole(number, piece)
            if kind == "reference":
                self._sink.citation(number, piece)
        elif rest:
            self._whole(number, {"type": "text", **rest}, as_text(told.get("text")))
        else:
            self._grow(number, "text", "text", as_text(told.get("text")), "text")

    def _think(self, number: int, thinking: object, rest: JsonObject) -> None:
        pieces = (thinking,) if isinstance(thinking, str) else items(thinking)
        for piece in pieces:
            told = fields(piece)
            if isinstance(piece, str) or (told.get("type") == "text" and told.keys() <= _TEXT_KEYS):
                text = piece if isinstance(piece, str) else as_text(told.get("text"))
                self._grow(number, "thinking", "thinking", text, "reasoning")
            else:
                self._whole(number, {"type": "thinking", "thinking": [plain(piece)]})
        if rest or not pieces:
            self._whole(number, {"type": "thinking", "thinking": [], **rest})

    def _grow(self, number: int, kind: str, field: str, text: str, shown: TextKind) -> None:
        """Text goes on in its block until something of another kind comes; plain text has no type."""
        growing, key = self._growing.get(number, (None, ""))
        if growing != kind:
            key = self._begin(number, {"type": kind} if kind else {})
            self._growing[number] = (kind, key)
        self._sink.block_text(number, key, field, text, shown)

    def _whole(self, number: int, data: JsonObject, text: str = "") -> None:
        key = self._begin(number, data)
        self._growing.pop(number, None)
        if text:
            self._sink.block_text(number, key, "text", text, "text")

    def _begin(self, number: int, data: JsonObject) -> str:
        key = f"{_CONTENT}{self._blocks}"
        self._blocks += 1
        self._sink.block(number, key, data)
        return key
