"""What is known about each call while a run goes on: one row a call, kept by its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolrun import (
    ArgumentsReplaced,
    AttemptEnded,
    AttemptStarted,
    CallCompleted,
    CallDelta,
    CallFinalized,
    CallPreview,
    CallStarted,
    CallStatus,
    ProgressReported,
    RepairAnswered,
    Succeeded,
    ToolError,
    TryAgain,
)
from toolrun._core.results import value_text
from toolrun.cli._records import error_line
from toolrun.cli._text import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolrun import Event, Outcome, Preview, ToolCall, Turn

_KEPT: Final = 2_000
"""Characters of arguments kept for showing; one line shows far fewer."""


@dataclass(slots=True)
class Row:
    """One call, as far as it has come.

    Attributes:
        position: Its place in the stream.
        id: As the provider sent it, or synthetic.
        tool: The name, None as long as none came.
        state: `streaming`, `malformed`, `incomplete`, `held`, `ready`, `repaired`, `running`, `retrying 2`, `done`, or
            how it ended.
        mark: What is to be remembered of the way to the end: a repair, the number of attempts.
        arguments: The first of the argument text, repaired where it was.
        size: The length of that text in all.
        detail: The result, or why it is where it is.
        finished: True once there is an outcome.
        preview: What the arguments show so far, if previews are wanted.
        progress: How often the tool told of its progress.
    """

    position: int
    id: str
    tool: str | None
    state: str = "streaming"
    mark: str = ""
    arguments: str = ""
    size: int = 0
    detail: str = ""
    finished: bool = False
    preview: Preview | None = None
    progress: int = 0


class Rows:
    """The rows of one run, in call order."""

    def __init__(self) -> None:
        """Begin with none."""
        self._rows: dict[int, Row] = {}

    def __iter__(self) -> Iterator[Row]:
        """Go through them in order of arrival."""
        return iter(self._rows.values())

    def apply(self, event: Event) -> Row | None:
        """Take an event; give the row that it changed, or None if it concerns none."""
        if isinstance(event, CallStarted) and event.choice == 0:
            state = "provider's" if event.provider_executed else "streaming"
            self._rows[event.position] = Row(event.position, event.id, event.name, state)
        position = getattr(event, "position", None)  # text has none, a diagnostic may have one
        row = None if position is None else self._rows.get(position)
        if row is not None:
            _change(row, event)
        return row

    def settle(self, turn: Turn) -> Iterator[Row]:
        """Take the outcomes that no event told of: those of calls that were cancelled."""
        for outcome in turn.outcomes:
            row = self._rows.get(outcome.call.position)
            if row is not None and not row.finished:
                _complete(row, outcome)
                yield row


def reason(outcome: Outcome) -> str:
    """What a developer wants to read: the result, or what went wrong."""
    if isinstance(outcome, Succeeded):
        return outcome.message
    if isinstance(outcome.error, ToolError | TryAgain) or not outcome.started or outcome.error is None:
        return outcome.message
    return error_line(outcome.error) or outcome.message


def ending(outcome: Outcome) -> str:
    """How a call ended, in a word or two."""
    return "done" if isinstance(outcome, Succeeded) else outcome.status.replace("_", " ")


def _change(row: Row, event: Event) -> None:
    match event:
        case CallDelta() | CallPreview() | ArgumentsReplaced():
            _grow(row, event)
        case CallFinalized(call=call):
            _finalize(row, call)
        case RepairAnswered(record=record):
            row.detail = record.note or f"by {record.hook}"
            if record.accepted:
                row.state = row.mark = "repaired"
                after = record.before if record.after is None else record.after
                row.arguments, row.size = after[:_KEPT], len(after)
                row.tool = record.renamed_to or row.tool
            else:
                row.detail = f"{record.hook}: {record.refusal}"
        case AttemptStarted(attempt=attempt):
            if attempt == 1:
                row.state, row.detail = "running", ""
            else:
                row.state = f"retrying {attempt}"
        case ProgressReported(value=value):
            row.detail = _told(value)
            row.progress += 1
        case AttemptEnded(attempt=attempt, error=error, retry_in=retry_in) if retry_in is not None:
            row.state = f"retrying {attempt + 1}"
            row.detail = error_line(error) or ""
        case CallCompleted(outcome=outcome):
            _complete(row, outcome)
        case _:
            pass


def _told(value: object) -> str:
    try:
        return value_text(value)
    except ValueError:
        return f"a {type(value).__name__}"


def _grow(row: Row, event: CallDelta | CallPreview | ArgumentsReplaced) -> None:
    match event:
        case CallDelta(text=text):
            row.arguments = (row.arguments + text)[:_KEPT] if len(row.arguments) < _KEPT else row.arguments
            row.size += len(text)
        case CallPreview(preview=preview):
            row.preview = preview
        case ArgumentsReplaced(after=after):
            row.arguments, row.size = after[:_KEPT], len(after)


def _finalize(row: Row, call: ToolCall) -> None:
    row.id, row.tool = call.id, call.name
    row.arguments, row.size = call.raw_arguments[:_KEPT], len(call.raw_arguments)
    if call.provider_executed:
        row.finished = True
        row.detail = "run by the provider"
    elif call.status is CallStatus.INCOMPLETE:
        row.state, row.detail = "incomplete", call.code or ""
    elif call.status is CallStatus.PARSE_ERROR:
        row.state = "malformed"
        row.detail = call.issue.describe() if call.issue else call.code or ""
    else:
        row.state, row.detail = ("ready", "") if call.executable else ("held", call.code or "")


def _complete(row: Row, outcome: Outcome) -> None:
    row.state = ending(outcome)
    row.detail = reason(outcome)
    row.finished = True
    if not row.mark and outcome.attempts > 1:
        row.mark = count(outcome.attempts, "attempt")
