"""How far long work has come: a bar on standard error, if somebody sits there and nothing else is in its way."""

from __future__ import annotations

import os
import sys
import time
from contextlib import AbstractContextManager
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from toolrun.cli._text import one_line, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from rich.progress import Progress

DELAY_SECONDS: Final = 0.5
"""Shorter work shows no bar."""

_NAME_WIDTH: Final = 30


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """Counts bytes, and shows them after a while; it leaves nothing on the screen.

    Args:
        name: What is read.
        total: Its size in bytes; None if nobody knows.
        shown: False counts nothing and shows nothing.
    """

    def __init__(self, name: str, total: int | None, *, shown: bool) -> None:
        """See the class."""
        self._name = name
        self._total = total
        self._shown = shown and _somebody_looks()
        self._begun = time.monotonic()
        self._bytes = 0
        self._bar: Progress | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Self:
        """Show nothing yet."""
        return self

    def follow(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Give the blocks, and count each when the next one is asked for."""
        for block in blocks:
            yield block
            self.advance(len(block))

    def advance(self, size: int) -> None:
        """So many more bytes are done."""
        self._bytes += size
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._bytes)
        elif self._shown and time.monotonic() - self._begun >= DELAY_SECONDS:
            self._bar = _bar(self._name, self._total)
            self._shown = self._bar is not None


def output_goes_elsewhere() -> bool:
    """Whether lines that are printed meanwhile do not come out where the bar is."""
    return sys.stdout is None or not sys.stdout.isatty()


def _somebody_looks() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _bar(name: str, total: int | None) -> Progress | None:
    try:
        from rich.console import Console  # noqa: PLC0415  # rich is an extra, and slow to import
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "rich":
            raise
        return None
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
    )
    bar.add_task(shorten(one_line(PurePath(name).name), _NAME_WIDTH), total=total)
    bar.start()
    return bar
