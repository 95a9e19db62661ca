"""Attempts: the first one bare, further ones by the tool's policy, with tenacity."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import anyio

from toolrun._core import results
from toolrun._core.calls import identity_of
from toolrun._core.events import AttemptEnded, AttemptStarted
from toolrun._core.exceptions import CallConflict, TryAgain
from toolrun._core.outcomes import Deferred, Failed, OutcomeBase, TimedOut
from toolrun._core.retry import TRY_AGAIN
from toolrun.executors._attempt import propagate

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from toolrun._core.events import Event
    from toolrun._core.outcomes import Outcome
    from toolrun._core.retry import Retry
    from toolrun._core.seams import Executor, Job
    from toolrun._core.tools import Tool

Emit: TypeAlias = Callable[["Event"], None]
MakeJob: TypeAlias = Callable[[int], "Job"]

_UNLUCKY: Final = (Failed, TimedOut)


async def run_attempts(make_job: MakeJob, tool: Tool, executor: Executor, emit: Emit | None) -> Outcome:
    """Run a call to its outcome: the same arguments and the same key on every attempt.

    Args:
        make_job: Makes the job for an attempt, counted from 1.
        tool: Its policy decides on further attempts.
        executor: Runs each of them; one that is durable retries by itself.
        emit: Told of every start and end.
    """
    began = time.monotonic()
    outcome = await _once(make_job(1), executor, emit)
    policy = None if executor.durable else policy_after(tool, outcome)
    if policy is None or policy.attempts == 1:
        _ended(emit, tool, outcome, 1, None)
        return outcome
    return await _again(outcome, policy, make_job, tool, executor, emit, time.monotonic() - began)


def policy_after(tool: Tool, outcome: Outcome) -> Retry | None:
    """The policy for another attempt after this outcome; None if there is to be none.

    A tool that raises `TryAgain` is run again whatever it declares; any other failure only if the tool's
    `Retry` wants it.
    """
    if not isinstance(outcome, _UNLUCKY):
        return None
    if isinstance(outcome.error, TryAgain):
        return tool.retry or TRY_AGAIN
    return tool.retry if tool.retry is not None and tool.retry.wants(outcome.error) else None


def was_begun(outcome: Outcome) -> bool:
    """Tell whether the tool was reached; an executor may fail before."""
    return outcome.started or not isinstance(outcome, Failed)


async def _again(
    first: Outcome,
    policy: Retry,
    make_job: MakeJob,
    tool: Tool,
    executor: Executor,
    emit: Emit | None,
    spent: float,
) -> Outcome:
    import tenacity  # noqa: PLC0415  # needed only after a failure; its import costs more than a turn

    left = None if policy.timeout is None else max(policy.timeout - spent, 0.0)
    stops = tenacity.stop_after_attempt(policy.attempts)
    backoff = tenacity.wait_exponential(multiplier=policy.wait, max=policy.max_wait) + tenacity.wait_random(
        0, policy.wait
    )

    def wait(state: RetryCallState) -> float:
        hinted = state.outcome.result().error if state.outcome is not None else None
        after = hinted.after if isinstance(hinted, TryAgain) else None
        return min(backoff(state), policy.max_wait) if after is None else after

    def before_sleep(state: RetryCallState) -> None:
        if state.outcome is not None and state.next_action is not None:
            _ended(emit, tool, state.outcome.result(), state.attempt_number, state.next_action.sleep)

    def again(outcome: Outcome) -> bool:
        return policy_after(tool, outcome) is not None

    made, begun = 0, first

    async def attempt() -> Outcome:
        nonlocal made, begun
        made += 1
        outcome = first if made == 1 else await _once(make_job(made), executor, emit)
        if was_begun(outcome) or not was_begun(begun):
            begun = replace(outcome, attempts=made) if was_begun(outcome) else outcome
        return outcome

    retrying = tenacity.AsyncRetrying(
        sleep=anyio.sleep,
        stop=stops if left is None else tenacity.stop_any(stops, tenacity.stop_before_delay(left)),
        wait=wait,
        retry=tenacity.retry_if_result(again),
        before_sleep=before_sleep,
        retry_error_callback=lambda state: state.outcome.result() if state.outcome is not None else first,
    )
    outcome: Outcome = await retrying(attempt)
    _ended(emit, tool, outcome, made, None)
    return begun  # an attempt that did not begin says nothing of what the one before it may have done


async def _once(job: Job, executor: Executor, emit: Emit | None) -> Outcome:
    if emit is not None:
        emit(AttemptStarted(job.call.position, job.tool, job.attempt))
    try:
        outcome: object = await executor.execute(job)
    except CallConflict as error:
        return conflicting(job, error)
    except BaseException as error:  # noqa: BLE001  # an executor that fails costs one call
        propagate(error)
        return _failed_executor(job, error)
    if not isinstance(outcome, OutcomeBase):
        return _failed_executor(job, TypeError(f"the executor gave {outcome!r}, not an Outcome"))
    if isinstance(outcome, Deferred):
        return _failed_executor(job, TypeError("the executor deferred the call, which only happens before it begins"))
    return _of_job(job, cast("Outcome", outcome))


def conflicting(job: Job, error: CallConflict) -> Failed:
    """The outcome of a call whose key is another one's."""
    return not_run(job, error, "conflict", "its key was used before with other arguments.")


def not_run(job: Job, error: Exception, code: str, why: str) -> Failed:
    """The outcome of a call that did not come to its tool."""
    return Failed(call=job.call, tool=job.tool, error=error, code=code, message=results.NOT_RUN + why, key=job.key)


def _of_job(job: Job, outcome: Outcome) -> Outcome:
    """The outcome, if it is this call's: one that was read back has an equal call, and one of another call is none."""
    if outcome.call is job.call:
        return outcome
    if outcome.key not in ("", job.key) or identity_of(outcome.call) != identity_of(job.call):
        error = ValueError(f"the executor gave the outcome of {outcome.key or outcome.call.id} for {job.key}")
        return _failed_executor(job, error)
    return replace(outcome, call=job.call)


def _failed_executor(job: Job, error: BaseException) -> Failed:
    message = results.error_text(error, may_have_run=True)
    return Failed(
        call=job.call, error=error, code="executor", message=message, attempts=job.attempt, started=True, key=job.key
    )


def _ended(emit: Emit | None, tool: Tool, outcome: Outcome, attempt: int, retry_in: float | None) -> None:
    if emit is not None:
        emit(AttemptEnded(outcome.call.position, tool.name, attempt, outcome.status, outcome.error, retry_in))
