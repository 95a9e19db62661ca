"""One attempt under one deadline, and what came of it as an outcome."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

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


async def attempt(job: Job, run: Callable[[], Awaitable[object]]) -> Outcome:
    """Run it once, under the job's deadline.

    Cancellation from outside propagates. A cancellation that the tool raises by itself is its failure, and
    so is `SystemExit`; `KeyboardInterrupt` propagates.
    """
    scope = anyio.CancelScope(deadline=math.inf if job.timeout is None else anyio.current_time() + job.timeout)
    try:
        with scope:
            return Succeeded(call=job.call, value=await run(), attempts=job.attempt, started=True, key=job.key)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # whatever a tool raises is its failure
        if not isinstance(error, Exception) and cancelled_from_outside():
            raise
        if not scope.cancel_called:
            return _failed(job, error)
        return _timed_out(job, error)
    return _timed_out(job, None)


def cancelled_from_outside() -> bool:
    """Tell whether a scope around this task, or the task itself, is being cancelled."""
    if anyio.current_effective_deadline() == -math.inf:
        return True
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # another event loop than asyncio's
        return False
    return task is not None and task.cancelling() > 0


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
