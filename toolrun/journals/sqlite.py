"""A journal in a SQLite file: it survives the process, and by default a loss of power."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from toolrun._core.exceptions import CallConflict, JournalError
from toolrun._core.seams import CallEntry, Journal, TurnEntry, turn_of
from toolrun.journals._callers import Waiter, wake
from toolrun.journals._schema import SYNCHRONOUS
from toolrun.journals._writer import Writer

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from toolrun._core.seams import Job, Payload
    from toolrun.journals._schema import Durability

_PRUNED: Final = 100
"""Turns that are removed at most each time, so that nobody waits long for it."""

_COLUMNS: Final = "key, tool, arguments, effect, attempt, audit, epoch, outcome"


class SqliteJournal(Journal):
    """Keeps its entries in one file, with SQLite's write-ahead log beside it.

    What a verb has returned for is there after the process was killed; with `durability="power"` also after the
    machine lost its power, as far as the disk keeps its word. What waits for the disk at the same time shares one
    transaction. The file has one owner at a time, held by SQLite's own lock. Close the journal at the end:
    `async with`, `with`, or `close()`.

    Args:
        path: The file; made if it is not there. Its directory has to be there, on a local disk.
        durability: `"power"` waits for the disk (`synchronous=FULL`); `"process"` is faster, and may lose the last
            entries when the machine, not just the process, goes down.
        retention: Seconds for which finished turns are kept. Unfinished ones stay.

    Raises:
        JournalError: Another process owns the file, it cannot be written, or it is no journal, or one of a newer
            version; the message says what to do.

    Examples:
        >>> import tempfile, toolrun.journals
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     with toolrun.journals.SqliteJournal(f"{directory}/calls.db") as journal:
        ...         journal.epoch
        1
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "power",
        retention: float = 7 * 24 * 3600.0,
    ) -> None:
        """See the class."""
        if durability not in SYNCHRONOUS:
            raise JournalError(f"durability must be one of {tuple(SYNCHRONOUS)}, not {durability!r}")
        if not retention >= 0:
            raise JournalError(f"retention must be seconds, not {retention!r}")
        self._path = Path(path)
        self._retention = retention
        self._waiters: dict[str, list[Waiter]] = {}
        self._writer = Writer(self._path, durability)
        self._writer.note(self._prune)

    @property
    def epoch(self) -> int:
        """See `Journal`."""
        return self._writer.epoch

    async def start(self, job: Job, *, audit: Payload, turn: Payload) -> CallEntry | None:
        """See `Journal`."""
        arguments, data = _storable(job.arguments), turn.text
        row = (job.tool, arguments, job.effect, job.attempt, audit.text)

        def work(connection: sqlite3.Connection) -> CallEntry | None:
            entry = _entry(connection, job.key)
            if entry is not None:
                if entry.attempt and (entry.tool, entry.arguments) != (job.tool, arguments):
                    raise CallConflict(key=job.key, tool=job.tool)
                if entry.outcome is not None or job.attempt <= entry.attempt:
                    return entry
            key = turn_of(job.key)
            connection.execute(
                "INSERT INTO turns (key, data, created) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET finished = NULL",
                (key, data, time.time()),
            )
            connection.execute(
                f"INSERT INTO calls ({_COLUMNS}, turn) VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?)"  # noqa: S608  # a constant
                " ON CONFLICT DO UPDATE SET attempt = excluded.attempt, epoch = excluded.epoch",
                (job.key, *row, self.epoch, key),
            )
            return None

        return await self._writer.do(work)

    async def settle(self, key: str, outcome: Payload, *, attempt: int | None = None) -> bool:
        """See `Journal`."""
        text = outcome.text

        def work(connection: sqlite3.Connection) -> bool:
            updated = connection.execute(
                "UPDATE calls SET outcome = :text WHERE key = :key AND outcome IS NULL"
                " AND (:attempt IS NULL OR (attempt = :attempt AND epoch = :epoch))",
                {"text": text, "key": key, "attempt": attempt, "epoch": self.epoch},
            )
            if updated.rowcount:
                return True
            if _entry(connection, key) is not None:
                return False
            if attempt is not None or not _has_turn(connection, turn_of(key)):
                raise JournalError(f"journal {self._path}: it has no start of {key}")
            connection.execute(
                f"INSERT INTO calls ({_COLUMNS}, turn) VALUES (?, '', '', 'once', 0, '', ?, ?, ?)",  # noqa: S608  # as above
                (key, self.epoch, text, turn_of(key)),
            )
            return True

        def tell(settled: bool) -> None:
            if settled:
                wake(self._waiters.pop(key, ()))

        return await self._writer.do(work, then=tell)

    async def outcome(self, key: str) -> str:
        """See `Journal`."""
        waiter = Waiter()
        self._waiters.setdefault(key, []).append(waiter)  # before it is read, so that nothing comes in between
        try:
            while (text := (await self._writer.do(lambda connection: self._find(connection, key))).outcome) is None:
                await waiter.wait()
        finally:
            with suppress(KeyError, ValueError):
                self._waiters[key].remove(waiter)
                if not self._waiters[key]:
                    del self._waiters[key]
        return text

    async def keep(self, turn: str, data: Payload) -> None:
        """See `Journal`."""
        text = data.text
        await self._writer.do(
            lambda connection: connection.execute(
                "INSERT INTO turns (key, data, created) VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET data = excluded.data, finished = NULL",
                (turn, text, time.time()),
            )
        )

    async def finish(self, turn: str) -> None:
        """See `Journal`."""
        self._writer.note(
            lambda connection: connection.execute("UPDATE turns SET finished = ? WHERE key = ?", (time.time(), turn))
        )
        self._writer.note(self._prune)

    async def unsettled(self) -> Sequence[str]:
        """See `Journal`."""
        return await self._keys("SELECT key FROM turns WHERE finished IS NULL ORDER BY created, rowid")

    async def turns(self) -> Sequence[str]:
        """The keys of all turns that are kept, the oldest first.

        Raises:
            JournalError: It cannot be read.
        """
        return await self._keys("SELECT key FROM turns ORDER BY created, rowid")

    async def turn(self, key: str) -> TurnEntry | None:
        """See `Journal`."""

        def work(connection: sqlite3.Connection) -> TurnEntry | None:
            row = connection.execute("SELECT data, finished FROM turns WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            calls = connection.execute(
                f"SELECT {_COLUMNS} FROM calls WHERE turn = ? ORDER BY rowid",  # noqa: S608  # as above
                (key,),
            )
            return TurnEntry(key, row[0], {call[0]: CallEntry(*call) for call in calls}, row[1] is not None)

        return await self._writer.do(work)

    async def aclose(self) -> None:
        """See `Journal`."""
        self.close()

    def close(self) -> None:
        """The same, for code without an event loop; it waits for the last write."""
        self._writer.close()
        while self._waiters:
            wake(self._waiters.popitem()[1])

    def __enter__(self) -> Self:
        """Leave the block to close the journal."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    async def _keys(self, query: str) -> Sequence[str]:
        return await self._writer.do(lambda connection: [key for (key,) in connection.execute(query)])

    def _find(self, connection: sqlite3.Connection, key: str) -> CallEntry:
        entry = _entry(connection, key)
        if entry is None:
            raise JournalError(f"journal {self._path}: it has no start of {key}")
        return entry

    def _prune(self, connection: sqlite3.Connection) -> None:
        """Remove what is over its time; SQLite uses the room again."""
        connection.execute(
            "DELETE FROM turns WHERE key IN (SELECT key FROM turns WHERE finished < ? LIMIT ?)",
            (time.time() - self._retention, _PRUNED),
        )


def _entry(connection: sqlite3.Connection, key: str) -> CallEntry | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM calls WHERE key = ?", (key,)).fetchone()  # noqa: S608  # as above
    return None if row is None else CallEntry(*row)


def _has_turn(connection: sqlite3.Connection, key: str) -> bool:
    return connection.execute("SELECT 1 FROM turns WHERE key = ?", (key,)).fetchone() is not None


def _storable(text: str) -> str:
    """The same JSON, with halves of surrogate pairs escaped: UTF-8 cannot write them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(json.loads(text))
    return text
