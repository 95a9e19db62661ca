"""Assertions say what happened instead."""

from __future__ import annotations

from typing import Any

import pytest

from toolrun import Approve, Retry, Runner, Tool, ToolContext, ToolRegistry, Turn
from toolrun.testing import (
    RecordedRun,
    ScriptedCall,
    ScriptedResponse,
    assert_answered,
    assert_nothing_ran,
    assert_outcome,
    assert_ran_once,
    record_runs,
)


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    def add(a: int, b: int = 1) -> int:
        return a + b

    @registry.tool(effect="idempotent", retry=Retry(on=ConnectionError, attempts=2, wait=0))
    async def flaky() -> None:
        raise ConnectionError("secret")

    @registry.tool(approval=True)
    def pay(context: ToolContext, amount: int, /) -> str:
        return f"paid {amount}"

    return registry


def run(registry: ToolRegistry, *calls: tuple[str, str], **options: Any) -> Turn:
    scripted = [ScriptedCall(name, text, f"call_{number}") for number, (name, text) in enumerate(calls, 1)]
    with Runner(registry) as runner:
        return runner.run_sync(ScriptedResponse(calls=scripted, **options).events("openai-chat"))


def failure(check: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as raised:
        check(*args, **options)
    return str(raised.value)


# -- outcomes -------------------------------------------------------------------------------


def test_an_outcome(registry: ToolRegistry) -> None:
    """Every expectation that is met gives the outcome."""
    turn = run(registry, ("add", '{"a": 1,}'), ("none", "{}"))

    outcome = assert_outcome(
        turn,
        "call_1",
        status="succeeded",
        value=2,
        arguments={"a": 1},
        code=None,
        grade="lossless",
        tool="add",
        attempts=1,
    )

    assert outcome is turn.outcomes[0]
    assert assert_outcome(turn, 1, status="refused", code="unknown_tool", value=None) is turn.outcomes[1]


def test_another_outcome(registry: ToolRegistry) -> None:
    """Everything that a developer looks for is in the text."""
    turn = run(registry, ("add", '{"a": "x",}'))

    assert failure(assert_outcome, turn, "call_1", status="succeeded", value=2) == (
        "call_1 (add): expected status 'succeeded', got 'refused'\n"
        "call_1 (add): expected value 2, got None\n"
        "  code: schema\n"
        "  error: InvalidArguments: 'add' (call_1): arguments do not fit the schema: $.a: Input should be a valid integer,"
        ' got "x"\n'
        '  the model wrote: \'{"a": "x",}\'\n'
        "  repairs: trailing_comma: lossless\n"
        "  the model is told: Not run: the arguments do not fit the tool's schema. Correct them and send the call again."
        '\n- $.a: Input should be a valid integer, got "x"'
    )


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ({"value": 3}, "expected value 3, got 2"),
        ({"arguments": {"a": 2}}, "expected arguments {'a': 2}, got {'a': 1}"),
        ({"code": "schema"}, "expected code 'schema', got None"),
        ({"grade": "lossless"}, "expected grade 'lossless', got 'exact'"),
        ({"tool": "sub"}, "expected tool 'sub', got 'add'"),
        ({"attempts": 2}, "expected attempts 2, got 1"),
    ],
)
def test_each_expectation_counts(registry: ToolRegistry, expected: dict[str, Any], text: str) -> None:
    turn = run(registry, ("add", '{"a": 1}'))

    assert failure(assert_outcome, turn, 0, **expected).splitlines()[0] == f"call_1 (add): {text}"


def test_a_call_that_is_not_there(registry: ToolRegistry) -> None:
    """The calls that are there are named."""
    assert failure(assert_outcome, run(registry, ("add", '{"a": 1}')), "call_2") == (
        "the turn has no call 'call_2'; it has\n  call_1 (add): succeeded"
    )
    assert failure(assert_outcome, run(registry), 0) == "the turn has no call 0; it has none"


def test_long_values_are_shortened(registry: ToolRegistry) -> None:
    """A failure is read by people."""
    turn = run(registry, ("add", '{"a": "' + "x" * 5000))

    assert max(map(len, failure(assert_outcome, turn, 0, status="succeeded").splitlines())) < 500


# -- runs -----------------------------------------------------------------------------------


def test_what_ran(registry: ToolRegistry) -> None:
    """Functions record what they are called with, whoever calls them; a turn tells the same."""
    with record_runs(registry) as runs:
        turn = run(registry, ("add", '{"a": 1}'), ("add", '{"a": "x"}'), ("flaky", "{}"))

    assert sorted(runs) == [
        RecordedRun("add", {"a": 1}),
        RecordedRun("flaky", {}),
        RecordedRun("flaky", {}),
    ]
    for told in (turn, runs):
        assert_ran_once(told, "add", a=1)
        assert failure(assert_ran_once, told, "flaky").startswith("flaky ran twice, not once; what ran:\n")
        assert failure(assert_ran_once, told, "pay").startswith("pay did not run; what ran:\n")
        assert failure(assert_ran_once, told, "add", a=2, b=3).startswith(
            "add ran, but not with {'a': 2, 'b': 3}; what"
        )
        assert failure(assert_nothing_ran, told).startswith("nothing should have run; what ran:\n")


def test_nothing_ran(registry: ToolRegistry) -> None:
    """A call that was refused, denied or waits is none that ran."""
    with record_runs(registry) as runs:
        turn = run(registry, ("add", '{"a": '), ("pay", '{"amount": 5}'))

    assert_nothing_ran(turn)
    assert_nothing_ran(runs)
    assert failure(assert_ran_once, runs, "add") == "add did not run; nothing ran"


def test_recording_ends(registry: ToolRegistry) -> None:
    """The registry is as it was, and what was added meanwhile stays."""
    before = dict(registry._tools)
    with record_runs(registry) as runs:

        @registry.tool
        def late() -> None:
            pass

    run(registry, ("add", '{"a": 1}'))

    assert runs == []
    assert dict(registry._tools) == {**before, "late": registry["late"]}


async def test_recording_in_a_runner_that_is_open(registry: ToolRegistry) -> None:
    """Agents hold runners where tests cannot exchange them; positional parameters are named, contexts are left out."""
    call = ScriptedResponse(calls=[ScriptedCall("pay", {"amount": 5}, "call_1")])
    async with Runner(registry) as runner:
        with record_runs(registry) as runs:
            turn = await runner.run(call.events("openai-chat"))
            assert_nothing_ran(runs)

            await runner.resume(turn, {"call_1": Approve()})

    assert runs == [RecordedRun("pay", {"amount": 5})]


def test_every_form_of_function() -> None:
    """Generators, handlers that take one dict, and tools that are only declared."""
    registry = ToolRegistry()

    @registry.tool
    async def count(to: int) -> Any:
        for number in range(to):
            yield number

    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    registry.add(Tool.from_json_schema(name="whole", input_schema=schema, handler=lambda given: given["x"]))
    registry.add(Tool.from_json_schema(name="elsewhere", input_schema=schema))
    with record_runs(registry) as runs:
        turn = run(registry, ("count", '{"to": 3}'), ("whole", '{"x": 7}'))

    assert_outcome(turn, 0, value=2)
    assert_outcome(turn, 1, value=7)
    assert sorted(runs) == [RecordedRun("count", {"to": 3}), RecordedRun("whole", {"x": 7})]


# -- answers --------------------------------------------------------------------------------


def test_a_turn_that_is_answered(registry: ToolRegistry) -> None:
    """Whatever became of its calls."""
    turn = run(registry, ("add", '{"a": 1}'), ("add", '{"a": '), ("none", "{}"))

    assert_answered(turn)
    assert_answered(turn.messages(), "openai-chat")


def test_a_turn_that_waits(registry: ToolRegistry) -> None:
    """It cannot be sent yet."""
    turn = run(registry, ("pay", '{"amount": 5}'))

    assert failure(assert_answered, turn) == "the turn waits: these calls have no outcome yet: call_1"


def test_messages_that_are_not_answered(registry: ToolRegistry) -> None:
    """A result is missing."""
    turn = run(registry, ("add", '{"a": 1}'), ("add", '{"a": 2}'))

    assert failure(assert_answered, turn.messages()[:-1], "openai-chat") == (
        "these messages would be refused:\n- message 0: add has no result (missing_result, call_2)"
    )
