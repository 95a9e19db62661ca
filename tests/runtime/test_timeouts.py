"""Deadlines are hard: the caller is released, and what comes late changes nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from toolrun import CallCompleted, RegistrationError, Runner, ToolRegistry
from toolrun.executors import InlineExecutor, ThreadExecutor

from .responses import response

if TYPE_CHECKING:
    from toolrun import Outcome
    from toolrun.abc import Job

SOON = 0.05


async def until(condition: object, seconds: float = 5) -> None:
    """Wait for what a thread does: at its end there is nothing to await."""
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110  # see above
            await anyio.sleep(0.001)


async def test_an_async_tool_that_never_returns():
    """It is cancelled, its `finally` runs, and its sibling keeps its value."""
    registry = ToolRegistry()
    cleaned = []

    @registry.tool(timeout=SOON)
    async def hang() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cleaned.append(True)

    @registry.tool
    async def good() -> int:
        return 1

    with anyio.fail_after(5):
        turn = await Runner(registry).run(response(("hang", "{}"), ("good", "{}")))

    slow, fine = turn.outcomes
    assert (slow.status, slow.code, slow.started, slow.attempts) == ("timed_out", "deadline", True, 1)
    assert slow.message == (
        "The tool did not finish within its time limit of 0.05 seconds. It may still have an effect."
    )
    assert isinstance(slow.error, TimeoutError)
    assert cleaned == [True]
    assert fine.value == 1


async def test_a_pure_tool_leaves_no_doubt():
    """What has no effect is not said to have one."""
    registry = ToolRegistry()

    @registry.tool(timeout=SOON, effect="pure")
    async def hang() -> None:
        await anyio.sleep_forever()

    turn = await Runner(registry).run(response(("hang", "{}")))

    assert turn.outcomes[0].message == "The tool did not finish within its time limit of 0.05 seconds."


async def test_a_sync_tool_that_does_not_return_in_time():
    """Its thread is counted until it ends; its result goes nowhere."""
    registry = ToolRegistry()
    release = threading.Event()
    late: list[str] = []

    @registry.tool(timeout=SOON)
    def block() -> str:
        release.wait(5)
        late.append("ended")
        return "late"

    runner = Runner(registry)
    completed = []
    with anyio.fail_after(4):
        async with runner.stream(response(("block", "{}"))) as run:
            async for event in run:
                if isinstance(event, CallCompleted):
                    completed.append(event.outcome.status)
                    assert runner.abandoned == 1
                    release.set()
                    await until(lambda: runner.abandoned == 0)

    assert late == ["ended"]
    assert completed == ["timed_out"]
    assert run.turn.outcomes[0].value is None
    again = await runner.run(response(("block", "{}")))
    assert again.outcomes[0].value == "late"


async def test_the_runners_timeout_is_the_default():
    """A tool without a timeout has the runner's; `timeout=None` on a tool means no limit."""
    registry = ToolRegistry()
    gate = anyio.Event()

    @registry.tool
    async def default() -> None:
        await anyio.sleep_forever()

    @registry.tool(timeout=None)
    async def unlimited() -> str:
        await gate.wait()
        return "done"

    async with anyio.create_task_group() as group:

        async def open_gate() -> None:
            await anyio.sleep(4 * SOON)
            gate.set()

        group.start_soon(open_gate)
        turn = await Runner(registry, timeout=SOON).run(response(("default", "{}"), ("unlimited", "{}")))

    assert [outcome.status for outcome in turn.outcomes] == ["timed_out", "succeeded"]


async def test_which_limit_a_job_gets():
    """The tool's own, else the runner's, else 60 seconds; None is no limit."""
    seen: dict[tuple[object, str], float | None] = {}

    class Keeper(InlineExecutor):
        async def execute(self, job: Job) -> Outcome:
            seen[timeout, job.tool] = job.timeout
            return await super().execute(job)

    registry = ToolRegistry()
    registry.tool(name="default")(lambda_tool)
    registry.tool(name="own", timeout=5)(lambda_tool)
    registry.tool(name="unlimited", timeout=None)(lambda_tool)
    source = response(*((name, "{}") for name in ("default", "own", "unlimited")))

    for timeout in ("unset", 7, None):
        given = {} if timeout == "unset" else {"timeout": timeout}
        await Runner(registry, executor=Keeper(), **given).run(source)

    assert seen == {
        ("unset", "default"): 60.0,
        ("unset", "own"): 5,
        ("unset", "unlimited"): None,
        (7, "default"): 7,
        (7, "own"): 5,
        (7, "unlimited"): None,
        (None, "default"): None,
        (None, "own"): 5,
        (None, "unlimited"): None,
    }


async def test_the_deadline_of_the_tools_own_wins_over_the_runners():
    """In both directions."""
    registry = ToolRegistry()

    @registry.tool(timeout=5)
    async def patient() -> str:
        await anyio.sleep(2 * SOON)
        return "done"

    turn = await Runner(registry, timeout=SOON).run(response(("patient", "{}")))

    assert turn.outcomes[0].value == "done"


async def test_an_outer_deadline_is_not_the_tools():
    """A deadline around the runner cancels the run; it is no outcome."""
    registry = ToolRegistry()

    @registry.tool(timeout=5)
    async def hang() -> None:
        await anyio.sleep_forever()

    with anyio.move_on_after(SOON) as scope:
        await Runner(registry).run(response(("hang", "{}")))

    assert scope.cancelled_caught


async def test_a_timeout_error_of_the_tools_own_is_a_failure():
    """An error of an HTTP client is not the deadline."""
    registry = ToolRegistry()

    @registry.tool
    async def fetch() -> None:
        raise TimeoutError("read timed out")

    @registry.tool
    def fetch_sync() -> None:
        raise TimeoutError("read timed out")

    turn = await Runner(registry).run(response(("fetch", "{}"), ("fetch_sync", "{}")))

    assert [(outcome.status, outcome.code) for outcome in turn.outcomes] == [("failed", "raised")] * 2
    assert "It may have had an effect before it failed." in turn.outcomes[0].message


async def test_an_inner_deadline_of_the_tools_own_is_its_business():
    """A tool may give up on a part of its work."""
    registry = ToolRegistry()

    @registry.tool
    async def partial() -> str:
        with anyio.move_on_after(0.01):
            await anyio.sleep_forever()
        return "some"

    turn = await Runner(registry).run(response(("partial", "{}")))

    assert turn.outcomes[0].value == "some"


async def test_an_error_on_the_way_out_is_still_a_timeout():
    """What a tool raises because it was cancelled is kept as the error."""
    registry = ToolRegistry()

    @registry.tool(timeout=SOON)
    async def grumble() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("interrupted")

    turn = await Runner(registry).run(response(("grumble", "{}")))

    assert turn.outcomes[0].status == "timed_out"
    assert isinstance(turn.outcomes[0].error, ValueError)


async def test_a_slot_is_free_again_after_a_timeout():
    """One at a time: the call after the one that timed out runs."""
    registry = ToolRegistry()
    release = threading.Event()

    @registry.tool(timeout=SOON)
    async def hang() -> None:
        await anyio.sleep_forever()

    @registry.tool(timeout=SOON)
    def block() -> None:
        release.wait(5)

    @registry.tool
    async def good() -> int:
        return 1

    turn = await Runner(registry, max_concurrency=1).run(response(("hang", "{}"), ("block", "{}"), ("good", "{}")))
    release.set()

    assert [outcome.status for outcome in turn.outcomes] == ["timed_out", "timed_out", "succeeded"]


async def test_threads_of_an_executor_of_the_users_are_counted():
    """`runner.abandoned` speaks of the executor that runs the calls."""
    registry = ToolRegistry()
    release = threading.Event()

    @registry.tool(timeout=SOON)
    def block() -> None:
        release.wait(5)

    runner = Runner(registry, executor=ThreadExecutor())
    await runner.run(response(("block", "{}")))
    abandoned = runner.abandoned
    release.set()

    assert abandoned == 1


async def test_inline_runs_where_it_is():
    """The inline executor takes sync tools into the loop's own thread."""
    registry = ToolRegistry()

    @registry.tool
    def where() -> int:
        return threading.get_ident()

    inline = await Runner(registry, executor=InlineExecutor()).run(response(("where", "{}")))
    usual = await Runner(registry).run(response(("where", "{}")))

    assert inline.outcomes[0].value == threading.get_ident()
    assert usual.outcomes[0].value != threading.get_ident()


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_timeouts_that_make_no_sense(seconds: float):
    """Refused where they are declared."""
    registry = ToolRegistry()

    with pytest.raises(RegistrationError):
        Runner(registry, timeout=seconds)
    with pytest.raises(RegistrationError):
        registry.tool(timeout=seconds)(lambda_tool)


def lambda_tool() -> None:
    """Do nothing."""


async def test_a_call_that_no_thread_has_begun_is_not_counted():
    """Cancelled before a thread came to it, it does not run later, and nothing is waited for."""
    ran: list[int] = []
    registry = ToolRegistry()

    @registry.tool
    def note(n: int) -> None:
        ran.append(n)

    runner = Runner(registry)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await runner.run(response(("note", '{"n": 1}')))
    await runner.run(response(("note", '{"n": 2}')))

    assert (ran, runner.abandoned) == ([2], 0)
