"""Agents that are killed, and the judgement of what they left: `python tests/journals/crashes.py --random 50`.

Each round forks an agent that runs turns with a journal, kills it with SIGKILL at a fault point or a random moment,
forks another one that recovers, and compares the journal with a ledger that the tools and the agents append to.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from toolrun import Runner, ToolContext, ToolRegistry
from toolrun.abc import Journal, Payload
from toolrun.history import check
from toolrun.journals import SqliteJournal
from toolrun.testing import Ledger

FAULTS = (
    "before a start",
    "after a start",
    "before an effect",
    "after an effect",
    "before an outcome",
    "after an outcome",
    "before a turn is finished",
    "after a turn is finished",
)
CALLS = (("charge", '{"n": 1}'), ("put", '{"n": 2}'), ("look", '{"n": 3}'), ("charge", '{"n": 4}'), ("nope", "{}"))
EFFECTS = {"charge": "once", "put": "idempotent", "look": "pure"}
TURNS = 3


class Fault(NamedTuple):
    """Where a process kills itself: at a point, when it is there for the so-and-so-many-eth time."""

    point: str
    times: int


class Round(NamedTuple):
    """What happened in one round, and what is wrong about it."""

    name: str
    killed: bool
    effects: int
    outcomes: dict[str, int]
    wrong: list[str]


class Deadly:
    """Counts down to the fault."""

    def __init__(self, fault: Fault | None) -> None:
        self._fault = fault
        self._seen = 0

    def pass_by(self, point: str) -> None:
        if self._fault is None or point != self._fault.point:
            return
        self._seen += 1
        if self._seen == self._fault.times:
            os.kill(os.getpid(), signal.SIGKILL)


class FaultyJournal(SqliteJournal):
    """A journal whose process may end around each of its verbs."""

    def __init__(self, path: Path, deadly: Deadly) -> None:
        super().__init__(path, durability="process")
        self._deadly = deadly

    async def start(self, job, *, audit, turn):
        self._deadly.pass_by("before a start")
        entry = await super().start(job, audit=audit, turn=turn)
        self._deadly.pass_by("after a start")
        return entry

    async def settle(self, key, outcome, *, attempt=None):
        self._deadly.pass_by("before an outcome")
        settled = await super().settle(key, outcome, attempt=attempt)
        self._deadly.pass_by("after an outcome")
        return settled

    async def finish(self, turn):
        self._deadly.pass_by("before a turn is finished")
        await super().finish(turn)
        self._deadly.pass_by("after a turn is finished")


class ForgetfulJournal(FaultyJournal):
    """One that is wrong: it keeps the turn, and no start. The judge has to see it."""

    async def start(self, job, *, audit, turn):
        await self.keep(job.key.rpartition(":")[0], Payload(lambda: turn.text))
        self._deadly.pass_by("after a start")

    async def settle(self, key, outcome, *, attempt=None):
        return await super().settle(key, outcome)


def registry_of(ledger: Ledger, deadly: Deadly) -> ToolRegistry:
    registry = ToolRegistry()

    def effect(context: ToolContext[None]) -> str:
        deadly.pass_by("before an effect")
        ledger.append(f"effect {context.key} {context.tool}")
        deadly.pass_by("after an effect")
        return f"done: {context.key}"

    @registry.tool
    async def charge(n: int, context: ToolContext[None]) -> str:
        await anyio.lowlevel.checkpoint()
        return effect(context)

    @registry.tool(effect="idempotent")
    def put(n: int, context: ToolContext[None]) -> str:
        return effect(context)

    @registry.tool(effect="pure")
    async def look(n: int, context: ToolContext[None]) -> str:
        return effect(context)

    return registry


RESPONSE = {
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": "On it.",
                "tool_calls": [
                    {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
                    for number, (name, arguments) in enumerate(CALLS)
                ],
            },
            "finish_reason": "tool_calls",
        }
    ]
}


async def agent(
    directory: Path, run_id: str, turns: int, fault: Fault | None, ready: int, *, wrong: bool = False
) -> None:
    """Recover, then run turns; every outcome that it gets goes into the ledger."""
    ledger, deadly = Ledger(directory / "ledger"), Deadly(fault)

    def note(turn: Any) -> None:
        for outcome in turn.outcomes:
            key = f"{turn.run_id}:{turn.turn_id}:{outcome.call.position}"
            ledger.append(f"outcome {key} {outcome.status} {json.dumps(outcome.message)}")
        for issue in check(turn.messages(), "openai-chat"):
            ledger.append(f"unfit {turn.turn_id} {issue.code}")

    journal: Journal = (ForgetfulJournal if wrong else FaultyJournal)(directory / "journal.db", deadly)
    async with journal, Runner(registry_of(ledger, deadly), journal=journal, run_id=run_id) as runner:
        os.write(ready, b"!")
        async for turn in runner.recover():
            note(turn)
        for number in range(turns):
            note(await runner.run(RESPONSE, turn_id=str(number)))


def fork(
    directory: Path,
    run_id: str,
    backend: str,
    turns: int,
    *,
    fault: Fault | None = None,
    after: float | None = None,
    wrong: bool = False,
) -> bool:
    """Run an agent in a process of its own; kill it after so many seconds, if any. True if it was killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            anyio.run(lambda: agent(directory, run_id, turns, fault, writer, wrong=wrong), backend=backend)
        except BaseException as error:  # noqa: BLE001  # shown as a violation
            Ledger(directory / "ledger").append(f"unfit the agent raised {error!r}")
        os._exit(0)
    os.close(writer)
    if after is not None:
        os.read(reader, 1)
        time.sleep(after)  # the moment
        os.kill(child, signal.SIGKILL)
    os.close(reader)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def warm_up() -> None:
    """Import here what every process would import again after its fork."""
    for backend in ("asyncio", "trio"):
        anyio.run(anyio.lowlevel.checkpoint, backend=backend)
    registry_of(Ledger(""), Deadly(None)).definitions("openai-chat")


def judge(directory: Path) -> tuple[int, dict[str, int], list[str]]:
    """Compare the journal, read by SQLite alone, with the ledger."""
    effects: dict[str, int] = defaultdict(int)
    seen: dict[str, set[tuple[str, str]]] = defaultdict(set)
    wrong: list[str] = []
    for line in Ledger(directory / "ledger").lines():
        kind, _, rest = line.partition(" ")
        if kind == "effect":
            effects[rest] += 1
        elif kind == "outcome":
            key, status, message = rest.split(" ", 2)
            seen[key].add((status, json.loads(message)))
        else:
            wrong.append(line)
    with closing(sqlite3.connect(directory / "journal.db")) as db:
        turns = db.execute("SELECT key, finished FROM turns").fetchall()
        recorded = dict(db.execute("SELECT key, outcome FROM calls"))
    statuses: dict[str, int] = defaultdict(int)
    for turn, finished in turns:
        if finished is None:
            wrong.append(f"{turn}: not finished after recovery")
        for position, (tool, _) in enumerate(CALLS):
            key = f"{turn}:{position}"
            wrong += judged(key, tool, effects[f"{key} {tool}"], seen[key], recorded.get(key))
            statuses[next(iter(seen[key]), ("none", ""))[0]] += 1
    accepted = {turn for turn, _ in turns}
    wrong += [
        f"{key}: an effect of a turn that was not kept" for key in effects if key.split(" ")[0][:-2] not in accepted
    ]
    return sum(effects.values()), dict(statuses), wrong


def judged(key: str, tool: str, effects: int, seen: set[tuple[str, str]], recorded: str | None) -> list[str]:
    """What is wrong with one call that was accepted."""
    if recorded is None or len(seen) != 1:
        return [f"{key}: recorded {recorded}, and the agents got {sorted(seen)}: not exactly one outcome"]
    ((status, message),) = seen
    fields = json.loads(recorded)["fields"]
    wrong = (
        [] if fields["message"] == message else [f"{key}: the agent got {message!r}, recorded is {fields['message']!r}"]
    )
    most = {"once": 1}.get(EFFECTS.get(tool, ""), 9)
    least = {"succeeded": 1}.get(status, 0)
    if tool not in EFFECTS:
        most, least = 0, 0
    expected = {"charge": ("succeeded", "interrupted"), "nope": ("refused",)}.get(tool, ("succeeded",))
    if status not in expected:
        wrong.append(f"{key}: {tool} {status}")
    if not least <= effects <= most:
        wrong.append(f"{key}: {tool} {status}, and {effects} effects")
    return wrong


def crash_at(fault: Fault, backend: str, *, wrong: bool = False) -> Round:
    """A round that ends at a fault point."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        killed = fork(directory, "a", backend, TURNS, fault=fault, wrong=wrong)
        fork(directory, "b", backend, 0, wrong=wrong)
        return Round(fault.point, killed, *judge(directory))


def crash_at_random(seed: int, backend: str) -> Round:
    """A round in which the agent, and the one that recovers, are killed at some moment."""
    moment = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        killed = fork(directory, "a", backend, 1000, after=moment.uniform(0.0, 0.3))
        fork(directory, "b", backend, 1, after=moment.uniform(0.0, 0.02))
        fork(directory, "c", backend, 0)
        return Round(f"random {seed}", killed, *judge(directory))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=50, help="how many random moments")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="where they begin")
    parser.add_argument("--wrong", action="store_true", help="with a journal that is wrong: the judge has to see it")
    parser.add_argument("--json", action="store_true", help="a JSON line for each round")
    options = parser.parse_args()
    warm_up()
    backends = ("asyncio", "trio")
    failed = False
    for number, point in enumerate(FAULTS):
        done = crash_at(Fault(point, times=2), backends[number // 2 % 2], wrong=options.wrong)
        failed |= show(done, as_json=options.json)
    for number in range(options.random):
        failed |= show(crash_at_random(options.seed + number, backends[number % 2]), as_json=options.json)
    sys.exit(failed)


def show(done: Round, *, as_json: bool) -> bool:
    print(json.dumps(done._asdict()) if as_json else done, flush=True)  # noqa: T201  # a command prints
    return bool(done.wrong)


if __name__ == "__main__":
    main()
