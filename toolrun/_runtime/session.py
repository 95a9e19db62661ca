"""`TurnSession`: one turn from its source to its outcomes; the same for every entry of the runner."""

from __future__ import annotations

import functools
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from toolrun._core import results
from toolrun._core.calls import identity_of
from toolrun._core.events import (
    ApprovalAnswered,
    CallCompleted,
    CallFinalized,
    CallRepeated,
    Diagnostic,
    TurnInvalid,
)
from toolrun._core.examining import reread
from toolrun._core.exceptions import StreamInterrupted, TooManyInvalidTurns
from toolrun._core.flow import call_flow, resumed_flow
from toolrun._core.outcomes import Cancelled, Deferred, Failed
from toolrun._core.response import CALL, Part, Response
from toolrun._runtime.driving import Driver
from toolrun._runtime.early import EarlyStarts
from toolrun._runtime.journaling import TurnRecord
from toolrun._runtime.listening import Listening
from toolrun._runtime.pool import run_pool
from toolrun._runtime.reading import read
from toolrun._runtime.recovery import begun_again
from toolrun._runtime.turn import Turn
from toolrun._stream import StreamFinalizer, kind_of
from toolrun.executors._attempt import propagate
from toolrun.wires import get_wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from toolrun._core.approval import Answer
    from toolrun._core.calls import ToolCall
    from toolrun._core.events import Event
    from toolrun._core.outcomes import Outcome
    from toolrun._core.repair import HookBinding
    from toolrun._core.seams import CallEntry, Job, Wire
    from toolrun._core.steps import Flow
    from toolrun._runtime.attempt import Emit
    from toolrun._runtime.recovery import Left
    from toolrun._runtime.settings import Settings
    from toolrun._stream import EndOfStream

    MakeFlow: TypeAlias = Callable[[ToolCall], Flow]


class TurnSession:
    """The state of one turn. Everything in it is keyed by position, never by a provider's id."""

    def __init__(
        self,
        settings: Settings,
        *,
        deps: object,
        wire: str | Wire,
        turn_id: str,
        emit: Emit | None = None,
        run_id: str | None = None,
    ) -> None:
        self._settings = settings
        self.registry = settings.registry.prepared(deps)
        self._run_id = run_id or settings.run_id
        self._turn_id = turn_id
        key = f"{self._run_id}:{turn_id}"
        self._listening = Listening(settings.listeners, key, emit) if settings.listeners else None
        self._emit = emit if self._listening is None else self._listening.emit
        self._deltas = emit is not None if self._listening is None else self._listening.deltas
        self._record = None
        if settings.journal is not None:
            self._record = TurnRecord(
                settings.journal,
                key,
                self._snapshot,
                running=settings.running,
                verify=settings.verify,
                deps=deps,
            )
        self._driver = Driver(
            settings,
            registry=self.registry,
            deps=deps,
            turn=key,
            emit=self._emit,
            around=None if self._listening is None else self._listening.around,
            record=self._record,
        )
        self._named_wire = None if wire == "auto" else get_wire(wire)
        self._stream: StreamFinalizer | None = None
        self._calls: tuple[ToolCall, ...] = ()
        self._outcomes: dict[int, Outcome] = {}
        self._repeated: dict[int, tuple[ToolCall, ToolCall]] = {}
        self._diagnostics: list[Diagnostic] = []
        self._response: Response | None = None
        self._early: EarlyStarts | None = None
        self._expires_at: float | None = None

    @property
    def _finalizer(self) -> StreamFinalizer:
        """Made when it is needed: calls that come from elsewhere need none."""
        if self._stream is None:
            self._stream = StreamFinalizer(
                self._named_wire or "auto",
                policy=self._settings.policy,
                deltas=self._deltas,
                eager=None if self._early is None else self._is_eager,
                run_id=self._settings.run_id,
                turn_id=self._turn_id,
            )
        return self._stream

    # -- entries ----------------------------------------------------------------------------

    async def consume(self, source: object, *, end: EndOfStream) -> Turn:
        """Read a source, then run its calls.

        Raises:
            StreamInterrupted: It raised before a finish, and the settings say to raise.
            TooManyInvalidTurns: As the limits say.
            UnknownWire: Nothing that came was recognised.
            JournalError: Calls wait for an answer, and the turn could not be kept until then.
            TypeError: It is not a source.
        """
        kind_of(source)
        return await self._followed(self._consume(source, end))

    async def _consume(self, source: object, end: EndOfStream) -> Turn:
        if self._settings.starts_early(self.registry):
            self._early = EarlyStarts(self._work_early, self._settings.max_concurrency)
        async with self._early or nullcontext():
            cause = await self._read(source, end)
            interrupted = cause is not None and not self._finalizer.ended
            if not interrupted:
                await self._run(self._calls)
        if cause is None:
            self._finalizer.require_wire()
        if interrupted:
            # Nothing more starts, and no hook may make it start.
            await self._run_flows([_barred(call) for call in _of_the_client(self._calls)], self._flows((), ()))
        self._answer_repetitions()
        if not interrupted:
            self._count_turn()
        elif self._settings.on_stream_error == "raise":
            raise StreamInterrupted(
                f"the stream raised {type(cause).__name__} before its finish: {cause}", turn=self.turn()
            ) from cause
        return self.turn()

    async def execute(self, calls: Sequence[ToolCall]) -> Turn:
        """Run calls that come from elsewhere, the same way. Their text is what counts: it is read again.

        Raises:
            TooManyInvalidTurns: As the limits say.
            JournalError: As for `consume`.
        """
        return await self._followed(self._execute(calls))

    async def _execute(self, calls: Sequence[ToolCall]) -> Turn:
        self._calls = tuple(reread(call, position) for position, call in enumerate(calls))
        self._response = Response(parts=tuple(Part(CALL, {}, call.position) for call in self._calls))
        await self._run(self._calls)
        self._answer_repetitions()
        self._count_turn()
        return self.turn()

    async def resume(self, turn: Turn, answers: Mapping[int, Answer]) -> Turn:
        """Take the deferred calls of a turn on that were answered; the others keep their outcomes.

        Raises:
            JournalError: The turn could not be kept; nothing of it went on.
        """
        before = tuple(outcome for outcome in turn.outcomes if outcome.call.position not in answers)
        return await self._followed(self._resume(turn, answers), before)

    async def _resume(self, turn: Turn, answers: Mapping[int, Answer]) -> Turn:
        self._restore(turn)
        before = {outcome.call.position: outcome for outcome in turn.outcomes}
        self._outcomes = dict(before)  # until the turn is kept the calls wait, whatever ends it
        left = None
        if self._record is not None:
            self._record.settled.update(before.keys() - answers.keys())
            left = await self._record.go_on()
            self._driver.started.update(left.begun if left else ())
        for position, answer in sorted(answers.items()):
            if left is not None and position in left.recorded:
                # Somebody else's answer came first; what came of that one stands.
                self._complete(before[position].call, left.outcomes[position])
                continue
            del self._outcomes[position]
            self._tell(ApprovalAnswered(position, answer))

        def make_flow(call: ToolCall) -> Flow:
            entry = None if left is None else left.begun.get(call.position)
            if entry is not None:
                return begun_again(call, entry, self.registry)
            return resumed_flow(before[call.position], answers[call.position], registry=self.registry)

        await self._run_flows([before[position].call for position in sorted(answers)], make_flow)
        self._answer_repetitions()
        return self.turn()

    async def recover(self, left: Left) -> Turn:
        """Take a turn on that a process left behind: what has an outcome keeps it, the rest is run as far as it may be.

        Raises:
            JournalError: As for `consume`.
        """
        return await self._followed(self._recover(left), tuple(left.outcomes.values()))

    async def _recover(self, left: Left) -> Turn:
        self._restore(left.turn)
        self._outcomes = dict(left.outcomes)
        if self._record is not None:
            self._record.take_over(left)
        self._driver.started.update(left.begun)
        mine = _of_the_client(self._calls)
        fresh = self._flows(mine, self._settings.chain)

        def make_flow(call: ToolCall) -> Flow:
            entry = left.begun.get(call.position)
            return fresh(call) if entry is None else begun_again(call, entry, self.registry)

        await self._run_flows(mine, make_flow)
        self._answer_repetitions()
        return self.turn()

    def turn(self) -> Turn:
        """The turn as it stands: calls without an outcome so far count as cancelled."""
        calls = tuple(call for call in self._calls if call.choice == 0)
        outcomes = tuple(self._outcome_of(call) for call in calls if not call.provider_executed)
        return Turn(
            run_id=self._run_id,
            turn_id=self._turn_id,
            wire=self._wire,
            response=self._finalizer.response if self._response is None else self._response,
            calls=calls,
            outcomes=outcomes,
            diagnostics=tuple(self._diagnostics),
            expires_at=self._expires_at,
        )

    def _snapshot(self) -> Turn:
        """The turn with the outcomes that are known by now, and no others."""
        turn = self.turn()
        return replace(turn, outcomes=tuple(one for one in turn.outcomes if one.call.position in self._outcomes))

    def _restore(self, turn: Turn) -> None:
        self._calls, self._response, self._expires_at = turn.calls, turn.response, turn.expires_at
        self._diagnostics = list(turn.diagnostics)

    def _followed(
        self, running: Coroutine[Any, Any, Turn], before: Sequence[Outcome] = ()
    ) -> Coroutine[Any, Any, Turn]:
        """A turn that came with these outcomes; those who keep it or listen to it learn how it ended, whatever way it did."""
        if self._record is not None:
            running = self._record.follow(running, self.turn)
        return running if self._listening is None else self._heard(running, before, self._listening)

    async def _heard(self, running: Coroutine[Any, Any, Turn], before: Sequence[Outcome], listening: Listening) -> Turn:
        listening.begin(self.registry, before)
        try:
            return await running
        finally:
            self.abandon()
            listening.end(self.turn().outcomes)

    @property
    def _wire(self) -> Wire | None:
        if self._stream is not None:
            return self._stream.wire
        return self._named_wire

    def abandon(self) -> None:
        """Close what is still open after a cancellation, so that `turn` can be read."""
        if not self._calls:
            self._close("eof")

    # -- reading ----------------------------------------------------------------------------

    async def _read(self, source: object, end: EndOfStream) -> Exception | None:
        """Read a source to its end; what it raised, if it did."""
        cause: Exception | None = None
        try:
            await read(
                source,
                self._feed,
                self._emit if self._early is None else self._start_early,
                close=self._settings.close_stream,
            )
        except Exception as error:  # noqa: BLE001  # whatever a source raises ends it
            cause, end = error, "error"
        self._close(end)
        return cause

    def _feed(self, event: object) -> Sequence[Event]:
        events = self._finalizer.feed(event)
        for item in events:
            if isinstance(item, Diagnostic):
                self._diagnostics.append(item)
        return events

    def _close(self, end: EndOfStream) -> None:
        events = self._finalizer.close(end)
        self._calls = self._finalizer.calls
        for event in events:
            if isinstance(event, Diagnostic):
                self._diagnostics.append(event)
            self._tell(event)

    # -- running ----------------------------------------------------------------------------

    def _is_eager(self, name: str) -> bool:
        tool = self.registry.find((name,))
        return tool is not None and (tool.eager or self._settings.start == "eager")

    def _start_early(self, event: Event) -> None:
        """Tell an event of the stream; a call that was finalized on proof starts."""
        self._tell(event)
        if isinstance(event, CallFinalized) and self._early is not None:
            self._early.start(event.call)

    async def _work_early(self, call: ToolCall) -> None:
        await self._work(self._flows((call,), self._settings.chain), call)

    def _flows(self, calls: tuple[ToolCall, ...], chain: tuple[HookBinding, ...]) -> MakeFlow:
        return functools.partial(
            call_flow, registry=self.registry, chain=chain, budget=self._settings.budget, calls=calls
        )

    async def _run(self, calls: Sequence[ToolCall]) -> None:
        """Every client call of choice 0 gets its outcome; those of other choices and of the provider have none."""
        mine = _of_the_client(calls)
        fit: Sequence[ToolCall] = mine
        for call, count in self._settings.guard.repetitions(mine):
            self._tell(CallRepeated(call.position, count))
        if over := self._settings.guard.over_limit(mine):
            for place, outcome in over.items():
                self._complete(mine[place], outcome)
            fit = [call for place, call in enumerate(mine) if place not in over]
        await self._run_flows(fit, self._flows(mine, self._settings.chain))

    async def _run_flows(self, calls: Sequence[ToolCall], make_flow: MakeFlow) -> None:
        """Drive the flow of each call to its outcome, unless it has one.

        The same call given twice runs once. What has started on proof runs already.
        """
        first: dict[object, ToolCall] = {}
        queue: list[ToolCall] = []
        early = self._early
        for call in calls:
            same = first.setdefault(identity_of(call), call)
            if call.position in self._outcomes or (early is not None and call.position in early.positions):
                continue
            if same is call:
                queue.append(call)
            else:
                self._repeated[call.position] = (call, same)

        self._driver.begin(queue)
        work: Callable[[ToolCall], Awaitable[None]] = functools.partial(self._work, make_flow)
        if early is not None:
            work = early.in_slots(work)
        await run_pool(queue, work, workers=self._settings.max_concurrency)

    def _answer_repetitions(self) -> None:
        """Answer the same call given twice (the provider's id, name and arguments) with what came of the first.

        Without an id of the provider's, nothing tells a repetition from a second call.
        """
        for call, same in self._repeated.values():
            self._complete(call, replace(self._outcomes[same.position], call=call))

    def _count_turn(self) -> None:
        """Count turns with unfit calls; one without calls is none of them, and ends no series."""
        if not self._outcomes:
            return
        guard = self._settings.guard
        invalid = guard.end_turn(self._outcomes.values())
        if invalid:
            self._tell(TurnInvalid(invalid))
        if guard.is_stuck:
            raise TooManyInvalidTurns(f"{invalid} turns in a row had unfit calls", turn=self.turn())

    def _complete(self, call: ToolCall, outcome: Outcome) -> None:
        self._outcomes[call.position] = outcome
        if self._expires_at is None and self._settings.approval_timeout and isinstance(outcome, Deferred):
            self._expires_at = time.time() + self._settings.approval_timeout
        if self._emit is not None:
            self._emit(CallCompleted(call.position, outcome))

    async def _work(self, make_flow: MakeFlow, call: ToolCall) -> None:
        if self._emit is not None:
            call = reread(call, call.position)  # whoever was told of it may have changed its arguments
        try:
            outcome = await self._driver.drive(make_flow(call), call)
        except BaseException as error:  # noqa: BLE001  # a fault in here, or in a seam, costs one call
            propagate(error)
            started = call.position in self._driver.started
            message = results.error_text(error, may_have_run=started)
            outcome = Failed(call=call, error=error, code="internal", message=message, started=started)
        self._complete(call, outcome)

    def _outcome_of(self, call: ToolCall) -> Outcome:
        """What is known of a call by now; the same call given twice has what the first one has."""
        _, first = self._repeated.get(call.position, (call, call))
        known = self._outcomes.get(call.position) or self._outcomes.get(first.position)
        if known is None:
            return self._cancelled(call, self._driver.started.get(first.position))
        return known if known.call.position == call.position else replace(known, call=call)

    @staticmethod
    def _cancelled(call: ToolCall, begun: Job | CallEntry | None) -> Cancelled:
        doubt = "It had not started." if begun is None else "It had started and may have had an effect."
        return Cancelled(
            call=call,
            tool=begun.tool if begun else None,
            code="cancelled",
            message=f"The run was cancelled. {doubt}",
            started=begun is not None,
            key=begun.key if begun else "",
        )

    def _tell(self, event: Event) -> None:
        if self._emit is not None:
            self._emit(event)


def _of_the_client(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    return tuple(call for call in calls if call.choice == 0 and not call.provider_executed)


def _barred(call: ToolCall) -> ToolCall:
    return replace(call, executable=False, code=call.code or "stream_error")
