"""Gemini's `generateContent`, of Google AI and Vertex AI: streamed chunks and whole responses, which look alike.

A `functionCall` part is a whole call, unless it says `willContinue` or has `partialArgs`: pieces of the arguments,
each with its JSON path. Such a call is whole when its structure says so (a part without `willContinue`, often an
empty `functionCall`), never because what came so far happens to be valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from toolrun._core.policy import REASONS, Evidence, normalise
from toolrun.wires._content import base64_of, beside
from toolrun.wires._history import history_arguments, history_name
from toolrun.wires._json_names import json_fields, json_or_text, json_value
from toolrun.wires._json_pieces import JsonPieces
from toolrun.wires._reading import as_index, as_name, error_message, fields, items

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.content import File, Image
    from toolrun._core.events import TextKind
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Response
    from toolrun._core.seams import Decode, Sink, ToolResult
    from toolrun.wires._json_pieces import Scalar

_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_EVENT_KEYS: Final = frozenset(
    (
        "candidates", "promptFeedback", "usageMetadata", "responseId", "modelVersion", "createTime", "modelStatus",
        "sdkHttpResponse", "error",
    )
)  # fmt: skip
_CALL_KEYS: Final = frozenset(("id", "name", "args", "partialArgs", "willContinue"))
_CITED: Final = ("groundingMetadata", "citationMetadata")
_MEDIA: Final = frozenset(("image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"))
_NO_IDS: Final = frozenset(("null", "None"))
_EXACT_IN_DOUBLES: Final = 2**53
_BITS_OF_DOUBLES: Final = 1024


class Gemini:
    """The `gemini` wire."""

    name = "gemini"
    dialect = "gemini"

    def recognises(self, event: Mapping[str, object]) -> bool:
        """Chunks have candidates; the answer to a blocked prompt has only feedback."""
        return any(key in event for key in ("candidates", "promptFeedback", "prompt_feedback"))

    def decoder(self, sink: Sink) -> Decode:
        """Make the reader of one response."""
        return _Decoder(sink).decode

    def synthetic_id(self, digest: str) -> str:
        """`call_` and 24 characters; the provider takes any id, and is sent none if it gave none."""
        return f"call_{digest[:24]}"

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
        """One `model` content: the parts as they came, in order, each signature on the part that it came on.

        Thoughts stay in their place, marked as such. Clients drop their text; the API takes it, and the model reads it.
        """
        by_position = {call.position: call for call in calls}
        with_ids = _with_ids(calls)
        parts: list[object] = []
        for part in response.parts:
            if part.position is None:
                parts.append(part.data)
            elif call := by_position.get(part.position):
                parts.append(_history_part(call, with_ids=with_ids))
        return [{"role": "model", "parts": parts}] if parts else []

    def result_messages(self, results: Sequence[ToolResult]) -> list[JsonObject]:
        """One `user` content with every result, in call order: without ids, name and order tell whose it is."""
        if not results:
            return []
        with_ids = _with_ids([result.call for result in results])
        parts: list[object] = []
        for result in results:
            told: JsonObject = {"id": result.call.id} if with_ids else {}
            told["name"] = _history_name(result.call)
            text, media = beside(result, _media_part)
            told["response"] = {"error" if result.is_error else "result": text}
            if media:
                told["parts"] = media
            parts.append({"functionResponse": told})
        return [{"role": "user", "parts": parts}]

    def continues(self, finish_reason: str | None) -> bool:  # noqa: ARG002  # the seam's signature
        """This protocol has no paused turns."""
        return False


def _media_part(part: Image | File) -> JsonObject | None:
    """What a function response may have beside its text, as data; URLs are not for every API of these models."""
    if not part.data or part.media_type not in _MEDIA:
        return None
    return {"inlineData": {"mimeType": part.media_type, "data": base64_of(part)}}


def _with_ids(calls: Sequence[ToolCall]) -> bool:
    """Ids go back on every call if the provider gave any, and on none if it gave none."""
    return any(not call.synthetic_id for call in calls if not call.provider_executed)


def _history_part(call: ToolCall, *, with_ids: bool) -> JsonObject:
    extra = dict(call.extra)
    if call.provider_executed:
        return extra
    told: JsonObject = {"id": call.id} if with_ids else {}
    told["name"] = _history_name(call)
    told["args"] = history_arguments(call)
    more = fields(extra.pop("functionCall", None))
    return {"functionCall": {**told, **more}, **extra}


def _history_name(call: ToolCall) -> str:
    return call.name if call.name and _NAME.fullmatch(call.name) else history_name(call)


class _Candidate:
    """What is known of one candidate: how many calls and blocks it has, and what may still go on."""

    def __init__(self) -> None:
        self.calls = 0
        self.blocks = 0
        # Whether the text that may go on is a thought; None after anything but bare text.
        self.text: bool | None = None
        self.partial: _Partial | None = None
        self.by_id: dict[str, _Partial] = {}
        self.cited: dict[str, object] = {}


class _Partial:
    """A call whose arguments come in parts."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.extra: dict[str, object] = {}
        self.pieces = JsonPieces()
        self.copy: str | None = None
        self.lost = False
        self.ended: str | None = None

    def text(self) -> str:
        """The arguments so far: what the pieces make, or the object that was sent; the pieces, if they differ."""
        if self.ended is not None:
            return self.ended
        if not self.pieces:
            return self.copy or ""
        text = self.pieces.text()
        if self.copy is not None and self.copy != text:
            self.pieces.refuse("$", self.copy)
            text = self.pieces.text()
        return text

    def is_whole(self) -> bool:
        """Tell whether it has ended, and everything in it that was to go on."""
        return self.ended is not None and not (self.lost or self.pieces.is_open() or self.pieces.overflowed)


class _Decoder:
    """Reads the chunks of one response."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._id: str | None = None
        self._candidates: dict[int, _Candidate] = {}

    def decode(self, event: object) -> None:
        told = json_fields(event)
        response_id = as_name(told.get("responseId"))
        if response_id and response_id != self._id:  # it stands in every chunk
            self._id = response_id
            self._sink.begin(response_id)
            for candidate in self._candidates.values():
                candidate.partial, candidate.by_id = None, {}
        for item in items(told.get("candidates")):
            self._candidate(json_fields(item))
        feedback = json_fields(told.get("promptFeedback"))
        if reason := feedback.get("blockReason"):
            more = feedback.get("blockReasonMessage")
            self._sink.error(
                f"the prompt was blocked: {json_or_text(reason)}{f': {json_or_text(more)}' if more else ''}"
            )
        if error := told.get("error"):
            self._sink.error(error_message(json_value(error)))
        if usage := json_fields(told.get("usageMetadata")):
            self._sink.usage({key: json_value(value) for key, value in usage.items()})
        if told and not told.keys() & _EVENT_KEYS:
            self._unreadable("not a response", event)

    def _candidate(self, told: Mapping[str, object]) -> None:
        choice = as_index(told.get("index")) or 0
        candidate = self._candidates.setdefault(choice, _Candidate())
        for item in items(json_fields(told.get("content")).get("parts")):
            part = json_fields(item)
            if (call := part.get("functionCall")) is not None:
                self._function_call(choice, candidate, call, part)
            elif (code := part.get("executableCode")) is not None:
                self._server_call(choice, candidate, json_fields(code), part)
            elif (call := part.get("toolCall")) is not None:
                self._server_call(choice, candidate, json_fields(call), part)
            elif any(value is not None for value in part.values()):
                self._block(choice, candidate, part)
                continue
            elif item:
                self._unreadable("not a part", item)
            candidate.text = None
        for key in _CITED:  # each chunk may bring them again, longer
            if (cited := told.get(key)) is not None and (data := json_value(cited)) != candidate.cited.get(key):
                candidate.cited[key] = data
                self._sink.citation(choice, {key: data})
        reason = json_or_text(told.get("finishReason"))
        self._sink.finish(choice, reason)
        if reason and REASONS.get(normalise(reason)) is Evidence.BROKEN and (said := told.get("finishMessage")):
            self._sink.diagnose("failed_generation", json_or_text(said) or "")

    def _block(self, choice: int, candidate: _Candidate, part: Mapping[str, object]) -> None:
        """Text, a thought, a result of the provider's own tools, data. Bare text goes on where the last was."""
        text = part.get("text")
        thought = bool(part.get("thought"))
        rest = _rest(part, ("text",))
        bare = text is not None and rest.keys() <= {"thought"}
        if bare and not text:
            return
        if not bare or candidate.text is not thought:
            candidate.blocks += 1
            self._sink.block(choice, candidate.blocks, rest)
        if text is not None:
            kind: TextKind = "reasoning" if thought else "text"
            self._sink.block_text(choice, candidate.blocks, "text", json_or_text(text) or "", kind)
        candidate.text = thought if bare else None

    def _server_call(
        self, choice: int, candidate: _Candidate, told: Mapping[str, object], part: Mapping[str, object]
    ) -> None:
        """A call that the provider runs itself. The whole part is kept, to go back as it came."""
        is_code = part.get("executableCode") is not None
        self._sink.tool_open(
            choice,
            candidate.calls,
            _id(told),
            "code_execution" if is_code else as_name(json_value(told.get("toolType"))),
            kind="custom" if is_code else "function",
            provider_executed=True,
            placeholder=json_or_text(told.get("code" if is_code else "args")) or "",
            extra=_rest(part, ()),
        )
        candidate.calls += 1

    def _function_call(self, choice: int, candidate: _Candidate, call: object, part: Mapping[str, object]) -> None:
        if not isinstance(call, Mapping) and not hasattr(call, "__dict__"):
            self._sink.orphan(choice, json_or_text(call) or "")
            if candidate.partial is not None:
                candidate.partial.lost = True  # it may have been a piece of this one
            return
        told = json_fields(call)
        partial = _continued(candidate, told)
        name, pieces = as_name(told.get("name")), told.get("partialArgs")
        if partial is not None and partial.ended is not None:
            if pieces is not None:  # pieces after the end: it was not the end
                self._sink.tool_whole(choice, partial.index, whole=False)
        elif partial is not None:
            self._continue(choice, candidate, partial, told, part)
        elif not name and _id(told) is None and told.get("args") is None:
            if pieces is not None:
                self._sink.orphan(choice, json_or_text(pieces) or "")
            # Else it is empty: the end of a call that has ended already.
        elif pieces is None and not told.get("willContinue"):
            candidate.partial = None
            self._whole(choice, candidate, told, part)
        else:
            partial = _Partial(candidate.calls)
            candidate.calls += 1
            self._sink.tool_open(choice, partial.index, _id(told), name, placeholder=partial.text)
            self._sink.tool_whole(choice, partial.index, whole=False)
            self._continue(choice, candidate, partial, told, part)

    def _continue(
        self,
        choice: int,
        candidate: _Candidate,
        partial: _Partial,
        told: Mapping[str, object],
        part: Mapping[str, object],
    ) -> None:
        call_id, name = _id(told), as_name(told.get("name"))
        candidate.partial = partial
        if call_id is not None:
            partial.id = partial.id or call_id
            candidate.by_id[call_id] = partial
        if name is not None and name != partial.name:
            # The sink decides on a name that changes; it cannot know that arguments have begun.
            partial.lost = partial.lost or (partial.name is not None and bool(partial.pieces))
            partial.name = name
        extra = {key: value for key, value in _rest(part, ("functionCall",)).items() if key not in partial.extra}
        if call_id or name or extra:  # the name makes this the call that `tool_extra` writes to
            self._sink.tool_delta(choice, partial.index, call_id, partial.name, "")
            self._sink.tool_extra(choice, extra)
            partial.extra.update(extra)
        if args := told.get("args"):
            partial.copy = json_or_text(args)
            partial.lost = partial.lost or partial.copy is None
        if (pieces := told.get("partialArgs")) is not None:
            _take(partial.pieces, pieces)
        if not told.get("willContinue"):
            candidate.partial = None
            partial.ended = partial.text() or "{}"
            self._sink.tool_whole(choice, partial.index, whole=partial.is_whole())

    def _whole(
        self, choice: int, candidate: _Candidate, told: Mapping[str, object], part: Mapping[str, object]
    ) -> None:
        """A whole call, at an index of its own, so that two equal ones without ids stay two."""
        args = told.get("args")
        text = "{}" if args is None else json_or_text(args)
        index = candidate.calls
        candidate.calls += 1
        extra = _rest(part, ("functionCall",))
        if more := _rest(told, _CALL_KEYS):
            extra["functionCall"] = more
        self._sink.tool_open(choice, index, _id(told), as_name(told.get("name")), placeholder=text or "", extra=extra)
        if text is None:
            self._sink.tool_whole(choice, index, whole=False)
            self._unreadable("arguments that JSON cannot say", type(args).__name__)

    def _unreadable(self, what: str, value: object) -> None:
        self._sink.diagnose("undecodable_event", f"{what}: {repr(value)[:200]}")


def _continued(candidate: _Candidate, told: Mapping[str, object]) -> _Partial | None:
    """The call in parts that a part goes on with, or repeats; None if another call begins."""
    call_id, name, args, pieces = _id(told), as_name(told.get("name")), told.get("args"), told.get("partialArgs")
    known = candidate.by_id.get(call_id) if call_id is not None else None
    if known is not None:
        if known.ended is None:
            return known
        repeats = pieces is not None or args is None or json_or_text(args) == known.ended
        return known if repeats and name in (None, known.name) else None
    partial = candidate.partial
    if partial is None or (call_id is not None and partial.id is not None):
        return None
    # A name without pieces is how calls begin, also another one of the same tool.
    goes_on = name is None or partial.name is None or (name == partial.name and pieces is not None)
    return partial if goes_on else None


def _take(into: JsonPieces, pieces: object) -> None:
    taken = items(pieces)
    if not taken and not isinstance(pieces, list | tuple):
        into.refuse("", json_or_text(pieces))
    for piece in taken:
        told = json_fields(piece)
        path, more = told.get("jsonPath"), bool(told.get("willContinue"))
        given = [key for key in _VALUES if told.get(key) is not None]
        if isinstance(path, str) and not given:
            if _says_null(piece):
                into.add(path, None, more=more)
            else:
                into.end(path, more=more)
        elif isinstance(path, str) and len(given) == 1 and _VALUES[given[0]](value := told[given[0]]):
            into.add(path, _scalar(given[0], value), more=more)
        else:
            into.refuse(path if isinstance(path, str) else "", json_or_text(piece))


def _scalar(key: str, value: object) -> Scalar:
    """The value of a piece. The wire's numbers are doubles: SDKs read `1` as `1.0`, so whole ones are written as `1`."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_IN_DOUBLES:
        return int(value)
    return None if key == "nullValue" else cast("Scalar", value)


def _says_null(piece: object) -> bool:
    """JSON writes the null value as a bare null, and so it stands among fields that are set, without a value."""
    said = getattr(piece, "__pydantic_fields_set__", None)
    names = said if isinstance(said, set) and said else fields(piece).keys()
    return ("nullValue" in names or "null_value" in names) and "string_value" not in names


def _is_number(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, float) or (isinstance(value, int) and value.bit_length() <= _BITS_OF_DOUBLES)


_VALUES: Final[dict[str, Callable[[object], bool]]] = {
    "stringValue": lambda value: isinstance(value, str),
    "numberValue": _is_number,
    "boolValue": lambda value: isinstance(value, bool),
    "nullValue": lambda _: True,
}
"""Where the value of a piece can stand, and what must stand there."""


def _id(told: Mapping[str, object]) -> str | None:
    name = as_name(told.get("id"))
    return None if name in _NO_IDS else name


def _rest(told: Mapping[str, object], without: Collection[str]) -> JsonObject:
    return {key: json_value(value) for key, value in told.items() if key not in without and value is not None}
