"""Workers, agents and the server are killed and frozen in the middle; what happened is judged by a file of the tools' own.

An overloaded server may lose a call on its way to a worker, which counts as its one start: a few may be interrupted.
"""

from __future__ import annotations

import signal
import uuid
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from temporal_calls import make_job
from temporal_processes import Process, Server, answers, needs_signals, start_agent, start_worker, until

from toolrun.testing import Ledger
from toolrun_temporal import TemporalExecutor

if TYPE_CHECKING:
    from pathlib import Path

    from toolrun import Outcome

pytestmark = pytest.mark.skipif(not needs_signals, reason="processes are frozen and killed as POSIX does it")

CALLS = [(tool, order) for order in range(12) for tool in ("charge", "put")]
"""Of a turn: every other one must not happen twice."""

DONE = {"charge": "charged", "put": "put"}

GIVEN_UP = {"charge": "interrupted", "put": "attempts"}
"""Why a call may be given up: it must not be begun again, or was begun three times; a frozen worker is sent calls, too."""


def judge(ledger: Ledger, calls: list[tuple[str, int]], outcomes: list[dict[str, Any]]) -> None:
    """Every call has one outcome; nothing is lost, and what must not happen twice did not."""
    assert [(outcome["tool"], outcome["order"]) for outcome in outcomes] == calls
    for outcome in outcomes:
        effects = ledger.count(f"{DONE[outcome['tool']]} {outcome['order']}")
        if outcome["status"] == "succeeded":
            assert effects >= 1, outcome
        else:
            assert (outcome["status"], outcome["code"]) == ("interrupted", GIVEN_UP[outcome["tool"]]), outcome
        if outcome["tool"] == "charge":
            assert effects <= 1
            assert ledger.count(f"charge begun {outcome['order']}") <= 1


def begun(ledger: Ledger, number: int) -> None:
    """Wait until so many calls have begun."""
    until(lambda: sum(" begun " in line for line in ledger.lines()) >= number)


class Agents:
    """Starts agents that share everything but their memory."""

    def __init__(self, address: str, queue: str, started: list[Process], directory: Path) -> None:
        self.ledger = Ledger(directory / "ledger")
        self._started = started
        self._options = {
            "address": address,
            "task_queue": queue,
            "run_id": uuid.uuid4().hex,
            "ledger": str(directory / "ledger"),
        }

    def start(self, turns: list[list[tuple[str, int]]], **options: Any) -> Process:
        self._started.append(agent := start_agent(**self._options, turns=turns, **options))
        return agent


def test_workers(server: Server, task_queue: str, started: list[Process], tmp_path: Path):
    """One is killed, one is frozen, one is left: it takes over what may run twice, the rest is interrupted."""
    started += [start_worker(server.address, task_queue, "--max-concurrency", 8) for _ in range(2)]
    killed, frozen = started
    for worker in (killed, frozen):
        worker.wait_for("takes calls")
    agents = Agents(server.address, task_queue, started, tmp_path)
    agent = agents.start([CALLS], seconds=0.3, journal=str(tmp_path / "calls.db"), heartbeat_timeout=3.0)
    begun(agents.ledger, 16)

    killed.kill()
    frozen.signal(signal.SIGSTOP)
    (outcomes,) = answers(agent)
    frozen.signal(signal.SIGCONT)  # what it had begun goes on now, and nobody waits for it
    frozen.signal(signal.SIGINT)
    frozen.wait()

    judge(agents.ledger, CALLS, outcomes)
    assert any(outcome["status"] == "succeeded" for outcome in outcomes)


def test_an_agent(server: Server, task_queue: str, started: list[Process], tmp_path: Path):
    """Another one takes over with the journal: it finds what runs and what has run, and nothing is begun twice."""
    agents = Agents(server.address, task_queue, started, tmp_path)
    journal = str(tmp_path / "calls.db")
    first = agents.start([CALLS], seconds=0.5, journal=journal)
    begun(agents.ledger, 8)

    first.kill()
    (outcomes,) = answers(agents.start([CALLS], seconds=0.5, journal=journal))

    judge(agents.ledger, CALLS, outcomes)
    assert sum(outcome["status"] == "succeeded" for outcome in outcomes) > 0.8 * len(CALLS)


async def test_the_server(started: list[Process], tmp_path: Path):
    """It is killed and comes back with its file, and all find each other again; then it stays away, and calls are given up."""
    started.append(server := Server(tmp_path / "temporal.db"))
    started.append(worker := start_worker(server.address, "queue", "--max-concurrency", 8))
    worker.wait_for("takes calls")
    agents = Agents(server.address, "queue", started, tmp_path)
    agent = agents.start([CALLS], seconds=0.3, heartbeat_timeout=10.0)
    begun(agents.ledger, 10)

    server.kill()
    started.append(server := server.restarted())
    (outcomes,) = answers(agent)

    judge(agents.ledger, CALLS, outcomes)
    assert any(outcome["status"] == "succeeded" for outcome in outcomes)

    ledger = Ledger(tmp_path / "watched")
    executor = TemporalExecutor(server.address, task_queue="queue", outage=0.1)
    lost: list[Outcome] = []

    async def run(tool: str, arguments: dict[str, Any]) -> None:
        lost.append(await executor.execute(make_job(tool, arguments)))

    async with anyio.create_task_group() as group:
        group.start_soon(run, "watched", {"ledger": str(tmp_path / "watched")})
        await anyio.to_thread.run_sync(until, ledger.lines)
        server.kill()
        group.start_soon(run, "echo", {"value": 1})

    for outcome in lost:
        assert (outcome.status, outcome.code, outcome.started) == ("interrupted", "unanswered", True)
        assert "tcp connect error" in str(outcome.error)


def test_two_agents(server: Server, task_queue: str, started: list[Process], tmp_path: Path):
    """Two processes send the same keys: the same call runs once and both get its outcome, of two calls one runs."""
    agents = Agents(server.address, task_queue, started, tmp_path)
    mine, yours = ([("charge", order) for order in range(first, first + 10)] for first in (100, 200))
    ours, theirs = [answers(agent) for agent in [agents.start([CALLS, mine]), agents.start([CALLS, yours])]]

    assert ours[0] == theirs[0]
    judge(agents.ledger, CALLS, ours[0])
    assert sum(outcome["status"] == "succeeded" for outcome in ours[0]) > 0.8 * len(CALLS)
    for one, other in zip(ours[1], theirs[1], strict=True):
        won, lost = (other, one) if one["code"] == "conflict" else (one, other)
        assert (lost["status"], lost["code"], lost["error"]) == ("failed", "conflict", "CallConflict")
        assert agents.ledger.count(f"charge begun {lost['order']}") == 0
        assert won["status"] in ("succeeded", "interrupted")
        assert (won["status"] == "succeeded") <= agents.ledger.count(f"charged {won['order']}") <= 1
