"""What the agent sees of a call that brought no outcome from a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from temporalio.exceptions import ApplicationError, CancelledError, TimeoutError, TimeoutType  # noqa: A004  # Temporal's

from toolrun import Cancelled, ExecutorError, Failed, Interrupted

if TYPE_CHECKING:
    from temporalio.client import ActivityExecutionDescription

    from toolrun import Outcome
    from toolrun.abc import Job
    from toolrun_temporal._submission import Terms

NO_ACTIVITY: Final = "NotFoundError"
"""What Temporal's workers call it if they do not have the activity."""


def not_dispatched(job: Job, error: str, told: str) -> Failed:
    """The outcome of a call that no tool was started for.

    Args:
        job: The job.
        error: Why, for the developer.
        told: Why, for the model.
    """
    return Failed(
        call=job.call,
        error=_error(job, error),
        code="not_dispatched",
        message=f"Not run: {told}",
        attempts=job.attempt - 1,
        key=job.key,
    )


def lost(job: Job, error: str, code: str, attempts: int = 1) -> Interrupted:
    """The outcome of a call that may have run, and nobody knows."""
    return Interrupted(
        call=job.call,
        error=_error(job, error),
        code=code,
        message="Contact with the tool was lost. Whether it had its effect, or still will, is not known.",
        attempts=attempts,
        started=True,
        key=job.key,
    )


def failed(job: Job, cause: BaseException, description: ActivityExecutionDescription | None, terms: Terms) -> Outcome:
    """The outcome of a call that Temporal ended: a tool's own failure is never one of these.

    Args:
        job: The job.
        cause: Why.
        description: What Temporal knows of it; None if it does not say.
        terms: How it was sent.
    """
    started = description is None or description.last_started_time is not None
    attempts = 1 if description is None else description.attempt
    if isinstance(cause, CancelledError):
        return _cancelled(job, started=started)
    if not started:
        queue = repr(terms.task_queue)
        if isinstance(cause, TimeoutError) and cause.type is TimeoutType.SCHEDULE_TO_START:
            why = f"no worker on the task queue {queue} took it within {terms.queue_timeout:g} s"
            return not_dispatched(job, why, "no worker was free to take it. Try again later.")
        return not_dispatched(job, f"Temporal ended it before it began: {cause}", "it was stopped before it began.")
    if isinstance(cause, ApplicationError) and cause.type == NO_ACTIVITY:
        why = f"a worker on the task queue {terms.task_queue!r} runs other activities than toolrun's: {cause}"
        return not_dispatched(job, why, "no worker runs calls of tools.")
    exhausted = job.effect != "once" and attempts >= job.starts
    return lost(
        job, f"it was begun, and its worker was lost: {cause}", "attempts" if exhausted else "interrupted", attempts
    )


def _cancelled(job: Job, *, started: bool) -> Cancelled:
    doubt = "It had started and may have had an effect." if started else "It had not started."
    return Cancelled(
        call=job.call,
        code="cancelled",
        message=f"The call was cancelled. {doubt}",
        attempts=int(started),
        started=started,
        key=job.key,
    )


def _error(job: Job, text: str) -> ExecutorError:
    return ExecutorError(f"{job.tool!r} ({job.call.id}): {text}")
