"""What a call comes to: its text and the evidence of its end, by the table in `policy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolrun._core.calls import CallStatus, ToolCall
from toolrun._core.json_text import parse_object
from toolrun._core.policy import Evidence, Text, Verdict
from toolrun._core.records import ArgumentIssue

if TYPE_CHECKING:
    from toolrun._core.policy import FinishPolicy
    from toolrun._core.records import JsonObject
    from toolrun._core.slots import Slot


def whole_text(slot: Slot) -> tuple[str, str]:
    """The argument text, or the placeholder of a call without any; and what of it listeners did not get yet."""
    raw = slot.text()
    if raw.strip() or not slot.placeholder:
        return raw, slot.held_half
    given = slot.placeholder if isinstance(slot.placeholder, str) else slot.placeholder()
    return given, given


def conclude(
    slot: Slot,
    raw: str,
    seen: Evidence,
    policy: FinishPolicy,
    reason: str | None,
    *,
    beside: bool = False,
) -> ToolCall:
    """Decide on a call.

    Args:
        slot: What came of it.
        raw: Its whole text, as `whole_text` gives it.
        seen: How its response ended, or that it is proven whole.
        policy: Says which held calls run.
        reason: The finish reason, as sent.
        beside: Argument text came in the same choice that belongs to no named call.
    """
    arguments, issue, column = _read(slot, raw, seen)
    verdict = _overrule(slot, seen.verdict(column), column, beside=beside)
    ok = verdict.status is CallStatus.OK
    return ToolCall(
        id=slot.shown_id if slot.wire_id is None or slot.synthetic_id else slot.wire_id,
        name=slot.name,
        raw_arguments=raw,
        arguments=arguments if ok else None,
        text=raw if slot.kind == "custom" else None,
        status=verdict.status,
        executable=(
            policy.runs(verdict, reason) and slot.name is not None and not slot.provider_executed and slot.choice == 0
        ),
        provider_executed=slot.provider_executed,
        finish_reason=reason,
        code=verdict.code or (issue.code if issue and not ok else None),
        issue=None if ok else issue,
        position=slot.position,
        choice=slot.choice,
        index=slot.index if slot.index is None or slot.index >= 0 else -1 - slot.index,
        name_readings=slot.readings,
        kind=slot.kind,
        synthetic_id=slot.wire_id is None or slot.synthetic_id,
        extra=slot.extra,
    )


def _read(slot: Slot, raw: str, seen: Evidence) -> tuple[JsonObject | None, ArgumentIssue | None, Text]:
    if slot.kind == "custom":
        # Free text has no end of its own: under a finish that cuts, nothing proves that it is whole.
        return None, None, Text.OTHER if seen is Evidence.HELD else Text.OBJECT
    if not raw.strip():
        return {}, None, Text.BLANK
    parsed = parse_object(raw)
    if isinstance(parsed, ArgumentIssue):
        return None, parsed, Text.OTHER
    return parsed, None, Text.OBJECT


def _overrule(slot: Slot, verdict: Verdict, column: Text, *, beside: bool) -> Verdict:
    """What no finish can heal: limits, blank arguments beside a nameless call, conflicts, no name."""
    if slot.dropped:
        return Verdict(CallStatus.INCOMPLETE, "limit")
    if verdict.status is CallStatus.INCOMPLETE:
        return verdict
    if slot.name is None:
        return Verdict(CallStatus.PARSE_ERROR, "nameless")
    if slot.conflict:
        return Verdict(CallStatus.PARSE_ERROR, "identity_conflict")
    if beside and column is Text.BLANK:
        return Verdict(CallStatus.INCOMPLETE, "beside_nameless")
    return verdict
