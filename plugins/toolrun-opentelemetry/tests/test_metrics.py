"""What is counted, and that names which a model invents are no attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolrun import Repaired, RepairRequest, Runner, ToolRegistry, TryAgain

from .responses import response

if TYPE_CHECKING:
    from .conftest import Telemetry


def make_registry() -> ToolRegistry:
    registry, tries = ToolRegistry(), iter(range(9))

    @registry.tool
    async def order(table: int) -> str:
        return "ok"

    @registry.tool
    async def breaks() -> None:
        raise ConnectionError("no")

    @registry.tool
    async def moody() -> str:
        if next(tries) == 0:
            raise TryAgain("once more", after=0)
        return "ok"

    @registry.repair(on="schema")
    def old_client(request: RepairRequest) -> Repaired | None:
        return Repaired(arguments={"table": 4}) if "four" in request.text else None

    return registry


async def test_counters(telemetry: Telemetry) -> None:
    runner = Runner(make_registry(), listeners=[telemetry.listener()])
    await runner.run(
        response(
            ("order", '{"table": 1}'),
            ("order", '{"table": 2,}'),
            ("order", '{"table": "four"}'),
            ("order", '{"table": "five"}'),
            ("order", '{"table": 1}, {"table": 2}'),
            ("breaks", "{}"),
            ("moody", "{}"),
        )
    )
    assert telemetry.counts("toolrun.calls") == {
        ("order", "succeeded"): 3,
        ("order", "schema", "refused"): 1,
        ("order", "several_objects", "refused"): 1,
        ("breaks", "raised", "failed"): 1,
        ("moody", "succeeded"): 1,
    }
    assert telemetry.counts("toolrun.repairs") == {
        ("order", True, "parse", "lossless"): 1,
        ("order", True, "schema", "hook"): 1,
        ("order", False, "parse"): 1,
    }
    assert telemetry.counts("toolrun.attempts") == {
        ("order", "succeeded"): 3,
        ("breaks", "failed"): 1,
        ("moody", "failed"): 1,
        ("moody", "succeeded"): 1,
    }


async def test_durations(telemetry: Telemetry) -> None:
    """One for each execution, as long as its span, in the buckets of the conventions; none for what never ran."""
    runner = Runner(make_registry(), listeners=[telemetry.listener(agent_name="Clerk")])
    await runner.run(response(("order", '{"table": 1}'), ("breaks", "{}"), ("order", "{}"), ("invented", "{}")))
    of_breaks, of_order = sorted(
        telemetry.points("gen_ai.execute_tool.duration"), key=lambda point: point["attributes"]["gen_ai.tool.name"]
    )
    assert of_order["attributes"] == {
        "gen_ai.tool.name": "order",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "Clerk",
    }
    assert of_breaks["attributes"]["error.type"] == "ConnectionError"
    assert (of_order["count"], of_breaks["count"]) == (1, 1)
    span = telemetry.span("execute_tool breaks")
    assert of_breaks["sum"] == pytest.approx((span.end_time - span.start_time) / 1e9, abs=1e-9)
    buckets = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
    assert of_order["explicit_bounds"] == buckets
    (exemplar,) = of_breaks["exemplars"]
    assert exemplar["span_id"] == span.context.span_id


async def test_invented_names_are_no_attributes(telemetry: Telemetry) -> None:
    """However many a model invents; what was asked of a tool that the turn does not have is one series."""
    runner = Runner(make_registry(), listeners=[telemetry.listener()])
    await runner.run(response(*[(f"invented_{number}", "{}") for number in range(200)]))
    assert telemetry.counts("toolrun.calls") == {("_OTHER", "unknown_tool", "refused"): 200}
    assert {span.name for span in telemetry.spans} == {"execute_tool"}
    assert "invented" not in telemetry.exported()


async def test_another_spelling_belongs_to_its_tool(telemetry: Telemetry) -> None:
    runner = Runner(make_registry(), listeners=[telemetry.listener()], repairs=())
    await runner.run(response(("functions.order", '{"table": 1}'), ("Order", '{"table": 1}')))
    names = {name for name, *_ in telemetry.counts("toolrun.calls")}
    assert names == {"order"}
