"""Merging deltas into calls. The wires tell what came; who it belongs to is decided here, once.

The rules, by the method that holds each:

* provider indexes are keys, not positions: `_route`
* a known id goes to its call; a second call may reuse an id: `_opens_again`
* another id at a used index: `_is_minted_id`
* no index: `_route_without_index`; an index that comes late: `_continues_indexless`
* a name is set, not appended: `_set_name`
* an identical resend of complete arguments is dropped: `_is_resend`
* halves of surrogate pairs are joined: `_Slot.text`, `_hold_surrogate`
* finish and text: `_finalize`, with the table in `policy`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from toolrun._core.calls import CallStatus, ToolCall
from toolrun._core.events import ArgumentsReplaced, CallDelta, CallFinalized, CallStarted, Diagnostic, TextDelta
from toolrun._core.json_text import is_complete_container, join_surrogates, opens_object, parse_object
from toolrun._core.policy import SAYS_TOOLS, Evidence, Text, Verdict, evidence, normalise, worse
from toolrun._core.records import ArgumentIssue
from toolrun._core.response import CALL, Part, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolrun._core.calls import CallKind
    from toolrun._core.events import StreamEvent, TextKind
    from toolrun._core.policy import FinishPolicy
    from toolrun._core.records import JsonObject
    from toolrun._core.response import BlockKey

MAX_CALL_CHARACTERS: Final = 16_000_000
"""Argument text of one call; what comes after it is counted, not kept, and the call is incomplete."""

MAX_CALLS: Final = 1_000
"""Calls of one response; those after it are merged into one call that never runs."""

_Place: TypeAlias = int | tuple[int, int | None] | None
"""An index of choice 0 as it is, for speed; else the choice and the index."""

_ABSENT: Final = frozenset(("", "null", "None"))


class _Slot:
    """A call while it is being assembled."""

    __slots__ = (
        "choice", "conflict", "cut", "deltas", "dropped", "extra", "held_half", "index", "kind", "name", "pieces",
        "placeholder", "position", "provider_executed", "readings", "shown_id", "size", "synthetic_id", "wire_id",
    )  # fmt: skip

    def __init__(self, position: int, choice: int, index: int | None) -> None:
        self.position = position
        self.choice = choice
        self.index = index
        self.wire_id: str | None = None
        self.synthetic_id = False
        self.shown_id = ""
        self.name: str | None = None
        self.readings: tuple[str, ...] = ()
        # A list and a join, not `+=` on an attribute: that copies the text on every delta.
        self.pieces: list[str] = []
        self.size = 0
        self.dropped = 0
        self.held_half = ""
        self.kind: CallKind = "function"
        self.provider_executed = False
        self.placeholder = ""
        self.conflict = False
        self.cut = False
        self.extra: dict[str, object] = {}

    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return join_surrogates(self.pieces[0]) if self.pieces else ""

    def is_complete(self) -> bool:
        return self.size > 1 and is_complete_container(self.text())


class _Block:
    """A part of the response that is not a call, while it grows."""

    __slots__ = ("choice", "data", "items", "key", "texts")

    def __init__(self, choice: int, key: BlockKey, data: JsonObject) -> None:
        self.choice = choice
        self.key = key
        self.data = data
        self.texts: dict[str, list[str]] = {}
        self.items: dict[str, list[object]] = {}

    def part(self) -> Part:
        grown = {name: "".join(pieces) for name, pieces in self.texts.items()}
        return Part(self.key, {**self.data, **grown, **self.items})


class Assembler:
    """The sink that wires write to; gives calls, events and the response.

    Args:
        make_id: Gives the synthetic id for the call at a position.
        deltas: False leaves out `CallDelta` and `TextDelta`, for callers that read only calls.
    """

    def __init__(self, make_id: Callable[[int], str], *, deltas: bool = True) -> None:
        self._make_id = make_id
        self._deltas = deltas
        self._slots: list[_Slot] = []
        self._at: dict[_Place, _Slot] = {}
        self._by_id: dict[tuple[int, str], _Slot] = {}
        self._recent: dict[int, _Slot] = {}
        self._blocks: dict[tuple[int, BlockKey], _Block] = {}
        self._parts: list[_Block | _Slot] = []
        self._texts: list[str] = []
        self._finish: dict[int, str] = {}
        self._usage: JsonObject = {}
        self._error: str | None = None
        self._lost = False
        self._orphans: set[int] = set()
        self.response_id: str | None = None
        self.terminated = False
        self.events: list[StreamEvent] = []

    # -- what wires say ---------------------------------------------------------------------

    def begin(self, response_id: str | None) -> None:
        """A response begins. A second one in the same stream cuts what the first left unfinished."""
        if self.response_id is not None and not self._finish:
            for slot in self._slots:
                slot.cut = True
        if response_id:
            self.response_id = response_id

    def tool_delta(self, choice: int, index: int | None, id: str | None, name: str | None, text: str) -> None:
        """A piece of a call: any of an id, a name and argument text."""
        slot = self._at.get((choice, index) if choice else index)
        if slot is None or id or name:
            slot = self._route(choice, index, _present(id), name or None, text)
        if text:
            size = len(text)
            if size == slot.size and self._is_resend(slot, text):
                return
            slot.size += size
            if slot.size > MAX_CALL_CHARACTERS:
                slot.dropped += size
                return
            slot.pieces.append(text)
            if self._deltas:
                if slot.held_half or "\ud800" <= text[-1] <= "\udbff":
                    text = self._hold_surrogate(slot, text)
                if text:
                    self.events.append(CallDelta(slot.position, text))

    def tool_open(
        self,
        choice: int,
        index: int | None,
        id: str | None,
        name: str | None,
        *,
        kind: CallKind = "function",
        provider_executed: bool = False,
        placeholder: str = "",
        extra: Mapping[str, object] | None = None,
    ) -> None:
        """A call announced as a whole block: it starts here, unless its id is known already.

        `placeholder` is the argument text to use if no delta follows.
        """
        known_id = _present(id)
        known = self._by_id.get((choice, known_id)) if known_id else None
        if known is not None and known.name == (name or None) and not known.is_complete():
            slot = known
        else:
            slot = self._open(choice, index, known_id, name or None, provider_executed=provider_executed)
        slot.kind = kind
        slot.placeholder = placeholder
        self._at[(choice, index) if choice else index] = slot
        if extra:
            slot.extra.update(extra)

    def tool_extra(self, choice: int, extra: Mapping[str, object]) -> None:
        """More that the provider put on the call that was written to last."""
        slot = self._recent.get(choice)
        if slot is not None:
            slot.extra.update(extra)

    def tool_replace(self, choice: int, index: int | None, text: str) -> None:
        """The wire's own final copy of a call's arguments; it wins over the deltas."""
        slot = self._at.get((choice, index) if choice else index)
        if slot is None:
            self.orphan(choice, text)
            return
        before = slot.text()
        if before != text:
            slot.pieces[:] = [text]
            slot.size = len(text)
            self.events.append(ArgumentsReplaced(slot.position, before, text))

    def has_call(self, choice: int, index: int | None) -> bool:
        """Tell whether a call is known at that index."""
        return ((choice, index) if choice else index) in self._at

    def orphan(self, choice: int, text: str) -> None:
        """Argument text that belongs to no call. A blank call beside it may have lost its arguments."""
        self._orphans.add(choice)
        self.diagnose("orphan_delta", f"argument text for a call that never began: {text!r}")

    def block(self, choice: int, key: BlockKey, data: JsonObject) -> None:
        """A part of the response that is not a call begins; a used key begins anew."""
        block = _Block(choice, key, data)
        self._blocks[choice, key] = block
        self._parts.append(block)

    def block_text(
        self,
        choice: int,
        key: BlockKey,
        field: str,
        text: str,
        kind: TextKind | None = None,
    ) -> None:
        """Text for a field of a block; `kind` None keeps it from user interfaces."""
        self._block(choice, key).texts.setdefault(field, []).append(text)
        if kind is None or not text:
            return
        if kind == "text" and choice == 0:
            self._texts.append(text)
        if self._deltas:
            self.events.append(TextDelta(text, kind, choice))

    def block_item(self, choice: int, key: BlockKey, field: str, item: object) -> None:
        """An item for a list field of a block."""
        self._block(choice, key).items.setdefault(field, []).append(item)

    def finish(self, choice: int, reason: str | None) -> None:
        """A finish reason; blank ones are noise, and of several the worst counts."""
        if reason and reason.strip():
            self._finish[choice] = worse(self._finish.get(choice), reason)

    def usage(self, usage: Mapping[str, object]) -> None:
        """Token counts; later ones win key by key."""
        self._usage.update({key: value for key, value in usage.items() if value is not None})

    def terminate(self) -> None:
        """The protocol's terminator."""
        self.terminated = True

    def error(self, message: str) -> None:
        """The provider reported an error in the stream, or the stream raised."""
        if self.ended():
            self.diagnose("error_after_finish", message)
            return
        if self._error is None:
            self._error = message
        self.diagnose("stream_error", message)

    def lose(self, message: str, *, line: int | None = None) -> None:
        """An event in the middle of the stream could not be read: any call may lack a piece, whatever the finish says."""
        self._lost = True
        self.diagnose("undecodable_event", message, line=line)

    def diagnose(self, code: str, message: str, *, position: int | None = None, line: int | None = None) -> None:
        """Something odd that is not an error of one call."""
        self.events.append(Diagnostic(code, message, position, line))

    # -- who a delta belongs to -------------------------------------------------------------

    def _route(self, choice: int, index: int | None, id: str | None, name: str | None, text: str) -> _Slot:
        at = None if index is None else self._at.get((choice, index) if choice else index)
        if id is not None:
            known = at if at is not None and at.wire_id == id else self._by_id.get((choice, id))
            if known is not None:
                if self._opens_again(known, at, index, name, text):
                    return self._open(choice, index, id, name)
                return self._continue(known, index, None, name)
        if index is None:
            return self._route_without_index(choice, id, name, text)
        if at is None:
            recent = self._recent.get(choice)
            if recent is not None and self._continues_indexless(recent, id, name, text):
                return self._continue(recent, index, id, name)
            return self._open(choice, index, id, name)
        if id is not None and at.wire_id is not None and not self._is_minted_id(at, name):
            return self._open(choice, index, id, name)
        if id is None and at.wire_id is None and name is not None and self._names_another(at, name, text):
            return self._open(choice, index, id, name)
        return self._continue(at, index, id, name)

    def _route_without_index(self, choice: int, id: str | None, name: str | None, text: str) -> _Slot:
        """No index: a new id starts a call; with no id, a name does; anything else continues the last one."""
        recent = self._recent.get(choice)
        if recent is None:
            return self._open(choice, None, id, name)
        if id is not None:
            late = recent.wire_id is None and name is None and recent.size > 0 and not recent.is_complete()
            return self._continue(recent, None, id, name) if late else self._open(choice, None, id, name)
        if name is None or recent.name is None:
            return self._continue(recent, None, None, name)
        if name != recent.name or self._repeats_name_anew(recent, text):
            return self._open(choice, None, None, name)
        return self._continue(recent, None, None, name)

    def _opens_again(self, known: _Slot, at: _Slot | None, index: int | None, name: str | None, text: str) -> bool:
        """A known id may be reused: by another tool after complete arguments, or by a whole call in a new place."""
        if name is None or known.name is None:
            return False
        new_place = index is not None and at is None
        if name != known.name:
            return known.is_complete() or new_place
        return new_place and self._repeats_name_anew(known, text)

    @staticmethod
    def _is_minted_id(at: _Slot, name: str | None) -> bool:
        """Some servers mint an id a fragment: another id without a name continues unfinished arguments."""
        return name is None and not at.is_complete()

    def _names_another(self, at: _Slot, name: str, text: str) -> bool:
        """Without any ids, a used index starts a new call by naming a tool after complete arguments."""
        if name != at.name:
            return at.name is not None and at.is_complete()
        return self._repeats_name_anew(at, text)

    @staticmethod
    def _repeats_name_anew(slot: _Slot, text: str) -> bool:
        """A repeated name splits off a call only if the last one is complete and a different object begins."""
        return opens_object(text) and slot.is_complete() and text.strip() != slot.text().strip()

    def _continues_indexless(self, recent: _Slot, id: str | None, name: str | None, text: str) -> bool:
        """The first delta at a new index binds to the index-less call that it continues."""
        if recent.index is not None or (id is not None and recent.wire_id is not None):
            return False
        if name is None:
            return id is None or not recent.is_complete()
        return name == recent.name and not self._repeats_name_anew(recent, text) and not recent.is_complete()

    def _continue(self, slot: _Slot, index: int | None, id: str | None, name: str | None) -> _Slot:
        if index is not None:
            key = (slot.choice, index) if slot.choice else index
            if self._at.setdefault(key, slot) is slot and slot.index is None:
                slot.index = index
        if id is not None:
            self._by_id.setdefault((slot.choice, id), slot)
            if slot.wire_id is None:
                slot.wire_id = id
        if name is not None:
            self._set_name(slot, name)
        self._recent[slot.choice] = slot
        return slot

    def _open(
        self, choice: int, index: int | None, id: str | None, name: str | None, *, provider_executed: bool = False
    ) -> _Slot:
        if len(self._slots) >= MAX_CALLS:
            return self._overflow(choice, index)
        slot = _Slot(len(self._slots), choice, index)
        if id is not None:
            slot.synthetic_id = (choice, id) in self._by_id
            slot.wire_id = id
            self._by_id[choice, id] = slot
        slot.name = name
        slot.readings = (name,) if name else ()
        slot.provider_executed = provider_executed
        slot.shown_id = self._make_id(slot.position) if id is None or slot.synthetic_id else id
        self._slots.append(slot)
        self._parts.append(slot)
        self._recent[choice] = slot
        if index is not None:
            self._at[(choice, index) if choice else index] = slot
        self.events.append(CallStarted(slot.position, slot.shown_id, name, choice, provider_executed))
        return slot

    def _overflow(self, choice: int, index: int | None) -> _Slot:
        slot = self._slots[-1]
        if not slot.dropped:
            self.diagnose("limit", f"more than {MAX_CALLS} calls in one response; the rest is not kept apart")
        slot.dropped += 1
        self._recent[choice] = slot
        if index is not None:
            self._at[(choice, index) if choice else index] = slot
        return slot

    @staticmethod
    def _set_name(slot: _Slot, name: str) -> None:
        """A name is set: equal is ignored, longer replaces, other pieces before any arguments are joined."""
        current = slot.name
        if current is None:
            slot.name = name
            slot.readings = (name,)
        elif name == current:
            return
        elif slot.size:
            slot.conflict = True
        elif name.startswith(current):
            slot.name = name
            slot.readings = (name,)
        else:
            slot.name = current + name
            slot.readings = (slot.name, name)

    @staticmethod
    def _is_resend(slot: _Slot, text: str) -> bool:
        """An identical resend of arguments that already are complete; an equal piece of unfinished ones is data."""
        return text == slot.text() and slot.is_complete()

    @staticmethod
    def _hold_surrogate(slot: _Slot, text: str) -> str:
        text = join_surrogates(slot.held_half + text)
        slot.held_half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            slot.held_half = text[-1]
            return text[:-1]
        return text

    def _block(self, choice: int, key: BlockKey) -> _Block:
        block = self._blocks.get((choice, key))
        if block is None:
            self.block(choice, key, {})
            block = self._blocks[choice, key]
        return block

    # -- the end ----------------------------------------------------------------------------

    def ended(self) -> bool:
        """Tell whether a finish reason or the terminator was seen."""
        return self.terminated or bool(self._finish)

    def close(self, policy: FinishPolicy) -> tuple[ToolCall, ...]:
        """Decide on every call, in order of arrival, and write the last events."""
        nameless = {slot.choice for slot in self._slots if slot.name is None and slot.size} | self._orphans
        calls = tuple(self._finalize(slot, policy, beside=slot.choice in nameless) for slot in self._slots)
        for choice, reason in self._finish.items():
            if normalise(reason) in SAYS_TOOLS and not any(slot.choice == choice for slot in self._slots):
                self.diagnose("finish_without_calls", f"finish reason {reason!r}, but no call came")
        return calls

    def response(self, wire: str) -> Response:
        """What the response consisted of, as plain data."""
        return Response(
            wire=wire,
            id=self.response_id,
            text="".join(self._texts),
            parts=tuple(
                part.part() if isinstance(part, _Block) else Part(CALL, {}, part.position)
                for part in self._parts
                if part.choice == 0
            ),
            finish_reason=self._finish.get(0),
            usage=dict(self._usage),
            ended=self.ended(),
        )

    def _finalize(self, slot: _Slot, policy: FinishPolicy, *, beside: bool) -> ToolCall:
        raw = slot.text() or slot.placeholder
        reason = self._finish.get(slot.choice)
        seen = evidence(
            policy,
            reason=reason,
            terminated=self.terminated,
            failed=self._error is not None,
            lost=self._lost,
            cut=slot.cut,
        )
        arguments, issue, column = _read(slot, raw, seen)
        verdict = _overrule(slot, seen.verdict(column), column, beside=beside)
        ok = verdict.status is CallStatus.OK
        call = ToolCall(
            id=slot.shown_id if slot.wire_id is None or slot.synthetic_id else slot.wire_id,
            name=slot.name,
            raw_arguments=raw,
            arguments=arguments if ok else None,
            text=raw if slot.kind == "custom" else None,
            status=verdict.status,
            executable=(
                policy.runs(verdict, reason)
                and slot.name is not None
                and not slot.provider_executed
                and slot.choice == 0
            ),
            provider_executed=slot.provider_executed,
            finish_reason=reason,
            code=verdict.code or (issue.code if issue and not ok else None),
            issue=None if ok else issue,
            position=slot.position,
            choice=slot.choice,
            index=slot.index,
            name_readings=slot.readings,
            kind=slot.kind,
            synthetic_id=slot.wire_id is None or slot.synthetic_id,
            extra=slot.extra,
        )
        if slot.held_half and self._deltas:
            self.events.append(CallDelta(slot.position, slot.held_half))
        self.events.append(CallFinalized(slot.position, call))
        return call


def _read(slot: _Slot, raw: str, seen: Evidence) -> tuple[JsonObject | None, ArgumentIssue | None, Text]:
    if slot.kind == "custom":
        # Free text has no end of its own: under a finish that cuts, nothing proves that it is whole.
        return None, None, Text.OTHER if seen is Evidence.HELD else Text.OBJECT
    if not raw.strip():
        return {}, None, Text.BLANK
    parsed = parse_object(raw)
    if isinstance(parsed, ArgumentIssue):
        return None, parsed, Text.OTHER
    return parsed, None, Text.OBJECT


def _overrule(slot: _Slot, verdict: Verdict, column: Text, *, beside: bool) -> Verdict:
    """What no finish can heal: limits, blank arguments beside a nameless call, conflicts, no name."""
    if slot.dropped:
        return Verdict(CallStatus.INCOMPLETE, "limit")
    if verdict.status is CallStatus.INCOMPLETE:
        return verdict
    if slot.name is None:
        return Verdict(CallStatus.PARSE_ERROR, "nameless")
    if slot.conflict:
        return Verdict(CallStatus.PARSE_ERROR, "identity_conflict")
    if beside and column is Text.BLANK:
        return Verdict(CallStatus.INCOMPLETE, "beside_nameless")
    return verdict


def _present(id: str | None) -> str | None:
    """Empty, blank, `"null"` and `"None"` ids count as absent; `"0"` is an id."""
    return None if id is None or id.strip() in _ABSENT else id
