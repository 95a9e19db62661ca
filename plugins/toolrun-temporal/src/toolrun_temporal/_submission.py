"""One call on the server: it is started, or found there, and its outcome awaited."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
from temporalio.client import ActivityFailureError
from temporalio.common import ActivityIDConflictPolicy, ActivityIDReusePolicy, RawValue, RetryPolicy
from temporalio.exceptions import ActivityAlreadyStartedError
from temporalio.service import RPCError

from toolrun import CallConflict
from toolrun.remote import is_same_call, read_outcome
from toolrun_temporal import _outcomes
from toolrun_temporal._server import ACTIVITY, PAUSE, Unanswered, ask, is_away, packed, unpacked

if TYPE_CHECKING:
    from temporalio.client import ActivityExecutionDescription, ActivityHandle, Client

    from toolrun import Outcome
    from toolrun.abc import Job

_NO_LIMIT: Final = timedelta(days=3650)
"""Temporal wants a limit. The deadline is the worker's business, and one that does not answer is missed by its heartbeats."""

_RETRY_AFTER: Final = timedelta(milliseconds=200)
_RPC: Final = timedelta(seconds=10)


class Terms(NamedTuple):
    """See `TemporalExecutor`, whose arguments these are."""

    task_queue: str
    heartbeat_timeout: float
    queue_timeout: float | None
    patience: float


class Submission:
    """One job, from its start to its outcome.

    Args:
        client: Connected.
        job: The job.
        text: The same, as it is sent.
        terms: See there.
    """

    def __init__(self, client: Client, job: Job, text: str, terms: Terms) -> None:
        self._client = client
        self._job = job
        self._text = text
        self._terms = terms

    async def outcome(self) -> Outcome:
        """Start it, unless it was started before, and wait until it has an outcome.

        Raises:
            CallConflict: Another call has this key.
        """
        try:
            handle = await ask(self._start, patience=self._terms.patience)
        except ActivityAlreadyStartedError as error:
            return await self._join(error.run_id)
        except RPCError as error:
            return _outcomes.not_dispatched(self._job, f"Temporal does not take it: {error}", "it could not be sent.")
        except Unanswered as error:
            return _outcomes.lost(self._job, f"Temporal did not say whether it took it: {error}", "unanswered")
        return await self._await(handle)

    async def cancel(self) -> None:
        """Ask for its end, and wait for that."""
        handle = self._handle(None)
        try:
            await ask(lambda: handle.cancel(rpc_timeout=_RPC), patience=self._terms.patience)
            await self._text_of(handle)
        except (ActivityFailureError, RPCError, Unanswered):
            return  # ended, or not there to be ended

    async def _start(self) -> ActivityHandle[RawValue]:
        job, terms = self._job, self._terms
        queue_timeout = None if terms.queue_timeout is None else timedelta(seconds=terms.queue_timeout)
        # Cut off in here, it might come to the server after the request to cancel it.
        with anyio.CancelScope(shield=True):
            return await self._client.start_activity(
                ACTIVITY,
                packed(self._text),
                id=job.key,
                task_queue=terms.task_queue,
                result_type=RawValue,
                schedule_to_start_timeout=queue_timeout,
                start_to_close_timeout=_NO_LIMIT,
                heartbeat_timeout=timedelta(seconds=terms.heartbeat_timeout),
                id_reuse_policy=ActivityIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=ActivityIDConflictPolicy.FAIL,
                retry_policy=RetryPolicy(initial_interval=_RETRY_AFTER, maximum_attempts=job.starts),
                summary=job.tool,
                rpc_timeout=_RPC,
            )
        raise AssertionError("a scope that nobody cancels swallows nothing")

    async def _join(self, run_id: str | None) -> Outcome:
        """Wait for the outcome of what was started before, if it is this call."""
        handle = self._handle(run_id)
        try:
            found = await ask(
                lambda: handle.describe(include_input=True, rpc_timeout=_RPC), patience=self._terms.patience
            )
        except (RPCError, Unanswered) as error:
            return _outcomes.lost(self._job, f"Temporal has it, and does not show it: {error}", "unanswered")
        if found.activity_type != ACTIVITY or not is_same_call(await _sent(found), self._job):
            raise CallConflict(key=self._job.key, tool=self._job.tool)
        return await self._await(handle)

    async def _await(self, handle: ActivityHandle[RawValue]) -> Outcome:
        try:
            return read_outcome(await self._text_of(handle), self._job)
        except ActivityFailureError as failure:
            return _outcomes.failed(self._job, failure.cause, await self._description(handle), self._terms)
        except (RPCError, Unanswered) as error:
            return _outcomes.lost(self._job, f"Temporal does not say what became of it: {error}", "unanswered")
        except ValueError as error:
            return _outcomes.lost(self._job, f"what came back cannot be read: {error}", "interrupted")

    async def _text_of(self, handle: ActivityHandle[RawValue]) -> str:
        """The result, however often the server goes away meanwhile."""
        while True:
            try:
                return unpacked(await handle.result())
            except (RPCError, asyncio.CancelledError) as error:
                if not is_away(error):
                    raise
            await anyio.sleep(PAUSE)
            await ask(lambda: handle.describe(rpc_timeout=_RPC), patience=self._terms.patience)

    async def _description(self, handle: ActivityHandle[RawValue]) -> ActivityExecutionDescription | None:
        try:
            return await ask(lambda: handle.describe(rpc_timeout=_RPC), patience=self._terms.patience)
        except (RPCError, Unanswered):
            return None

    def _handle(self, run_id: str | None) -> ActivityHandle[RawValue]:
        return self._client.get_activity_handle(self._job.key, run_id=run_id, result_type=RawValue)


async def _sent(found: ActivityExecutionDescription) -> str:
    values = await found.input([RawValue])
    return unpacked(values[0]) if values else ""
