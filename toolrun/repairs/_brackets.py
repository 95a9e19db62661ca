"""Brackets that are missing, too many, or closed too early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from toolrun._core.lexemes import STRINGS
from toolrun._core.policy import REASONS, Evidence, normalise
from toolrun._core.records import Edit
from toolrun._core.repair import Declined, Reading, Repaired
from toolrun.repairs._places import Schema
from toolrun.repairs._text import apply_edits, coalesced, is_beyond, repaired, take_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun._core.lexemes import Piece
    from toolrun._core.repair import RepairRequest

_CLOSER: Final = {"{": "}", "[": "]", "(": ")"}
_OPENER: Final = {closer: opener for opener, closer in _CLOSER.items()}
_MAX_DEPTH: Final = 128
_MOST_READINGS: Final = 8
_MOST_EDITS: Final = 10_000


def tuples(request: RepairRequest) -> Repaired | None:
    """Write a Python tuple as an array: `("a", "b")`.

    Source: Python's repr.

    Refuses brackets that call something: `set(["a"])`, `f("x")`.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(tuples, '{"items": ("a", "b")}')
        '{"items": ["a", "b"]}'
        >>> ask(tuples, '{"items": set(["a"])}')
    """
    text = request.text
    if is_beyond(request) or "(" not in text:
        return None
    edits: list[Edit] = []
    stack: list[str] = []
    before = ""
    for piece in take_apart(request).clean:
        if piece.text in _CLOSER:
            if piece.text == "(" and before not in (":", "[", ",", "("):
                return None
            stack.append(piece.text)
        elif piece.text in _OPENER and (not stack or stack.pop() != _OPENER[piece.text]):
            return None
        if piece.text in ("(", ")"):
            edits.append(Edit("tuple", piece.start, piece.text, "[" if piece.text == "(" else "]"))
        before = piece.text
    return None if stack else repaired(text, edits)


def brackets(request: RepairRequest) -> Repaired | Declined | None:
    """Put in the bracket that is missing, take out the one that is too many.

    A closing bracket of the other kind closes what is open inside; one with nothing to close goes; a root that was
    closed before a known key is opened again; an array ends before a key. At the end only closing braces may be
    missing, never a bracket of an array, and only behind a whole value: an array may have been cut, and so may a
    number.

    Where a bracket can be put in at several places, or taken out instead, each is a reading, and the schema decides:
    braces before a key that an outer object knows, too; lists inside of lists; and what may have lost its opening bracket.

    Source: models that lose count of nesting.

    Refuses a text that may have been cut: an open string, an open array, a comma or a colon at the end.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(brackets, '{"ops": [{"n": 1}, {"n": 2}}')
        '{"ops": [{"n": 1}, {"n": 2}]}'
        >>> ask(brackets, '{"points": [1, 2]]}}')
        '{"points": [1, 2]}'
        >>> ask(brackets, '{"commands": ["npm ci", "npm test"')
    """
    text = request.text
    if is_beyond(request):
        return None
    found = take_apart(request).clean
    if not found or found[0].text != "{":
        return None
    schema = Schema.of(request.definition)
    reader = _Reader(found, schema)
    fits = reader.read()
    others = [other for number in reader.closed_more[:_MOST_READINGS] if (other := _without(found, schema, number))]
    if fits and not reader.stack:
        choices = reader.choices()
        if len(choices) > _MOST_READINGS:
            return Declined("ambiguous", "a bracket is missing, and it could stand at many places")
        others += [other for choice in choices if (other := _otherwise(found, schema, choice, len(reader.edits)))]
    if fits and reader.stack and not others:
        return _close(text, found, reader, request.finish_reason)
    ways = [reader, *others] if fits and not reader.stack else others
    readings = list(dict.fromkeys(_reading(text, way.edits) for way in ways))
    return _answer([reading for reading in readings if reading.edits])


def _without(found: Sequence[Piece], schema: Schema, number: int) -> _Reader | None:
    """Read it as if one closing bracket were too many, and did not close what is open inside; None if that fails."""
    reader = _Reader(found, schema, extra=number)
    return reader if reader.read() and not reader.stack else None


def _otherwise(found: Sequence[Piece], schema: Schema, choice: _Choice, edits: int) -> _Reader | None:
    """Read it with one bracket put in or taken out where that was not necessary; None unless that saves another edit."""
    reader = _Reader(found, schema, choice=choice)
    return reader if reader.read() and not reader.stack and len(reader.edits) <= edits else None


class _Choice(NamedTuple):
    """A piece at which another bracket is thought of, and what becomes of it."""

    kind: Literal["close", "skip", "[", "{"]
    number: int


class _Open(NamedTuple):
    """An open bracket, and the schema of what it opens."""

    bracket: str
    schema: Schema


class _Reader:
    """Goes through the pieces with a stack of open brackets, and notes the edits that make them fit."""

    def __init__(
        self, found: Sequence[Piece], schema: Schema, extra: int | None = None, choice: _Choice | None = None
    ) -> None:
        self._found = found
        self._extra = extra
        self._choice = choice
        self._nested: list[_Choice] = []
        self._early: list[_Choice] = []
        self._unopened: list[_Choice] = []
        self._ended_lists = False
        self.closed_more: list[int] = []
        """Closing brackets that closed more than one: each could also be one too many."""
        self._schema = schema
        self.stack: list[_Open] = []
        self.edits: list[Edit] = []
        self.boundaries: list[int] = []
        """Places where an inner brace could have been left out: before a comma and a key that an outer object knows."""
        self._key = ""
        self._keys: set[str] = set()
        self._root_end: Piece | None = None

    def read(self) -> bool:
        """Go through all pieces. False: something is beyond mending."""
        return all(
            self._see(number, piece) and len(self.edits) <= _MOST_EDITS for number, piece in enumerate(self._found)
        )

    def choices(self) -> list[_Choice]:
        """Other places for the brackets that were put in and taken out: in lists inside of lists, before a lone value."""
        early = self._early if any(edit.code == "extra_bracket" and edit.before == "}" for edit in self.edits) else ()
        return [*(self._nested if self._ended_lists else ()), *early, *self._unopened]

    def _see(self, number: int, piece: Piece) -> bool:
        """Take one piece in. False: it cannot be mended."""
        if self._choice is not None and self._choice.number == number and not self._choose(self._choice.kind, piece):
            return False
        if self._choice == ("skip", number):
            return True
        if piece.text == "," and self._is_nested():
            self._nested.append(_Choice("close", number))
        if piece.text in _CLOSER:
            return self._open(number, piece)
        if piece.text in _OPENER:
            self._close(number, piece)
            return True
        if not self.stack:
            return self._reopen(number)
        if self._is_key(number):
            return self._see_key(number, piece)
        return piece.text != "," or self._end_before_object(number)

    def _choose(self, kind: str, piece: Piece) -> bool:
        """Do as the choice has it. False: it makes no sense here."""
        if kind == "skip":
            self.edits.append(Edit("extra_bracket", piece.start, piece.text, ""))
            return True
        self.edits.append(Edit("missing_bracket", piece.start, "", "]" if kind == "close" else kind))
        if kind == "close":
            return bool(self.stack) and self.stack.pop().bracket == "["
        self._push(kind)
        return True

    def _is_nested(self) -> bool:
        """Tell whether a list inside of a list is open."""
        return len(self.stack) > 1 and self.stack[-1].bracket == self.stack[-2].bracket == "["

    def _text(self, number: int) -> str:
        return self._found[number].text if 0 <= number < len(self._found) else ""

    def _is_key(self, number: int) -> bool:
        return number < len(self._found) and self._found[number].kind in STRINGS and self._text(number + 1) == ":"

    def _open(self, number: int, piece: Piece) -> bool:
        if len(self.stack) >= _MAX_DEPTH:
            return False
        if piece.text == "{" and number == 0 and self._text(1) == "{":
            self.edits.append(Edit("extra_bracket", piece.start, "{", ""))
            return True
        if not self.stack and self._root_end is not None:
            return False
        self._push(piece.text)
        if self._is_nested() and self._text(number - 1) == "[":
            self._nested.append(_Choice("skip", number))
        return True

    def _push(self, bracket: str) -> None:
        if not self.stack:
            schema = self._schema
        elif self.stack[-1].bracket == "{":
            schema = self.stack[-1].schema.member(self._key)
        else:
            schema = self.stack[-1].schema.items
        self.stack.append(_Open(bracket, schema))

    def _close(self, number: int, piece: Piece) -> None:
        opener = _OPENER[piece.text]
        if number == self._extra or not self.stack or not any(frame.bracket == opener for frame in self.stack):
            self.edits.append(Edit("extra_bracket", piece.start, piece.text, " " if self._parts(number) else ""))
            if piece.text == "]" and self._text(number - 2) == ":":  # a value alone, which may be the item of a list
                self._unopened.append(_Choice("[", number - 1))
            return
        if self.stack[-1].bracket != opener:
            self.closed_more.append(number)
        while self.stack[-1].bracket != opener:
            self._ended_lists = self._ended_lists or self.stack[-1].bracket == "["
            self.edits.append(Edit("missing_bracket", piece.start, "", _CLOSER[self.stack.pop().bracket]))
        ended = self.stack.pop()
        if (
            self._text(number + 1) == ","
            and self._is_key(number + 2)
            and ended.schema.knows(self._text(number + 2)[1:-1])
        ):
            self._early.append(_Choice("skip", number))  # the key may belong to the object that ends here
        if not self.stack:
            self._root_end = piece

    def _parts(self, number: int) -> bool:
        """Tell whether a bracket alone keeps two numbers or words apart: `12]34` is not 1234."""
        around = self._found[number - 1 : number + 2]
        return len(around) > 2 and all(piece.kind in ("number", "word") for piece in around[::2])  # noqa: PLR2004  # both

    def _see_key(self, number: int, piece: Piece) -> bool:
        """A key belongs to an object: an array that is open ends before it, if there is an object around it."""
        key = piece.text[1:-1]
        while self.stack[-1].bracket == "[":
            if len(self.stack) == 1 or not self.stack[-2].schema.knows(key):
                return False
            self.edits.append(Edit("missing_bracket", self._seam(number), "", "]"))
            self._ended_lists = True
            self._unopened.append(_Choice("{", number))
            self.stack.pop()
        outer = self.stack[-2] if len(self.stack) > 1 else None
        if outer and outer.bracket == "{" and outer.schema.knows(key) and self._text(number - 1) == ",":
            self.boundaries.append(self._found[number - 1].start)
        self._key = key
        if len(self.stack) == 1:
            self._keys.add(key)
        return True

    def _seam(self, number: int) -> int:
        """Before the comma before a piece, or right behind the piece before it."""
        before = self._found[number - 1]
        return before.start if before.text == "," else before.end

    def _end_before_object(self, number: int) -> bool:
        """`{"n": 1, {"n": 2}` in an array: the first object ends before the comma."""
        if self.stack[-1].bracket == "{" and self._text(number + 1) == "{":
            if len(self.stack) == 1 or self.stack[-2].bracket != "[":
                return False
            self.edits.append(Edit("missing_bracket", self._found[number].start, "", "}"))
            self.stack.pop()
        return True

    def _reopen(self, number: int) -> bool:
        """Something stands behind the end of the root: a known key that is not there yet opens it again."""
        root = self._root_end
        if root is None:
            return False
        key_at = number + 1 if self._text(number) == "," else number
        if key_at >= len(self._found) or not self._is_key(key_at):
            return False
        key = self._text(key_at)[1:-1]
        if not self._schema.knows(key) or key in self._keys:
            return False
        self.edits = [edit for edit in self.edits if edit.offset != root.start or edit.code != "missing_bracket"]
        comma = "," if key_at == number else ""
        self.edits.append(Edit("early_close", root.start, root.text, comma))
        self.stack.append(_Open("{", self._schema))
        self._root_end = None
        if key_at == number:
            self._key = key
            self._keys.add(key)
        return True


def _close(text: str, found: Sequence[Piece], reader: _Reader, finish_reason: str | None) -> Repaired | Declined | None:
    """Close what is open at the end, if only braces are, and if the end is the end of a value."""
    last = found[-1]
    ended = finish_reason is not None and REASONS.get(normalise(finish_reason)) is Evidence.FINISHED
    whole = (
        (last.kind in STRINGS and found[-2].text == ":")
        or (last.kind in STRINGS and found[-2].text in (",", "[") and reader.stack[-1].bracket == "[")
        or last.text in ("}", "]", "true", "false", "null")
    )
    missing = len(reader.stack)
    if not whole or any(frame.bracket != "{" for frame in reader.stack) or (missing > 1 and not ended):
        return None
    tail = Edit("missing_bracket", last.end, "", "}" * missing)
    base = reader.edits
    readings = [_reading(text, [*base, tail])]
    if missing == 1:
        if len(reader.boundaries) >= _MOST_READINGS:
            return Declined("ambiguous", "a brace is missing, and it could stand at many places")
        readings += [_reading(text, [*base, Edit("missing_bracket", place, "", "}")]) for place in reader.boundaries]
    return _answer(readings)


def _answer(readings: list[Reading]) -> Repaired | None:
    """The only reading as it is; of several, the schema decides."""
    if not readings:
        return None
    several = tuple(readings) if len(readings) > 1 else ()
    return Repaired(text=readings[0].text, edits=readings[0].edits, readings=several)


def _reading(text: str, edits: list[Edit]) -> Reading:
    """Make edits in the order of their places; two at one place stay in the order in which they were found."""
    ordered = coalesced(sorted(edits, key=lambda edit: edit.offset))
    return Reading(apply_edits(text, ordered), ordered)
