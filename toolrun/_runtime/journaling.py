"""`TurnRecord`: what one turn has in the runner's journal, and what follows from what is there already."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import anyio

from toolrun._core.exceptions import CallConflict, JournalError, RegistrationError
from toolrun._core.outcomes import Deferred, Failed
from toolrun._core.seams import Executor, Journal, Payload
from toolrun._runtime.attempt import conflicting, not_run, run_attempts, was_begun
from toolrun._runtime.packing import audit_text, outcome_text, read_outcome, turn_text
from toolrun._runtime.pool import run_pool
from toolrun._runtime.recovery import decide, interrupted, read_left

if TYPE_CHECKING:
    from collections import Counter

    from toolrun._core.calls import ValidatedCall
    from toolrun._core.outcomes import Outcome
    from toolrun._core.seams import CallEntry, Job
    from toolrun._core.tools import Tool
    from toolrun._runtime.attempt import Emit, MakeJob
    from toolrun._runtime.recovery import Left, Verify
    from toolrun._runtime.turn import Turn

_LOST: Final[WeakKeyDictionary[Journal, set[str]]] = WeakKeyDictionary()
"""Keys of calls that began here, and whose outcome could not be recorded: who joined them would wait for ever."""

_KNOWN: Final = Payload(str)
"""In place of a turn that the journal has already."""


def check_journal(journal: object, verify: object, start: str) -> None:
    """Refuse a journal, and what goes with it, that cannot be used.

    Raises:
        RegistrationError: It is none, or other options do not go with it.
    """
    if journal is not None and not isinstance(journal, Journal):
        raise RegistrationError(f"journal must be a Journal, not {journal!r}")
    if journal is not None and start == "eager":
        raise RegistrationError('a journal keeps a turn before its first start: Runner(…, start="end") with one')
    if verify is not None and (journal is None or not callable(verify)):
        raise RegistrationError("verify must be callable, and is asked only about what a journal has")


class Execution(NamedTuple):
    """One call, ready to run.

    Attributes:
        validated: The call.
        tool: Its tool.
        executor: What runs its attempts.
        make_job: Makes the job of an attempt, counted from 1.
        emit: Told of every start and end of an attempt.
        write: Writes the value of an outcome down.
    """

    validated: ValidatedCall
    tool: Tool
    executor: Executor
    make_job: MakeJob
    emit: Emit | None
    write: Callable[[Outcome], Awaitable[Outcome]]


class TurnRecord:
    """Records one turn: it before its first start, each start before the tool, each outcome before it is returned.

    Args:
        journal: Where.
        key: Run and turn.
        snapshot: Makes the turn as it stands.
        running: Counts the runs of each turn that runs, by its key.
        verify: See `Runner`.
        deps: Given to `verify`.
    """

    def __init__(
        self,
        journal: Journal,
        key: str,
        snapshot: Callable[[], Turn],
        *,
        running: Counter[str],
        verify: Verify | None,
        deps: object,
    ) -> None:
        self.journal = journal
        self.settled: set[int] = set()
        self._key = key
        self._snapshot = snapshot
        self._turn = Payload(self._text)
        self._begun = False
        self._taken_over = False
        self._here: set[int] = set()
        self._lost = _LOST.setdefault(journal, set())
        self._running = running
        self._verify = verify
        self._deps = deps

    async def follow(self, running: Coroutine[Any, Any, Turn], turn: Callable[[], Turn]) -> Turn:
        """Await a turn, and record how it ends: also if it is cancelled, or raises.

        Raises:
            JournalError: Calls of it wait for an answer, and it could not be kept.
            BaseException: What it raises.
        """
        self._running[self._key] += 1
        try:
            done = await running
        except BaseException:
            self._running[self._key] -= 1
            others_go_on = self._running[self._key] > 0
            with anyio.CancelScope(shield=True), suppress(JournalError):
                await (self._leave if self._taken_over or others_go_on else self._end)(turn())
            raise
        else:
            self._running[self._key] -= 1
            await self._end(done)
            return done
        finally:
            if not self._running[self._key]:
                del self._running[self._key]

    async def keep(self) -> None:
        """Have the turn in the journal before anything of it goes on.

        Raises:
            JournalError: It could not be kept.
        """
        self._begun = True
        await self.journal.keep(self._key, Payload(self._text))
        self._turn = _KNOWN

    async def go_on(self) -> Left | None:
        """Keep a turn that waited for answers, and see what came of its calls since; None if nothing is known of that.

        Raises:
            JournalError: It could not be kept.
        """
        await self.keep()
        entry = await self.journal.turn(self._key)
        left = None if entry is None else read_left(entry)
        self.settled.update(() if left is None else left.recorded)
        return left

    def take_over(self, left: Left) -> None:
        """Go on with a turn that the journal has."""
        self._begun = True
        self._turn = _KNOWN
        self._taken_over = True
        self.settled.update(left.recorded)

    async def run(self, execution: Execution) -> Outcome:
        """Run a call, unless the journal knows better. What the journal cannot take is a failure of the call."""
        validated, make_job = execution.validated, execution.make_job
        audit = Payload(partial(audit_text, validated.grade, validated.repairs))
        first, begun = make_job(1), None
        try:
            while (entry := await self.start(first, audit)) is not None:
                begun = entry
                known = await self._known(entry, execution)
                if known is not None:
                    return known
                first = make_job(entry.attempt + 1)
        except CallConflict as error:
            self.settled.add(first.call.position)  # what is recorded under this key is another call's
            return conflicting(first, error)
        except JournalError as error:
            if begun is not None:
                return interrupted(begun, validated, code="journal", error=error)
            return not_run(first, error, "journal", "it could not be recorded.")
        before = first.attempt - 1
        recorded = _Recorded(self, execution.executor, first, audit)
        outcome = await run_attempts(
            lambda count: first if count == 1 else make_job(count + before),
            execution.tool,
            recorded,
            execution.emit,
        )
        if before:
            outcome = replace(outcome, attempts=recorded.attempt)
        if begun is not None and begun.effect != "once" and not was_begun(outcome):
            # Not now; but it was begun before, and nobody knows what came of that.
            outcome = interrupted(begun, validated, code=outcome.code or "executor", error=outcome.error)
        return await self._settle(first.key, await execution.write(outcome), attempt=recorded.attempt)

    async def start(self, job: Job, audit: Payload) -> CallEntry | None:
        """Record a start, and with the first one the turn; an entry says why it may not be.

        Raises:
            CallConflict: As the journal says.
            JournalError: As the journal says.
        """
        self._begun = True
        entry = await self.journal.start(job, audit=audit, turn=self._turn)
        self._turn = _KNOWN
        if entry is None:
            self._here.add(job.call.position)
        return entry

    async def _known(self, entry: CallEntry, execution: Execution) -> Outcome | None:
        """What is, or becomes, of a call that was begun before; None if it may run again."""
        call = execution.validated.call
        is_lost = entry.key in self._lost
        if entry.outcome is not None or (entry.epoch == self.journal.epoch and not is_lost):
            self.settled.add(call.position)  # not by this run, also if it is cancelled while it waits
            text = entry.outcome if entry.outcome is not None else await self.journal.outcome(entry.key)
            return read_outcome(text, call)
        if execution.executor.durable:
            return None  # it knows by itself what became of it
        self._lost.discard(entry.key)  # before anything is awaited: others join this one
        try:
            outcome = await decide(entry, execution.validated, execution.tool, self._verify, self._deps)
        except BaseException:
            self._lost.update([entry.key] * is_lost)
            raise
        if outcome is None:
            return None
        return await self._settle(entry.key, await execution.write(outcome), attempt=None)

    async def _settle(self, key: str, outcome: Outcome, *, attempt: int | None) -> Outcome:
        """Record an outcome, and return the one that stands."""
        try:
            if not await self.journal.settle(key, Payload(partial(outcome_text, outcome)), attempt=attempt):
                outcome = read_outcome(await self.journal.outcome(key), outcome.call)
        except JournalError as error:
            self._lost.add(key)
            return _not_recorded(key, outcome, error)
        self.settled.add(outcome.call.position)
        return outcome

    async def _end(self, turn: Turn) -> None:
        """Record the outcomes of calls that never began, and that the turn is handed over, or waits."""
        if not self._begun and not turn.pending:
            return
        if turn.pending:
            await self.keep()
        rest = [
            outcome
            for outcome in turn.outcomes
            if outcome.call.position not in self.settled and not isinstance(outcome, Deferred)
        ]
        await self._settle_all(rest)
        if not turn.pending:
            with suppress(JournalError):
                await self.journal.finish(self._key)

    async def _leave(self, turn: Turn) -> None:
        """Record what became of the calls that began here, and leave the others to whoever runs the turn too, or recovers it."""
        here = [outcome for outcome in turn.outcomes if outcome.call.position in self._here - self.settled]
        await self._settle_all(here)

    async def _settle_all(self, outcomes: Sequence[Outcome]) -> None:
        async def settle(outcome: Outcome) -> None:
            key = f"{self._key}:{outcome.call.position}"
            try:
                await self.journal.settle(key, Payload(partial(outcome_text, outcome)))
                self._lost.discard(key)
            except JournalError:
                # Without its outcome a call that did not begin is judged again, the same way.
                self._lost.update([key] * (outcome.call.position in self._here))

        await run_pool(outcomes, settle, workers=len(outcomes))

    def _text(self) -> str:
        return turn_text(self._snapshot())


class _Recorded(Executor):
    """Records the start of every further attempt before it is run."""

    def __init__(self, record: TurnRecord, inner: Executor, first: Job, audit: Payload) -> None:
        self.attempt = first.attempt
        self.durable = inner.durable
        self._record = record
        self._inner = inner
        self._audit = audit

    async def execute(self, job: Job) -> Outcome:
        if job.attempt > self.attempt:
            entry = await self._record.start(job, self._audit)
            if entry is not None:
                return read_outcome(entry.outcome or await self._record.journal.outcome(job.key), job.call)
            self.attempt = job.attempt
        return await self._inner.execute(job)


def _not_recorded(key: str, outcome: Outcome, error: JournalError) -> Outcome:
    """What the agent sees of an outcome that would be another one after a crash."""
    return Failed(
        call=outcome.call,
        tool=outcome.tool,
        value=outcome.value,
        error=error,
        code="journal",
        message="The tool ran, but what came of it could not be recorded.",
        repairs=outcome.repairs,
        grade=outcome.grade,
        arguments=outcome.arguments,
        attempts=outcome.attempts,
        started=True,
        key=key,
    )
