"""What goes wrong inside a tool, a hook or an executor is that call's outcome, and nobody else's."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import traceback
from concurrent.futures import CancelledError as FutureCancelledError
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from toolrun import (
    CallConflict,
    Failed,
    RepairBudget,
    RepairRequest,
    Runner,
    Succeeded,
    ToolError,
    ToolRegistry,
    TryAgain,
    Turn,
)
from toolrun.abc import Executor
from toolrun.executors import InlineExecutor

from .responses import response

if TYPE_CHECKING:
    from toolrun import Outcome
    from toolrun.abc import Job


class OddError(BaseException):
    """Derives from BaseException, as some libraries' errors do."""


def group() -> BaseException:
    return ExceptionGroup("two things", [ValueError("a"), KeyError("b")])


ERRORS = {
    "ValueError without a text": ValueError,
    "KeyError": lambda: KeyError("k"),
    "SystemExit": lambda: SystemExit(3),
    "StopIteration": lambda: StopIteration(3),
    "GeneratorExit": GeneratorExit,
    "StopAsyncIteration": lambda: StopAsyncIteration(3),
    "ExceptionGroup": group,
    "BaseExceptionGroup": lambda: BaseExceptionGroup("worse", [OddError()]),
    "OddError": OddError,
    "CancelledError of asyncio": asyncio.CancelledError,
    "CancelledError of futures": FutureCancelledError,
    "RecursionError": RecursionError,
    "MemoryError": MemoryError,
}


def with_sibling(turn: Turn) -> Outcome:
    """The failed one; the good one must not have noticed."""
    bad, good = turn.outcomes
    assert (good.status, good.value) == ("succeeded", 1)
    return bad


def registry_with_good() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    async def good() -> int:
        await anyio.lowlevel.checkpoint()
        return 1

    return registry


BOTH = response(("bad", "{}"), ("good", "{}"))


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("kind", ["async", "sync", "inline"])
async def test_whatever_a_tool_raises_is_its_failure(name: str, kind: str):
    """Status, code, the error itself for the developer, its kind for the model."""
    registry = registry_with_good()
    error = ERRORS[name]()

    if kind == "async":

        @registry.tool
        async def bad() -> None:
            await anyio.lowlevel.checkpoint()
            raise error

    else:

        @registry.tool
        def bad() -> None:
            raise error

    turn = await Runner(registry, executor=InlineExecutor() if kind == "inline" else None).run(BOTH)

    outcome = with_sibling(turn)
    assert (outcome.status, outcome.code, outcome.started, outcome.attempts) == ("failed", "raised", True, 1)
    assert outcome.error is not None
    assert str(outcome.call.id) == "c0"
    told = turn.messages()[1]
    assert told["tool_call_id"] == "c0"
    # Inside a coroutine Python itself makes a RuntimeError of a StopIteration; a GeneratorExit becomes one, too.
    seen = outcome.error.__cause__ if isinstance(outcome.error, RuntimeError) and outcome.error.__cause__ else None
    assert outcome.error is error or seen is error or isinstance(error, StopIteration)
    assert f"The tool failed with an internal error ({type(outcome.error).__name__})." in told["content"]


@pytest.mark.parametrize(
    "name", ["SystemExit", "StopIteration", "GeneratorExit", "CancelledError of asyncio", "OddError"]
)
async def test_a_single_call_fails_alike(name: str):
    """A single call takes no detour: the same outcome."""
    registry = ToolRegistry()

    error = ERRORS[name]()

    @registry.tool
    async def bad() -> None:
        raise error

    turn = await Runner(registry).run(response(("bad", "{}")))

    assert [(outcome.status, outcome.code) for outcome in turn.outcomes] == [("failed", "raised")]


async def test_the_developer_sees_all_and_the_model_little():
    """The exception with its traceback is kept; the model gets no text of it, unless it is a `ToolError`."""
    registry = registry_with_good()

    @registry.tool
    async def secret() -> None:
        raise ValueError("password=hunter2 at /srv/app/db.py")

    @registry.tool
    async def plain() -> None:
        raise ToolError("There is no city named Oslow; did you mean Oslo?")

    @registry.tool
    async def wordless() -> None:
        raise ToolError

    @registry.tool(effect="pure")
    async def harmless() -> None:
        raise ValueError

    turn = await Runner(registry).run(
        response(("secret", "{}"), ("plain", "{}"), ("wordless", "{}"), ("harmless", "{}"))
    )
    told = [message["content"] for message in turn.messages()[1:]]

    assert told == [
        "The tool failed with an internal error (ValueError). It may have had an effect before it failed.",
        "There is no city named Oslow; did you mean Oslo?",
        "ToolError",
        "The tool failed with an internal error (ValueError).",
    ]
    error = turn.outcomes[0].error
    assert "hunter2" in str(error)
    assert "in secret" in "".join(traceback.format_exception(error))


async def test_an_error_whose_text_fails():
    """`str(error)` may raise; the outcome stands."""
    registry = registry_with_good()

    class Mute(ToolError):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    @registry.tool
    async def bad() -> None:
        raise Mute

    outcome = with_sibling(await Runner(registry).run(BOTH))

    assert outcome.status == "failed"
    assert outcome.message


# -- results --------------------------------------------------------------------------------


async def test_a_result_that_cannot_be_written_is_a_failure_that_ran():
    """The model hears that the tool ran; the developer has the value."""
    registry = registry_with_good()
    ran = []
    thing = object()

    @registry.tool(effect="idempotent")
    async def bad() -> object:
        ran.append(True)
        return {"thing": thing}

    outcome = with_sibling(await Runner(registry).run(BOTH))

    assert (outcome.status, outcome.code, outcome.started) == ("failed", "unserialisable", True)
    assert outcome.value == {"thing": thing}
    assert outcome.message == "The tool ran, but its result cannot be written down as JSON."
    assert outcome.tool == "bad"
    assert outcome.attempts == 1
    assert ran == [True]


async def test_a_result_that_fails_while_it_is_written():
    """A property or serializer that raises anything at all costs its own call only."""
    from pydantic import BaseModel, model_serializer

    registry = registry_with_good()

    class Broken(BaseModel):
        @model_serializer
        def write(self) -> Any:
            raise KeyError("lost")

    @registry.tool
    async def bad() -> Any:
        return Broken()

    outcome = with_sibling(await Runner(registry).run(BOTH))

    assert (outcome.status, outcome.code, outcome.started) == ("failed", "unserialisable", True)


@pytest.mark.parametrize("kind", ["async generator", "generator"])
async def test_a_generator_is_never_a_string(kind: str):
    """What a generator tool yields is its result, or it is refused where it is declared; never its repr."""
    from toolrun import RegistrationError

    registry = ToolRegistry()

    def sync_steps():
        yield "half"
        yield "whole"

    async def async_steps():
        yield "half"
        yield "whole"

    try:
        registry.tool(name="steps")(sync_steps if kind == "generator" else async_steps)
    except RegistrationError:
        return
    (outcome,) = (await Runner(registry).run(response(("steps", "{}")))).outcomes

    assert outcome.status == "succeeded"
    assert "whole" in outcome.message
    assert "generator" not in outcome.message


# -- what is not the tool's body ------------------------------------------------------------


async def test_a_default_that_cannot_be_copied():
    """A default like a client or a lock is used as it is."""
    registry = registry_with_good()
    lock = threading.Lock()

    @registry.tool
    async def bad(guard: Any = lock) -> bool:
        return guard is lock

    bad_outcome = with_sibling(await Runner(registry).run(BOTH))

    assert bad_outcome.value is True


async def test_a_sentinel_default_is_itself():
    """`is MISSING` has to work inside the tool."""
    registry = registry_with_good()
    missing: Any = object()

    @registry.tool
    async def bad(n: int = missing) -> bool:
        return n is missing

    assert with_sibling(await Runner(registry).run(BOTH)).value is True


def run_to_its_end(runner: Runner, source: object, backend: str) -> Turn:
    """Run in a loop of its own: what escapes may be worse than a test runner can take."""
    escaped = ""
    try:
        return anyio.run(runner.run, source, backend=backend)
    except BaseException as error:  # noqa: BLE001  # see above
        escaped = repr(error)
    raise AssertionError(f"out of the run came {escaped}")


class Raising(Executor):
    """An executor with a fault of its own."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def execute(self, job: Job) -> Outcome:
        if job.tool == "good":
            return Succeeded(call=job.call, value=1, started=True, attempts=1, key=job.key)
        raise self._error


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("error", [CallConflict(key="k", tool="bad"), ConnectionError("broker gone"), SystemExit(2)])
def test_an_executor_that_raises_costs_one_call(backend: str, error: BaseException):
    """A conflict of keys, or a broker that is gone: an outcome, not the end of the turn."""
    turn = run_to_its_end(Runner(registry_with_bad(), executor=Raising(error)), BOTH, backend)

    outcome = with_sibling(turn)
    assert outcome.status != "succeeded"
    assert outcome.error is error
    assert len(turn.messages()) == 3


def registry_with_bad() -> ToolRegistry:
    registry = registry_with_good()

    @registry.tool
    async def bad() -> None:
        raise AssertionError("the executor does not run it")

    return registry


HOOK_ERRORS = {
    "ValueError": lambda: ValueError("oops"),
    "StopIteration": lambda: StopIteration(1),
    "CancelledError": asyncio.CancelledError,
    "SystemExit": lambda: SystemExit(1),
    "OddError": OddError,
    "TryAgain": TryAgain,
}


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("name", HOOK_ERRORS)
@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize("calls", [1, 2])
def test_a_hook_that_raises_is_passed_over(backend: str, name: str, kind: str, calls: int):
    """It is recorded, the next hook is asked, and nobody else notices."""
    from toolrun import Repaired

    registry = registry_with_good()
    error = HOOK_ERRORS[name]()

    @registry.tool
    async def bad(n: int) -> int:
        return n

    if kind == "async":

        @registry.repair
        async def broken(request: RepairRequest) -> None:
            raise error

    else:

        @registry.repair
        def broken(request: RepairRequest) -> None:
            raise error

    @registry.repair
    def helpful(request: RepairRequest) -> Repaired:
        return Repaired(arguments={"n": 4})

    source = response(("bad", "n is four"), ("good", "{}")) if calls == 2 else response(("bad", "n is four"))
    turn = run_to_its_end(Runner(registry), source, backend)

    assert [outcome.value for outcome in turn.outcomes] == [4, 1][:calls]
    failed, accepted = turn.outcomes[0].repairs
    assert (failed.hook, failed.accepted) == ("broken", False)
    # Inside a coroutine Python itself makes a RuntimeError of a StopIteration.
    assert ("RuntimeError" if name == "StopIteration" else name) in str(failed.refusal)
    assert (accepted.hook, accepted.accepted) == ("helpful", True)


async def test_a_hook_cannot_change_a_sibling():
    """What a hook does to another call in its request reaches neither that call's tool nor the history."""
    from toolrun import Tool

    registry = registry_with_good()
    given = []
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}

    def pay(amount: int) -> None:
        given.append(amount)

    registry.add(Tool.from_json_schema(name="pay", input_schema=schema, handler=pay))

    @registry.repair
    def vandal(request: RepairRequest) -> None:
        for sibling in request.siblings:
            sibling.arguments["amount"] = 1_000_000

    turn = await Runner(registry, max_concurrency=1).run(response(("good", "{broken"), ("pay", '{"amount": 5}')))

    assert given == [5]
    assert turn.outcomes[1].arguments == {"amount": 5}
    assert turn.calls[1].arguments == {"amount": 5}


async def test_a_validator_that_raises_costs_one_call():
    """A validator of the user's own may raise anything: pydantic lets most of it through."""
    from typing import Annotated

    from pydantic import AfterValidator

    registry = registry_with_good()
    ran = []

    def check(value: int) -> int:
        raise KeyError("table")

    async def bad(n: int) -> None:
        ran.append(n)

    bad.__annotations__["n"] = Annotated[int, AfterValidator(check)]
    registry.tool(bad)
    turn = await Runner(registry).run(response(("bad", '{"n": 1}'), ("good", "{}")))

    assert with_sibling(turn).status in ("refused", "failed")
    assert ran == []


# -- Ctrl-C ---------------------------------------------------------------------------------


INTERRUPTED = """
import sys, threading, anyio
from toolrun import Runner, ToolRegistry

backend, kind = sys.argv[1:]
registry = ToolRegistry()
waiting = threading.Event()

@registry.tool
async def sibling():
    try:
        waiting.set()
        await anyio.sleep_forever()
    finally:
        print("cleaned")

if kind == "async":
    @registry.tool
    async def interrupt():
        await anyio.lowlevel.checkpoint()
        raise KeyboardInterrupt
else:
    @registry.tool
    def interrupt(wait: bool):
        if wait:
            waiting.wait(5)
        raise KeyboardInterrupt

def response(*names):
    arguments = {"interrupt": '{"wait": %s}' % str("sibling" in names).lower()} if kind == "sync" else {}
    calls = [
        {"id": name, "type": "function", "function": {"name": name, "arguments": arguments.get(name, "{}")}}
        for name in names
    ]
    return {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}

for names in (["interrupt"], ["sibling", "interrupt"]):
    try:
        anyio.run(Runner(registry).run, response(*names), backend=backend)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_keyboard_interrupt_propagates(backend: str, kind: str):
    """The user wants out: siblings are cancelled and cleaned up, the interrupt comes out bare, the process ends."""
    command = [sys.executable, "-c", INTERRUPTED, backend, kind]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)

    assert ended.stdout.split() == ["interrupted", "cleaned", "interrupted"]
    assert ended.returncode == 0


def test_keyboard_interrupt_through_run_sync():
    """It comes out of the blocking call as well, and the block can be left."""
    registry = ToolRegistry()

    @registry.tool
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Runner(registry) as runner:
        runner.run_sync(response(("interrupt", "{}")))


async def test_the_classes_of_outcomes():
    """A failure is a `Failed`, a success a `Succeeded`: a `match` can tell."""
    registry = registry_with_good()

    @registry.tool
    async def bad() -> None:
        raise ValueError

    turn = await Runner(registry).run(BOTH)

    assert [type(outcome) for outcome in turn.outcomes] == [Failed, Succeeded]


# -- what is given up, and does not take it well --------------------------------------------


async def raising_when_given_up() -> None:
    try:
        await anyio.sleep_forever()
    finally:
        raise RuntimeError("cannot close the connection")


async def raising_in_a_group_when_given_up() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(raising_when_given_up)
        await anyio.sleep_forever()


GIVEN_UP = pytest.mark.parametrize("work", [raising_when_given_up, raising_in_a_group_when_given_up])


@GIVEN_UP
async def test_a_hook_that_fails_at_its_deadline(work: Any):
    """It is passed over like one that only hangs: the call is refused, and its sibling runs."""
    registry = ToolRegistry()

    @registry.tool
    async def double(n: int) -> int:
        return 2 * n

    @registry.repair
    async def hanging(request: RepairRequest) -> None:
        await work()

    runner = Runner(registry, repairs=(), budget=RepairBudget(seconds=0.05))
    turn = await runner.run(response(("double", '{"n": "1"}'), ("double", '{"n": 2}')))

    assert [(outcome.status, outcome.value) for outcome in turn.outcomes] == [("refused", None), ("succeeded", 4)]
    assert [record.refusal for record in turn.outcomes[0].repairs] == ["the hook did not answer within 0.05 s"]


@GIVEN_UP
async def test_a_result_store_that_fails_at_its_deadline(work: Any, monkeypatch: pytest.MonkeyPatch):
    """It costs the reference, and not the result."""
    monkeypatch.setattr("toolrun._runtime.writing.STORE_SECONDS", 0.05)
    registry = ToolRegistry()

    @registry.tool
    async def long() -> str:
        return "x" * 1000

    async def store(outcome: Outcome, text: str) -> str:
        await work()
        return "here"

    turn = await Runner(registry, result_store=store, result_limit=300).run(response(("long", "{}")))

    assert (turn.outcomes[0].status, len(turn.outcomes[0].message)) == ("succeeded", 300)
