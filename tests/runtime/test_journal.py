"""A runner with a journal: what is recorded and when, and what follows from what is there."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import anyio
import pytest

import toolrun
from toolrun import (
    Approve,
    CallConflict,
    Deny,
    Failed,
    Happened,
    Interruption,
    JournalError,
    NotHappened,
    Outcome,
    RegistrationError,
    Result,
    Retry,
    Runner,
    ToolContext,
    ToolError,
    ToolRegistry,
    TryAgain,
    finalize,
)
from toolrun.abc import Executor, Job
from toolrun.executors import ThreadExecutor
from toolrun.history import check
from toolrun.journals import MemoryJournal, SqliteJournal

from .responses import openai_chunks, openai_completion, response


class World:
    """The tools, what they did, and where the program is to stop."""

    def __init__(self) -> None:
        self.effects: list[tuple[str, str, int]] = []
        self.stops_in: str | None = None
        self.entered = anyio.Event()
        self.goes_on = anyio.Event()
        self.registry = ToolRegistry()

        @self.registry.tool
        async def charge(n: int, context: ToolContext[object]) -> str:
            return await self.work(context)

        @self.registry.tool(effect="idempotent")
        async def put(n: int, context: ToolContext[object]) -> str:
            return await self.work(context)

        @self.registry.tool(effect="pure")
        async def look(n: int, context: ToolContext[object]) -> str:
            return await self.work(context)

        @self.registry.tool(approval=True)
        async def pay(n: int, context: ToolContext[object]) -> str:
            return await self.work(context)

    async def work(self, context: ToolContext[Any]) -> str:
        self.effects.append((context.tool, context.key, context.attempt))
        if self.stops_in == context.tool:
            self.entered.set()
            await self.goes_on.wait()
        await anyio.lowlevel.checkpoint()
        return f"{context.tool} done"


async def left_behind(world: World, tool: str, source: object, **options: Any) -> MemoryJournal:
    """Run until the tool is in the middle of its work, and take the journal away, as the end of the process would."""
    journal = MemoryJournal()
    world.stops_in = tool
    runner = Runner(world.registry, journal=journal, run_id="R", **options)
    entry = runner.execute if isinstance(source, tuple) else runner.run
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: entry(source, turn_id="T"))
        await world.entered.wait()
        await anyio.wait_all_tasks_blocked()
        later = journal.reopened()
        group.cancel_scope.cancel()
    world.stops_in = None
    return later


async def recovered(world: World, journal: MemoryJournal, **options: Any) -> list[Any]:
    runner = Runner(world.registry, journal=journal, **options)
    return [turn async for turn in runner.recover()]


# -- while all goes well ----------------------------------------------------------------------


class Telling(MemoryJournal):
    """Says what it is asked, in between what the tools do."""

    def __init__(self, said: list[str]) -> None:
        super().__init__()
        self.said = said

    async def start(self, job, *, audit, turn):
        known = "with its turn" if turn.text and len(json.loads(turn.text)["calls"]["$tuple"]) == 2 else "alone"
        self.said.append(f"start {job.tool} {job.attempt}, {known}")
        return await super().start(job, audit=audit, turn=turn)

    async def settle(self, key, outcome, *, attempt=None):
        self.said.append(f"settle {key} {json.loads(outcome.text)['type']} {attempt}")
        return await super().settle(key, outcome, attempt=attempt)

    async def finish(self, turn):
        self.said.append(f"finish {turn}")
        await super().finish(turn)


async def test_what_is_recorded_and_when():
    """The turn with its first start, each start before the tool, each outcome before it is told, the end at last."""
    said: list[str] = []
    registry = ToolRegistry()

    @registry.tool(effect="idempotent", retry=Retry(on=OSError, wait=0))
    async def put(n: int, context: ToolContext[None]) -> str:
        said.append(f"put {context.attempt}")
        if context.attempt == 1:
            raise OSError("reset")
        return "done"

    runner = Runner(registry, journal=Telling(said), run_id="R", max_concurrency=1)
    await runner.run(response(("put", '{"n": 1}'), ("nope", "{}")), turn_id="T")
    said.append("told")

    assert said == [
        "start put 1, with its turn",
        "put 1",
        "start put 2, alone",
        "put 2",
        "settle R:T:0 Succeeded 2",
        "settle R:T:1 Refused None",
        "finish R:T",
        "told",
    ]


async def test_a_turn_without_starts_is_not_recorded():
    """There is nothing in it that could happen twice."""
    journal = MemoryJournal()

    await Runner(ToolRegistry(), journal=journal, run_id="R").run(response(("nope", "{}")), turn_id="T")

    assert await journal.turn("R:T") is None


async def test_the_same_turn_again():
    """Recorded outcomes are returned, and nothing runs; other arguments under the same key are a conflict."""
    world = World()
    runner = Runner(world.registry, journal=MemoryJournal(), run_id="R")

    first = await runner.run(response(("charge", '{"n": 1}')), turn_id="T")
    again = await runner.run(response(("charge", '{"n": 1}')), turn_id="T")
    other = await runner.run(response(("charge", '{"n": 2}')), turn_id="T")

    assert again.messages() == first.messages()
    assert len(world.effects) == 1
    (outcome,) = other.outcomes
    assert (outcome.status, outcome.code, outcome.started) == ("failed", "conflict", False)
    assert isinstance(outcome.error, CallConflict)
    assert (await runner.run(response(("charge", '{"n": 1}')), turn_id="T")).messages() == first.messages()


async def test_a_turn_that_is_still_running_is_joined():
    """Whoever submits the same turn meanwhile gets the same outcomes."""
    world = World()
    runner = Runner(world.registry, journal=MemoryJournal(), run_id="R")
    turns: list[Any] = []

    async def run() -> None:
        turns.append(await runner.run(response(("charge", '{"n": 1}')), turn_id="T"))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(run)

    assert world.effects == [("charge", "R:T:0", 1)]
    assert [turn.outcomes[0].value for turn in turns] == ["charge done"] * 3


@pytest.mark.parametrize(
    ("cancelled", "values", "left"),
    [((0,), [None, "charged"], 1), ((1,), ["charged"] * 2, 1), ((1, 0), [None, None], 0)],
)
async def test_a_joined_run_that_is_cancelled(cancelled: tuple[int, ...], values: list[object], left: int):
    """It takes no call from the run beside it; the last of them records what was not begun, and ends the turn."""
    registry, release = ToolRegistry(), anyio.Event()

    @registry.tool(effect="pure")
    async def charge(n: int) -> str:
        await release.wait()
        return "charged"

    journal = MemoryJournal()
    runner = Runner(registry, journal=journal, run_id="R", max_concurrency=1)
    turns: dict[int, Any] = {}
    scopes, over = [anyio.CancelScope(), anyio.CancelScope()], [anyio.Event(), anyio.Event()]

    async def run(place: int) -> None:
        source = response(("charge", '{"n": 1}'), ("charge", '{"n": 2}'))
        with scopes[place]:
            async with runner.stream(source, turn_id="T") as turns[place]:
                async for _ in turns[place]:
                    pass
        over[place].set()

    async with anyio.create_task_group() as group:
        for place in (0, 1):
            group.start_soon(run, place)
            await anyio.wait_all_tasks_blocked()
        for place in cancelled:
            scopes[place].cancel()
        for place in cancelled:
            await over[place].wait()
        assert len(await journal.unsettled()) == left
        release.set()
    last = turns[1 - cancelled[0]].turn
    assert [outcome.value for outcome in last.outcomes] == values
    assert await journal.unsettled() == ()


@pytest.mark.parametrize("verb", ["start", "settle"])
async def test_a_journal_that_fails(verb: str):
    """What cannot be recorded does not run; an outcome that cannot be is not shown as if it could."""
    world = World()
    journal = MemoryJournal()

    async def broken(*args: object, **options: object) -> None:
        raise JournalError("the disk is full")

    setattr(journal, verb, broken)

    (outcome,) = (await Runner(world.registry, journal=journal).run(response(("charge", '{"n": 1}')))).outcomes

    assert (outcome.status, outcome.code) == ("failed", "journal")
    assert isinstance(outcome.error, JournalError)
    assert outcome.started is (verb == "settle")
    assert len(world.effects) == (1 if verb == "settle" else 0)
    assert outcome.value == ("charge done" if verb == "settle" else None)


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize(
    ("tool", "statuses", "effects"),
    [("charge", ["interrupted"] * 2, 1), ("put", ["succeeded"] * 2, 2)],
)
async def test_nobody_waits_for_an_outcome_that_was_lost(tool: str, statuses: list[str], effects: int, cancelled: bool):
    """Once the journal takes something again, the call is found like one that an ended process had begun."""
    world = World()
    journal = MemoryJournal()
    settle = journal.settle

    async def broken(*args: object, **options: object) -> bool:
        raise JournalError("the disk is full")

    journal.settle = broken  # type: ignore[assignment, method-assign]
    call = response((tool, '{"n": 1}'))
    world.stops_in = tool if cancelled else None
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: Runner(world.registry, journal=journal, run_id="R").run(call, turn_id="T"))
        if cancelled:
            await world.entered.wait()
            group.cancel_scope.cancel()
    journal.settle, world.stops_in = settle, None  # type: ignore[method-assign]
    turns: list[Any] = []

    async def again() -> None:
        turns.append(await Runner(world.registry, journal=journal, run_id="R").run(call, turn_id="T"))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(again)
            group.start_soon(again)

    assert [turn.outcomes[0].status for turn in turns] == statuses
    assert len(world.effects) == effects


async def test_a_cancelled_turn_is_over():
    """Its calls are recorded as cancelled, and nothing of it is recovered."""
    world = World()
    world.stops_in = "charge"
    journal = MemoryJournal()
    runner = Runner(world.registry, journal=journal, run_id="R", max_concurrency=1)

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: runner.run(response(("charge", '{"n": 1}'), ("put", '{"n": 2}')), turn_id="T"))
        await world.entered.wait()
        group.cancel_scope.cancel()

    entry = await journal.turn("R:T")
    assert entry is not None
    assert [json.loads(call.outcome or "{}")["type"] for call in entry.calls.values()] == ["Cancelled", "Cancelled"]
    assert await recovered(world, journal.reopened()) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"journal": "calls.db"}, "journal must be a Journal"),
        ({"journal": MemoryJournal(), "start": "eager"}, "keeps a turn before its first start"),
        ({"verify": print}, "asked only about what a journal has"),
        ({"journal": MemoryJournal(), "verify": "yes"}, "verify must be callable"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], says: str):
    with pytest.raises(RegistrationError, match=says):
        Runner(ToolRegistry(), **options)


async def test_recovering_needs_a_journal():
    with pytest.raises(RegistrationError, match="recover reads a journal"):
        async for _ in Runner(ToolRegistry()).recover():
            pass


# -- after a process has ended ----------------------------------------------------------------

ALL = response(("put", '{"n": 1}'), ("charge", '{"n": 2}'), ("look", '{"n": 3}'), ("nope", "{}"))


@pytest.mark.parametrize(
    ("tool", "status", "effects"),
    [
        ("charge", "interrupted", [("charge", "R:T:0", 1)]),
        ("put", "succeeded", [("put", "R:T:0", 1), ("put", "R:T:0", 2)]),
        ("look", "succeeded", [("look", "R:T:0", 1), ("look", "R:T:0", 2)]),
    ],
)
async def test_a_call_that_had_started(tool: str, status: str, effects: list[tuple[str, str, int]]):
    """By its effect: never again, or again with the same key."""
    world = World()
    journal = await left_behind(world, tool, response((tool, '{"n": 1}')))

    (turn,) = await recovered(world, journal)

    (outcome,) = turn.outcomes
    assert (outcome.status, outcome.started, outcome.attempts) == (status, True, len(effects))
    assert world.effects == effects
    assert check(turn.messages(), "openai-chat") == ()
    assert await recovered(world, journal.reopened()) == []


async def test_the_calls_beside_it():
    """What was recorded stays, what had not started is run, what is unfit is refused as before."""
    world = World()
    journal = await left_behind(world, "charge", ALL, max_concurrency=1)

    (turn,) = await recovered(world, journal)

    assert (turn.run_id, turn.turn_id) == ("R", "T")
    assert [outcome.status for outcome in turn.outcomes] == ["succeeded", "interrupted", "succeeded", "refused"]
    assert world.effects == [("put", "R:T:0", 1), ("charge", "R:T:1", 1), ("look", "R:T:2", 1)]
    assert [message.get("content") for message in turn.messages()[1:]] == [
        "put done",
        "The program ended while the tool ran. Whether it had its effect is not known.",
        "look done",
        "Not run: there is no tool named 'nope'. Available tools: charge, look, pay, put.",
    ]


@pytest.mark.parametrize(("stops_in", "status"), [("look", "succeeded"), ("charge", "interrupted")])
async def test_a_call_given_twice_runs_once_over_a_restart(stops_in: str, status: str):
    """The first of the two had its outcome, or had begun: either way the second is answered with it, and not run."""
    world = World()
    charge, look = finalize(response(("charge", '{"n": 1}'), ("look", '{"n": 1}')))
    journal = await left_behind(world, stops_in, (charge, charge, look))
    charged = [effect for effect in world.effects if effect[0] == "charge"]
    assert charged == [("charge", "R:T:0", 1)]
    (turn,) = await recovered(world, journal)
    assert [outcome.status for outcome in turn.outcomes] == [status, status, "succeeded"]
    assert [outcome.call.position for outcome in turn.outcomes] == [0, 1, 2]
    assert [effect for effect in world.effects if effect[0] == "charge"] == charged


async def test_a_repaired_call_runs_again_as_it_ran():
    """With the recorded arguments; the hooks are not asked again."""
    world = World()
    asked: list[str] = []

    @world.registry.repair
    def mine(request: toolrun.RepairRequest) -> toolrun.Repaired:
        asked.append(request.call.raw_arguments)
        return toolrun.Repaired(arguments={"n": len(asked)})

    journal = await left_behind(world, "put", response(("put", "seven")))

    (turn,) = await recovered(world, journal)

    (outcome,) = turn.outcomes
    assert asked == ["seven"]
    assert (outcome.status, outcome.arguments, outcome.grade) == ("succeeded", {"n": 1}, "hook")
    assert [(record.accepted, record.after) for record in outcome.repairs] == [(True, '{"n":1}')]


class Silent:
    """Cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Place(NamedTuple):
    x: int
    y: int


def nested(depth: int) -> object:
    value: object = 0
    for _ in range(depth):
        value = [value]
    return value


ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({Place(1, 2): 3, (1, "a"): 4, b"k": 5}, {"Place(x=1, y=2)": 3, (1, "a"): 4, b"k": 5}),
        ({frozenset({1}): {2.5, float("inf")}}, {"frozenset({1})": [2.5, None]}),
        (Place(1, -2), [1, -2]),
        (10**5000, 10**5000),
        (nested(150), nested(150)),
        (nested(2000), "a list that cannot be written as JSON"),
        (ENDLESS, "a list that cannot be written as JSON"),
        (Silent(), "a Silent that cannot be written as JSON"),
    ],
    ids=["keys", "unhashable keys", "named tuple", "digits", "deep", "too deep", "endless", "silent"],
)
async def test_whatever_a_tool_returns_its_turn_is_read_again(value: object, read: object):
    """From a journal, and from a token: neither this turn is lost for its value, nor those after it."""
    world = World()

    @world.registry.tool(result_limit=300)
    async def odd() -> object:
        return value

    calls = response(("odd", "{}"), ("pay", '{"n": 1}'))
    runner = Runner(world.registry, journal=(journal := MemoryJournal()), signing_key=b"0123456789abcdef")

    turn = await runner.run(calls)
    (again,) = await recovered(world, journal.reopened())
    loaded = runner.load_turn(runner.dump_turn(turn))

    first = turn.outcomes[0]
    assert first.value is value
    for other in (again.outcomes[0], loaded.outcomes[0]):
        assert other.value == read
        assert (other.status, other.code, other.message) == (first.status, first.code, first.message)


@pytest.mark.parametrize(
    "result", [TryAgain("later", after=0), float, "x" * 1000], ids=["failed", "unserialisable", "cut"]
)
async def test_a_repaired_call_is_told_as_without_a_restart(result: object):
    """With the arguments that the tool got, also if it failed."""
    world = World()

    @world.registry.tool(result_limit=300)
    async def odd(n: int) -> object:
        if isinstance(result, Exception):
            raise result
        return result

    calls = response(("odd", '{"n": 1,}'), ("charge", '{"n": 1}'))
    journal = await left_behind(world, "charge", calls, max_concurrency=1)

    (turn,) = await recovered(world, journal, verify=lambda _: Happened("charge done"))

    assert turn.outcomes[0].arguments == {"n": 1}
    assert turn.messages() == (await Runner(world.registry).run(calls)).messages()


@pytest.mark.parametrize(
    ("verdict", "status", "value", "effects"),
    [
        (Happened({"receipt": 7}), "succeeded", {"receipt": 7}, 1),
        (NotHappened(), "succeeded", "charge done", 2),
        (None, "interrupted", None, 1),
        ("perhaps", "interrupted", None, 1),
        (ToolError("no connection"), "interrupted", None, 1),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_asking_the_outside_world(verdict: object, status: str, value: object, effects: int, is_async: bool):
    """Done, not happened, or unknown; a hook that fails cannot tell."""
    world = World()
    asked: list[Interruption] = []

    def verify(interruption: Interruption) -> Any:
        asked.append(interruption)
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    async def verify_async(interruption: Interruption) -> Any:
        return verify(interruption)

    journal = await left_behind(world, "charge", response(("charge", '{"n": 1}')))

    (turn,) = await recovered(world, journal, verify=verify_async if is_async else verify)

    assert (turn.outcomes[0].status, turn.outcomes[0].value) == (status, value)
    assert len(world.effects) == effects
    ((call, tool, arguments, key, attempt),) = [
        (one.call.id, one.tool, one.arguments, one.key, one.attempt) for one in asked
    ]
    assert (call, tool, arguments, key, attempt) == ("c0", "charge", {"n": 1}, "R:T:0", 1)


async def test_a_call_that_takes_its_process_down_each_time():
    """It is not begun for ever."""
    world = World()
    journal = await left_behind(world, "put", response(("put", '{"n": 1}')))
    for _ in range(2):
        world.stops_in, world.entered = "put", anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(recovered, world, journal)
            await world.entered.wait()
            journal = journal.reopened()
            group.cancel_scope.cancel()
    world.stops_in = None

    (turn,) = await recovered(world, journal)

    assert [attempt for _, _, attempt in world.effects] == [1, 2, 3]
    assert (turn.outcomes[0].status, turn.outcomes[0].code) == ("interrupted", "attempts")


async def test_a_recovery_that_is_cancelled():
    """What it began is recorded so; what it had not come to is left to the next one, and its start is not forgotten."""
    world = World()
    calls = response(*(("charge", json.dumps({"n": n})) for n in range(3)), ("pay", '{"n": 3}'))
    journal = await left_behind(world, "charge", calls)
    verdicts = [Happened("charged"), NotHappened()]
    world.stops_in, world.entered = "charge", anyio.Event()

    async with anyio.create_task_group() as group:
        group.start_soon(
            lambda: recovered(world, journal, max_concurrency=1, verify=lambda asked: verdicts[asked.arguments["n"]])
        )
        await world.entered.wait()
        group.cancel_scope.cancel()
    entry = await journal.turn("R:T")
    assert entry is not None
    assert {key: call.outcome and json.loads(call.outcome)["type"] for key, call in entry.calls.items()} == {
        "R:T:0": "Succeeded",
        "R:T:1": "Cancelled",
        "R:T:2": None,
    }
    (turn,) = await recovered(world, journal)

    assert [(one.status, one.started) for one in turn.outcomes] == [
        ("succeeded", True),
        ("cancelled", True),
        ("interrupted", True),
        ("deferred", False),
    ]
    assert [attempt for _, _, attempt in world.effects] == [1, 1, 1, 2]


async def test_a_call_that_had_started_and_cannot_be_run_again():
    """What stops it now says nothing of what it did before."""
    world = World()
    journal = await left_behind(world, "put", response(("put", '{"n": 1}'), ("put", '{"n": 2}')))

    class Shut(Executor):
        async def execute(self, job: Job) -> Outcome:
            return Failed(call=job.call, code="shut", message="Not run: shut.", attempts=job.attempt - 1, key=job.key)

    starts = journal.start

    async def start(job: Job, **options: Any) -> Any:
        if job.attempt > 1 and job.call.position == 1:
            raise JournalError("the disk is full")
        return await starts(job, **options)

    journal.start = start  # type: ignore[method-assign]
    (turn,) = await recovered(world, journal, executor=Shut())

    assert [(one.status, one.code, one.started) for one in turn.outcomes] == [
        ("interrupted", "shut", True),
        ("interrupted", "journal", True),
    ]
    assert {one.message for one in turn.outcomes} == {
        "The program ended while the tool ran. Whether it had its effect is not known."
    }


async def test_an_effect_that_is_declared_otherwise_now():
    """A tool that says now that it must not run twice is not run twice."""
    world = World()
    journal = await left_behind(world, "put", response(("put", '{"n": 1}')))
    registry = ToolRegistry([replace(world.registry["put"], effect="once")])

    (turn,) = [turn async for turn in Runner(registry, journal=journal).recover()]

    assert turn.outcomes[0].status == "interrupted"
    assert len(world.effects) == 1


async def test_a_turn_that_ends_while_others_are_recovered():
    """It was handed over by whoever ran it, and does not come again."""
    world = World()
    runner = Runner(world.registry, journal=MemoryJournal(), run_id="R")
    await runner.run(response(("pay", '{"n": 1}')), turn_id="waiting")
    world.stops_in = "charge"

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: runner.run(response(("charge", '{"n": 1}')), turn_id="running"))
        await world.entered.wait()
        came: list[str] = []
        async for turn in runner.recover():
            came.append(turn.turn_id)
            world.goes_on.set()
            await anyio.wait_all_tasks_blocked()

    assert came == ["waiting"]


async def test_a_tool_that_is_gone():
    """Nothing can be run, and it may have had its effect."""
    world = World()
    journal = await left_behind(world, "put", response(("put", '{"n": 1}')))

    (turn,) = [turn async for turn in Runner(ToolRegistry(), journal=journal).recover()]

    assert (turn.outcomes[0].status, turn.outcomes[0].code) == ("interrupted", "unknown_tool")


async def test_a_late_writer_is_fenced():
    """The outcome that a process brings which was taken for dead is not the call's, and the agent there is told."""
    world = World()
    journal = MemoryJournal()
    registry, going = ToolRegistry(), anyio.Event()
    goes_on = anyio.Event()

    @registry.tool(effect="idempotent")
    async def put(n: int) -> str:
        going.set()
        await goes_on.wait()
        return "late"

    turns: list[Any] = []

    async def run() -> None:
        turns.append(
            await Runner(registry, journal=journal, run_id="R").run(response(("put", '{"n": 1}')), turn_id="T")
        )

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await going.wait()
        (turn,) = await recovered(world, journal.reopened())
        goes_on.set()

    assert turn.outcomes[0].value == "put done"
    assert (turns[0].outcomes[0].status, turns[0].outcomes[0].code) == ("failed", "journal")


async def test_an_executor_that_is_durable_knows_by_itself():
    """It gets the same job again, whatever the effect."""
    world = World()
    journal = await left_behind(world, "charge", response(("charge", '{"n": 1}')))

    class Engine(ThreadExecutor):
        durable = True

    (turn,) = await recovered(world, journal, executor=Engine())

    assert turn.outcomes[0].status == "succeeded"


async def test_a_streamed_turn_of_a_file(tmp_path):
    """The same through SQLite, from a stream: the messages are those that the first process would have written."""
    world = World()
    source = openai_chunks(("a", "put", ['{"n"', ": 1}"]), ("b", "put", ['{"n": 2}']), text="Both.")
    whole = await Runner(world.registry).run(source)
    world.stops_in = "put"
    async with SqliteJournal(tmp_path / "calls.db") as journal, anyio.create_task_group() as group:
        runner = Runner(world.registry, journal=journal)
        group.start_soon(lambda: runner.run(openai_chunks_again(source)))
        await world.entered.wait()
        journal.settle = journal.finish = journal.keep = unreachable  # type: ignore[method-assign]
        group.cancel_scope.cancel()
    world.stops_in = None

    async with SqliteJournal(tmp_path / "calls.db") as journal:
        (turn,) = [turn async for turn in Runner(world.registry, journal=journal).recover()]

    assert turn.messages() == whole.messages()


def openai_chunks_again(source: list[Any]) -> list[Any]:
    return json.loads(json.dumps(source))


async def unreachable(*args: object, **options: object) -> None:
    raise JournalError("the process has ended")


# -- turns that wait --------------------------------------------------------------------------


async def test_a_deferred_turn_after_a_restart(tmp_path):
    """It comes as it is, is resumed, and is over then."""
    world = World()
    source = openai_completion(("a", "charge", ['{"n": 1}']), ("b", "pay", ['{"n": 2}']))
    async with SqliteJournal(tmp_path / "calls.db") as journal:
        turn = await Runner(world.registry, journal=journal, run_id="R").run(source, turn_id="T")
        assert [outcome.status for outcome in turn.outcomes] == ["succeeded", "deferred"]

    async with SqliteJournal(tmp_path / "calls.db") as journal:
        runner = Runner(world.registry, journal=journal)
        (turn,) = [turn async for turn in runner.recover()]
        assert [outcome.status for outcome in turn.outcomes] == ["succeeded", "deferred"]
        done = await runner.resume(turn, {"b": Approve()})
        twice = await runner.resume(turn, {"b": Approve()})

    assert [outcome.value for outcome in done.outcomes] == ["charge done", "pay done"]
    assert twice.messages() == done.messages()
    assert world.effects == [("charge", "R:T:0", 1), ("pay", "R:T:1", 1)]
    async with SqliteJournal(tmp_path / "calls.db") as journal:
        assert [turn async for turn in Runner(world.registry, journal=journal).recover()] == []


@pytest.mark.parametrize("late", [Approve(), Approve({"n": 2}), Deny("no"), Result("elsewhere")])
async def test_an_answer_that_comes_after_another(late: Any):
    """What came of the first one stands: a call that ran is not told to the model as one that did not."""
    world = World()
    runner = Runner(world.registry, journal=MemoryJournal())
    turn = await runner.run(response(("pay", '{"n": 1}'), ("look", '{"n": 1}')))

    done = await runner.resume(turn, {"c0": Approve()})
    twice = await runner.resume(turn, {"c0": late})

    assert [outcome.value for outcome in done.outcomes] == ["pay done", "look done"]
    assert twice.messages() == done.messages()
    assert len(world.effects) == 2


async def test_an_answer_that_comes_while_the_call_runs():
    """The call is joined; a refusal cannot take back what has begun."""
    world = World()
    world.stops_in = "pay"
    runner = Runner(world.registry, journal=MemoryJournal())
    turn = await runner.run(response(("pay", '{"n": 1}')))
    turns: list[Any] = []

    async def resume(answer: Any) -> None:
        turns.append(await runner.resume(turn, {"c0": answer}))

    async with anyio.create_task_group() as group:
        group.start_soon(resume, Approve())
        await world.entered.wait()
        group.start_soon(resume, Deny("no"))
        await anyio.wait_all_tasks_blocked()
        world.goes_on.set()

    assert [turn.outcomes[0].value for turn in turns] == ["pay done"] * 2
    assert len(world.effects) == 1


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_turn_that_cannot_be_kept_waits_still(cancelled: bool):
    """Nothing of it goes on, and the same answer can be given again."""
    world = World()

    class Failing(MemoryJournal):
        def __init__(self) -> None:
            super().__init__()
            self.fails = False

        async def keep(self, turn, data):
            if not self.fails:
                return await super().keep(turn, data)
            self.fails = False
            if cancelled:
                scope.cancel()
                await anyio.sleep_forever()
            raise JournalError("the disk is full")

    journal, scope = Failing(), anyio.CancelScope()
    runner = Runner(world.registry, journal=journal)
    turn = await runner.run(response(("pay", '{"n": 1}')))
    journal.fails = True

    with scope, suppress(JournalError):
        await runner.resume(turn, {"c0": Approve()})
    assert world.effects == []
    resumed = await runner.resume(turn, {"c0": Approve()})

    assert [outcome.value for outcome in resumed.outcomes] == ["pay done"]


async def test_deps_of_recovered_calls():
    """They are those of the process that recovers."""
    registry, got, entered = ToolRegistry(), [], anyio.Event()

    @registry.tool(effect="pure")
    async def look(context: ToolContext[str]) -> str:
        got.append(context.deps)
        if len(got) == 1:
            entered.set()
            await anyio.sleep_forever()
        return "done"

    journal = MemoryJournal()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: Runner(registry, journal=journal).run(response(("look", "{}")), deps="first"))
        await entered.wait()
        later = journal.reopened()
        group.cancel_scope.cancel()

    async for _ in Runner(registry, journal=later).recover(deps="second"):
        pass

    assert got == ["first", "second"]


async def test_a_tool_that_asks_to_be_run_again_is_recorded_each_time():
    """`TryAgain` is a further attempt of the same call."""
    journal, registry, attempts = MemoryJournal(), ToolRegistry(), []

    @registry.tool
    async def charge(context: ToolContext[None]) -> str:
        attempts.append(context.attempt)
        if len(attempts) < 3:
            raise TryAgain(after=0)
        return "done"

    (outcome,) = (
        await Runner(registry, journal=journal, run_id="R").run(response(("charge", "{}")), turn_id="T")
    ).outcomes

    entry = await journal.turn("R:T")
    assert entry is not None
    assert (entry.calls["R:T:0"].attempt, outcome.attempts, attempts) == (3, 3, [1, 2, 3])
