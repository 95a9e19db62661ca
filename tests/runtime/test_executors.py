"""An executor of the user's own: what it is given, and who decides on further attempts."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import anyio
import pytest

from toolrun import CallConflict, Deferred, Failed, Repaired, Retry, Runner, Succeeded, TimedOut, ToolRegistry
from toolrun.abc import Executor
from toolrun.executors import InlineExecutor, ThreadExecutor
from toolrun.history import check
from toolrun.journals import MemoryJournal

from .responses import response

if TYPE_CHECKING:
    from toolrun import Outcome
    from toolrun.abc import Job


class Elsewhere(Executor):
    """Keeps its jobs and answers from a list, as an engine in another process would."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.jobs: list[Job] = []

    async def execute(self, job: Job) -> Outcome:
        self.jobs.append(job)
        await anyio.lowlevel.checkpoint()
        answer = self.answers.pop(0)
        if answer == "fail":
            return Failed(call=job.call, error=ConnectionError("reset"), code="raised", message="no", started=True)
        if answer == "late":
            return TimedOut(call=job.call, error=TimeoutError(), code="deadline", message="late", started=True)
        return Succeeded(call=job.call, value=json.loads(job.arguments), started=True, attempts=1, key=job.key)


class Durable(Elsewhere):
    durable = True


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool(effect="idempotent", timeout=7, retry=Retry(on=(ConnectionError, TimeoutError), attempts=4, wait=0))
    async def store(n: int) -> int:
        raise AssertionError("the executor does not run it here")

    return registry


STORE = response(("store", '{ "n": 1 }'))


async def test_what_a_job_says(registry: ToolRegistry):
    """Key, tool, validated text with its digest, effect, attempts and timeout: all that another process needs."""
    executor = Durable("ok")

    turn = await Runner(registry, executor=executor, run_id="R").run(STORE, turn_id="T")

    (job,) = executor.jobs
    assert (job.key, job.tool, job.arguments) == ("R:T:0", "store", '{ "n": 1 }')
    assert job.digest == sha256(b'{ "n": 1 }').hexdigest()
    assert (job.effect, job.attempt, job.attempts, job.timeout) == ("idempotent", 1, 4, 7)
    assert job.call.id == "c0"
    assert turn.outcomes[0].value == {"n": 1}
    assert turn.outcomes[0].message == '{"n":1}'
    assert (turn.outcomes[0].tool, turn.outcomes[0].grade) == ("store", "exact")


async def test_a_repaired_call_goes_as_repaired(registry: ToolRegistry):
    """The job's text and digest are those of what was validated."""
    executor = Durable("ok")
    registry.repair(lambda request: Repaired(arguments={"n": 2}))

    await Runner(registry, executor=executor).run(response(("store", "oops")))

    (job,) = executor.jobs
    assert json.loads(job.arguments) == {"n": 2}
    assert job.digest == sha256(job.arguments.encode()).hexdigest()
    assert job.call.raw_arguments == "oops"


@pytest.mark.parametrize("answer", ["fail", "late"])
async def test_a_durable_executor_retries_by_itself(registry: ToolRegistry, answer: str):
    """The runner submits once, whatever comes of it."""
    executor = Durable(answer, "ok")

    (outcome,) = (await Runner(registry, executor=executor).run(STORE)).outcomes

    assert len(executor.jobs) == 1
    assert outcome.status == ("failed" if answer == "fail" else "timed_out")


@pytest.mark.parametrize("answer", ["fail", "late"])
async def test_any_other_is_one_attempt_at_a_time(registry: ToolRegistry, answer: str):
    """The runner decides on the next: the same key, text and digest, another attempt."""
    executor = Elsewhere(answer, answer, "ok")

    (outcome,) = (await Runner(registry, executor=executor).run(STORE)).outcomes

    assert [job.attempt for job in executor.jobs] == [1, 2, 3]
    assert len({(job.key, job.arguments, job.digest) for job in executor.jobs}) == 1
    assert (outcome.status, outcome.attempts) == ("succeeded", 3)


@pytest.mark.parametrize("executor", [InlineExecutor(), ThreadExecutor()])
async def test_the_built_in_ones_agree(executor: Executor):
    """Sync and async tools, values and failures: the same outcomes."""
    registry = ToolRegistry()

    @registry.tool
    async def async_good() -> int:
        await anyio.lowlevel.checkpoint()
        return 1

    @registry.tool
    def good() -> int:
        return 1

    @registry.tool
    async def async_bad() -> None:
        raise ValueError

    @registry.tool
    def bad() -> None:
        raise ValueError

    names = ("async_good", "good", "async_bad", "bad")
    turn = await Runner(registry, executor=executor).run(response(*((name, "{}") for name in names)))

    assert [(outcome.status, outcome.value, outcome.started, outcome.attempts) for outcome in turn.outcomes] == [
        ("succeeded", 1, True, 1),
        ("succeeded", 1, True, 1),
        ("failed", None, True, 1),
        ("failed", None, True, 1),
    ]


@pytest.mark.parametrize("executor", [InlineExecutor(), ThreadExecutor()])
async def test_a_job_without_a_function(executor: Executor):
    """A job that came from another process is refused with a reason."""

    keeper = Durable("ok")
    registry = ToolRegistry()

    @registry.tool
    def f() -> None:
        """Do nothing."""

    await Runner(registry, executor=keeper).run(response(("f", "{}")))

    with pytest.raises(Exception, match="functions of this process"):
        await executor.execute(keeper.jobs[0]._replace(invocation=None))


async def test_an_executor_that_answers_nonsense_costs_one_call():
    """None for an outcome is the executor's fault; the sibling keeps its value."""

    class Nonsense(Executor):
        async def execute(self, job: Job) -> Outcome:
            if job.tool == "bad":
                return None  # type: ignore[return-value]  # the fault
            return Succeeded(call=job.call, value=1)

    registry = ToolRegistry()

    @registry.tool
    def bad() -> None:
        """Do nothing."""

    @registry.tool
    def good() -> None:
        """Do nothing."""

    turn = await Runner(registry, executor=Nonsense()).run(response(("bad", "{}"), ("good", "{}")))

    assert turn.outcomes[0].status != "succeeded"
    assert turn.outcomes[1].value == 1


class Remembering(Executor):
    """Gives the same outcome for every call of a tool."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}

    async def execute(self, job: Job) -> Outcome:
        given = Succeeded(call=job.call, value=job.arguments, started=True, attempts=1, key=job.key)
        return self.outcomes.setdefault(job.tool, given)


@pytest.mark.parametrize("with_journal", [False, True])
async def test_the_outcome_of_another_call_is_none(with_journal: bool):
    """Each call is answered under its own id, and the value that was not meant for it is not told."""
    registry = ToolRegistry()

    @registry.tool
    def double(n: int) -> None:
        """Double it."""

    runner = Runner(registry, executor=Remembering(), journal=MemoryJournal() if with_journal else None)
    calls = response(("double", '{"n": 1}'), ("double", '{"n": 2}'))
    turn = await runner.run(calls, turn_id="first")
    other = await runner.run(calls, turn_id="second")

    assert [outcome.call.id for outcome in turn.outcomes] == ["c0", "c1"]
    assert [(one.status, one.code, one.value, one.started) for one in (*turn.outcomes, *other.outcomes)] == [
        ("succeeded", None, '{"n": 1}', True),
        *[("failed", "executor", None, True)] * 3,
    ]
    assert check(turn.messages(), "openai-chat") == ()


@pytest.mark.parametrize("with_journal", [False, True])
async def test_an_executor_cannot_defer_a_call(with_journal: bool):
    """The call has begun: nobody could say later whether it ran."""

    class Deferring(Executor):
        async def execute(self, job: Job) -> Outcome:
            return Deferred(call=job.call, code="later")

    registry = ToolRegistry()

    @registry.tool
    def look() -> None:
        """Look."""

    runner = Runner(registry, executor=Deferring(), journal=MemoryJournal() if with_journal else None)
    turn = await runner.run(response(("look", "{}")))

    assert [(one.status, one.code, one.started) for one in turn.outcomes] == [("failed", "executor", True)]
    assert check(turn.messages(), "openai-chat") == ()


async def test_an_equal_call_is_the_same():
    """An executor that reads its outcomes from elsewhere has another object for the call."""

    class Reading(Executor):
        async def execute(self, job: Job) -> Outcome:
            return Succeeded(call=replace(job.call), value=1, started=True, attempts=1, key=job.key)

    registry = ToolRegistry()

    @registry.tool
    def look() -> None:
        """Look."""

    turn = await Runner(registry, executor=Reading()).run(response(("look", "{}")))

    assert turn.outcomes[0].value == 1
    assert turn.outcomes[0].call is turn.calls[0]


async def test_a_conflict_that_the_executor_finds():
    """Nothing ran, and the model is told so."""

    class Engine(Executor):
        durable = True

        async def execute(self, job: Job) -> Outcome:
            raise CallConflict(key=job.key, tool=job.tool)

    registry = ToolRegistry()
    registry.tool(lambda: None, name="charge")
    async with Runner(registry, executor=Engine()) as runner:
        (outcome,) = (await runner.run(response(("charge", "{}")))).outcomes

    assert (outcome.status, outcome.code, outcome.started, outcome.attempts) == ("failed", "conflict", False, 0)
    assert outcome.message == "Not run: its key was used before with other arguments."
