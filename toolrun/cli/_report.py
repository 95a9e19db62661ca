"""What is shown of a turn when it is over: the text, each result whole, what was odd, and a count."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from toolrun import Succeeded
from toolrun.cli._rows import ending, reason
from toolrun.cli._text import count, one_line, printable, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolrun import Diagnostic, Outcome, RepairRecord, ToolCall, Turn

_SHOWN_TEXT: Final = 200
_NOTE_WIDTH: Final = 78
_MOST_NOTES: Final = 5
_INDENT: Final = 4


class Line(NamedTuple):
    """One paragraph of the report; it is printable as it is.

    Attributes:
        text: May have several lines.
        style: A word for what it is: `title`, `good`, `bad`, `plain`, `dim`.
        indent: In characters.
    """

    text: str
    style: str = "plain"
    indent: int = 0


def report(turn: Turn) -> Iterator[Line]:
    """Write the report of a turn."""
    if said := turn.text.strip():
        yield Line(f"Text: {shorten(one_line(said), _SHOWN_TEXT)}\n", "dim")
    outcomes = {outcome.call.position: outcome for outcome in turn.outcomes}
    for call in turn.calls:
        outcome = outcomes.get(call.position)
        if outcome is None:
            yield Line(f"{call.position:>2}  {_name(call)}  run by the provider", "dim")
        else:
            yield from _result(outcome)
    if turn.diagnostics:
        notes = [_note(odd) for odd in turn.diagnostics[:_MOST_NOTES]]
        if more := len(turn.diagnostics) - len(notes):
            notes.append(f"and {count(more, 'other note')}")
        yield Line("\n".join(["", *notes] if turn.calls else notes), "dim")
    yield Line(f"\n{_summary(turn)}" if turn.calls else _summary(turn), "title")


def messages(turn: Turn) -> str:
    """The messages that go back to the model, as JSON over several lines."""
    return printable(json.dumps(turn.messages(), indent=2, ensure_ascii=False))


def _result(outcome: Outcome) -> Iterator[Line]:
    good = isinstance(outcome, Succeeded)
    how = ending(outcome) + (f" ({outcome.code})" if outcome.code else "")
    if outcome.attempts > 1:
        how += f" after {count(outcome.attempts, 'attempt')}"
    yield Line(
        f"{outcome.call.position:>2}  {one_line(outcome.tool or _name(outcome.call))}  {how}", "good" if good else "bad"
    )
    for repair in outcome.repairs:
        yield Line(_repair(repair), "dim", _INDENT)
    yield Line(printable(reason(outcome)) or "(nothing)", "plain", _INDENT)


def _repair(repair: RepairRecord) -> str:
    if not repair.accepted:
        return f"not repaired by {one_line(repair.hook)}: {one_line(repair.refusal or '')}"
    grade = f" ({repair.grade.value})" if repair.grade else ""
    what = f": {one_line(repair.note)}" if repair.note else ""
    if repair.renamed_to:
        what = f": {one_line(repair.renamed_from or '(no name)')} is {one_line(repair.renamed_to)}"
    if repair.edits:
        what += f", {count(len(repair.edits), 'edit')}"
    return f"repaired by {one_line(repair.hook)}{grade}{what}"


def _note(odd: Diagnostic) -> str:
    line = "" if odd.line is None else f", line {odd.line}"
    return shorten(one_line(f"Note: {odd.code}{line}: {odd.message}"), _NOTE_WIDTH)


def _summary(turn: Turn) -> str:
    if not turn.calls:
        return "no calls"
    counts = Counter(outcome.status.replace("_", " ") for outcome in turn.outcomes)
    if elsewhere := len(turn.calls) - len(turn.outcomes):
        counts["run by the provider"] = elsewhere
    told = ", ".join(f"{number} {status}" for status, number in counts.items())
    return f"{count(len(turn.calls), 'call')}: {told}"


def _name(call: ToolCall) -> str:
    return one_line(call.name) if call.name else "(no name)"
