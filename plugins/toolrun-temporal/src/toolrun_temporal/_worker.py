"""The worker: takes calls from a task queue, and runs them with the tools of its process."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast

import anyio
from temporalio import activity
from temporalio.common import RawValue  # noqa: TC002  # Temporal reads the hints of an activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from toolrun.remote import JobRunner
from toolrun_temporal._server import ACTIVITY, PAYLOAD_LIMIT, TASK_QUEUE, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from temporalio.client import Client

    from toolrun import ToolRegistry

_BEAT: Final = 1.0
"""Seconds between signs of life. The answer to one says that the call was cancelled, so they come more often than it
takes to notice that a worker is lost."""

_WORKER_STOPPED: Final = "WorkerStopped"


class Calls:
    """The calls that a worker runs.

    Attributes:
        cut: How many were cancelled because the worker was stopped.
    """

    def __init__(self, registry: ToolRegistry, *, deps: object = None, payload_limit: int = PAYLOAD_LIMIT) -> None:
        self.cut = 0
        self._jobs = JobRunner(registry, deps=deps, answer_limit=payload_limit)

    @activity.defn(name=ACTIVITY)
    async def run(self, job: RawValue) -> RawValue:
        """Run one call; what becomes of it is the result, whatever it is.

        Raises:
            ApplicationError: The worker is stopped, and the call with it.
        """
        info = activity.info()
        every = _BEAT if info.heartbeat_timeout is None else min(_BEAT, info.heartbeat_timeout.total_seconds() / 3)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_beat, every)
                answer = await self._jobs.run(unpacked(job), attempt=info.attempt)
                group.cancel_scope.cancel()
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            if details is None or not details.worker_shutdown:
                raise
            self.cut += 1
            raise ApplicationError("the worker was stopped while the tool ran", type=_WORKER_STOPPED) from None
        return packed(answer)


async def _beat(every: float) -> None:
    while True:
        await anyio.sleep(every)
        activity.heartbeat()


def make_activity(
    registry: ToolRegistry, *, deps: object = None, payload_limit: int = PAYLOAD_LIMIT
) -> Callable[[RawValue], Awaitable[RawValue]]:
    """Make the activity that runs calls, for a Temporal worker of your own.

    Give that worker a `max_heartbeat_throttle_interval` of about a second: a cancellation reaches a tool with the answer
    to a heartbeat, and by default a worker sends one in 30 seconds or less often.

    Args:
        registry: The tools.
        deps: What tools get as `context.deps`.
        payload_limit: Bytes of an outcome; a larger one is `failed` with the code `unserialisable`.

    Examples:
        >>> from toolrun import ToolRegistry
        >>> activities = [make_activity(ToolRegistry())]
    """
    return cast(
        "Callable[[RawValue], Awaitable[RawValue]]", Calls(registry, deps=deps, payload_limit=payload_limit).run
    )


def make_worker(
    client: Client,
    registry: ToolRegistry,
    *,
    task_queue: str = TASK_QUEUE,
    deps: object = None,
    max_concurrency: int = 100,
    drain: float = 30.0,
) -> Worker:
    """Make a worker for a program of your own: `await worker.run()`, and `await worker.shutdown()` to end it.

    Args:
        client: A connected client.
        registry: The tools.
        task_queue: Where it takes calls.
        deps: What tools get as `context.deps`.
        max_concurrency: Calls that run at once; others wait in the queue.
        drain: Seconds that calls which run have to end, once the worker is to end; then they are cancelled, and begun
            again elsewhere if their effect allows it.
    """
    calls = Calls(registry, deps=deps)
    return worker_of(calls, client, task_queue=task_queue, max_concurrency=max_concurrency, drain=drain)


def worker_of(calls: Calls, client: Client, *, task_queue: str, max_concurrency: int, drain: float) -> Worker:
    """Make the worker that runs these calls."""
    beat = timedelta(seconds=_BEAT)
    return Worker(
        client,
        task_queue=task_queue,
        activities=[calls.run],
        max_concurrent_activities=max_concurrency,
        max_heartbeat_throttle_interval=beat,
        default_heartbeat_throttle_interval=beat,
        graceful_shutdown_timeout=timedelta(seconds=drain),
    )
