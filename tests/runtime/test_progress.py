"""What a tool tells before it ends."""

# Tools with annotations of their own: no postponed evaluation here.
import contextvars
import pickle
import threading
from collections.abc import AsyncIterator, Iterator

import anyio
import anyio.to_thread
import pytest

from toolrun import AttemptEnded, Event, ProgressReported, Retry, Runner, ToolContext, ToolRegistry
from toolrun._runtime.progress import Reporter

from .responses import response

place: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="nowhere")


async def follow(registry: ToolRegistry, *calls: tuple[str, str], **options: object) -> list[Event]:
    async with Runner(registry, **options).stream(response(*calls)) as run:
        return [event async for event in run]


def values(events: list[Event]) -> list[object]:
    return [event.value for event in events if isinstance(event, ProgressReported)]


def kinds(events: list[Event]) -> list[str]:
    named = [type(event).__name__ for event in events]
    return named[named.index("AttemptStarted") :]


def steps(registry: ToolRegistry) -> None:
    """The same tool in every form."""

    @registry.tool
    async def coroutine(ctx: ToolContext[None]) -> str:
        ctx.progress(1)
        await anyio.lowlevel.checkpoint()
        ctx.progress({"half": True})
        return "done"

    @registry.tool
    def function(ctx: ToolContext[None]) -> str:
        ctx.progress(1)
        ctx.progress({"half": True})
        return "done"

    @registry.tool
    def foreign_thread(ctx: ToolContext[None]) -> str:
        thread = threading.Thread(target=lambda: (ctx.progress(1), ctx.progress({"half": True})))
        thread.start()
        thread.join()
        return "done"

    @registry.tool
    def generator() -> Iterator[object]:
        yield 1
        yield {"half": True}
        yield "done"

    @registry.tool
    async def async_generator() -> AsyncIterator[object]:
        yield 1
        await anyio.lowlevel.checkpoint()
        yield {"half": True}
        yield "done"


@pytest.mark.parametrize("name", ["coroutine", "function", "foreign_thread", "generator", "async_generator"])
async def test_every_form(name: str):
    """Events in order between start and end; the model gets the result alone. Items of a generator all count."""
    registry = ToolRegistry()
    steps(registry)
    told: list[object] = [1, {"half": True}] + (["done"] if "generator" in name else [])

    events = await follow(registry, (name, "{}"))
    turn = await Runner(registry).run(response((name, "{}")))

    assert values(events) == told
    assert kinds(events) == [
        "AttemptStarted", *["ProgressReported"] * len(told), "AttemptEnded", "CallCompleted",
    ]  # fmt: skip
    assert (events[-2].status, events[-1].outcome.value) == ("succeeded", "done")
    assert turn.outcomes[0].message == "done"


async def test_where_it_belongs():
    """Position, tool and attempt tell the reports of several calls and attempts apart."""
    registry = ToolRegistry()
    tries: list[int] = []

    @registry.tool(effect="pure", retry=Retry(on=OSError, wait=0))
    def count(ctx: ToolContext[None]) -> None:
        tries.append(ctx.attempt)
        ctx.progress(f"{ctx.call_id}/{ctx.attempt}")
        if ctx.attempt == 1:
            raise OSError

    events = await follow(registry, ("count", "{}"), ("count", "{}"))

    reports = [event for event in events if isinstance(event, ProgressReported)]
    assert sorted((event.position, event.tool, event.attempt, event.value) for event in reports) == [
        (0, "count", 1, "c0/1"),
        (0, "count", 2, "c0/2"),
        (1, "count", 1, "c1/1"),
        (1, "count", 2, "c1/2"),
    ]


async def test_what_comes_late_is_told_to_nobody():
    """An abandoned thread goes on telling; after its deadline that is not this turn's business any more."""
    registry = ToolRegistry()
    go, told = threading.Event(), threading.Event()

    @registry.tool(timeout=0.2)
    def slow(ctx: ToolContext[None]) -> None:
        ctx.progress("in time")
        go.wait(5)
        ctx.progress("late")
        told.set()

    @registry.tool
    async def wait() -> None:
        with anyio.fail_after(5):
            await timed_out.wait()
        go.set()
        await anyio.to_thread.run_sync(told.wait, 5)

    timed_out = anyio.Event()
    events: list[Event] = []
    async with Runner(registry).stream(response(("slow", "{}"), ("wait", "{}"))) as run:
        async for event in run:
            events.append(event)
            if isinstance(event, AttemptEnded) and event.status == "timed_out":
                timed_out.set()

    assert values(events) == ["in time"]
    assert told.is_set()


@pytest.mark.parametrize("name", ["generator", "async_generator"])
async def test_a_generator_without_items(name: str):
    """Its result is None, and it is closed when it ends in the middle."""
    registry = ToolRegistry()
    closed: list[str] = []

    @registry.tool
    def generator(*, fail: bool = False) -> Iterator[int]:
        try:
            if fail:
                yield 1
                raise ValueError
        finally:
            closed.append("sync")

    @registry.tool(name="async_generator")
    async def agenerator(*, fail: bool = False) -> AsyncIterator[int]:
        try:
            if fail:
                yield 1
                raise ValueError
        finally:
            closed.append("async")

    turn = await Runner(registry).run(response((name, "{}"), (name, '{"fail": true}')))

    assert [(outcome.status, outcome.value) for outcome in turn.outcomes] == [("succeeded", None), ("failed", None)]
    assert len(closed) == 2


async def test_the_body_of_a_sync_generator_blocks_nobody():
    """Between two items it waits in its thread for a sibling that runs in the loop."""
    registry = ToolRegistry()
    first, second = threading.Event(), threading.Event()

    @registry.tool
    def slow() -> Iterator[int]:
        yield 1
        first.set()
        assert second.wait(5)
        yield 2

    @registry.tool
    async def quick() -> None:
        await anyio.to_thread.run_sync(first.wait, 5)
        second.set()

    turn = await Runner(registry).run(response(("slow", "{}"), ("quick", "{}")))

    assert [outcome.value for outcome in turn.outcomes] == [2, None]


async def test_an_async_generator_is_closed_in_its_own_context():
    """At the deadline its scopes are left in the task that entered them."""
    registry = ToolRegistry()
    left: list[str] = []

    @registry.tool(timeout=0.02)
    async def scoped() -> AsyncIterator[int]:
        place.set("tool")
        with anyio.CancelScope():
            try:
                yield 1
                await anyio.sleep_forever()
            finally:
                left.append(place.get())

    @registry.tool
    async def other() -> int:
        return 2

    turn = await Runner(registry).run(response(("scoped", "{}"), ("other", "{}")))

    assert [outcome.status for outcome in turn.outcomes] == ["timed_out", "succeeded"]
    assert left == ["tool"]


async def test_a_reporter_in_another_process():
    """Nobody listens there: pickled, it does nothing."""
    report = pickle.loads(pickle.dumps(Reporter(lambda event: None, 0, "t", 1)))

    assert report("half") is None
