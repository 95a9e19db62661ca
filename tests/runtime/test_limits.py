"""Rate limits and circuit breakers around an executor."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import pytest
from limits.storage import MemoryStorage

from toolrun import ExecutorError, Retry, Runner, Succeeded, ToolError, ToolRegistry
from toolrun.abc import Executor
from toolrun.executors.limits import CircuitBreaker, RateLimited

from .responses import response

if TYPE_CHECKING:
    from toolrun import Outcome
    from toolrun.abc import Job


class Scripted(Executor):
    """Answers with what is next in the list: a value, or an exception of the tool."""

    abandoned = 3

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.jobs: list[str] = []

    async def execute(self, job: Job) -> Outcome:
        from toolrun import Failed

        self.jobs.append(job.tool)
        await anyio.lowlevel.checkpoint()
        answer = self.answers.pop(0) if self.answers else "ok"
        if isinstance(answer, BaseException):
            return Failed(call=job.call, error=answer, code="raised", message="no", started=True, attempts=1)
        return Succeeded(call=job.call, value=answer, started=True, attempts=1)


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    async def a() -> str:
        return "a"

    @registry.tool
    def b() -> str:
        return "b"

    return registry


async def run(registry: ToolRegistry, executor: Executor, *names: str) -> list[tuple[str, str | None, bool]]:
    """Run calls one after the other, and say what came of each."""
    runner = Runner(registry, executor=executor, max_concurrency=1)
    turn = await runner.run(response(*((name, "{}") for name in names)))
    return [(outcome.status, outcome.code, outcome.started) for outcome in turn.outcomes]


OK = ("succeeded", None, True)
LIMITED = ("failed", "rate_limited", False)
OPEN = ("failed", "circuit_open", False)
FAILED = ("failed", "raised", True)


# -- rates ----------------------------------------------------------------------------------


async def test_no_more_than_the_rate(registry: ToolRegistry):
    """Further calls are not run if they may not wait, and the model is told when to come back."""
    inner = Scripted()
    executor = RateLimited("2/minute", executor=inner, max_wait=0)

    told = await run(registry, executor, "a", "a", "a", "b")
    (outcome,) = (await Runner(registry, executor=executor).run(response(("a", "{}")))).outcomes

    assert told == [OK, OK, LIMITED, OK]
    assert inner.jobs == ["a", "a", "b"]
    assert outcome.attempts == 0
    assert isinstance(outcome.error, ExecutorError)
    assert outcome.message.startswith("Not run: too many calls of this tool in a short time. Try again in ")


async def test_all_tools_together(registry: ToolRegistry):
    """One count for all of them."""
    executor = RateLimited("2/minute", executor=Scripted(), max_wait=0, per_tool=False)

    assert await run(registry, executor, "a", "b", "a", "b") == [OK, OK, LIMITED, LIMITED]


async def test_several_rates(registry: ToolRegistry):
    """All of them hold; a call that one of them refuses uses up no other."""
    storage = MemoryStorage()
    executor = RateLimited("100/hour; 1/minute", executor=Scripted(), max_wait=0, storage=storage)

    assert await run(registry, executor, "a", "a", "a") == [OK, LIMITED, LIMITED]
    assert sorted(len(storage.events[key]) for key in storage.events) == [1, 1]


async def test_calls_wait_for_their_turn():
    """Outside the deadline of the tool."""
    registry = ToolRegistry()

    @registry.tool(timeout=0.5)
    def clock() -> float:
        return time.monotonic()

    turn = await Runner(registry, executor=RateLimited("2/second")).run(response(*[("clock", "{}")] * 3))

    times = sorted(outcome.value for outcome in turn.outcomes)
    assert times[1] - times[0] < 0.9
    assert times[2] - times[0] >= 0.9


class Broken(MemoryStorage):
    STORAGE_SCHEME = None

    def get_moving_window(self, *args: object) -> tuple[float, int]:
        raise ConnectionError("redis is down")


async def test_a_storage_that_fails(registry: ToolRegistry):
    """Nothing is run, and no doubt is left about it."""
    executor = RateLimited("2/minute", executor=Scripted(), storage=Broken())

    (outcome,) = (await Runner(registry, executor=executor).run(response(("a", "{}")))).outcomes

    assert (outcome.status, outcome.code, outcome.started) == LIMITED
    assert str(outcome.error) == "'a' (c0): the rate limit cannot be asked: redis is down"
    assert isinstance(outcome.error.__cause__, ConnectionError)


def test_a_rate_that_cannot_be_read():
    """Refused where it is written."""
    with pytest.raises(ValueError, match="couldn't parse"):
        RateLimited("often")


# -- circuits -------------------------------------------------------------------------------


async def test_a_tool_that_fails_again_and_again(registry: ToolRegistry):
    """It is not called any more; other tools are."""
    inner = Scripted(OSError(), OSError(), "fine")
    executor = CircuitBreaker(executor=inner, failures=2)

    told = await run(registry, executor, "a", "a", "b", "a")
    (outcome,) = (await Runner(registry, executor=executor).run(response(("a", "{}")))).outcomes

    assert told == [FAILED, FAILED, OK, OPEN]
    assert inner.jobs == ["a", "a", "b"]
    assert outcome.message == (
        "Not run: this tool failed several times in a row and is not called for now. Try again in 30 seconds."
    )
    assert str(outcome.error) == "'a' (c0): not run, after 2 failures in a row"


@pytest.mark.parametrize("answer", ["fine", ToolError("no such city")], ids=repr)
async def test_an_answer_begins_the_count_again(registry: ToolRegistry, answer: object):
    """A success, and a `ToolError`, which the tool means as one."""
    inner = Scripted(OSError(), answer, OSError(), "fine")

    told = await run(registry, CircuitBreaker(executor=inner, failures=2), "a", "a", "a", "a")

    assert [entry[:2] for entry in told][3] == ("succeeded", None)


async def test_one_call_is_tried_after_a_while(registry: ToolRegistry):
    """Only one at a time: if it fails, the circuit is open again; if it succeeds, it is closed."""
    inner = Scripted(OSError(), OSError(), "fine", "fine")
    executor = CircuitBreaker(executor=inner, failures=1, recovery=0.05)
    at_once = Runner(registry, executor=executor)

    await run(registry, executor, "a")
    await anyio.sleep(0.06)
    failing = (await at_once.run(response(("a", "{}"), ("a", "{ }")))).outcomes
    await anyio.sleep(0.06)
    working = await run(registry, executor, "a", "a")

    assert [outcome.code for outcome in failing] == ["raised", "circuit_open"]
    assert working == [OK, OK]


async def test_what_never_reached_the_tool_does_not_count(registry: ToolRegistry):
    """A rate limit inside says nothing of the tool."""
    executor = CircuitBreaker(executor=RateLimited("1/minute", executor=Scripted(), max_wait=0), failures=1)

    assert await run(registry, executor, "a", "a", "a") == [OK, LIMITED, LIMITED]


async def test_a_cancelled_trial_leaves_the_circuit_as_it_was(registry: ToolRegistry):
    """The next call is tried instead."""

    class Hanging(Scripted):
        async def execute(self, job: Job) -> Outcome:
            if len(self.jobs) == 1:
                self.jobs.append(job.tool)
                await anyio.sleep_forever()
            return await super().execute(job)

    executor = CircuitBreaker(executor=Hanging(OSError(), "fine"), failures=1, recovery=0.01)

    await run(registry, executor, "a")
    await anyio.sleep(0.02)
    with anyio.move_on_after(0.05) as cancelled:
        await run(registry, executor, "a")
    after = await run(registry, executor, "a")

    assert cancelled.cancelled_caught
    assert after == [OK]


@pytest.mark.parametrize("options", [{"failures": 0}, {"recovery": 0}])
def test_circuits_need_numbers(options: dict[str, float]):
    """That mean something."""
    with pytest.raises(ValueError, match="CircuitBreaker needs"):
        CircuitBreaker(**options)


# -- around another executor ----------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda inner: RateLimited("9/second", executor=inner), lambda inner: CircuitBreaker(executor=inner)]
)
async def test_it_counts_as_what_it_surrounds(registry: ToolRegistry, make):
    """Durable executors retry by themselves, and abandoned threads are still counted."""

    class Durable(Scripted):
        durable = True

    inner = Durable(OSError())
    retrying = ToolRegistry()

    @retrying.tool(effect="pure", retry=Retry(on=OSError, attempts=3, wait=0))
    async def a() -> None:
        raise AssertionError("the executor does not run it here")

    assert await run(retrying, make(inner), "a") == [FAILED]
    assert inner.jobs == ["a"]
    assert make(inner).abandoned == 3


@pytest.mark.parametrize("executor", [RateLimited("9/second"), CircuitBreaker()], ids=["rate", "circuit"])
async def test_around_nothing(registry: ToolRegistry, executor: Executor):
    """Async tools run in the loop and sync ones in threads, as without."""
    turn = await Runner(registry, executor=executor).run(response(("a", "{}"), ("b", "{}")))

    assert [outcome.value for outcome in turn.outcomes] == ["a", "b"]
    assert executor.abandoned == 0
