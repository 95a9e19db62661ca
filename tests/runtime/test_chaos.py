"""Two thousand turns of everything that goes wrong, at once and in any order; what must hold holds after each."""

# Tools with annotations of their own: no postponed evaluation here.
import asyncio
import gc
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest

from toolrun import Approve, Defer, Deny, Event, Limits, Repaired, Runner, StreamInterrupted, ToolContext, ToolRegistry
from toolrun._runtime.session import TurnSession

from .responses import anthropic_events, openai_chunks

TURNS = 2_000
NAMES = ("good", "fails", "hangs", "blocks", "cancels", "leaves", "rubbish", "steps", "edit", "asks", "nobody", "")
TEXTS = ("{}", '{"n": 1}', '{"n": 1,}', '{"n": "x"}', '{"n": ', "", "null", "n", '{"n": 1}{"n": 2}', '{"n": 1, "m": 2}')
ORDER = {
    "CallStarted": 0,
    "CallDelta": 1,
    "CallFinalized": 2,
    "RepairAnswered": 3,
    "ApprovalRequested": 3,
    "ApprovalAnswered": 3,
    "AttemptStarted": 3,
    "ProgressReported": 3,
    "AttemptEnded": 3,
    "CallCompleted": 4,
}


class Chaos:
    """The tools, and a source of streams."""

    def __init__(self, seed: int) -> None:  # noqa: C901  # a list of tools
        self.random = random.Random(seed)
        self.release = threading.Event()
        self.registry = registry = ToolRegistry()

        @registry.tool
        async def good(n: int = 0) -> int:
            return n

        @registry.tool
        async def fails(n: int = 0) -> None:
            raise self.random.choice([ValueError, KeyError, SystemExit, StopIteration, RuntimeError])(n)

        @registry.tool(timeout=0.002)
        async def hangs(n: int = 0) -> None:
            await anyio.sleep_forever()

        @registry.tool(timeout=0.005, max_concurrency=4)
        def blocks(n: int = 0) -> None:
            self.release.wait(0.01 if n else 0)

        @registry.tool
        async def cancels(n: int = 0) -> None:
            raise asyncio.CancelledError

        @registry.tool(timeout=0.01)
        async def leaves(n: int = 0) -> int:
            anyio.move_on_after(n / 1000).__enter__()
            return n

        @registry.tool
        async def rubbish(n: int = 0) -> object:
            return self.random.choice([object(), float("nan"), "\ud83d", {1: {2}}, b"\xff", None, [Ellipsis]])

        @registry.tool
        async def steps(ctx: ToolContext[None], n: int = 0) -> AsyncIterator[int]:
            ctx.progress("half")
            yield n
            await anyio.lowlevel.checkpoint()
            yield n

        @registry.tool(conflict_key="file")
        async def edit(n: int = 0) -> None:
            await anyio.lowlevel.checkpoint()

        @registry.tool(approval=self.decide)
        async def asks(n: int = 0) -> None: ...

        @registry.repair(on="schema")
        async def hook(request: object) -> object:
            return self.random.choice([None, Repaired(arguments={"n": 1}), 7])

        self.runner = Runner(registry, max_concurrency=4, limits=Limits(running=8, calls=9))

    async def decide(self, request: object) -> object:
        return self.random.choice([Approve(), Deny("no"), Defer(), None])

    def source(self) -> Any:
        """A stream, whole or cut, that may break; of one wire or the other."""
        pick = self.random.choice
        count = self.random.randrange(1, 5)
        calls = [(f"c{number}", pick(NAMES), [*pick(TEXTS)]) for number in range(count)]
        if self.random.random() < 0.5:
            events = openai_chunks(*calls, finish=pick(["tool_calls", "tool_calls", "stop", "length", None]))
        else:
            events = anthropic_events(*calls, stop=pick(["tool_use", "tool_use", "max_tokens", None]))
        if self.random.random() < 0.2:
            del events[self.random.randrange(len(events)) :]
        return self.broken(events) if self.random.random() < 0.15 else events

    @staticmethod
    async def broken(events: list[Any]) -> AsyncIterator[Any]:
        for event in events:
            yield event
        raise ConnectionError

    async def turn(self) -> str:
        """One turn, cancelled now and then; check everything that must hold of it."""
        seen: list[Event] = []
        run = self.runner.stream(self.source())
        after = self.random.choice([None, None, None, 0.0, 0.001, 0.003])
        ended = "whole"
        with anyio.move_on_after(after) as scope:
            try:
                async with run:
                    async for event in run:
                        seen.append(event)  # noqa: PERF401  # what was seen counts, also after a cancellation
            except StreamInterrupted:
                ended = "broken"
        check(run.turn, seen, whole=not scope.cancelled_caught)
        return "cancelled" if scope.cancelled_caught else ended


def check(turn: Any, seen: list[Event], *, whole: bool) -> None:
    """One outcome a call; the events of each call in order, and every start ended; the history whole."""
    assert [outcome.call for outcome in turn.outcomes] == list(turn.calls)
    by_call: dict[int, list[str]] = {}
    for event in seen:
        position, kind = getattr(event, "position", None), type(event).__name__
        if position is not None and kind in ORDER:
            by_call.setdefault(position, []).append(kind)
    for kinds in by_call.values():
        ranks = [ORDER[kind] for kind in kinds]
        assert ranks == sorted(ranks), kinds
        counts = Counter(kinds)
        assert counts["CallStarted"] == 1
        if whole:
            assert counts["CallFinalized"] == counts["CallCompleted"] == 1, kinds
            assert counts["AttemptStarted"] == counts["AttemptEnded"], kinds
    if whole:
        completed = {event.position: event.outcome for event in seen if type(event).__name__ == "CallCompleted"}
        assert completed == {outcome.call.position: outcome for outcome in turn.outcomes}
    if not turn.pending and turn.wire is not None:
        assert len(turn.messages()) >= len(turn.outcomes[:1])


def objects() -> int:
    """How many there are; to trace their bytes costs more than the turns."""
    gc.collect()
    return len(gc.get_objects())


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_chaos(anyio_backend: str):
    """Nothing is left running beyond what is counted, no memory is kept, and every call has its outcome."""
    chaos = Chaos(seed=7)
    ends: Counter[str] = Counter()

    async def some(turns: int) -> None:
        for _ in range(turns):
            ends[await chaos.turn()] += 1

    async def batch(turns: int) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(some, turns // 4)

    with anyio.fail_after(120):
        await batch(200)
        before = objects()
        await batch(TURNS // 2 - 200)
        grown = objects() - before
        chaos.release.set()
        while chaos.runner.abandoned:  # noqa: ASYNC110  # threads that end tell nobody
            await anyio.sleep(0.005)

    assert ends.total() == TURNS // 2
    assert min(ends["whole"], ends["broken"], ends["cancelled"]) > 20
    assert grown < 500
    assert left_over(anyio_backend) == []
    assert [item for item in gc.get_objects() if isinstance(item, TurnSession)] == []


def left_over(backend: str) -> list[object]:
    """Tasks beside the test's own and the test runner's."""
    if backend == "trio":
        import trio

        nursery = trio.lowlevel.current_task().parent_nursery
        return [task for task in nursery.child_tasks if task is not trio.lowlevel.current_task()]
    own = asyncio.current_task()
    return [task for task in tasks() if task is not own and "chaos" in repr(task.get_coro())]


def tasks() -> Iterator[Any]:
    yield from asyncio.all_tasks()
