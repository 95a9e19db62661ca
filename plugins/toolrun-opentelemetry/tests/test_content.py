"""Nothing of the data of others leaves the process unless it is asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from toolrun import Deny, Refuse, Repaired, RepairRequest, Runner, ToolError, ToolRegistry

from .responses import response

if TYPE_CHECKING:
    from .conftest import Telemetry

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SECRET = "s3cr3t"


async def deny(request: object) -> Deny:
    return Deny(f"not with {SECRET}")


async def fail(request: object) -> Deny:
    raise ValueError(SECRET)


def make_registry() -> ToolRegistry:
    """Tools and hooks that put the secret wherever there is room for a text."""
    registry = ToolRegistry()

    @registry.tool
    async def say(text: str) -> str:
        return f"said {text}"

    @registry.tool
    async def breaks(text: str) -> None:
        raise ValueError(f"broke on {text}")

    @registry.tool
    async def explains(text: str) -> None:
        raise ToolError(f"broke on {text}")

    @registry.tool
    async def count(n: int) -> int:
        return n

    registry.tool(name="ask", approval=deny)(say)
    registry.tool(name="ask_badly", approval=fail)(say)

    @registry.repair(on="schema")
    def hook(request: RepairRequest) -> Repaired | Refuse:
        if "refuse" in request.text:
            return Refuse(f"no {SECRET}")
        return Repaired(arguments={"text": SECRET, "n": 1}, note=SECRET)

    return registry


SECRETS = response(
    ("say", f'{{"text": "{SECRET}"}}'),
    ("breaks", f'{{"text": "{SECRET}"}}'),
    ("explains", f'{{"text": "{SECRET}"}}'),
    ("ask", f'{{"text": "{SECRET}"}}'),
    ("ask_badly", f'{{"text": "{SECRET}"}}'),
    ("count", f'{{"n": "{SECRET}"}}'),
    ("count", f'{{"n": "refuse {SECRET}"}}'),
    ("count", f'{{"{SECRET}": 1}}'),
    ("say", f'{{"text": "{SECRET}'),
    (f"{SECRET}_tool", "{}"),
)


async def test_nothing_by_default(telemetry: Telemetry) -> None:
    await Runner(make_registry(), listeners=[telemetry.listener()]).run(SECRETS)
    assert len(telemetry.spans) == 10
    assert SECRET not in telemetry.exported()


async def test_what_is_asked_for(telemetry: Telemetry) -> None:
    runner = Runner(make_registry(), listeners=[telemetry.listener(content=True)])
    await runner.run(SECRETS)
    said, broke, explained, asked, _, mended, *_, unknown = sorted(
        telemetry.spans, key=lambda span: span.attributes["gen_ai.tool.call.id"]
    )
    assert said.attributes["gen_ai.tool.call.arguments"] == '{"text": "s3cr3t"}'
    assert said.attributes["gen_ai.tool.call.result"] == "said s3cr3t"
    error = broke.events[-1]
    assert (error.name, error.attributes["exception.type"]) == ("exception", "ValueError")
    assert error.attributes["exception.message"] == "broke on s3cr3t"
    assert "in breaks" in error.attributes["exception.stacktrace"]
    assert explained.events[-1].attributes["exception.message"] == "broke on s3cr3t"
    assert asked.attributes["gen_ai.tool.call.arguments"] == '{"text": "s3cr3t"}'
    assert json.loads(mended.attributes["gen_ai.tool.call.arguments"]) == {"n": SECRET}
    assert unknown.attributes["toolrun.call.name"] == "s3cr3t_tool"
    assert unknown.attributes["gen_ai.tool.name"] == "_OTHER"
    assert SECRET not in telemetry.collected()


async def test_the_arguments_are_those_that_the_tool_got(telemetry: Telemetry) -> None:
    """Where a call was repaired they are not those that the model wrote."""
    runner = Runner(make_registry(), listeners=[telemetry.listener(content=True)])
    await runner.run(response(("count", '{"n": 2,}')))
    span = telemetry.span("execute_tool count")
    assert span.attributes["gen_ai.tool.call.arguments"] == '{"n": 2}'
    assert span.attributes["gen_ai.tool.call.result"] == "2"


@pytest.mark.parametrize(
    ("value", "content", "shown"),
    [
        (None, None, False),
        ("NO_CONTENT", None, False),
        ("EVENT_ONLY", None, False),
        ("span_only", None, True),
        ("SPAN_AND_EVENT", None, True),
        ("SPAN_ONLY", False, False),
        ("NO_CONTENT", True, True),
        ("nonsense", None, False),
    ],
)
async def test_the_variable(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch, value: str | None, content: Any, shown: bool
) -> None:
    """It is asked when the listener is made, and what its maker says counts more."""
    if value is None:
        monkeypatch.delenv(CAPTURE, raising=False)
    else:
        monkeypatch.setenv(CAPTURE, value)
    listener = telemetry.listener(content=content)
    monkeypatch.delenv(CAPTURE, raising=False)
    await Runner(make_registry(), listeners=[listener]).run(SECRETS)
    assert (SECRET in telemetry.exported()) is shown


async def test_texts_that_no_exporter_can_encode(telemetry: Telemetry) -> None:
    """Half of a surrogate pair would cost a whole batch of spans."""
    registry = make_registry()
    half = chr(0xD83D)

    @registry.tool
    async def cut() -> None:
        raise ToolError(half)

    source = response(("cut", "{}"), (f"x{half}", "{}"))
    source["choices"][0]["message"]["tool_calls"][0]["id"] = half
    runner = Runner(registry, listeners=[telemetry.listener(content=True)], run_id=half)
    await runner.run(source)
    broke, unknown = telemetry.spans
    assert broke.attributes["gen_ai.tool.call.id"] == "?"
    assert broke.events[-1].attributes["exception.message"] == "?"
    assert unknown.attributes["toolrun.call.name"] == "x?"
    for span in telemetry.spans:
        json.dumps(json.loads(span.to_json()), ensure_ascii=False).encode("utf-8")
