"""`TemporalExecutor`: sends calls to workers through a Temporal server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import RunVar
from temporalio.client import Client

from toolrun.abc import Executor
from toolrun.remote import write_job
from toolrun_temporal._outcomes import not_dispatched
from toolrun_temporal._server import PAYLOAD_LIMIT, TASK_QUEUE, Unanswered, ask, connect, pause_at_exit, settings
from toolrun_temporal._submission import Submission, Terms

if TYPE_CHECKING:
    from toolrun import Outcome
    from toolrun.abc import Job


_CONNECTING: RunVar[anyio.Lock] = RunVar("toolrun temporal connecting")
"""One at a time, in each event loop."""


class TemporalExecutor(Executor):
    """Runs each call as one activity on a Temporal server, whose id is the call's key.

    The call outlives the agent: whoever submits the same key again gets the outcome, or waits for it, and another call
    under that key is a `CallConflict`. It is started at most once if the tool says `once`; if it says `idempotent` or
    `pure`, it is started again when its worker is lost, three times in all, or as often as its `Retry` allows if that is
    more. A tool that fails is an outcome, and is tried again by its worker, as its `Retry` says.

    On asyncio only, as Temporal's client is. The server has to have standalone activities: Temporal 1.31 or later.

    Not promised: that a key is remembered for longer than the namespace's retention; that a tool whose worker was lost
    is not still running; progress that tools tell.

    Args:
        client: A connected client, or the address of a server, to which it connects with the first call. None takes
            `TEMPORAL_ADDRESS` and what else the environment and Temporal's configuration file say.
        namespace: Where no client is given; by default what the environment says, or `default`.
        task_queue: Where the workers take calls.
        heartbeat_timeout: Seconds without a sign of life after which a worker is taken for lost. A worker gives one every
            second; fewer than 10 make calls of a busy one `interrupted`.
        queue_timeout: Seconds that a call may wait for a worker, after which it is not run; None for no limit.
        outage: Seconds that a server may be away before a call that waits for it is given up.
        cancel_timeout: Seconds that a cancelled call is waited for.
        payload_limit: Bytes of a job as it is sent; a larger one is not run. Servers take 2 MiB at most.

    Raises:
        ValueError: A number makes no sense.

    Examples:
        >>> from toolrun import Runner, ToolRegistry
        >>> runner = Runner(ToolRegistry(), executor=TemporalExecutor("localhost:7233", task_queue="tools"))
    """

    durable = True

    def __init__(
        self,
        client: Client | str | None = None,
        *,
        namespace: str | None = None,
        task_queue: str = TASK_QUEUE,
        heartbeat_timeout: float = 30.0,
        queue_timeout: float | None = 300.0,
        outage: float = 30.0,
        cancel_timeout: float = 10.0,
        payload_limit: int = PAYLOAD_LIMIT,
    ) -> None:
        """See the class."""
        if not (heartbeat_timeout > 0 and (queue_timeout is None or queue_timeout > 0) and payload_limit > 0):
            raise ValueError("TemporalExecutor needs heartbeat_timeout, queue_timeout and payload_limit > 0")
        if not (outage >= 0 and cancel_timeout >= 0):
            raise ValueError("TemporalExecutor needs outage and cancel_timeout >= 0")
        pause_at_exit()
        self._client = client if isinstance(client, Client) else None
        self._address = client if isinstance(client, str) else None
        self._namespace = namespace
        self._terms = Terms(task_queue, heartbeat_timeout, queue_timeout, outage)
        self._cancel_timeout = cancel_timeout
        self._payload_limit = payload_limit

    async def execute(self, job: Job) -> Outcome:
        """See `Executor`."""
        if not _on_asyncio():
            why = "Temporal's client runs on asyncio only; use another executor on this event loop"
            return not_dispatched(job, why, "it cannot be sent to a worker from here.")
        text = write_job(job)
        if len(text) > self._payload_limit:
            why = f"it has {len(text):,} bytes as it is sent, and at most {self._payload_limit:,} can be"
            return not_dispatched(
                job, why, "its arguments are too large to be sent to a worker. Make the call smaller."
            )
        try:
            client = await ask(self._connected, patience=self._terms.patience)
        except (Unanswered, ValueError) as error:  # an address that is none is a ValueError
            address, namespace = settings(self._address, self._namespace)
            why = f"no Temporal server at {address} (namespace {namespace!r}): {error}"
            return not_dispatched(job, why, "the service that runs tools cannot be reached.")
        submission = Submission(client, job, text, self._terms)
        try:
            return await submission.outcome()
        except asyncio.CancelledError:
            with anyio.move_on_after(self._cancel_timeout, shield=True):
                await submission.cancel()
            raise

    async def _connected(self) -> Client:
        """The client; many calls at once make one connection."""
        if self._client is None:
            try:
                lock = _CONNECTING.get()
            except LookupError:
                _CONNECTING.set(lock := anyio.Lock())
            async with lock:
                return await self._connect_once()
        return self._client

    async def _connect_once(self) -> Client:
        if self._client is None:
            self._client = await connect(self._address, self._namespace)
        return self._client


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
