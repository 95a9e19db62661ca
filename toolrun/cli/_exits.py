"""How the command ends: exit codes, and the one line that says why."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

from toolrun import ToolrunError
from toolrun.cli._text import one_line, shorten

SUCCEEDED: Final = 0
FAILED: Final = 1
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
"""128 + SIGINT, as shells count."""
BROKEN_PIPE: Final = 141
"""128 + SIGPIPE."""

_LONGEST_LINE: Final = 500


class InputError(ToolrunError):
    """Something that the user gave cannot be used.

    Args:
        reason: What is wrong.
        place: The file, or the option.
        line: The line in the file, from 1.
    """

    def __init__(self, reason: str, *, place: str | None = None, line: int | None = None) -> None:
        """Write the message as compilers do: `file:line: reason`."""
        where = "" if place is None else f"{place}: " if line is None else f"{place}:{line}: "
        super().__init__(where + reason)


def complain(error: object, *, command: str = "toolrun") -> None:
    """Print one line on standard error.

    Args:
        error: What is wrong; nothing in it is a command to the terminal.
        command: Whose line it is.
    """
    with suppress(OSError):
        print(f"{command}: {shorten(one_line(str(error)), _LONGEST_LINE)}", file=sys.stderr, flush=True)


def os_reason(error: OSError) -> str:
    """The system's own words, without the number and the path."""
    return (error.strerror or str(error) or type(error).__name__).lower()
