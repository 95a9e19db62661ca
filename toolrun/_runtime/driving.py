"""`Driver`: does what the flow of each call says, for one turn."""

from __future__ import annotations

import copy
import functools
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, cast

from toolrun._core.approval import ApprovalRequest
from toolrun._core.context import ToolContext
from toolrun._core.events import ApprovalAnswered, ApprovalRequested, AttemptEnded, RepairAnswered
from toolrun._core.repair import digest
from toolrun._core.seams import Invocation, Job
from toolrun._core.steps import Answered, AskApproval, AskRepair, Execute, Note
from toolrun._runtime.approvals import ask_approver
from toolrun._runtime.asking import ask_hook
from toolrun._runtime.attempt import run_attempts
from toolrun._runtime.journaling import Execution
from toolrun._runtime.limits import passed
from toolrun._runtime.ordering import Ordering
from toolrun._runtime.progress import Reporter
from toolrun._runtime.writing import written_down

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from toolrun._core.approval import Approve, Defer, Deny
    from toolrun._core.calls import ToolCall, ValidatedCall
    from toolrun._core.events import Event
    from toolrun._core.outcomes import Outcome
    from toolrun._core.registry import ToolRegistry
    from toolrun._core.repair import HookBinding, RepairRequest
    from toolrun._core.seams import CallEntry
    from toolrun._core.steps import ApprovalAnswer, Flow, HookAnswer
    from toolrun._core.tools import Tool
    from toolrun._runtime.attempt import Emit
    from toolrun._runtime.journaling import TurnRecord
    from toolrun._runtime.settings import Settings

    Around: TypeAlias = Callable[[ValidatedCall, str], AbstractContextManager[None]]
    """Gives the context that a call with this key runs in."""


class Driver:
    """Drives the flows of one turn.

    Attributes:
        started: The last job of every call that was started, by position; of one that was started by an earlier
            process, and not here, its entry.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        registry: ToolRegistry,
        deps: object,
        turn: str,
        emit: Emit | None,
        around: Around | None = None,
        record: TurnRecord | None = None,
    ) -> None:
        self.started: dict[int, Job | CallEntry] = {}
        self._settings = settings
        self._registry = registry
        self._deps = deps
        self._turn = turn
        self._emit = emit
        self._around = around
        self._record = record
        self._reports: dict[int, Reporter] = {}
        self._ordering: Ordering | None = None

    def begin(self, calls: Sequence[ToolCall]) -> None:
        """Get ready for calls, in the order in which they are to begin."""
        if self._registry.orders_calls:
            self._ordering = Ordering(calls, self._registry)

    async def drive(self, flow: Flow, call: ToolCall) -> Outcome:
        """Do what a flow says until it ends with the call's outcome.

        Raises:
            Exception: A fault in here, or in a seam.
        """
        try:
            step = next(flow)
            while True:
                match step:
                    case Execute(validated, tool):
                        step = flow.send(await self._admit(validated, tool))
                    case AskRepair(binding, request):
                        step = flow.send(await self._ask_repair(binding, request))
                    case Note(record):
                        self._tell(RepairAnswered(call.position, record))
                        step = flow.send(None)
                    case AskApproval(validated, tool):
                        step = flow.send(await self._ask_approval(validated, tool))
                    case Answered(outcome, validated, tool):
                        step = flow.send(await self._written(outcome, validated, tool))
        except StopIteration as done:
            return cast("Outcome", done.value)
        finally:
            if self._ordering is not None:
                self._ordering.end(call.position)

    def _ask_repair(self, binding: HookBinding, request: RepairRequest) -> Awaitable[HookAnswer]:
        if self._ordering is not None:
            self._ordering.doubt(request.call.position)
        if not binding.builtin:
            request = replace(request, key=self._key(request.call), deps=self._deps)
        return ask_hook(binding, request)

    async def _ask_approval(self, validated: ValidatedCall, tool: Tool) -> ApprovalAnswer:
        if self._ordering is not None:
            self._ordering.claim(validated, tool)
        approver = self._settings.approver if tool.approval is True else tool.approval
        call = validated.call
        request = ApprovalRequest(
            call=replace(call, arguments=copy.deepcopy(call.arguments), extra=dict(call.extra)),
            tool=tool.name,
            arguments=copy.deepcopy(validated.arguments),
            digest=digest(validated.text),
            key=self._key(call),
            grade=validated.grade,
            repairs=validated.repairs,
            deps=self._deps,
        )
        self._tell(ApprovalRequested(call.position, request))
        answer = await ask_approver(approver or None, request)
        decision = cast("Approve | Deny | Defer | None", answer.decision)
        self._tell(ApprovalAnswered(call.position, decision, answer.failure))
        return answer

    def _key(self, call: ToolCall) -> str:
        return f"{self._turn}:{call.position}"

    async def _admit(self, validated: ValidatedCall, tool: Tool) -> Outcome:
        """Wait until the call may run beside the others, and run it."""
        if self._ordering is not None:
            await self._ordering.wait(validated, tool)
        gates = self._settings.gates.of(tool)
        if not gates and self._around is None:
            return await self._execute(validated, tool)
        async with AsyncExitStack() as stack:
            await passed(stack, gates)
            if self._around is not None:
                stack.enter_context(self._around(validated, self._key(validated.call)))
            return await self._execute(validated, tool)

    async def _execute(self, validated: ValidatedCall, tool: Tool) -> Outcome:
        call = validated.call
        key = self._key(call)

        def make_job(attempt: int) -> Job:
            # The tool may have changed its values; the same arguments again means: as they were validated.
            bound = validated.bound if attempt == 1 else _bound_again(validated, tool)
            report = self._reporter(call, tool, attempt)
            context = None
            if tool.signature.context is not None:
                context = ToolContext(
                    deps=self._deps,
                    call_id=call.id,
                    tool=tool.name,
                    key=key,
                    attempt=attempt,
                    report=report,
                )
            args, kwargs = tool.bind(bound, context)
            self.started[call.position] = job = Job(
                key=key,
                tool=tool.name,
                call=call,
                arguments=validated.text,
                effect=tool.effect,
                attempt=attempt,
                attempts=tool.retry.attempts if tool.retry else 1,
                timeout=self._settings.timeout if tool.timeout == "default" else tool.timeout,
                invocation=Invocation(tool.runnable(report), args, kwargs, tool.is_async),
                definition=tool.definition,
            )
            return job

        def emit(event: Event) -> None:
            if isinstance(event, AttemptEnded):
                self._end_report(call)  # what the attempt tells from now on is late
            self._tell(event)

        told = None if self._emit is None else emit
        executor = self._settings.executor_for(tool)
        try:
            if self._record is not None:
                write = functools.partial(self._written, validated=validated, tool=tool)
                return await self._record.run(Execution(validated, tool, executor, make_job, told, write))
            outcome = await run_attempts(make_job, tool, executor, told)
        finally:
            self._end_report(call)
        return await self._written(outcome, validated, tool)

    def _written(self, outcome: Outcome, validated: ValidatedCall, tool: Tool) -> Awaitable[Outcome]:
        limit = self._settings.result_limit if tool.result_limit == "default" else tool.result_limit
        return written_down(outcome, validated, limit=limit, store=self._settings.result_store)

    def _reporter(self, call: ToolCall, tool: Tool, attempt: int) -> Reporter | None:
        """What the tool tells of its progress with; None if it has nothing to tell with."""
        if tool.signature.context is None and (self._emit is None or tool.kind in ("function", "coroutine")):
            return None
        self._end_report(call)
        self._reports[call.position] = report = Reporter(self._emit, call.position, tool.name, attempt)
        return report

    def _end_report(self, call: ToolCall) -> None:
        if self._reports and (report := self._reports.pop(call.position, None)) is not None:
            report.close()

    def _tell(self, event: Event) -> None:
        if self._emit is not None:
            self._emit(event)


def _bound_again(validated: ValidatedCall, tool: Tool) -> Mapping[str, object]:
    return cast("Mapping[str, object]", tool.validator.validate(validated.text, validated.arguments))
