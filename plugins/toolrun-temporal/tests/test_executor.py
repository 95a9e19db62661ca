"""What a call comes to through a real server and worker, and what does not run at all."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from importlib.metadata import entry_points
from pathlib import Path

import anyio
import pytest
from temporal_calls import make_job, response
from temporal_processes import Server, free_port, until
from temporal_tools import registry
from temporalio import activity
from temporalio.client import Client
from temporalio.common import RawValue  # noqa: TC002  # Temporal reads the hints of an activity
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import Worker

from toolrun import CallConflict, ExecutorError, Outcome, RemoteError, Runner, ToolContext, ToolError, ToolRegistry
from toolrun.journals import SqliteJournal
from toolrun.testing import Ledger
from toolrun_temporal import TemporalExecutor, make_activity, make_worker


@pytest.fixture
def executor(server: Server, task_queue: str) -> TemporalExecutor:
    return TemporalExecutor(server.address, task_queue=task_queue)


async def test_a_turn(executor: TemporalExecutor, tmp_path: Path):
    """A runner's calls run elsewhere, sync and async, and the model gets its answers in order."""
    ledger = str(tmp_path / "ledger")
    calls = [
        ("charge", {"ledger": ledger, "order": 7}),
        ("put", {"ledger": ledger, "order": 8}),
        ("flaky", {}),
        ("busy", {}),
        ("fail", {"message": "no such order"}),
        ("crash", {}),
    ]
    async with Runner(registry, executor=executor, run_id=(run := uuid.uuid4().hex)) as runner:
        turn = await runner.run(response(*calls), turn_id="T")

    assert [(outcome.status, outcome.attempts) for outcome in turn.outcomes] == [
        ("succeeded", 1),
        ("succeeded", 1),
        ("succeeded", 3),
        ("failed", 3),
        ("failed", 1),
        ("failed", 1),
    ]
    assert [message["content"] for message in turn.messages()[1:]] == [
        "receipt 7",
        f"{run}:T:1 1",
        "3",
        "busy",
        "no such order",
        "The tool failed with an internal error (RuntimeError). It may have had an effect before it failed.",
    ]
    assert [type(outcome.error) for outcome in turn.outcomes[4:]] == [ToolError, RemoteError]
    assert sorted(Ledger(ledger).lines()) == ["charge begun 7", "charged 7", "put 8", "put begun 8 1"]


def test_without_an_event_loop(executor: TemporalExecutor):
    """One executor serves runners in several event loops, one after the other."""
    for number in range(2):
        with Runner(registry, executor=executor) as runner:
            assert runner.run_sync(response(("echo", {"value": number}))).outcomes[0].value == number


async def test_a_turn_again(executor: TemporalExecutor, tmp_path: Path):
    """The same turn, with a journal and without, of an agent that has forgotten everything: nothing happens twice."""
    ledger = str(tmp_path / "ledger")
    calls = response(*[("charge", {"ledger": ledger, "order": order}) for order in range(3)])
    values = []
    for name in (None, "first.db", "second.db", "second.db"):
        journal = None if name is None else SqliteJournal(tmp_path / name)
        async with Runner(registry, executor=executor, journal=journal, run_id=tmp_path.name + ledger) as runner:
            values.append([outcome.value for outcome in (await runner.run(calls, turn_id="T")).outcomes])
        if journal is not None:
            await journal.aclose()

    assert values == [["receipt 0", "receipt 1", "receipt 2"]] * 4
    assert Ledger(ledger).count("charged 0") == Ledger(ledger).count("charged 2") == 1


async def test_another_call_under_the_key(executor: TemporalExecutor, tmp_path: Path):
    """Other arguments, and another tool, while it runs and after that: a failure of the turn's call, and nothing runs."""
    ledger = str(tmp_path / "ledger")
    job = make_job("charge", {"ledger": ledger, "order": 1, "seconds": 0.5})
    others = [
        make_job("charge", {"ledger": ledger, "order": 2}, key=job.key),
        make_job("put", {"ledger": ledger, "order": 1, "seconds": 0.5}, key=job.key),
    ]
    async with anyio.create_task_group() as group:
        group.start_soon(executor.execute, job)
        await anyio.to_thread.run_sync(until, lambda: Ledger(ledger).lines())
        for other in others:
            with pytest.raises(CallConflict, match=f"key {job.key} was used before with other arguments"):
                await executor.execute(other)
    for other in others:
        with pytest.raises(CallConflict):
            await executor.execute(other)

    assert Ledger(ledger).lines() == ["charge begun 1", "charged 1"]


async def test_an_activity_of_somebody_else(server: Server, executor: TemporalExecutor):
    """A key that is the id of an activity that is no call is a conflict."""
    client = await Client.connect(server.address)
    job = make_job("echo", {"value": 1})
    other = await client.start_activity(
        "theirs", id=job.key, task_queue="theirs", start_to_close_timeout=timedelta(seconds=60)
    )

    with pytest.raises(CallConflict):
        await executor.execute(job)
    await other.terminate()


async def test_cancellation_reaches_the_tool(executor: TemporalExecutor, tmp_path: Path):
    """It is awaited; who asks for the call again is told, and it is not run again."""
    ledger = Ledger(tmp_path / "ledger")
    job = make_job("watched", {"ledger": str(tmp_path / "ledger")})
    async with anyio.create_task_group() as group:
        group.start_soon(executor.execute, job)
        await anyio.to_thread.run_sync(until, ledger.lines)
        group.cancel_scope.cancel()

    outcome = await executor.execute(job)

    assert ledger.lines() == ["begun", "cancelled"]
    assert (outcome.status, outcome.started) == ("cancelled", True)
    assert outcome.message == "The call was cancelled. It had started and may have had an effect."


async def test_cancellation_by_asyncio(executor: TemporalExecutor, tmp_path: Path):
    """`task.cancel()` does the same."""
    ledger = Ledger(tmp_path / "ledger")
    task = asyncio.ensure_future(executor.execute(make_job("watched", {"ledger": str(tmp_path / "ledger")})))
    await anyio.to_thread.run_sync(until, ledger.lines)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ledger.lines() == ["begun", "cancelled"]


async def test_no_worker(server: Server):
    """A call that nobody takes is not run, and one that is cancelled meanwhile never begins."""
    executor = TemporalExecutor(server.address, task_queue="nobody", queue_timeout=0.5)
    waiting = TemporalExecutor(server.address, task_queue="nobody", queue_timeout=None)
    job = make_job("echo", {"value": 1})
    with anyio.move_on_after(0.1):
        await waiting.execute(job)

    outcome = await executor.execute(make_job("echo", {"value": 1}))
    cancelled = await waiting.execute(job)

    assert (outcome.status, outcome.code, outcome.started, outcome.attempts) == ("failed", "not_dispatched", False, 0)
    assert outcome.message == "Not run: no worker was free to take it. Try again later."
    assert str(outcome.error) == "'echo' (c1): no worker on the task queue 'nobody' took it within 0.5 s"
    assert (cancelled.status, cancelled.started) == ("cancelled", False)
    assert cancelled.message == "The call was cancelled. It had not started."


async def test_no_server():
    """Nothing is sent, and the outcome says where no server was."""
    port = free_port()
    executor = TemporalExecutor(f"127.0.0.1:{port}", namespace="billing", outage=0.5)

    outcome = await executor.execute(make_job("echo", {"value": 1}))

    assert (outcome.status, outcome.code, outcome.started) == ("failed", "not_dispatched", False)
    assert outcome.message == "Not run: the service that runs tools cannot be reached."
    assert isinstance(outcome.error, ExecutorError)
    assert str(outcome.error).startswith(f"'echo' (c1): no Temporal server at 127.0.0.1:{port} (namespace 'billing'): ")


async def test_no_address():
    """An address that is none is nowhere."""
    outcome = await TemporalExecutor("no address").execute(make_job("echo", {"value": 1}))

    assert (outcome.status, outcome.code, outcome.started) == ("failed", "not_dispatched", False)


async def test_no_namespace(server: Server):
    """What the server refuses is not run, in the server's words."""
    executor = TemporalExecutor(server.address, namespace="nowhere")

    outcome = await executor.execute(make_job("echo", {"value": 1}))

    assert (outcome.status, outcome.code, outcome.started) == ("failed", "not_dispatched", False)
    assert str(outcome.error) == "'echo' (c1): Temporal does not take it: Namespace nowhere is not found."


async def test_payloads(server: Server, task_queue: str):
    """What is too large is not sent; a result that is too large is a failure of a call that ran."""
    executor = TemporalExecutor(server.address, task_queue=task_queue, payload_limit=100_000)

    sent = await executor.execute(make_job("echo", {"value": "x" * 100_000}))
    back = await executor.execute(make_job("letters", {"count": 2_100_000}))

    assert (sent.status, sent.code, sent.started) == ("failed", "not_dispatched", False)
    assert "bytes as it is sent, and at most 100,000 can be" in str(sent.error)
    assert (back.status, back.code, back.started) == ("failed", "unserialisable", True)
    assert back.message == "The tool ran, but its result is too large to be sent back."


async def test_another_version(executor: TemporalExecutor):
    """A worker whose tool has another schema does not run it."""
    other = ToolRegistry()

    @other.tool
    async def echo(value: str) -> str:
        return value

    async with Runner(other, executor=executor) as runner:
        (outcome,) = (await runner.run(response(("echo", {"value": "x"})))).outcomes

    assert (outcome.status, outcome.code, outcome.started) == ("failed", "not_dispatched", False)
    assert outcome.message == "Not run: its worker has another version of this tool."


async def test_workers_of_your_own(server: Server):
    """In a program of your own, with what its tools get, and beside activities of your own."""
    tools = ToolRegistry()

    @tools.tool
    async def who(context: ToolContext[str]) -> str:
        return context.deps

    @activity.defn
    async def theirs() -> str:
        return "not a call"

    client = await Client.connect(server.address)
    mixed = Worker(client, task_queue="mixed", activities=[theirs, make_activity(tools, deps="mixed")])
    values = []
    async with make_worker(client, tools, task_queue="own", deps="own"), mixed:
        for task_queue in ("own", "mixed"):
            async with Runner(tools, executor=TemporalExecutor(client, task_queue=task_queue)) as runner:
                values += [outcome.value for outcome in (await runner.run(response(("who", {})))).outcomes]

    assert values == ["own", "mixed"]


async def test_a_worker_without_calls(server: Server):
    """A queue whose workers run other activities: nothing ran."""

    @activity.defn
    async def theirs() -> str:
        return "not a call"

    client = await Client.connect(server.address)
    async with Worker(client, task_queue="theirs-alone", activities=[theirs]):
        executor = TemporalExecutor(client, task_queue="theirs-alone")
        outcome = await executor.execute(make_job("echo", {"value": 1}))

    assert (outcome.status, outcome.code, outcome.started) == ("failed", "not_dispatched", False)
    assert outcome.message == "Not run: no worker runs calls of tools."


@pytest.mark.parametrize(
    ("effect", "starts", "code", "error"),
    [("once", 1, "interrupted", "it was begun, and its worker was lost: "), ("pure", 3, "attempts", "it was begun, ")],
)
async def test_a_worker_that_is_lost_each_time(effect: str, starts: int, code: str, error: str, server: Server):
    """A call is begun as often as its effect allows, and then given up."""
    begun = 0

    @activity.defn(name="toolrun.call")
    async def lose(_: RawValue) -> None:
        nonlocal begun
        begun += 1
        raise ApplicationError("lost", type="WorkerStopped")

    client = await Client.connect(server.address)
    async with Worker(client, task_queue=f"lossy-{effect}", activities=[lose]):
        executor = TemporalExecutor(client, task_queue=f"lossy-{effect}")
        outcome = await executor.execute(make_job("echo", {"value": 1}, effect=effect))

    assert (outcome.status, outcome.code, outcome.started) == ("interrupted", code, True)
    assert (begun, outcome.attempts) == (starts, starts)
    assert str(outcome.error).startswith(f"'echo' (c1): {error}")
    assert outcome.message == (
        "Contact with the tool was lost. Whether it had its effect, or still will, is not known."
    )


async def test_a_worker_of_somebody_else(server: Server):
    """What cannot be read as an outcome is none, and the call may have run."""

    @activity.defn(name="toolrun.call")
    async def babble(_: RawValue) -> str:
        return "babble"

    client = await Client.connect(server.address)
    async with Worker(client, task_queue="babbling", activities=[babble]):
        outcome = await TemporalExecutor(client, task_queue="babbling").execute(make_job("echo", {"value": 1}))

    assert (outcome.status, outcome.code, outcome.started) == ("interrupted", "interrupted", True)
    assert str(outcome.error) == "'echo' (c1): what came back cannot be read: not the outcome of a job: '\"babble\"'"


async def test_an_operator(server: Server):
    """A call that somebody terminates in the queue did not run."""
    client = await Client.connect(server.address)
    job = make_job("echo", {"value": 1})
    outcomes: list[Outcome] = []

    async def run() -> None:
        outcomes.append(await TemporalExecutor(client, task_queue="nobody").execute(job))

    async def terminated() -> bool:
        try:
            await client.get_activity_handle(job.key).terminate(reason="by hand")
        except RPCError:  # it has not come yet
            return False
        return True

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        while not await terminated():
            await anyio.lowlevel.checkpoint()

    assert (outcomes[0].status, outcomes[0].code, outcomes[0].started) == ("failed", "not_dispatched", False)
    assert outcomes[0].message == "Not run: it was stopped before it began."


def test_trio(executor: TemporalExecutor):
    """Temporal's client is not for trio: the call is not sent, and the outcome says so."""
    outcome = anyio.run(executor.execute, make_job("echo", {"value": 1}), backend="trio")

    assert (outcome.status, outcome.code, outcome.started) == ("failed", "not_dispatched", False)
    assert str(outcome.error) == (
        "'echo' (c1): Temporal's client runs on asyncio only; use another executor on this event loop"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"heartbeat_timeout": 0},
        {"queue_timeout": 0},
        {"outage": -1},
        {"cancel_timeout": -1},
        {"payload_limit": 0},
    ],
    ids=str,
)
def test_numbers_that_make_no_sense(options: dict[str, float]):
    with pytest.raises(ValueError, match=r"^TemporalExecutor needs "):
        TemporalExecutor("localhost:7233", **options)


def test_by_name():
    """A tool, or a configuration file, can name it; where the server is says the environment."""
    (point,) = entry_points(group="toolrun.executors", name="temporal")

    assert point.load() is TemporalExecutor
    assert TemporalExecutor().durable
