"""In worker processes: what runs there can be stopped, and cannot take this process down."""

from __future__ import annotations

import os
import pickle
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar, cast

import anyio
import anyio.to_thread

from toolrun._core import results
from toolrun._core.context import ToolContext
from toolrun._core.exceptions import ExecutorError
from toolrun._core.outcomes import Failed, TimedOut
from toolrun._core.seams import Executor
from toolrun.executors._attempt import attempt, invocation_of
from toolrun.executors._child import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from toolrun._core.outcomes import Outcome
    from toolrun._core.seams import Invocation, Job
    from toolrun.executors._child import Reply
    from toolrun.executors._workers import Worker, WorkerPool


T = TypeVar("T")


class ProcessExecutor(Executor):
    """Calls the function in a worker process, which is killed at the deadline and when the run is cancelled.

    The function is found there by its module and qualified name, so it has to stand at the top of a module (or be
    a method of an object that can be pickled); its arguments, what it returns and what it raises travel pickled.
    An async function gets an event loop of its own. A process that ends, whatever the reason, costs the call that it
    ran and no other. Processes are started with `spawn`, used again, and ended by `close`, by leaving the
    executor's block, or when the program ends.

    Not promised: context variables and other state of this process are not seen there, nor is what the function
    changes there seen here. On Windows, processes that a killed tool has started go on.

    Args:
        max_workers: Processes at once; further calls wait for a free one, outside their deadline. By default as
            many as there are processors.

    Raises:
        ValueError: `max_workers` is less than 1.
    """

    def __init__(self, *, max_workers: int | None = None) -> None:
        """See the class."""
        if max_workers is not None and max_workers < 1:
            raise ValueError("ProcessExecutor needs max_workers >= 1")
        from toolrun.executors._workers import WorkerPool  # noqa: PLC0415  # few programs need multiprocessing

        self._pool: WorkerPool = WorkerPool(max_workers or os.cpu_count() or 1)
        weakref.finalize(self, self._pool.close).atexit = False  # the pool sees to the end of the program itself

    def close(self) -> None:
        """End every worker process and wait until it is gone; calls that still run there are failures."""
        self._pool.close()

    def __enter__(self) -> Self:
        """Use it in a `with` block, which closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """See `close`."""
        self.close()

    async def execute(self, job: Job) -> Outcome:
        """See `Executor`."""
        try:
            request = _packed(job, _backend())
            worker = await self._lease(request)
        except ExecutorError as error:
            return _not_dispatched(job, error)
        answer: _Answer | None = None

        async def run() -> object:
            nonlocal answer
            answer = await self._run(worker)
            if answer.error is not None:
                raise answer.error
            return answer.value

        return _worded(job, await attempt(job, run()), answer)

    async def _lease(self, request: bytes) -> Worker:
        from toolrun.executors._workers import Ticket  # noqa: PLC0415  # as above

        ticket = Ticket()
        try:
            await _in_thread(lambda: self._pool.lease(ticket, request))
        except BaseException:
            self._pool.give_up(ticket)
            raise
        if ticket.worker is None:
            raise ExecutorError("the process executor is closed")
        return ticket.worker

    async def _run(self, worker: Worker) -> _Answer:
        try:
            reply = await _in_thread(worker.run)
            answer = None if reply is None else _read(reply)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _in_thread(lambda: self._pool.discard(worker))
            raise
        self._pool.release(worker)  # one that has ended makes room for another
        return answer or _Answer(
            _DIED, error=ExecutorError(f"the worker process ended before it answered: {worker.ending}")
        )


class _Trouble(NamedTuple):
    """What the outcome says of a call that neither returned nor raised."""

    code: str
    message: str


class _Answer(NamedTuple):
    """How a call ended in its process."""

    trouble: _Trouble | None = None
    value: object = None
    error: BaseException | None = None


_NOT_BROUGHT_BACK: Final = _Trouble(
    code="unserialisable",
    message="The tool ran, but its result cannot be brought back from its process.",
)
_DIED: Final = _Trouble(
    code="worker_died",
    message="The tool's process ended before it answered.",
)


def _packed(job: Job, backend: str) -> bytes:
    function, args, kwargs, is_async = invocation_of(job)
    try:
        return pickle.dumps((function, args, kwargs, backend, is_async))
    except Exception as error:  # pickling runs code of the values
        raise ExecutorError(
            f"{job.tool!r} ({job.call.id}): {_not_picklable(invocation_of(job))} cannot be pickled for a worker process:"
            f" {error}"
        ) from error


def _not_picklable(invocation: Invocation) -> str:
    """Say which part it is."""
    parts: dict[str, object] = {f"the function {invocation.function!r}": invocation.function}
    for name, value in [*enumerate(invocation.args, 1), *invocation.kwargs.items()]:
        if isinstance(value, ToolContext):
            parts["deps"] = value.deps
        else:
            parts[f"argument {name!r}"] = value
    for name, value in parts.items():
        try:
            pickle.dumps(value)
        except Exception:  # noqa: BLE001  # as above
            return name
    return "the call"


def _read(reply: bytes) -> _Answer:
    kind, pickled, text = cast("Reply", pickle.loads(reply))  # noqa: S301  # from a process of this program
    if kind is Kind.RAISED:
        return _Answer(error=pickle.loads(pickled) if pickled else ExecutorError(text))  # noqa: S301  # as above
    if kind is Kind.NOT_PICKLED:
        return _Answer(_NOT_BROUGHT_BACK, error=ExecutorError(f"the result cannot be pickled: {text}"))
    try:
        return _Answer(value=pickle.loads(pickled))  # noqa: S301  # as above
    except Exception as error:  # noqa: BLE001  # unpickling runs code of the value
        return _Answer(_NOT_BROUGHT_BACK, error=ExecutorError(f"the result cannot be unpickled: {error}"))


def _not_dispatched(job: Job, error: ExecutorError) -> Failed:
    return Failed(
        call=job.call,
        error=error,
        code="not_dispatched",
        message=f"{results.NOT_RUN}the tool cannot be started in a process of its own.",
        attempts=job.attempt - 1,
        key=job.key,
    )


def _worded(job: Job, outcome: Outcome, answer: _Answer | None) -> Outcome:
    """Say it as it is for a process: one that was killed has no effect any more."""
    may_have_run = job.effect != "pure"
    if isinstance(outcome, TimedOut):
        return replace(outcome, message=results.timeout_text(job.timeout, may_have_run=may_have_run, stopped=True))
    trouble = answer.trouble if answer is not None else None
    if trouble is None:
        return outcome
    doubt = results.MAY_HAVE_RUN if trouble is _DIED and may_have_run else ""
    return replace(outcome, code=trouble.code, message=trouble.message + doubt)


def _backend() -> str:
    """The name of the event loop that runs here."""
    return anyio.get_cancelled_exc_class().__module__.partition(".")[0]


async def _in_thread(function: Callable[[], T]) -> T:
    # A limiter of its own: how many processes there are is the limit.
    return await anyio.to_thread.run_sync(function, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
