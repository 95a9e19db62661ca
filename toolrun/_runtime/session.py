"""`TurnSession`: one turn from its source to its outcomes; the same for every entry of the runner."""

from __future__ import annotations

import inspect
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

from toolrun._core import results
from toolrun._core.context import ToolContext
from toolrun._core.events import CallCompleted, CallFinalized, Diagnostic, RepairAnswered
from toolrun._core.exceptions import StreamInterrupted
from toolrun._core.flow import AskRepair, Execute, HookAnswer, Note, call_flow, reread
from toolrun._core.outcomes import Cancelled, Failed
from toolrun._core.response import CALL, Part, Response
from toolrun._core.seams import Invocation, Job
from toolrun._runtime.attempt import run_attempts
from toolrun._runtime.early import EarlyStarts
from toolrun._runtime.pool import run_pool
from toolrun._runtime.reading import read
from toolrun._runtime.turn import Turn
from toolrun._runtime.writing import written_down
from toolrun._stream import StreamFinalizer, kind_of
from toolrun.executors._attempt import ending, propagate
from toolrun.wires import get_wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolrun._core.calls import ToolCall, ValidatedCall
    from toolrun._core.events import Event
    from toolrun._core.outcomes import Outcome
    from toolrun._core.repair import HookBinding, RepairDecision, RepairRequest
    from toolrun._core.seams import Wire
    from toolrun._core.tools import Tool
    from toolrun._runtime.attempt import Listener
    from toolrun._runtime.settings import Settings
    from toolrun._stream import EndOfStream


class TurnSession:
    """The state of one turn. Everything in it is keyed by position, never by a provider's id."""

    def __init__(
        self,
        settings: Settings,
        *,
        deps: object,
        wire: str | Wire,
        turn_id: str,
        emit: Listener | None = None,
    ) -> None:
        self._settings = settings
        self._registry = settings.registry.prepared(deps)
        self._deps = deps
        self._turn_id = turn_id
        self._emit = emit
        self._named_wire = wire
        self._stream: StreamFinalizer | None = None
        self._calls: tuple[ToolCall, ...] = ()
        self._outcomes: dict[int, Outcome] = {}
        self._started: dict[int, Job] = {}
        self._diagnostics: list[Diagnostic] = []
        self._response: Response | None = None
        self._early: EarlyStarts | None = None

    @property
    def _finalizer(self) -> StreamFinalizer:
        """Made when it is needed: calls that come from elsewhere need none."""
        if self._stream is None:
            self._stream = StreamFinalizer(
                self._named_wire,
                policy=self._settings.policy,
                deltas=self._emit is not None,
                eager=None if self._early is None else self._is_eager,
                run_id=self._settings.run_id,
                turn_id=self._turn_id,
            )
        return self._stream

    # -- entries ----------------------------------------------------------------------------

    async def consume(self, source: object, *, end: EndOfStream) -> Turn:
        """Read a source, then run its calls.

        Raises:
            StreamInterrupted: It raised before a finish, and the settings say to raise.
            UnknownWire: Nothing that came was recognised.
            TypeError: It is not a source.
        """
        kind_of(source)
        if self._settings.starts_early(self._registry):
            self._early = EarlyStarts(self._work_early, self._settings.max_concurrency)
        async with self._early or nullcontext():
            cause = await self._read(source, end)
            interrupted = cause is not None and not self._finalizer.ended
            if not interrupted:
                await self._run(self._calls, self._settings.chain)
        if cause is None:
            self._finalizer.require_wire()
        if interrupted:
            # Nothing more starts, and no hook may make it start.
            await self._run([_barred(call) for call in self._calls], ())
        self._answer_repetitions(self._calls)
        if interrupted and self._settings.on_stream_error == "raise":
            raise StreamInterrupted(
                f"the stream raised {type(cause).__name__} before its finish: {cause}", turn=self.turn()
            ) from cause
        return self.turn()

    async def execute(self, calls: Sequence[ToolCall]) -> Turn:
        """Run calls that come from elsewhere, the same way. Their text is what counts: it is read again."""
        self._calls = tuple(reread(call, position) for position, call in enumerate(calls))
        self._response = Response(parts=tuple(Part(CALL, {}, call.position) for call in self._calls))
        await self._run(self._calls, self._settings.chain)
        self._answer_repetitions(self._calls)
        return self.turn()

    def turn(self) -> Turn:
        """The turn as it stands: calls without an outcome so far count as cancelled."""
        calls = tuple(call for call in self._calls if call.choice == 0)
        outcomes = tuple(
            self._outcomes.get(call.position) or self._cancelled(call) for call in calls if not call.provider_executed
        )
        return Turn(
            run_id=self._settings.run_id,
            turn_id=self._turn_id,
            wire=self._wire,
            response=self._finalizer.response if self._response is None else self._response,
            calls=calls,
            outcomes=outcomes,
            diagnostics=tuple(self._diagnostics),
        )

    @property
    def _wire(self) -> Wire | None:
        if self._stream is not None:
            return self._stream.wire
        return None if self._named_wire == "auto" else get_wire(self._named_wire)

    def abandon(self) -> None:
        """Close what is still open after a cancellation, so that `turn` can be read."""
        if not self._calls:
            self._close("eof")

    # -- reading ----------------------------------------------------------------------------

    async def _read(self, source: object, end: EndOfStream) -> Exception | None:
        """Read a source to its end; what it raised, if it did."""
        cause: Exception | None = None
        try:
            await read(
                source,
                self._feed,
                self._emit if self._early is None else self._start_early,
                close=self._settings.close_stream,
            )
        except Exception as error:  # noqa: BLE001  # whatever a source raises ends it
            cause, end = error, "error"
        self._close(end)
        return cause

    def _feed(self, event: object) -> Sequence[Event]:
        events = self._finalizer.feed(event)
        for item in events:
            if isinstance(item, Diagnostic):
                self._diagnostics.append(item)
        return events

    def _close(self, end: EndOfStream) -> None:
        events = self._finalizer.close(end)
        self._calls = self._finalizer.calls
        for event in events:
            if isinstance(event, Diagnostic):
                self._diagnostics.append(event)
            self._tell(event)

    # -- running ----------------------------------------------------------------------------

    def _is_eager(self, name: str) -> bool:
        tool = self._registry.find((name,))
        return tool is not None and (tool.eager or self._settings.start == "eager")

    def _start_early(self, event: Event) -> None:
        """Tell an event of the stream; a call that was finalized on proof starts."""
        self._tell(event)
        if isinstance(event, CallFinalized) and self._early is not None:
            self._early.start(event.call)

    async def _work_early(self, call: ToolCall) -> None:
        self._complete(call, await self._outcome(call, (call,), self._settings.chain))

    async def _run(self, calls: Sequence[ToolCall], chain: tuple[HookBinding, ...]) -> None:
        """Every client call of choice 0 gets its outcome; those of other choices and of the provider have none.

        The same call given twice runs once. What has started on proof runs already.
        """
        mine = _of_the_client(calls)
        first: dict[object, ToolCall] = {}
        for call in mine:
            first.setdefault(_identity(call), call)
        early = self._early

        async def work(call: ToolCall) -> None:
            if early is None:
                self._complete(call, await self._outcome(call, mine, chain))
                return
            async with early.slots:
                self._complete(call, await self._outcome(call, mine, chain))

        started = () if early is None else early.positions
        queue = tuple(call for call in first.values() if call.position not in started)
        await run_pool(queue, work, workers=self._settings.max_concurrency)

    def _answer_repetitions(self, calls: Sequence[ToolCall]) -> None:
        """Answer the same call given twice (the provider's id, name and arguments) with what came of the first.

        Without an id of the provider's, nothing tells a repetition from a second call.
        """
        first: dict[object, ToolCall] = {}
        for call in _of_the_client(calls):
            same = first.setdefault(_identity(call), call)
            if call.position not in self._outcomes:
                self._complete(call, replace(self._outcomes[same.position], call=call))

    def _complete(self, call: ToolCall, outcome: Outcome) -> None:
        self._outcomes[call.position] = outcome
        if self._emit is not None:
            self._emit(CallCompleted(call.position, outcome))

    async def _outcome(self, call: ToolCall, calls: tuple[ToolCall, ...], chain: tuple[HookBinding, ...]) -> Outcome:
        try:
            return await self._drive(call, calls, chain)
        except Exception as error:  # noqa: BLE001  # a fault in here, or in a seam, costs one call
            started = call.position in self._started
            message = results.error_text(error, may_have_run=started)
            return Failed(call=call, error=error, code="internal", message=message, started=started)

    async def _drive(self, call: ToolCall, calls: tuple[ToolCall, ...], chain: tuple[HookBinding, ...]) -> Outcome:
        settings = self._settings
        flow = call_flow(call, registry=self._registry, chain=chain, budget=settings.budget, calls=calls)
        try:
            step = next(flow)
            while True:
                match step:
                    case Execute(validated, tool):
                        step = flow.send(await self._execute(validated, tool))
                    case AskRepair(binding, request):
                        step = flow.send(await self._ask(binding, request))
                    case Note(record):
                        self._tell(RepairAnswered(call.position, record))
                        step = flow.send(None)
        except StopIteration as done:
            return cast("Outcome", done.value)

    async def _ask(self, binding: HookBinding, request: RepairRequest) -> HookAnswer:
        """Ask a hook. One that raises or takes too long is an answer too."""
        began = time.monotonic()
        decision: RepairDecision | None = None
        failure: str | None = None
        with anyio.move_on_after(request.seconds_left) as scope:
            try:
                decision = await _call_hook(binding, request)
            except BaseException as error:  # a hook cannot break a run
                if scope.cancel_called:
                    raise
                propagate(error)
                failure = f"the hook raised {type(error).__name__}: {error}"
        if scope.cancelled_caught:
            failure = f"the hook did not answer within {request.seconds_left:g} s"
        return HookAnswer(decision, failure, time.monotonic() - began)

    async def _execute(self, validated: ValidatedCall, tool: Tool) -> Outcome:
        executor = self._settings.executor_for(tool)
        call = validated.call
        key = f"{self._settings.run_id}:{self._turn_id}:{call.position}"

        def make_job(attempt: int) -> Job:
            # The tool may have changed its values; the same arguments again means: as they were validated.
            bound = validated.bound if attempt == 1 else tool.validator.validate(validated.text, validated.arguments)
            context = None
            if tool.signature.context is not None:
                context = ToolContext(deps=self._deps, call_id=call.id, tool=tool.name, key=key, attempt=attempt)
            args, kwargs = tool.bind(cast("Mapping[str, object]", bound), context)
            self._started[call.position] = job = Job(
                key=key,
                tool=tool.name,
                call=call,
                arguments=validated.text,
                effect=tool.effect,
                attempt=attempt,
                attempts=tool.retry.attempts if tool.retry else 1,
                timeout=self._settings.timeout if tool.timeout == "default" else tool.timeout,
                invocation=Invocation(tool.runnable, args, kwargs, tool.is_async),
            )
            return job

        outcome = await run_attempts(make_job, tool, executor, self._emit)
        limit = self._settings.result_limit if tool.result_limit == "default" else tool.result_limit
        return await written_down(outcome, validated, limit=limit, store=self._settings.result_store)

    def _cancelled(self, call: ToolCall) -> Cancelled:
        job = self._started.get(call.position)
        doubt = "It had not started." if job is None else "It had started and may have had an effect."
        return Cancelled(
            call=call,
            tool=job.tool if job else None,
            code="cancelled",
            message=f"The run was cancelled. {doubt}",
            started=job is not None,
            key=job.key if job else "",
        )

    def _tell(self, event: Event) -> None:
        if self._emit is not None:
            self._emit(event)


def _of_the_client(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    return tuple(call for call in calls if call.choice == 0 and not call.provider_executed)


def _barred(call: ToolCall) -> ToolCall:
    return replace(call, executable=False, code=call.code or "stream_error")


def _identity(call: ToolCall) -> object:
    return call.position if call.synthetic_id else (call.id, call.name, call.raw_arguments)


async def _call_hook(binding: HookBinding, request: RepairRequest) -> Any:
    """Built-in hooks are quick and run in place, async ones too; any other gets a worker thread."""
    answer: Any
    if binding.builtin or _is_async(binding.hook):
        answer = binding.hook(request)
    else:
        answer = (await anyio.to_thread.run_sync(ending, binding.hook, request, abandon_on_cancel=True)).result()
    return await answer if inspect.isawaitable(answer) else answer


def _is_async(hook: object) -> bool:
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(getattr(hook, "__call__", None))  # noqa: B004
