"""Words and numbers that are written as another language writes them."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from toolrun._core.lexemes import LITERALS, STRINGS
from toolrun._core.records import Edit
from toolrun._core.repair import Reading, Repaired
from toolrun.repairs._places import Schema
from toolrun.repairs._text import is_beyond, pieces_of, repaired, take_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun._core.lexemes import Piece
    from toolrun._core.repair import RepairRequest

JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+")
_LEADING_ZERO: Final = re.compile(r"[-+]?0[0-9]")
_HEX: Final = re.compile(r"[-+]?0[xX]")
_BEFORE_A_VALUE: Final = frozenset(":,[(")
_BEHIND_A_VALUE: Final = frozenset(",]})")
_HALF_KEY: Final = re.compile(r'"[ \t\r\n]*:')
_MOST_HALF_KEYS: Final = 3
_LONGEST_NUMBER: Final = 400


def bare_keys(request: RepairRequest) -> Repaired | None:
    """Put keys between quotes: `{city: "Oslo"}`.

    Source: JavaScript objects, JSON5.

    Refuses what is no word with a colon behind it, at a place for a key: `{city "Oslo"}`, `{file name: 1}`.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(bare_keys, '{city: "Oslo", days: 3}')
        '{"city": "Oslo", "days": 3}'
        >>> ask(bare_keys, '{file name: 1}')
    """
    text = request.text
    if is_beyond(request):
        return None
    found = take_apart(request).clean
    edits = [
        Edit("bare_key", piece.start, piece.text, json.dumps(piece.text, ensure_ascii=False))
        for number, piece in enumerate(found)
        if piece.kind == "word" and _text(found, number - 1) in ("{", ",") and _text(found, number + 1) == ":"
    ]
    return repaired(text, edits)


def half_quoted_keys(request: RepairRequest) -> Repaired | None:
    """Put the first quotation mark of a key where only the second one is: `{"a": 1, limit": 5}`.

    Source: deltas that lost a character at a seam.

    Refuses it where no known key stands between a brace or a comma and `":`.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(half_quoted_keys, '{"query": "x", limit": 5}', query={"type": "string"}, limit={"type": "integer"})
        '{"query": "x", "limit": 5}'
        >>> ask(half_quoted_keys, '{"query": "x", limit": 5}', query={"type": "string"})
    """
    text = request.text
    if is_beyond(request) or take_apart(request).clean:
        return None
    known = Schema.of(request.definition).all_keys
    edits: list[Edit] = []
    mended = text
    for count in range(_MOST_HALF_KEYS):  # a mark that is put in changes what all pieces behind it are
        place = _half_key(pieces_of(mended).significant, known)
        if place is None:
            break
        mended = f'{mended[:place]}"{mended[place:]}'
        edits.append(Edit("half_quoted_key", place - count, "", '"'))
    # Unless the text is clean afterwards, the mark was no key's.
    if not edits or not pieces_of(mended).clean:
        return None
    return Repaired(text=mended, edits=tuple(edits), readings=(Reading(mended, tuple(edits)),))


def _half_key(found: Sequence[Piece], known: frozenset[str]) -> int | None:
    """Where the first mark is missing."""
    for number, piece in enumerate(found[:-1]):
        behind = found[number + 1]
        if (
            piece.text in known
            and behind.start == piece.end
            and behind.kind in ("string", "open")
            and _text(found, number - 1) in ("{", ",")
            and _HALF_KEY.match(behind.text)
        ):
            return piece.start
    return None


def literals(request: RepairRequest) -> Repaired | None:
    """Write `True`, `False` and `None` (and `NULL` and the like) as JSON does.

    Source: Python's repr, SQL.

    Refuses words inside strings, words at a place for a key, and every other word: `yes`, `undefined`, `NaN`.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(literals, '{"text": "True or None", "flag": True}')
        '{"text": "True or None", "flag": true}'
        >>> ask(literals, '{"flag": yes}')
    """
    text = request.text
    if is_beyond(request):
        return None
    found = take_apart(request).clean
    if len(found) == 1 and found[0].kind == "word" and found[0].text == "None":
        return repaired(text, [Edit("literal", found[0].start, "None", "null")])
    edits = [
        Edit("literal", piece.start, piece.text, LITERALS[piece.text])
        for number, piece in enumerate(found)
        if piece.kind == "word"
        and LITERALS.get(piece.text, piece.text) != piece.text
        and _text(found, number - 1) in _BEFORE_A_VALUE
        and _ends_value(found, number)
    ]
    return repaired(text, edits)


def numbers(request: RepairRequest) -> Repaired | None:
    """Write hexadecimal numbers, a leading `+`, `.5` and `5.` as JSON does; the value is exactly the same.

    Source: JSON5 and JavaScript.

    Refuses leading zeros (`010` is eight in some languages), separators (`1_000`, `1,000`), units and expressions.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(numbers, '{"a": +5, "b": .25, "c": 0xFF, "d": "+5"}')
        '{"a": 5, "b": 0.25, "c": 255, "d": "+5"}'
        >>> ask(numbers, '{"a": 010}'), ask(numbers, '{"a": 10*1024}')
        (None, None)
    """
    text = request.text
    if is_beyond(request):
        return None
    found = take_apart(request).clean
    edits = [
        Edit("number", piece.start, piece.text, plain)
        for number, piece in enumerate(found)
        if piece.kind == "number"
        and not JSON_NUMBER.fullmatch(piece.text)
        and (plain := plain_number(piece.text)) is not None
        and _text(found, number - 1) in _BEFORE_A_VALUE
        and _ends_value(found, number)
    ]
    return repaired(text, edits)


def plain_number(lexeme: str) -> str | None:
    """The same number as JSON writes it; None if it is not certain which number it is."""
    if _LEADING_ZERO.match(lexeme) or len(lexeme) > _LONGEST_NUMBER:
        return None
    if _HEX.match(lexeme):
        return str(int(lexeme, 16))
    plain = lexeme.lstrip("+")
    sign, digits = ("-", plain[1:]) if plain.startswith("-") else ("", plain)
    whole, point, rest = digits.partition(".")
    if point:
        fraction, *exponent = re.split("(?=[eE])", rest, maxsplit=1)
        digits = f"{whole or '0'}.{fraction or '0'}{''.join(exponent)}"
    plain = sign + digits
    return plain if JSON_NUMBER.fullmatch(plain) and Decimal(plain) == Decimal(lexeme) else None


def _text(found: Sequence[Piece], number: int) -> str:
    return found[number].text if 0 <= number < len(found) else ""


def _ends_value(found: Sequence[Piece], number: int) -> bool:
    """Tell whether a piece is followed by what follows a value; the comma may be missing where a key follows."""
    behind = _text(found, number + 1)
    if behind in _BEHIND_A_VALUE or not behind:
        return True
    return found[number + 1].kind in STRINGS and _text(found, number + 2) == ":"
