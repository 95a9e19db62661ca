"""The contract suites for executors."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from toolrun._core.calls import CallStatus, ToolCall
from toolrun._core.exceptions import CallConflict
from toolrun._core.seams import Executor, Invocation, Job
from toolrun._testing.ledger import Ledger
from toolrun._testing.samples import SAMPLES, SECRET

if TYPE_CHECKING:
    from toolrun._core.outcomes import Outcome


class ExecutorSuite:
    """What every executor has to do.

    Examples:
        >>> from toolrun.executors import ThreadExecutor
        >>> from toolrun.testing import ExecutorSuite
        >>> class TestThreadExecutor(ExecutorSuite):
        ...     async def open(self):
        ...         return ThreadExecutor()
    """

    pytestmark = pytest.mark.anyio

    patience: float = 5.0
    """Seconds within which a deadline and a cancellation take effect."""

    async def open(self) -> Executor:
        """Make an executor. One that runs tools elsewhere has to know those of `sample_tools()` there."""
        raise NotImplementedError

    async def close(self, executor: Executor) -> None:
        """Close it; by default nothing is done.

        Args:
            executor: What `open` made.
        """

    @pytest.fixture
    async def executor(self) -> AsyncIterator[Executor]:
        """An executor, closed after the test."""
        executor = await self.open()
        yield executor
        await self.close(executor)

    async def test_a_value(self, executor: Executor) -> None:
        """It comes back as it is, with what the outcome has to say of the job."""
        job = _sample("echo", {"value": {"text": "Zoë 中文", "numbers": [1, 2.5, None, True]}})

        outcome = await executor.execute(job)

        assert outcome.status == "succeeded"
        assert outcome.value == {"text": "Zoë 中文", "numbers": [1, 2.5, None, True]}
        assert (outcome.key, outcome.attempts, outcome.started) == (job.key, 1, True)
        assert outcome.call == job.call

    async def test_a_large_value(self, executor: Executor) -> None:
        """One megabyte goes through."""
        outcome = await executor.execute(_sample("echo", {"value": "x" * 1_000_000}))

        assert outcome.value == "x" * 1_000_000

    async def test_a_tool_that_fails_in_its_own_words(self, executor: Executor) -> None:
        """It is an outcome, and says what the tool said."""
        outcome = await executor.execute(_sample("fail", {"message": "no such order"}))

        assert (outcome.status, outcome.message, outcome.started) == ("failed", "no such order", True)

    async def test_any_other_exception(self, executor: Executor) -> None:
        """The model is not told what it says."""
        outcome = await executor.execute(_sample("crash", {}))

        assert (outcome.status, outcome.started) == ("failed", True)
        assert SECRET not in outcome.message

    async def test_a_deadline(self, executor: Executor) -> None:
        """The caller has its outcome when the time is over."""
        with anyio.fail_after(self.patience):
            outcome = await executor.execute(_sample("wait", {"seconds": 3600}, timeout=0.05))

        assert (outcome.status, outcome.code) == ("timed_out", "deadline")

    async def test_cancellation(self, executor: Executor) -> None:
        """It propagates, and the executor goes on."""
        with anyio.fail_after(self.patience):
            with anyio.move_on_after(0.05) as scope:
                await executor.execute(_sample("wait", {"seconds": 3600}))
            assert scope.cancelled_caught

            outcome = await executor.execute(_sample("echo", {"value": 1}, key="r:t:1"))
        assert outcome.value == 1

    async def test_many_at_once(self, executor: Executor) -> None:
        """Each has its own outcome."""
        values: dict[int, object] = {}

        async def run(number: int) -> None:
            values[number] = (await executor.execute(_sample("echo", {"value": number}, key=f"r:t:{number}"))).value

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(run, number)

        assert values == {number: number for number in range(20)}

    async def test_each_job_has_its_effect_once(self, executor: Executor, tmp_path: Path) -> None:
        """One submission of one attempt runs the tool once."""
        for number in range(3):
            await executor.execute(
                _sample("note", {"path": str(tmp_path / "ledger"), "line": str(number)}, key=f"r:t:{number}")
            )

        assert Ledger(tmp_path / "ledger").lines() == ["0", "1", "2"]


class DurableExecutorSuite(ExecutorSuite):
    """What every executor has to do that is `durable`: it is idempotent by the job's key, besides."""

    async def test_it_says_so(self, executor: Executor) -> None:
        """The runner leaves further attempts to it."""
        assert executor.durable

    async def test_a_recorded_outcome(self, executor: Executor, tmp_path: Path) -> None:
        """The same job again gives the same outcome, and no second effect."""
        job = _sample("note", {"path": str(tmp_path / "ledger"), "line": "once"})

        outcomes: list[Outcome] = [await executor.execute(job) for _ in range(2)]

        assert [outcome.status for outcome in outcomes] == ["succeeded", "succeeded"]
        assert Ledger(tmp_path / "ledger").lines() == ["once"]

    async def test_a_job_that_runs_is_joined(self, executor: Executor, tmp_path: Path) -> None:
        """The same job at the same time, several times: one effect, and an outcome for each."""
        job = _sample("note", {"path": str(tmp_path / "ledger"), "line": "once", "seconds": 0.2})
        outcomes: list[Outcome] = []

        async def run() -> None:
            outcomes.append(await executor.execute(job))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(run)

        assert [outcome.status for outcome in outcomes] == ["succeeded"] * 3
        assert Ledger(tmp_path / "ledger").lines() == ["once"]

    async def test_a_conflict(self, executor: Executor) -> None:
        """Other arguments under the same key run nothing."""
        await executor.execute(_sample("echo", {"value": 1}))

        with pytest.raises(CallConflict):
            await executor.execute(_sample("echo", {"value": 2}))


def _sample(tool: str, arguments: dict[str, object], *, key: str = "r:t:0", timeout: float | None = None) -> Job:
    text = json.dumps(arguments)
    return Job(
        key=key,
        tool=tool,
        call=ToolCall(
            id="call_1", name=tool, raw_arguments=text, arguments=arguments, status=CallStatus.OK, executable=True
        ),
        arguments=text,
        timeout=timeout,
        invocation=Invocation(SAMPLES[tool], (), arguments, is_async=True),
    )
