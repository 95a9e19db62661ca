"""OpenAI Responses: output items with deltas, final copies and a terminal event, and whole responses.

An event is joined to its item by output index, then item id, then call id: some servers mint an item id an event, and
some send nothing but the call id. The terminal list has positions of its own, so ids decide there. A final copy
(`*.done`, `output_item.done`, the terminal response) wins over the deltas; a call of which only the start came is not
whole, whatever the finish says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun.wires._reading import as_index, as_name, as_text, error_message, fields, items, plain_object
from toolrun.wires._responses_history import ANSWERED, FINAL, RESPONSE, assistant_items, result_item
from toolrun.wires._responses_items import Items, as_id, as_place, is_hosted, sent_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.events import TextKind
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Response
    from toolrun._core.seams import Decode, Sink, ToolResult
    from toolrun.wires._responses_items import Item


class OpenAIResponses:
    """The `openai-responses` wire."""

    name = "openai-responses"
    dialect = "openai-responses"

    def recognises(self, event: Mapping[str, object]) -> bool:
        """Every event but `error` has a type that begins with `response.`; a whole response says what it is."""
        kind = event.get("type")
        return (isinstance(kind, str) and kind.startswith("response.")) or event.get("object") == "response"

    def decoder(self, sink: Sink) -> Decode:
        """Make the reader of one response."""
        return _Decoder(sink).decode

    def synthetic_id(self, digest: str) -> str:
        """`call_` and 24 characters, like the provider's own."""
        return f"call_{digest[:24]}"

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
        """The input items that repeat the output: reasoning, messages, calls and hosted items, as they arrived."""
        return assistant_items(response, calls)

    def result_messages(self, results: Sequence[ToolResult]) -> list[JsonObject]:
        """One output item a call, of the kind that its call wants; a call that the response answers gets none."""
        return [result_item(result) for result in results if ANSWERED not in result.call.extra]

    def continues(self, finish_reason: str | None) -> bool:  # noqa: ARG002  # the seam's signature
        """This protocol has no paused turns."""
        return False


_ON_THE_CALL: Final = ("call_id", "name", "arguments", "input")
"""What a client's call has in fields of its own; the rest of its item goes into `extra`."""

_DELTAS: Final = frozenset(
    f"response.{kind}.delta"
    for kind in (
        "function_call_arguments",
        "custom_tool_call_input",
        "mcp_call_arguments",
        "code_interpreter_call_code",
    )
)
_COPIES: Final = ("arguments", "input", "code")
_ENDINGS: Final = frozenset(("completed", "incomplete", "failed", "cancelled"))
_TEXT_PARTS: Final[dict[str, tuple[str, TextKind]]] = {
    "output_text": ("text", "text"),
    "refusal": ("refusal", "refusal"),
    "summary_text": ("text", "reasoning"),
    "reasoning_text": ("text", "reasoning"),
}
_TEXT_EVENTS: Final = {
    "response.output_text": ("output_text", "content_index", "message"),
    "response.refusal": ("refusal", "content_index", "message"),
    "response.reasoning_summary_text": ("summary_text", "summary_index", "reasoning"),
    "response.reasoning_text": ("reasoning_text", "content_index", "reasoning"),
}


class _Decoder:
    """Reads the events of one response."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._begun = False
        self._response_id: str | None = None
        self._items = Items()
        self._loose: dict[str, Item] = {}
        self._tool_delta = sink.tool_delta
        self._growing: dict[object, int] = {}
        """The keys of the calls that may take another delta without a question, by output index."""

    def decode(self, event: object) -> None:
        if type(event) is dict:
            # Nearly every event of a call is one more piece of text for it: asking no more than that saves half.
            try:
                if event["type"] in _DELTAS:
                    text, index = event["delta"], event["output_index"]
                    key = self._growing[index]
                    if type(text) is str and text and type(index) is int:
                        self._tool_delta(0, key, None, None, text)
                        return
            except (KeyError, TypeError):
                pass
        self._read(event if type(event) is dict else fields(event))

    def _read(self, told: Mapping[str, object]) -> None:
        kind = told.get("type")
        handler = _HANDLERS.get(kind) if type(kind) is str else None
        if handler is not None:
            if kind not in _DELTAS:
                self._growing.clear()
            handler(self, told)
        elif told.get("object") == "response":
            self._end(told, None)
        elif kind is None and (error := told.get("error")):
            self._sink.error(error_message(error))

    # -- the response -----------------------------------------------------------------------

    def created(self, event: Mapping[str, object]) -> None:
        self._begin(fields(event.get("response")) or event, anew=event.get("type") == "response.created")

    def ended(self, event: Mapping[str, object]) -> None:
        said = str(event.get("type")).removeprefix("response.")
        # Where only the name of the SSE event tells the type, the response is the event.
        self._end(fields(event.get("response")) or event, said if said in _ENDINGS else None)

    def error(self, event: Mapping[str, object]) -> None:
        self._sink.error(error_message(event.get("error") or event.get("message") or event.get("code") or event))

    def _begin(self, response: Mapping[str, object], *, anew: bool) -> None:
        response_id = as_name(response.get("id"))
        if self._begun and not (anew and response_id != self._response_id):
            return
        self._sink.begin(response_id)
        if self._begun:
            self._items = Items()  # the indexes of another response are its own
            self._loose = {}
        self._begun = True
        self._response_id = response_id

    def _end(self, response: Mapping[str, object], said: str | None) -> None:
        self._begin(response, anew=False)
        output = [self._item(item) for item in items(response.get("output"))]
        for place, item, known in self._items.listed([item for item in output if item]):
            self._take_copy(known or self._adopt(item, None) or self._open(item, place, final=True), item, None)
        if response.get("store") is False:
            self._sink.block(0, RESPONSE, {"store": False})
        if usage := fields(response.get("usage")):
            self._sink.usage(plain_object(usage))
        if error := response.get("error"):
            self._sink.error(error_message(error))
        # The event and the response in it may disagree: both are told, and the worst counts.
        detail = as_name(fields(response.get("incomplete_details")).get("reason"))
        endings = [word for word in (said, as_name(response.get("status"))) if word in _ENDINGS]
        for word in endings:
            self._sink.finish(0, detail if detail and word == "incomplete" else word)
        if endings:
            self._sink.finish(0, detail)
            self._sink.terminate()

    # -- items ------------------------------------------------------------------------------

    def item_added(self, event: Mapping[str, object]) -> None:
        item = self._item(event.get("item"))
        index = as_place(event.get("output_index"))
        if item and not (self._items.announced(item, index) or self._adopt(item, index)):
            self._open(item, index, final=False)

    def item_done(self, event: Mapping[str, object]) -> None:
        item = self._item(event.get("item"))
        index = as_place(event.get("output_index"))
        if item:
            known = self._items.finished(item, index) or self._adopt(item, index)
            known = known or self._open(item, index, final=True)
            self._take_copy(known, item, index)
            if known.client and item.get("status") in (None, "completed"):
                self._sink.tool_proven(0, known.key)

    def _adopt(self, item: JsonObject, index: int | None) -> Item | None:
        """The text that came before its item is the item's."""
        loose = self._loose.pop(str(item["type"]), None)
        if loose is not None:
            self._items.know(loose, item, index)
        return loose

    def _item(self, value: object) -> JsonObject:
        item = sent_object(value)
        if item.get("type") and isinstance(item["type"], str):
            return item
        self._sink.diagnose("undecodable_event", "an output item without a type")
        return {}

    def _open(self, item: JsonObject, index: int | None, *, final: bool) -> Item:
        opened = self._items.open(item, index)
        if opened.shape is None:
            self._sink.block(0, opened.key, item)
            return opened
        if opened.client and opened.type == "tool_search_call" and not final:
            opened.call_id = None  # provisional: its final copy may bring another
        given = item.get(opened.shape.arguments[0])
        placeholder = given if isinstance(given, str) and not final else ""
        self._sink.tool_open(
            0,
            opened.key,
            opened.call_id or (None if opened.client else opened.id),
            opened.name,
            kind=opened.shape.kind,
            provider_executed=not opened.client,
            placeholder=placeholder,
            extra=_extra(item) if opened.client else None,
        )
        self._sink.tool_whole(0, opened.key, whole=bool(placeholder.strip()))
        return opened

    def _take_copy(self, known: Item, item: JsonObject, index: int | None) -> None:
        """A final copy of an item. Beyond the arguments, the first copy counts: `encrypted_content` is new in each."""
        if known.shape is None:
            self._take_block(known, item)
            return
        text = known.arguments(item)
        elsewhere = None not in (index, known.place) and index != known.place
        if elsewhere and text.strip() and text != known.copy:
            # A second whole call with the id of the first: it gets one of its own.
            item = {**item, "call_id": None}
            self._take_copy(self._open(item, index, final=True), item, index)
            return
        self._identify(known, item)
        known.closed = True
        self._replace(known, text, index)
        if known.client and is_hosted(item):
            self._bar(known)
        cut = known.client and item.get("status") == "incomplete"
        self._sink.tool_whole(0, known.key, whole=not cut and not known.barred)

    def _take_block(self, known: Item, item: JsonObject) -> None:
        known.closed = True
        self._sink.block_item(0, known.key, FINAL, item)
        for group in ("summary", "content"):
            for number, content in enumerate(items(item.get(group))):
                told = fields(content)
                part = told.get("type")
                if isinstance(part, str) and part in _TEXT_PARTS:
                    self._show(known, part, number, told, delta=False)
                for place, annotation in enumerate(items(told.get("annotations"))):
                    self._cite(known, (number, place), annotation)
        answered = self._items.of_call(item) if known.type.endswith("_output") else None
        # What the response lists as found by a client's search is still the client's to find.
        if answered is not None and answered.client and answered.type != "tool_search_call":
            self._bar(answered)
            self._sink.tool_whole(0, answered.key, whole=False)

    def _identify(self, known: Item, item: JsonObject) -> None:
        """Take the id and the name that may come late, and the rest of the item."""
        call_id = as_id(item.get("call_id"))
        if known.client and known.call_id is None and call_id is not None and self._items.bind(known, call_id):
            self._sink.tool_delta(0, known.key, call_id, None, "")
        name = as_name(item.get("name"))
        if name is not None and name != known.name:
            if known.name is not None and known.call_id is None:
                known.barred = True  # which of two names is meant, no id tells
            else:
                known.name = name
        if not known.closed:
            self._add(known, _extra(item) if known.client else item)

    def _add(self, known: Item, extra: JsonObject) -> None:
        """Put more on a call, which must be the one that was written to last."""
        self._sink.tool_delta(0, known.key, None, known.name, "")
        self._sink.tool_extra(0, extra)

    def _bar(self, known: Item) -> None:
        """The provider executed what looked like a client's call: it must not run a second time here."""
        known.barred = True
        self._add(known, {ANSWERED: True})

    def _replace(self, known: Item, text: str, index: int | None) -> None:
        """A blank copy is no copy: it takes nothing away from what came."""
        if text.strip():
            known.copy = text
            known.place = index if index is not None else known.place
        if text.strip() or (known.copy is None and not known.shown):
            self._sink.tool_replace(0, known.key, text)

    # -- texts ------------------------------------------------------------------------------

    def arguments_delta(self, event: Mapping[str, object]) -> None:
        index = as_place(event.get("output_index"))
        known = self._items.find(index, event.get("item_id"), event.get("call_id"), call=True)
        delta = event.get("delta")
        text = delta if type(delta) is str else as_text(delta)
        if not text:
            return
        if known is None:
            self._sink.orphan(0, text)
        elif known.copy is None:
            if not known.shown:
                known.shown.add("arguments")
                self._sink.tool_whole(0, known.key, whole=not known.barred)
            self._tool_delta(0, known.key, None, None, text)
            if self._items.is_at(index, known):
                self._growing[index] = known.key

    def arguments_done(self, event: Mapping[str, object]) -> None:
        index = as_place(event.get("output_index"))
        known = self._items.find(index, event.get("item_id"), event.get("call_id"), call=True)
        if known is not None:  # else the item itself is still to come, or nothing ever names the call
            self._replace(known, next((as_text(event[key]) for key in _COPIES if key in event), ""), index)
            self._sink.tool_whole(0, known.key, whole=not known.barred)

    def text(self, event: Mapping[str, object]) -> None:
        kind, _, ending = str(event.get("type")).rpartition(".")
        part, numbered, owner = _TEXT_EVENTS[kind]
        known = self._items.find(as_place(event.get("output_index")), event.get("item_id"), None)
        if known is None or known.shape is not None:
            known = self._loose.get(owner)
        if known is None:
            known = self._loose[owner] = self._open({"type": owner, "role": "assistant"}, None, final=False)
        self._show(known, part, as_index(event.get(numbered)) or 0, event, delta=ending == "delta")

    def annotation(self, event: Mapping[str, object]) -> None:
        known = self._items.find(as_place(event.get("output_index")), event.get("item_id"), None)
        place = (as_index(event.get("content_index")) or 0, as_index(event.get("annotation_index")) or 0)
        self._cite(known, place, event.get("annotation"))

    def _cite(self, known: Item | None, place: tuple[int, int], annotation: object) -> None:
        """Tell a source; what came as an event, a final copy does not bring again."""
        name = f"annotation:{place[0]}:{place[1]}"
        if known is None or name not in known.shown:
            self._sink.citation(0, sent_object(annotation))
        if known is not None:
            known.shown.add(name)

    def _show(self, known: Item, part: str, number: int, told: Mapping[str, object], *, delta: bool) -> None:
        """Tell a text; what the deltas brought, a final copy does not bring again."""
        field, shown_as = _TEXT_PARTS[part]
        name = f"{part}:{number}"
        if delta or name not in known.shown:
            known.shown.add(name)
            self._sink.block_text(0, known.key, name, as_text(told.get("delta" if delta else field)), shown_as)


def _extra(item: JsonObject) -> JsonObject:
    return {key: value for key, value in item.items() if key not in _ON_THE_CALL}


_HANDLERS: Final[dict[str, Callable[[_Decoder, Mapping[str, object]], None]]] = {
    **dict.fromkeys(_DELTAS, _Decoder.arguments_delta),
    **dict.fromkeys((f"{kind.removesuffix('delta')}done" for kind in _DELTAS), _Decoder.arguments_done),
    "response.output_item.added": _Decoder.item_added,
    "response.output_item.done": _Decoder.item_done,
    "response.created": _Decoder.created,
    "response.in_progress": _Decoder.created,
    "response.queued": _Decoder.created,
    **dict.fromkeys((f"response.{word}" for word in (*_ENDINGS, "done")), _Decoder.ended),
    **dict.fromkeys((f"{kind}.{word}" for kind in _TEXT_EVENTS for word in ("delta", "done")), _Decoder.text),
    "response.output_text.annotation.added": _Decoder.annotation,
    "error": _Decoder.error,
}
