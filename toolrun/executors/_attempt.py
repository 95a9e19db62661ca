"""One attempt under one deadline, and what came of it as an outcome."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, NamedTuple

import anyio

from toolrun._core import results
from toolrun._core.exceptions import ToolrunError
from toolrun._core.outcomes import Failed, Outcome, Succeeded, TimedOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toolrun._core.seams import Invocation, Job


def invocation_of(job: Job) -> Invocation:
    """The function to call.

    Raises:
        ToolrunError: The job came from another process; only executors that look the tool up can run it.
    """
    if job.invocation is None:
        raise ToolrunError(f"{job.tool!r}: this executor runs functions of this process, and the job carries none")
    return job.invocation


async def attempt(job: Job, running: Awaitable[object]) -> Outcome:
    """Await it, under the job's deadline.

    Cancellation from outside propagates, also where the tool swallowed it. A cancellation that the tool raises
    by itself is its failure, and so is `SystemExit`; `KeyboardInterrupt` propagates.
    """
    # A cancel scope costs as much as everything else here: only a deadline needs one.
    scope = None if job.timeout is None else anyio.CancelScope(deadline=anyio.current_time() + job.timeout)
    outcome: Outcome | None = None
    try:
        if scope is None:
            outcome = _succeeded(job, await running)
        else:
            with scope:
                outcome = _succeeded(job, await running)
    except BaseException as error:  # noqa: BLE001  # whatever a tool raises is its failure
        propagate(error)
        outcome = _timed_out(job, error) if scope is not None and scope.cancel_called else _failed(job, error)
    if _cancelled_natively():
        raise anyio.get_cancelled_exc_class()
    return outcome or _timed_out(job, None)


def propagate(error: BaseException) -> None:
    """Raise what is not the failure of the code that raised it: Ctrl-C, and a cancellation from outside."""
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    if not isinstance(error, Exception) and cancelled_from_outside():
        raise error


def cancelled_from_outside() -> bool:
    """Tell whether a scope around this task, or the task itself, is being cancelled."""
    return anyio.current_effective_deadline() == -math.inf or _cancelled_natively()


def _cancelled_natively() -> bool:
    """Tell whether somebody called `task.cancel()` of asyncio, which no cancel scope knows of."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # another event loop than asyncio's
        return False
    return task is not None and task.cancelling() > 0


def raised_by_tool(error: GeneratorExit) -> RuntimeError:
    """What stands for a `GeneratorExit` of the tool's own: where it came out, it would say that the run is given up."""
    return RuntimeError(f"the function raised {error!r}")


class Ended(NamedTuple):
    """How a function ended in another thread. Raising there would lose `StopIteration` on the way."""

    value: object = None
    error: BaseException | None = None

    def result(self) -> object:
        """The value, or the error, raised here."""
        if isinstance(self.error, GeneratorExit):
            raise raised_by_tool(self.error) from self.error
        if self.error is not None:
            raise self.error
        return self.value


def ending(function: Callable[..., object], /, *args: object, **kwargs: object) -> Ended:
    """Call a function and say how it ended."""
    try:
        return Ended(function(*args, **kwargs))
    except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits
        return Ended(error=error)


def _succeeded(job: Job, value: object) -> Succeeded:
    return Succeeded(call=job.call, value=value, attempts=job.attempt, started=True, key=job.key)


def _failed(job: Job, error: BaseException) -> Failed:
    return Failed(
        call=job.call,
        error=error,
        code="raised",
        message=results.error_text(error, may_have_run=job.effect != "pure"),
        attempts=job.attempt,
        started=True,
        key=job.key,
    )


def _timed_out(job: Job, error: BaseException | None) -> TimedOut:
    return TimedOut(
        call=job.call,
        error=error or TimeoutError(f"{job.tool!r} ({job.call.id}): no result within {job.timeout} s"),
        code="deadline",
        message=results.timeout_text(job.timeout, may_have_run=job.effect != "pure"),
        attempts=job.attempt,
        started=True,
        key=job.key,
    )
