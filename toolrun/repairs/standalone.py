"""Repair without a runner: one text, one tool, one answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

from toolrun._core.calls import CallStatus, ToolCall
from toolrun._core.exceptions import RegistrationError
from toolrun._core.flow import call_flow
from toolrun._core.json_text import parse_object
from toolrun._core.outcomes import Succeeded
from toolrun._core.policy import FinishPolicy, Text, evidence
from toolrun._core.records import ArgumentIssue
from toolrun._core.registry import ToolRegistry
from toolrun._core.repair import RepairBudget
from toolrun._core.steps import AskRepair, Execute, HookAnswer
from toolrun._core.tools import Tool
from toolrun.repairs._trail import trail

if TYPE_CHECKING:
    from toolrun._core.outcomes import Outcome
    from toolrun._core.records import Edit, Grade, JsonObject, RepairRecord
    from toolrun._core.repair import HookBinding

_SCHEMA_KEYS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
_POLICY: Final = FinishPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairedArguments:
    """What became of an argument text.

    Attributes:
        raw: The text as it was given.
        arguments: The arguments that fit the tool; None if it was refused.
        text: Their JSON text: the raw text if nothing was wrong with it; None if it was refused.
        grade: How far they are from the raw text; None if it was refused.
        refusal: Why it was refused, as a code; None if it was not.
        message: What to tell the model about the refusal; `""` if there is none.
        edits: What was changed, in order, with offsets in the raw text.
        records: The audit records of every strategy that answered.
    """

    raw: str
    arguments: JsonObject | None
    text: str | None
    grade: Grade | None
    refusal: str | None
    message: str
    edits: tuple[Edit, ...]
    records: tuple[RepairRecord, ...]


def repair_arguments(
    raw: str, tool: Tool | Mapping[str, object], *, finish_reason: str | None = "tool_calls"
) -> RepairedArguments:
    """Repair an argument text for a tool, with the built-in chain, exactly as a runner does.

    Args:
        raw: The text as the model wrote it, not trimmed.
        tool: The tool, or its definition as a dict in any provider's form. Pass a `Tool` if you call this often: a
            dict is read anew each time.
        finish_reason: How the model stopped, as sent. One that cuts (`"length"`) refuses before anything is tried.
            None if it is not known: what may have been cut is refused then.

    Returns:
        The arguments, or a refusal. Arguments that fit come back untouched, with the grade `exact`.

    Raises:
        RegistrationError: The dict is not the definition of a tool.

    Examples:
        >>> tool = {"name": "search", "parameters": {"properties": {"query": {"type": "string"}}, "required": ["query"]}}
        >>> found = repair_arguments("{'query': 'cats',}", tool)
        >>> found.arguments, found.grade.value, [edit.code for edit in found.edits]
        ({'query': 'cats'}, 'lossless', ['quotes', 'quotes', 'trailing_comma'])
        >>> repair_arguments('{"query": "ca', tool).refusal
        'truncated'
    """
    from toolrun.repairs import lossless  # noqa: PLC0415  # the package imports this module

    own = tool if isinstance(tool, Tool) else tool_from_definition(tool)
    outcome = _outcome(_call(raw, own.name, finish_reason), own, lossless())
    records = outcome.repairs
    if not isinstance(outcome, Succeeded):
        return RepairedArguments(
            raw=raw,
            arguments=None,
            text=None,
            grade=None,
            refusal=outcome.code,
            message=outcome.message,
            edits=(),
            records=records,
        )
    return RepairedArguments(
        raw=raw,
        arguments=outcome.arguments,
        text=cast("str", outcome.value),
        grade=outcome.grade,
        refusal=None,
        message="",
        edits=trail(raw, [record.edits for record in records if record.accepted]),
        records=records,
    )


def _call(raw: str, name: str, finish_reason: str | None) -> ToolCall:
    """The call as the finalizer would give it."""
    parsed: JsonObject | ArgumentIssue = parse_object(raw) if raw.strip() else {}
    issue = parsed if isinstance(parsed, ArgumentIssue) else None
    column = Text.OTHER if issue else Text.OBJECT if raw.strip() else Text.BLANK
    seen = evidence(_POLICY, reason=finish_reason, terminated=finish_reason is None, failed=False)
    verdict = seen.verdict(column)
    fit = verdict.status is CallStatus.OK
    return ToolCall(
        id="call",
        name=name,
        name_readings=(name,),
        raw_arguments=raw,
        arguments=parsed if fit and not isinstance(parsed, ArgumentIssue) else None,
        status=verdict.status,
        executable=_POLICY.runs(verdict, finish_reason),
        finish_reason=finish_reason,
        code=verdict.code or (issue.code if issue else None),
        issue=issue,
    )


def _outcome(call: ToolCall, tool: Tool, chain: tuple[HookBinding, ...]) -> Outcome:
    """Go the way of every call, with nothing to run at its end."""
    here = replace(tool, function=_nothing, approval=False)  # whoever runs the call in the end asks for approval
    flow = call_flow(call, registry=ToolRegistry([here]), chain=chain, budget=RepairBudget())
    answer: object = None
    try:
        while True:
            step = flow.send(answer)
            answer = None
            if isinstance(step, AskRepair):
                answer = HookAnswer(step.binding.hook(step.request))
            elif isinstance(step, Execute):
                answer = Succeeded(call=call, value=step.validated.text)
    except StopIteration as done:
        return cast("Outcome", done.value)


def tool_from_definition(definition: Mapping[str, object]) -> Tool:
    """Make a tool that runs nothing of a definition in any provider's form.

    Raises:
        RegistrationError: It is not the definition of a tool.
    """
    function = definition.get("function")
    inner = function if isinstance(function, Mapping) else definition
    schema = next((found for key in _SCHEMA_KEYS if isinstance(found := inner.get(key), Mapping)), None)
    name = inner.get("name")
    if schema is None or not isinstance(name, str):
        raise RegistrationError(f"a tool's definition has a name and one of {', '.join(_SCHEMA_KEYS)}")
    return Tool.from_json_schema(name=name, input_schema=dict(schema), handler=_nothing)


def _nothing(**arguments: object) -> None:
    """Stand in for the tool: nothing runs here."""
