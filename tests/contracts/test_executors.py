"""The executors that come with the library pass the suite that others are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolrun.executors import InlineExecutor, ProcessExecutor, ThreadExecutor
from toolrun.testing import DurableExecutorSuite, ExecutorSuite, sample_tools

if TYPE_CHECKING:
    from toolrun.abc import Executor


class TestInlineExecutor(ExecutorSuite):
    async def open(self) -> Executor:
        return InlineExecutor()


class TestThreadExecutor(ExecutorSuite):
    async def open(self) -> Executor:
        return ThreadExecutor()


class TestProcessExecutor(ExecutorSuite):
    patience = 30.0  # a process may have to be started

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def shared(cls):
        """One for all tests: starting a process takes longer than any of them."""
        cls.shared_executor = ProcessExecutor(max_workers=1)
        yield
        cls.shared_executor.close()

    @pytest.fixture
    def executor(self) -> Executor:
        return type(self).shared_executor


@pytest.mark.parametrize("caught_by", ["test_it_says_so", "test_a_recorded_outcome", "test_a_job_that_runs_is_joined"])
async def test_the_suite_catches(caught_by: str, tmp_path):
    """An executor without a memory is not durable, whatever it says."""
    needs = {"tmp_path": tmp_path} if caught_by != "test_it_says_so" else {}

    with pytest.raises(AssertionError):
        await getattr(DurableExecutorSuite(), caught_by)(InlineExecutor(), **needs)


def test_the_sample_tools():
    """A worker elsewhere can load them."""
    assert sorted(tool.name for tool in sample_tools()) == ["crash", "echo", "fail", "note", "wait"]
