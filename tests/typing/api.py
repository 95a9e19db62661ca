"""The public API as its users' type checkers see it: checked by mypy and basedpyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never, assert_type

from toolrun import (
    ApprovalAnswered,
    ApprovalRequested,
    ArgumentsReplaced,
    AttemptEnded,
    AttemptStarted,
    CallCompleted,
    CallDelta,
    CallFinalized,
    CallPreview,
    CallRepeated,
    CallStarted,
    CallStatus,
    Cancelled,
    CitationAdded,
    Deferred,
    Denied,
    Diagnostic,
    Event,
    Failed,
    FinishPolicy,
    Grade,
    Interrupted,
    NotExecuted,
    Outcome,
    ProgressReported,
    Refuse,
    Refused,
    Renamed,
    RepairAnswered,
    RepairBudget,
    Repaired,
    RepairRecord,
    RepairRequest,
    Retry,
    Runner,
    RunStream,
    StreamEvent,
    StreamFinalizer,
    StreamInterrupted,
    Succeeded,
    TextDelta,
    TimedOut,
    Tool,
    ToolCall,
    ToolContext,
    ToolDefinition,
    ToolRegistry,
    TryAgain,
    Turn,
    TurnInvalid,
    UsageReported,
    afinalize,
    finalize,
    tool,
)
from toolrun.abc import Decode, Executor, HookBinding, Job, RepairHook, Response, Sink, ToolResult, Wire
from toolrun.executors import InlineExecutor, ThreadExecutor
from toolrun.repairs import lossless
from toolrun.wires import WIRES, AnthropicMessages, OpenAIChat, get_wire

registry = ToolRegistry()


# -- tools: decorators keep what they decorate ------------------------------------------------


@registry.tool
def bare(n: int, *, twice: bool = False) -> str:
    return str(n * 2 if twice else n)


@registry.tool(timeout=5, effect="idempotent", retry=Retry(on=(ConnectionError, TimeoutError)), destructive=True)
async def with_options(city: str) -> dict[str, float]:
    return {city: 1.0}


assert_type(bare(1, twice=True), str)
bare("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the signature is kept
assert_type(Tool.from_function(bare, name="other", repair="never"), Tool)
assert_type(registry["bare"], Tool)
assert_type(registry.definitions("openai-chat"), list[Any])
assert_type(registry.tool_definitions, Sequence[ToolDefinition])
assert_type(registry.names, tuple[str, ...])


async def awaited() -> None:
    assert_type(await with_options("Oslo"), dict[str, float])


def refused_options() -> None:
    registry.tool(timeout="soon")(bare)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    registry.tool(effect="often")(bare)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    registry.tool(eventually=True)(bare)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    Retry()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # there is no default for *on*


def busy(error: Exception) -> bool:
    return isinstance(error, ConnectionError)


policies = [Retry(on=ConnectionError), Retry(on=(OSError, TryAgain)), Retry(on=busy, attempts=5, timeout=None)]


# -- the context carries the type of the dependencies -----------------------------------------


@dataclass
class Deps:
    user: str


@registry.tool
def with_context(ctx: ToolContext[Deps], question: str) -> str:
    assert_type(ctx.deps, Deps)
    assert_type(ctx.attempt, int)
    return f"{ctx.deps.user}: {question}"


@registry.tool
def without_dependencies(ctx: ToolContext) -> None:
    assert_type(ctx.deps, None)


def wrong_dependencies(ctx: ToolContext[Deps]) -> None:
    str(ctx.deps.name)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # Deps has a user


# -- marks, models and registries of registries -----------------------------------------------


class Account:
    @tool
    def balance(self, currency: str = "nok") -> float:
        return len(currency)

    @tool(name="deposit", tags=["money"], strict=False)
    async def add(self, amount: int) -> int:
        return amount


async def marked() -> None:
    assert_type(Account().balance("sek"), float)
    assert_type(await Account().add(1), int)
    Account().balance(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the signature is kept


registry.add_methods(Account(), prefix="my_")
tool(color="red")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
assert_type(Tool.from_model(Deps, lambda deps: deps.user, name="user"), Tool)
assert_type(Tool.from_model(Deps, None), Tool)
assert_type(registry | registry.prefixed("p_"), ToolRegistry)
assert_type(registry.filtered(lambda found: found.kind == "coroutine", tags="money"), ToolRegistry)
assert_type(registry.renamed({"bare": "naked"}).prepared(Deps(user="Kari")), ToolRegistry)


@registry.prepare
def visible(deps: Deps, tools: Sequence[Tool]) -> list[Tool]:
    return [found for found in tools if deps.user or "safe" in found.tags]


assert_type(visible(Deps(user="Kari"), []), list[Tool])
registry.prepare(bare)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]  # it returns no tools


# -- repair hooks, sync and async -------------------------------------------------------------


@registry.repair
def plain_hook(request: RepairRequest) -> Repaired | Refuse | None:
    assert_type(request.definition, ToolDefinition | None)
    return Repaired(text=request.text) if request.issues else Refuse("no")


@registry.repair(on=["parse", "schema"], tools="bare", first=True)
async def async_hook(request: RepairRequest) -> Renamed | None:
    return Renamed(request.known[0]) if request.known else None


class HookObject:
    def __call__(self, request: RepairRequest, /) -> Repaired:
        return Repaired(arguments={"n": len(request.text)}, grade="lossy")


hooks: list[RepairHook] = [plain_hook, async_hook, HookObject(), lambda _request: None]
assert_type(lossless(), tuple[HookBinding, ...])


def not_a_hook(text: str) -> str:
    return text


wrong: RepairHook = not_a_hook  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
registry.repair(not_a_hook)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


# -- finalizing -------------------------------------------------------------------------------

assert_type(
    finalize([{"choices": []}], wire="openai-chat", policy=FinishPolicy(run_held={"length"})), tuple[ToolCall, ...]
)


async def finalizing(events: AsyncIterator[bytes]) -> None:
    calls = await afinalize(events, wire=AnthropicMessages(), end="eof")
    assert_type(calls, tuple[ToolCall, ...])
    assert_type(calls[0].status, CallStatus)
    assert_type(calls[0].arguments, dict[str, object] | None)
    finalizer = StreamFinalizer("auto")
    assert_type(finalizer.feed(b"data: {}\n\n"), Sequence[StreamEvent])
    assert_type(finalizer.close(), Sequence[StreamEvent])
    assert_type(finalizer.wire, Wire | None)


# -- running ----------------------------------------------------------------------------------


def describe(outcome: Outcome) -> str:
    assert_type(outcome.repairs, tuple[RepairRecord, ...])
    assert_type(outcome.grade, Grade | None)
    match outcome:
        case Succeeded(value=value):
            assert_type(value, object)
            return f"{value}"
        case Failed(error=error) | TimedOut(error=error):
            assert_type(error, BaseException | None)
            return repr(error)
        case Refused() | NotExecuted():
            return outcome.message
        case Denied() | Deferred() | Cancelled() | Interrupted():
            return outcome.status
        case _:
            assert_never(outcome)


def forgets_one(outcome: Succeeded | Failed) -> str:
    match outcome:
        case Succeeded():
            return "yes"
        case _:
            assert_never(outcome)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def place(event: Event) -> int | None:
    match event:
        case CallStarted() | CallDelta() | CallPreview() | ArgumentsReplaced() | CallFinalized():
            return event.position
        case (
            RepairAnswered()
            | ApprovalRequested()
            | ApprovalAnswered()
            | AttemptStarted()
            | ProgressReported()
            | AttemptEnded()
            | CallRepeated()
            | CallCompleted()
        ):
            return event.position
        case Diagnostic(position=position):
            return position
        case TextDelta() | CitationAdded() | UsageReported() | TurnInvalid():
            return None
        case _:
            assert_never(event)


async def running(source: AsyncIterator[Mapping[str, Any]]) -> None:
    async with Runner(registry, repairs=[plain_hook, *lossless()], budget=RepairBudget(seconds=5)) as runner:
        assert_type(runner, Runner)
        turn = await runner.run(source, deps=Deps(user="Kari"), wire=OpenAIChat())
        assert_type(turn, Turn)
        assert_type(turn.outcomes, tuple[Outcome, ...])
        assert_type(turn.messages(), list[Any])
        async with runner.stream(source) as run:
            assert_type(run, RunStream)
            async for event in run:
                assert_type(event, Event)
            assert_type(run.turn, Turn)
        assert_type(await runner.execute(turn.calls, wire="openai-chat"), Turn)


def running_without_a_loop() -> None:
    with Runner(registry, executor=ThreadExecutor()) as runner:
        assert_type(runner, Runner)
        try:
            assert_type(runner.run_sync(b"data: {}"), Turn)
        except StreamInterrupted as error:
            if isinstance(error.turn, Turn):
                assert_type(error.turn.outcomes, tuple[Outcome, ...])


# -- seams ------------------------------------------------------------------------------------


class MyExecutor(Executor):
    async def execute(self, job: Job) -> Outcome:
        assert_type(job.timeout, float | None)
        return await InlineExecutor().execute(job)


class MyWire:
    name = "mine"
    dialect = "openai-chat"

    def recognises(self, event: Mapping[str, object]) -> bool:
        return "mine" in event

    def decoder(self, sink: Sink) -> Decode:
        return lambda event: sink.tool_delta(0, None, None, "bare", str(event))

    def synthetic_id(self, digest: str) -> str:
        return digest[:32]

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[Any]:
        return [{"text": response.text, "calls": len(calls)}]

    def result_messages(self, results: Sequence[ToolResult]) -> list[Any]:
        return [{"id": result.call.id, "text": result.text} for result in results]

    def continues(self, finish_reason: str | None) -> bool:
        return finish_reason == "more"


wires: list[Wire] = [MyWire(), OpenAIChat(), AnthropicMessages(), *WIRES.values()]
assert_type(get_wire("openai-chat"), Wire)
runners: Callable[..., Runner] = Runner
Runner(registry, executor=MyExecutor(), max_concurrency=4, timeout=None, on_stream_error="return")
Runner(registry, on_stream_error="ignore")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
