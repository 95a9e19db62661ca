"""Amazon Bedrock Converse: events as boto3 yields them and as recorders keep them, and whole responses.

An event is `{"contentBlockDelta": {…}}`, or that body with the event's name beside it as `type`. Text and
reasoning have no block start. Which block a piece belongs to is told by its index and its kind, because some
servers use one index for a text and a tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from toolrun.wires._bedrock import is_exception, join_blobs, media_block, report_exception
from toolrun.wires._content import content_blocks
from toolrun.wires._history import history_arguments, history_name
from toolrun.wires._reading import as_index, as_name, as_text, error_message, fields, items, plain, plain_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Response
    from toolrun._core.seams import Decode, Sink, ToolResult

CALL: Final = "toolUse"
"""The block that a call stands in; what else the provider put into it is under this key of the call's `extra`."""

_DELTA: Final = "contentBlockDelta"
_TEXT: Final = "text"
_REASONING: Final = "reasoningContent"
_RESULT: Final = "toolResult"
_IMAGE: Final = "image"
_UNKNOWN: Final = "SDK_UNKNOWN_MEMBER"  # what boto3 makes of a block that it is too old for, and does not take back
_OWN: Final = ("messageStart", "contentBlockStart", _DELTA, "contentBlockStop", "messageStop")
_CALL_KEYS: Final = frozenset(("toolUseId", "name", "input"))
_CLIENT_TYPES: Final = (None, "", "tool_use")
_NO_ARGUMENTS: Final[tuple[object, ...]] = (None, "", {})
_BLANK_RESULT: Final = "(no output)"


class BedrockConverse:
    """The `bedrock-converse` wire."""

    name = "bedrock-converse"
    dialect = "bedrock-converse"

    def recognises(self, event: Mapping[str, object]) -> bool:
        """The names of events are this protocol's own; a whole response has an output with a message."""
        if "message" in fields(event.get("output")):
            return True
        return any(name in _OWN or is_exception(name) for name in (event.get("type"), *event))

    def decoder(self, sink: Sink) -> Decode:
        """Make the reader of one response."""
        return _Decoder(sink).decode

    def synthetic_id(self, digest: str) -> str:
        """`tooluse_` and 22 characters, like the provider's own."""
        return f"tooluse_{digest[:22]}"

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
        """One assistant message: every block in order, signatures and the provider's own tools included.

        Neighbouring texts are one, and blank ones are left out: the API refuses them. It refuses what is not
        answered, too: a call that the provider ran goes back with its result, or neither does.
        """
        by_position = {call.position: call for call in calls}
        served = {call.id for call in calls if call.provider_executed}
        answered = served & {_result_id(part.data) for part in response.parts}
        content: list[JsonObject] = []
        for part in response.parts:
            if part.position is None:
                if _RESULT not in part.data or _result_id(part.data) in answered:
                    content += _history_blocks(part.data)
            elif (call := by_position.get(part.position)) and (not call.provider_executed or call.id in answered):
                content.append(_history_call(call))
        content = [block for block in _join_texts(content) if _TEXT not in block or as_text(block[_TEXT]).strip()]
        return [{"role": "assistant", "content": content}] if content else []

    def result_messages(self, results: Sequence[ToolResult]) -> list[JsonObject]:
        """One user message with every result, in call order; the API refuses blank texts.

        Images and files are bytes, as boto3 takes them.
        """
        if not results:
            return []
        blocks = [
            {
                _RESULT: {
                    "toolUseId": result.call.id,
                    "content": content_blocks(result, _text_block, media_block),
                    **({"status": "error"} if result.is_error else {}),
                }
            }
            for result in results
        ]
        return [{"role": "user", "content": blocks}]

    def continues(self, finish_reason: str | None) -> bool:  # noqa: ARG002  # the seam's signature
        """This protocol has no paused turns."""
        return False


def _text_block(text: str) -> JsonObject:
    return {_TEXT: text if text.strip() else _BLANK_RESULT}


def _history_call(call: ToolCall) -> JsonObject:
    name = call.name if call.provider_executed else history_name(call)
    told = {"toolUseId": call.id, "name": name, "input": history_arguments(call)}
    return {CALL: {**told, **fields(call.extra.get(CALL))}}


def _result_id(data: JsonObject) -> str | None:
    return as_name(fields(data.get(_RESULT)).get("toolUseId"))


def _history_blocks(data: JsonObject) -> list[JsonObject]:
    """Write a block as it has grown in the shape that the request takes."""
    if _REASONING in data:
        return _reasoning_blocks(data)
    if result := fields(data.get(_RESULT)):
        content = items(data.get("content", result.get("content")))
        return [{_RESULT: {**result, "content": _join_texts(dict(fields(item)) for item in content)}}]
    if _IMAGE in data and "source" not in (image := fields(data[_IMAGE])):
        pieces = items(data.get("bytes"))
        return [{_IMAGE: {**image, "source": {"bytes": join_blobs(pieces)}}}] if pieces else []
    if citations := data.get("citations"):
        cited = {"content": [{_TEXT: data[_TEXT]}]} if data.get(_TEXT) else {}
        return [{"citationsContent": {**cited, "citations": citations}}]
    return [data] if data else []


def _reasoning_blocks(data: JsonObject) -> list[JsonObject]:
    told = {_TEXT: data.get(_TEXT, "")}
    if data.get("signature"):
        told["signature"] = data["signature"]
    blocks: list[JsonObject] = [{_REASONING: {"reasoningText": told}}] if any(told.values()) else []
    if redacted := items(data.get("redactedContent")):
        blocks.append({_REASONING: {"redactedContent": join_blobs(redacted)}})
    return blocks


def _join_texts(blocks: Iterable[JsonObject]) -> list[JsonObject]:
    """Make one text of neighbours: a tool's result streams in pieces, and Nova cuts its text into many blocks."""
    joined: list[JsonObject] = []
    for block in blocks:
        if joined and block.keys() == joined[-1].keys() == {_TEXT}:
            joined[-1] = {_TEXT: as_text(joined[-1][_TEXT]) + as_text(block[_TEXT])}
        else:
            joined.append(block)
    return joined


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping) or bool(fields(value))


def _present(value: object) -> Iterator[tuple[str, object]]:
    """The members of a union: one has a value; some servers write the others, too, as null."""
    return ((name, member) for name, member in fields(value).items() if member is not None)


class _Decoder:
    """Reads the events of one response."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._tool_delta = sink.tool_delta
        self._index = 0
        self._kinds: dict[int, str] = {}

    def decode(self, event: object) -> None:
        if type(event) is dict:
            # Nearly every event of a call is one piece of text for a known index; anything else is read with care.
            try:
                [(name, body)] = event.items()
                [(kind, piece)] = body["delta"].items()
                index, text = body["contentBlockIndex"], piece["input"]
                bare = name == _DELTA and kind == CALL and len(piece) == 1
                if bare and type(text) is str and type(index) is int and self._sink.has_call(0, index):
                    self._index = index
                    self._tool_delta(0, index, None, None, text)
                    return
            except (AttributeError, KeyError, TypeError, ValueError):
                pass
        self._read(event if type(event) is dict else fields(event))

    def _read(self, told: Mapping[str, object]) -> None:
        named = told.get("type")
        if isinstance(named, str) and self._handle(named, told.get(named, told)):
            return
        for name, body in _present(told):
            self._handle(name, body)

    def _handle(self, name: str, body: object) -> bool:
        handler = _HANDLERS.get(name)
        if handler is None:
            return report_exception(self._sink, name, body)
        handler(self, body)
        return True

    def message_start(self, _body: object) -> None:
        self._kinds.clear()
        self._sink.begin(None)  # messages have no ids here

    def block_start(self, body: object) -> None:
        told = fields(body)
        index = self._at(told)
        self._kinds.pop(index, None)
        for kind, block in _present(told.get("start")):
            if kind == CALL:
                self._call(index, fields(block))
            elif kind in (_RESULT, _IMAGE):
                self._grow(index, kind, plain_object(block))
            else:
                self._piece(index, kind, block)

    def block_delta(self, body: object) -> None:
        told = fields(body)
        index = self._at(told)
        delta = told.get("delta")
        if not _is_object(delta):
            # A piece is lost: whatever follows, the call at this place is not what the model wrote.
            self._sink.tool_whole(0, index, whole=False)
            self._sink.diagnose("lost_event", f"a contentBlockDelta without a delta at index {index}")
        for kind, value in _present(delta):
            self._piece(index, kind, value)

    def message_stop(self, body: object) -> None:
        self.stop_reason(fields(body).get("stopReason"))
        if _is_object(body):
            self._sink.terminate()

    def error(self, body: object) -> None:
        self._sink.error(error_message(body))

    def metadata(self, body: object) -> None:
        self.usage(fields(body).get("usage"))

    def output(self, body: object) -> None:
        message = fields(fields(body).get("message"))
        for index, block in enumerate(items(message.get("content"))):
            for kind, value in _present(block):
                if kind == CALL:
                    self._call(index, fields(value))
                elif kind in _WHOLE_PIECES:
                    self._piece(index, kind, value)
                elif kind != _UNKNOWN:
                    self._sink.block(0, index, {kind: plain(value)})

    def response_metadata(self, body: object) -> None:
        self._sink.begin(as_name(fields(body).get("RequestId")))

    def stop_reason(self, reason: object) -> None:
        self._sink.finish(0, str(reason) if reason else None)

    def usage(self, usage: object) -> None:
        if counts := fields(usage):
            self._sink.usage(plain_object(counts))

    def _piece(self, index: int, kind: str, value: object) -> None:
        reader = _PIECES.get(kind)
        if reader is not None:
            reader(self, index, value)

    def call_piece(self, index: int, value: object) -> None:
        told = fields(value)
        given = told.get("input", "") if _is_object(value) else value
        # A piece that is JSON by itself may come decoded: None was `null`.
        text = given if type(given) is str else "null" if given is None else as_text(given)
        call_id, name = as_name(told.get("toolUseId")), as_name(told.get("name"))
        known = self._sink.has_call(0, index)
        if (call_id or name) and not known:
            self._call(index, {**told, "input": None})
            known = True
        if known:
            self._tool_delta(0, index, call_id, name, text)
        elif text:
            self._sink.orphan(0, text)

    def text(self, index: int, value: object) -> None:
        self._grow(index, _TEXT)
        self._sink.block_text(0, index, _TEXT, as_text(value), "text")

    def citation(self, index: int, value: object) -> None:
        self._grow(index, _TEXT)
        self._sink.block_item(0, index, "citations", plain(value))
        self._sink.citation(0, plain_object(value))

    def cited(self, index: int, value: object) -> None:
        told = fields(value)
        for item in items(told.get("content")):
            self.text(index, fields(item).get(_TEXT))
        for item in items(told.get("citations")):
            self.citation(index, item)

    def reasoning(self, index: int, value: object) -> None:
        """Pieces are flat; a whole block has text and signature one level further down."""
        told = fields(value)
        told = {**told, **fields(told.get("reasoningText"))}
        self._grow(index, _REASONING)
        if _TEXT in told:
            self._sink.block_text(0, index, _TEXT, as_text(told[_TEXT]), "reasoning")
        if "signature" in told:
            self._sink.block_text(0, index, "signature", as_text(told["signature"]))
        if redacted := told.get("redactedContent"):
            self._sink.block_item(0, index, "redactedContent", plain(redacted))

    def result_piece(self, index: int, value: object) -> None:
        self._grow(index, _RESULT)
        for item in items(value):
            self._sink.block_item(0, index, "content", plain(item))

    def image_piece(self, index: int, value: object) -> None:
        self._grow(index, _IMAGE)
        if piece := fields(fields(value).get("source")).get("bytes"):
            self._sink.block_item(0, index, "bytes", plain(piece))

    def _call(self, index: int, told: Mapping[str, object]) -> None:
        kind = told.get("type")
        served = kind not in _CLIENT_TYPES
        extra = {key: plain(told[key]) for key in told.keys() - _CALL_KEYS if told[key] is not None}
        if not served:
            extra.pop("type", None)  # Nova sends "tool_use", which is not a type that requests take
        given = told.get("input")
        self._sink.tool_open(
            0,
            index,
            as_name(told.get("toolUseId")),
            as_name(told.get("name")),
            provider_executed=served,
            placeholder="" if given in _NO_ARGUMENTS else as_text(given),
            extra={CALL: extra},
        )

    def _grow(self, index: int, kind: str, start: JsonObject | None = None) -> None:
        """Begin a block if it starts, or if the one at this index is of another kind."""
        if start is not None or self._kinds.get(index) != kind:
            self._kinds[index] = kind
            self._sink.block(0, index, {} if kind == _TEXT else {kind: start or {}})

    def _at(self, body: Mapping[str, object]) -> int:
        """The index; one that is missing, or no index, is that of the event before."""
        index = as_index(body.get("contentBlockIndex"))
        if index is not None:
            self._index = index
        return self._index


_HANDLERS: Final[dict[str, Callable[[_Decoder, object], None]]] = {
    _DELTA: _Decoder.block_delta,
    "contentBlockStart": _Decoder.block_start,
    "messageStart": _Decoder.message_start,
    "messageStop": _Decoder.message_stop,
    "metadata": _Decoder.metadata,
    "error": _Decoder.error,
    "output": _Decoder.output,
    "stopReason": _Decoder.stop_reason,
    "usage": _Decoder.usage,
    "ResponseMetadata": _Decoder.response_metadata,
}
_PIECES: Final[dict[str, Callable[[_Decoder, int, object], None]]] = {
    CALL: _Decoder.call_piece,
    _TEXT: _Decoder.text,
    _REASONING: _Decoder.reasoning,
    "citation": _Decoder.citation,
    "citationsContent": _Decoder.cited,
    _RESULT: _Decoder.result_piece,
    _IMAGE: _Decoder.image_piece,
}
_WHOLE_PIECES: Final = frozenset((_TEXT, _REASONING, "citationsContent"))
