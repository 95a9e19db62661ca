"""Listeners are told of every turn, give calls a context, and break nothing."""

# Tools with annotations of their own: no postponed evaluation here.
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import cast

import anyio
import pytest

from toolrun import (
    Approve,
    CallDelta,
    CallFinalized,
    Event,
    RegistrationError,
    Runner,
    StreamInterrupted,
    TextDelta,
    Tool,
    ToolRegistry,
    TryAgain,
    ValidatedCall,
    finalize,
)
from toolrun.abc import Listener, Outcome
from toolrun.journals import MemoryJournal

from .responses import anthropic_events, openai_chunks, response

PAYMENT = {"properties": {"n": {}}, "required": ["n"]}
WHERE: ContextVar[str] = ContextVar("where", default="nowhere")


class Recorder(Listener):
    """Writes down what it is told, and sets a context variable around each call."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_begin(self, turn: str, registry: ToolRegistry, outcomes: Sequence[Outcome]) -> None:
        known = "".join(f", {outcome.call.id} {outcome.status}" for outcome in outcomes)
        self.told.append(f"{turn} began with {len(registry)} tools{known}")

    def on_event(self, event: Event, turn: str) -> None:
        self.told.append(f"{turn} {type(event).__name__}")

    @contextmanager
    def around(self, call: ValidatedCall, key: str) -> Iterator[None]:
        token = WHERE.set(f"{call.tool} {key}")
        self.told.append(f"{key} entered")
        yield
        self.told.append(f"{key} left")
        WHERE.reset(token)

    def on_end(self, turn: str, outcomes: Sequence[Outcome]) -> None:
        self.told.append(f"{turn} ended: {', '.join(outcome.status for outcome in outcomes)}")


def make_registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    async def where() -> str:
        return WHERE.get()

    @registry.tool
    def where_in_a_thread() -> str:
        return WHERE.get()

    @registry.tool(approval=True)
    async def asked() -> str:
        return WHERE.get()

    return registry


ONE = response(("where", "{}"))
BEGAN = "r:t began with 3 tools"
RECOVERED = [
    "r:t AttemptStarted",
    "r:t AttemptEnded",
    "r:t:1 left",
    "r:t CallCompleted",
    "r:t ended: succeeded, succeeded",
]
RAN = ["r:t AttemptStarted", "r:t AttemptEnded", "r:t:0 left", "r:t CallCompleted", "r:t ended: succeeded"]


async def test_every_entry() -> None:
    """`run`, `execute`, a thread, `resume` and a journal: the same calls to the listener."""
    listener = Recorder()
    async with MemoryJournal() as journal:
        runner = Runner(make_registry(), listeners=[listener], run_id="r", journal=journal)
        turn = await runner.run(ONE, turn_id="t")
    assert turn.outcomes[0].value == "where r:t:0"
    assert listener.told == [BEGAN, "r:t CallStarted", "r:t CallFinalized", "r:t:0 entered", *RAN]
    assert WHERE.get() == "nowhere"

    listener.told.clear()
    runner = Runner(make_registry(), listeners=[listener], run_id="r")
    calls = finalize(response(("where_in_a_thread", "{}")))
    turn = await runner.execute(calls, turn_id="t")
    assert turn.outcomes[0].value == "where_in_a_thread r:t:0"
    assert listener.told == [BEGAN, "r:t:0 entered", *RAN]

    listener.told.clear()
    turn = await runner.run(response(("asked", "{}"), ("where", "{}")), turn_id="t")
    assert listener.told[-2:] == ["r:t CallCompleted", "r:t ended: deferred, succeeded"]
    listener.told.clear()
    await runner.resume(turn, {"c0": Approve()})
    resumed = [f"{BEGAN}, c1 succeeded", "r:t ApprovalAnswered", "r:t:0 entered", *RAN[:-1]]
    assert listener.told == [*resumed, "r:t ended: succeeded, succeeded"]


async def test_a_recovered_turn() -> None:
    """It begins with the outcomes that were recorded, and tells of the other calls alone."""
    registry, listener, stuck = make_registry(), Recorder(), anyio.Event()

    @registry.tool(effect="pure")
    async def hang() -> str:
        if not stuck.is_set():
            stuck.set()
            await anyio.sleep_forever()
        return "done"

    source = response(("where", "{}"), ("hang", "{}"))
    journal = MemoryJournal()
    async with anyio.create_task_group() as group:
        runner = Runner(registry, run_id="r", journal=journal, max_concurrency=1)
        group.start_soon(lambda: runner.run(source, turn_id="t"))
        await stuck.wait()
        left = journal.reopened()
        group.cancel_scope.cancel()
    (turn,) = [turn async for turn in Runner(registry, journal=left, listeners=[listener]).recover()]
    assert [outcome.value for outcome in turn.outcomes] == ["nowhere", "done"]
    assert listener.told == ["r:t began with 4 tools, c0 succeeded", "r:t:1 entered", *RECOVERED]


async def test_pieces_come_only_to_those_who_want_them() -> None:
    chunks = openai_chunks(("c1", "where", ["{", "}"]), text="Hello")
    eager, quiet = Recorder(), Recorder()
    eager.deltas = True
    runner = Runner(make_registry(), listeners=[eager, quiet], run_id="r")
    await runner.run(chunks, turn_id="t")
    pieces = ["r:t TextDelta", "r:t CallDelta", "r:t CallDelta"]
    assert [line for line in eager.told if "Delta" in line] == pieces
    assert [line for line in quiet.told if "Delta" in line] == []
    async with runner.stream(chunks, turn_id="t") as run:
        followed = [event async for event in run]
    assert [type(event) for event in followed if isinstance(event, TextDelta | CallDelta)] == [
        TextDelta,
        CallDelta,
        CallDelta,
    ]
    assert [line for line in quiet.told if "Delta" in line] == []


async def test_attempts_share_one_context() -> None:
    registry, listener, seen = ToolRegistry(), Recorder(), list[str]()

    @registry.tool
    async def moody() -> str:
        seen.append(WHERE.get())
        if len(seen) == 1:
            raise TryAgain("once more", after=0)
        return "ok"

    runner = Runner(registry, listeners=[listener], run_id="r")
    await runner.run(response(("moody", "{}")), turn_id="t")
    assert seen == ["moody r:t:0", "moody r:t:0"]
    assert [line for line in listener.told if line.endswith(("entered", "left"))] == ["r:t:0 entered", "r:t:0 left"]


async def test_the_end_of_a_cancelled_turn() -> None:
    registry, listener = ToolRegistry(), Recorder()
    began = anyio.Event()

    @registry.tool
    async def hang() -> None:
        began.set()
        await anyio.sleep_forever()

    runner = Runner(registry, listeners=[listener], run_id="r")

    async def run() -> None:
        await runner.run(response(("hang", "{}"), ("unknown", "{}")), turn_id="t")

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await began.wait()
        group.cancel_scope.cancel()
    assert listener.told[-2:] == ["r:t:0 left", "r:t ended: cancelled, refused"]


async def test_the_end_of_a_stream_that_broke_off() -> None:
    listener = Recorder()

    async def broken() -> AsyncIterator[object]:
        for event in openai_chunks(("c1", "where", ["{"]), finish=None):
            yield event
        raise ConnectionError("gone")

    runner = Runner(make_registry(), listeners=[listener], run_id="r")
    with pytest.raises(StreamInterrupted):
        await runner.run(broken(), turn_id="t")
    assert listener.told[-2:] == ["r:t CallCompleted", "r:t ended: refused"]


class Broken(Listener):
    """Raises wherever it is called."""

    def on_begin(self, turn: str, registry: object, outcomes: Sequence[object]) -> None:
        raise RuntimeError("on_begin")

    def on_event(self, event: object, turn: str) -> None:
        raise RuntimeError("on_event")

    def around(self, call: object, key: str) -> AbstractContextManager[object]:
        return self._raising()

    @contextmanager
    def _raising(self) -> Iterator[None]:
        yield
        raise RuntimeError("leaving")

    def on_end(self, turn: str, outcomes: Sequence[object]) -> None:
        raise RuntimeError("on_end")


class Unenterable(Listener):
    """Gives no context."""

    def around(self, call: object, key: str) -> AbstractContextManager[object]:
        raise RuntimeError("around")


async def test_a_listener_that_raises_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Others are told all the same, and what was raised is logged."""
    recorder = Recorder()
    runner = Runner(make_registry(), listeners=[Broken(), Unenterable(), recorder], run_id="r")
    with caplog.at_level(logging.ERROR, logger="toolrun"):
        turn = await runner.run(ONE, turn_id="t")
    assert turn.outcomes[0].value == "where r:t:0"
    assert recorder.told == [BEGAN, "r:t CallStarted", "r:t CallFinalized", "r:t:0 entered", *RAN]
    raised = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert raised == [
        "on_begin",
        "on_event",
        "on_event",
        "around",
        "on_event",
        "on_event",
        "leaving",
        "on_event",
        "on_end",
    ]


class Careless(Listener):
    """Makes the arguments that it is told of fit to be shown."""

    def on_event(self, event: Event, turn: str) -> None:
        if isinstance(event, CallFinalized) and event.call.arguments is not None:
            event.call.arguments["n"] = "1 €"


@pytest.mark.parametrize("early", [False, True])
async def test_what_a_listener_does_to_arguments_changes_no_call(early: bool) -> None:
    """Neither what the tool gets, nor the record, nor the history."""
    got: list[object] = []
    tool = Tool.from_json_schema(name="pay", input_schema=PAYMENT, handler=lambda **given: got.append(given))
    runner = Runner(ToolRegistry([tool]), listeners=[Careless()], start="eager" if early else "end")
    turn = await runner.run(anthropic_events(("c0", "pay", ['{"n": 1}']), ("c1", "pay", ['{"n": 2}'])))

    assert sorted(map(str, got)) == ["{'n': 1}", "{'n': 2}"]
    assert [outcome.arguments for outcome in turn.outcomes] == [{"n": 1}, {"n": 2}]
    assert [block["input"] for block in turn.messages()[0]["content"]] == [{"n": 1}, {"n": 2}]


async def test_a_listener_that_does_nothing() -> None:
    turn = await Runner(make_registry(), listeners=[Listener()]).run(ONE)
    assert turn.outcomes[0].value == "nowhere"


def test_what_is_no_listener() -> None:
    with pytest.raises(RegistrationError, match=r"subclasses of toolrun.abc.Listener, not <built-in function print>"):
        Runner(make_registry(), listeners=[print])  # type: ignore[list-item]


async def test_events_of_concurrent_turns_are_told_apart() -> None:
    listener = Recorder()
    runner = Runner(make_registry(), listeners=[listener], run_id="r")
    async with anyio.create_task_group() as group:
        for turn_id in ("t1", "t2"):
            group.start_soon(lambda turn_id: runner.run(ONE, turn_id=turn_id), turn_id)
    for key in ("r:t1", "r:t2"):
        mine = [line.removeprefix(key) for line in listener.told if line.startswith(key)]
        assert [line for line in mine if line != " CallRepeated"] == [
            " began with 3 tools",
            " CallStarted",
            " CallFinalized",
            ":0 entered",
            " AttemptStarted",
            " AttemptEnded",
            ":0 left",
            " CallCompleted",
            " ended: succeeded",
        ]


async def test_what_a_listener_does_to_a_call_reaches_nobody() -> None:
    """Neither the tool nor the record."""
    registry = ToolRegistry()

    @registry.tool
    async def pay(amounts: list[int], to: str) -> str:
        return f"{amounts} to {to}"

    class Meddling(Listener):
        def around(self, call: ValidatedCall, key: str) -> AbstractContextManager[object]:
            call.arguments["to"] = "me"
            cast("list[int]", call.arguments["amounts"]).append(9)
            cast("dict[str, object]", call.bound)["to"] = "me"
            raise AssertionError("the values cannot be set")

    turn = await Runner(registry, listeners=[Meddling()]).run(response(("pay", '{"amounts": [1], "to": "you"}')))
    assert turn.outcomes[0].value == "[1] to you"
    assert turn.outcomes[0].arguments == {"amounts": [1], "to": "you"}
