"""In worker threads: sync functions never block the loop."""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

from toolrun._core.seams import Executor
from toolrun.executors._attempt import attempt, invocation_of

if TYPE_CHECKING:
    from toolrun._core.outcomes import Outcome
    from toolrun._core.seams import Job


class _Ended(NamedTuple):
    """How the function ended. Raising in the thread would lose StopIteration on the way."""

    value: object = None
    error: BaseException | None = None


class ThreadExecutor(Executor):
    """Calls the function in a worker thread.

    A thread cannot be stopped: at the deadline, or when the run is cancelled, the caller is released, the
    thread is counted as abandoned until it ends, and its late result is discarded.

    Args:
        threads: How many may run at once; None shares the event loop's own limit (40).
    """

    def __init__(self, threads: int | None = None) -> None:
        """See the class."""
        self._threads = threads
        self._limiter: anyio.CapacityLimiter | None = None
        self._abandoned = 0
        self._lock = threading.Lock()

    @property
    def abandoned(self) -> int:
        """How many threads still run for calls that were given up."""
        return self._abandoned

    async def execute(self, job: Job) -> Outcome:
        """See `Executor`."""
        function, args, kwargs, _ = invocation_of(job)
        ended = threading.Event()
        given_up = False

        def body() -> _Ended:
            nonlocal given_up
            try:
                return _Ended(function(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001  # handed over, and raised again in the loop
                return _Ended(error=error)
            finally:
                with self._lock:
                    ended.set()
                    self._abandoned -= given_up

        async def run() -> object:
            nonlocal given_up
            try:
                outcome = await anyio.to_thread.run_sync(body, abandon_on_cancel=True, limiter=self._own_limiter())
            except anyio.get_cancelled_exc_class():
                with self._lock:
                    given_up = not ended.is_set()
                    self._abandoned += given_up
                raise
            if outcome.error is not None:
                raise outcome.error
            return await outcome.value if inspect.isawaitable(outcome.value) else outcome.value

        return await attempt(job, run)

    def _own_limiter(self) -> anyio.CapacityLimiter | None:
        if self._threads is not None and self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self._threads)
        return self._limiter
