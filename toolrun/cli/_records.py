"""Calls and outcomes as JSON objects, for `--json`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolrun import Succeeded
from toolrun._core.results import value_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolrun import Outcome, RepairRecord, ToolCall, Turn
    from toolrun._core.records import JsonObject

PROVIDER_EXECUTED = "provider_executed"
"""Stands for the status of a call that the provider ran itself: it has no outcome here."""


def call_record(call: ToolCall) -> JsonObject:
    """A finalized call."""
    record: JsonObject = {
        "position": call.position,
        "id": call.id,
        "name": call.name,
        "status": call.status.value,
        "code": call.code,
        "executable": call.executable,
        "provider_executed": call.provider_executed,
        "raw_arguments": call.raw_arguments,
        "arguments": call.arguments,
        "text": call.text,
        "finish_reason": call.finish_reason,
        "choice": call.choice,
        "index": call.index,
    }
    if call.issue is not None:
        issue = call.issue
        record["issue"] = {
            "code": issue.code,
            "message": issue.message,
            "offset": issue.offset,
            "line": issue.line,
            "column": issue.column,
        }
    return record


def turn_records(turn: Turn) -> Iterator[JsonObject]:
    """One object a call of the turn, in call order."""
    outcomes = {outcome.call.position: outcome for outcome in turn.outcomes}
    for call in turn.calls:
        outcome = outcomes.get(call.position)
        yield _provider_record(call) if outcome is None else outcome_record(outcome)


def outcome_record(outcome: Outcome) -> JsonObject:
    """What became of a call: `value` if it succeeded, else `message`, which the model is told, and `error`."""
    call = outcome.call
    record: JsonObject = {
        "position": call.position,
        "id": call.id,
        "tool": outcome.tool,
        "name": call.name,
        "status": outcome.status,
        "code": outcome.code,
    }
    if isinstance(outcome, Succeeded):
        record["value"] = _plain(outcome.value)
    else:
        record["message"] = outcome.message
        record["error"] = error_line(outcome.error)
    return record | {
        "attempts": outcome.attempts,
        "started": outcome.started,
        "grade": outcome.grade and outcome.grade.value,
        "repairs": [_repair_record(repair) for repair in outcome.repairs],
        "raw_arguments": call.raw_arguments,
        "arguments": outcome.arguments,
    }


def error_line(error: BaseException | None) -> str | None:
    """An exception's type and text, for the developer."""
    if error is None:
        return None
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _provider_record(call: ToolCall) -> JsonObject:
    return {
        "position": call.position,
        "id": call.id,
        "tool": None,
        "name": call.name,
        "status": PROVIDER_EXECUTED,
        "code": call.code,
        "attempts": 0,
        "started": False,
        "grade": None,
        "repairs": [],
        "raw_arguments": call.raw_arguments,
        "arguments": call.arguments,
    }


def _repair_record(repair: RepairRecord) -> JsonObject:
    return {
        "hook": repair.hook,
        "fault": repair.fault,
        "accepted": repair.accepted,
        "grade": repair.grade and repair.grade.value,
        "edits": [edit._asdict() for edit in repair.edits],
        "renamed_to": repair.renamed_to,
        "refusal": repair.refusal,
        "note": repair.note,
    }


def _plain(value: object) -> object:
    """The value as JSON has it: written as the model is told, and read again."""
    return value if isinstance(value, str) else json.loads(value_text(value))
