"""Journals: what recording costs, on the disk and in memory. Times on the disk are those of the clock, not of the CPU."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from benchmarks import streams
from benchmarks.harness import Effort, Measured, Row, awaited, seconds
from benchmarks.running import execution, noop
from toolrun import Tool, finalize
from toolrun.abc import Job, Payload
from toolrun.journals import MemoryJournal, SqliteJournal

_AT_ONCE: Final = 64
_EACH: Final = 5
_TURN: Final = "t" * 800
_OUTCOME: Final = "o" * 500
_CALL: Final = finalize(streams.chat([['{"a": 1}']], name="noop"))[0]


@contextmanager
def _directory() -> Iterator[Path]:
    """On the disk that the benchmarks lie on: what is kept in memory would say nothing."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".journal-") as name:
        yield Path(name)


async def _record(journal: SqliteJournal, key: str) -> None:
    job = Job(key=key, tool="noop", call=_CALL, arguments='{"a": 1}')
    await journal.start(job, audit=Payload(str), turn=Payload(lambda: _TURN))
    await journal.settle(key, Payload(lambda: _OUTCOME), attempt=1)


class _Raw:
    """The same rows by sqlite3 alone, with a commit for each start and each outcome."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE calls (key TEXT PRIMARY KEY, turn TEXT, outcome TEXT)")

    def record(self, key: str) -> None:
        """One call."""
        self._connection.execute("INSERT INTO calls VALUES (?, ?, NULL)", (key, _TURN))
        self._connection.execute("UPDATE calls SET outcome = ? WHERE key = ?", (_OUTCOME, key))


def together(effort: Effort) -> Measured:
    """Calls that wait for the disk at the same time, against a commit for each record."""
    count, keys = max(int(effort.seconds * 1000), 4), itertools.count()
    rates: list[tuple[float, float]] = []

    async def some(journal: SqliteJournal) -> None:
        for _ in range(_EACH):
            await _record(journal, f"r:{next(keys)}:0")

    async def many(journal: SqliteJournal) -> None:
        await asyncio.gather(*(some(journal) for _ in range(_AT_ONCE)))

    with (
        _directory() as directory,
        closing(sqlite3.connect(directory / "raw.db", isolation_level=None)) as connection,
        SqliteJournal(directory / "calls.db") as journal,
        asyncio.Runner() as loop,
    ):
        raw = _Raw(connection)
        for _ in range(effort.rounds):
            start = time.perf_counter()
            loop.run(many(journal))
            between = time.perf_counter()
            for _ in range(count):
                raw.record(f"{next(keys)}")
            rates.append((_AT_ONCE * _EACH / (between - start), count / (time.perf_counter() - between)))
    value = statistics.median(alone / ours for ours, alone in rates)
    ours, alone = (statistics.median(side) for side in zip(*rates, strict=True))
    return Measured(value, f"{ours:,.0f} against {alone:,.0f} calls/s")


def serial(effort: Effort) -> Measured:
    """One call after the other, against the same by sqlite3 alone."""
    count, keys = effort.rounds * max(int(effort.seconds * 1000), 4), itertools.count()

    async def alternate(journal: SqliteJournal, raw: _Raw) -> list[tuple[float, float]]:
        taken = []
        for _ in range(count):
            start = time.perf_counter()
            await _record(journal, f"r:{next(keys)}:0")
            between = time.perf_counter()
            raw.record(f"{next(keys)}")
            taken.append((between - start, time.perf_counter() - between))
        return taken

    with (
        _directory() as directory,
        closing(sqlite3.connect(directory / "raw.db", isolation_level=None)) as connection,
        SqliteJournal(directory / "calls.db") as journal,
        asyncio.Runner() as loop,
    ):
        sides = zip(*loop.run(alternate(journal, _Raw(connection))), strict=True)
        ours, alone = (statistics.median(taken) * 1e3 for taken in sides)
    return Measured(ours / alone, f"{ours:.3g} against {alone:.3g} ms")


def in_memory(effort: Effort) -> Measured:
    """One call of an async tool, with a journal in memory."""
    job = execution(Tool.from_function(noop), 1, timeout=None, journal=MemoryJournal())
    with asyncio.Runner() as loop:
        return Measured(seconds(awaited(loop, job), effort) * 1e6)


ROWS = (
    Row("journal", "64 calls at once into a file, against a commit a record", "x", 0.1, together),
    Row("journal-serial", "one call after the other into a file, against sqlite3 alone", "x", 2.0, serial),
    Row("call-journal", "one call with a journal in memory", "µs", 12.0, in_memory),
)
