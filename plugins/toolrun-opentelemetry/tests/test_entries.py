"""Every call has its one span, and is counted once, whatever entry it comes through and however its turn ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from opentelemetry.trace import get_current_span

from toolrun import (
    Approve,
    CallCompleted,
    Deny,
    JournalError,
    Result,
    Runner,
    StreamInterrupted,
    ToolRegistry,
    finalize,
)
from toolrun.abc import Listener
from toolrun.journals import MemoryJournal

from .responses import blocks, response

if TYPE_CHECKING:
    from .conftest import Telemetry

ONE = response(("look", "{}"))


def make_registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool(effect="pure")
    async def look() -> str:
        return "done" if get_current_span().is_recording() else "no span"

    @registry.tool(approval=True)
    async def pay() -> str:
        return "paid"

    return registry


async def by_run(runner: Runner) -> None:
    await runner.run(ONE, turn_id="t")


async def by_stream(runner: Runner) -> None:
    async with runner.stream(ONE, turn_id="t") as run:
        async for _ in run:
            pass


async def by_execute(runner: Runner) -> None:
    await runner.execute(finalize(ONE), turn_id="t")


async def by_run_sync(runner: Runner) -> None:
    with runner:
        runner.run_sync(ONE, turn_id="t")


@pytest.mark.parametrize("entry", [by_run, by_stream, by_execute, by_run_sync])
@pytest.mark.parametrize("journaled", [False, True])
async def test_entries(telemetry: Telemetry, entry: Any, journaled: bool) -> None:
    journal = MemoryJournal() if journaled else None
    runner = Runner(make_registry(), listeners=[telemetry.listener()], run_id="r", journal=journal)
    with telemetry.tracer.start_as_current_span("invoke_agent") as parent:
        await entry(runner)
    span = telemetry.span("execute_tool look")
    assert span.parent == parent.get_span_context()
    assert span.attributes["toolrun.call.key"] == "r:t:0"
    assert span.attributes["toolrun.outcome.status"] == "succeeded"
    assert telemetry.counts("toolrun.calls") == {("look", "succeeded"): 1}


@pytest.mark.parametrize(
    ("answer", "status", "executed"),
    [(Approve(), "succeeded", 1), (Deny(), "denied", 0), (Result("cash"), "succeeded", 0)],
)
async def test_a_resumed_call_is_linked_to_the_one_that_was_deferred(
    telemetry: Telemetry, answer: Any, status: str, executed: int
) -> None:
    """Both have the same key; what came of the siblings is not told again."""
    runner = Runner(make_registry(), listeners=[telemetry.listener()])
    turn = await runner.run(response(("pay", "{}"), ("look", "{}"), ("invented", "{}")))
    telemetry.spans.clear()
    await runner.resume(turn, {"c0": answer})

    deferred, resumed = [span for span in telemetry.spans if span.name == "execute_tool pay"]
    assert [link.context for link in resumed.links] == [deferred.context]
    assert deferred.attributes["toolrun.call.key"] == resumed.attributes["toolrun.call.key"]
    assert resumed.attributes["toolrun.outcome.status"] == status
    assert resumed.events[0].name == "toolrun.approval.answered"
    assert len(telemetry.spans) == 4
    assert sum(point["count"] for point in telemetry.points("gen_ai.execute_tool.duration")) == 1 + executed


async def test_a_turn_that_could_not_be_resumed(telemetry: Telemetry) -> None:
    """Its calls wait as before, and that was told."""
    journal = MemoryJournal()
    runner = Runner(make_registry(), listeners=[telemetry.listener()], journal=journal)
    turn = await runner.run(response(("pay", "{}")))
    await journal.aclose()
    with pytest.raises(JournalError):
        await runner.resume(turn, {"c0": Approve()})
    assert [span.name for span in telemetry.spans] == ["execute_tool pay"]
    assert telemetry.counts("toolrun.calls") == {("pay", "approval", "deferred"): 1}


async def test_a_call_that_is_resumed_elsewhere_has_the_key(telemetry: Telemetry) -> None:
    """In another process nothing is known of the first span, but the key."""
    first, second = (
        Runner(make_registry(), listeners=[telemetry.listener()], signing_key=b"sixteen bytes ..") for _ in range(2)
    )
    turn = await first.run(response(("pay", "{}")))
    await second.resume(first.dump_turn(turn), {"c0": Approve()})
    deferred, resumed = telemetry.spans
    assert resumed.links == ()
    assert deferred.attributes["toolrun.call.key"] == resumed.attributes["toolrun.call.key"]


async def test_only_the_last_deferred_calls_are_remembered(telemetry: Telemetry) -> None:
    """1,024 of them, so that what nobody ever resumes costs no memory without end."""
    runner = Runner(make_registry(), listeners=[telemetry.listener()])
    calls = finalize(response(*[("pay", "{}")] * 600))
    earlier, later = [await runner.execute(calls) for _ in range(2)]
    for turn, position, remembered in [(earlier, 0, False), (earlier, 599, True), (later, 0, True), (later, 599, True)]:
        await runner.resume(turn, {position: Deny()})
        assert len(telemetry.spans[-1].links) == remembered


async def left_behind(registry: ToolRegistry, source: object, stuck: anyio.Event) -> MemoryJournal:
    """The journal of a process that ended while the last call ran."""
    journal = MemoryJournal()
    async with anyio.create_task_group() as group:
        group.start_soon(Runner(registry, journal=journal, max_concurrency=1).run, source)
        await stuck.wait()
        left = journal.reopened()
        group.cancel_scope.cancel()
    return left


@pytest.mark.parametrize(
    ("gone", "name", "counted"),
    [
        (False, "execute_tool hang", ("hang", "succeeded")),
        (True, "execute_tool", ("_OTHER", "unknown_tool", "interrupted")),
    ],
)
async def test_a_recovered_turn(telemetry: Telemetry, gone: bool, name: str, counted: tuple[str, ...]) -> None:
    """What was recorded before is not told again. What is run has its span; the name of a tool that is gone is no attribute."""
    registry, stuck = make_registry(), anyio.Event()

    @registry.tool(effect="pure")
    async def hang() -> str:
        if not stuck.is_set():
            stuck.set()
            await anyio.sleep_forever()
        return "done"

    journal = await left_behind(registry, response(("look", "{}"), ("hang", "{}")), stuck)
    runner = Runner(make_registry() if gone else registry, listeners=[telemetry.listener()], journal=journal)
    (turn,) = [turn async for turn in runner.recover()]
    assert turn.outcomes[0].status == "succeeded"
    assert [span.name for span in telemetry.spans] == [name]
    assert telemetry.counts("toolrun.calls") == {counted: 1}


async def test_an_early_start(telemetry: Telemetry) -> None:
    """Its span ends while the stream goes on."""
    completed, seen = anyio.Event(), list[int]()

    class Watch(Listener):
        def on_event(self, event: object, turn: str) -> None:
            if isinstance(event, CallCompleted):
                completed.set()

    async def source() -> AsyncIterator[object]:
        for event in blocks(("look", "{}"), ("look", "{}")):
            yield event
            if event["type"] == "content_block_start" and event["index"] == 1:
                await completed.wait()
                seen.append(len(telemetry.spans))

    runner = Runner(make_registry(), listeners=[telemetry.listener(), Watch()], start="eager")
    with telemetry.tracer.start_as_current_span("invoke_agent") as parent, anyio.fail_after(5):
        await runner.run(source())
    assert seen == [1]
    spans = [span for span in telemetry.spans if span.name == "execute_tool look"]
    assert [span.attributes["toolrun.outcome.status"] for span in spans] == ["succeeded", "succeeded"]
    assert [span.parent for span in spans] == [parent.get_span_context()] * 2


@pytest.mark.parametrize("entry", ["run", "stream", "execute"])
async def test_a_cancelled_turn(telemetry: Telemetry, entry: str) -> None:
    """What ran, what waited for its turn and what was refused: each has its span, with its outcome."""
    registry, began = make_registry(), anyio.Event()

    @registry.tool
    async def hang() -> None:
        began.set()
        await anyio.sleep_forever()

    runner = Runner(registry, listeners=[telemetry.listener()], max_concurrency=2)
    source = response(("invented", "{}"), ("hang", "{}"), ("look", '{"n": 1}'), ("hang", "{}"), ("hang", "{}"))

    async def run() -> None:
        if entry == "run":
            await runner.run(source)
        elif entry == "execute":
            await runner.execute(finalize(source))
        else:
            async with runner.stream(source) as run:
                async for _ in run:
                    pass

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await began.wait()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()

    spans = sorted(telemetry.spans, key=lambda span: span.attributes["gen_ai.tool.call.id"])
    said = [
        (span.attributes["gen_ai.tool.name"], span.attributes["error.type"], span.start_time < span.end_time)
        for span in spans
    ]
    assert said == [
        ("_OTHER", "unknown_tool", False),
        ("hang", "cancelled", True),
        ("look", "unknown_key", False),
        ("hang", "cancelled", True),
        ("hang", "cancelled", False),
    ]
    assert telemetry.counts("toolrun.calls") == {
        ("_OTHER", "unknown_tool", "refused"): 1,
        ("look", "unknown_key", "refused"): 1,
        ("hang", "cancelled", "cancelled"): 3,
    }
    assert telemetry.counts("toolrun.attempts") == {("hang", "cancelled"): 2}


async def test_a_stream_that_broke_off(telemetry: Telemetry) -> None:
    async def broken() -> AsyncIterator[object]:
        call = {"index": 0, "id": "c0", "type": "function", "function": {"name": "look", "arguments": "{"}}
        yield {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
        raise ConnectionError("gone")

    runner = Runner(make_registry(), listeners=[telemetry.listener()])
    with pytest.raises(StreamInterrupted):
        await runner.run(broken())
    span = telemetry.span("execute_tool look")
    assert span.attributes["error.type"] == "stream_error"
    assert span.events[0].attributes["toolrun.call.status"] == "incomplete"


def test_threads_with_loops_of_their_own(telemetry: Telemetry) -> None:
    """One listener, many runners and event loops: every call is under the span of its own thread."""
    registry, listener = make_registry(), telemetry.listener()
    together = threading.Barrier(8)
    parents: dict[int, Any] = {}

    def work(number: int) -> None:
        together.wait(5)
        with telemetry.tracer.start_as_current_span(f"agent {number}") as parent:
            parents[parent.get_span_context().span_id] = number
            runner = Runner(registry, listeners=[listener], run_id=f"r{number}")
            if number % 2:
                asyncio.run(runner.run(response(*[("look", "{}")] * 20)))
            else:
                with runner:
                    runner.run_sync(response(*[("look", "{}")] * 20))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spans = [span for span in telemetry.spans if span.name == "execute_tool look"]
    assert len(spans) == 160
    for span in spans:
        assert span.attributes["toolrun.call.key"].startswith(f"r{parents[span.parent.span_id]}:")
    assert telemetry.counts("toolrun.calls") == {("look", "succeeded"): 160}
