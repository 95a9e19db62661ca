"""`runner.stream`: the same run with its events, in the order that `toolrun._core.events` documents."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from toolrun import (
    AttemptEnded,
    AttemptStarted,
    CallCompleted,
    CallDelta,
    CallFinalized,
    CallStarted,
    Diagnostic,
    Refuse,
    Renamed,
    RepairAnswered,
    Repaired,
    RepairRequest,
    Retry,
    Runner,
    RunnerClosed,
    StreamInterrupted,
    TextDelta,
    ToolRegistry,
    TurnInvalid,
    UnknownWire,
    UsageReported,
)

from .responses import anthropic_events, chunk, openai_chunks, response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from toolrun import Event, RunStream


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()
    failures = [ConnectionError("reset")]

    @registry.tool
    async def good(n: int) -> int:
        return n

    @registry.tool(effect="pure", retry=Retry(on=ConnectionError, wait=0))
    async def flaky(n: int) -> int:
        if failures:
            raise failures.pop()
        return n

    return registry


async def collect(run: RunStream) -> list[Event]:
    async with run:
        return [event async for event in run if not isinstance(event, TurnInvalid)]  # about the turn, not a call


def tell(event: Event) -> tuple[object, ...]:  # a table of kinds
    """An event as a short tuple."""
    match event:
        case CallStarted():
            return ("started", event.position, event.id, event.name)
        case CallDelta():
            return ("delta", event.position, event.text)
        case CallFinalized():
            return ("finalized", event.position, str(event.call.status))
        case RepairAnswered():
            return ("repair", event.position, event.record.hook, event.record.accepted)
        case AttemptStarted():
            return ("attempt", event.position, event.tool, event.attempt)
        case AttemptEnded():
            return ("ended", event.position, event.tool, event.attempt, event.status)
        case CallCompleted():
            return ("completed", event.position, event.outcome.status)
        case TextDelta():
            return ("text", event.text)
        case Diagnostic():
            return ("diagnostic", event.code)
    assert isinstance(event, UsageReported)
    return ("usage",)


def of(position: int, told: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The events of one call, without its position."""
    return [(kind, *rest) for kind, where, *rest in told if where == position and kind not in ("text", "diagnostic")]


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
async def test_each_kind_of_call(registry: ToolRegistry, wire: str):
    """Good, repaired by the chain, repaired by a hook, refused, renamed, retried: each in its documented order."""

    @registry.repair
    def silent(request: RepairRequest) -> None:
        """Has nothing to say, and so no event."""

    @registry.repair(on="schema")
    async def fix(request: RepairRequest) -> Repaired | None:
        return Repaired(arguments={"n": 3}) if request.text == '{"n": "three"}' else None

    @registry.repair(on="schema")
    async def no(request: RepairRequest) -> Refuse:
        return Refuse("not today")

    @registry.repair(on="unknown_tool")
    async def rename(request: RepairRequest) -> Renamed:
        return Renamed("good")

    calls = (
        ("c0", "good", ['{"n"', ": 0}"]),
        ("c1", "good", ['{"n": 1,}']),
        ("c2", "good", ['{"n": "three"}']),
        ("c3", "good", ['{"m": 3}']),
        ("c4", "goood", ['{"n": 4}']),
        ("c5", "flaky", ['{"n": 5}']),
    )
    events = openai_chunks(*calls, text="Hi") if wire == "openai-chat" else anthropic_events(*calls, text="Hi")
    run = Runner(registry, max_concurrency=1).stream(events)
    told = [tell(event) for event in await collect(run)]

    told = [each for each in told if each != ("usage",)]
    assert told[0] == ("text", "Hi")
    assert of(0, told) == [
        ("started", "c0", "good"),
        ("delta", '{"n"'),
        ("delta", ": 0}"),
        ("finalized", "ok"),
        ("attempt", "good", 1),
        ("ended", "good", 1, "succeeded"),
        ("completed", "succeeded"),
    ]
    assert of(1, told) == [
        ("started", "c1", "good"),
        ("delta", '{"n": 1,}'),
        ("finalized", "parse_error"),
        ("repair", "trailing_comma", True),
        ("attempt", "good", 1),
        ("ended", "good", 1, "succeeded"),
        ("completed", "succeeded"),
    ]
    assert of(2, told) == [
        ("started", "c2", "good"),
        ("delta", '{"n": "three"}'),
        ("finalized", "ok"),
        ("repair", "fix", True),
        ("attempt", "good", 1),
        ("ended", "good", 1, "succeeded"),
        ("completed", "succeeded"),
    ]
    assert of(3, told) == [
        ("started", "c3", "good"),
        ("delta", '{"m": 3}'),
        ("finalized", "ok"),
        ("repair", "schema_reading", False),
        ("repair", "no", False),
        ("completed", "refused"),
    ]
    assert of(4, told) == [
        ("started", "c4", "goood"),
        ("delta", '{"n": 4}'),
        ("finalized", "ok"),
        ("repair", "rename", True),
        ("attempt", "good", 1),
        ("ended", "good", 1, "succeeded"),
        ("completed", "succeeded"),
    ]
    assert of(5, told) == [
        ("started", "c5", "flaky"),
        ("delta", '{"n": 5}'),
        ("finalized", "ok"),
        ("attempt", "flaky", 1),
        ("ended", "flaky", 1, "failed"),
        ("attempt", "flaky", 2),
        ("ended", "flaky", 2, "succeeded"),
        ("completed", "succeeded"),
    ]
    # Nothing ran before every call was finalized.
    kinds = [kind for kind, *_ in told]
    last_finalized = len(kinds) - 1 - kinds[::-1].index("finalized")
    assert last_finalized < min(kinds.index("repair"), kinds.index("attempt"))
    assert kinds.count("completed") == 6
    assert [outcome.value for outcome in run.turn.outcomes] == [0, 1, 3, None, 4, 5]
    assert run.turn.outcomes[3].message == "Not run: not today"


async def test_nameless_and_cut_calls_have_their_events_too(registry: ToolRegistry):
    """One start, one final event, one completion for each, whatever is wrong with it."""
    nameless = chunk({"tool_calls": [{"index": 2, "id": "c2", "function": {"arguments": '{"n": 1}'}}]})
    events = openai_chunks(("c0", "good", ['{"n": 1']), ("c1", "good", []), finish=None)
    run = Runner(registry).stream([*events, nameless, chunk({}, "length")])
    told = [tell(event) for event in await collect(run)]

    assert of(0, told) == [
        ("started", "c0", "good"),
        ("delta", '{"n": 1'),
        ("finalized", "incomplete"),
        ("completed", "refused"),
    ]
    assert of(1, told) == [("started", "c1", "good"), ("finalized", "incomplete"), ("completed", "refused")]
    assert of(2, told)[0] == ("started", "c2", None)
    assert of(2, told)[-1] == ("completed", "refused")
    assert [kind for kind, *_ in of(2, told)] == ["started", "delta", "finalized", "completed"]


async def test_events_come_while_the_stream_goes_on(registry: ToolRegistry):
    """A delta can be shown before the next event is there."""
    go_on = anyio.Event()

    async def source() -> AsyncIterator[object]:
        for event in openai_chunks(("c0", "good", ['{"n": ', "1}"])):
            yield event
            if "arguments" in str(event) and '{"n": ' in str(event):
                await go_on.wait()

    seen = []
    with anyio.fail_after(5):
        async with Runner(registry).stream(source()) as run:
            async for event in run:
                seen.append(tell(event)[0])
                if isinstance(event, CallDelta) and event.text == '{"n": ':
                    assert run.turn.outcomes == ()
                    go_on.set()

    assert seen == ["started", "delta", "delta", "finalized", "attempt", "ended", "completed"]


async def test_events_of_a_blocking_stream(registry: ToolRegistry):
    """A sync source is read in a thread; its events come one by one as well."""
    go_on = threading.Event()

    def source() -> Iterator[object]:
        for event in openai_chunks(("c0", "good", ['{"n": ', "1}"])):
            yield event
            if '{"n": ' in str(event):
                assert go_on.wait(5)

    seen = []
    with anyio.fail_after(4):
        async with Runner(registry).stream(source()) as run:
            async for event in run:
                seen.append(tell(event)[0])
                if isinstance(event, CallDelta):
                    go_on.set()

    assert seen == ["started", "delta", "delta", "finalized", "attempt", "ended", "completed"]


async def test_leaving_early_cancels_and_awaits(registry: ToolRegistry):
    """The tool's `finally` has run when the block is left; the turn can be read, again and again."""
    cleaned = []

    @registry.tool
    async def hang() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cleaned.append(True)

    with anyio.fail_after(5):
        async with Runner(registry).stream(response(("hang", "{}"))) as run:
            async for event in run:
                if isinstance(event, AttemptStarted):
                    break

    assert cleaned == [True]
    assert [(outcome.status, outcome.started) for outcome in run.turn.outcomes] == [("cancelled", True)]
    assert run.turn == run.turn
    assert len(run.turn.messages()) == 2


async def test_leaving_at_once(registry: ToolRegistry):
    """Nothing has to be read at all."""
    with anyio.fail_after(5):
        async with Runner(registry).stream(openai_chunks(("c0", "good", ['{"n": 1}']))) as run:
            pass

    assert all(outcome.status in ("succeeded", "cancelled") for outcome in run.turn.outcomes)


class Mine(Exception):
    """The user's own."""


async def test_an_error_of_the_users_comes_out_as_it_is(registry: ToolRegistry):
    """Not in a group, and with its own cause; the run is cancelled."""

    @registry.tool
    async def hang() -> None:
        await anyio.sleep_forever()

    cause = KeyError("k")
    error = Mine("stop")
    run = Runner(registry).stream(response(("hang", "{}")))

    async def stop() -> None:
        async with run:
            async for event in run:
                if isinstance(event, AttemptStarted):
                    raise error from cause

    with pytest.raises(Mine) as raised:
        await stop()

    assert raised.value is error
    assert raised.value.__cause__ is cause
    assert run.turn.outcomes[0].status == "cancelled"


async def broken() -> AsyncIterator[object]:
    yield openai_chunks(("c0", "good", ['{"n": 1']))[1]
    raise OSError("reset")


async def test_a_broken_stream_raises_after_its_events(registry: ToolRegistry):
    """The events come first, then the error, with the turn and the stream's error as its cause."""
    seen = []
    run = Runner(registry).stream(broken())

    async def read() -> None:
        async with run:
            async for event in run:
                seen.append(tell(event)[0])  # noqa: PERF401  # it ends in an error

    with pytest.raises(StreamInterrupted) as raised:
        await read()

    assert seen == ["started", "diagnostic", "finalized", "completed"]
    assert isinstance(raised.value.__cause__, OSError)
    assert [outcome.code for outcome in raised.value.turn.outcomes] == ["stream_error"]
    assert run.turn.outcomes == raised.value.turn.outcomes


async def test_a_broken_stream_as_a_turn(registry: ToolRegistry):
    """`on_stream_error="return"` ends the events normally."""
    run = Runner(registry, on_stream_error="return").stream(broken())

    told = [tell(event)[0] for event in await collect(run)]

    assert told == ["started", "diagnostic", "finalized", "completed"]
    assert run.turn.outcomes[0].code == "stream_error"


async def test_other_errors_of_a_run(registry: ToolRegistry):
    """What `run` raises, iterating raises."""
    with pytest.raises(UnknownWire):
        await collect(Runner(registry).stream([{"what": "is this"}]))
    with pytest.raises(TypeError, match="a stream"):
        await collect(Runner(registry).stream(5))


async def test_a_run_is_entered_once(registry: ToolRegistry):
    """A source cannot be read twice."""
    run = Runner(registry).stream(response(("good", '{"n": 1}')))
    await collect(run)

    with pytest.raises(RunnerClosed, match="once"):
        await run.__aenter__()


async def test_after_the_last_event(registry: ToolRegistry):
    """Iterating on gives nothing more, and leaving later costs nothing."""
    async with Runner(registry).stream(response(("good", '{"n": 1}'))) as run:
        first = [event async for event in run]
        second = [event async for event in run]

    assert len(first) == 7
    assert second == []
    assert [outcome.value for outcome in run.turn.outcomes] == [1]


async def test_a_slow_listener_holds_nothing_up(registry: ToolRegistry):
    """Events wait for the listener, tools do not."""
    done = anyio.Event()

    @registry.tool
    async def last() -> str:
        done.set()
        return "done"

    with anyio.fail_after(5):
        async with Runner(registry).stream(response(("good", '{"n": 1}'), ("last", "{}"))) as run:
            await done.wait()
            await anyio.wait_all_tasks_blocked()
            assert [outcome.status for outcome in run.turn.outcomes] == ["succeeded", "succeeded"]
            told = [tell(event)[0] for event in [event async for event in run]]

    assert told.count("completed") == 2


async def test_a_run_that_is_never_entered_leaves_nothing_behind(registry: ToolRegistry):
    """Warnings are errors here: an object that is dropped unused must not warn of open streams."""
    import gc

    run = Runner(registry).stream(response(("good", '{"n": 1}')))
    del run
    gc.collect()
