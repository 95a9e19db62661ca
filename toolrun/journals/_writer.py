"""One thread that does everything with a connection; what waits at the same time shares a transaction."""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from toolrun._core.exceptions import JournalError
from toolrun.journals._callers import Waiter, wake
from toolrun.journals._schema import explained, open_file, primary_code

if TYPE_CHECKING:
    from pathlib import Path

    from toolrun.journals._schema import Durability

T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], T]

_BATCH: Final = 256
"""How many may share a transaction."""


class _Order:
    """Work that a task waits for."""

    __slots__ = ("error", "result", "then", "waiter", "work")

    def __init__(self, work: Work[Any], then: Callable[[Any], object] | None) -> None:
        self.work = work
        self.then = then
        self.waiter = Waiter()
        self.result: object = None
        self.error: BaseException | None = None


class Writer:
    """Owns the connection of a journal, in a thread of its own.

    While one commit waits for the disk, others queue up; the next commit is for all of them. One that fails takes
    no other along: each is done again alone then, notes too.

    Attributes:
        epoch: The number of this owner.
    """

    def __init__(self, path: Path, durability: Durability) -> None:
        """Open the file and start the thread.

        Raises:
            JournalError: See `open_file`.
        """
        self._path = path
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._notes: queue.SimpleQueue[Work[object]] = queue.SimpleQueue()
        self._broken: JournalError | None = None
        self._closed = False
        self._lock = threading.Lock()
        self.epoch = 0
        opened: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._run, args=(durability, opened), name=f"toolrun journal {path.name}", daemon=True
        )
        self._thread.start()
        if (error := opened.get()) is not None:
            raise error

    async def do(self, work: Work[T], *, then: Callable[[T], object] | None = None) -> T:
        """Have work done in a transaction, and wait until that is durable.

        What the work raises by itself, it raises before it has written anything.

        Args:
            work: Gets the connection.
            then: Called in the thread with what the work returned, once that is durable; also if nobody waits any more.

        Raises:
            JournalError: The file could not be written, or the journal was closed; nothing of it is there.
        """
        order = _Order(work, then)
        with self._lock:
            if self._closed:
                raise JournalError(f"journal {self._path}: it was closed")
            self._orders.put(order)
        await order.waiter.wait()
        if order.error is not None:
            raise order.error
        return cast("T", order.result)

    def note(self, work: Work[object]) -> None:
        """Have work done with the next transaction, or when the journal is closed. Nobody waits for it."""
        self._notes.put(work)

    def close(self) -> None:
        """Do what was ordered and noted, close the file, and wait for that."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._orders.put(None)
        self._thread.join()

    # -- in the thread ------------------------------------------------------------------------

    def _run(self, durability: Durability, opened: queue.SimpleQueue[BaseException | None]) -> None:
        try:
            connection, self.epoch = open_file(self._path, durability)
        except BaseException as error:  # noqa: BLE001  # raised again where the journal was made
            opened.put(error)
            return
        opened.put(None)
        try:
            while (orders := self._next()) is not None:
                self._commit_together(connection, orders)
                for order in orders:
                    if order.then is not None and order.error is None:
                        order.then(order.result)
                wake(order.waiter for order in orders)
            self._commit_together(connection, [])
        finally:
            connection.close()

    def _next(self) -> list[_Order] | None:
        """Wait for orders; None at the end."""
        first = self._orders.get()
        if first is None:
            return None
        orders = [first]
        with suppress(queue.Empty):
            while len(orders) < _BATCH:
                order = self._orders.get_nowait()
                if order is None:
                    self._orders.put(None)
                    break
                orders.append(order)
        return orders

    def _commit_together(self, connection: sqlite3.Connection, orders: list[_Order]) -> None:
        notes: list[Work[object]] = []
        with suppress(queue.Empty):
            while True:
                notes.append(self._notes.get_nowait())
        try:
            self._commit(connection, orders, notes)
        except Exception:  # noqa: BLE001  # whatever it is, those who wait are told
            for order in orders:
                order.error = self._commit_alone(connection, order)
            self._note_alone(connection, notes)

    def _commit_alone(self, connection: sqlite3.Connection, order: _Order) -> BaseException | None:
        try:
            self._commit(connection, [order], [])
        except Exception as error:  # noqa: BLE001  # as above
            return explained(self._path, error) if isinstance(error, sqlite3.Error) else error
        return order.error

    def _note_alone(self, connection: sqlite3.Connection, notes: list[Work[object]]) -> None:
        """Do each note alone; those that the file does not take now are for the next transaction."""
        for note in notes:
            try:
                self._commit(connection, [], [note])
            except sqlite3.Error:
                self._notes.put(note)
            except Exception:  # noqa: BLE001, S110  # one that cannot be done at all is nobody else's fault
                pass

    def _commit(self, connection: sqlite3.Connection, orders: list[_Order], notes: list[Work[object]]) -> None:
        if self._broken is not None:
            raise self._broken
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._check_epoch(connection)
            for work in notes:
                work(connection)
            for order in orders:
                _do(connection, order)
            connection.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error) and primary_code(error) == sqlite3.SQLITE_IOERR:
                # After a failed fsync nobody knows what is on the disk, and a second one would say that all is well.
                self._broken = explained(self._path, error)
            raise

    def _check_epoch(self, connection: sqlite3.Connection) -> None:
        (epoch,) = connection.execute("SELECT epoch FROM owner").fetchone()
        if epoch != self.epoch:
            raise JournalError(
                f"journal {self._path}: another owner has taken it over (epoch {epoch}, this is {self.epoch})"
            )


def _do(connection: sqlite3.Connection, order: _Order) -> None:
    order.error = None
    try:
        order.result = order.work(connection)
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001  # a refusal: work refuses before it writes
        order.error = error
