"""`run_sync`: for code without an event loop, and inside a running one too."""

from __future__ import annotations

import asyncio
import math
import signal
import threading
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from toolrun import Runner, StreamInterrupted, ToolContext, ToolRegistry, UnknownWire

from .responses import response

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    async def add(a: int, b: int) -> int:
        await anyio.lowlevel.checkpoint()
        return a + b

    @registry.tool
    def thread() -> int:
        return threading.get_ident()

    return registry


ADD = response(("add", '{"a": 1, "b": 2}'))


def test_without_a_block(registry: ToolRegistry):
    """A loop for each call; it ends with it."""
    before = threading.active_count()
    runner = Runner(registry)

    values = [runner.run_sync(ADD).outcomes[0].value for _ in range(3)]

    assert values == [3, 3, 3]
    assert threading.active_count() == before


async def test_many_times_inside_a_running_loop(registry: ToolRegistry):
    """On either loop, in a block and outside of one."""
    runner = Runner(registry)
    outside = [runner.run_sync(ADD).outcomes[0].value for _ in range(20)]
    with Runner(registry) as block:
        inside = [block.run_sync(ADD).outcomes[0].value for _ in range(50)]

    assert (outside, inside) == ([3] * 20, [3] * 50)


def test_what_is_bound_to_a_loop_stays_usable():
    """An async client that a tool holds on to works again in the next call of the block."""
    registry = ToolRegistry()
    held: list[asyncio.Queue[int]] = []
    loops = []

    @registry.tool
    async def put_and_get(n: int) -> int:
        loops.append(asyncio.get_running_loop())
        if not held:
            held.append(asyncio.Queue(maxsize=1))
        getting = asyncio.ensure_future(held[0].get())  # binds the queue to the loop
        await asyncio.sleep(0)
        await held[0].put(n)
        return await getting

    with Runner(registry) as runner:
        values = [runner.run_sync(response(("put_and_get", f'{{"n": {n}}}'))).outcomes[0].value for n in range(3)]

    assert values == [0, 1, 2]
    assert len(set(loops)) == 1


def test_a_closed_default_loop_does_not_matter(registry: ToolRegistry):
    """`asyncio.get_event_loop()` is not asked."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.close()
    try:
        assert Runner(registry).run_sync(ADD).outcomes[0].value == 3
    finally:
        asyncio.set_event_loop(None)


def test_the_same_arguments_as_run(registry: ToolRegistry):
    """deps, wire, end and turn_id get through."""
    seen: list[tuple[object, str]] = []

    @registry.tool
    def who(ctx: ToolContext[object]) -> None:
        seen.append((ctx.deps, ctx.key))

    call = {"index": 0, "id": "c", "function": {"name": "who", "arguments": "{}"}}
    events = [{"choices": [{"delta": {"tool_calls": [call]}}]}]
    runner = Runner(registry, run_id="R")

    bare = runner.run_sync(events, deps="d", turn_id="T", wire="openai-chat")
    told = runner.run_sync(events, deps="d", turn_id="T", wire="openai-chat", end="normal")

    assert bare.outcomes[0].code == "no_finish"
    assert told.outcomes[0].status == "succeeded"
    assert seen == [("d", "R:T:0")]


def test_errors_come_out(registry: ToolRegistry):
    """The same ones as from `run`."""

    def broken() -> Iterator[object]:
        yield {"choices": [{"delta": {"content": "Hi"}}]}
        raise OSError("reset")

    with Runner(registry) as runner:
        with pytest.raises(StreamInterrupted) as raised:
            runner.run_sync(broken())
        with pytest.raises(UnknownWire):
            runner.run_sync({"what": "is this"})
        with pytest.raises(TypeError):
            runner.run_sync(5)
        assert runner.run_sync(ADD).outcomes[0].value == 3

    assert isinstance(raised.value.__cause__, OSError)


def test_from_several_threads_at_once(registry: ToolRegistry):
    """One block serves them all."""
    values: list[object] = []

    def work() -> None:
        values.extend(runner.run_sync(ADD).outcomes[0].value for _ in range(10))

    with Runner(registry) as runner:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)

    assert values == [3] * 80


@pytest.mark.parametrize("block", [True, False])
def test_a_sync_tool_may_run_another_turn(registry: ToolRegistry, block: bool):
    """More tools at once than a loop has threads, each of which runs a turn of its own: all end."""

    @registry.tool
    def nested() -> object:
        return runner.run_sync(response(("thread", "{}"))).outcomes[0].value

    runner = Runner(registry, max_concurrency=48, timeout=2)
    source = response(*[("nested", "{}")] * 48)
    if block:
        with runner:
            turn = runner.run_sync(source)
    else:
        turn = runner.run_sync(source)

    assert [outcome.status for outcome in turn.outcomes] == ["succeeded"] * 48
    assert all(isinstance(outcome.value, int) for outcome in turn.outcomes)


def test_an_async_tool_that_blocks_on_its_own_loop_does_not_hang(registry: ToolRegistry):
    """`run_sync` inside the loop that it would wait for is an error of that tool, at once."""

    @registry.tool
    async def wrong() -> object:
        return runner.run_sync(ADD).outcomes[0].value

    with Runner(registry, timeout=2) as runner:
        (outcome,) = runner.run_sync(response(("wrong", "{}"))).outcomes

    assert outcome.status == "failed"
    assert isinstance(outcome.error, RuntimeError)


async def test_run_sync_in_a_thread_of_a_loop(registry: ToolRegistry):
    """From a worker thread of the user's own loop."""
    value = await anyio.to_thread.run_sync(lambda: Runner(registry).run_sync(ADD).outcomes[0].value)

    assert value == 3


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals for one thread")
@pytest.mark.parametrize("block", [True, False])
@pytest.mark.parametrize("seconds", [0, 0.05])
def test_an_interrupt_in_the_callers_thread_cancels_the_turn(registry: ToolRegistry, block: bool, seconds: float):
    """Ctrl-C, at once or while the caller waits: the tools are cancelled, and it comes out."""
    ends = []

    @registry.tool(timeout=3)
    async def hang() -> None:
        try:
            await anyio.sleep(seconds)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            await anyio.sleep_forever()
        finally:
            ends.append(anyio.current_effective_deadline() == -math.inf)

    runner = Runner(registry)
    with pytest.raises(KeyboardInterrupt), runner if block else nullcontext():
        runner.run_sync(response(("hang", "{}")))

    assert len(ends) == 1
    assert ends == [True]  # cancelled, not timed out


def test_leaving_the_block_with_an_error_cancels_what_still_runs(registry: ToolRegistry):
    """A turn that another thread waits for does not hold up the way out."""
    running = threading.Event()
    ends = []

    @registry.tool(timeout=3)
    async def hang() -> None:
        try:
            running.set()
            await anyio.sleep_forever()
        finally:
            ends.append(time.monotonic())

    def work() -> None:
        with suppress(BaseException):
            runner.run_sync(response(("hang", "{}")))

    began = time.monotonic()
    with suppress(LookupError), Runner(registry) as runner:
        thread = threading.Thread(target=work)
        thread.start()
        assert running.wait(5)
        raise LookupError
    thread.join(5)

    assert len(ends) == 1
    assert ends[0] - began < 2
