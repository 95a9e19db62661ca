"""Public bug reports on running tools (rows A to H and L of the runtime cases): each has a test.

A row is red here until a test stands beside it, and when that test is gone.
"""

# Tools with annotations of their own: no postponed evaluation here.
import ast
import gc
import sys
import threading
import weakref
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from toolrun import Runner, Tool, ToolContext, ToolRegistry, Turn

from .responses import response

TESTS = Path(__file__).parents[1]

ROWS = {
    "R01 an async tool that never returns": "runtime/test_timeouts.py::test_an_async_tool_that_never_returns",
    "R02 sync tools too": "runtime/test_timeouts.py::test_a_sync_tool_that_does_not_return_in_time",
    "R03 abandoned threads are counted": "runtime/test_timeouts.py::test_a_sync_tool_that_does_not_return_in_time",
    "R04 a spinning tool leaves the loop alone": "runtime/test_runner.py::test_sync_tools_do_not_block_the_loop",
    "R05 a run inside a tool obeys the tool's deadline": "runtime/test_reported_faults.py::test_a_nested_run",
    "R06 a deadline for all": "runtime/test_reported_faults.py::test_a_deadline_for_the_whole_turn",
    "R07 a tool can see that nobody waits": "runtime/test_reported_faults.py::test_a_tool_sees_that_nobody_waits",
    "R08 children are awaited": "runtime/test_cancellation.py::test_children_are_cancelled_and_awaited",
    "R09 outer cancellation propagates": "runtime/test_cancellation.py::test_a_native_cancellation_gets_through",
    "R10 the tool's own CancelledError": "runtime/test_failures.py::test_whatever_a_tool_raises_is_its_failure",
    "R11 a tool that swallows it": "runtime/test_cancellation.py::test_a_tool_cannot_swallow_it",
    "R12 child processes are reaped": "runtime/test_reported_faults.py::test_child_processes_are_reaped",
    "R13 not started, denied, interrupted": "runtime/test_cancellation.py::test_what_is_done_stays_done",
    "R14 what is done survives cancellation": "runtime/test_cancellation.py::test_what_is_done_stays_done",
    "R15 hooks that raise CancelledError": "runtime/test_failures.py::test_a_hook_that_raises_is_passed_over",
    "R16 scopes are left by their own task": "runtime/test_progress.py::test_an_async_generator_is_closed_in_its_own_context",
    "R17 no busy loop": "runtime/test_open_scopes.py::test_siblings_and_the_task_itself_are_unharmed",
    "R18 one failure costs one call": "runtime/test_runner.py::test_each_call_has_its_own_fate",
    "R19 no orphan tasks": "runtime/test_chaos.py::test_chaos",
    "R20 id and name on every error": "runtime/test_runner.py::test_each_call_has_its_own_fate",
    "R21 an empty message": "runtime/test_failures.py::test_an_error_whose_text_fails",
    "R22 every kind of exception": "runtime/test_failures.py::test_whatever_a_tool_raises_is_its_failure",
    "R23 Ctrl-C": "runtime/test_failures.py::test_keyboard_interrupt_propagates",
    "R24 sys.exit": "runtime/test_failures.py::test_whatever_a_tool_raises_is_its_failure",
    "R25 two audiences": "runtime/test_failures.py::test_the_developer_sees_all_and_the_model_little",
    "R26 never {}": "runtime/test_inputs.py::test_verdict",
    "R27 parse errors are data": "runtime/test_inputs.py::test_verdict",
    "R28 unknown tools are data": "core/test_runtime_cases.py::test_an_unknown_tool_is_an_answer",
    "R29 StopIteration": "runtime/test_failures.py::test_whatever_a_tool_raises_is_its_failure",
    "R30 exception groups": "runtime/test_failures.py::test_whatever_a_tool_raises_is_its_failure",
    "R31 call order": "runtime/test_runner.py::test_results_come_in_call_order",
    "R32 messages in call order": "runtime/test_runner.py::test_other_timings_give_the_same_bytes",
    "R33 the same bytes": "runtime/test_runner.py::test_other_timings_give_the_same_bytes",
    "R34 refused calls keep their place": "runtime/test_runner.py::test_each_call_has_its_own_fate",
    "R35 lost updates": "runtime/test_order_and_limits.py::test_calls_with_the_same_key_run_one_after_the_other",
    "R36 barriers": "runtime/test_order_and_limits.py::test_a_barrier",
    "R37 sync tools overlap": "runtime/test_runner.py::test_sync_tools_overlap",
    "R38 siblings are left alone: there is no fail_fast": "runtime/test_runner.py::test_each_call_has_its_own_fate",
    "R39 threads that wait for threads": "runtime/test_run_sync.py::test_a_sync_tool_may_run_another_turn",
    "R40 places are given back": "runtime/test_order_and_limits.py::test_a_place_is_given_back_on_every_way_out",
    "R41 the loop is not blocked": "runtime/test_runner.py::test_sync_tools_do_not_block_the_loop",
    "R42 nor by generators": "runtime/test_progress.py::test_the_body_of_a_sync_generator_blocks_nobody",
    "R43 context variables": "runtime/test_runner.py::test_context_variables_go_in_and_do_not_come_out",
    "R44 on every path": "runtime/test_runner.py::test_context_variables_go_in_and_do_not_come_out",
    "R45 a copy a call": "runtime/test_runner.py::test_context_variables_go_in_and_do_not_come_out",
    "R46 run_sync inside a loop": "runtime/test_run_sync.py::test_many_times_inside_a_running_loop",
    "R47 clients that are bound to a loop": "runtime/test_run_sync.py::test_what_is_bound_to_a_loop_stays_usable",
    "R48 a closed default loop": "runtime/test_run_sync.py::test_a_closed_default_loop_does_not_matter",
    "R49 every kind of callable": "runtime/test_runner.py::test_every_kind_of_callable_gives_its_value",
    "R50 a lambda that returns a coroutine": "runtime/test_runner.py::test_every_kind_of_callable_gives_its_value",
    "R51 generators": "runtime/test_progress.py::test_every_form",
    "R52 trio": "runtime/test_runner.py::test_each_call_has_its_own_fate",
    "R53 uvloop": "runtime/test_reported_faults.py::test_uvloop",
    "R54 every slot is filled": "runtime/test_cancellation.py::test_a_child_that_the_tool_cancelled_is_its_own_affair",
    "R55 only what may be retried is": "runtime/test_retries.py::test_a_tool_without_a_policy_runs_once",
    "R56 doubt is told": "core/test_results.py::test_errors",
    "R57 the key": "runtime/test_order_and_limits.py::test_every_attempt_has_the_same_key",
    "R58 a call that comes twice": "runtime/test_runner.py::test_a_resent_call_runs_once_and_calls_without_ids_both_run",
    "R59 the same id again": "runtime/test_runner.py::test_a_call_given_twice_to_execute_runs_once",
    "R60 calls without ids": "runtime/test_runner.py::test_calls_without_ids_are_never_taken_for_one",
    "R61 started or not": "runtime/test_retries.py::test_only_what_the_policy_wants",
    "R62 types": "core/test_results.py::test_values",
    "R63 what cannot be written has run": "runtime/test_failures.py::test_a_result_that_cannot_be_written_is_a_failure_that_ran",
    "R64 bytes": "core/test_results.py::test_values",
    "R65 results as plain JSON": "runtime/test_approvals.py::test_a_turn_survives_the_way_as_it_was",
    "R66 huge results": "runtime/test_results.py::test_the_limit_of_results",
    "R67 cuts": "core/test_content.py::test_no_character_is_cut_in_two",
    "R68 None, empty, 0 and False": "core/test_results.py::test_values",
    "R69 NaN": "core/test_results.py::test_values",
    "R70 lone surrogates": "core/test_results.py::test_lone_surrogates_become_the_replacement_character",
    "R71 circles and depth": "core/test_results.py::test_what_cannot_be_written",
    "R72 keys that are no texts": "core/test_results.py::test_values",
    "R73 one result a call": "history/test_statuses.py::test_every_outcome",
    "R74 answers to what is not run": "runtime/test_order_and_limits.py::test_calls_a_turn",
    "R75 pairing by order": "history/test_check.py::test_pairs_without_ids",
    "R76 calls and results together": "runtime/test_agent_loop.py::test_the_history_can_always_be_sent",
    "R77 cut calls stay": "runtime/test_agent_loop.py::test_openai_takes_the_history_of_bad_calls",
    "R78 malformed arguments in the history": "runtime/test_agent_loop.py::test_anthropic_takes_the_history_of_bad_calls",
    "R79 no deltas in the history": "history/test_statuses.py::test_calls_of_a_response",
    "R80 trimming": "history/test_check.py::test_trimming_keeps_pairs",
    "R81 one way for all": "runtime/test_entries.py::test_the_same_verdict_at_every_entry",
    "R115 ids byte for byte": "history/test_echo.py::test_provider_ids_and_arguments_byte_for_byte",
    "R116 arguments byte for byte": "history/test_echo.py::test_provider_ids_and_arguments_byte_for_byte",
    "R117 a finalizer for one response": "streams/test_finalizer.py::test_closed",
    "R118 results are let go": "runtime/test_reported_faults.py::test_nothing_holds_on_to_results",
    "R119 turns hold no runner": "runtime/test_reported_faults.py::test_a_turn_holds_no_runner",
    "R120 tracebacks go with the turn": "runtime/test_reported_faults.py::test_the_frames_of_an_error_go_with_the_turn",
    "R121 registries are let go": "runtime/test_reported_faults.py::test_registries_are_let_go",
}


def test_every_row_is_listed():
    """All of A to H, and L."""
    assert {row.split()[0] for row in ROWS} == {f"R{number:02}" for number in (*range(1, 82), *range(115, 122))}


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_a_test(row: str):
    """The test that the table names is there."""
    file, _, name = ROWS[row].partition("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))

    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


# -- deadlines and cancellation -------------------------------------------------------------


async def test_a_nested_run():
    """A tool that runs a turn of its own is one tool: its deadline ends that turn."""
    inner = ToolRegistry()
    ended: list[str] = []

    @inner.tool(timeout=None)
    async def hang() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("inner")

    registry = ToolRegistry()

    @registry.tool(timeout=0.02)
    async def delegate() -> None:
        await Runner(inner).run(response(("hang", "{}")))

    with anyio.fail_after(5):
        turn = await Runner(registry).run(response(("delegate", "{}")))

    assert (turn.outcomes[0].status, ended) == ("timed_out", ["inner"])


async def test_a_deadline_for_the_whole_turn():
    """The caller's own: what was done is there, what was not says so, and everything can be sent."""
    registry = ToolRegistry()

    @registry.tool(timeout=None)
    async def hang() -> None:
        await anyio.sleep_forever()

    @registry.tool
    async def quick() -> int:
        return 1

    run = Runner(registry, max_concurrency=2).stream(response(("hang", "{}"), ("quick", "{}"), ("hang", "{}")))
    with anyio.move_on_after(0.05):
        async with run:
            async for _ in run:
                pass

    assert [(outcome.status, outcome.value) for outcome in run.turn.outcomes] == [
        ("cancelled", None),
        ("succeeded", 1),
        ("cancelled", None),
    ]
    assert len(run.turn.messages()) == 4


@pytest.mark.parametrize("way", ["deadline", "cancelled"])
async def test_a_tool_sees_that_nobody_waits(way: str):
    """`ctx.cancelled` is how a sync tool, which nothing can stop, learns to stop by itself."""
    registry = ToolRegistry()
    started, seen = threading.Event(), threading.Event()
    before: list[bool] = []

    @registry.tool(timeout=0.05 if way == "deadline" else None)
    def poll(ctx: ToolContext[None]) -> None:
        before.append(ctx.cancelled)
        started.set()
        while not ctx.cancelled and not seen.wait(0.002):
            pass
        seen.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(Runner(registry).run, response(("poll", "{}")))
            await anyio.to_thread.run_sync(started.wait, 4)
            if way == "cancelled":
                group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(seen.wait, 4)

    assert (before, seen.is_set()) == ([False], True)


@pytest.mark.parametrize("way", ["deadline", "cancelled"])
async def test_child_processes_are_reaped(way: str):
    """Cancellation and deadline take the same way out: `finally` runs, and may wait behind a shield."""
    registry = ToolRegistry()
    ready, codes = anyio.Event(), []

    @registry.tool(timeout=0.5 if way == "deadline" else None)
    async def command() -> None:
        process = await anyio.open_process([sys.executable, "-c", "input()"])
        ready.set()
        try:
            await process.wait()
        finally:
            process.kill()
            with anyio.CancelScope(shield=True):
                await process.aclose()
            codes.append(process.returncode)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(Runner(registry).run, response(("command", "{}")))
            await ready.wait()
            if way == "cancelled":
                group.cancel_scope.cancel()

    assert len(codes) == 1
    assert codes[0] != 0


@pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop is not for Windows")
@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})], ids=["uvloop"])
async def test_uvloop():
    """What depends most on the event loop: deadlines of both kinds, failures, and cancellation from outside."""
    registry = ToolRegistry()
    release = threading.Event()

    @registry.tool(timeout=0.02)
    async def hang() -> None:
        await anyio.sleep_forever()

    @registry.tool(timeout=0.02)
    def block() -> None:
        release.wait(5)

    @registry.tool
    async def fail() -> None:
        raise ValueError

    @registry.tool
    def good() -> int:
        return 1

    runner = Runner(registry)
    with anyio.fail_after(5):
        turn = await runner.run(response(("hang", "{}"), ("block", "{}"), ("fail", "{}"), ("good", "{}")))
        with anyio.move_on_after(0.005) as scope:
            await runner.run(response(("hang", "{}")))
    release.set()

    assert [outcome.status for outcome in turn.outcomes] == ["timed_out", "timed_out", "failed", "succeeded"]
    assert scope.cancelled_caught


# -- memory ---------------------------------------------------------------------------------


class Big:
    """Something that can be watched."""


def with_one_tool() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    async def make(n: int = 1) -> int:
        return n

    return registry


async def run_once(runner: Runner) -> Turn:
    return await runner.run(response(("make", "{}")))


async def test_nothing_holds_on_to_results():
    """Once the turn is gone its values are, while the runner lives."""
    registry = ToolRegistry()
    made: list[weakref.ref[Big]] = []

    @registry.tool
    async def make() -> None:
        made.append(weakref.ref(big := Big()))
        del big

    @registry.tool(name="keep")
    async def keep() -> Big:
        made.append(weakref.ref(big := Big()))
        return big

    runner = Runner(registry)
    for _ in range(20):
        async with runner.stream(response(("make", "{}"), ("keep", "{}"))) as run:
            async for event in run:
                del event
    del run
    gc.collect()

    assert len(made) == 40
    assert [ref for ref in made if ref() is not None] == []


async def test_a_turn_holds_no_runner():
    """Nor its registry: turns may be kept for as long as the conversation lasts."""
    registry = with_one_tool()
    runner = Runner(registry)
    turn = await run_once(runner)
    watched = weakref.ref(runner), weakref.ref(registry)
    del runner, registry
    gc.collect()

    assert turn.outcomes[0].value == 1
    assert [ref() for ref in watched] == [None, None]


async def test_the_frames_of_an_error_go_with_the_turn():
    """The developer's traceback keeps the tool's locals alive for as long as the turn, and no longer."""
    registry = ToolRegistry()
    watched: list[weakref.ref[Big]] = []

    @registry.tool
    async def make() -> None:
        big = Big()
        watched.append(weakref.ref(big))
        raise ValueError(big)

    runner = Runner(registry)
    turn = await run_once(runner)
    assert turn.outcomes[0].error is not None
    assert watched[0]() is not None
    del turn
    gc.collect()

    assert watched[0]() is None


def test_registries_are_let_go():
    """No cache of schemas or validators grows with them."""
    watched = []
    for number in range(50):
        registry = with_one_tool()
        registry.add(Tool.from_json_schema(name=f"t{number}", input_schema={"type": "object"}))
        watched.append(weakref.ref(registry))
        del registry
    gc.collect()

    assert [ref for ref in watched if ref() is not None] == []
