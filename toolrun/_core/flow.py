"""`call_flow`: what happens to one call, as a generator that says what to do next.

It waits for nothing: a driver does what each step says and sends back what came of it. One flow for
every entry, so the same bytes get the same verdict everywhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from toolrun._core import results
from toolrun._core.approval import Result
from toolrun._core.approving import admitted, decided
from toolrun._core.calls import CallStatus
from toolrun._core.examining import Candidate, Finding, examine, reread
from toolrun._core.exceptions import RepairRefused
from toolrun._core.judging import judge, make_record, make_request, next_hook
from toolrun._core.outcomes import Failed, Interrupted, NotExecuted, Outcome, Refused, Succeeded, completed
from toolrun._core.repair import Refuse
from toolrun._core.steps import Answered, ApprovalAnswer, AskApproval, AskRepair, Flow, HookAnswer, Note

if TYPE_CHECKING:
    from toolrun._core.approval import Answer
    from toolrun._core.calls import ToolCall
    from toolrun._core.records import Grade, RepairRecord
    from toolrun._core.registry import ToolRegistry
    from toolrun._core.repair import Fault, HookBinding, RepairBudget


def call_flow(
    call: ToolCall,
    *,
    registry: ToolRegistry,
    chain: tuple[HookBinding, ...],
    budget: RepairBudget,
    calls: tuple[ToolCall, ...] = (),
) -> Flow:
    """Take one client call from the stream to its outcome.

    Args:
        call: A finalized call of choice 0 that the provider does not run itself.
        registry: The tools.
        chain: The repair hooks, in the order of asking.
        budget: What repair may cost.
        calls: The client calls of the response, this one among them.
    """
    if call.status is CallStatus.OK and not call.executable:
        return NotExecuted(call=call, code=call.code, message=results.refusal_text(call.code or ""))
    candidate = Candidate(call.raw_arguments)
    finding = examine(call, candidate, registry)
    records: list[RepairRecord] = []
    asked: set[tuple[int, Fault]] = set()
    memo: dict[str, object] = {}
    questions = 0
    readings = call.name_readings if len(call.name_readings) > 1 else ()
    seconds = 0.0
    while finding.fault is not None:
        binding = next_hook(chain, finding, asked)
        left = None if budget.seconds is None else budget.seconds - seconds
        if binding is None or (left is not None and left <= 0):
            return _refused(call, finding, records)
        questions += not binding.builtin
        if questions > budget.hooks:
            return _refused(call, finding, records)
        asked.add((id(binding), finding.fault))
        request = make_request(call, candidate, finding, registry, records, questions, left, calls, binding, readings)
        if binding.builtin:
            request = replace(request, memo=memo)
        answer: HookAnswer = yield AskRepair(binding, request)
        seconds += answer.seconds
        if answer.decision is None and answer.failure is None:
            continue
        if isinstance(answer.decision, Refuse):
            records.append(make_record(binding, call, candidate, finding, answer, refusal=answer.decision.reason))
            yield Note(records[-1])
            error = RepairRefused(call=call, hook=binding.name, reason=answer.decision.reason)
            return Refused(
                call=call,
                code="refused",
                error=error,
                message=results.NOT_RUN + error.reason,
                tool=finding.tool_name,
                repairs=tuple(records),
            )
        judged = judge(call, candidate, finding, registry, binding, answer)
        records.append(judged.record)
        yield Note(judged.record)
        readings = judged.candidates or readings
        if judged.candidate is not None and judged.finding is not None:
            candidate, finding = judged.candidate, judged.finding
    return (yield from _carry_out(finding, records))


def _carry_out(finding: Finding, records: list[RepairRecord]) -> Flow:
    """Run what is fit, once it is approved."""
    if finding.validated is None or finding.tool is None:
        raise AssertionError("a call without a fault is validated")
    if finding.left_out is not None:
        records.append(finding.left_out)
        yield Note(finding.left_out)
    validated = finding.validated._replace(repairs=tuple(records)) if records else finding.validated
    if finding.tool.approval is False:
        return (yield from admitted(validated, finding.tool))
    approval: ApprovalAnswer = yield AskApproval(validated, finding.tool)
    return (yield from decided(validated, finding.tool, approval))


def resumed_flow(deferred: Outcome, answer: Answer, *, registry: ToolRegistry) -> Flow:
    """Take a deferred call on from where it stopped, with the answer that it waited for.

    What was asked about is validated again, and nothing else is run: no repair hook is asked, and no approver.

    Args:
        deferred: The call's outcome so far.
        answer: What was decided, or done elsewhere.
        registry: The tools.
    """
    call = reread(deferred.call, deferred.call.position)
    rewritten = (record for record in reversed(deferred.repairs) if record.accepted and record.after != record.before)
    text = next((record.after for record in rewritten), None)  # a name that was mended leaves free text free text
    candidate = Candidate(
        text=call.raw_arguments if text is None else text,
        rewritten=text is not None,
        renamed=deferred.tool,
        grades=() if deferred.grade is None else (deferred.grade,),
    )
    finding = examine(call, candidate, registry)
    if finding.validated is None or finding.tool is None:
        return _refused(call, finding, list(deferred.repairs))
    validated = finding.validated._replace(repairs=deferred.repairs)
    if not isinstance(answer, Result):
        return (yield from decided(validated, finding.tool, ApprovalAnswer(answer)))
    if answer.error is None:
        elsewhere: Outcome = Succeeded(call=call, value=answer.value, started=True)
    else:
        elsewhere = Failed(call=call, code="elsewhere", message=answer.error, value=answer.value, started=True)
    elsewhere = yield Answered(elsewhere, validated, finding.tool)
    return completed(elsewhere, validated)


_OF_ONE_PLACE: Final = frozenset(("lossy_number", "schema", "unknown_key"))
"""What a built-in hook says of one place; where several do not fit, the list of all says more."""


def _refused(call: ToolCall, finding: Finding, records: list[RepairRecord]) -> Refused:
    """Say what is wrong: in the words of the built-in hook that knows it best, or of what found the fault."""
    declined = [record for record in records if record.code is not None and record.fault == finding.fault]
    code, message = finding.code, finding.message
    if declined and (len(finding.issues) <= 1 or declined[-1].code not in _OF_ONE_PLACE):
        code, message = declined[-1].code or code, f"{results.NOT_RUN}{declined[-1].refusal}"
    return Refused(
        call=call,
        tool=finding.tool_name,
        error=finding.error,
        code=code,
        message=message,
        repairs=tuple(records),
    )


def restarted_flow(
    call: ToolCall,
    *,
    tool: str,
    text: str,
    grade: Grade,
    repairs: tuple[RepairRecord, ...],
    registry: ToolRegistry,
) -> Flow:
    """Take a call on that began in a process that has ended, with exactly the arguments that it began with.

    No repair hook is asked, and no approver. If the tool is gone, or takes other arguments now, it is interrupted.

    Args:
        call: The call as the model wrote it.
        tool: The registered name that it ran under.
        text: The argument text that it ran with.
        grade: How that relates to what the model wrote.
        repairs: The audit records of the hooks that answered.
        registry: The tools.
    """
    candidate = Candidate(text=text, rewritten=True, renamed=tool, grades=(grade,))
    finding = examine(call, candidate, registry)
    if finding.validated is None or finding.tool is None:
        return Interrupted(
            call=call,
            tool=tool,
            code=finding.code,
            error=finding.error,
            message=results.INTERRUPTED,
            repairs=repairs,
            grade=grade,
            started=True,
        )
    return (yield from admitted(finding.validated._replace(repairs=repairs), finding.tool))
