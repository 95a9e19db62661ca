"""The command `toolrun-temporal`: what it says, what it refuses, and how it ends."""

from __future__ import annotations

import signal
import uuid
from typing import TYPE_CHECKING

import anyio
import pytest
from temporal_calls import make_job
from temporal_processes import TOOLS, Process, free_port, start_worker, until

from toolrun.testing import Ledger
from toolrun_temporal import TemporalExecutor
from toolrun_temporal._cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from temporal_processes import Server

    from toolrun.abc import Job


def test_help(capsys: pytest.CaptureFixture[str]):
    """Every option, what stops it, the exit codes, and examples."""
    assert main(["worker", "--help"]) == 0
    text = capsys.readouterr().out

    for said in (
        "--tools FILE.py[:NAME]",
        "--drain SECONDS",
        "TEMPORAL_ADDRESS",
        "Ctrl-C and SIGTERM",
        "  130  a second",
    ):
        assert said in text
    assert "toolrun-temporal worker --tools tools.py\n" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: COMMAND (see toolrun-temporal --help)"),
        (["worker"], "the following arguments are required: --tools (see toolrun-temporal worker --help)"),
        (["worker", "--tools", "nowhere.py"], "nowhere.py: no such file or directory"),
        (["worker", "--tools", f"{TOOLS}:empty"], f"{TOOLS}:empty: there are no tools in the registry"),
        (
            ["worker", "--tools", str(TOOLS), "--drain", "soon"],
            "argument --drain: 'soon' is not a number of seconds above 0 (see toolrun-temporal worker --help)",
        ),
        (
            ["worker", "--tools", str(TOOLS), "--address", "no address"],
            "no address: no Temporal server can be reached: ",
        ),
    ],
    ids=["no command", "no tools", "no file", "no tool", "no number", "no address"],
)
def test_bad_input(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    """One line says what is wrong, and the exit code is 2."""
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()

    assert line.startswith(f"toolrun-temporal: {said}")


def test_no_server(capsys: pytest.CaptureFixture[str]):
    """It does not wait for one to come."""
    port = free_port()

    assert main(["worker", "--tools", str(TOOLS), "--address", f"127.0.0.1:{port}"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"toolrun-temporal: 127.0.0.1:{port}: no Temporal server can be reached: ")
    assert len(said.splitlines()) == 1


def test_no_namespace(server: Server, capsys: pytest.CaptureFixture[str]):
    """The server says so at the start, and not when the first call comes."""
    assert main(["worker", "--tools", str(TOOLS), "--address", server.address, "--namespace", "nowhere"]) == 2
    assert capsys.readouterr().err == f"toolrun-temporal: {server.address}: there is no namespace 'nowhere'\n"


async def outcome_after(
    executor: TemporalExecutor, job: Job, ledger: Ledger, worker: Process, *signals: signal.Signals
) -> tuple[object, int]:
    """What becomes of a call whose worker is asked to end while it runs, and the worker's exit code."""
    outcomes: list[object] = []
    codes: list[int] = []

    async def run() -> None:
        outcomes.append(await executor.execute(job))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.to_thread.run_sync(until, ledger.lines)
        for number in signals:
            worker.signal(number)
            await anyio.to_thread.run_sync(worker.wait_for, "stopping")
        codes.append(await anyio.to_thread.run_sync(worker.wait))
    return outcomes[0], codes[0]


async def test_draining(server: Server, started: list[Process], tmp_path: Path):
    """Asked to end, it lets the call that runs come to its end."""
    queue, ledger = uuid.uuid4().hex, Ledger(tmp_path / "ledger")
    started.append(worker := start_worker(server.address, queue))
    ready = worker.wait_for("takes calls")
    executor = TemporalExecutor(server.address, task_queue=queue)
    job = make_job("charge", {"ledger": str(tmp_path / "ledger"), "order": 1, "seconds": 0.5})

    outcome, code = await outcome_after(executor, job, ledger, worker, signal.SIGTERM)

    assert ready == (
        "toolrun-temporal: takes calls of busy, charge, crash, echo, fail, flaky, letters, note, put, wait, watched"
        f" from {queue!r} on {server.address} (default); Ctrl-C ends it"
    )
    assert (outcome.status, outcome.value, code) == ("succeeded", "receipt 1", 0)
    assert worker.lines[1:] == ["toolrun-temporal: stopping; calls that run have 30 seconds"]


async def test_cutting_off(server: Server, started: list[Process], tmp_path: Path):
    """A call that takes too long is cancelled: `once` is interrupted, and what may run again does, elsewhere."""
    queue, ledger = uuid.uuid4().hex, Ledger(tmp_path / "ledger")
    started += [
        worker := start_worker(server.address, queue, "--drain", "0.1"),
        other := start_worker(server.address, queue),
    ]
    for process in started:
        process.wait_for("takes calls")
    executor = TemporalExecutor(server.address, task_queue=queue)
    outcomes: list[object] = []

    async def run(tool: str, order: int) -> None:
        arguments = {"ledger": str(tmp_path / "ledger"), "order": order, "seconds": 1}
        effect = "once" if tool == "charge" else "idempotent"
        outcomes.append(await executor.execute(make_job(tool, arguments, effect=effect)))

    async with anyio.create_task_group() as group:
        for order in range(4):
            group.start_soon(run, "charge", order)
            group.start_soon(run, "put", order)
        await anyio.to_thread.run_sync(until, lambda: len(ledger.lines()) == 8)
        worker.signal(signal.SIGINT)
        code = await anyio.to_thread.run_sync(worker.wait)

    statuses = [outcome.status for outcome in outcomes]
    assert sorted(set(statuses)) == ["interrupted", "succeeded"]
    cut = statuses.count("interrupted")
    assert worker.lines[-1].startswith("toolrun-temporal: calls that had to be cancelled: ")
    assert code == 1
    assert [ledger.count(f"charge begun {order}") for order in range(4)] == [1, 1, 1, 1]
    assert sum(ledger.count(f"charged {order}") for order in range(4)) == 4 - cut
    assert all(ledger.count(f"put {order}") >= 1 for order in range(4))

    # Asked twice, it does not wait; its agent is told when the worker is missed.
    executor = TemporalExecutor(server.address, task_queue=queue, heartbeat_timeout=1.5)
    watching = Ledger(tmp_path / "watching")
    job = make_job("watched", {"ledger": str(tmp_path / "watching")})
    outcome, code = await outcome_after(executor, job, watching, other, signal.SIGINT, signal.SIGINT)

    assert code == 130
    assert other.lines[-1] == "toolrun-temporal: interrupted"
    assert (outcome.status, outcome.code, outcome.started) == ("interrupted", "interrupted", True)
    assert str(outcome.error) == "'watched' (c1): it was begun, and its worker was lost: activity Heartbeat timeout"
