"""Every option does something: a table of options, and of the tests that fail when one of them does nothing."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from pathlib import Path

import anyio
import pytest

from toolrun import (
    FinishPolicy,
    Limits,
    Refuse,
    RegistrationError,
    RepairBudget,
    Repaired,
    RepairRequest,
    Retry,
    Runner,
    ToolContext,
    ToolRegistry,
    UnknownWire,
    finalize,
)
from toolrun._core.tools import ToolOptions

from .responses import chunk, openai_chunks, response

TESTS = Path(__file__).parents[1]

RUNNER = {
    "registry": "runtime/test_runner.py::test_hooks_and_tools_registered_later_count",
    "repairs": "runtime/test_options.py::test_repairs",
    "policy": "runtime/test_options.py::test_policy",
    "budget": "runtime/test_options.py::test_budget",
    "max_concurrency": "runtime/test_runner.py::test_the_limit_limits",
    "timeout": "runtime/test_timeouts.py::test_the_runners_timeout_is_the_default",
    "on_stream_error": "runtime/test_interrupted_streams.py::test_a_broken_stream_as_a_turn",
    "close_stream": "runtime/test_interrupted_streams.py::test_the_source_is_closed_on_every_way_out",
    "executor": "runtime/test_executors.py::test_what_a_job_says",
    "approver": "runtime/test_approvals.py::test_every_decision",
    "approval_timeout": "runtime/test_approvals.py::test_an_answer_that_comes_too_late",
    "limits": "runtime/test_order_and_limits.py::test_how_many_run_at_once",
    "signing_key": "runtime/test_approvals.py::test_a_turn_without_a_key_stays_here",
    "start": "runtime/test_eager_starts.py::test_a_proven_call_runs_while_the_stream_goes_on",
    "result_limit": "runtime/test_results.py::test_the_limit_of_results",
    "result_store": "runtime/test_results.py::test_a_store_keeps_the_whole",
    "journal": "runtime/test_journal.py::test_what_is_recorded_and_when",
    "verify": "runtime/test_journal.py::test_asking_the_outside_world",
    "listeners": "runtime/test_listeners.py::test_every_entry",
    "run_id": "runtime/test_runner.py::test_deps_and_keys_reach_tools_and_hooks",
}
RUN = {
    "source": "runtime/test_sdk_streams.py::test_async_openai_stream",
    "deps": "runtime/test_runner.py::test_deps_and_keys_reach_tools_and_hooks",
    "wire": "runtime/test_options.py::test_wire",
    "end": "runtime/test_sdk_streams.py::test_a_finish_that_the_sdk_hides",
    "turn_id": "runtime/test_runner.py::test_deps_and_keys_reach_tools_and_hooks",
}
STREAM = {
    **dict.fromkeys(RUN, "runtime/test_options.py::test_stream_takes_what_run_takes"),
    "previews": "history/test_preview.py::test_with_a_runner",
}
RUN_SYNC = dict.fromkeys(RUN, "runtime/test_run_sync.py::test_the_same_arguments_as_run")
EXECUTE = {
    "calls": "runtime/test_runner.py::test_execute_does_not_trust_parsed_arguments",
    "deps": "runtime/test_options.py::test_execute_takes_what_run_takes",
    "wire": "runtime/test_runner.py::test_execute_without_a_wire_does_not_lose_results",
    "turn_id": "runtime/test_options.py::test_execute_takes_what_run_takes",
}
RESUME = {
    "turn": "runtime/test_approvals.py::test_a_turn_is_resumed",
    "answers": "runtime/test_approvals.py::test_some_answers_now_and_some_later",
    "deps": "runtime/test_approvals.py::test_the_key_is_the_same_as_if_it_had_run_at_once",
}
RESUME_SYNC = dict.fromkeys(RESUME, "runtime/test_approvals.py::test_without_an_event_loop")
RECOVER = {"deps": "runtime/test_journal.py::test_deps_of_recovered_calls"}
TOOL = {
    "approval": "runtime/test_approvals.py::test_every_decision",
    "max_concurrency": "runtime/test_order_and_limits.py::test_how_many_run_at_once",
    "group": "runtime/test_order_and_limits.py::test_how_many_run_at_once",
    "conflict_key": "runtime/test_order_and_limits.py::test_calls_with_the_same_key_run_one_after_the_other",
    "barrier": "runtime/test_order_and_limits.py::test_a_barrier",
    "timeout": "runtime/test_timeouts.py::test_the_deadline_of_the_tools_own_wins_over_the_runners",
    "retry": "runtime/test_retries.py::test_until_it_succeeds",
    "effect": "runtime/test_timeouts.py::test_a_pure_tool_leaves_no_doubt",
    "destructive": "runtime/test_options.py::test_destructive",
    "repair": "runtime/test_options.py::test_repair_floor",
    "tags": "core/test_registries.py::test_filtered_by_tags",
    "executor": "runtime/test_process.py::test_a_tool_chooses_its_executor",
    "result_limit": "runtime/test_results.py::test_the_limit_of_results",
    "metadata": "runtime/test_options.py::test_metadata",
    "strict": "core/test_declaration.py::test_lax_tools",
    "open": "core/test_declaration.py::test_open_tools",
    "eager": "runtime/test_eager_starts.py::test_a_proven_call_runs_while_the_stream_goes_on",
}
DECLARE = {
    "name": "core/test_registry.py::test_a_name_and_a_description_of_its_own",
    "description": "core/test_registry.py::test_a_name_and_a_description_of_its_own",
}
HOOK = {
    "on": "core/test_repair.py::test_hooks_are_bound_to_faults",
    "tools": "core/test_repair.py::test_hooks_are_bound_to_tools",
    "first": "core/test_flow.py::test_the_order_of_asking",
}
RETRY = {
    "on": "runtime/test_retries.py::test_only_what_the_policy_wants",
    "attempts": "runtime/test_retries.py::test_until_the_attempts_run_out",
    "wait": "runtime/test_retries.py::test_waits_grow_and_are_bounded",
    "max_wait": "runtime/test_retries.py::test_waits_grow_and_are_bounded",
    "timeout": "runtime/test_retries.py::test_no_attempt_begins_after_the_total_timeout",
}
BUDGET = {
    "hooks": "core/test_flow.py::test_the_budget_of_questions",
    "seconds": "core/test_flow.py::test_the_budget_of_seconds",
}
POLICY = {
    "missing_finish": "runtime/test_options.py::test_policy",
    "run_held": "runtime/test_options.py::test_policy",
}


LIMITS = {
    "running": "runtime/test_order_and_limits.py::test_how_many_run_at_once",
    "groups": "runtime/test_order_and_limits.py::test_how_many_run_at_once",
    "calls": "runtime/test_order_and_limits.py::test_calls_a_turn",
    "repeats": "runtime/test_order_and_limits.py::test_repeated_calls",
    "invalid_turns": "runtime/test_order_and_limits.py::test_consecutive_invalid_turns",
}


def parameters(function: object, *without: str) -> set[str]:
    """The names of its parameters, without `self` and those that only carry the subject."""
    listed = inspect.signature(function).parameters.values()
    return {item.name for item in listed if item.kind is not item.VAR_KEYWORD} - {"self", *without}


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (RUNNER, parameters(Runner.__init__)),
        (RUN, parameters(Runner.run)),
        (STREAM, parameters(Runner.stream)),
        (RUN_SYNC, parameters(Runner.run_sync)),
        (EXECUTE, parameters(Runner.execute)),
        (RESUME, parameters(Runner.resume)),
        (RESUME_SYNC, parameters(Runner.resume_sync)),
        (RECOVER, parameters(Runner.recover)),
        (TOOL, set(ToolOptions.__annotations__)),
        (DECLARE, parameters(ToolRegistry.tool, "function")),
        (HOOK, parameters(ToolRegistry.repair, "hook")),
        (RETRY, {field.name for field in fields(Retry)}),
        (BUDGET, {field.name for field in fields(RepairBudget)}),
        (LIMITS, {field.name for field in fields(Limits)}),
        (POLICY, {field.name for field in fields(FinishPolicy)}),
    ],
    ids=[
        "Runner", "run", "stream", "run_sync", "execute", "resume", "resume_sync", "recover", "ToolOptions", "tool", "repair", "Retry", "RepairBudget",
        "Limits", "FinishPolicy",
    ],
)  # fmt: skip
def test_every_option_has_a_test(table: dict[str, str], options: set[str]):
    """A new option is red until a test stands beside it; so is one whose test is gone."""
    assert set(table) == options
    for place in table.values():
        file, _, name = place.partition("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert name in names, place


# -- the options that no other test is about ------------------------------------------------

COMMA = response(("pay", '{"n": 1,}'))


def registry_with_pay(**options: object) -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool(**options)
    async def pay(n: int = 0) -> int:
        return n

    return registry


async def test_repairs():
    """The chain is the user's to list: none, or hooks of their own in it."""

    def mine(request: RepairRequest) -> Repaired:
        return Repaired(arguments={"n": 7})

    usual = (await Runner(registry_with_pay()).run(COMMA)).outcomes[0]
    off = (await Runner(registry_with_pay(), repairs=()).run(COMMA)).outcomes[0]
    own = (await Runner(registry_with_pay(), repairs=[mine]).run(COMMA)).outcomes[0]

    assert (usual.status, usual.value, usual.grade) == ("succeeded", 1, "lossless")
    assert (off.status, off.code) == ("refused", "syntax")
    assert (own.status, own.value, own.grade) == ("succeeded", 7, "hook")
    assert own.repairs[0].hook == "mine"


async def test_policy():
    """Held calls of a family run, and a bare end counts as an end, only if the policy says so."""
    held = response(("pay", '{"n": 1}'), finish="length")
    filtered = response(("pay", '{"n": 1}'), finish="content_filter")
    bare = openai_chunks(("c0", "pay", ['{"n": 1}']), finish=None)
    registry = registry_with_pay()
    run_held = Runner(registry, policy=FinishPolicy(run_held={"length"}))
    infer = Runner(registry, policy=FinishPolicy(missing_finish="infer"))

    statuses = [
        [(await runner.run(source)).outcomes[0].status for source in (held, filtered, bare)]
        for runner in (Runner(registry), run_held, infer)
    ]

    assert statuses == [
        ["not_executed", "not_executed", "refused"],
        ["succeeded", "not_executed", "refused"],
        ["not_executed", "not_executed", "succeeded"],
    ]


async def test_run_held_never_runs_a_cut_call():
    """Whatever the policy says, unfinished arguments do not run."""
    cut = response(("pay", '{"n": 1'), ("pay", ""), finish="length")
    policy = FinishPolicy(run_held={"length"}, missing_finish="infer")

    turn = await Runner(registry_with_pay(), policy=policy).run(cut)

    assert [(outcome.status, outcome.code) for outcome in turn.outcomes] == [("refused", "truncated")] * 2


async def test_budget():
    """Questions and seconds a call, in the runner as in the flow; a hook that hangs is given up."""
    registry = registry_with_pay()
    asked = []

    @registry.repair
    async def hang(request: RepairRequest) -> None:
        asked.append("hang")
        await anyio.sleep_forever()

    @registry.repair
    async def late(request: RepairRequest) -> Refuse:
        asked.append("late")
        return Refuse("asked after all")

    source = response(("pay", "{n: 1}"))
    with anyio.fail_after(5):
        few = await Runner(registry, repairs=(), budget=RepairBudget(hooks=0)).run(source)
        short = await Runner(registry, repairs=(), budget=RepairBudget(seconds=0.05)).run(source)

    assert few.outcomes[0].repairs == ()
    assert [(record.hook, record.accepted) for record in short.outcomes[0].repairs] == [("hang", False)]
    assert short.outcomes[0].repairs[0].refusal == "the hook did not answer within 0.05 s"
    assert asked == ["hang"]


async def test_wire():
    """A name, an instance, or found out; a wrong one finds no calls."""
    from toolrun.wires import OpenAIChat

    registry = registry_with_pay()
    source = response(("pay", '{"n": 1}'))

    turns = [await Runner(registry).run(source, wire=wire) for wire in ("auto", "openai-chat", OpenAIChat())]
    wrong = await Runner(registry).run(source, wire="anthropic-messages")

    assert [turn.outcomes[0].value for turn in turns] == [1, 1, 1]
    assert wrong.outcomes == ()
    with pytest.raises(UnknownWire, match="no wire named 'nonesuch'"):
        await Runner(registry).run(source, wire="nonesuch")


def asking_who() -> tuple[ToolRegistry, list[tuple[str, str]]]:
    registry = ToolRegistry()
    seen: list[tuple[str, str]] = []

    async def who(ctx: ToolContext[str]) -> None:
        seen.append((ctx.deps, ctx.key))

    who.__annotations__["ctx"] = ToolContext[str]  # what stands above is text, here
    registry.tool(who)
    return registry, seen


async def test_stream_takes_what_run_takes():
    """deps, wire, end and turn_id get through."""
    registry, seen = asking_who()
    events = openai_chunks(("c0", "who", ["{}"]), finish=None)
    runner = Runner(registry, run_id="R")

    async with runner.stream(events, deps="d", turn_id="T", wire="openai-chat", end="normal") as run:
        kinds = [type(event).__name__ async for event in run]

    assert kinds[-1] == "CallCompleted"
    assert seen == [("d", "R:T:0")]


async def test_execute_takes_what_run_takes():
    """deps and turn_id get through."""
    registry, seen = asking_who()

    await Runner(registry, run_id="R").execute(finalize(response(("who", "{}"))), deps="d", turn_id="T")

    assert seen == [("d", "R:T:0")]


@pytest.mark.parametrize(("destructive", "status"), [(False, "succeeded"), (True, "refused")])
async def test_destructive(destructive: bool, status: str):
    """Only exact or lossless arguments, or a person's hook, run a destructive tool."""
    registry = registry_with_pay(destructive=destructive)
    registry.repair(lambda request: Repaired(arguments={"n": 7}, grade="schema_unique"))

    guessed = (await Runner(registry, repairs=()).run(response(("pay", '{"n": "7"}')))).outcomes[0]
    lossless = (await Runner(registry).run(COMMA)).outcomes[0]

    assert guessed.status == status
    assert lossless.status == "succeeded"


@pytest.mark.parametrize(
    ("floor", "expected"),
    [
        ("never", ["refused", "refused", "refused", "refused"]),
        ("lossless", ["succeeded", "refused", "refused", "succeeded"]),
        ("schema_unique", ["succeeded", "succeeded", "refused", "succeeded"]),
        ("lossy", ["succeeded", "succeeded", "succeeded", "succeeded"]),
    ],
)
async def test_repair_floor(floor: str, expected: list[str]):
    """What each floor admits: lossless, schema_unique, lossy, a person's hook."""
    statuses = []
    for grade in ("lossless", "schema_unique", "lossy", "hook"):
        registry = registry_with_pay(repair=floor)
        if grade == "lossless":
            turn = await Runner(registry).run(COMMA)
        else:
            registry.repair(lambda request, grade=grade: Repaired(arguments={"n": 7}, grade=grade))
            turn = await Runner(registry, repairs=()).run(response(("pay", '{"n": "7"}')))
        statuses.append(turn.outcomes[0].status)

    assert statuses == expected


def test_metadata():
    """It is the user's, and can be read where the tool is."""
    registry = registry_with_pay(metadata={"owner": "billing"})

    assert registry["pay"].metadata == {"owner": "billing"}


@pytest.mark.parametrize(
    "options",
    [
        {"max_concurrency": 0},
        {"timeout": 0},
        {"on_stream_error": "ignore"},
        {"repairs": ["not a hook"]},
        {"policy": "infer"},
        {"approver": "somebody"},
        {"limits": 3},
        {"approval_timeout": 0},
        {"signing_key": b"short"},
    ],
)
def test_options_that_make_no_sense(options: dict[str, object]):
    """A wrong value is refused where it is given, not taken for some other."""
    with pytest.raises((RegistrationError, TypeError)):
        Runner(ToolRegistry(), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"effect": "twice"},
        {"repair": "sometimes"},
        {"timeout": 0},
        {"retry": Retry(on=OSError)},
        {"nonesuch": 1},
        {"approval": "somebody"},
        {"max_concurrency": 0},
    ],
)
def test_tool_options_that_make_no_sense(options: dict[str, object]):
    """The same for tools."""
    with pytest.raises((RegistrationError, TypeError)):
        registry_with_pay(**options)


def test_policies_that_make_no_sense():
    """A misspelt policy must not fall back to the other one."""
    with pytest.raises((RegistrationError, ValueError, TypeError)):
        FinishPolicy(missing_finish="inferred")


@pytest.mark.parametrize("numbers", [{"hooks": -1}, {"seconds": -1}])
def test_budgets_that_make_no_sense(numbers: dict[str, float]):
    """Negative numbers are refused."""
    with pytest.raises((RegistrationError, ValueError)):
        RepairBudget(**numbers)


async def test_a_custom_call_needs_a_text_parameter():
    """A free-text call goes to a tool with exactly one string parameter, as it is."""
    registry = ToolRegistry()

    @registry.tool
    def shell(script: str) -> str:
        return script.upper()

    @registry.tool
    def two(a: str, b: str) -> str:
        return a + b

    def custom(index: int, name: str, text: str) -> dict[str, object]:
        body = {"name": name, "input": text}
        return {"index": index, "id": f"c{index}", "type": "custom", "custom": body}

    turn = await Runner(registry).run(
        [chunk({"tool_calls": [custom(0, "shell", "ls {x}"), custom(1, "two", "ls")]}), chunk({}, "tool_calls")]
    )

    assert [(outcome.status, outcome.value) for outcome in turn.outcomes] == [
        ("succeeded", "LS {X}"),
        ("refused", None),
    ]
