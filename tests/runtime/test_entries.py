"""The same bytes get the same verdict at every entry: streams, malformed arguments, and the inputs that others ran wrong."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest

from toolrun import Approve, Runner, Tool, ToolRegistry, finalize

from .responses import openai_completion, response
from .test_inputs import CASES as INPUTS
from .test_inputs import OPENAI_FINISH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolrun import Turn

Json = dict[str, Any]

FILES = Path(__file__).parents[1] / "cases"
STREAMS, REPAIRS = (
    [json.loads(line) for line in (FILES / name).read_text("utf-8").split("\n") if line]
    for name in ("stream_cases.jsonl", "repair_cases.jsonl")
)

ANYTHING: Json = {"type": "object", "additionalProperties": True}
TEXT: Json = {"type": "object", "properties": {"text": {"type": "string"}}}
PAY: Json = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "default": 1},
        "to": {"type": "string", "default": "nobody"},
        "rate": {"type": "number", "default": 1.0},
    },
}


class Case(NamedTuple):
    """Events, or one whole response; how they end; and the schemas of the tools, none of which requires anything."""

    source: Any
    tools: dict[str, Json]
    wire: str = "openai-chat"
    end: str = "auto"


def of_stream(case: Json) -> Case:
    calls = finalize(case["events"], wire=case["wire"], end=case["end"])
    tools = {call.name: TEXT if call.kind == "custom" else ANYTHING for call in calls if call.name}
    return Case(case["events"], tools, case["wire"], case["end"])


def of_repair(case: Json) -> Case:
    finish = case.get("finish_reason") or "tool_calls"
    if case["category"] == "tool_name":
        tools = dict.fromkeys(case["registered"], ANYTHING)
        return Case(openai_completion(("c0", case["raw"], [case["args_raw"]]), finish=finish), tools)
    schema = case["tool_schema"]
    tools = {schema["name"]: {**schema["parameters"], "required": []}}
    return Case(response((schema["name"], case["raw"]), finish=finish), tools)


WRITTEN = {
    **{case["id"]: of_stream(case) for case in STREAMS},
    **{case["id"]: of_repair(case) for case in REPAIRS},
    **{
        name: Case(response((case.name, case.raw), finish=OPENAI_FINISH[case.finish]), {"pay": PAY})
        for name, case in INPUTS.items()
    },
}


def raising(events: list[Json]) -> Iterator[Json]:
    yield from events
    raise ConnectionError


class Bench:
    """A case with tools that note what they ran with, and a runner for it."""

    def __init__(self, case: Case, options: Json) -> None:
        self.case = case
        self.ran: list[tuple[str, Json]] = []
        self.registry = ToolRegistry(
            Tool.from_json_schema(name=name, input_schema=schema, handler=functools.partial(self.note, name), **options)
            for name, schema in case.tools.items()
        )
        self.runner = Runner(self.registry, max_concurrency=1, on_stream_error="return")

    async def note(self, name: str, /, **arguments: Any) -> str:
        self.ran.append((name, arguments))
        return "done"

    @property
    def given(self) -> dict[str, Any]:
        """What every entry that reads a source is given."""
        broken = self.case.end == "error"
        source = raising(self.case.source) if broken else self.case.source
        return {"source": source, "wire": self.case.wire, "end": "auto" if broken else self.case.end, "turn_id": "T"}


async def by_run(bench: Bench) -> Turn:
    return await bench.runner.run(**bench.given)


async def by_stream(bench: Bench) -> Turn:
    async with bench.runner.stream(**bench.given) as run:
        async for _ in run:
            pass
    return run.turn


async def by_run_sync(bench: Bench) -> Turn:
    return await anyio.to_thread.run_sync(lambda: bench.runner.run_sync(**bench.given))


async def by_execute(bench: Bench) -> Turn:
    calls = finalize(bench.case.source, wire=bench.case.wire, end=bench.case.end)
    return await bench.runner.execute([call for call in calls if call.choice == 0], wire=bench.case.wire)


async def by_resume(bench: Bench) -> Turn:
    turn = await bench.runner.run(**bench.given)
    assert bench.ran == []
    return await bench.runner.resume(turn, {outcome.call.position: Approve() for outcome in turn.pending})


ENTRIES = {
    "run": (by_run, {}),
    "stream": (by_stream, {}),
    "run_sync": (by_run_sync, {}),
    "execute": (by_execute, {}),
    "approval": (by_run, {"approval": lambda request: Approve()}),
    "resume": (by_resume, {"approval": True}),
}


def verdict(bench: Bench, turn: Turn) -> object:
    """What ran, and the outcome of every call."""
    outcomes = [
        (item.call.name, item.call.raw_arguments, item.status, item.code, item.tool, repr(item.arguments), item.grade)
        for item in turn.outcomes
    ]
    return bench.ran, outcomes, [[record.hook for record in item.repairs] for item in turn.outcomes]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("name", WRITTEN)
async def test_the_same_verdict_at_every_entry(name: str):
    """What ran, with what, and why the rest did not."""
    found = {}
    for entry, (enter, options) in ENTRIES.items():
        bench = Bench(WRITTEN[name], options)
        found[entry] = verdict(bench, await enter(bench))

    assert found == dict.fromkeys(ENTRIES, found["run"])
