"""OpenAI Chat Completions, and the many servers that speak it more or less.

Reads `chat.completion.chunk`s, whole `chat.completion`s, the events of the SDK's `.stream()`
helper, legacy `function_call`s, and tools that the provider ran itself (`executed_tools`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from toolrun.wires._history import history_name, history_text, joined_details
from toolrun.wires._reading import as_index, as_name, as_text, error_message, fields, items, plain, plain_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.events import TextKind
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Response
    from toolrun._core.seams import Decode, ReadPiece, Sink, ToolResult

_MESSAGE: Final = "message"
_CALL_KEYS: Final = frozenset(("index", "id", "type", "function", "custom"))
_TEXT_FIELDS: Final[dict[str, TextKind]] = {
    "content": "text",
    "reasoning_content": "reasoning",
    "reasoning": "reasoning",
    "refusal": "refusal",
}
_DETAILS: Final = "reasoning_details"
_THINKING: Final = "thinking"
_OWN_PLACE: Final = frozenset(("content", "refusal", _DETAILS, _THINKING))
"""What a message of history has in another form, or not at all."""


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

    def piece_reader(self, sink: Sink) -> ReadPiece:
        """Make the quick reader of one response, for decoded events and for the SDK's objects."""
        return _piece_reader(sink)

    def synthetic_id(self, digest: str) -> str:
        """`call_` and 24 characters, like the provider's own."""
        return f"call_{digest[:24]}"

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
        """One assistant message: text and reasoning as they came, then the calls."""
        data = next((part.data for part in response.parts if part.key == _MESSAGE), {})
        message: JsonObject = {"role": "assistant", "content": _content(data)}
        message.update({key: value for key, value in data.items() if key not in _OWN_PLACE})
        if details := data.get(_DETAILS):
            message[_DETAILS] = joined_details(items(details))
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


def _content(data: JsonObject) -> object:
    """The text; a list where the server's was one, because there were thoughts in it, as Mistral has them."""
    text = data.get("content") or None
    thought = data.get(_THINKING)
    if not thought:
        return text
    written: list[JsonObject] = [{"type": _THINKING, _THINKING: [{"type": "text", "text": thought}]}]
    return [*written, {"type": "text", "text": text}] if text else written


def _history_call(call: ToolCall) -> JsonObject:
    if call.kind == "custom":
        body: JsonObject = {"custom": {"name": history_name(call), "input": call.raw_arguments}}
    else:
        body = {"function": {"name": history_name(call), "arguments": history_text(call)}}
    return {"id": call.id, "type": call.kind, **body, **call.extra}


def _piece_reader(sink: Sink) -> ReadPiece:
    tool_text = sink.tool_text
    begun = False

    def read_piece(event: Any) -> bool:
        # Written out for speed: whatever is not exactly one piece fails or is told apart.
        nonlocal begun
        try:
            if type(event) is dict:
                (choice,) = event["choices"]
                delta = choice["delta"]
                (call,) = delta["tool_calls"]
                body = call["function"]
                text, number, index = body["arguments"], choice["index"], call["index"]
                alone = len(delta) == 1 and len(body) == 1 and "id" not in call and choice["finish_reason"] is None
                # What else a chunk says is never left unread: an error beside a piece ends its call.
                alone = alone and "error" not in event and "error" not in choice and event.get("usage") is None
                response_id = None if begun else event.get("id")
            else:
                (choice,) = event.choices
                delta = choice.delta
                (call,) = delta.tool_calls
                body = call.function
                text, number, index = body.arguments, choice.index, call.index
                # The SDK does not count what it does not know, such as a thought, among the fields that are set.
                alone = len(delta.__pydantic_fields_set__) == 1 and not delta.__pydantic_extra__
                alone = alone and not (call.id or body.name or choice.finish_reason) and event.usage is None
                extras = event.__pydantic_extra__, choice.__pydantic_extra__
                alone = alone and not any(extra and "error" in extra for extra in extras)
                response_id = None if begun else event.id
            if response_id:  # the decoder takes the first id of the response
                begun = as_name(response_id) is not None
                return False
            # True would be found as 1.
            alone = alone and type(text) is str and type(number) is not bool and type(index) is not bool
            return alone and tool_text(number, index, text)
        except (AttributeError, KeyError, TypeError, ValueError):
            return False

    return read_piece


class _Decoder:
    """Reads the events of one response."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._whole = False
        self._begun = False

    def decode(self, event: object) -> None:
        self._read(event if type(event) is dict else fields(event))

    def _read(self, event: Mapping[str, object]) -> None:
        if not self._begun and (response_id := as_name(event.get("id"))):
            self._begun = True
            self._sink.begin(response_id)
        for position, choice in enumerate(items(event.get("choices"))):
            self._choice(fields(choice), position)
        if error := event.get("error"):
            self._error(error)
        elif event.get("type") == "chunk" and (chunk := fields(event.get("chunk"))):
            self._read(chunk)  # the SDK's .stream() helper wraps each chunk and adds events of its own
        if usage := fields(event.get("usage")):
            self._sink.usage(plain_object(usage))

    def _error(self, error: object) -> None:
        self._sink.error(error_message(error))
        if failed := as_text(fields(error).get("failed_generation")):
            self._sink.diagnose("failed_generation", failed)

    def _choice(self, choice: Mapping[str, object], position: int) -> None:
        given = as_index(choice.get("index"))
        number = position if given is None else given
        self._whole = not choice.get("delta")
        told = fields(choice.get("delta") or choice.get("message"))
        for field, value in told.items():
            # A server that says a call in the old way beside the new one says it once.
            if value and field in _DELTA_FIELDS and not (field == "function_call" and told.get("tool_calls")):
                _DELTA_FIELDS[field](self, number, field, value)
        if error := choice.get("error"):
            self._error(error)
        # The deltas of a chunk are merged before its finish reason counts.
        if reason := choice.get("finish_reason"):
            self._sink.finish(number, str(reason))

    def calls(self, choice: int, _field: str, calls: object) -> None:
        for position, item in enumerate(items(calls)):
            call = fields(item)
            index = as_index(call.get("index"))
            if index is None and self._whole:
                index = position  # the list of a whole message is the order; its calls have no index
            custom = call.get("custom") if call.get("function") is None else None
            body = fields(call.get("function") if custom is None else custom)
            call_id = as_name(call.get("id"))
            name = as_name(body.get("name"))
            text = as_text(body.get("arguments" if custom is None else "input"))
            if not (call_id or name or text):
                self._sink.tool_text(choice, index, "")  # some servers fill the field in beside texts: it is no call
                continue
            self._sink.tool_delta(choice, index, call_id, name, text)
            if custom is not None:
                self._sink.tool_is_custom(choice)
            if (call_id or name) and (extra := call.keys() - _CALL_KEYS):
                self._sink.tool_extra(choice, {key: plain(call[key]) for key in extra if call[key] is not None})

    def legacy_call(self, choice: int, _field: str, call: object) -> None:
        told = fields(call)
        name, text = as_name(told.get("name")), as_text(told.get("arguments"))
        if name or text:
            self._sink.tool_delta(choice, None, None, name, text)

    def text(self, choice: int, field: str, value: object) -> None:
        kind = _TEXT_FIELDS[field]
        for piece in (value,) if isinstance(value, str) else items(value):
            told = fields(piece)
            for thought in items(told.get(_THINKING)):
                self._sink.block_text(choice, _MESSAGE, _THINKING, as_text(fields(thought).get("text")), "reasoning")
            text = piece if isinstance(piece, str) else as_text(told.get("text"))
            self._sink.block_text(choice, _MESSAGE, field, text, kind)

    def items(self, choice: int, field: str, value: object) -> None:
        for item in items(value):
            self._sink.block_item(choice, _MESSAGE, field, plain(item))

    def citations(self, choice: int, _field: str, annotations: object) -> None:
        for annotation in items(annotations):
            self._sink.citation(choice, plain_object(annotation))

    def executed(self, choice: int, _field: str, tools: object) -> None:
        """Tools that the provider ran; each is told twice, with the query and again with the result."""
        for tool in items(tools):
            told = fields(tool)
            index = -1 - (as_index(told.get("index")) or 0)  # counted apart from the client's calls
            if not self._sink.has_call(choice, index):
                name = as_name(told.get("name")) or as_name(told.get("type"))
                self._sink.tool_open(
                    choice, index, None, name, provider_executed=True, placeholder=as_text(told.get("arguments"))
                )


_DELTA_FIELDS: Final[dict[str, Callable[[_Decoder, int, str, object], None]]] = {
    "tool_calls": _Decoder.calls,
    "function_call": _Decoder.legacy_call,
    "executed_tools": _Decoder.executed,
    _DETAILS: _Decoder.items,
    "annotations": _Decoder.citations,
    **dict.fromkeys(_TEXT_FIELDS, _Decoder.text),
}
