"""Worker processes: started when needed, used again, never more than so many, and ended when told."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Final

from toolrun._core.exceptions import ExecutorError
from toolrun.executors._child import GO, READY, serve

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

# A forked copy of a process with threads may hold locks that nobody will ever release.
_CONTEXT: Final = multiprocessing.get_context("spawn")

_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 5.0


class Worker:
    """One process. Starting it and talking to it wait, so both belong into a thread."""

    def __init__(self) -> None:
        """Start it and wait until it can take calls.

        Raises:
            ExecutorError: It could not be started.
        """
        self._lock = threading.Lock()
        self._ended = False
        self._connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=serve, args=(theirs,), name="toolrun worker", daemon=False)
        try:
            self._process.start()
        finally:
            theirs.close()
        if self._receive(_START_SECONDS) != READY:
            self.end(after=_END_SECONDS)
            raise ExecutorError(
                f"a worker process ended while it started ({self.ending}); in a script,"
                " what starts the run has to stand under `if __name__ == '__main__':`"
            )

    @property
    def alive(self) -> bool:
        """Whether it can take a call."""
        return not self._ended and self._process.is_alive()

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        code = self._process.exitcode
        if code is not None and code < 0:
            with suppress(ValueError):
                return f"killed by {signal.Signals(-code).name}"
        return f"exit code {code}"

    def load(self, request: bytes) -> None:
        """Send a call and wait until it could begin.

        Raises:
            ExecutorError: It cannot be loaded there, or the process ended.
        """
        answer = self._exchange(request, _START_SECONDS)
        if answer is None:
            raise ExecutorError(f"the worker process ended, or hung, while it loaded the call: {self.ending}")
        if answer != READY:
            raise ExecutorError(f"the worker process cannot load the call: {answer.decode()}")

    def run(self) -> bytes | None:
        """Run the call that is loaded and wait for its reply; None if the process ended instead, or was ended."""
        return self._exchange(GO, None)

    def end(self, *, after: float = 0.0) -> None:
        """End it and what it started, at once, or when it has had so many seconds to end by itself; and reap it.

        Windows knows no groups of processes: what a tool started there goes on.
        """
        with self._lock:
            if self._ended:
                return
            self._process.join(after)
            if sys.platform == "win32":
                self._process.kill()
            else:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(_pid(self._process), signal.SIGKILL)
                self._process.kill()  # one that is still starting leads no group yet
            self._process.join(_END_SECONDS)
            self._ended = True

    def _exchange(self, message: bytes, seconds: float | None) -> bytes | None:
        with suppress(OSError):
            self._connection.send_bytes(message)
        answer = self._receive(seconds)
        if answer is None:
            self.end(after=_END_SECONDS)
        return answer

    def _receive(self, seconds: float | None) -> bytes | None:
        with suppress(EOFError, OSError):
            # A process that the tool started may hold the other end of the connection open.
            if wait([self._connection, self._process.sentinel], seconds):
                return self._connection.recv_bytes() if self._connection.poll() else None
        return None


def _pid(process: BaseProcess) -> int:
    if process.pid is None:
        raise ProcessLookupError
    return process.pid


class Ticket:
    """One wait for a worker, which may be given up."""

    def __init__(self) -> None:
        """See the class."""
        self.given_up = False
        self.worker: Worker | None = None


class WorkerPool:
    """At most so many processes. Everything here is called from several threads."""

    def __init__(self, size: int) -> None:
        """Begin with no process."""
        self._size = size
        self._changed = threading.Condition()
        self._idle: list[Worker] = []
        self._workers: set[Worker] = set()
        self._starting = 0
        self._closed = False
        # At the end of a program multiprocessing waits for its processes: these have to be ended before that.
        atexit.register(self.close)

    def lease(self, ticket: Ticket, request: bytes) -> None:
        """Wait for a worker that is free, or start one, and load the call.

        The ticket has the worker then, unless it was given up, or the pool closed, in the meantime.

        Raises:
            ExecutorError: No process could be started, or the call cannot be loaded there.
        """
        worker = self._obtain(ticket)
        if worker is None:
            return
        try:
            worker.load(request)
        except ExecutorError:
            self.release(worker)
            raise
        with self._changed:
            wanted = not (ticket.given_up or self._closed)
            ticket.worker = worker if wanted else None
        if not wanted:
            self.discard(worker)  # it waits to begin what nobody wants any more

    def give_up(self, ticket: Ticket) -> None:
        """Take back a ticket that nobody waits for any more, with the worker that it may have got."""
        with self._changed:
            ticket.given_up = True
            worker, ticket.worker = ticket.worker, None
            self._changed.notify_all()
        if worker is not None:
            self.discard(worker)

    def release(self, worker: Worker) -> None:
        """Take back a worker for the next call."""
        with self._changed:
            if worker.alive and not self._closed:
                self._idle.append(worker)
                self._changed.notify_all()
                return
        self.discard(worker)

    def discard(self, worker: Worker) -> None:
        """End a worker, and wait until it is gone; another may be started in its place."""
        worker.end()
        with self._changed:
            self._workers.discard(worker)
            self._changed.notify_all()

    def close(self) -> None:
        """End every worker. Calls that still run are failures."""
        with self._changed:
            self._closed = True
            self._idle.clear()
            workers = list(self._workers)
            self._changed.notify_all()
        for worker in workers:
            self.discard(worker)
        atexit.unregister(self.close)

    def _obtain(self, ticket: Ticket) -> Worker | None:
        with self._changed:
            self._changed.wait_for(lambda: ticket.given_up or self._closed or self._idle or self._has_room())
            if ticket.given_up or self._closed:
                return None
            if self._idle:
                return self._idle.pop()
            self._starting += 1
        try:
            worker = self._start()
        except BaseException:
            with self._changed:
                self._starting -= 1
                self._changed.notify_all()
            raise
        with self._changed:
            self._starting -= 1
            self._workers.add(worker)
        return worker

    def _has_room(self) -> bool:
        return len(self._workers) + self._starting < self._size

    @staticmethod
    def _start() -> Worker:
        try:
            return Worker()
        except (OSError, RuntimeError) as error:
            raise ExecutorError(f"no worker process could be started: {error}") from error
