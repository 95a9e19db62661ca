"""Retry: the same arguments and the same key again, only where the tool says that it may be."""

# Tools with annotations of their own: no postponed evaluation here.
from typing import Any

import anyio
import pytest

from toolrun import (
    AttemptEnded,
    AttemptStarted,
    Failed,
    Outcome,
    RegistrationError,
    Retry,
    Runner,
    ToolContext,
    ToolRegistry,
    TryAgain,
)
from toolrun.abc import Job
from toolrun.executors import InlineExecutor

from .responses import response

QUICK = {"wait": 0.001, "max_wait": 0.002}


class Flaky:
    """Fails so many times with this error, then answers; keeps what it was given."""

    def __init__(self, times: int, error: BaseException) -> None:
        self.times = times
        self.error = error
        self.seen: list[tuple[int, str, list[int]]] = []

    async def __call__(self, ctx: ToolContext[None], xs: list[int]) -> str:
        self.seen.append((ctx.attempt, ctx.key, list(xs)))
        xs.clear()  # a later attempt must not see this
        if len(self.seen) <= self.times:
            raise self.error
        return "done"


def registry_of(flaky: Flaky, **options: Any) -> ToolRegistry:
    from toolrun import Tool

    return ToolRegistry([Tool.from_function(flaky, name="flaky", **options)])


CALL = response(("flaky", '{"xs": [1, 2]}'))


@pytest.mark.parametrize("effect", ["idempotent", "pure"])
async def test_until_it_succeeds(effect: str):
    """Attempts are counted; every one gets the same key and the same arguments."""
    flaky = Flaky(2, ConnectionError("reset"))
    registry = registry_of(flaky, effect=effect, retry=Retry(on=ConnectionError, attempts=5, **QUICK))

    turn = await Runner(registry, run_id="R").run(CALL, turn_id="T")

    assert (turn.outcomes[0].status, turn.outcomes[0].value, turn.outcomes[0].attempts) == ("succeeded", "done", 3)
    assert flaky.seen == [(1, "R:T:0", [1, 2]), (2, "R:T:0", [1, 2]), (3, "R:T:0", [1, 2])]


async def test_until_the_attempts_run_out():
    """The last failure is the outcome."""
    flaky = Flaky(99, ConnectionError("reset"))
    registry = registry_of(flaky, effect="pure", retry=Retry(on=ConnectionError, attempts=4, **QUICK))

    (outcome,) = (await Runner(registry).run(CALL)).outcomes

    assert (outcome.status, outcome.code, outcome.attempts, len(flaky.seen)) == ("failed", "raised", 4, 4)
    assert outcome.error is flaky.error


@pytest.mark.parametrize(
    ("on", "error", "attempts"),
    [
        (ConnectionError, ConnectionResetError(), 3),
        (ConnectionError, ValueError(), 1),
        ((ValueError, KeyError), KeyError(), 3),
        (lambda error: "busy" in str(error), RuntimeError("busy"), 3),
        (lambda error: "busy" in str(error), RuntimeError("gone"), 1),
        (Exception, SystemExit(1), 1),
        (Exception, ExceptionGroup("two", [OSError(), OSError()]), 3),
    ],
)
async def test_only_what_the_policy_wants(on: Any, error: BaseException, attempts: int):
    """A class, several, or a predicate; never what is no `Exception`."""
    flaky = Flaky(99, error)
    registry = registry_of(flaky, effect="pure", retry=Retry(on=on, **QUICK))

    (outcome,) = (await Runner(registry).run(CALL)).outcomes

    assert (outcome.status, len(flaky.seen)) == ("failed", attempts)


async def test_another_error_ends_it():
    """A failure that the policy does not want is not tried again, even after one that it wanted."""
    registry = ToolRegistry()
    errors = [ConnectionError(), ValueError("no"), ConnectionError()]
    seen = []

    @registry.tool(effect="pure", retry=Retry(on=ConnectionError, attempts=9, **QUICK))
    async def f() -> None:
        seen.append(len(seen))
        raise errors[len(seen) - 1]

    (outcome,) = (await Runner(registry).run(response(("f", "{}")))).outcomes

    assert seen == [0, 1]
    assert (outcome.attempts, outcome.error) == (2, errors[1])


async def test_a_tool_without_a_policy_runs_once():
    """The default: one attempt, and the model hears that there may have been an effect."""
    flaky = Flaky(1, TimeoutError("read"))

    (outcome,) = (await Runner(registry_of(flaky)).run(CALL)).outcomes

    assert len(flaky.seen) == 1
    assert "may have had an effect" in outcome.message


def test_a_tool_with_an_effect_cannot_have_a_policy():
    """`effect="once"` and `retry` contradict each other."""
    with pytest.raises(RegistrationError, match="effect='once'"):
        registry_of(Flaky(0, ValueError()), retry=Retry(on=ValueError))


async def test_a_timeout_can_be_retried():
    """A deadline counts as `TimeoutError`."""
    registry = ToolRegistry()
    seen = []

    @registry.tool(timeout=0.02, effect="idempotent", retry=Retry(on=TimeoutError, attempts=2, **QUICK))
    async def f() -> str:
        seen.append(True)
        if len(seen) == 1:
            await anyio.sleep_forever()
        return "done"

    (outcome,) = (await Runner(registry).run(response(("f", "{}")))).outcomes

    assert (outcome.status, outcome.attempts) == ("succeeded", 2)


async def test_try_again_needs_no_policy():
    """The tool knows best: three attempts, whatever it declares."""
    flaky = Flaky(99, TryAgain("the queue is full", after=0))

    (outcome,) = (await Runner(registry_of(flaky)).run(CALL)).outcomes

    assert (outcome.status, outcome.attempts, len(flaky.seen)) == ("failed", 3, 3)
    assert outcome.message == "the queue is full"


async def test_try_again_follows_the_policy_of_the_tool():
    """Its number of attempts, although its `on` does not name `TryAgain`."""
    flaky = Flaky(99, TryAgain(after=0))
    registry = registry_of(flaky, effect="pure", retry=Retry(on=ValueError, attempts=5, **QUICK))

    (outcome,) = (await Runner(registry).run(CALL)).outcomes

    assert (outcome.attempts, len(flaky.seen)) == (5, 5)


async def waits_of(registry: ToolRegistry) -> list[float | None]:
    async with Runner(registry).stream(CALL) as run:
        return [event.retry_in async for event in run if isinstance(event, AttemptEnded)]


async def test_waits_grow_and_are_bounded():
    """Doubled each time with jitter, and never longer than `max_wait`."""
    flaky = Flaky(99, OSError())
    registry = registry_of(flaky, effect="pure", retry=Retry(on=OSError, attempts=6, wait=0.001, max_wait=0.004))

    first, second, third, fourth, fifth, last = await waits_of(registry)

    assert 0.001 <= first <= 0.002
    assert 0.002 <= second <= 0.003
    assert (third, fourth, fifth) == (0.004, 0.004, 0.004)
    assert last is None


async def test_try_again_names_the_wait():
    """`after` is the wait; without it the policy's counts."""
    named = await waits_of(registry_of(Flaky(1, TryAgain(after=0.003))))
    policy = Retry(on=TryAgain, wait=0.001, max_wait=0.001)
    unnamed = await waits_of(registry_of(Flaky(1, TryAgain()), effect="pure", retry=policy))

    assert named == [0.003, None]
    assert unnamed == [0.001, None]


async def test_no_attempt_begins_after_the_total_timeout():
    """A wait that would end after it is not begun."""
    flaky = Flaky(99, OSError())
    registry = registry_of(flaky, effect="pure", retry=Retry(on=OSError, attempts=100, wait=5, max_wait=10, timeout=1))

    with anyio.fail_after(1):
        (outcome,) = (await Runner(registry).run(CALL)).outcomes

    assert (outcome.status, outcome.attempts, len(flaky.seen)) == ("failed", 1, 1)


async def test_the_first_attempt_counts_against_the_total():
    """What the first attempt took is gone."""
    registry = ToolRegistry()
    seen = []

    @registry.tool(effect="pure", retry=Retry(on=OSError, attempts=100, wait=0, timeout=0.05))
    async def f() -> None:
        seen.append(True)
        await anyio.sleep(0.06)
        raise OSError

    (outcome,) = (await Runner(registry).run(response(("f", "{}")))).outcomes

    assert (outcome.attempts, len(seen)) == (1, 1)


async def test_the_events_of_retries():
    """Each attempt starts and ends; all but the last end with a wait."""
    flaky = Flaky(2, ConnectionError("reset"))
    registry = registry_of(flaky, effect="pure", retry=Retry(on=ConnectionError, **QUICK))

    events = []
    async with Runner(registry).stream(CALL) as run:
        async for event in run:
            if isinstance(event, AttemptStarted):
                events.append(("started", event.tool, event.attempt))
            elif isinstance(event, AttemptEnded):
                events.append(("ended", event.status, event.attempt, event.error, event.retry_in is None))

    assert events == [
        ("started", "flaky", 1),
        ("ended", "failed", 1, flaky.error, False),
        ("started", "flaky", 2),
        ("ended", "failed", 2, flaky.error, False),
        ("started", "flaky", 3),
        ("ended", "succeeded", 3, None, True),
    ]


async def test_a_predicate_that_raises_costs_one_call_at_most():
    """It decides about its own tool only: the failure stands, the sibling has its value."""
    registry = ToolRegistry()

    def broken(error: Exception) -> bool:
        raise ZeroDivisionError

    @registry.tool(effect="pure", retry=Retry(on=broken))
    async def bad() -> None:
        raise ValueError("no")

    @registry.tool
    async def good() -> int:
        return 1

    turn = await Runner(registry).run(response(("bad", "{}"), ("good", "{}")))

    assert [outcome.status for outcome in turn.outcomes] == ["failed", "succeeded"]
    assert isinstance(turn.outcomes[0].error, ValueError)


async def test_a_sibling_does_not_wait_for_a_retry():
    """Waiting for the next attempt of one call costs another nothing."""
    registry = ToolRegistry()
    gate = anyio.Event()
    seen = []

    @registry.tool(effect="pure", retry=Retry(on=OSError, wait=0))
    async def waits_for_the_other() -> str:
        seen.append(True)
        if len(seen) == 1:
            raise OSError
        await gate.wait()
        return "a"

    @registry.tool
    async def other() -> str:
        gate.set()
        return "b"

    with anyio.fail_after(5):
        turn = await Runner(registry).run(response(("waits_for_the_other", "{}"), ("other", "{}")))

    assert [outcome.value for outcome in turn.outcomes] == ["a", "b"]


@pytest.mark.parametrize("numbers", [{"attempts": 0}, {"wait": -1}, {"max_wait": -1}, {"timeout": 0}, {"timeout": -1}])
def test_numbers_that_make_no_sense(numbers: dict[str, float]):
    """Refused where they are written."""
    with pytest.raises(RegistrationError, match="Retry needs"):
        Retry(on=ValueError, **numbers)


class Shut(InlineExecutor):
    """Reaches the tool so many times, and then no more."""

    def __init__(self, times: int) -> None:
        self.times = times

    async def execute(self, job: Job) -> Outcome:
        self.times -= 1
        if self.times >= 0:
            return await super().execute(job)
        return Failed(call=job.call, error=ConnectionError("shut"), code="shut", message="Not run: shut.", key=job.key)


@pytest.mark.parametrize(
    ("times", "expected"), [(0, ("failed", "shut", 0, False)), (2, ("timed_out", "deadline", 2, True))]
)
async def test_an_attempt_that_did_not_begin(times: int, expected: tuple[object, ...]):
    """It takes nothing back: an attempt before it may have had an effect, and that is what is told."""
    registry = ToolRegistry()

    @registry.tool(effect="idempotent", timeout=0.01, retry=Retry(on=(TimeoutError, ConnectionError), **QUICK))
    async def slow() -> None:
        await anyio.sleep_forever()

    (outcome,) = (await Runner(registry, executor=Shut(times)).run(response(("slow", "{}")))).outcomes

    assert (outcome.status, outcome.code, outcome.attempts, outcome.started) == expected
    assert ("Not run" in outcome.message) is (times == 0)
