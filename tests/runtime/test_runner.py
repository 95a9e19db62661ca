"""One outcome a call, in call order, whatever the siblings do."""

# Tools with annotations of their own: no postponed evaluation here.
import functools
import json
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread
import pytest

from toolrun import (
    CallStatus,
    Repaired,
    RepairRequest,
    Runner,
    RunnerClosed,
    ToolCall,
    ToolContext,
    ToolRegistry,
    Turn,
    finalize,
)

from .responses import anthropic_message, openai_completion, response

place: ContextVar[str] = ContextVar("place", default="nowhere")


def statuses(turn: Turn) -> list[tuple[str, str | None]]:
    return [(outcome.status, outcome.code) for outcome in turn.outcomes]


# -- concurrency and order ------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (3, 3), (16, 8)])
async def test_the_limit_limits(limit: int, expected: int):
    """Of eight calls, exactly as many run at once as the limit allows."""
    registry = ToolRegistry()
    gate = anyio.Event()
    running, most = 0, 0

    @registry.tool
    async def wait(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1
        return n

    turns: list[Turn] = []

    async def run() -> None:
        source = response(*(("wait", f'{{"n": {n}}}') for n in range(8)))
        turns.append(await Runner(registry, max_concurrency=limit).run(source))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        assert running == expected
        gate.set()

    assert most == expected
    assert [outcome.value for outcome in turns[0].outcomes] == list(range(8))


async def test_the_limit_limits_sync_tools():
    """Threads count as well: the third call begins only when one of the first two has ended."""
    registry = ToolRegistry()
    began = threading.Semaphore(0)
    gates = [threading.Event() for _ in range(3)]
    started: list[int] = []

    @registry.tool
    def wait(n: int) -> int:
        started.append(n)
        began.release()
        gates[n].wait(5)
        return n

    turns: list[Turn] = []

    async def run() -> None:
        source = response(*(("wait", f'{{"n": {n}}}') for n in range(3)))
        turns.append(await Runner(registry, max_concurrency=2).run(source))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        for _ in range(2):
            await anyio.to_thread.run_sync(began.acquire)
        assert sorted(started) == [0, 1]
        gates[1].set()
        await anyio.to_thread.run_sync(began.acquire)
        assert started[2] == 2
        gates[0].set()
        gates[2].set()

    assert [outcome.value for outcome in turns[0].outcomes] == [0, 1, 2]


async def test_results_come_in_call_order():
    """The calls end in reverse order; outcomes and messages keep the order of the calls."""
    registry = ToolRegistry()
    ended = [anyio.Event() for _ in range(5)]
    order: list[int] = []

    @registry.tool
    async def backwards(n: int) -> int:
        if n < 4:
            await ended[n + 1].wait()
        order.append(n)
        ended[n].set()
        return n

    turn = await Runner(registry).run(response(*(("backwards", f'{{"n": {n}}}') for n in range(5))))

    assert order == [4, 3, 2, 1, 0]
    assert [outcome.value for outcome in turn.outcomes] == [0, 1, 2, 3, 4]
    assert [message["tool_call_id"] for message in turn.messages()[1:]] == ["c0", "c1", "c2", "c3", "c4"]


async def test_other_timings_give_the_same_bytes():
    """Two runs of one response give identical messages, whichever call ends first."""
    registry = ToolRegistry()
    first: int = 0
    ended = anyio.Event()

    @registry.tool
    async def race(n: int) -> dict[str, int]:
        if n != first:
            await ended.wait()
        else:
            ended.set()
        return {"n": n}

    source = response(("race", '{"n": 0}'), ("race", '{ "n": 1 }'), ("race", "broken"), ("none", "{}"))
    told = []
    for first in (0, 1):  # noqa: B007  # the tool reads it
        ended = anyio.Event()
        told.append(json.dumps((await Runner(registry).run(source)).messages()))

    assert told[0] == told[1]


async def test_sync_tools_overlap():
    """Two sync tools that wait for each other both end: they run at the same time."""
    registry = ToolRegistry()
    barrier = threading.Barrier(2, timeout=5)

    @registry.tool
    def meet() -> int:
        return barrier.wait() * 0

    turn = await Runner(registry).run(response(("meet", "{}"), ("meet", "{}")))

    assert statuses(turn) == [("succeeded", None)] * 2


async def test_sync_tools_do_not_block_the_loop():
    """A sync tool that waits for something in the loop gets it."""
    registry = ToolRegistry()
    began, done = threading.Event(), threading.Event()

    @registry.tool
    def wait() -> bool:
        began.set()
        return done.wait(5)

    async def heartbeat() -> None:
        await anyio.to_thread.run_sync(began.wait)
        done.set()

    async with anyio.create_task_group() as group:
        group.start_soon(heartbeat)
        turn = await Runner(registry).run(response(("wait", "{}")))

    assert turn.outcomes[0].value is True


# -- isolation ------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", [False, True])
async def test_each_call_has_its_own_fate(sync: bool):
    """One raises, one is too slow, one is unknown, one malformed, one unfit, one good: six outcomes in order."""
    registry = ToolRegistry()
    release = threading.Event()
    ran: list[str] = []
    if sync:

        @registry.tool
        def fail() -> None:
            ran.append("fail")
            raise ValueError("no")

        @registry.tool(timeout=0.05)
        def slow() -> None:
            ran.append("slow")
            release.wait(5)

        @registry.tool
        def good(n: int) -> int:
            ran.append("good")
            return n

    else:

        @registry.tool
        async def fail() -> None:
            ran.append("fail")
            raise ValueError("no")

        @registry.tool(timeout=0.05)
        async def slow() -> None:
            ran.append("slow")
            await anyio.sleep_forever()

        @registry.tool
        async def good(n: int) -> int:
            ran.append("good")
            return n

    turn = await Runner(registry).run(
        response(
            ("fail", "{}"),
            ("slow", "{}"),
            ("nobody", "{}"),
            ("good", '{"n": '),
            ("good", '{"n": "one"}'),
            ("good", '{"n": 7}'),
        )
    )
    release.set()

    assert statuses(turn) == [
        ("failed", "raised"),
        ("timed_out", "deadline"),
        ("refused", "unknown_tool"),
        ("refused", "truncated"),
        ("refused", "schema"),
        ("succeeded", None),
    ]
    assert [outcome.call.id for outcome in turn.outcomes] == ["c0", "c1", "c2", "c3", "c4", "c5"]
    assert [outcome.started for outcome in turn.outcomes] == [True, True, False, False, False, True]
    assert [outcome.value for outcome in turn.outcomes] == [None, None, None, None, None, 7]
    assert sorted(ran) == ["fail", "good", "slow"]
    assert len(turn.messages()) == 7


async def test_three_ways_to_be_unfit_read_differently():
    """The model can tell a cut call from a malformed one from one that does not fit the schema."""
    registry = ToolRegistry()
    registry.tool(lambda_named("f"))
    runner = Runner(registry)

    cut = (await runner.run(response(("f", '{"n": 1'), finish="length"))).outcomes[0].message
    malformed = (await runner.run(response(("f", "n is one")))).outcomes[0].message
    unfit = (await runner.run(response(("f", '{"n": "x"}')))).outcomes[0].message

    assert cut.startswith("Not run: the arguments were cut off before they were complete.")
    assert malformed.startswith("Not run: the arguments are not one valid JSON object:")
    assert unfit.startswith("Not run: the arguments do not fit the tool's schema.")


def lambda_named(name: str) -> Callable[[int], int]:
    def function(n: int) -> int:
        return n

    function.__name__ = name
    return function


# -- what tools and hooks get ---------------------------------------------------------------


async def test_deps_and_keys_reach_tools_and_hooks():
    """Tools get `deps` and the call's identity in their context, hooks in their request."""
    registry = ToolRegistry()
    contexts: list[ToolContext[Any]] = []
    requests: list[RepairRequest] = []

    @registry.tool
    async def in_loop(ctx: ToolContext[dict[str, int]], n: int) -> int:
        contexts.append(ctx)
        return ctx.deps["base"] + n

    @registry.tool
    def in_thread(n: int, *, context: ToolContext[dict[str, int]]) -> int:
        contexts.append(context)
        return context.deps["base"] + n

    @registry.repair
    def hook(request: RepairRequest) -> Repaired:
        requests.append(request)
        return Repaired(arguments={"n": 3})

    deps = {"base": 10}
    turn = await Runner(registry, run_id="R").run(
        response(("in_loop", '{"n": 1}'), ("in_thread", '{"n": 2}'), ("in_thread", "oops")), deps=deps, turn_id="T"
    )

    assert [outcome.value for outcome in turn.outcomes] == [11, 12, 13]
    assert all(context.deps is deps for context in contexts)
    assert sorted((context.call_id, context.tool, context.key, context.attempt) for context in contexts) == [
        ("c0", "in_loop", "R:T:0", 1),
        ("c1", "in_thread", "R:T:1", 1),
        ("c2", "in_thread", "R:T:2", 1),
    ]
    assert [outcome.key for outcome in turn.outcomes] == ["R:T:0", "R:T:1", "R:T:2"]
    assert [request.key for request in requests] == ["R:T:2"]
    assert requests[0].deps is deps


async def test_a_model_cannot_send_the_context():
    """The context parameter is no argument: a model that sends one has sent an unknown key."""
    registry = ToolRegistry()

    @registry.tool
    def who(ctx: ToolContext[str], q: str) -> str:
        return q + ctx.deps

    turn = await Runner(registry).run(response(("who", '{"q": "a", "ctx": null}')), deps="me")

    assert statuses(turn) == [("refused", "unknown_key")]


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("limit", [None, 5])
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_context_variables_go_in_and_do_not_come_out(calls: int, limit: float | None, kind: str):
    """A tool sees the caller's context variables; what it sets, neither the caller nor a sibling sees."""
    registry = ToolRegistry()
    seen: list[str] = []

    def body(n: int) -> None:
        seen.append(place.get())
        place.set(f"tool {n}")

    if kind == "async":

        @registry.tool(timeout=limit)
        async def visit(n: int) -> None:
            body(n)

    else:

        @registry.tool(timeout=limit)
        def visit(n: int) -> None:
            body(n)

    token = place.set("home")
    try:
        await Runner(registry, max_concurrency=1).run(response(*(("visit", f'{{"n": {n}}}') for n in range(calls))))
        assert place.get() == "home"
    finally:
        place.reset(token)

    assert seen == ["home"] * calls


class Adder:
    def __init__(self, base: int) -> None:
        self.base = base

    async def add(self, n: int) -> int:
        return self.base + n

    def add_sync(self, n: int) -> int:
        return self.base + n

    async def __call__(self, n: int) -> int:
        return self.base + n


async def plain_async(base: int, n: int) -> int:
    return base + n


@functools.wraps(plain_async)
def returns_a_coroutine(*args: int, **kwargs: int) -> Awaitable[int]:
    return plain_async(*args, **kwargs)


def returns_an_awaitable(n: int) -> Awaitable[int]:
    return plain_async(10, n)


@pytest.mark.parametrize(
    "function",
    [
        functools.partial(plain_async, 10),
        functools.partial(functools.partial(plain_async), 10),
        functools.partial(returns_a_coroutine, 10),
        functools.partial(Adder(10).add),
        functools.partial(Adder(10).add_sync),
        Adder(10).add,
        Adder(10).add_sync,
        Adder(10),
        returns_an_awaitable,
    ],
    ids=[
        "partial of async", "partial of partial", "partial of wrapper", "partial of async method", "partial of method",
        "async method", "method", "async callable object", "returns an awaitable",
    ],
)  # fmt: skip
async def test_every_kind_of_callable_gives_its_value(function: Callable[..., Any]):
    """Never a coroutine object for a result."""
    from toolrun import Tool

    registry = ToolRegistry([Tool.from_function(function, name="add")])

    turn = await Runner(registry).run(response(("add", '{"n": 1}')))

    assert (turn.outcomes[0].value, turn.outcomes[0].message) == (11, "11")


async def test_a_sync_wrapper_of_an_async_function_is_sync():
    """A decorator that blocks on the async function it wraps belongs in a thread."""
    registry = ToolRegistry()
    threads: list[int] = []

    @registry.tool
    @functools.wraps(plain_async)
    def blocking(base: int, n: int) -> int:
        threads.append(threading.get_ident())
        return base + n

    turn = await Runner(registry).run(response(("plain_async", '{"base": 10, "n": 1}')))

    assert turn.outcomes[0].value == 11
    assert threads != [threading.get_ident()]


async def test_arguments_are_the_tools_own():
    """A tool that changes its arguments changes neither the call nor the outcome, nor a sibling's default."""
    registry = ToolRegistry()

    @registry.tool
    async def grow(xs: list[int], more: list[int] = []) -> list[int]:  # noqa: B006  # the point of the test
        xs.append(9)
        more.append(9)
        return [*xs, *more]

    turn = await Runner(registry).run(response(("grow", '{"xs": [1]}'), ("grow", '{"xs": [1]}')))

    assert [outcome.value for outcome in turn.outcomes] == [[1, 9, 9], [1, 9, 9]]
    assert [call.arguments for call in turn.calls] == [{"xs": [1]}, {"xs": [1]}]
    assert [outcome.arguments for outcome in turn.outcomes] == [{"xs": [1]}, {"xs": [1]}]


async def test_arguments_of_a_schema_tool_are_its_own():
    """The same for a handler that takes one dict."""
    from toolrun import Tool

    def handler(given: dict[str, Any]) -> str:
        given["xs"].append(9)
        given["new"] = 1
        return "ok"

    schema = {"type": "object", "properties": {"xs": {"type": "array"}}}
    registry = ToolRegistry([Tool.from_json_schema(name="t", input_schema=schema, handler=handler)])

    turn = await Runner(registry).run(response(("t", '{"xs": [1]}')))

    assert turn.outcomes[0].arguments == {"xs": [1]}
    assert turn.calls[0].arguments == {"xs": [1]}


# -- which calls ----------------------------------------------------------------------------


async def test_calls_that_are_not_ours():
    """A provider's own call and those of other choices are reported, never run and never answered."""
    registry = ToolRegistry()
    ran: list[str] = []

    @registry.tool
    async def web_search(q: str) -> str:
        ran.append(q)
        return "found"

    message = anthropic_message(("toolu_1", "web_search", {"q": "mine"}))
    message["content"].insert(0, {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "x"}})
    provider = await Runner(registry).run(message)
    two = openai_completion(("c0", "web_search", ['{"q": "first"}']))
    other = openai_completion(("c1", "web_search", ['{"q": "second"}']))
    two["choices"].append(other["choices"][0] | {"index": 1})
    choices = await Runner(registry).run(two)

    assert ran == ["mine", "first"]
    assert [call.id for call in provider.calls] == ["srv_1", "toolu_1"]
    assert [outcome.call.id for outcome in provider.outcomes] == ["toolu_1"]
    assert [outcome.call.id for outcome in choices.outcomes] == ["c0"]


def paying() -> tuple[ToolRegistry, list[int]]:
    registry = ToolRegistry()
    ran: list[int] = []

    @registry.tool
    async def pay(n: int) -> int:
        ran.append(n)
        return n

    return registry, ran


async def test_a_resent_call_runs_once_and_calls_without_ids_both_run():
    """The same id, name and arguments again are one call; two calls that have no id are two."""
    registry, ran = paying()

    resent = await Runner(registry).run(openai_completion(("same", "pay", ['{"n": 1}']), ("same", "pay", ['{"n": 1}'])))
    ran_once = list(ran)
    nameless = await Runner(registry).run(openai_completion(("", "pay", ['{"n": 2}']), ("", "pay", ['{"n": 3}'])))

    assert ran_once == [1]
    assert [outcome.value for outcome in resent.outcomes] == [1]
    assert ran == [1, 2, 3]
    assert len({call.id for call in nameless.calls}) == 2


async def test_a_call_given_twice_to_execute_runs_once():
    """However the same call gets in twice, its effect happens once, and it is answered once a call."""
    registry, ran = paying()

    calls = finalize(response(("pay", '{"n": 1}')))
    turn = await Runner(registry).execute((*calls, *calls))

    assert ran == [1]
    assert [outcome.value for outcome in turn.outcomes] == [1, 1]


async def test_execute_does_not_trust_parsed_arguments():
    """Calls that come from elsewhere are read again: their text is what counts."""
    from dataclasses import replace

    registry = ToolRegistry()
    registry.tool(lambda_named("f"))
    (call,) = finalize(response(("f", '{"n": 1}')))

    forged = await Runner(registry).execute([replace(call, arguments={"n": 2})])
    broken = await Runner(registry).execute([replace(call, raw_arguments='{"n": 1')])
    held = await Runner(registry).execute([replace(call, executable=False, code="held")])
    unfit = replace(call, raw_arguments="n=1", status=CallStatus.PARSE_ERROR, code="syntax")
    claimed = await Runner(registry).execute([unfit])

    assert forged.outcomes[0].value == 1
    assert statuses(broken) == [("refused", "truncated")]
    assert statuses(held) == [("not_executed", "held")]
    assert statuses(claimed) == [("refused", "syntax")]


async def test_execute_without_a_wire_does_not_lose_results():
    """Results that no wire can write are an error, not an empty history."""
    registry = ToolRegistry()
    registry.tool(lambda_named("f"))
    calls = finalize(response(("f", '{"n": 1}')))

    known = await Runner(registry).execute(calls, wire="openai-chat")
    unknown = await Runner(registry).execute(calls)

    assert [message["role"] for message in known.messages()] == ["assistant", "tool"]
    assert unknown.outcomes[0].value == 1
    with pytest.raises(Exception, match="wire"):
        unknown.messages()


async def test_a_response_without_calls():
    """Nothing to run, nothing to reply."""
    turn = await Runner(ToolRegistry()).run(openai_completion(text="Hello.", finish="stop"))

    assert (turn.outcomes, turn.needs_reply, turn.text) == ((), False, "Hello.")
    assert turn.messages() == [{"role": "assistant", "content": "Hello."}]


async def test_only_refused_calls_still_need_a_reply():
    """The model has to hear of them."""
    turn = await Runner(ToolRegistry()).run(response(("f", "{}")))

    assert turn.needs_reply


# -- the runner's life ----------------------------------------------------------------------


async def test_a_closed_runner_refuses():
    """After its block every entry raises, with the same error."""
    async with Runner(ToolRegistry()) as runner:
        await runner.run(response())

    with pytest.raises(RunnerClosed):
        await runner.run(response())
    with pytest.raises(RunnerClosed):
        await runner.execute(())
    with pytest.raises(RunnerClosed):
        runner.stream(response())
    with pytest.raises(RunnerClosed):
        runner.run_sync(response())
    with pytest.raises(RunnerClosed):
        runner.__enter__()
    with pytest.raises(RunnerClosed):
        await runner.__aenter__()


async def test_many_turns_at_once_share_a_runner():
    """Turns of one runner do not mix."""
    registry = ToolRegistry()

    @registry.tool
    async def echo(n: int) -> int:
        await anyio.lowlevel.checkpoint()
        return n

    values: dict[int, list[object]] = {}

    async def one(number: int) -> None:
        turn = await runner.run(response(*(("echo", f'{{"n": {number * 10 + n}}}') for n in range(3))))
        values[number] = [outcome.value for outcome in turn.outcomes]

    async with Runner(registry) as runner, anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(one, number)

    assert values == {n: [10 * n, 10 * n + 1, 10 * n + 2] for n in range(20)}


async def test_hooks_and_tools_registered_later_count():
    """The registry is looked at when a turn runs."""
    registry = ToolRegistry()
    runner = Runner(registry)
    before = await runner.run(response(("f", "{}")))

    @registry.tool
    def f() -> int:
        return 1

    after = await runner.run(response(("f", "{}")))

    assert statuses(before) == [("refused", "unknown_tool")]
    assert after.outcomes[0].value == 1


async def test_calls_without_ids_are_never_taken_for_one():
    """Two turns that gave no ids may make the same synthetic one; both calls run."""
    registry, ran = paying()

    call = {"type": "function", "function": {"name": "pay", "arguments": '{"n": 1}'}}
    turn = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    await Runner(registry).execute((*finalize(turn), *finalize(turn)))

    assert ran == [1, 1]


async def test_a_call_made_by_hand():
    """What `finalize` would have filled in need not be: a name alone names the tool."""
    call = ToolCall(id="c", name="pay", raw_arguments='{"n": 1}', arguments=None, status=CallStatus.OK, executable=True)
    registry = ToolRegistry()

    @registry.tool
    async def pay(n: int) -> int:
        return n

    turn = await Runner(registry).execute([call, replace(call, id="d", raw_arguments='{"n": 2}')])

    assert [(outcome.status, outcome.value) for outcome in turn.outcomes] == [("succeeded", 1), ("succeeded", 2)]
