"""A journal in memory: for joins and recorded outcomes within one process, and for tests."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from toolrun._core.exceptions import CallConflict, JournalError
from toolrun._core.seams import CallEntry, Journal, TurnEntry, turn_of
from toolrun.journals._callers import Waiter, wake

if TYPE_CHECKING:
    from toolrun._core.calls import Effect
    from toolrun._core.seams import Job, Payload


class MemoryJournal(Journal):
    """Keeps its entries in memory: what a process leaves when it dies is gone.

    Args:
        max_turns: How many finished turns are kept; the oldest go first. Unfinished ones stay.
    """

    def __init__(self, *, max_turns: int = 1000) -> None:
        """See the class."""
        self._store = _Store(max_turns)
        self._epoch = self._store.epoch
        self._closed = False

    @property
    def epoch(self) -> int:
        """See `Journal`."""
        return self._epoch

    def reopened(self) -> MemoryJournal:
        """A journal of the next epoch over the same entries, as the next process would find them; this one is fenced."""
        other = MemoryJournal()
        with self._store.lock:
            self._store.epoch += 1
            other._store = self._store  # of this class
            other._epoch = self._store.epoch
        return other

    async def start(self, job: Job, *, audit: Payload, turn: Payload) -> CallEntry | None:
        """See `Journal`."""
        with self._mine() as store:
            key = turn_of(job.key)
            kept = store.turns.get(key)
            if kept is None:
                kept = store.turns[key] = _Turn(turn)
            call = kept.calls.get(job.key)
            if call is None:
                kept.calls[job.key] = _Call(job.tool, job.arguments, job.effect, job.attempt, audit, self._epoch)
                store.reopen(key, kept)
                return None
            if call.attempt and (call.tool, call.arguments) != (job.tool, job.arguments):
                raise CallConflict(key=job.key, tool=job.tool)
            if call.outcome is not None or job.attempt <= call.attempt:
                return call.entry(job.key)
            call.attempt, call.epoch = job.attempt, self._epoch
            store.reopen(key, kept)
            return None

    async def settle(self, key: str, outcome: Payload, *, attempt: int | None = None) -> bool:
        """See `Journal`."""
        with self._mine() as store:
            turn = store.turns.get(turn_of(key))
            call = None if turn is None else turn.calls.get(key)
            if call is None:
                if turn is None or attempt is not None:
                    raise JournalError(f"the journal in memory has no start of {key}")
                call = turn.calls[key] = _Call("", "", "once", 0, None, self._epoch)
            if call.outcome is not None or (
                attempt is not None and (attempt, self._epoch) != (call.attempt, call.epoch)
            ):
                return False
            call.outcome = outcome
        wake(call.waiters)
        return True

    async def outcome(self, key: str) -> str:
        """See `Journal`."""
        with self._mine() as store:
            turn = store.turns.get(turn_of(key))
            call = None if turn is None else turn.calls.get(key)
            if call is None:
                raise JournalError(f"the journal in memory has no start of {key}")
            if (recorded := call.text()) is not None:
                return recorded
            waiter = Waiter()
            call.waiters.append(waiter)
        try:
            await waiter.wait()
        finally:
            call.waiters.remove(waiter)
        if (recorded := call.text()) is None:
            raise JournalError("the journal was closed")
        return recorded

    async def keep(self, turn: str, data: Payload) -> None:
        """See `Journal`."""
        with self._mine() as store:
            kept = store.turns.setdefault(turn, _Turn(data))
            kept.data = data
            store.reopen(turn, kept)

    async def finish(self, turn: str) -> None:
        """See `Journal`."""
        with self._mine() as store:
            store.finish(turn)

    async def unsettled(self) -> tuple[str, ...]:
        """See `Journal`."""
        with self._mine() as store:
            return tuple(key for key, turn in store.turns.items() if not turn.finished)

    async def turn(self, key: str) -> TurnEntry | None:
        """See `Journal`."""
        with self._mine() as store:
            turn = store.turns.get(key)
            if turn is None:
                return None
            calls = {name: call.entry(name) for name, call in turn.calls.items()}
            return TurnEntry(key, turn.data.text, calls, turn.finished)

    async def aclose(self) -> None:
        """See `Journal`."""
        with self._store.lock:
            self._closed = True
            waiters = [
                waiter for turn in self._store.turns.values() for call in turn.calls.values() for waiter in call.waiters
            ]
        wake(waiters)

    def _mine(self) -> _Store:
        """The entries, with their lock held until the block of them is left.

        Raises:
            JournalError: The journal was closed, or opened again elsewhere.
        """
        store = self._store
        store.lock.acquire()
        if not self._closed and self._epoch == store.epoch:
            return store
        store.lock.release()
        if self._closed:
            raise JournalError("the journal was closed")
        raise JournalError(f"the journal in memory was opened again since: this is epoch {self._epoch} of it")


class _Call:
    """What is held of one call."""

    __slots__ = ("arguments", "attempt", "audit", "effect", "epoch", "outcome", "tool", "waiters")

    def __init__(
        self, tool: str, arguments: str, effect: Effect, attempt: int, audit: Payload | None, epoch: int
    ) -> None:
        self.tool = tool
        self.arguments = arguments
        self.effect: Effect = effect
        self.attempt = attempt
        self.audit = audit
        self.epoch = epoch
        self.outcome: Payload | None = None
        self.waiters: list[Waiter] = []

    def entry(self, key: str) -> CallEntry:
        return CallEntry(
            key,
            self.tool,
            self.arguments,
            self.effect,
            self.attempt,
            "" if self.audit is None else self.audit.text,
            self.epoch,
            self.text(),
        )

    def text(self) -> str | None:
        return None if self.outcome is None else self.outcome.text


class _Turn:
    """What is held of one turn."""

    __slots__ = ("calls", "data", "finished")

    def __init__(self, data: Payload) -> None:
        self.data = data
        self.calls: dict[str, _Call] = {}
        self.finished = False


class _Store:
    """The entries of all epochs of one journal. Leaving a block of it releases its lock."""

    def __init__(self, max_turns: int) -> None:
        self.turns: dict[str, _Turn] = {}
        self.epoch = 1
        self.lock = threading.Lock()
        self._max_turns = max_turns
        self._finished: dict[str, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.lock.release()

    def finish(self, key: str) -> None:
        turn = self.turns.get(key)
        if turn is None:
            return
        turn.finished = True
        self._finished[key] = None
        if len(self._finished) > self._max_turns:
            oldest = next(iter(self._finished))
            del self._finished[oldest], self.turns[oldest]

    def reopen(self, key: str, turn: _Turn) -> None:
        if turn.finished:
            turn.finished = False
            del self._finished[key]
