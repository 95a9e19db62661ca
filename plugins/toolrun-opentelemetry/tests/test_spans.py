"""One span a call: by the conventions, with what happened to the call as its events."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

from toolrun import Defer, Deny, Limits, Repaired, RepairRequest, Runner, ToolError, ToolRegistry, TryAgain, finalize

from .responses import response

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from .conftest import Telemetry


def events_of(span: ReadableSpan) -> list[tuple[str, dict[str, Any]]]:
    return [(event.name.removeprefix("toolrun."), dict(event.attributes)) for event in span.events]


async def test_a_call(telemetry: Telemetry) -> None:
    registry = ToolRegistry()

    @registry.tool
    async def get_weather(city: str) -> str:
        """Get the weather."""
        return f"fog in {city}"

    runner = Runner(registry, listeners=[telemetry.listener()], run_id="r")
    with telemetry.tracer.start_as_current_span("invoke_agent") as parent:
        await runner.run(response(("get_weather", '{"city": "Oslo"}')), turn_id="t")

    span = telemetry.span("execute_tool get_weather")
    assert span.kind is SpanKind.INTERNAL
    assert span.parent == parent.get_span_context()
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.description": "Get the weather.",
        "gen_ai.tool.call.id": "c0",
        "toolrun.call.key": "r:t:0",
        "toolrun.call.attempts": 1,
        "toolrun.call.grade": "exact",
        "toolrun.outcome.status": "succeeded",
    }
    assert events_of(span) == [
        ("call.finalized", {"toolrun.call.status": "ok"}),
        ("attempt.started", {"toolrun.attempt.number": 1}),
        ("attempt.ended", {"toolrun.attempt.number": 1, "toolrun.attempt.status": "succeeded"}),
    ]
    assert (span.instrumentation_scope.name, span.instrumentation_scope.version) == ("toolrun_opentelemetry", "0.1.0")


async def test_what_a_tool_does_nests_under_its_span(telemetry: Telemetry) -> None:
    """Also in a worker thread, and for calls that run at once; around the turn nothing is left current."""
    registry, both = ToolRegistry(), threading.Barrier(2)

    @registry.tool
    async def looks_up(n: int) -> None:
        with telemetry.tracer.start_as_current_span(f"query {n}"):
            await anyio.lowlevel.checkpoint()

    @registry.tool
    def computes(n: int) -> None:
        both.wait(5)
        with telemetry.tracer.start_as_current_span(f"query {n}"):
            both.wait(5)

    runner = Runner(registry, listeners=[telemetry.listener()])
    calls = [("looks_up", '{"n": 0}'), ("looks_up", '{"n": 1}'), ("computes", '{"n": 2}'), ("computes", '{"n": 3}')]
    await runner.run(response(*calls))

    call_of = {span.context.span_id: span.attributes.get("gen_ai.tool.call.id") for span in telemetry.spans}
    parents = {span.name: call_of[span.parent.span_id] for span in telemetry.spans if span.name.startswith("query")}
    assert parents == {"query 0": "c0", "query 1": "c1", "query 2": "c2", "query 3": "c3"}
    assert not get_current_span().get_span_context().is_valid


async def hold(request: object) -> Defer:
    return Defer()


async def refuse(request: object) -> Deny:
    return Deny("no")


def make_registry() -> ToolRegistry:
    """Tools for every outcome."""
    registry = ToolRegistry()

    @registry.tool
    async def breaks(n: int) -> None:
        raise ZeroDivisionError("no")

    @registry.tool
    async def explains(n: int) -> None:
        raise ToolError("no")

    @registry.tool(timeout=0.01)
    async def hangs(n: int) -> None:
        await anyio.sleep_forever()

    @registry.tool(approval=hold)
    async def waits(n: int) -> None:
        """Is never run."""

    @registry.tool(approval=refuse)
    async def denied(n: int) -> None:
        """Is never run."""

    return registry


OK, ERROR = StatusCode.UNSET, StatusCode.ERROR


@pytest.mark.parametrize(
    ("name", "status", "code", "span_status", "error_type"),
    [
        ("breaks", "failed", "raised", ERROR, "ZeroDivisionError"),
        ("explains", "failed", "raised", ERROR, "toolrun.ToolError"),
        ("hangs", "timed_out", "deadline", ERROR, "deadline"),
        ("waits", "deferred", "approval", OK, None),
        ("denied", "denied", "denied", OK, None),
    ],
)
async def test_outcomes(
    telemetry: Telemetry, name: str, status: str, code: str, span_status: StatusCode, error_type: str | None
) -> None:
    runner = Runner(make_registry(), listeners=[telemetry.listener()])
    await runner.run(response((name, '{"n": 1}')))
    span = telemetry.span(f"execute_tool {name}")
    attributes = span.attributes
    assert (attributes["toolrun.outcome.status"], attributes["toolrun.outcome.code"]) == (status, code)
    assert (span.status.status_code, span.status.description) == (span_status, None)
    assert attributes.get("error.type") == error_type


@pytest.mark.parametrize(
    ("call", "finish", "name", "code", "error_type"),
    [
        (("breaks", '{"n": "x"}'), "tool_calls", "execute_tool breaks", "schema", "schema"),
        (("breaks", '{"n": 1'), "length", "execute_tool breaks", "truncated", "truncated"),
        (("breaks", '{"n": 1}'), "length", "execute_tool breaks", "held", None),
        (("breaks", '{"n": 1}, {"n": 2}'), "tool_calls", "execute_tool breaks", "several_objects", "several_objects"),
        (("invented", '{"n": 1}'), "tool_calls", "execute_tool", "unknown_tool", "unknown_tool"),
        ((None, '{"n": 1}'), "tool_calls", "execute_tool", "nameless", "nameless"),
    ],
)
async def test_calls_that_never_ran(
    telemetry: Telemetry, call: tuple[str | None, str], finish: str, name: str, code: str, error_type: str | None
) -> None:
    """Their span has no length, and the name of the tool if there is such a tool."""
    runner = Runner(make_registry(), listeners=[telemetry.listener()])
    await runner.run(response(call, finish=finish))
    span = telemetry.span(name)
    attributes = span.attributes
    assert attributes["toolrun.outcome.code"] == code
    assert attributes["gen_ai.tool.name"] == ("breaks" if name.endswith("breaks") else "_OTHER")
    assert attributes.get("error.type") == error_type
    assert span.start_time == span.end_time
    assert span.events[0].name == "toolrun.call.finalized"


async def test_repairs(telemetry: Telemetry) -> None:
    """Each answer of a hook is an event, with its own time, before the span began."""
    registry = ToolRegistry()

    @registry.tool
    async def order(table: int) -> str:
        return "ok"

    @registry.repair(on="schema")
    def old_client(request: RepairRequest) -> Repaired:
        return Repaired(arguments={"table": 4}, note="a secret")

    runner = Runner(registry, listeners=[telemetry.listener()])
    await runner.run(response(("order", '{"table": "four"}'), ("order", '{"table": 1}, {"table": 2}')))
    mended, refused = sorted(telemetry.spans, key=lambda span: span.attributes["gen_ai.tool.call.id"])
    assert mended.attributes["toolrun.call.grade"] == "hook"
    finalized, repaired = mended.events[:2]
    assert repaired.name == "toolrun.repair"
    assert dict(repaired.attributes) == {
        "toolrun.repair.hook": "old_client",
        "toolrun.repair.fault": "schema",
        "toolrun.repair.accepted": True,
        "toolrun.repair.grade": "hook",
    }
    assert finalized.timestamp <= repaired.timestamp <= mended.start_time
    assert "toolrun.call.grade" not in refused.attributes
    assert dict(refused.events[-1].attributes) == {
        "toolrun.repair.hook": "outer_noise",
        "toolrun.repair.fault": "parse",
        "toolrun.repair.accepted": False,
    }


async def test_attempts(telemetry: Telemetry) -> None:
    """One span for all of them; the wait before the next is said, and the class of what was raised."""
    registry, tries = ToolRegistry(), iter([1, 2])

    @registry.tool
    async def moody() -> str:
        if next(tries) == 1:
            raise TryAgain("once more", after=0)
        return "ok"

    await Runner(registry, listeners=[telemetry.listener()]).run(response(("moody", "{}")))
    span = telemetry.span("execute_tool moody")
    assert span.attributes["toolrun.call.attempts"] == 2
    ended = {"toolrun.attempt.number": 1, "toolrun.attempt.status": "failed", "error.type": "toolrun.TryAgain"}
    assert events_of(span)[1:] == [
        ("attempt.started", {"toolrun.attempt.number": 1}),
        ("attempt.ended", {**ended, "toolrun.attempt.retry_in": 0}),
        ("attempt.started", {"toolrun.attempt.number": 2}),
        ("attempt.ended", {"toolrun.attempt.number": 2, "toolrun.attempt.status": "succeeded"}),
    ]


async def explode(request: object) -> Deny:
    raise RuntimeError("a secret")


@pytest.mark.parametrize(
    ("approver", "decision"), [(hold, "deferred"), (refuse, "denied"), (explode, "failed"), (None, "deferred")]
)
async def test_approvals(telemetry: Telemetry, approver: Any, decision: str) -> None:
    registry = ToolRegistry()

    @registry.tool(approval=True)
    async def pay() -> None:
        """Is never run."""

    await Runner(registry, listeners=[telemetry.listener()], approver=approver).run(response(("pay", "{}")))
    requested, answered = events_of(telemetry.span("execute_tool pay"))[1:]
    assert requested == ("approval.requested", {})
    assert answered == (
        "approval.answered",
        {"toolrun.approval.decision": decision, "toolrun.approval.edited": False},
    )


async def test_a_repeated_call_has_a_span_with_the_key_of_the_one_that_ran(telemetry: Telemetry) -> None:
    registry = ToolRegistry()

    @registry.tool
    async def once() -> str:
        return "ok"

    (call,) = finalize(response(("once", "{}")))
    runner = Runner(registry, listeners=[telemetry.listener()], run_id="r")
    await runner.execute([call, call], turn_id="t")
    ran, answered = telemetry.spans
    for span in (ran, answered):
        assert span.attributes["toolrun.call.key"] == "r:t:0"
        assert span.attributes["toolrun.outcome.status"] == "succeeded"
    assert (len(ran.events), len(answered.events)) == (2, 0)


async def test_a_limit_names_the_tool(telemetry: Telemetry) -> None:
    """The outcome has no tool then, but the turn has one of that name."""
    runner = Runner(make_registry(), listeners=[telemetry.listener()], limits=Limits(calls=1))
    await runner.run(response(("breaks", '{"n": 1}'), ("hangs", '{"n": 1}')))
    span = telemetry.span("execute_tool hangs")
    assert span.attributes["toolrun.outcome.code"] == "call_limit"


async def test_the_name_of_the_agent(telemetry: Telemetry) -> None:
    await Runner(make_registry(), listeners=[telemetry.listener(agent_name="Clerk")]).run(
        response(("breaks", '{"n": 1}'), ("invented", "{}"))
    )
    assert [span.attributes["gen_ai.agent.name"] for span in telemetry.spans] == ["Clerk", "Clerk"]


async def test_calls_of_the_provider_and_of_other_choices_have_no_span(telemetry: Telemetry) -> None:
    hosted = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "fjords"}}
    message = {"type": "message", "role": "assistant", "content": [hosted], "stop_reason": "end_turn"}
    second = response(("breaks", '{"n": 1}'))
    second["choices"][0]["index"] = 1
    second["choices"].insert(0, {"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"})
    runner = Runner(make_registry(), listeners=[telemetry.listener()])
    for source in (message, second):
        assert (await runner.run(source)).outcomes == ()
    assert telemetry.spans == []
    assert telemetry.points("toolrun.calls") == []
