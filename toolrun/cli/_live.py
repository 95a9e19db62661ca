"""The table on a terminal. Only this module imports rich; nothing of a stream is read as its markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from toolrun.cli._paint import STYLES
from toolrun.cli._report import messages, report
from toolrun.cli._text import one_line, shorten
from toolrun.cli._views import View

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from toolrun import Turn
    from toolrun.cli._rows import Row, Rows

_STATE_WIDTH: Final = 12
_CALL_WIDTHS: Final = ((110, 30), (60, 20), (0, 12))
"""From which width of the terminal on the first column has which width."""

_OTHER_WIDTH: Final = 2 + 3 * 2
"""The column of numbers, and the space between columns."""

_CELL: Final = 1_000

_STATES: Final = {
    "streaming": "cyan",
    "ready": "cyan",
    "running": "cyan",
    "repaired": "magenta",
    "malformed": "yellow",
    "incomplete": "yellow",
    "held": "yellow",
    "refused": "yellow",
    "not executed": "yellow",
    "done": "green",
    "failed": "red",
    "timed out": "red",
    "cancelled": "red",
}


class LiveView(View):
    """A table with two lines a call: the tool and its id, the state, the arguments and what came of them.

    While a text in the arguments grows, its end is shown: there is the news.
    """

    previews = True

    def __init__(self, path: str, title: str | None, rows: Rows) -> None:
        """See the base class."""
        super().__init__(path, title, rows)
        self._console = Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, auto_refresh=False)
        self._stale = False

    def __enter__(self) -> Self:
        """Print the title; the terminal is taken when there is a call to show."""
        if self.title is not None:
            self._console.print(Text(one_line(self.title), "bold"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Draw it a last time and leave it on the screen."""
        self._draw()
        self._live.stop()

    def frame(self) -> None:
        """Draw the table if something has changed."""
        if self._stale:
            self._draw()

    def changed(self, row: Row) -> None:  # noqa: ARG002  # all rows are drawn anew
        """Have the next frame drawn."""
        self._stale = True

    def finish(self, turn: Turn, *, show_messages: bool) -> None:
        """Print the report below the table."""
        if turn.calls:
            self._console.print()
        for text, style, indent in report(turn):
            self._console.print(Padding(Text(text, STYLES[style]), (0, 0, 0, indent)))
        if show_messages:
            self._console.print(Text(messages(turn)), soft_wrap=True)

    def _draw(self) -> None:
        self._stale = False
        rows = list(self.rows)
        if rows:
            self._live.start()
            self._live.update(_table(rows, self._console.width), refresh=True)


def _table(rows: list[Row], width: int) -> Table:
    # Fixed widths: a table that follows its longest cell jumps with every delta.
    table = Table(box=None, expand=True, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("#", width=2, justify="right")
    call_width = next(own for least, own in _CALL_WIDTHS if width >= least)
    left = max(width - call_width - _STATE_WIDTH - _OTHER_WIDTH, 1)
    table.add_column("call", width=call_width, no_wrap=True)
    table.add_column("state", width=_STATE_WIDTH, no_wrap=True)
    table.add_column("arguments, result", ratio=1, no_wrap=True)
    for row in rows:
        style = _STATES.get(row.state, "cyan" if row.state.startswith("retrying") else "dim")
        table.add_row(
            Text(str(row.position), "dim"),
            _two_lines(row.tool or "…", "bold", row.id, "dim"),
            _two_lines(row.state, style, row.mark, "magenta" if row.mark == "repaired" else "dim"),
            _two_lines(
                _growing(row, left) or row.arguments,
                "",
                _second(row),
                style if row.finished and row.state != "done" else "dim",
            ),
        )
    return table


def _growing(row: Row, width: int) -> str | None:
    """The text that is being written, by the end that fits; None if none is."""
    path = row.preview.open_path if row.preview is not None and row.state == "streaming" else None
    text = row.preview.find(path) if row.preview is not None and path else None
    if not path or not isinstance(text, str):
        return None
    name = f"{'.'.join(map(str, path))}: "
    width = max(width - cell_len(name), 1)
    tail = one_line(text[-width:])
    while cell_len(tail) > width:
        tail = tail[1 + (cell_len(tail) - width) // 2 :]
    return name + tail


def _second(row: Row) -> str:
    """Below the arguments: the result or the reason; how much has come as long as there is neither."""
    if row.detail or row.state != "streaming":
        return row.detail
    return f"{row.size:,} characters" if row.size else ""


def _two_lines(first: str, first_style: str, second: str, second_style: str) -> Text:
    text = Text(shorten(one_line(first), _CELL), first_style)
    return Text("\n").join((text, Text(shorten(one_line(second), _CELL), second_style)))
