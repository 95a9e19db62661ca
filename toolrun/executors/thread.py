"""In worker threads: sync functions never block the loop."""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from toolrun._core.seams import Executor
from toolrun.executors._attempt import Ended, attempt, ending, invocation_of

if TYPE_CHECKING:
    from toolrun._core.outcomes import Outcome
    from toolrun._core.seams import Job


class ThreadExecutor(Executor):
    """Calls the function in a worker thread.

    A thread cannot be stopped: at the deadline, or when the run is cancelled, the caller is released, the
    thread is counted as abandoned until it ends, and its late result is discarded. How many run at once is the
    runner's `max_concurrency`.
    """

    def __init__(self) -> None:
        """See the class."""
        self._abandoned = 0
        self._lock = threading.Lock()

    @property
    def abandoned(self) -> int:
        """How many threads still run for calls that were given up."""
        return self._abandoned

    async def execute(self, job: Job) -> Outcome:
        """See `Executor`."""
        function, args, kwargs, _ = invocation_of(job)
        begun = ended = given_up = False

        def body() -> Ended:
            nonlocal begun, ended
            with self._lock:
                if given_up:  # before a thread came to it: then it does not begin at all
                    return Ended()
                begun = True
            outcome = ending(function, *args, **kwargs)
            with self._lock:
                ended = True
                self._abandoned -= given_up
            return outcome

        async def run() -> object:
            nonlocal given_up
            # A limiter for this call alone: those of an event loop would let tools that run turns of their own
            # wait for each other for ever.
            limiter = anyio.CapacityLimiter(1)
            try:
                outcome = await anyio.to_thread.run_sync(body, abandon_on_cancel=True, limiter=limiter)
            except anyio.get_cancelled_exc_class():
                with self._lock:
                    given_up = not ended
                    self._abandoned += begun and given_up
                raise
            value = outcome.result()
            return await value if inspect.isawaitable(value) else value

        return await attempt(job, run())
