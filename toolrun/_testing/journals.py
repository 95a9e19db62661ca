"""The contract suite for journals."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import pytest

from toolrun._core.calls import CallStatus, ToolCall
from toolrun._core.exceptions import CallConflict, JournalError
from toolrun._core.seams import CallEntry, Job, Journal, Payload, TurnEntry

if TYPE_CHECKING:
    from toolrun._core.calls import Effect

_SECONDS: Final = 30.0
"""How long a test waits for what has to come."""

_LARGE: Final = 4_000_000


class JournalSuite:
    """What every journal has to do.

    Examples:
        >>> from toolrun.journals import SqliteJournal
        >>> from toolrun.testing import JournalSuite
        >>> class TestSqliteJournal(JournalSuite):
        ...     async def open(self, directory):
        ...         return SqliteJournal(directory / "journal.db")
        ...     async def reopen(self, journal, directory):
        ...         await journal.aclose()
        ...         return SqliteJournal(directory / "journal.db")
    """

    pytestmark = pytest.mark.anyio

    async def open(self, directory: Path) -> Journal:
        """Make an empty journal.

        Args:
            directory: One of its own, empty.
        """
        raise NotImplementedError

    async def reopen(self, journal: Journal, directory: Path) -> Journal:
        """Open the same journal again, as the next process would.

        Args:
            journal: The one that was open; it is not used again, except to show that it is fenced.
            directory: As for `open`.
        """
        raise NotImplementedError

    @pytest.fixture
    async def journal(self, tmp_path: Path) -> AsyncIterator[Journal]:
        """An empty journal, closed after the test."""
        journal = await self.open(tmp_path)
        yield journal
        await journal.aclose()

    async def test_a_start_is_recorded_with_its_turn(self, journal: Journal) -> None:
        """Once it is recorded, everything that recovery needs is there."""
        assert await journal.start(_job("r:t:0"), audit=_text("audit"), turn=_text("turn")) is None

        entry = CallEntry("r:t:0", "charge", '{"n":1}', "once", 1, "audit", journal.epoch, None)
        assert await journal.turn("r:t") == TurnEntry("r:t", "turn", {"r:t:0": entry}, finished=False)

    async def test_the_same_start_again_is_refused(self, journal: Journal) -> None:
        """The one who asks gets what is there."""
        await _start(journal, "r:t:0")

        entry = await journal.start(_job("r:t:0"), audit=_text("other"), turn=_text("other"))

        assert entry == CallEntry("r:t:0", "charge", '{"n":1}', "once", 1, "audit", journal.epoch, None)

    @pytest.mark.parametrize(("tool", "arguments"), [("charge", '{"n":2}'), ("refund", '{"n":1}')])
    async def test_one_key_is_for_one_call(self, journal: Journal, tool: str, arguments: str) -> None:
        """Another tool, or other arguments: a conflict, and nothing changes; not even as a later attempt."""
        await _start(journal, "r:t:0")
        before = await journal.turn("r:t")

        with pytest.raises(CallConflict):
            await journal.start(_job("r:t:0", tool, arguments, attempt=2), audit=_text("b"), turn=_text("c"))

        assert await journal.turn("r:t") == before

    async def test_the_first_outcome_stands(self, journal: Journal) -> None:
        """Whoever comes second is told so."""
        await _start(journal, "r:t:0")

        assert await journal.settle("r:t:0", _text("first"), attempt=1)
        assert not await journal.settle("r:t:0", _text("second"), attempt=1)
        assert not await journal.settle("r:t:0", _text("third"))

        entry = await journal.start(_job("r:t:0", attempt=2), audit=_text(""), turn=_text(""))
        assert entry is not None
        assert (entry.outcome, entry.attempt) == ("first", 1)

    async def test_an_attempt_that_was_taken_over_is_fenced(self, journal: Journal) -> None:
        """The outcome of an attempt counts as long as no later one has begun."""
        await _start(journal, "r:t:0")
        await _start(journal, "r:t:0", attempt=2)

        assert not await journal.settle("r:t:0", _text("late"), attempt=1)
        assert await journal.settle("r:t:0", _text("in time"), attempt=2)
        assert await journal.outcome("r:t:0") == "in time"

    async def test_a_call_that_never_started_can_be_settled(self, journal: Journal) -> None:
        """A refused call has an outcome too; its turn has to be known."""
        await _start(journal, "r:t:0")

        assert await journal.settle("r:t:1", _text("refused"))
        assert await journal.outcome("r:t:1") == "refused"
        with pytest.raises(JournalError):
            await journal.settle("r:other:0", _text("refused"))

    async def test_waiting_for_an_outcome(self, journal: Journal) -> None:
        """Everybody who waits gets the one that was recorded."""
        await _start(journal, "r:t:0")
        got: list[str] = []

        async def wait() -> None:
            got.append(await journal.outcome("r:t:0"))

        with anyio.fail_after(_SECONDS):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                await journal.settle("r:t:0", _text("done"), attempt=1)
        assert got == ["done"] * 3

    async def test_waiting_for_what_is_not_there(self, journal: Journal) -> None:
        """A key that nobody started will never have an outcome."""
        with pytest.raises(JournalError):
            await journal.outcome("r:t:0")

    async def test_unsettled_turns(self, journal: Journal) -> None:
        """The oldest first; a turn is no longer one of them once it is finished."""
        for turn in ("r:b", "r:a", "r:c"):
            await _start(journal, f"{turn}:0")
        await journal.finish("r:a")
        await journal.finish("r:unknown")

        await journal.keep("r:d", _text("waits"))  # what follows a note has it written

        assert list(await journal.unsettled()) == ["r:b", "r:c", "r:d"]
        finished = await journal.turn("r:a")
        assert finished is not None
        assert finished.finished

    async def test_keeping_a_turn(self, journal: Journal) -> None:
        """What is kept of it later counts, and its calls stay."""
        await _start(journal, "r:t:0")

        await journal.keep("r:t", _text("more"))
        await _start(journal, "r:t:1")

        turn = await journal.turn("r:t")
        assert turn is not None
        assert (turn.data, list(turn.calls)) == ("more", ["r:t:0", "r:t:1"])

    async def test_a_turn_that_is_not_there(self, journal: Journal) -> None:
        """Looking for it is no error."""
        assert await journal.turn("r:t") is None

    async def test_many_at_once(self, journal: Journal) -> None:
        """Of any number of the same start one is the first, whatever goes on beside it."""
        firsts: Counter[str] = Counter()

        async def start(key: str) -> None:
            if await journal.start(_job(key), audit=_text(""), turn=_text("")) is None:
                firsts[key] += 1
                assert await journal.settle(key, _text(key), attempt=1)

        keys = [f"r:{number}:0" for number in range(100)]
        async with anyio.create_task_group() as group:
            for key in keys * 3:
                group.start_soon(start, key)

        assert firsts == dict.fromkeys(keys, 1)
        assert [await journal.outcome(key) for key in keys] == keys

    async def test_a_conflict_costs_nobody_else(self, journal: Journal) -> None:
        """What is refused at the same moment as others are recorded takes none of them along."""
        await _start(journal, "r:t:0")
        conflicts: list[str] = []

        async def start(key: str, arguments: str) -> None:
            try:
                await journal.start(_job(key, arguments=arguments), audit=_text(""), turn=_text(""))
            except CallConflict as error:
                conflicts.append(error.key)

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(start, f"r:t:{number}", '{"n":2}')

        assert conflicts == ["r:t:0"]
        turn = await journal.turn("r:t")
        assert turn is not None
        assert len(turn.calls) == 20  # noqa: PLR2004  # as many as above

    @pytest.mark.parametrize(
        "text",
        ["x" * _LARGE, '{"s": "Zo\\u00eb \u4e2d\u6587 \U0001f600\\u0000"}', ""],
        ids=["large", "unicode", "empty"],
    )  # fmt: skip
    async def test_texts_come_back_as_they_were(self, journal: Journal, text: str) -> None:
        """Whatever their size, and whatever is in them."""
        job = _job("r:t:0", arguments=json.dumps({"s": text}, ensure_ascii=False))
        await journal.start(job, audit=_text(text), turn=_text(text))
        await journal.settle("r:t:0", _text(text), attempt=1)

        turn = await journal.turn("r:t")

        assert turn is not None
        call = turn.calls["r:t:0"]
        assert (turn.data, call.audit, call.outcome, call.arguments) == (text, text, text, job.arguments)

    async def test_half_of_a_surrogate_pair(self, journal: Journal) -> None:
        """Arguments are kept with the same meaning, also where UTF-8 cannot write them."""
        job = _job("r:t:0", arguments='{"s": "\ud83d"}')
        await journal.start(job, audit=_text(""), turn=_text(""))

        entry = await journal.start(job, audit=_text(""), turn=_text(""))

        assert entry is not None
        assert json.loads(entry.arguments) == {"s": "\ud83d"}

    async def test_a_wait_can_be_cancelled(self, journal: Journal) -> None:
        """The journal goes on."""
        await _start(journal, "r:t:0")
        with anyio.move_on_after(0):
            await journal.outcome("r:t:0")
        with anyio.move_on_after(0):
            await journal.start(_job("r:u:0"), audit=_text(""), turn=_text(""))

        assert await journal.settle("r:t:0", _text("done"), attempt=1)
        assert await journal.outcome("r:t:0") == "done"

    async def test_another_event_loop(self, journal: Journal) -> None:
        """Threads with loops of their own share a journal."""
        await _start(journal, "r:t:0")
        started = threading.Event()

        async def wait() -> str:
            started.set()
            return await journal.outcome("r:t:0")

        async def settle() -> None:
            await anyio.to_thread.run_sync(started.wait)
            await journal.settle("r:t:0", _text("done"), attempt=1)

        with anyio.fail_after(_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(settle)
                assert await anyio.to_thread.run_sync(anyio.run, wait) == "done"

    async def test_closing(self, journal: Journal) -> None:
        """A closed journal takes nothing, those who wait are told, and closing it again does nothing."""
        await _start(journal, "r:t:0")
        errors: list[JournalError] = []

        async def wait() -> None:
            try:
                await journal.outcome("r:t:0")
            except JournalError as error:
                errors.append(error)

        with anyio.fail_after(_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                await journal.aclose()

        await journal.aclose()
        assert len(errors) == 1
        with pytest.raises(JournalError):
            await _start(journal, "r:t:1")

    async def test_what_was_recorded_outlives_the_owner(self, journal: Journal, tmp_path: Path) -> None:
        """The next owner has a higher epoch, and finds everything, an open start included."""
        await _start(journal, "r:t:0")
        await _start(journal, "r:t:1")
        await journal.settle("r:t:1", _text("done"), attempt=1)
        before = await journal.turn("r:t")

        async with await self.reopen(journal, tmp_path) as later:
            assert later.epoch > journal.epoch
            assert await later.turn("r:t") == before
            assert list(await later.unsettled()) == ["r:t"]

    async def test_an_owner_that_was_replaced_is_fenced(self, journal: Journal, tmp_path: Path) -> None:
        """What it still wants to write is refused; the new owner writes for its own starts alone."""
        await _start(journal, "r:t:0")

        async with await self.reopen(journal, tmp_path) as later:
            with pytest.raises(JournalError):
                await journal.settle("r:t:0", _text("late"), attempt=1)
            assert not await later.settle("r:t:0", _text("not its own"), attempt=1)
            await _start(later, "r:t:0", attempt=2)
            assert await later.settle("r:t:0", _text("its own"), attempt=2)
            assert await later.outcome("r:t:0") == "its own"

    async def test_somebody_decides_what_is_open(self, journal: Journal, tmp_path: Path) -> None:
        """Without an attempt, an outcome is taken for whatever owner's start."""
        await _start(journal, "r:t:0")

        async with await self.reopen(journal, tmp_path) as later:
            assert await later.settle("r:t:0", _text("looked up"))
            assert await later.outcome("r:t:0") == "looked up"


def _text(text: str) -> Payload:
    return Payload(lambda: text)


def _job(
    key: str, tool: str = "charge", arguments: str = '{"n":1}', *, attempt: int = 1, effect: Effect = "once"
) -> Job:
    return Job(key=key, tool=tool, call=_call(tool, arguments), arguments=arguments, effect=effect, attempt=attempt)


def _call(tool: str, arguments: str) -> ToolCall:
    return ToolCall(
        id="call_1", name=tool, raw_arguments=arguments, arguments={}, status=CallStatus.OK, executable=True
    )


def _start(journal: Journal, key: str, *, attempt: int = 1) -> Awaitable[CallEntry | None]:
    return journal.start(_job(key, attempt=attempt), audit=_text("audit"), turn=_text("turn"))
