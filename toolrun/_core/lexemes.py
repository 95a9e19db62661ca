"""Argument text in pieces, whatever notation it is in: JSON, JSON5, a Python or JavaScript literal, or a mixture.

Nothing is decided here. Pieces are told apart, and what a piece says is read, so that repairs look outside of
strings only and the conservation check can compare what two texts say.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from toolrun._core.json_text import join_surrogates

STRINGS: Final = frozenset(("string", "single", "smart", "entity"))
"""Kinds of pieces that are text between delimiters."""

VALUES: Final = STRINGS | {"number", "word"}
"""Kinds of pieces that say something by themselves."""

LITERALS: Final = {
    "true": "true", "True": "true", "TRUE": "true",
    "false": "false", "False": "false", "FALSE": "false",
    "null": "null", "None": "null", "Null": "null", "NULL": "null",
}  # fmt: skip
"""Words that stand for a value in JSON, Python or SQL, and JSON's word for it."""

INVISIBLE: Final = "\u00a0\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff\x0b\x0c\x85"
"""For a character class: what looks like white space or like nothing, and is no white space in JSON."""

CURLY_DOUBLE: Final = "\u201c\u201d\u201e\u201f"
CURLY_SINGLE: Final = "\u2018\u2019\u201a"
"""For a character class: curly quotation marks that a word processor puts for straight ones."""

WIDE: Final = {"\uff1a": ":", "\uff0c": ",", "\uff5b": "{", "\uff5d": "}", "\uff3b": "[", "\uff3d": "]"}
"""Punctuation as wide as a Chinese character, and what it stands for between tokens."""

QUOTE_ENTITY: Final = "&quot;"

# Every string alternative either ends at its delimiter or fails, and then `open` takes the rest of the text: no place
# is read twice, so the work is linear.
_PIECE: Final = re.compile(
    rf"""
      (?P<space>[ \t\r\n]+)
    | (?P<string>"(?:[^"\\]|\\.)*+")
    | (?P<punctuation>[{{}}\[\]:,()])
    | (?P<number>[-+]?(?:0[xX][0-9a-fA-F]++|[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?+(?![\w.$]))
    | (?P<word>[^\W\d][\w$]*+|[\w$]++)
    | (?P<blank>[{INVISIBLE}]+)
    | (?P<wide>[{"".join(WIDE)}])
    | (?P<single>'(?:[^'\\]|\\.)*+')
    | (?P<smart>[{CURLY_DOUBLE}](?:[^{CURLY_DOUBLE}\\]|\\.)*+[{CURLY_DOUBLE}]
        |[{CURLY_SINGLE}](?:[^{CURLY_SINGLE}\\]|\\.)*+[{CURLY_SINGLE}])
    | (?P<entity>&quot;(?:(?!&quot;)[^"])*+&quot;)
    | (?P<comment>//[^\r\n]*+|\#[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)
    | (?P<tag></?[A-Za-z_][^<>"'{{}}\n]{{0,100}}>|<\|[^|<>\n]{{0,60}}\|>)
    | (?P<open>(?:["'{CURLY_DOUBLE}{CURLY_SINGLE}]|/\*).*+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_SILENT: Final = frozenset(("space", "punctuation", "wide", "blank", "comment"))

_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'",
}  # fmt: skip
_LONGEST_NUMBER: Final = 400


class Piece(NamedTuple):
    """A piece of an argument text: its kind, and where it begins and ends."""

    kind: str
    start: int
    end: int
    text: str


_new: Final = tuple.__new__


def pieces(text: str) -> list[Piece]:
    """Take a text apart; the pieces put together are the text."""
    return [_new(Piece, (found.lastgroup, found.start(), found.end(), found[0])) for found in _PIECE.finditer(text)]


def meanings(text: str) -> list[tuple[str, object]]:
    """What the pieces of a text say, one by one."""
    found = _PIECE.finditer(text)
    spoken = (_new(Piece, (piece.lastgroup, 0, 0, piece[0])) for piece in found if piece.lastgroup not in _SILENT)
    return [said for piece in spoken if (said := meaning(piece)) is not None]


def body(piece: Piece) -> str:
    """What stands between the delimiters of a string."""
    return piece.text[6:-6] if piece.kind == "entity" else piece.text[1:-1]


def unescape(inner: str) -> str:
    r"""Read the escapes of a string's body; the backslash of one that JSON does not have stays (`\d`), but not of `\'`."""
    if "\\" not in inner:
        return inner
    return join_surrogates(_ESCAPE.sub(_unescaped, inner))


def meaning(piece: Piece) -> tuple[str, object] | None:
    """What a piece says: two pieces in different notations with equal meanings say the same. None: nothing."""
    if piece.kind in STRINGS:
        return "text", unescape(body(piece))
    if piece.kind == "word":
        known = LITERALS.get(piece.text)
        return ("literal", known) if known else ("text", piece.text)
    if piece.kind == "number":
        return "number", number_value(piece.text)
    if piece.kind in ("open", "other", "tag"):
        return piece.kind, piece.text
    return None


def number_value(lexeme: str) -> Decimal | str:
    """The exact value of a number; a number with absurdly many digits is its own text."""
    if len(lexeme) > _LONGEST_NUMBER:
        return lexeme
    if "x" in lexeme or "X" in lexeme:
        return Decimal(int(lexeme, 16))
    try:
        return Decimal(lexeme)
    except InvalidOperation:  # an exponent that is out of all bounds
        return lexeme


def _unescaped(found: re.Match[str]) -> str:
    escaped = found[1]
    if len(escaped) > 1:
        return chr(int(escaped[1:], 16))
    return _ESCAPED.get(escaped, found[0])
