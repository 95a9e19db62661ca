"""Both ends of a call that runs elsewhere: the model is told the same, and what does not fit together is not run."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import pytest

from toolrun import (
    ExecutorError,
    Image,
    RemoteError,
    Retry,
    Runner,
    Tool,
    ToolContext,
    ToolError,
    ToolRegistry,
    TryAgain,
)
from toolrun.abc import Executor
from toolrun.remote import JobRunner, is_same_call, read_outcome, write_job

from .responses import response

if TYPE_CHECKING:
    from toolrun import Outcome
    from toolrun.abc import Job


class ThroughText(Executor):
    """Runs each job in a `JobRunner`, with nothing but texts in between."""

    def __init__(self, jobs: JobRunner, *, attempt: int = 1) -> None:
        self.jobs = jobs
        self.attempt = attempt
        self.sent: list[str] = []
        self.answered: list[str] = []

    async def execute(self, job: Job) -> Outcome:
        self.sent.append(write_job(job))
        self.answered.append(await self.jobs.run(self.sent[-1], attempt=self.attempt))
        return read_outcome(self.answered[-1], job)


class Loop(ThroughText):
    """Runs jobs elsewhere, and the tool names it on both sides."""

    durable = True


@dataclass
class Place:
    name: str
    at: decimal.Decimal


PNG = b"\x89PNG\r\n\x1a\n0000"

VALUES = [
    "as it is",
    "ünïcode 中文 \ud800",
    "",
    None,
    {"a": [1, 2.5, True, None], "b": (1, 2)},
    dt.date(2026, 11, 30),
    decimal.Decimal("1.50"),
    Place("Oslo", decimal.Decimal("59.91")),
    {1: {2, 3}},
    float("nan"),
    PNG,
    b"\xff\xfe",
    ["see", Image(data=PNG, media_type="image/png")],
    object,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
async def test_the_model_is_told_the_same(value: object):
    """Whatever a tool returns, the message is the one that a run in this process gives."""
    registry = ToolRegistry([Tool.from_json_schema(name="give", input_schema={}, handler=lambda: value)])
    messages = []
    for executor in (None, ThroughText(JobRunner(registry))):
        async with Runner(registry, executor=executor) as runner:
            turn = await runner.run(response(("give", "{}")))
            messages.append(
                (turn.messages(), turn.outcomes[0].status, turn.outcomes[0].code, turn.outcomes[0].attempts)
            )

    assert messages[0] == messages[1]


async def test_values_are_sent_once():
    """A text that the value says itself does not travel beside it, and arguments do not come back."""
    registry = ToolRegistry()
    registry.tool(lambda text: text * 2, name="twice")
    executor = ThroughText(JobRunner(registry))

    async with Runner(registry, executor=executor) as runner:
        (outcome,) = (await runner.run(response(("twice", json.dumps({"text": "x" * 10_000}))))).outcomes

    assert outcome.message == outcome.value == "x" * 20_000
    assert outcome.arguments == {"text": "x" * 10_000}
    assert len(executor.answered[0]) < 20_500


@pytest.mark.parametrize(
    ("raised", "expected", "text"),
    [
        (ToolError("no such order"), ToolError, "no such order"),
        (TryAgain("busy"), TryAgain, "busy"),
        (TimeoutError("own"), TimeoutError, "own"),
        (KeyError("city"), RemoteError, "KeyError: 'city'"),
        (SystemExit(), RemoteError, "SystemExit"),
    ],
    ids=lambda item: type(item).__name__,
)
async def test_errors(raised: BaseException, expected: type[Exception], text: str):
    """An error comes back with its text, and the worker's traceback as a note."""
    registry = ToolRegistry()

    @registry.tool(effect="pure", retry=Retry(on=ValueError, wait=0, attempts=1))
    async def fail() -> None:
        raise raised

    async with Runner(registry, executor=ThroughText(JobRunner(registry))) as runner:
        (outcome,) = (await runner.run(response(("fail", "{}")))).outcomes

    assert (type(outcome.error), str(outcome.error)) == (expected, text)
    assert "raise raised" in outcome.error.__notes__[0]
    assert outcome.started


async def test_attempts():
    """The tool's `Retry` holds there, under one key; starts that ended without a word are counted in."""
    registry = ToolRegistry()
    seen: list[tuple[int, str, object]] = []

    @registry.tool(effect="idempotent", retry=Retry(on=ConnectionError, attempts=3, wait=0))
    async def flaky(context: ToolContext[str]) -> str:
        seen.append((context.attempt, context.key, context.deps))
        if len(seen) < 3:
            raise ConnectionError("reset")
        return "done"

    executor = ThroughText(JobRunner(registry, deps="the worker's"), attempt=2)
    executor.durable = True
    async with Runner(registry, executor=executor, run_id="R") as runner:
        (outcome,) = (await runner.run(response(("flaky", "{}")), turn_id="T", deps="the agent's")).outcomes

    assert seen == [(2, "R:T:0", "the worker's"), (3, "R:T:0", "the worker's"), (4, "R:T:0", "the worker's")]
    assert (outcome.value, outcome.attempts) == ("done", 4)


async def test_a_deadline():
    """The job's own, whatever the worker's tool says; the tool can see that it has passed."""
    registry = ToolRegistry()
    contexts: list[ToolContext[None]] = []

    @registry.tool(timeout=3600)
    async def wait(context: ToolContext[None]) -> None:
        try:
            await anyio.sleep(3600)
        finally:
            assert not context.cancelled
            contexts.append(context)

    jobs = JobRunner(registry)
    registry = ToolRegistry([Tool.from_json_schema(name="wait", input_schema={}, handler=lambda: None, timeout=0.01)])
    async with Runner(registry, executor=ThroughText(jobs)) as runner:
        (outcome,) = (await runner.run(response(("wait", "{}")))).outcomes

    assert (outcome.status, outcome.code, type(outcome.error)) == ("timed_out", "deadline", TimeoutError)
    assert contexts[0].cancelled


async def test_a_limit():
    """`max_concurrency` holds on the worker, whoever sends."""
    registry = ToolRegistry()
    running = most = 0

    @registry.tool(max_concurrency=2)
    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.001)
        running -= 1

    jobs = JobRunner(registry)

    async def send() -> None:
        other = ToolRegistry([Tool.from_json_schema(name="work", input_schema={}, handler=lambda: None)])
        async with Runner(other, executor=ThroughText(jobs)) as runner:
            await runner.run(response(*[("work", "{}")] * 3))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(send)

    assert most == 2


async def test_an_executor_that_would_send_it_on():
    """A tool that names a durable executor runs where the job has come to."""
    registry = ToolRegistry()
    executor = Loop(JobRunner(registry))

    @registry.tool(executor=executor)
    async def here() -> str:
        return "ran"

    async with Runner(registry) as runner:
        (outcome,) = (await runner.run(response(("here", "{}")))).outcomes

    assert (outcome.value, len(executor.sent)) == ("ran", 1)


ANOTHER = (
    "'charge' (c0): the worker's tool has another schema or effect than the one that the model was told of;"
    " use the same tools on both sides"
)


def other_tools(case: str) -> ToolRegistry:
    registry = ToolRegistry()
    if case == "another schema":
        registry.tool(lambda cents, currency="NOK": None, name="charge")
    if case == "another effect":
        registry.tool(lambda cents: None, name="charge", effect="idempotent")
    if case == "only declared":
        schema = {"properties": {"cents": {}}, "required": ["cents"]}
        registry.add(Tool.from_json_schema(name="charge", input_schema=schema))
    return registry


@pytest.mark.parametrize(
    ("case", "told", "error"),
    [
        (
            "no tool",
            "Not run: its worker does not have this tool.",
            "'charge' (c0): the worker has no such tool; it has: none",
        ),
        (
            "another schema",
            "Not run: its worker has another version of this tool.",
            ANOTHER,
        ),
        (
            "another effect",
            "Not run: its worker has another version of this tool.",
            ANOTHER,
        ),
    ],
)
async def test_other_tools(case: str, told: str, error: str):
    """A worker that has not the tool that the model was told of does not run it, and says why."""
    registry = ToolRegistry()
    registry.tool(lambda cents: None, name="charge")

    async with Runner(registry, executor=ThroughText(JobRunner(other_tools(case)))) as runner:
        (outcome,) = (await runner.run(response(("charge", '{"cents": 5}')))).outcomes

    assert (outcome.status, outcome.code, outcome.message) == ("failed", "not_dispatched", told)
    assert (outcome.started, outcome.attempts) == (False, 0)
    assert (type(outcome.error), str(outcome.error)) == (ExecutorError, error)


async def test_what_a_job_does_not_say():
    """Without a definition there is nothing to compare, and the schema of the worker decides."""
    registry = ToolRegistry()
    registry.tool(lambda cents: cents, name="charge")
    jobs, sent = JobRunner(other_tools("another schema")), []

    class Keeping(ThroughText):
        async def execute(self, job: Job) -> Outcome:
            sent.append(job._replace(definition=None))
            return await super().execute(sent[-1])

    async with Runner(registry, executor=Keeping(jobs)) as runner:
        await runner.run(response(("charge", '{"cents": 5}')))
    unfit = read_outcome(await jobs.run(write_job(sent[0]._replace(arguments="{}"))), sent[0])
    declared = JobRunner(other_tools("only declared"))
    only_declared = read_outcome(await declared.run(write_job(sent[0])), sent[0])

    assert (unfit.code, unfit.message) == ("not_dispatched", "Not run: its worker does not take these arguments.")
    assert "arguments do not fit the schema: $.cents" in str(unfit.error)
    assert str(only_declared.error) == "'charge' (c0): the worker has only its declaration"


@pytest.mark.parametrize(
    ("limit", "status", "code", "message"),
    [
        (1_300, "succeeded", None, "x" * 1_000),
        (1_000, "failed", "unserialisable", "The tool ran, but its result is too large to be sent back."),
    ],
)
async def test_the_largest_answer(limit: int, status: str, code: str | None, message: str):
    """A result that makes a longer one is a failure of a call that ran."""
    registry = ToolRegistry()
    registry.tool(lambda: "x" * 1_000, name="write")

    async with Runner(registry, executor=ThroughText(JobRunner(registry, answer_limit=limit))) as runner:
        (outcome,) = (await runner.run(response(("write", "{}")))).outcomes

    assert (outcome.status, outcome.code, outcome.message) == (status, code, message)
    assert (outcome.started, outcome.attempts, outcome.key != "") == (True, 1, True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', "\ud800"])
async def test_texts_of_somebody_else(text: str):
    """They are answered, and are no outcome."""
    registry = ToolRegistry()
    registry.tool(lambda: None, name="nothing")
    executor = ThroughText(JobRunner(registry))
    async with Runner(registry, executor=executor) as runner:
        await runner.run(response(("nothing", "{}")))

    answer = json.loads(await executor.jobs.run(text))

    assert (answer["type"], answer["fields"]["code"]) == ("Failed", "not_dispatched")
    assert "another release of toolrun may have written it" in answer["error"]["text"]
    with pytest.raises(ValueError, match=r"^(not the outcome of a job|Expecting value)"):
        read_outcome(text, _job(executor.sent[0]))


def _job(text: str) -> Job:
    from toolrun import CallStatus, ToolCall
    from toolrun.abc import Job

    fields = json.loads(text)
    call = ToolCall(
        id="c1", name=fields["tool"], raw_arguments="{}", arguments={}, status=CallStatus.OK, executable=True
    )
    return Job(key=fields["key"], tool=fields["tool"], call=call, arguments=fields["arguments"])


async def test_the_same_call():
    """The tool and the arguments, as they were validated."""
    job = _job('{"key": "R:T:0", "tool": "charge", "arguments": "{}"}')

    assert is_same_call(write_job(job), job)
    assert not is_same_call(write_job(job), job._replace(arguments="{ }"))
    assert not is_same_call(write_job(job), job._replace(tool="refund"))
    assert not is_same_call("somebody else's", job)


async def test_an_executor_that_is_not_installed():
    """What cannot be started at all is an outcome too."""
    registry = ToolRegistry()
    registry.tool(lambda: None, name="lost", executor="no-such-executor")
    job = _job('{"key": "R:T:0", "tool": "lost", "arguments": "{}"}')

    outcome = read_outcome(await JobRunner(registry).run(write_job(job)), job)

    assert (outcome.status, outcome.code, outcome.started) == ("failed", "not_dispatched", False)
    assert "no plugin named 'no-such-executor'" in str(outcome.error)


@pytest.mark.parametrize(("effect", "attempts", "starts"), [("once", 1, 1), ("pure", 1, 3), ("idempotent", 5, 5)])
def test_starts(effect: str, attempts: int, starts: int):
    """A call that may run again is begun three times, or as often as its `Retry` allows if that is more."""
    job = _job('{"key": "R:T:0", "tool": "charge", "arguments": "{}"}')

    assert job._replace(effect=effect, attempts=attempts).starts == starts
