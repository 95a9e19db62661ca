"""`Runner` around tools that do nothing, against nothing, a bare task group and bare worker threads."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from benchmarks import streams
from benchmarks.harness import AsyncJob, Effort, Measured, Row, awaited, in_turns, ratio, seconds
from toolrun import Retry, Runner, Tool, ToolRegistry, finalize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun.abc import Journal, Listener

_MANY = 1_000
_ARGUMENTS = '{"a": 1, "b": "x"}'


async def noop(a: int, b: str) -> str:  # noqa: ARG001  # a tool's signature
    """Do nothing."""
    return "ok"


def noop_sync(a: int, b: str) -> str:  # noqa: ARG001  # a tool's signature
    """Do nothing."""
    return "ok"


def single(effort: Effort, *, timeout: float | None) -> Measured:
    """One call of an async tool."""
    with asyncio.Runner() as loop:
        taken = seconds(awaited(loop, execution(Tool.from_function(noop), 1, timeout=timeout)), effort)
    return Measured(taken * 1e6)


def many(effort: Effort, *, timeout: float | None) -> Measured:
    """A thousand calls, 16 at once, against a thousand tasks."""

    async def floor() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(_MANY):
                group.start_soon(noop, 1, "x")

    with asyncio.Runner() as loop:
        ours = awaited(loop, execution(Tool.from_function(noop), _MANY, timeout=timeout))
        return ratio(ours, awaited(loop, floor), effort, per=_MANY)


def threads(effort: Effort) -> Measured:
    """A thousand calls of a sync tool against anyio's worker threads."""

    async def floor() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(_MANY):
                group.start_soon(anyio.to_thread.run_sync, noop_sync, 1, "x")

    with asyncio.Runner() as loop:
        ours = awaited(loop, execution(Tool.from_function(noop_sync), _MANY, timeout=None))
        return ratio(ours, awaited(loop, floor), effort, per=_MANY)


def retry(effort: Effort) -> Measured:
    """What a policy for failures costs a call that succeeds."""
    plain = Tool.from_function(noop, effect="pure")
    careful = Tool.from_function(noop, effect="pure", retry=Retry(on=ConnectionError))
    sides = [execution(tool, 1, timeout=None) for tool in (careful, plain)]

    with_policy, without = (taken * 1e6 for taken in in_turns(sides, effort))
    return Measured(with_policy - without, f"{with_policy:.3g} less {without:.3g} µs")


def execution(
    tool: Tool,
    count: int,
    *,
    timeout: float | None,
    journal: Journal | None = None,
    listeners: Sequence[Listener] = (),
) -> AsyncJob:
    """Finished calls to outcomes, as `Runner.execute` does it, with every check."""
    registry = ToolRegistry()
    registry.add(tool)
    runner = Runner(registry, timeout=timeout, journal=journal, listeners=listeners)
    calls = finalize(streams.chat([[_ARGUMENTS]] * count, name=tool.name))

    async def job() -> None:
        turn = await runner.execute(calls)
        if not all(outcome.status == "succeeded" for outcome in turn.outcomes):
            raise AssertionError("a tool that does nothing succeeds")

    return job


_DEFAULT: float = 60.0

ROWS = (
    Row("call", "one call of an async tool", "µs", 8.0, partial(single, timeout=None)),
    Row("call-deadline", "one call with the default deadline", "µs", 22.0, partial(single, timeout=_DEFAULT)),
    Row("calls", "1,000 calls, 16 at once, against a bare task group", "x", 0.4, partial(many, timeout=None)),
    Row("calls-deadline", "the same with deadlines", "x", 1.0, partial(many, timeout=_DEFAULT)),
    Row("threads", "1,000 sync calls against anyio.to_thread", "x", 1.0, threads),
    Row("retry", "a retry policy when nothing fails", "µs", 2.0, retry),
)
