"""Arguments that look complete early: the whole text goes to the user's hook, and nothing ran before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from toolrun import Repaired, RepairRequest, Runner, ToolRegistry

from .responses import anthropic_events, openai_chunks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PIECES = ['{"a":[1]}', "</a>\n<b>", "[2]}"]
RAW = '{"a":[1]}</a>\n<b>[2]}'


@pytest.fixture
def log() -> list[object]:
    return []


@pytest.fixture
def registry(log: list[object]) -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    async def merge(a: list[int] = [0], b: list[int] = [0]) -> list[int]:  # noqa: B006  # it would run with less
        log.append(("ran", a, b))
        return a + b

    @registry.tool
    def plain() -> str:
        log.append("ran plain")
        return "ok"

    return registry


async def slowly(events: list[dict[str, object]], log: list[object]) -> AsyncIterator[object]:
    """One event at a time, with time enough for anything that was started to run."""
    for event in events:
        yield event
        await anyio.wait_all_tasks_blocked()
        log.append("event")
    log.append("end")


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
@pytest.mark.parametrize("entry", ["run", "stream"])
async def test_the_hook_gets_the_whole_text(registry: ToolRegistry, log: list[object], wire: str, entry: str):
    """`{"a":[1]}` was a complete object after one piece; the model had not finished."""
    asked: list[RepairRequest] = []

    @registry.repair(on="parse", tools="merge")
    async def from_markup(request: RepairRequest) -> Repaired:
        log.append("asked")
        asked.append(request)
        return Repaired(arguments={"a": [1], "b": [2]}, note="old client")

    calls = (("c1", "merge", PIECES), ("c2", "plain", ["{}"]))
    events = openai_chunks(*calls) if wire == "openai-chat" else anthropic_events(*calls)
    runner = Runner(registry, max_concurrency=1)
    if entry == "run":
        turn = await runner.run(slowly(events, log))
    else:
        async with runner.stream(slowly(events, log)) as run:
            async for _ in run:
                pass
        turn = run.turn

    assert log == ["event"] * len(events) + ["end", "asked", ("ran", [1], [2]), "ran plain"]
    (request,) = asked
    assert (request.text, request.call.raw_arguments, request.fault) == (RAW, RAW, "parse")
    assert request.issue is not None
    assert request.issue.offset == 9
    assert turn.outcomes[0].value == [1, 2]
    assert turn.outcomes[0].grade == "hook"
    assert turn.outcomes[0].repairs[0].raw == RAW
    assert turn.outcomes[1].value == "ok"


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
async def test_without_a_hook_it_is_refused(registry: ToolRegistry, log: list[object], wire: str):
    """No built-in repair takes the first object for the whole; the sibling runs."""
    calls = (("c1", "merge", PIECES), ("c2", "plain", ["{}"]))
    events = openai_chunks(*calls) if wire == "openai-chat" else anthropic_events(*calls)

    turn = await Runner(registry).run(events)

    assert log == ["ran plain"]
    assert [(outcome.status, outcome.code) for outcome in turn.outcomes] == [("refused", "syntax"), ("succeeded", None)]
    assert turn.calls[0].raw_arguments == RAW
