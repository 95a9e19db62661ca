"""What things are called: by the conventions for generative AI where they have a word, under `toolrun.` where not.

The conventions: https://github.com/open-telemetry/semantic-conventions-genai, in development as of November 2026.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

import toolrun
from toolrun import (
    ApprovalAnswered,
    ApprovalRequested,
    Approve,
    AttemptEnded,
    AttemptStarted,
    CallFinalized,
    Defer,
    Deny,
    RepairAnswered,
    RepairRecord,
    Result,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolrun.abc import Outcome

Attributes: TypeAlias = dict[str, str | int | float | bool]

OPERATION: Final = "gen_ai.operation.name"
TOOL: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
DESCRIPTION: Final = "gen_ai.tool.description"
CALL_ID: Final = "gen_ai.tool.call.id"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"
AGENT: Final = "gen_ai.agent.name"
ERROR: Final = "error.type"

EXECUTE: Final = "execute_tool"
FUNCTION: Final = "function"
UNKNOWN: Final = "_OTHER"
"""Stands for every name that no tool of the turn has: a model can invent any number of them."""

KEY: Final = "toolrun.call.key"
NAME: Final = "toolrun.call.name"
GRADE: Final = "toolrun.call.grade"
ATTEMPTS: Final = "toolrun.call.attempts"
STATUS: Final = "toolrun.outcome.status"
CODE: Final = "toolrun.outcome.code"
FAULT: Final = "toolrun.repair.fault"
REPAIR_GRADE: Final = "toolrun.repair.grade"
ACCEPTED: Final = "toolrun.repair.accepted"
ATTEMPT: Final = "toolrun.attempt.number"
ATTEMPT_STATUS: Final = "toolrun.attempt.status"

ERRORS: Final = frozenset(("failed", "refused", "timed_out", "cancelled", "interrupted"))
"""The statuses that make a span an error. Denied, deferred and held calls went as somebody decided."""


def error_type(outcome: Outcome) -> str | None:
    """The class of what the tool raised, else the outcome's code; None if the outcome is no error."""
    if outcome.status not in ERRORS:
        return None
    if outcome.code == "raised" and outcome.error is not None:
        return class_name(outcome.error)
    return outcome.code or outcome.status


def class_name(error: BaseException) -> str:
    """The full name of an exception's class, as users import it.

    Examples:
        >>> import json, toolrun
        >>> [class_name(error) for error in (OSError(), json.JSONDecodeError("", "", 0), toolrun.ToolError(""))]
        ['OSError', 'json.decoder.JSONDecodeError', 'toolrun.ToolError']
    """
    kind = type(error)
    if getattr(toolrun, kind.__name__, None) is kind:
        return f"toolrun.{kind.__name__}"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def exportable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair: exporters cannot encode those.

    Examples:
        >>> exportable(chr(0xD83D) + "!")
        '?!'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


# -- what happened to a call: events of its span ----------------------------------------------

Noted: TypeAlias = CallFinalized | RepairAnswered | ApprovalRequested | ApprovalAnswered | AttemptStarted | AttemptEnded
"""The events of a turn that become events of a span."""


def note_of(event: Noted) -> tuple[str, Attributes]:
    """The name of the span event that an event becomes, and its attributes. Nothing in them is a user's data."""
    match event:
        case CallFinalized(call=call):
            return "toolrun.call.finalized", _with(
                {"toolrun.call.status": call.status.value}, {"toolrun.call.code": call.code}
            )
        case RepairAnswered(record=record):
            return "toolrun.repair", {"toolrun.repair.hook": record.hook, **said_of(record)}
        case ApprovalRequested():
            return "toolrun.approval.requested", {}
        case ApprovalAnswered(answer=answer):
            decision = next((word for kind, word in _DECISIONS.items() if isinstance(answer, kind)), "failed")
            edited = isinstance(answer, Approve) and answer.arguments is not None
            return "toolrun.approval.answered", {
                "toolrun.approval.decision": decision,
                "toolrun.approval.edited": edited,
            }
        case AttemptStarted(attempt=attempt):
            return "toolrun.attempt.started", {ATTEMPT: attempt}
        case AttemptEnded(attempt=attempt, status=status, error=raised, retry_in=retry_in):
            said: Attributes = {ATTEMPT: attempt, ATTEMPT_STATUS: status}
            error = None if raised is None else class_name(raised)
            return "toolrun.attempt.ended", _with(said, {ERROR: error, "toolrun.attempt.retry_in": retry_in})
        case _:
            assert_never(event)


_DECISIONS: Final = {Approve: "approved", Deny: "denied", Defer: "deferred", Result: "executed_elsewhere"}


def said_of(record: RepairRecord) -> Attributes:
    """What metrics say of an answer of a repair hook."""
    grade = None if record.grade is None else record.grade.value
    return _with({FAULT: record.fault, ACCEPTED: record.accepted}, {REPAIR_GRADE: grade})


def _with(attributes: Attributes, optional: Mapping[str, str | float | None]) -> Attributes:
    """Attributes, and those of the others that there are."""
    return attributes | {name: value for name, value in optional.items() if value is not None}
