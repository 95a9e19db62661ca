"""Merging deltas into calls. The wires tell what came; who it belongs to is decided in `routing`.

* an identical resend of complete arguments is dropped: `Assembler._is_resend`
* halves of surrogate pairs are joined: `Slot.text`, `Slot.hold_surrogate`
* finish and text decide: `Assembler._finalize` sums up the evidence, `finishing` concludes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._core.events import (
    ArgumentsReplaced,
    CallDelta,
    CallFinalized,
    CallStarted,
    CitationAdded,
    Diagnostic,
    TextDelta,
    UsageReported,
)
from toolrun._core.finishing import conclude, whole_text
from toolrun._core.json_text import MAX_CHARACTERS
from toolrun._core.leaks import leaked_call
from toolrun._core.policy import SAYS_CALLS, Evidence, FinishPolicy, evidence, normalise, worse
from toolrun._core.response import CALL, Part, Response
from toolrun._core.routing import MAX_CALLS, Router, place
from toolrun._core.slots import Block, Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from toolrun._core.calls import CallKind, ToolCall
    from toolrun._core.events import StreamEvent, TextKind
    from toolrun._core.records import JsonObject
    from toolrun._core.response import BlockKey
    from toolrun._core.slots import Placeholder, Slot

_EVERY_CHOICE: Final = range(2**31)
_ABSENT: Final = frozenset(("", "null", "None"))


class Assembler:
    """The sink that wires write to; gives calls, events and the response.

    Args:
        make_id: Gives the synthetic id for the call at a position.
        deltas: False leaves out deltas, citations and counts, for callers that read only calls.
        eager: Tells by its name whether a call is finalized as soon as the wire proves it whole.
    """

    def __init__(
        self, make_id: Callable[[int], str], *, deltas: bool = True, eager: Callable[[str], bool] | None = None
    ) -> None:
        self._deltas = deltas
        self._eager = eager
        self._router = Router(make_id, self._opened, self._overflowed)
        self._at = self._router.at
        self._blocks: dict[tuple[int, BlockKey], Block] = {}
        self._parts: list[Block | Slot] = []
        self._texts: list[str] = []
        self._finish: dict[int, str] = {}
        self._finishes: dict[int, int] = {}
        self._usage: JsonObject = {}
        self._finished_before_error: Container[int] | None = None
        self._lost = False
        self._orphans: set[int] = set()
        self._begun = False
        self.response_id: str | None = None
        self.terminated = False
        self.events: list[StreamEvent] = []

    # -- what wires say ---------------------------------------------------------------------

    def begin(self, response_id: str | None) -> None:
        """A response begins. In a stream with a second one, each keeps its own end: a finish proves nothing else."""
        if self._begun:
            for slot in self._router.slots:
                if slot.ending is None:
                    slot.cut = slot.cut or self._is_late(slot, terminated=self.terminated)
                    slot.ending = Ending(self._finish.get(slot.choice), self.terminated)
            self._finish.clear()
            self.terminated = False
            self._router.forget()
        self._begun = True
        self.response_id = response_id or self.response_id

    def tool_text(self, choice: int, index: int | None, text: str) -> bool:
        """More argument text for the call at that index, None for the last one; False, and nothing done, without one."""
        at = self._at
        slot = at.get((choice, index) if choice else index)
        if slot is None:
            return False
        at[(choice, None) if choice else None] = slot
        size = len(text)
        if size == slot.size and (not size or self._is_resend(slot, text)):
            return True
        slot.size = total = slot.size + size
        if total > MAX_CHARACTERS:
            self._exceeded(slot, choice, index, text)
            return True
        slot.pieces.append(text)
        if self._deltas and text:
            if slot.held_half or text[-1] >= "\ud800":
                text = slot.hold_surrogate(text)
            if text:
                self.events.append(CallDelta(slot.position, text))
        return True

    def tool_delta(self, choice: int, index: int | None, id: str | None, name: str | None, text: str) -> None:
        """A piece of a call: any of an id, a name and argument text."""
        if id or name or not self.tool_text(choice, index, text):
            self._router.route(choice, index, _present(id), name or None, text)
            self.tool_text(choice, None, text)

    def tool_open(
        self,
        choice: int,
        index: int | None,
        id: str | None,
        name: str | None,
        *,
        kind: CallKind = "function",
        provider_executed: bool = False,
        placeholder: Placeholder = "",
        extra: Mapping[str, object] | None = None,
    ) -> None:
        """A call announced as a whole block: it starts here, unless its id is known already.

        `placeholder` is the argument text to use if no delta follows; a function is asked for it at the end.
        """
        slot = self._router.known(choice, _present(id))
        if slot is None or not slot.is_announced_again(name or None, placeholder):
            slot = self._router.open(choice, index, _present(id), name or None, provider_executed=provider_executed)
        slot.announced_anew = slot.settled is not None
        slot.kind = kind
        slot.placeholder = placeholder or slot.placeholder
        if index is not None:
            self._at[place(choice, index)] = slot
        if extra:
            slot.extra.update(extra)

    def tool_extra(self, choice: int, extra: Mapping[str, object]) -> None:
        """More that the provider put on the call that was written to last."""
        slot = self._at.get(place(choice, None))
        if slot is not None:
            slot.extra.update(extra)

    def tool_is_custom(self, choice: int) -> None:
        """The call that was written to last takes free text, which has no end of its own."""
        slot = self._at.get(place(choice, None))
        if slot is not None:
            slot.kind = "custom"

    def tool_replace(self, choice: int, index: int | None, text: str) -> None:
        """The wire's own final copy of a call's arguments; it wins over the deltas."""
        slot = None if index is None else self._at.get(place(choice, index))
        if slot is None:
            self.orphan(choice, text)
            return
        before = slot.text()
        if not before:
            self.tool_delta(choice, index, None, None, text)
        elif before != text and slot.settled is not None:
            self._late(slot)
        elif before != text:
            slot.pieces = [text]  # another list, by which a preview knows that it has to begin anew
            slot.size = len(text)
            slot.held_half = ""
            self.events.append(ArgumentsReplaced(slot.position, before, text))

    def tool_whole(self, choice: int, index: int | None, *, whole: bool) -> None:
        """Whether a call is whole by the wire's own structure; one that is not is incomplete, whatever the finish."""
        slot = None if index is None else self._at.get(place(choice, index))
        if slot is not None:
            slot.cut = not whole

    def tool_proven(self, choice: int, index: int | None) -> None:
        """A call is whole by the wire's own order of events, whatever follows: it may be finalized before the end."""
        slot = None if index is None else self._at.get(place(choice, index))
        if slot is None or slot.settled is not None or slot.name is None or self._lost:
            return
        if self._eager is None or not self._eager(slot.name):
            return
        text, written = whole_text(slot)
        call = conclude(slot, text, Evidence.CUT if slot.cut else Evidence.FINISHED, FinishPolicy(), None)
        if call.executable and call.arguments is not None and text.strip():
            slot.settled = call
            slot.size = MAX_CHARACTERS  # so that what comes after it is noticed without asking every time
            self._finalized(slot, call, written)

    def has_call(self, choice: int, index: int | None) -> bool:
        """Tell whether a call is known at that index."""
        return index is not None and place(choice, index) in self._at

    def orphan(self, choice: int, text: str) -> None:
        """Argument text that belongs to no call. A blank call beside it may have lost its arguments."""
        self._orphans.add(choice)
        self.diagnose("orphan_delta", f"argument text for a call that never began: {text!r}")

    def block(self, choice: int, key: BlockKey, data: JsonObject) -> None:
        """A part of the response that is not a call begins; a used key begins anew."""
        block = Block(choice, key, data)
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
            self._finishes[choice] = self._finishes.get(choice, 0) + 1

    def usage(self, usage: Mapping[str, object]) -> None:
        """Token counts; later ones win key by key."""
        counts = {key: value for key, value in usage.items() if value is not None}
        if self._deltas and not counts.items() <= self._usage.items():
            self.events.append(UsageReported(counts))
        self._usage.update(counts)

    def citation(self, choice: int, data: JsonObject) -> None:
        """A source that the provider names, to be shown; what goes back of it is in a block."""
        if self._deltas and data:
            self.events.append(CitationAdded(data, choice))

    def terminate(self) -> None:
        """The protocol's terminator."""
        self.terminated = True

    def error(self, message: str) -> None:
        """The provider reported an error in the stream, or the stream raised. What had its finish before keeps it."""
        if self._finished_before_error is None:
            self._finished_before_error = frozenset(self._finish) if not self.terminated else _EVERY_CHOICE
        self.diagnose("error_after_finish" if self.ended() else "stream_error", message)

    def lose(self, message: str, *, line: int | None = None) -> None:
        """An event in the middle of the stream could not be read: any call may lack a piece, whatever the finish says."""
        self._lost = True
        self.diagnose("lost_event", message, line=line)

    def diagnose(self, code: str, message: str, *, position: int | None = None, line: int | None = None) -> None:
        """Something odd that is not an error of one call."""
        self.events.append(Diagnostic(code, message, position, line))

    # -- helpers ----------------------------------------------------------------------------

    def _opened(self, slot: Slot) -> None:
        self._parts.append(slot)
        slot.opened_after = self._finishes.get(slot.choice, 0)
        self.events.append(CallStarted(slot.position, slot.shown_id, slot.name, slot.choice, slot.provider_executed))

    def _overflowed(self, slot: Slot) -> None:
        self.diagnose(
            "limit", f"more than {MAX_CALLS} calls in one response; the rest is not kept apart", position=slot.position
        )

    @staticmethod
    def _is_resend(slot: Slot, text: str) -> bool:
        """An identical resend of arguments that already are complete; an equal piece of unfinished ones is data."""
        return text == slot.text() and slot.is_complete()

    def _exceeded(self, slot: Slot, choice: int, index: int | None, text: str) -> None:
        """Text beyond the limit is counted and dropped; so is what comes for a call that was finalized on proof.

        If that call was announced anew and other arguments follow, they are another call's, which cannot be told
        from it: it has an outcome of its own, and never runs.
        """
        if slot.settled is None:
            slot.dropped += len(text)
        elif text == slot.settled.raw_arguments:
            return
        elif slot.announced_anew:
            self._router.open(choice, index, None, slot.name).conflict = True
            self.tool_text(choice, index, text)
        else:
            self._late(slot)

    def _late(self, slot: Slot) -> None:
        self.diagnose(
            "late_arguments", "argument text for a call that was finalized on proof is dropped", position=slot.position
        )

    def _block(self, choice: int, key: BlockKey) -> Block:
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
        nameless = {slot.choice for slot in self._router.slots if slot.name is None and slot.size} | self._orphans
        calls = tuple(self._finalize(slot, policy, beside=slot.choice in nameless) for slot in self._router.slots)
        for choice, reason in self._finish.items():
            if normalise(reason) in SAYS_CALLS and not any(slot.choice == choice for slot in self._router.slots):
                self.diagnose("finish_without_calls", f"finish reason {reason!r}, but no call came")
        if (sign := leaked_call("".join(self._texts))) is not None:
            self.diagnose("leaked_call", f"the text has {sign!r}, as if a call had not been recognised as one")
        return calls

    def pieces(self, position: int) -> list[str]:
        """The argument text of a call so far, in pieces.

        Raises:
            IndexError: No call has begun at that position.
        """
        return self._router.slots[position].pieces

    def response(self, wire: str) -> Response:
        """What the response consisted of, as plain data."""
        return Response(
            wire=wire,
            id=self.response_id,
            text="".join(self._texts),
            parts=tuple(
                part.part() if isinstance(part, Block) else Part(CALL, {}, part.position)
                for part in self._parts
                if part.choice == 0
            ),
            finish_reason=self._finish.get(0),
            usage=dict(self._usage),
            ended=self.ended(),
        )

    def _finalize(self, slot: Slot, policy: FinishPolicy, *, beside: bool) -> ToolCall:
        if slot.settled is not None:
            return slot.settled
        reason, terminated = slot.ending or Ending(self._finish.get(slot.choice), self.terminated)
        spared = self._finished_before_error is None or slot.choice in self._finished_before_error
        failed = self._lost or not (spared or slot.ending)
        replaced = slot.ending is not None and reason is None and not terminated
        cut = slot.cut or replaced or self._is_late(slot, terminated=terminated)
        seen = evidence(policy, reason=reason, terminated=terminated, failed=failed, cut=cut)
        text, written = whole_text(slot)
        call = conclude(slot, text, seen, policy, reason, beside=beside)
        self._finalized(slot, call, written)
        return call

    def _is_late(self, slot: Slot, *, terminated: bool) -> bool:
        """A finish proves nothing about a call that began after it."""
        return 0 < slot.opened_after == self._finishes.get(slot.choice, 0) and not terminated

    def _finalized(self, slot: Slot, call: ToolCall, written: str) -> None:
        """Tell listeners what they did not get yet of the text, and that the call is finalized."""
        if written and slot.pieces and not slot.text().strip():
            self.events.append(ArgumentsReplaced(slot.position, slot.text(), written))
        elif written and self._deltas:
            self.events.append(CallDelta(slot.position, written))
        self.events.append(CallFinalized(slot.position, call))


def _present(id: str | None) -> str | None:
    """Empty, blank, `"null"` and `"None"` ids count as absent; `"0"` is an id."""
    return None if id is None or id.strip() in _ABSENT else id
