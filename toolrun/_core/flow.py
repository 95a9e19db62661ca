"""`call_flow`: what happens to one call, as a generator that says what to do next.

It waits for nothing: a driver does what each step says and sends back what came of it. One flow for
every entry, so the same bytes get the same verdict everywhere.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from toolrun._core import results
from toolrun._core.approval import Result
from toolrun._core.approving import admitted, decided
from toolrun._core.calls import CallStatus, ToolDefinition, ValidatedCall
from toolrun._core.conservation import same
from toolrun._core.exceptions import (
    CallError,
    IncompleteCall,
    InvalidArguments,
    MalformedArguments,
    NoSuchTool,
    RepairRefused,
)
from toolrun._core.json_text import dump_once, dump_strictly, parse_object
from toolrun._core.outcomes import Failed, NotExecuted, Outcome, Refused, Succeeded, completed
from toolrun._core.records import ArgumentIssue, Grade, RepairRecord
from toolrun._core.repair import (
    Declined,
    Fault,
    Refuse,
    Renamed,
    Repaired,
    RepairRequest,
    admits,
    advanced,
    digest,
    grade_answer,
    worst,
)
from toolrun._core.steps import Answered, ApprovalAnswer, AskApproval, AskRepair, Flow, HookAnswer, Note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolrun._core.approval import Answer
    from toolrun._core.calls import ToolCall
    from toolrun._core.records import JsonObject
    from toolrun._core.registry import ToolRegistry
    from toolrun._core.repair import HookBinding, Reading, RepairBudget
    from toolrun._core.tools import Tool


@dataclass(slots=True)
class _Candidate:
    """A reading of the call: the raw one first, then as hooks change it."""

    text: str
    rewritten: bool = False
    renamed: str | None = None
    grades: tuple[Grade, ...] = ()


class _Judgement(NamedTuple):
    """What came of an answer: the record, and the new candidate with what it turns out to be, if it was accepted."""

    record: RepairRecord
    candidate: _Candidate | None = None
    finding: _Finding | None = None
    candidates: tuple[str, ...] = ()


class _Finding(NamedTuple):
    """What a candidate turns out to be: fit (`validated`), or unfit (`fault`, `error`, `code`, `message`)."""

    tool: Tool | None
    fault: Fault | None = None
    error: CallError | None = None
    code: str = ""
    message: str = ""
    validated: ValidatedCall | None = None
    issue: ArgumentIssue | None = None
    issues: tuple[ArgumentIssue, ...] = ()
    left_out: RepairRecord | None = None


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
    candidate = _Candidate(call.raw_arguments)
    finding = _examine(call, candidate, registry)
    records: list[RepairRecord] = []
    asked: set[tuple[int, Fault]] = set()
    memo: dict[str, object] = {}
    questions = 0
    readings = call.name_readings if len(call.name_readings) > 1 else ()
    seconds = 0.0
    while finding.fault is not None:
        binding = _next_hook(chain, finding, asked)
        left = None if budget.seconds is None else budget.seconds - seconds
        if binding is None or (left is not None and left <= 0):
            return _refused(call, finding, records)
        questions += not binding.builtin
        if questions > budget.hooks:
            return _refused(call, finding, records)
        asked.add((id(binding), finding.fault))
        request = _request(call, candidate, finding, registry, records, questions, left, calls, binding, readings)
        if binding.builtin:
            request = replace(request, memo=memo)
        answer: HookAnswer = yield AskRepair(binding, request)
        seconds += answer.seconds
        if answer.decision is None and answer.failure is None:
            continue
        if isinstance(answer.decision, Refuse):
            records.append(_record(binding, call, candidate, finding, answer, refusal=answer.decision.reason))
            yield Note(records[-1])
            error = RepairRefused(call=call, hook=binding.name, reason=answer.decision.reason)
            return Refused(
                call=call,
                code="refused",
                error=error,
                message=results.NOT_RUN + error.reason,
                tool=_name(finding),
                repairs=tuple(records),
            )
        judged = _judge(call, candidate, finding, registry, binding, answer)
        records.append(judged.record)
        yield Note(judged.record)
        readings = judged.candidates or readings
        if judged.candidate is not None and judged.finding is not None:
            candidate, finding = judged.candidate, judged.finding
    return (yield from _carry_out(finding, records))


def _carry_out(finding: _Finding, records: list[RepairRecord]) -> Flow:
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
    text = next((record.after for record in reversed(deferred.repairs) if record.accepted and record.after), None)
    candidate = _Candidate(
        text=call.raw_arguments if text is None else text,
        rewritten=text is not None,
        renamed=deferred.tool,
        grades=() if deferred.grade is None else (deferred.grade,),
    )
    finding = _examine(call, candidate, registry)
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


def reread(call: ToolCall, position: int) -> ToolCall:
    """Read the text of a call that comes from elsewhere again, so that its parsed arguments are not taken on trust.

    Args:
        call: As given.
        position: Its place among the calls that it was given with.
    """
    parsed: JsonObject | ArgumentIssue | None = call.arguments
    if call.status is CallStatus.OK and call.kind != "custom":
        parsed = parse_object(call.raw_arguments) if call.raw_arguments.strip() else {}
    if isinstance(parsed, ArgumentIssue):
        return replace(
            call, position=position, status=CallStatus.PARSE_ERROR, arguments=None, issue=parsed, code=parsed.code
        )
    if call.position == position and (
        parsed is None or parsed is call.arguments or _is_flat_and_same(parsed, call.arguments)
    ):
        return call
    return replace(call, position=position, arguments=parsed)


_SCALARS: Final = frozenset((str, int, float, bool, type(None)))


def _is_flat_and_same(parsed: JsonObject, given: object) -> bool:
    """Tell whether two objects without containers are equal, types included; others are dearer to compare than to copy."""
    return (
        type(given) is dict
        and len(given) == len(parsed)
        and all(
            type(value) in _SCALARS and type(given.get(key)) is type(value) and given[key] == value
            for key, value in parsed.items()
        )
    )


# -- what a candidate is --------------------------------------------------------------------


def _examine(call: ToolCall, candidate: _Candidate, registry: ToolRegistry) -> _Finding:
    """Identity, then the tool, then strict JSON, then the schema: the first that does not fit is the fault."""
    tool = registry.find(_names(call) if candidate.renamed is None else (candidate.renamed,))
    if call.status is CallStatus.INCOMPLETE and not candidate.rewritten:
        code = call.code or "truncated"
        return _Finding(
            tool, Fault.INCOMPLETE, IncompleteCall(call=call), code, results.refusal_text(code), None, call.issue
        )
    if call.code in ("nameless", "identity_conflict") and candidate.renamed is None:
        error = CallError(f"{call.name!r} ({call.id}): {call.code}; the call cannot be attributed to a tool", call=call)
        return _Finding(tool, Fault.IDENTITY, error, call.code, results.refusal_text(call.code))
    if tool is None:
        error = NoSuchTool(call=call, known=registry.names)
        return _Finding(
            None, Fault.UNKNOWN_TOOL, error, "unknown_tool", results.unknown_tool_text(call.name, registry.names)
        )
    text, parsed = _parse(call, candidate, tool)
    if isinstance(parsed, ArgumentIssue):
        # Free text is no JSON that could be mended.
        fault = Fault.NOT_OBJECT if parsed.code in ("not_object", "custom_text") else Fault.PARSE
        error = MalformedArguments(call=call, issue=parsed)
        return _Finding(tool, fault, error, parsed.code, results.syntax_text(parsed), None, parsed)
    bound, left_out = tool.validator.validate(text, parsed), None
    if isinstance(bound, tuple) and registry.strict:
        text, parsed, bound, left_out = _without_nulls(call, tool, text, parsed, bound)
    if not isinstance(bound, tuple):
        grade = worst(candidate.grades) if candidate.grades else Grade.EXACT
        validated = ValidatedCall(call=call, tool=tool.name, text=text, arguments=parsed, bound=bound, grade=grade)
        return _Finding(tool, validated=validated, left_out=left_out)
    error = InvalidArguments(call=call, tool=tool.name, issues=bound)
    return _Finding(tool, Fault.SCHEMA, error, "schema", results.schema_text(bound), None, None, bound)


def _without_nulls(
    call: ToolCall, tool: Tool, text: str, parsed: JsonObject, unfit: tuple[ArgumentIssue, ...]
) -> tuple[str, JsonObject, Mapping[str, object] | tuple[ArgumentIssue, ...], RepairRecord | None]:
    """Read what was written under a strict schema, in which null stands for what was left out.

    That is what the model was told to write, and so no repair that the tool's floor could bar; it is recorded.
    """
    from toolrun._core.dialects import leave_out_nulls  # noqa: PLC0415  # needed only under strict schemas

    arguments, paths = leave_out_nulls(tool.definition.input_schema, parsed)
    if not paths:
        return text, parsed, unfit, None
    written = dump_once(arguments)
    record = RepairRecord(
        hook="strict-null",
        fault=Fault.SCHEMA,
        accepted=True,
        grade=Grade.EXACT,
        raw=call.raw_arguments,
        raw_sha256=digest(call.raw_arguments),
        before=text,
        after=written,
        note=f"null under a strict schema, read as left out: {', '.join(paths)}",
    )
    return written, arguments, tool.validator.validate(written, arguments), record


def _names(call: ToolCall) -> tuple[str, ...]:
    """What the name may be read as; a call that was made by hand has no readings, only its name."""
    return call.name_readings or (() if call.name is None else (call.name,))


def _parse(call: ToolCall, candidate: _Candidate, tool: Tool) -> tuple[str, JsonObject | ArgumentIssue]:
    """What the finalizer parsed is not parsed again."""
    untouched = not candidate.rewritten
    if untouched and call.kind == "custom":
        parameter = tool.text_parameter
        if parameter is None:
            return "", ArgumentIssue(
                "custom_text",
                "the call is free text, and the tool does not have exactly one string parameter",
                "",
                0,
                1,
                1,
            )
        arguments: JsonObject = {parameter: candidate.text}
        return dump_once(arguments), arguments
    if untouched and call.arguments is not None:
        return (call.raw_arguments if call.raw_arguments.strip() else "{}"), call.arguments
    return candidate.text, parse_object(candidate.text)


# -- asking and judging ---------------------------------------------------------------------


def _next_hook(chain: tuple[HookBinding, ...], finding: _Finding, asked: set[tuple[int, Fault]]) -> HookBinding | None:
    """Each hook is asked once about each fault; after a change, from the beginning again."""
    fault = finding.fault
    if fault is None:
        return None
    return next(
        (binding for binding in chain if (id(binding), fault) not in asked and binding.answers(fault, _name(finding))),
        None,
    )


def _request(
    call: ToolCall,
    candidate: _Candidate,
    finding: _Finding,
    registry: ToolRegistry,
    records: list[RepairRecord],
    attempt: int,
    left: float | None,
    calls: tuple[ToolCall, ...],
    binding: HookBinding,
    readings: tuple[str, ...],
) -> RepairRequest:
    definition = finding.tool.definition if finding.tool else None
    if definition is not None and not binding.builtin:
        definition = ToolDefinition(
            name=definition.name,
            description=definition.description,
            input_schema=copy.deepcopy(definition.input_schema),
        )
    return RepairRequest(
        call=_copied(call, binding),
        fault=finding.fault or Fault.SCHEMA,
        text=candidate.text,
        issue=finding.issue,
        issues=finding.issues,
        definition=definition,
        known=registry.names,
        finish_reason=call.finish_reason,
        attempts=tuple(records),
        candidates=readings,
        attempt=attempt,
        seconds_left=left,
        siblings=tuple(_copied(other, binding) for other in calls if other.position != call.position),
    )


def _copied(call: ToolCall, binding: HookBinding) -> ToolCall:
    """A copy that a hook may change as it likes; built-in ones change nothing."""
    return call if binding.builtin else replace(call, arguments=copy.deepcopy(call.arguments), extra=dict(call.extra))


def _judge(
    call: ToolCall,
    candidate: _Candidate,
    finding: _Finding,
    registry: ToolRegistry,
    binding: HookBinding,
    answer: HookAnswer,
) -> _Judgement:
    """Parse and validate an answer as if the model had written it; keep it only if it helps and is admitted."""
    answer, fitting = _only_reading(call, candidate, registry, answer)
    changed, refusal = _apply(candidate, registry, binding, answer)
    if changed is None:
        record = _record(binding, call, candidate, finding, answer, refusal=refusal)
        return _Judgement(record, candidates=fitting)
    found = _examine(call, changed, registry)
    tool = found.tool
    barred = tool and next(
        (g for g in changed.grades if not admits(tool.repair, destructive=tool.destructive, grade=g)), None
    )
    if barred:
        refusal = f"the tool does not admit a {barred} repair"
    elif (
        finding.fault is not None
        and not advanced(finding.fault, found.fault)
        and not _builds(binding, candidate, changed)
    ):
        refusal = found.message or "the answer is still unfit"
    record = _record(binding, call, candidate, finding, answer, refusal=refusal, changed=changed)
    return _Judgement(record) if refusal else _Judgement(record, changed, found)


def _only_reading(
    call: ToolCall, candidate: _Candidate, registry: ToolRegistry, answer: HookAnswer
) -> tuple[HookAnswer, tuple[str, ...]]:
    """Prove that one of several readings fits, and no other with another value; else it is not known what was meant."""
    decision = answer.decision
    if not isinstance(decision, Repaired) or not decision.is_well_formed() or len(decision.readings) < 2:  # noqa: PLR2004
        return answer, ()
    fitting: list[tuple[Reading, JsonObject]] = []
    for reading in decision.readings:
        found = _examine(call, replace(candidate, text=reading.text, rewritten=True), registry)
        fits = found.validated
        if fits is not None and not any(same(fits.arguments, other) for _, other in fitting):
            fitting.append((reading, fits.arguments))
    if len(fitting) != 1:
        count = len(decision.readings)
        detail = (
            f"{len(fitting)} of {count} readings fit the schema"
            if fitting
            else f"none of {count} readings fits the schema"
        )
        declined = Declined("ambiguous" if fitting else "schema", detail)
        return answer._replace(decision=declined), tuple(reading.text for reading, _ in fitting)
    ((only, _),) = fitting
    return answer._replace(decision=replace(decision, text=only.text, arguments=None, edits=only.edits)), ()


def _apply(
    candidate: _Candidate, registry: ToolRegistry, binding: HookBinding, answer: HookAnswer
) -> tuple[_Candidate | None, str | None]:
    decision = answer.decision
    if answer.failure is not None:
        return None, answer.failure
    if isinstance(decision, Declined):
        return None, results.declined_text(decision.code, decision.detail)
    if isinstance(decision, Renamed):
        meant: object = decision.tool
        if not isinstance(meant, str) or meant not in registry:
            return None, f"no tool named {meant!r} is registered"
        # The ladder finds the only registered tool that can be meant; any other hook is a person's code.
        grade = Grade.SCHEMA_UNIQUE if binding.builtin else Grade.HOOK
        return replace(candidate, renamed=decision.tool, grades=(*candidate.grades, grade)), None
    if not isinstance(decision, Repaired) or not decision.is_well_formed():
        return (
            None,
            f"the hook answered {decision!r}; expected Repaired with arguments or text, Renamed, Refuse or None",
        )
    text = decision.text if decision.text is not None else dump_strictly(decision.arguments)
    if text is None:
        return None, "the hook's arguments cannot be written as strict JSON"
    grade = grade_answer(binding, candidate.text, text, decision)
    return replace(candidate, text=text, rewritten=True, grades=(*candidate.grades, grade)), None


def _builds(binding: HookBinding, before: _Candidate, after: _Candidate) -> bool:
    """A built-in step may leave the rest to the next one: what comes of all of them is what counts."""
    return binding.builtin and after.grades[-1] is not Grade.LOSSY and after.text != before.text


def _record(
    binding: HookBinding,
    call: ToolCall,
    candidate: _Candidate,
    finding: _Finding,
    answer: HookAnswer,
    *,
    refusal: str | None,
    changed: _Candidate | None = None,
) -> RepairRecord:
    decision = answer.decision
    renamed = decision.tool if isinstance(decision, Renamed) else None
    return RepairRecord(
        hook=binding.name,
        fault=str(finding.fault),
        accepted=refusal is None,
        grade=changed.grades[-1] if changed is not None else None,
        raw=call.raw_arguments,
        raw_sha256=digest(call.raw_arguments),
        before=candidate.text,
        after=changed.text if changed is not None else None,
        edits=decision.edits if isinstance(decision, Repaired) else (),
        renamed_from=call.name if renamed else None,
        renamed_to=renamed,
        refusal=refusal,
        code=decision.code if isinstance(decision, Declined) else None,
        readings=len(decision.readings) if isinstance(decision, Repaired) else 0,
        note=decision.note if isinstance(decision, Repaired) else "",
        seconds=answer.seconds,
    )


_OF_ONE_PLACE: Final = frozenset(("lossy_number", "schema", "unknown_key"))
"""What a built-in hook says of one place; where several do not fit, the list of all says more."""


def _refused(call: ToolCall, finding: _Finding, records: list[RepairRecord]) -> Refused:
    """Say what is wrong: in the words of the built-in hook that knows it best, or of what found the fault."""
    declined = [record for record in records if record.code is not None and record.fault == finding.fault]
    code, message = finding.code, finding.message
    if declined and (len(finding.issues) <= 1 or declined[-1].code not in _OF_ONE_PLACE):
        code, message = declined[-1].code or code, f"{results.NOT_RUN}{declined[-1].refusal}"
    return Refused(
        call=call,
        tool=_name(finding),
        error=finding.error,
        code=code,
        message=message,
        repairs=tuple(records),
    )


def _name(finding: _Finding) -> str | None:
    return finding.tool.name if finding.tool else None
