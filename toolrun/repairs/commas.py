"""Commas that are missing or too many."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolrun._core.lexemes import LITERALS, STRINGS
from toolrun._core.records import Edit
from toolrun.repairs._text import is_beyond, repaired, take_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun._core.lexemes import Piece
    from toolrun._core.repair import Repaired, RepairRequest

_THREE_DIGITS: Final = re.compile(r"[0-9]{3}(?:\.[0-9]*)?")
_CLOSERS: Final = frozenset("}]")
_OPENERS: Final = frozenset("{[")


def trailing_comma(request: RepairRequest) -> Repaired | None:
    """Take out commas before a closing bracket.

    Source: JavaScript, Python and JSON5, where they are allowed.

    Refuses a comma with no value before it (`[1,,]`, `{,}`): something may be missing there. Refuses a text whose
    strings do not certainly end where they seem to.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(trailing_comma, '{"a": [1, 2,], "b": "x,}",}')
        '{"a": [1, 2], "b": "x,}"}'
        >>> ask(trailing_comma, '{"a": [1,,]}')
    """
    text = request.text
    if is_beyond(request):
        return None
    found = take_apart(request).clean
    edits: list[Edit] = []
    for number, piece in enumerate(found[:-1]):
        if piece.text == "," and piece.kind == "punctuation" and found[number + 1].text in _CLOSERS:
            if number == 0 or not _ends_value(found[number - 1]):
                return None
            edits.append(Edit("trailing_comma", piece.start, ",", ""))
    return repaired(text, edits)


def missing_comma(request: RepairRequest) -> Repaired | None:
    """Put a comma between two members, or two items, that stand side by side.

    Source: models that end a line instead.

    Refuses two items side by side where no space is between them (`[10-20]` is no list), where they may be one number
    (`[1 250]`), or where a space stands at the inner side of a quote of a text: `["say "hello" loudly"]` is one text with
    quotes inside. Refuses bare words, which may be part of one.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(missing_comma, '{"city": "Oslo" "points": [1 2]}')
        '{"city": "Oslo", "points": [1, 2]}'
        >>> ask(missing_comma, '{"queries": ["say " 5 " times"]}')
    """
    text = request.text
    if is_beyond(request):
        return None
    found = take_apart(request).clean
    edits: list[Edit] = []
    stack: list[str] = []
    for number, piece in enumerate(found):
        if stack and number and _begins_value(piece) and _ends_value(found[number - 1]):
            before = found[number - 1]
            key = piece.kind in STRINGS and number + 1 < len(found) and found[number + 1].text == ":"
            if key != (stack[-1] == "{") or (key and not _is_value(found, number - 1)):
                return None
            if not key and not _are_apart(before, piece):
                return None
            edits.append(Edit("missing_comma", before.end, "", ","))
        if piece.text in _OPENERS:
            stack.append(piece.text)
        elif piece.text in _CLOSERS and stack:
            stack.pop()
    return repaired(text, edits)


def _is_value(found: Sequence[Piece], number: int) -> bool:
    """Tell whether a piece in an object is a value, and not a key that lost its colon."""
    return found[number].text in _CLOSERS or (number > 0 and found[number - 1].text == ":")


def _are_apart(before: Piece, after: Piece) -> bool:
    """Tell whether two items of an array are certainly two."""
    if before.end == after.start and before.text not in _CLOSERS:
        return False
    if before.kind == after.kind == "number" and _THREE_DIGITS.fullmatch(after.text):
        return False  # `[1 250]` may be one number, or two
    texts = [piece for piece in (before, after) if piece.kind in STRINGS]
    return not any(piece is before and piece.text[-2:-1].isspace() for piece in texts) and not any(
        piece is after and piece.text[1:2].isspace() for piece in texts
    )


def _begins_value(piece: Piece) -> bool:
    return piece.kind in STRINGS or piece.kind == "number" or piece.text in _OPENERS or piece.text in LITERALS


def _ends_value(piece: Piece) -> bool:
    return piece.kind in STRINGS or piece.kind == "number" or piece.text in _CLOSERS or piece.text in LITERALS
