"""Rate limits and circuit breakers around an executor. Needs the extra: `pip install toolrun[limits]`.

The counting is done by the libraries `limits` and `circuitbreaker`, neither of which knows an event loop: both classes
work on asyncio and on trio, and one instance may serve several runners, whose calls it counts together.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import circuitbreaker
from limits import parse_many
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from toolrun._core import results
from toolrun._core.exceptions import ExecutorError, ToolError
from toolrun._core.outcomes import Failed, Succeeded, TimedOut
from toolrun._core.seams import Executor
from toolrun.executors.inline import InlineExecutor
from toolrun.executors.thread import ThreadExecutor

if TYPE_CHECKING:
    from limits.storage import Storage

    from toolrun._core.outcomes import Outcome
    from toolrun._core.seams import Job

__all__ = ["CircuitBreaker", "RateLimited"]

_ALL_TOOLS: Final = ""


class _Around(Executor):
    """What surrounds another executor: it counts as that one, apart from what it adds."""

    def __init__(self, executor: Executor | None) -> None:
        self._executor = executor
        self._inline = InlineExecutor()
        self._thread = ThreadExecutor()
        if executor is not None:
            self.durable: bool = executor.durable

    @property
    def abandoned(self) -> int:
        """How many threads or processes still run for calls that were given up."""
        return self._thread.abandoned if self._executor is None else self._executor.abandoned

    async def _inner(self, job: Job) -> Outcome:
        if self._executor is not None:
            return await self._executor.execute(job)
        is_async = job.invocation is not None and job.invocation.is_async
        return await (self._inline if is_async else self._thread).execute(job)


class RateLimited(_Around):
    """Starts no more calls than so many in a time; further ones wait, outside the deadline of the tool.

    The windows move: `10/minute` means no more than 10 in any 60 seconds. Every attempt counts. In which order waiting
    calls go on is not promised.

    Args:
        rate: One rate or several, as the library `limits` reads them: `"10/minute"`, `"2/second; 100/hour"`.
        executor: Runs the calls; by default async tools run in the event loop and sync ones in worker threads.
        per_tool: True counts each tool for itself; False counts all calls together.
        max_wait: Seconds that a call may wait; one that would have to wait longer is not run (`rate_limited`). None for
            no limit.
        storage: Where the calls are counted; by default in this object. A shared one, such as
            `limits.storage.RedisStorage`, counts for several processes; it is asked in a worker thread.

    Raises:
        ValueError: A rate cannot be read.

    Examples:
        >>> from toolrun import Runner, ToolRegistry
        >>> runner = Runner(ToolRegistry(), executor=RateLimited("2/second; 100/hour"))
    """

    def __init__(
        self,
        rate: str,
        *,
        executor: Executor | None = None,
        per_tool: bool = True,
        max_wait: float | None = 30.0,
        storage: Storage | None = None,
    ) -> None:
        """See the class."""
        super().__init__(executor)
        self._rates = parse_many(rate)
        self._limiter = MovingWindowRateLimiter(storage or MemoryStorage())
        self._remote = storage is not None and not isinstance(storage, MemoryStorage)
        self._lock = threading.Lock()
        self._per_tool = per_tool
        self._max_wait = math.inf if max_wait is None else max_wait

    async def execute(self, job: Job) -> Outcome:
        """See `Executor`."""
        last = anyio.current_time() + self._max_wait
        try:
            while seconds := await self._seconds_to_wait(job):
                if anyio.current_time() + seconds > last:
                    return _not_run(
                        job,
                        "rate_limited",
                        f"{job.tool!r} ({job.call.id}): its rate is used up for {seconds:.1f} s",
                        f"too many calls of this tool in a short time. Try again in {math.ceil(seconds)} seconds.",
                    )
                await anyio.sleep(seconds)
        except Exception as error:  # noqa: BLE001  # a shared storage that cannot be asked grants nothing
            message = f"{job.tool!r} ({job.call.id}): the rate limit cannot be asked: {error}"
            return _not_run(job, "rate_limited", message, "the rate limit of this tool cannot be asked.", error)
        return await self._inner(job)

    async def _seconds_to_wait(self, job: Job) -> float:
        """Take a place in every window, or say when to ask again."""
        key = job.tool if self._per_tool else _ALL_TOOLS
        return await anyio.to_thread.run_sync(self._take, key) if self._remote else self._take(key)

    def _take(self, key: str) -> float:
        with self._lock:
            full = [rate for rate in self._rates if not self._limiter.test(rate, key)]
            if not full and all(self._limiter.hit(rate, key) for rate in self._rates):
                return 0.0
            resets = [self._limiter.get_window_stats(rate, key).reset_time for rate in full or self._rates]
        return max(max(resets) - time.time(), 0.001)


class CircuitBreaker(_Around):
    """Stops calling a tool that fails again and again, and tries it once after a while.

    Each tool has its own circuit. What counts is an exception or a deadline; a `ToolError` is an answer of the tool, and
    closes the circuit as a success does. While the circuit is open, calls are not run (`circuit_open`).

    Args:
        executor: Runs the calls; by default async tools run in the event loop and sync ones in worker threads.
        failures: Failures in a row that open the circuit.
        recovery: Seconds until one call is tried again; if it succeeds, the circuit is closed.

    Raises:
        ValueError: `failures` is less than 1, or `recovery` is not more than 0.

    Examples:
        >>> from toolrun import Runner, ToolRegistry
        >>> runner = Runner(ToolRegistry(), executor=CircuitBreaker(executor=RateLimited("10/minute"), failures=3))
    """

    def __init__(self, *, executor: Executor | None = None, failures: int = 5, recovery: float = 30.0) -> None:
        """See the class."""
        if failures < 1 or not recovery > 0:
            raise ValueError("CircuitBreaker needs failures >= 1 and recovery > 0")
        super().__init__(executor)
        self._failures = failures
        self._recovery = recovery
        self._circuits: dict[str, circuitbreaker.CircuitBreaker] = {}
        self._tried: set[str] = set()
        self._lock = threading.Lock()

    async def execute(self, job: Job) -> Outcome:
        """See `Executor`."""
        with self._lock:
            circuit = self._circuit(job.tool)
            half_open = circuit.state == circuitbreaker.STATE_HALF_OPEN
            if circuit.opened or (half_open and job.tool in self._tried):
                return self._open(job, circuit)
            if half_open:
                self._tried.add(job.tool)
        try:
            outcome = await self._inner(job)
        finally:
            if half_open:
                self._tried.discard(job.tool)
        self._count(circuit, outcome)
        return outcome

    def _circuit(self, tool: str) -> circuitbreaker.CircuitBreaker:
        if tool not in self._circuits:
            self._circuits[tool] = circuitbreaker.CircuitBreaker(
                failure_threshold=self._failures, recovery_timeout=self._recovery, name=tool
            )
        return self._circuits[tool]

    def _count(self, circuit: circuitbreaker.CircuitBreaker, outcome: Outcome) -> None:
        """Tell the circuit. What never reached the tool says nothing of it."""
        failed = isinstance(outcome, Failed | TimedOut) and not isinstance(outcome.error, ToolError)
        if not outcome.started and not isinstance(outcome, Succeeded):
            return
        with self._lock, suppress(_CountedError), circuit:
            if failed:
                raise _CountedError

    def _open(self, job: Job, circuit: circuitbreaker.CircuitBreaker) -> Failed:
        seconds = max(math.ceil(circuit.open_remaining), 1)
        return _not_run(
            job,
            "circuit_open",
            f"{job.tool!r} ({job.call.id}): not run, after {circuit.failure_count} failures in a row",
            f"this tool failed several times in a row and is not called for now. Try again in {seconds} seconds.",
        )


class _CountedError(Exception):
    """Stands for the failure of a tool; the circuit would keep the exception itself, with all its frames."""


def _not_run(job: Job, code: str, error: str, told: str, cause: Exception | None = None) -> Failed:
    reason = ExecutorError(error)
    reason.__cause__ = cause
    return Failed(
        call=job.call, error=reason, code=code, message=results.NOT_RUN + told, attempts=job.attempt - 1, key=job.key
    )
