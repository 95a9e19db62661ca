"""Cancellation from outside always gets through, and nothing is left running."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from toolrun import CallCompleted, RepairRequest, Retry, Runner, ToolRegistry, finalize
from toolrun.abc import Listener

from .responses import response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from toolrun import Outcome


class Hanging:
    """A registry with a tool that waits for ever, and what can be known of it."""

    def __init__(self, *, swallows: bool = False) -> None:
        self.registry = ToolRegistry()
        self.started = 0
        self.cleaned = 0
        self.all_started = anyio.Event()
        self.expected = 1

        @self.registry.tool
        async def hang() -> str:
            self.started += 1
            if self.started == self.expected:
                self.all_started.set()
            try:
                await anyio.sleep_forever()
            except BaseException:
                if not swallows:
                    raise
            finally:
                self.cleaned += 1
            return "ok"

    def source(self, calls: int) -> object:
        self.expected = calls
        return response(*[("hang", "{}")] * calls)


async def cancel_when(ready: anyio.Event, run: Callable[[], Awaitable[object]]) -> list[object]:
    """Cancel a task as soon as it is ready; what it returned, if it returned."""
    returned: list[object] = []

    async def task() -> None:
        returned.append(await run())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(task)
            await ready.wait()
            group.cancel_scope.cancel()
    return returned


@pytest.mark.parametrize("calls", [1, 3])
async def test_children_are_cancelled_and_awaited(calls: int):
    """Every tool's `finally` has run when the cancelled run is over, and there is no result."""
    hanging = Hanging()

    returned = await cancel_when(hanging.all_started, lambda: Runner(hanging.registry).run(hanging.source(calls)))

    assert returned == []
    assert (hanging.started, hanging.cleaned) == (calls, calls)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("swallows", [False, True])
async def test_a_native_cancellation_gets_through(calls: int, swallows: bool):
    """`task.cancel()` of asyncio, even where a tool swallows it; no task is left behind."""
    hanging = Hanging(swallows=swallows)
    before = asyncio.all_tasks()

    task = asyncio.create_task(Runner(hanging.registry).run(hanging.source(calls)))
    await hanging.all_started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert hanging.cleaned == calls
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("calls", [1, 3])
async def test_a_tool_cannot_swallow_it(calls: int):
    """What is cancelled ends cancelled, whatever the tool returns."""
    hanging = Hanging(swallows=True)
    after = []

    async def run() -> None:
        await Runner(hanging.registry).run(hanging.source(calls))
        await anyio.lowlevel.checkpoint()
        after.append(True)

    await cancel_when(hanging.all_started, run)

    assert after == []
    assert hanging.cleaned == calls


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_child_that_the_tool_cancelled_is_its_own_affair():
    """Waiting for a task that was cancelled raises `CancelledError` in the tool: a failure, no cancellation."""
    registry = ToolRegistry()

    @registry.tool
    async def waits_for_a_corpse() -> None:
        child = asyncio.create_task(asyncio.sleep(10))
        child.cancel()
        await child

    @registry.tool
    async def times_out_inside() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(10)

    turn = await Runner(registry).run(response(("waits_for_a_corpse", "{}"), ("times_out_inside", "{}")))

    assert [type(outcome.error) for outcome in turn.outcomes] == [asyncio.CancelledError, TimeoutError]
    assert [outcome.status for outcome in turn.outcomes] == ["failed", "failed"]


async def test_a_sync_tool_lets_go_of_its_caller():
    """The thread is counted until it ends; what it returns is discarded."""
    registry = ToolRegistry()
    started, release, ended = threading.Event(), threading.Event(), threading.Event()

    @registry.tool
    def block() -> str:
        started.set()
        release.wait(5)
        ended.set()
        return "late"

    runner = Runner(registry)
    with anyio.fail_after(4):
        async with anyio.create_task_group() as group:
            group.start_soon(runner.run, response(("block", "{}")))
            await anyio.to_thread.run_sync(started.wait)
            group.cancel_scope.cancel()

    assert not ended.is_set()
    assert runner.abandoned == 1
    release.set()
    await anyio.to_thread.run_sync(ended.wait)
    with anyio.fail_after(5):
        while runner.abandoned:  # noqa: ASYNC110  # the thread ends after its last line
            await anyio.sleep(0.001)


async def test_what_is_done_stays_done():
    """After a cancellation the turn says which calls had started, and keeps what was finished."""
    registry = ToolRegistry()
    hanging = anyio.Event()

    @registry.tool
    async def quick() -> str:
        return "value"

    @registry.tool
    async def hang() -> None:
        hanging.set()
        await anyio.sleep_forever()

    async with Runner(registry, max_concurrency=1).stream(
        response(("quick", "{}"), ("hang", "{}"), ("quick", "{}"))
    ) as run:
        async for event in run:
            if isinstance(event, CallCompleted):
                await hanging.wait()
                break
    turn = run.turn

    assert [(outcome.status, outcome.value, outcome.started) for outcome in turn.outcomes] == [
        ("succeeded", "value", True),
        ("cancelled", None, True),
        ("cancelled", None, False),
    ]
    assert [message["content"] for message in turn.messages()[1:]] == [
        "value",
        "The run was cancelled. It had started and may have had an effect.",
        "The run was cancelled. It had not started.",
    ]


@pytest.mark.parametrize("first", ["done", "hang"])
async def test_the_same_call_twice(first: str):
    """The second is what the first is: done, or begun."""
    hanging, ended = Hanging(), []

    @hanging.registry.tool
    async def done() -> str:
        return "done"

    class Ends(Listener):
        def on_end(self, turn: str, outcomes: Sequence[Outcome]) -> None:
            ended.extend(outcomes)

    one, other = finalize(response((first, "{}"), ("hang", "{}")))
    hanging.expected = 1 + (first == "hang")
    runner = Runner(hanging.registry, listeners=[Ends()])
    await cancel_when(hanging.all_started, lambda: runner.execute([one, one, other]))

    status = "succeeded" if first == "done" else "cancelled"
    assert [(one.status, one.started, one.call.position) for one in ended] == [
        (status, True, 0),
        (status, True, 1),
        ("cancelled", True, 2),
    ]


async def test_while_waiting_for_the_next_attempt():
    """A long wait between attempts is cut short."""
    registry = ToolRegistry()
    failed = anyio.Event()

    @registry.tool(effect="pure", retry=Retry(on=OSError, wait=30, max_wait=30))
    async def flaky() -> None:
        failed.set()
        raise OSError

    returned = await cancel_when(failed, lambda: Runner(registry).run(response(("flaky", "{}"))))

    assert returned == []


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_while_a_hook_thinks(kind: str):
    """An async hook is cancelled, a sync one left behind; the tool does not run."""
    registry = ToolRegistry()
    asked, release = threading.Event(), threading.Event()
    cleaned = []
    ran = []

    @registry.tool
    def f(n: int) -> None:
        ran.append(n)

    if kind == "async":

        @registry.repair
        async def think(request: RepairRequest) -> None:
            asked.set()
            try:
                await anyio.sleep_forever()
            finally:
                cleaned.append(True)

    else:

        @registry.repair
        def think(request: RepairRequest) -> None:
            asked.set()
            release.wait(5)

    with anyio.fail_after(4):
        async with anyio.create_task_group() as group:
            group.start_soon(Runner(registry).run, response(("f", '{"n": "one"}')))
            await anyio.to_thread.run_sync(asked.wait, 4)
            group.cancel_scope.cancel()
    release.set()

    assert ran == []
    assert cleaned == ([True] if kind == "async" else [])
