"""Colours for lines, if they are on a terminal whose user wants them; only then rich is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final, TypeAlias

Paint: TypeAlias = Callable[[str, str], str]
"""Gives a text the style of a word from `STYLES`."""

STYLES: Final = {
    "title": "bold",
    "good": "green",
    "doubtful": "yellow",
    "bad": "red",
    "changed": "magenta",
    "plain": "",
    "dim": "dim",
}


def on_terminal() -> bool:
    """Whether standard output is a terminal that takes more than lines."""
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def paint() -> Paint:
    """How to style what is printed on standard output: not at all in a pipe, on a dumb terminal, or without rich.

    rich leaves colours out where `NO_COLOR` is set.
    """
    if not on_terminal():
        return _plain
    try:
        from rich.console import Console  # noqa: PLC0415  # rich is an extra, and slow to import
        from rich.text import Text  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "rich":
            raise
        return _plain
    console = Console(highlight=False, markup=False, emoji=False)

    def styled(text: str, style: str) -> str:
        with console.capture() as captured:
            console.print(Text(text, STYLES[style]), end="", soft_wrap=True)
        return captured.get()

    return styled


def _plain(text: str, style: str) -> str:  # noqa: ARG001  # the signature of a painter
    return text
