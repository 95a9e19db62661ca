"""The part of a call's flow after validation: what was decided about it, and its execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolrun._core import results
from toolrun._core.approval import Approve, Defer, Deny
from toolrun._core.exceptions import ApprovalError
from toolrun._core.json_text import dump_strictly, parse_object
from toolrun._core.outcomes import Deferred, Denied, completed
from toolrun._core.records import ArgumentIssue, Grade, RepairRecord
from toolrun._core.repair import digest
from toolrun._core.steps import Execute, Note

if TYPE_CHECKING:
    from toolrun._core.calls import ValidatedCall
    from toolrun._core.outcomes import Outcome
    from toolrun._core.records import JsonObject
    from toolrun._core.steps import ApprovalAnswer, Flow
    from toolrun._core.tools import Tool


def decided(validated: ValidatedCall, tool: Tool, answer: ApprovalAnswer) -> Flow:
    """Do what was decided; what is no decision denies the call."""
    call, decision = validated.call, answer.decision
    if isinstance(decision, Defer):
        return completed(Deferred(call=call, code="approval"), validated)
    if isinstance(decision, Approve) and decision.arguments is not None:
        edited = _edited(validated, tool, decision.arguments)
        yield Note(edited.repairs[-1])
        if not edited.repairs[-1].accepted:
            return _denied(edited, "unfit_edit", edited.repairs[-1].refusal or "")
        validated = edited
    elif isinstance(decision, Deny):
        return _denied(validated, "denied", results.denied_text(decision.reason))
    elif not isinstance(decision, Approve):
        failure = answer.failure or f"the approver answered {decision!r}; expected Approve, Deny or Defer"
        return _denied(validated, "approver", results.denied_text(""), ApprovalError(failure, call=call))
    return (yield from admitted(validated, tool))


def admitted(validated: ValidatedCall, tool: Tool) -> Flow:
    """Run the call; one of a tool that is only declared waits for its result from elsewhere."""
    if tool.function is None:
        return completed(Deferred(call=validated.call, code="declared_only"), validated)
    outcome: Outcome = yield Execute(validated, tool)
    return completed(outcome, validated)


def _edited(validated: ValidatedCall, tool: Tool, arguments: JsonObject) -> ValidatedCall:
    """The call with the arguments of whoever approved it, checked like any others; the last record says how."""
    text = dump_strictly(arguments)
    parsed = ArgumentIssue("syntax", "they cannot be written as JSON") if text is None else parse_object(text)
    bound = (parsed,) if isinstance(parsed, ArgumentIssue) else tool.validator.validate(text or "", parsed)
    record = RepairRecord(
        hook="approver",
        fault="approval",
        accepted=not isinstance(bound, tuple),
        grade=Grade.HOOK,
        raw=validated.call.raw_arguments,
        raw_sha256=digest(validated.call.raw_arguments),
        before=validated.text,
        after=text,
        refusal=results.schema_text(bound) if isinstance(bound, tuple) else None,
    )
    validated = validated._replace(repairs=(*validated.repairs, record))
    if isinstance(bound, tuple) or isinstance(parsed, ArgumentIssue) or text is None:
        return validated
    return validated._replace(text=text, arguments=parsed, bound=bound, grade=Grade.HOOK)


def _denied(validated: ValidatedCall, code: str, message: str, error: BaseException | None = None) -> Denied:
    return Denied(
        call=validated.call, tool=validated.tool, code=code, message=message, error=error, repairs=validated.repairs
    )
