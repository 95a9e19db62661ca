"""The suite that every durable executor has to pass, with the server and the worker as users have them."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from toolrun.abc import Executor, Job
from toolrun.testing import DurableExecutorSuite
from toolrun_temporal import TemporalExecutor

if TYPE_CHECKING:
    from temporal_processes import Server

    from toolrun import Outcome


class Apart(Executor):
    """Gives each test keys of its own: the server outlives the tests, and remembers.

    A call that an overloaded server loses on its way to a worker is interrupted; `echo`, which has no effect, is begun
    again then.
    """

    durable = True

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._prefix = uuid.uuid4().hex

    async def execute(self, job: Job) -> Outcome:
        effect = "pure" if job.tool == "echo" else job.effect
        outcome = await self._executor.execute(job._replace(key=f"{self._prefix}:{job.key}", effect=effect))
        assert outcome.key == f"{self._prefix}:{job.key}"
        return replace(outcome, key=job.key)


class TestTemporalExecutor(DurableExecutorSuite):
    patience = 60.0  # of a machine that runs other things besides

    @pytest.fixture
    def executor(self, server: Server, task_queue: str) -> Executor:
        return Apart(TemporalExecutor(server.address, task_queue=task_queue, heartbeat_timeout=10))
