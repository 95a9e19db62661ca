"""What a call, or a repaired reading of it, turns out to be: fit to run, or which fault it has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from toolrun._core import results
from toolrun._core.calls import CallStatus, ValidatedCall
from toolrun._core.exceptions import CallError, IncompleteCall, InvalidArguments, MalformedArguments, NoSuchTool
from toolrun._core.json_text import dump_once, parse_object
from toolrun._core.records import ArgumentIssue, Grade, RepairRecord
from toolrun._core.repair import Fault, digest, worst

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolrun._core.calls import ToolCall
    from toolrun._core.records import JsonObject
    from toolrun._core.registry import ToolRegistry
    from toolrun._core.tools import Tool


@dataclass(slots=True)
class Candidate:
    """A reading of the call: the raw one first, then as hooks change it."""

    text: str
    rewritten: bool = False
    renamed: str | None = None
    grades: tuple[Grade, ...] = ()


class Finding(NamedTuple):
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

    @property
    def tool_name(self) -> str | None:
        """The registered name; None if no tool was found."""
        return self.tool.name if self.tool else None


def examine(call: ToolCall, candidate: Candidate, registry: ToolRegistry) -> Finding:
    """Identity, then the tool, then strict JSON, then the schema: the first that does not fit is the fault."""
    tool = registry.find(_names(call) if candidate.renamed is None else (candidate.renamed,))
    if call.status is CallStatus.INCOMPLETE and not candidate.rewritten:
        code = call.code or "truncated"
        return Finding(
            tool, Fault.INCOMPLETE, IncompleteCall(call=call), code, results.refusal_text(code), None, call.issue
        )
    if call.code in ("nameless", "identity_conflict") and candidate.renamed is None:
        error = CallError(f"{call.name!r} ({call.id}): {call.code}; the call cannot be attributed to a tool", call=call)
        return Finding(tool, Fault.IDENTITY, error, call.code, results.refusal_text(call.code))
    if tool is None:
        error = NoSuchTool(call=call, known=registry.names)
        return Finding(
            None, Fault.UNKNOWN_TOOL, error, "unknown_tool", results.unknown_tool_text(call.name, registry.names)
        )
    text, parsed = _parse(call, candidate, tool)
    if isinstance(parsed, ArgumentIssue):
        # Free text is no JSON that could be mended.
        fault = Fault.NOT_OBJECT if parsed.code in ("not_object", "custom_text") else Fault.PARSE
        error = MalformedArguments(call=call, issue=parsed)
        return Finding(tool, fault, error, parsed.code, results.syntax_text(parsed), None, parsed)
    bound, left_out = tool.validator.validate(text, parsed), None
    if isinstance(bound, tuple) and registry.strict:
        text, parsed, bound, left_out = _without_nulls(call, tool, text, parsed, bound)
    if not isinstance(bound, tuple):
        grade = worst(candidate.grades) if candidate.grades else Grade.EXACT
        validated = ValidatedCall(call=call, tool=tool.name, text=text, arguments=parsed, bound=bound, grade=grade)
        return Finding(tool, validated=validated, left_out=left_out)
    error = InvalidArguments(call=call, tool=tool.name, issues=bound)
    return Finding(tool, Fault.SCHEMA, error, "schema", results.schema_text(bound), None, None, bound)


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


def _parse(call: ToolCall, candidate: Candidate, tool: Tool) -> tuple[str, JsonObject | ArgumentIssue]:
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


def reread(call: ToolCall, position: int) -> ToolCall:
    """Read the text of a call that comes from elsewhere again, so that its parsed arguments are not taken on trust.

    Args:
        call: As given.
        position: Its place among the calls that it was given with.
    """
    parsed: JsonObject | ArgumentIssue | None = None
    if call.status is CallStatus.OK and call.kind != "custom":
        parsed = parse_object(call.raw_arguments) if call.raw_arguments.strip() else {}
    if isinstance(parsed, ArgumentIssue):
        return replace(
            call, position=position, status=CallStatus.PARSE_ERROR, arguments=None, issue=parsed, code=parsed.code
        )
    if call.position == position and (
        parsed is call.arguments or (parsed is not None and _is_flat_and_same(parsed, call.arguments))
    ):
        return call
    return replace(call, position=position, arguments=parsed)


_SCALARS: Final = frozenset((str, int, float, bool, type(None)))


def _is_flat_and_same(parsed: JsonObject, given: object) -> bool:
    """Tell whether two objects without containers are equal, types included; others are dearer to compare than to copy."""
    if type(given) is not dict or len(given) != len(parsed):
        return False
    for key, value in parsed.items():
        other = given.get(key)
        if type(value) not in _SCALARS or type(other) is not type(value) or other != value:
            return False
    return True
