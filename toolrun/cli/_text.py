"""Text of others on a terminal: nothing that a model, a tool or a file name says is a command to it."""

from __future__ import annotations

import json
import re
from typing import Final

# C0 (line ends and tabs are decided on below), DEL, C1; marks and overrides of writing direction, which
# reorder what is read; line and paragraph separators; lone surrogates, which no terminal can be sent.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    r"""Write control characters as JSON writes them; line ends and tabs stay.

    A JSON text stays one, with the same value: such characters stand only inside its strings.

    Examples:
        >>> print(printable("red: \x1b[31m"))
        red: \u001b[31m
    """
    return _UNSAFE.sub(_escape, text)


def one_line(text: str) -> str:
    r"""`printable`, with line ends and tabs written out too.

    Examples:
        >>> print(one_line("a\n\tb"))
        a\n\tb
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def shorten(text: str, width: int) -> str:
    """Cut a text to so many characters, with an ellipsis for what is left out.

    Examples:
        >>> shorten("forecast", 5)
        'fore…'
    """
    return text if len(text) <= width else f"{text[: width - 1]}…"


def json_line(value: object) -> str:
    """One JSON value on one line that every encoding and every terminal takes."""
    return printable(json.dumps(value))


def count(number: int, noun: str) -> str:
    """A number and its noun.

    Examples:
        >>> count(1, "call"), count(2, "call")
        ('1 call', '2 calls')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return _SHORT.get(character) or f"\\u{ord(character):04x}"
