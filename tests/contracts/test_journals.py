"""The journals that come with the library pass the suite that others are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolrun.journals import MemoryJournal, SqliteJournal
from toolrun.testing import JournalSuite

if TYPE_CHECKING:
    from pathlib import Path

    from toolrun.abc import Journal


class TestMemoryJournal(JournalSuite):
    async def open(self, directory: Path) -> Journal:
        return MemoryJournal()

    async def reopen(self, journal: Journal, directory: Path) -> Journal:
        assert isinstance(journal, MemoryJournal)
        return journal.reopened()


class TestSqliteJournal(JournalSuite):
    async def open(self, directory: Path) -> Journal:
        return SqliteJournal(directory / "journal.db", durability="process")

    async def reopen(self, journal: Journal, directory: Path) -> Journal:
        await journal.aclose()
        return SqliteJournal(directory / "journal.db", durability="process")


class Forgetful(MemoryJournal):
    """A journal that takes every start for the first."""

    async def start(self, job, *, audit, turn):
        await super().start(job, audit=audit, turn=turn)


class Overwriting(MemoryJournal):
    """A journal that lets anybody settle."""

    async def settle(self, key, outcome, *, attempt=None):
        await super().settle(key, outcome)
        return True


@pytest.mark.parametrize(
    ("broken", "caught_by"),
    [
        (Forgetful, "test_the_same_start_again_is_refused"),
        (Overwriting, "test_the_first_outcome_stands"),
        (Overwriting, "test_an_attempt_that_was_taken_over_is_fenced"),
    ],
)
async def test_the_suite_catches(broken: type[MemoryJournal], caught_by: str):
    """A journal that is wrong does not pass."""
    with pytest.raises(AssertionError):
        await getattr(JournalSuite(), caught_by)(broken())
