"""Whatever the SDK does, calls run as without it; and nothing of a turn is kept when it is over."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Sampler
from opentelemetry.trace import get_current_span

from toolrun import Runner, ToolContext, ToolRegistry, UnknownWire, finalize
from toolrun.journals import MemoryJournal
from toolrun_opentelemetry import OpenTelemetryListener
from toolrun_opentelemetry._turns import TracedTurn

from .responses import response

if TYPE_CHECKING:
    from .conftest import Telemetry


def make_registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    async def look(n: int = 0) -> str:
        return f"looked {n}"

    @registry.tool(approval=True)
    async def pay() -> str:
        return "paid"

    return registry


SOURCE = response(("look", '{"n": 1}'), ("invented", "{}"), ("look", '{"n": 2}'))
STATUSES = ["succeeded", "refused", "succeeded"]


class BrokenExporter(SpanExporter):
    def export(self, spans: object) -> Any:
        raise OSError("the collector is gone")


class BrokenAtTheStart(SpanProcessor):
    def on_start(self, span: object, parent_context: object = None) -> None:
        raise RuntimeError("on_start")


class BrokenAtTheEnd(SpanProcessor):
    def on_end(self, span: object) -> None:
        raise RuntimeError("on_end")


class BrokenSampler(Sampler):
    def should_sample(self, *arguments: object, **options: object) -> Any:
        raise RuntimeError("should_sample")

    def get_description(self) -> str:
        return "broken"


@pytest.mark.parametrize(
    ("fault", "logged"),
    [
        (SimpleSpanProcessor(BrokenExporter()), ""),
        (BrokenAtTheStart(), "on_start"),
        (BrokenAtTheEnd(), "on_end"),
        (BrokenSampler(), "should_sample"),
    ],
)
async def test_an_sdk_that_raises(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture, fault: Any, logged: str
) -> None:
    """It is logged; calls have their outcomes, and are counted."""
    sampler = fault if isinstance(fault, Sampler) else None
    traces = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    if sampler is None:
        traces.add_span_processor(fault)
    listener = OpenTelemetryListener(tracer_provider=traces, meter_provider=telemetry.meters)
    with caplog.at_level(logging.ERROR):
        turn = await Runner(make_registry(), listeners=[listener]).run(SOURCE)
    assert [outcome.status for outcome in turn.outcomes] == STATUSES
    assert telemetry.counts("toolrun.calls") == {
        ("look", "succeeded"): 2,
        ("_OTHER", "unknown_tool", "refused"): 1,
    }
    raised = {str(record.exc_info[1]) for record in caplog.records if record.name == "toolrun"}
    assert raised == ({logged} if logged else set())
    assert not get_current_span().get_span_context().is_valid


async def test_a_cancelled_turn_with_an_sdk_that_raises(telemetry: Telemetry, caplog: pytest.LogCaptureFixture) -> None:
    """What one span raises at the end of the turn costs no other its end."""
    telemetry.traces.add_span_processor(BrokenAtTheEnd())
    registry, began = ToolRegistry(), anyio.Event()

    @registry.tool
    async def hang() -> None:
        began.set()
        await anyio.sleep_forever()

    runner = Runner(registry, listeners=[telemetry.listener()])
    async with anyio.create_task_group() as group:
        group.start_soon(runner.run, response(*[("hang", "{}")] * 3))
        await began.wait()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert [span.attributes["toolrun.outcome.status"] for span in telemetry.spans] == ["cancelled"] * 3
    assert telemetry.counts("toolrun.calls") == {("hang", "cancelled", "cancelled"): 3}
    assert {record.name for record in caplog.records} == {"toolrun"}


async def test_an_error_without_a_text(telemetry: Telemetry, caplog: pytest.LogCaptureFixture) -> None:
    """An exception that cannot be written down does not keep its span from ending."""
    registry = ToolRegistry()

    class Wordless(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @registry.tool
    async def breaks() -> None:
        raise Wordless

    await Runner(registry, listeners=[telemetry.listener(content=True)]).run(response(("breaks", "{}")))
    span = telemetry.span("execute_tool breaks")
    assert span.attributes["error.type"].endswith("Wordless")
    assert telemetry.counts("toolrun.calls") == {("breaks", "raised", "failed"): 1}
    assert {record.name for record in caplog.records} == {"toolrun"}


async def test_no_sdk() -> None:
    """With the API alone everything is a no-op."""
    turn = await Runner(make_registry(), listeners=[OpenTelemetryListener()]).run(SOURCE)
    assert [outcome.status for outcome in turn.outcomes] == STATUSES


async def test_spans_that_are_not_sampled(telemetry: Telemetry) -> None:
    """The metrics are whole all the same."""
    traces = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    listener = OpenTelemetryListener(tracer_provider=traces, meter_provider=telemetry.meters)
    await Runner(make_registry(), listeners=[listener]).run(SOURCE)
    assert telemetry.counts("toolrun.calls")["look", "succeeded"] == 2
    (point,) = telemetry.points("gen_ai.execute_tool.duration")
    assert point["count"] == 2


def remembered() -> int:
    gc.collect()
    return sum(isinstance(thing, TracedTurn) for thing in gc.get_objects())


async def test_nothing_is_kept_of_turns_that_are_over(telemetry: Telemetry) -> None:
    """Whether they ended well, were cancelled, broke off, or wait for answers."""
    registry = make_registry()

    @registry.tool
    async def hang() -> None:
        await anyio.sleep_forever()

    runner = Runner(registry, listeners=[telemetry.listener()])
    async with anyio.create_task_group() as group, runner.stream(response(("hang", "{}"))):
        group.start_soon(runner.run, response(("hang", "{}")))
        await anyio.wait_all_tasks_blocked()
        assert remembered() == 2
        group.cancel_scope.cancel()
    async with runner.stream(SOURCE):
        pass
    await runner.run(SOURCE)
    await runner.run(response(("pay", "{}")))
    with pytest.raises(UnknownWire):
        await runner.run([{"unknown": "event"}])
    assert remembered() == 0


@pytest.mark.parametrize("cancelled", [False, True])
async def test_runs_that_a_journal_joins(telemetry: Telemetry, cancelled: bool) -> None:
    """They have one key; each has its own span, and both end, also where one of the runs is cancelled."""
    registry, release = ToolRegistry(), anyio.Event()

    @registry.tool
    async def once(context: ToolContext[None]) -> str:
        await release.wait()
        return context.key

    runner = Runner(registry, listeners=[telemetry.listener()], journal=MemoryJournal(), run_id="r")
    calls = finalize(response(("once", "{}")))
    values: list[object] = []

    async def run(scope: anyio.CancelScope) -> None:
        with scope:
            turn = await runner.execute(calls, turn_id="t")
            values.append(turn.outcomes[0].value)

    scopes = anyio.CancelScope(), anyio.CancelScope()
    async with anyio.create_task_group() as group:
        for scope in scopes:
            group.start_soon(run, scope)
            await anyio.wait_all_tasks_blocked()
        if cancelled:
            scopes[1].cancel()
            await anyio.wait_all_tasks_blocked()
        release.set()
    assert values == ["r:t:0"] * (1 if cancelled else 2)
    assert [span.start_time < span.end_time for span in telemetry.spans] == [True, True]
    assert telemetry.spans[0].attributes["toolrun.outcome.status"] == "succeeded"
    assert remembered() == 0


async def test_many_turns_at_once(telemetry: Telemetry) -> None:
    """Each call is under the span that its own turn ran in."""
    registry, listener = make_registry(), telemetry.listener()
    parents: dict[int, int] = {}

    async def run(number: int) -> None:
        with telemetry.tracer.start_as_current_span("agent") as parent:
            parents[number] = parent.get_span_context().span_id
            runner = Runner(registry, listeners=[listener], run_id=f"r{number}", max_concurrency=2)
            await runner.run(response(*[("look", f'{{"n": {number}}}')] * 5), turn_id="t")

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(run, number)
    found = {
        (span.attributes["toolrun.call.key"], span.parent.span_id)
        for span in telemetry.spans
        if span.name == "execute_tool look"
    }
    assert found == {(f"r{number}:t:{place}", parents[number]) for number in range(20) for place in range(5)}
