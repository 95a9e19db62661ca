"""Values without quotes, where the schema tells what they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from toolrun._core.lexemes import LITERALS, STRINGS
from toolrun._core.records import Edit
from toolrun._core.repair import Declined, Reading, Repaired
from toolrun.repairs._places import Schema
from toolrun.repairs._text import apply_edits, is_beyond, take_apart
from toolrun.repairs.words import JSON_NUMBER, plain_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolrun._core.lexemes import Piece
    from toolrun._core.repair import RepairRequest

_BEFORE: Final = frozenset(":,[")
_BEHIND: Final = frozenset(",]}")


def bare_values(request: RepairRequest) -> Repaired | Declined | None:
    """Put a value between quotes where the schema has a text: one of its listed words, or digits as they stand.

    `undefined` for an optional parameter is no value: the member goes.

    Source: JavaScript; models that write enums as symbols and postal codes as numbers.

    Refuses a word that is not listed (it may be the name of a variable), and anything of several words: where a bare
    path ends is a guess. Refuses `undefined` for a required parameter, and digits with leading zeros for a number.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(bare_values, '{"zip": 01234, "mode": rb}', zip={"type": "string"}, mode={"enum": ["r", "rb"]})
        '{"zip": "01234", "mode": "rb"}'
        >>> ask(bare_values, '{"count": 010}', count={"type": "integer"}).code
        'lossy_number'
        >>> ask(bare_values, '{"path": my_path}', path={"type": "string"})
    """
    text = request.text
    if is_beyond(request) or request.definition is None:
        return None
    parts = take_apart(request)
    found = parts.clean
    if not found or not parts.kinds & {"word", "number"}:
        return None
    edits: list[Edit] = []
    for number, key, schema in _values(found, Schema.of(request.definition)):
        if not _stands_alone(found, number):
            continue
        edit = _edit(text, found, number, key, schema)
        if isinstance(edit, Declined):
            return edit
        if edit is not None:
            edits.append(edit)
    if not edits:
        return None
    reading = Reading(apply_edits(text, edits), tuple(edits))
    return Repaired(text=reading.text, edits=reading.edits, readings=(reading,))


def _edit(text: str, found: Sequence[Piece], number: int, key: str | None, schema: Schema) -> Edit | Declined | None:
    """What to do with a bare value; `schema` is that of the object around it if there is a key."""
    piece = found[number]
    place = schema if key is None else schema.member(key)
    kinds = place.kinds or frozenset()
    if piece.text == "undefined":
        if key is None or not schema.knows(key):
            return None
        return Declined("schema", f"{key} is undefined") if key in schema.required else _dropped(text, found, number)
    if piece.kind == "word" and piece.text not in LITERALS:
        listed = place.texts or ()
        return _quoted("bare_word", piece) if piece.text in listed else None
    if piece.kind == "number" and not JSON_NUMBER.fullmatch(piece.text):
        if "string" in kinds and not kinds & {"number", "integer"}:
            return _quoted("bare_digits", piece)
        if kinds & {"number", "integer"} and plain_number(piece.text) is None:
            return Declined("lossy_number", piece.text)
    return None


def _quoted(code: str, piece: Piece) -> Edit:
    return Edit(code, piece.start, piece.text, json.dumps(piece.text, ensure_ascii=False))


def _dropped(text: str, found: Sequence[Piece], number: int) -> Edit:
    """Take out the key, the colon, the value, and the comma before or behind them."""
    start, end = found[number - 2].start, found[number].end
    if found[number - 3].text == ",":
        start = found[number - 3].start
    elif found[number + 1].text == ",":
        end = found[number + 1].end
    return Edit("absent", start, text[start:end], "")


def _stands_alone(found: Sequence[Piece], number: int) -> bool:
    before = found[number - 1].text if number else ""
    behind = found[number + 1].text if number + 1 < len(found) else ""
    if before not in _BEFORE or not behind:
        return False
    is_key = number + 2 < len(found) and found[number + 1].kind in STRINGS and found[number + 2].text == ":"
    return behind in _BEHIND or is_key


def _values(found: Sequence[Piece], root: Schema) -> Iterator[tuple[int, str | None, Schema]]:
    """Each bare value: its number, its key (None in an array), and the schema of the object, or of the item."""
    stack: list[tuple[str, Schema]] = []
    key = ""
    for number, piece in enumerate(found):
        if piece.text in ("{", "["):
            schema = root
            if stack:
                bracket, around = stack[-1]
                schema = around.member(key) if bracket == "{" else around.items
            stack.append((piece.text, schema))
        elif piece.text in ("}", "]"):
            if stack:
                stack.pop()
        elif piece.kind in STRINGS and number + 1 < len(found) and found[number + 1].text == ":":
            key = piece.text[1:-1]
        elif piece.kind in ("word", "number") and stack:
            bracket, schema = stack[-1]
            if bracket == "{" and number and found[number - 1].text == ":":
                yield number, key, schema
            elif bracket == "[":
                yield number, None, schema.items
