"""How many calls run at once, in which order, and when a loop is stopped."""

# Tools with annotations of their own: no postponed evaluation here.
import sys
from collections.abc import Mapping

import anyio
import pytest

from toolrun import (
    ApprovalRequest,
    Approve,
    CallRepeated,
    Limits,
    RegistrationError,
    Renamed,
    RepairRequest,
    Runner,
    StreamInterrupted,
    ToolContext,
    ToolRegistry,
    TooManyInvalidTurns,
    Turn,
    TurnInvalid,
)

from .responses import anthropic_message, openai_chunks, response


def statuses(turn: Turn) -> list[tuple[str, str | None]]:
    return [(outcome.status, outcome.code) for outcome in turn.outcomes]


class Gauge:
    """How many of its calls run at once, and how many did at most."""

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def work(self, *names: str) -> None:
        for name in names:
            self.now[name] = self.now.get(name, 0) + 1
            self.most[name] = max(self.most.get(name, 0), self.now[name])
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        for name in names:
            self.now[name] -= 1


def gauged() -> tuple[Gauge, ToolRegistry]:
    gauge, registry = Gauge(), ToolRegistry()

    @registry.tool(max_concurrency=2, group="db")
    async def read() -> None:
        await gauge.work("read", "db", "all")

    @registry.tool(group="db")
    async def write() -> None:
        await gauge.work("write", "db", "all")

    @registry.tool
    async def other() -> None:
        await gauge.work("other", "all")

    return gauge, registry


CALLS = [("read", "{}"), ("write", "{}"), ("other", "{}")] * 4


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (None, {"read": 2, "write": 4, "other": 4, "db": 6, "all": 10}),
        (Limits(groups={"db": 3}), {"read": 2, "write": 3, "other": 4, "db": 3, "all": 7}),
        (Limits(groups={"db": 1}), {"read": 1, "write": 1, "other": 4, "db": 1, "all": 5}),
        (Limits(running=1), {"read": 1, "write": 1, "other": 1, "db": 1, "all": 1}),
    ],
    ids=["tool", "group", "group of one", "all"],
)
async def test_how_many_run_at_once(limits: Limits | None, expected: dict[str, int]):
    """A tool's own limit, its group's and the runner's all hold, and everything runs in the end."""
    gauge, registry = gauged()

    turn = await Runner(registry, limits=limits).run(response(*CALLS))

    assert statuses(turn) == [("succeeded", None)] * 12
    assert {name: gauge.most[name] <= most for name, most in expected.items()} == dict.fromkeys(expected, True)
    assert gauge.most["read"] == expected["read"]
    assert gauge.most["db"] == expected["db"]


async def test_limits_hold_over_all_turns_of_a_runner():
    """Two turns at once share them; two runners do not."""
    gauge, registry = gauged()
    one, other = (Runner(registry, limits=Limits(running=1)) for _ in range(2))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(one.run, response(("other", "{}"), ("other", "{}")))
    assert gauge.most["all"] == 1

    async with anyio.create_task_group() as group:
        for runner in (one, other):
            group.start_soon(runner.run, response(("other", "{}"), ("other", "{}")))
    assert gauge.most["all"] == 2


def test_limits_hold_in_every_event_loop():
    """Each `run_sync` without a block has a loop of its own; a limit of one loop would break the next."""
    _, registry = gauged()
    runner = Runner(registry, limits=Limits(running=1, groups={"db": 1}))

    turns = [runner.run_sync(response(*CALLS)) for _ in range(3)]

    assert [statuses(turn) for turn in turns] == [[("succeeded", None)] * 12] * 3


async def test_a_place_is_given_back_on_every_way_out():
    """After a deadline, a failure and a cancellation the next call runs."""
    registry = ToolRegistry()

    @registry.tool(max_concurrency=1, timeout=0.02)
    async def one(way: str) -> str:
        if way == "hang":
            await anyio.sleep_forever()
        if way == "fail":
            raise ValueError
        return way

    runner = Runner(registry)
    with anyio.fail_after(5):
        turn = await runner.run(response(*(("one", f'{{"way": "{way}"}}') for way in ("hang", "fail", "ok"))))
        with anyio.move_on_after(0.005):
            await runner.run(response(("one", '{"way": "hang"}')))
        after = await runner.run(response(("one", '{"way": "ok"}')))

    assert [outcome.status for outcome in turn.outcomes] == ["timed_out", "failed", "succeeded"]
    assert after.outcomes[0].value == "ok"


async def test_waiting_is_not_in_the_deadline():
    """The time of a call begins when it runs."""
    registry = ToolRegistry()

    @registry.tool(max_concurrency=1, timeout=0.2)
    async def slow() -> None:
        await anyio.sleep(0.06)

    turn = await Runner(registry).run(response(*[("slow", "{}")] * 5))

    assert statuses(turn) == [("succeeded", None)] * 5


# -- order ----------------------------------------------------------------------------------


def keyed(key: object) -> tuple[dict[str, int], list[str], ToolRegistry]:
    files: dict[str, int] = {}
    log: list[str] = []
    registry = ToolRegistry()

    @registry.tool(conflict_key=key)
    async def edit(path: str, n: int = 0) -> None:
        log.append(f"{path}{n}")
        seen = files.get(path, 0)
        await anyio.lowlevel.checkpoint()
        files[path] = seen + 1

    return files, log, registry


def path_of(arguments: Mapping[str, object]) -> object:
    return arguments["path"]


@pytest.mark.parametrize("key", ["files", path_of], ids=["one key", "a key a path"])
async def test_calls_with_the_same_key_run_one_after_the_other(key: object):
    """Fifty edits lose no update, and run in call order."""
    files, log, registry = keyed(key)

    await Runner(registry).run(response(*(("edit", f'{{"path": "a", "n": {n}}}') for n in range(50))))

    assert files == {"a": 50}
    assert log == [f"a{n}" for n in range(50)]


async def test_calls_with_different_keys_run_beside_each_other():
    """One edit of each path at once."""
    registry = ToolRegistry()
    running, most = 0, 0

    @registry.tool(conflict_key=path_of)
    async def edit(path: str) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.001)
        running -= 1

    await Runner(registry).run(response(*(("edit", f'{{"path": "{path}"}}') for path in "aabbcc")))

    assert most == 3


async def test_an_earlier_call_that_is_still_examined_is_waited_for():
    """It may turn out to have the same key: a hook that is slow to repair it must not let the next one by."""
    _, log, registry = keyed(path_of)

    @registry.repair(on="parse")
    async def slow(request: object) -> object:
        from toolrun import Repaired

        await anyio.sleep(0.02)
        return Repaired(arguments={"path": "a", "n": 0})

    await Runner(registry, repairs=()).run(response(("edit", "path: a"), ("edit", '{"path": "a", "n": 1}')))

    assert log == ["a0", "a1"]


async def test_a_key_that_cannot_be_had():
    """It costs the call, which was not started, and no sibling."""

    def fails(arguments: Mapping[str, object]) -> object:
        raise ZeroDivisionError

    _, log, registry = keyed(fails)

    @registry.tool
    async def other() -> int:
        return 1

    turn = await Runner(registry).run(response(("edit", '{"path": "a"}'), ("other", "{}")))

    assert statuses(turn) == [("failed", "internal"), ("succeeded", None)]
    assert (turn.outcomes[0].started, log) == (False, [])


@pytest.mark.parametrize("barrier", [False, True])
async def test_a_barrier(barrier: bool):
    """Earlier calls end before it begins, later ones begin after it; without it they overlap."""
    registry = ToolRegistry()
    log: list[str] = []

    async def note(name: str) -> None:
        log.append(f"{name} begins")
        await anyio.sleep(0.002)
        log.append(f"{name} ends")

    @registry.tool
    async def read(name: str) -> None:
        await note(name)

    @registry.tool(barrier=barrier)
    async def write() -> None:
        await note("write")

    await Runner(registry).run(
        response(("read", '{"name": "a"}'), ("read", '{"name": "b"}'), ("write", "{}"), ("read", '{"name": "c"}'))
    )

    begins, ends = log.index("write begins"), log.index("write ends")
    ordered = max(log.index("a ends"), log.index("b ends")) < begins and ends < log.index("c begins")
    assert ordered is barrier
    assert log[:2] == ["a begins", "b begins"]


async def test_a_barrier_that_is_refused_or_fails_lets_the_others_by():
    """What never runs, or ends badly, is in nobody's way."""
    registry = ToolRegistry()

    @registry.tool(barrier=True)
    async def write(n: int = 0) -> None:
        raise ValueError

    @registry.tool
    async def read() -> int:
        return 1

    with anyio.fail_after(5):
        turn = await Runner(registry).run(response(("write", '{"n": "x"}'), ("write", "{}"), ("read", "{}")))

    assert [outcome.status for outcome in turn.outcomes] == ["refused", "failed", "succeeded"]


@pytest.mark.parametrize("approved", [False, True])
@pytest.mark.parametrize("called", ["overwrite", "functions.write"])
async def test_a_call_that_becomes_one_of_a_barrier(called: str, approved: bool):
    """Those after it wait for what a hook makes of it, and then for it, also while somebody decides on it."""
    registry = ToolRegistry()
    log: list[str] = []

    async def note(what: str) -> None:
        await anyio.sleep(0.002)
        log.append(what)

    async def yes(request: ApprovalRequest) -> Approve:
        await note("approved")
        return Approve()

    @registry.tool(barrier=True, approval=yes if approved else False)
    async def write() -> None:
        await note("written")

    @registry.tool
    async def read() -> None:
        log.append("read")

    @registry.repair(on="unknown_tool")
    async def meant(request: RepairRequest) -> Renamed:
        await note("repaired")
        return Renamed("write")

    await Runner(registry).run(response((called, "{}"), ("read", "{}")))

    assert log == ["repaired"] * (called == "overwrite") + ["approved"] * approved + ["written", "read"]


class Unlike:
    """Does not tell whether it is another one, as arrays of numbers do not."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")


async def test_a_key_of_which_nobody_can_tell_whether_it_is_another():
    """It is treated as the same, and costs no call its result."""
    registry = ToolRegistry()

    @registry.tool(conflict_key=lambda arguments: Unlike())
    async def a() -> int:
        await anyio.sleep(0.002)
        return 1

    @registry.tool(conflict_key="b")
    async def b() -> int:
        return 2

    turn = await Runner(registry).run(response(("a", "{}"), ("b", "{}"), ("a", "{}")))

    assert [outcome.value for outcome in turn.outcomes] == [1, 2, 1]


async def test_a_key_that_would_end_the_program():
    """`SystemExit` is a failure of the call, as in the tool itself."""
    registry = ToolRegistry()

    def key(arguments: Mapping[str, object]) -> str:
        sys.exit(3)

    @registry.tool(conflict_key=key)
    async def a() -> int:
        return 1

    @registry.tool
    async def b() -> int:
        return 2

    turn = await Runner(registry).run(response(("a", "{}"), ("b", "{}")))

    assert [(outcome.status, outcome.started, outcome.value) for outcome in turn.outcomes] == [
        ("failed", False, None),
        ("succeeded", True, 2),
    ]


async def test_a_key_changes_no_arguments():
    """Neither those that are recorded nor those in the history: the tool got others."""
    registry = ToolRegistry()
    got: list[object] = []

    def key(arguments: Mapping[str, object]) -> str:
        arguments["paths"].clear()  # type: ignore[attr-defined]
        return "files"

    @registry.tool(conflict_key=key)
    async def delete(paths: list[str]) -> None:
        got.append(paths)

    turn = await Runner(registry).run(anthropic_message(("t1", "delete", {"paths": ["a"]})))

    assert got == [["a"]]
    assert turn.outcomes[0].arguments == {"paths": ["a"]}
    assert turn.messages()[0]["content"][0]["input"] == {"paths": ["a"]}


# -- guard rails ----------------------------------------------------------------------------


@pytest.mark.parametrize(("calls", "expected"), [(None, 3), (1, 1), (2, 2), (9, 3)])
async def test_calls_a_turn(calls: int | None, expected: int):
    """Calls over the limit are answered, not run, and the history is whole."""
    registry = ToolRegistry()
    ran: list[int] = []

    @registry.tool
    async def note(n: int) -> None:
        ran.append(n)

    runner = Runner(registry, limits=Limits(calls=calls))
    turn = await runner.run(response(*(("note", f'{{"n": {n}}}') for n in range(3))))

    assert ran == list(range(expected))
    assert statuses(turn)[expected:] == [("not_executed", "call_limit")] * (3 - expected)
    assert [message["tool_call_id"] for message in turn.messages()[1:]] == ["c0", "c1", "c2"]


@pytest.mark.parametrize("repeats", [None, 1, 2])
async def test_repeated_calls(repeats: int | None):
    """The same call, turn after turn, is told of; over the limit it is not run, until another one came between."""
    registry = ToolRegistry()
    ran: list[int] = []

    @registry.tool
    async def look(n: int) -> None:
        ran.append(n)

    runner = Runner(registry, limits=Limits(repeats=repeats))
    told: list[int] = []
    codes = []
    for n in (1, 1, 1, 2, 1):
        async with runner.stream(response(("look", f'{{"n": {n}}}'))) as run:
            told += [event.count for event in [event async for event in run] if isinstance(event, CallRepeated)]
        codes.append(run.turn.outcomes[0].code)

    assert told == [2, 3]
    limit = repeats or 3
    assert codes == [None] * limit + ["repeated"] * (3 - limit) + [None, None]
    assert len(ran) == limit + 2


async def test_consecutive_invalid_turns():
    """Counted, told of, and stopped at the limit with the turn at hand; a good turn begins anew."""
    registry = ToolRegistry()

    @registry.tool
    async def pay(n: int) -> None: ...

    good, bad = response(("pay", '{"n": 1}')), response(("pay", '{"n": "x"}'), ("pay", '{"n": 1}'))
    runner = Runner(registry, limits=Limits(invalid_turns=3))
    counts = []
    for source in (bad, bad, good, bad, [], bad):
        async with runner.stream(source) as run:
            counts.append([event.count for event in [event async for event in run] if isinstance(event, TurnInvalid)])

    assert counts == [[1], [2], [], [1], [], [2]]
    with pytest.raises(TooManyInvalidTurns, match="3 turns in a row had unfit calls") as caught:
        await runner.run(bad)
    assert [outcome.status for outcome in caught.value.turn.outcomes] == ["refused", "succeeded"]
    assert len(caught.value.turn.messages()) == 3
    assert all([await Runner(registry).run(bad) for _ in range(5)])


async def test_a_broken_stream_is_no_invalid_turn():
    """Nobody wrote those calls wrongly."""
    registry = ToolRegistry()
    runner = Runner(registry, limits=Limits(invalid_turns=1, repeats=1))

    async def broken():
        for event in openai_chunks(("c0", "pay", ['{"n"']), finish=None):
            yield event
        raise ConnectionError

    for _ in range(2):
        with pytest.raises(StreamInterrupted):
            await runner.run(broken())


@pytest.mark.parametrize(
    "numbers",
    [{"running": 0}, {"groups": {"db": 0}}, {"calls": 0}, {"repeats": 0}, {"invalid_turns": -1}],
)
def test_limits_that_make_no_sense(numbers: dict[str, object]):
    """A number below 1 is refused where it is given."""
    with pytest.raises(RegistrationError):
        Limits(**numbers)


# -- keys -----------------------------------------------------------------------------------


async def test_every_attempt_has_the_same_key():
    """And every other call has another."""
    from toolrun import Retry

    registry = ToolRegistry()
    keys: list[tuple[str, int]] = []

    @registry.tool(effect="idempotent", retry=Retry(on=OSError, wait=0))
    async def send(ctx: ToolContext[None]) -> None:
        keys.append((ctx.key, ctx.attempt))
        if ctx.attempt < 3:
            raise OSError

    await Runner(registry, run_id="R").run(response(("send", "{}"), ("send", "{}")), turn_id="T")

    assert sorted(keys) == [(f"R:T:{call}", attempt) for call in (0, 1) for attempt in (1, 2, 3)]
