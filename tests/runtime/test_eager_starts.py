"""Calls that start before the end of the stream, on proof and only where it is asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from toolrun import AttemptStarted, CallFinalized, Runner, StreamInterrupted, TextDelta, ToolRegistry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

Json = dict[str, Any]

END: list[Json] = [
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]


def call(index: int, call_id: str, name: str, text: str = "{}") -> list[Json]:
    """A whole block with a call."""
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": text}},
        {"type": "content_block_stop", "index": index},
    ]


def said(index: int) -> Json:
    """The next block begins: the one before it is whole."""
    return {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": "Now"}}


START: Json = {"type": "message_start", "message": {"id": "m", "content": []}}


@pytest.mark.parametrize(("start", "eager"), [("end", True), ("eager", False)])
async def test_a_proven_call_runs_while_the_stream_goes_on(start: Any, *, eager: bool) -> None:
    """The stream ends only when the tool has run."""
    registry = ToolRegistry()
    ran = anyio.Event()

    @registry.tool(eager=eager)
    async def look() -> str:
        ran.set()
        return "seen"

    async def source() -> AsyncIterator[Json]:
        for event in (START, *call(0, "a", "look"), said(1)):
            yield event
        with anyio.fail_after(5):
            await ran.wait()
        for event in END:
            yield event

    turn = await Runner(registry, start=start).run(source())
    assert [(outcome.call.id, outcome.value) for outcome in turn.outcomes] == [("a", "seen")]


async def test_other_tools_wait_for_the_end() -> None:
    """By default a call runs when the stream has ended well."""
    registry = ToolRegistry()
    order: list[str] = []

    @registry.tool
    async def look() -> None:
        order.append("ran")

    @registry.tool(eager=True)
    async def other() -> None: ...

    async def source() -> AsyncIterator[Json]:
        for event in (START, *call(0, "a", "look"), said(1)):
            yield event
        await anyio.wait_all_tasks_blocked()
        order.append("ended")
        for event in END:
            yield event

    await Runner(registry).run(source())
    assert order == ["ended", "ran"]


async def test_a_blocking_stream_is_overtaken_as_well() -> None:
    """It is read in a thread, and the tool runs in the loop."""
    registry = ToolRegistry()
    ran = threading.Event()

    @registry.tool(eager=True)
    async def look() -> None:
        ran.set()

    def source() -> Iterator[Json]:
        yield from (START, *call(0, "a", "look"), said(1))
        assert ran.wait(5)
        yield from END

    turn = await Runner(registry).run(source())
    assert [outcome.status for outcome in turn.outcomes] == ["succeeded"]


async def test_what_was_started_stays_when_the_stream_breaks() -> None:
    """Its sibling does not start, and both are answered."""
    registry = ToolRegistry()
    ran: list[int] = []

    @registry.tool(eager=True)
    async def look(n: int) -> int:
        ran.append(n)
        return n

    async def source() -> AsyncIterator[Json]:
        for event in (START, *call(0, "a", "look", '{"n": 1}'), *call(1, "b", "look", '{"n": 2}')):
            yield event
        raise OSError("gone")

    with pytest.raises(StreamInterrupted, match="gone") as caught:
        await Runner(registry).run(source())
    turn = caught.value.turn
    assert [(outcome.call.id, outcome.status) for outcome in turn.outcomes] == [("a", "succeeded"), ("b", "refused")]
    assert ran == [1]
    assert [block["tool_use_id"] for block in turn.messages()[1]["content"]] == ["a", "b"]


async def test_the_limit_counts_early_and_late_calls_together() -> None:
    """One at a time is one at a time."""
    registry = ToolRegistry()
    running = 0
    most = 0

    @registry.tool(eager=True)
    async def early() -> None:
        await count()

    @registry.tool
    async def late() -> None:
        await count()

    async def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        running -= 1

    names = ["early", "late", "early", "late"]
    events = [event for index, name in enumerate(names) for event in call(index, f"c{index}", name)]
    turn = await Runner(registry, max_concurrency=1).run([START, *events, *END])
    assert [outcome.status for outcome in turn.outcomes] == ["succeeded"] * 4
    assert [outcome.call.id for outcome in turn.outcomes] == ["c0", "c1", "c2", "c3"]
    assert most == 1


async def test_the_same_call_given_again_is_answered_with_what_came_of_the_first() -> None:
    """Also if the first one ran early."""
    registry = ToolRegistry()
    ran: list[int] = []

    @registry.tool(eager=True)
    async def look(n: int) -> int:
        ran.append(n)
        return n

    item = {"type": "function_call", "id": "i", "call_id": "a", "name": "look", "arguments": '{"n": 1}'}
    again = {**item, "id": "j"}
    events = [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "status": "completed"}},
        {"type": "response.output_item.done", "output_index": 1, "item": {**again, "status": "completed"}},
        {"type": "response.completed", "response": {"id": "r", "status": "completed"}},
    ]
    turn = await Runner(registry).run(events)
    assert [outcome.value for outcome in turn.outcomes] == [1] * len(turn.outcomes)
    assert len(ran) == len({outcome.call.id for outcome in turn.outcomes})


async def test_events_of_an_early_call_come_in_order_and_before_the_end() -> None:
    """Finalized, then started; text of the same stream comes after it."""
    registry = ToolRegistry()

    @registry.tool(eager=True)
    async def look() -> None: ...

    async def source() -> AsyncIterator[Json]:
        for event in (START, *call(0, "a", "look"), said(1)):
            yield event
        await anyio.wait_all_tasks_blocked()
        yield {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "!"}}
        for event in END:
            yield event

    async with Runner(registry).stream(source()) as run:
        kinds = [type(event) async for event in run]
    last_text = len(kinds) - 1 - kinds[::-1].index(TextDelta)
    assert kinds.index(CallFinalized) < kinds.index(AttemptStarted) < last_text


async def test_leaving_the_block_cancels_an_early_call() -> None:
    """And waits for it."""
    registry = ToolRegistry()
    began = anyio.Event()
    ended: list[str] = []

    @registry.tool(eager=True)
    async def hang() -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")

    async def source() -> AsyncIterator[Json]:
        for event in (START, *call(0, "a", "hang"), said(1)):
            yield event
        await anyio.sleep_forever()

    with anyio.fail_after(5):
        async with Runner(registry).stream(source()) as run:
            await began.wait()
    assert ended == ["cancelled"]
    assert [(outcome.status, outcome.started) for outcome in run.turn.outcomes] == [("cancelled", True)]


async def test_ctrl_c_in_an_early_call_propagates() -> None:
    """Not as a group of errors."""
    registry = ToolRegistry()

    @registry.tool(eager=True)
    async def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await Runner(registry).run([START, *call(0, "a", "stop"), said(1), *END])
