"""The process executor: what runs there can be stopped, and costs nobody else anything."""

from __future__ import annotations

import functools
import socket
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from toolrun import (
    CallStatus,
    Cancelled,
    ExecutorError,
    Failed,
    RegistrationError,
    Retry,
    Runner,
    Succeeded,
    TimedOut,
    Tool,
    ToolCall,
    ToolError,
    ToolRegistry,
)
from toolrun.abc import Invocation, Job
from toolrun.executors import ProcessExecutor

from .responses import response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolrun import Outcome

IMPORTABLE = str(Path(__file__).parent / "importable")


@pytest.fixture(scope="module")
def tools() -> Iterator[types.ModuleType]:
    """The tools, in a module that worker processes can import."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(IMPORTABLE)
        import process_tools

        yield process_tools


@pytest.fixture(scope="module")
def executor(tools: types.ModuleType) -> Iterator[ProcessExecutor]:
    """One for both event loops: starting processes takes time, and it belongs to no loop."""
    with ProcessExecutor(max_workers=2) as running:
        yield running


async def run(executor: ProcessExecutor, *functions: Callable[..., object], arguments: str = "{}", **options: object):
    """Run each function as a tool of one turn."""
    tools = [Tool.from_function(function, name=f"t{n}", **options) for n, function in enumerate(functions)]
    runner = Runner(ToolRegistry(tools), executor=executor)
    return (await runner.run(response(*((tool.name, arguments) for tool in tools)), deps="the deps")).outcomes


def job(function: Callable[..., object], **kwargs: object) -> Job:
    call = ToolCall(id="c0", name="t", raw_arguments="{}", arguments={}, status=CallStatus.OK, executable=True)
    return Job(
        key="k",
        tool="t",
        call=call,
        arguments="{}",
        invocation=Invocation(function, (), kwargs, is_async=False),
    )


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        yield listening


def port(listener: socket.socket) -> str:
    return f'{{"port": {listener.getsockname()[1]}}}'


async def began(listener: socket.socket) -> socket.socket:
    """Wait until the tool runs."""
    connection, _ = await anyio.to_thread.run_sync(listener.accept)
    connection.settimeout(30)
    assert await anyio.to_thread.run_sync(connection.recv, 1) == b"x"
    return connection


async def gone(connection: socket.socket) -> bool:
    """Wait until the process that held the other end is gone."""
    with connection:
        try:
            return await anyio.to_thread.run_sync(connection.recv, 1) == b""
        except ConnectionResetError:
            return True


# -- values ---------------------------------------------------------------------------------


async def test_every_kind_of_function(executor: ProcessExecutor, tools: types.ModuleType):
    """Sync and async functions, bound methods and partials."""
    station = tools.Station("Oslo")

    sums = await run(executor, tools.add, tools.add_later, arguments='{"a": 1}')
    scaled = await run(executor, functools.partial(tools.scale, 3), arguments='{"n": 2}')
    readings = await run(executor, station.read, arguments='{"degrees": 2.5}')

    assert [outcome.value for outcome in (*sums, *scaled, *readings)] == [2, 2, 6, tools.Reading("Oslo", 2.5)]
    assert readings[0].message == '{"place":"Oslo","degrees":2.5}'
    assert all(outcome.started and outcome.attempts == 1 for outcome in (*sums, *scaled, *readings))


async def test_the_context_goes_along(executor: ProcessExecutor, tools: types.ModuleType):
    """As in any other executor."""
    (outcome,) = await run(executor, tools.who)

    assert outcome.value == ["the deps", "c0", "t0", 1]


async def test_processes_are_used_again(executor: ProcessExecutor, tools: types.ModuleType):
    """Never more than `max_workers`, and none of them this one."""
    import os

    pids = {outcome.value for outcome in await run(executor, *[tools.pid] * 6)}

    assert len(pids) <= 2
    assert os.getpid() not in pids


async def test_output_disturbs_nothing(
    executor: ProcessExecutor, tools: types.ModuleType, capfd: pytest.CaptureFixture[str]
):
    """Tools print, and so does what they start."""
    (outcome,) = await run(executor, tools.noise)

    assert outcome.value == "quiet"


# -- what is stopped ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hold", "hold_in_loop"])
async def test_the_deadline_kills(
    executor: ProcessExecutor, tools: types.ModuleType, listener: socket.socket, name: str
):
    """A tool that hangs is gone when its outcome is there; the next call gets another process."""
    outcomes: list[Outcome] = []

    async def hold() -> None:
        outcomes.extend(await run(executor, getattr(tools, name), arguments=port(listener), timeout=1))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(hold)
            connection = await began(listener)
            assert await gone(connection)
        (after,) = await run(executor, tools.pid)

    (outcome,) = outcomes
    assert isinstance(outcome, TimedOut)
    assert outcome.message == (
        "The tool did not finish within its time limit of 1 seconds. It was stopped, and may have had an effect before."
    )
    assert isinstance(after, Succeeded)
    assert executor.abandoned == 0


@pytest.mark.parametrize(
    "name",
    [
        "hold",
        pytest.param("hold_in_child", marks=pytest.mark.skipif(sys.platform == "win32", reason="no process groups")),
    ],
)
async def test_cancellation_kills(
    executor: ProcessExecutor, tools: types.ModuleType, listener: socket.socket, name: str
):
    """So does leaving the run, whatever the tool waits for, and what the tool has started goes with it."""
    registry = ToolRegistry([Tool.from_function(getattr(tools, name), name="hold", timeout=None)])

    with anyio.fail_after(30):
        async with Runner(registry, executor=executor).stream(response(("hold", port(listener)))) as stream:
            connection = await began(listener)
        assert await gone(connection)

    (outcome,) = stream.turn.outcomes
    assert isinstance(outcome, Cancelled)
    assert outcome.started


async def test_a_call_that_waits_for_a_process_can_be_given_up(tools: types.ModuleType, listener: socket.socket):
    """It has not started, and takes no process from the others."""
    outcomes: list[Outcome] = []
    with ProcessExecutor(max_workers=1) as single, anyio.fail_after(30):

        async def first() -> None:
            outcomes.extend(await run(single, tools.hold_until_told, arguments=port(listener)))

        async with anyio.create_task_group() as group:
            group.start_soon(first)
            connection = await began(listener)
            with anyio.move_on_after(0.01) as given_up:
                await run(single, tools.pid)
            connection.sendall(b"go on")
        connection.close()
        (after,) = await run(single, tools.add, arguments='{"a": 1}')

    assert given_up.cancelled_caught
    assert [outcome.value for outcome in (*outcomes, after)] == ["go on", 2]


async def test_closing_ends_the_processes(tools: types.ModuleType, listener: socket.socket):
    """Also one that runs a call: the call is a failure that may have had an effect. A later one is not run."""
    closing = ProcessExecutor(max_workers=1)
    outcomes: list[Outcome] = []

    async def hold() -> None:
        outcomes.extend(await run(closing, tools.hold, arguments=port(listener)))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(hold)
            connection = await began(listener)
            await anyio.to_thread.run_sync(closing.close)
            assert await gone(connection)
        (late,) = await run(closing, tools.pid)

    (outcome,) = outcomes
    assert (outcome.code, outcome.started) == ("worker_died", True)
    assert (late.code, late.started, str(late.error)) == ("not_dispatched", False, "the process executor is closed")


# -- what cannot go there, or come back -----------------------------------------------------


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda tools: job(lambda: None), "the function <function <lambda>"),
        (lambda tools: job(tools.add, a=1, b=threading.Lock()), "argument 'b'"),
    ],
)
async def test_what_cannot_be_pickled_is_named(
    executor: ProcessExecutor, tools: types.ModuleType, make: Callable[[types.ModuleType], Job], part: str
):
    """Before anything starts, so there is no doubt about an effect."""
    outcome = await executor.execute(make(tools))

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.started, outcome.attempts) == ("not_dispatched", False, 0)
    assert outcome.message == "Not run: the tool cannot be started in a process of its own."
    assert isinstance(outcome.error, ExecutorError)
    assert str(outcome.error).startswith(f"'t' (c0): {part}")


async def test_deps_that_cannot_be_pickled_are_named(executor: ProcessExecutor, tools: types.ModuleType):
    """The usual reason: a client or a lock in what the caller gave."""
    registry = ToolRegistry([Tool.from_function(tools.who)])

    turn = await Runner(registry, executor=executor).run(response(("who", "{}")), deps=threading.Lock())

    assert str(turn.outcomes[0].error).startswith("'who' (c0): deps cannot be pickled for a worker process: ")


async def test_a_function_that_is_not_found_there(executor: ProcessExecutor, monkeypatch: pytest.MonkeyPatch):
    """A module that exists in this process only; the worker goes on."""
    ghost = types.ModuleType("ghost")
    exec("def boo() -> None: ...", vars(ghost))
    monkeypatch.setitem(sys.modules, "ghost", ghost)

    (outcome,) = await run(executor, ghost.boo)

    assert (outcome.code, outcome.started) == ("not_dispatched", False)
    assert str(outcome.error) == (
        "the worker process cannot load the call: ModuleNotFoundError: No module named 'ghost'"
    )


@pytest.mark.parametrize("name", ["lock", "unreadable"])
async def test_a_result_that_cannot_come_back(executor: ProcessExecutor, tools: types.ModuleType, name: str):
    """The tool ran, and the model is told so."""
    (outcome,) = await run(executor, getattr(tools, name))

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.started) == ("unserialisable", True)
    assert outcome.message == "The tool ran, but its result cannot be brought back from its process."
    assert str(outcome.error).startswith("the result cannot be ")


# -- failures -------------------------------------------------------------------------------


async def test_exceptions_come_back(executor: ProcessExecutor, tools: types.ModuleType):
    """As themselves, with where it was as a note; one that cannot be pickled as its text."""
    own, locked, left = await run(executor, tools.fail, tools.fail_locked, tools.leave_politely)

    assert [(outcome.status, outcome.code) for outcome in (own, locked, left)] == [("failed", "raised")] * 3
    assert isinstance(own.error, ToolError)
    assert own.message == "no such city"
    assert "process_tools.py" in own.error.__notes__[0]
    assert isinstance(locked.error, ExecutorError)
    assert str(locked.error).startswith("process_tools.Locked: holds a lock\n")
    assert isinstance(left.error, SystemExit)


@pytest.mark.parametrize(
    ("name", "how"), [("leave", "exit code 3"), pytest.param("crash", "killed by SIGSEGV", id="crash")]
)
async def test_a_process_that_dies_costs_one_call(
    executor: ProcessExecutor, tools: types.ModuleType, name: str, how: str
):
    """Its own; it says that there may have been an effect."""
    died, sibling = await run(executor, getattr(tools, name), tools.pid)

    assert isinstance(died, Failed)
    assert (died.code, died.started, died.attempts) == ("worker_died", True, 1)
    assert died.message == ("The tool's process ended before it answered. It may have had an effect before it failed.")
    assert str(died.error) == f"the worker process ended before it answered: {how}"
    assert isinstance(sibling, Succeeded)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_pure_tool_that_dies(executor: ProcessExecutor, tools: types.ModuleType):
    """No doubt about an effect, and run again if its policy says so."""
    (died,) = await run(executor, tools.leave, effect="pure", retry=Retry(on=ExecutorError, attempts=2, wait=0))

    assert died.message == "The tool's process ended before it answered."
    assert died.attempts == 2


async def test_a_job_without_a_function(executor: ProcessExecutor, tools: types.ModuleType):
    """A job from another process is refused with a reason, as by the other executors."""
    with pytest.raises(Exception, match="functions of this process"):
        await executor.execute(job(tools.add)._replace(invocation=None))


def test_at_least_one_process():
    """Else a call would wait for ever."""
    with pytest.raises(ValueError, match="max_workers"):
        ProcessExecutor(max_workers=0)


# -- chosen by tool -------------------------------------------------------------------------


async def test_a_tool_chooses_its_executor(executor: ProcessExecutor, tools: types.ModuleType):
    """By name or instance, over the runner's; the others stay where they were."""
    import os

    named = ("inline", "thread", "process", executor)
    registry = ToolRegistry(
        [Tool.from_function(tools.pid, name=f"t{n}", executor=chosen) for n, chosen in enumerate(named)]
    )
    registry.add(Tool.from_function(tools.thread, name="thread_of"))
    registry.add(Tool.from_function(tools.thread, name="thread_inline", executor="inline"))
    names = ("t0", "t1", "t2", "t3", "thread_of", "thread_inline")

    async with Runner(registry) as runner:
        turn = await runner.run(response(*((name, "{}") for name in names)))

    here = [outcome.value == os.getpid() for outcome in turn.outcomes[:4]]
    assert here == [True, True, False, False]
    assert [outcome.value == threading.get_ident() for outcome in turn.outcomes[4:]] == [False, True]


async def test_an_executor_that_is_not_installed(tools: types.ModuleType):
    """The call is a failure that says what there is; nothing ran."""
    registry = ToolRegistry([Tool.from_function(tools.pid, executor="nowhere")])

    (outcome,) = (await Runner(registry).run(response(("pid", "{}")))).outcomes

    assert (outcome.status, outcome.started) == ("failed", False)
    said, installed = str(outcome.error).split("; installed: ")
    assert said == "no plugin named 'nowhere' in toolrun.executors"
    assert {"inline", "process", "thread"} <= set(installed.split(", "))  # and those of plugins


def test_something_else_for_an_executor(tools: types.ModuleType):
    """Refused where the tool is declared."""
    with pytest.raises(RegistrationError, match="executor must be a name or an Executor, not 3"):
        Tool.from_function(tools.pid, executor=3)


SCRIPT = """
from dataclasses import dataclass
from toolrun import Runner, ToolRegistry

registry = ToolRegistry()

@dataclass
class Answer:
    n: int

@registry.tool(executor="process")
def answer(n: int) -> Answer:
    return Answer(n)

if __name__ == "__main__":
    call = {"id": "c", "type": "function", "function": {"name": "answer", "arguments": '{"n": 42}'}}
    outcome, = Runner(registry).run_sync(
        {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    ).outcomes
    print(outcome.value, outcome.error)
"""


def test_a_script(tmp_path: Path):
    """Its own functions and classes travel, and it ends when it is done, although nobody closed anything."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, "utf-8")

    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True)

    assert (done.stdout, done.stderr) == ("Answer(n=42) None\n", "")
