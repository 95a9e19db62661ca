"""What is shown while a run goes on: lines, or nothing until there is JSON to print; `_live` has the table."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar, Final

from toolrun.cli._records import turn_records
from toolrun.cli._report import messages, report
from toolrun.cli._text import json_line, one_line, shorten

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, TextIO

    from toolrun import Turn
    from toolrun._core.records import JsonObject
    from toolrun.cli._rows import Row, Rows

_DETAIL: Final = 100


class View(AbstractContextManager["View"]):
    """Shows one run; a context manager, left before `finish`.

    Args:
        path: The stream's path, as given.
        title: The stream's name if there are several, else None.
        rows: Kept up to date by the one who runs.
    """

    previews: ClassVar[bool] = False
    """Whether it shows previews: nobody else makes them."""

    def __init__(self, path: str, title: str | None, rows: Rows) -> None:
        """See the class."""
        self.path = path
        self.title = title
        self.rows = rows

    def __enter__(self) -> Self:
        """Begin to show."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""

    def frame(self) -> None:
        """Draw, if it is drawn; called ten times a second."""

    def changed(self, row: Row) -> None:
        """Show that a row changed."""

    def finish(self, turn: Turn, *, show_messages: bool) -> None:
        """Show what became of the turn."""


class LinesView(View):
    """A line whenever a call gets into another state, then the report. No colours; fit for a pipe."""

    def __enter__(self) -> Self:
        """Print the title."""
        if self.title is not None:
            print(one_line(self.title), flush=True)
        self._states: dict[int, tuple[str, int]] = {}
        return self

    def changed(self, row: Row) -> None:
        """Print a line, unless only arguments grew."""
        if self._states.get(row.position) == (row.state, row.progress):
            return
        self._states[row.position] = (row.state, row.progress)
        shown = row.detail or (row.id if row.state == "streaming" else row.arguments)
        line = f"{row.position:>2}  {row.state:<12}  {one_line(row.tool or '(no name)'):<16}"
        print(f"{line}  {shorten(one_line(shown), _DETAIL)}".rstrip(), flush=True)

    def finish(self, turn: Turn, *, show_messages: bool) -> None:
        """Print the report."""
        print(flush=True)
        for text, _, indent in report(turn):
            print("\n".join(" " * indent + line for line in text.split("\n")), flush=True)
        if show_messages:
            print(messages(turn), flush=True)


class JsonView(View):
    """One JSON object a call when the turn is over."""

    def __init__(self, path: str, title: str | None, rows: Rows, *, output: TextIO | None) -> None:
        """Take the file that the objects go to; None is none."""
        super().__init__(path, title, rows)
        self._output = output

    def finish(self, turn: Turn, *, show_messages: bool) -> None:
        """Print the objects."""
        for record in turn_records(turn):
            self._print(record)
        if show_messages:
            self._print({"messages": turn.messages()})

    def _print(self, record: JsonObject) -> None:
        if self._output is not None:
            print(json_line({"stream": self.path, **record}), file=self._output, flush=True)
