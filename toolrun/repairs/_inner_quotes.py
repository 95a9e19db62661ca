"""Quotation marks inside of strings that are not escaped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from toolrun._core.lexemes import LITERALS
from toolrun._core.records import Edit
from toolrun._core.repair import Declined, Reading, Repaired
from toolrun.repairs._places import Schema
from toolrun.repairs._text import apply_edits, is_beyond, take_apart
from toolrun.repairs.strings import escaped, mended_escapes

if TYPE_CHECKING:
    from toolrun._core.repair import RepairRequest

_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_SCALAR: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?(?=[ \t\r\n,}\]])|[A-Za-z]++(?=[ \t\r\n,}\]])"
)
_BEHIND_END: Final = {"": ("",), "{": (",", "}"), "[": (",", "]")}
"""What can follow the end of a container, by the bracket of the one around it; "" is the end of the text."""

_RUN: Final = re.compile(r'(?<!\\)"+')
_SEAM: Final = {
    (kind, mark): re.compile(seam.replace("MARK", rf"(?<!\\){mark}"))
    for mark in "\"'"
    for kind, seam in (("item", r"MARK\s*+(?:MARK|,)|,\s*+MARK"), ("loose", r"MARK\s*+(?::|,\s*+MARK)"))
}
"""What no string may hold that is an item of a list, or stands in an object that may have any key: it may be two."""

_KEY: Final = re.compile(r"""(["'])([^"'\\]{1,200})\1[ \t\r\n]*+:""")
_MARK: Final = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in "\"'"}
_RAW: Final = re.compile(r"(\\.)|([\x00-\x1f\"])", re.DOTALL)
_MOST_READINGS: Final = 16
_MOST_STEPS: Final = 100_000


def inner_quotes(request: RepairRequest) -> Repaired | Declined | None:
    r"""Escape quotation marks inside of strings, where only one reading is left: `{"code": "print("hi")"}`.

    A string can only end where what follows fits the schema: a known key that is not used yet, the next item, or the
    end of its object. Every such way through the whole text is a reading. The only one is taken; of several, the one
    with the fewest marks inside of strings, if it is the only one with so few and they come in pairs.

    Source: models that write code, HTML and dialogue into arguments as they are.

    Refuses a reading in which a string holds what could be a member of the object, or goes on where it could have
    ended; one that may be two, as its marks stand beside commas or each other in a list; and marks that may be doubled
    ones, as in SQL (`"say ""hi"" now"`) or at the end of a text (`"Oslo""`), or three, as in Python.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> text = {"type": "string"}
        >>> ask(inner_quotes, '{"path": "a.py", "code": "print("hi")"}', path=text, code=text)
        '{"path": "a.py", "code": "print(\\"hi\\")"}'
        >>> ask(inner_quotes, '{"run": "git -m "wip", "cwd": "/srv"}', run=text, cwd={**text, "optional": True}).code
        'ambiguous_quotes'
    """
    text = request.text
    if is_beyond(request) or request.definition is None or take_apart(request).clean:
        return None
    schema = Schema.of(request.definition)
    search = _Search(text, schema)
    found = search.readings()
    if found is None:
        return Declined("ambiguous_quotes")
    if not found:
        return None
    found.sort(key=lambda way: way.marks)
    best = found[0]
    if len(found) > 1 and (best.odd or found[1].marks == best.marks):
        return Declined("ambiguous_quotes", f"{len(found)} readings")
    if (doubt := _doubt(text, schema, best)) is not None:
        return Declined("ambiguous_quotes", doubt)
    edits = _edits(text, best)
    if edits is None:
        return Declined("ambiguous_escape")
    if not edits:
        return None
    reading = Reading(apply_edits(text, edits), tuple(edits))
    return Repaired(
        text=reading.text, edits=reading.edits, readings=(reading,), note=f"the best of {len(found)} readings"
    )


def _doubt(text: str, schema: Schema, way: _Way) -> str | None:
    """Why a reading may be another one all the same."""
    names = "|".join(re.escape(key) for key in sorted(schema.all_keys))
    held = re.compile(rf"""(?:{names})["'][ \t\r\n]*:""")
    if way.marks and any(held.search(text, start, end) for _, start, end in way.strings()):
        return "a string may hold a member of the object"
    if way.passed:
        return "a string could have ended earlier"
    for kind, start, end in way.strings():
        seam = _SEAM.get((kind, text[end]))
        if seam is not None and seam.search(text, start, end):
            return "a string may be two"
        if text.startswith(text[end] * 2, start):
            return "a text between three marks is another language's"
        if text[end] == '"' and _is_doubled(text[start:end]):
            return "marks that are doubled may each be one"
    return None


def _is_doubled(inner: str) -> bool:
    """Tell whether marks may be doubled ones: at a delimiter (`"24""`), or all of them, as in SQL (`"say ""hi"" now"`).

    The same text twice in a row, delimiters and all, is one that came twice.
    """
    first, marks, second = inner.partition('""')
    if marks and first and first == second:
        return True
    runs = [len(found[0]) for found in _RUN.finditer(inner)]
    edges = inner.strip(" \t\r\n")
    at_edge = sum(runs) % 2 == 1 and (edges.startswith('"') or (edges.endswith('"') and not edges.endswith('\\"')))
    return at_edge or (len(runs) > 1 and len(runs) % 2 == 0 and set(runs) == {2})


class _Frame(NamedTuple):
    """An open container, and the one around it."""

    bracket: str
    schema: Schema
    used: frozenset[str]
    outer: _Frame | None


class _Way(NamedTuple):
    """A way through the text so far: the spans of its strings (and of bare words), linked, newest first.

    `passed` is True if a string goes on behind a mark that could have been its end.
    """

    place: int
    state: str
    frame: _Frame | None
    key: str = ""
    marks: int = 0
    odd: bool = False
    passed: bool = False
    span: tuple[str, int, int] | None = None
    before: _Way | None = None

    def spans(self) -> list[tuple[str, int, int]]:
        """All spans in the order of the text."""
        found: list[tuple[str, int, int]] = []
        way: _Way | None = self
        while way is not None:
            if way.span is not None:
                found.append(way.span)
            way = way.before
        return found[::-1]

    def strings(self) -> list[tuple[str, int, int]]:
        """The bodies of the strings that are values, of members or of lists."""
        return [span for span in self.spans() if span[0] in ("value", "item", "loose")]


class _Search:
    """Depth first through every way to read the text, as long as it is affordable."""

    def __init__(self, text: str, schema: Schema) -> None:
        self._text = text
        self._schema = schema
        self._steps = 0

    def readings(self) -> list[_Way] | None:
        """All ways to the end; None if there are too many, or they take too long."""
        pending = [_Way(0, "root", None)]
        found: list[_Way] = []
        while pending:
            self._steps += 1
            way = pending.pop()
            if way.state == "end":
                found.append(way)
            else:
                pending += self._next(way)
            if self._steps > _MOST_STEPS or len(found) > _MOST_READINGS or len(pending) > _MOST_STEPS:
                return None
        return found

    def _next(self, way: _Way) -> list[_Way]:
        place = self._skip(way.place)
        character = self._text[place : place + 1]
        frame = way.frame
        if way.state == "root":
            return [self._enter(way, place, self._schema)] if character == "{" else []
        if frame is None:
            return [way._replace(state="end")] if place == len(self._text) else []
        if way.state == "value":
            return self._value(way, place, character, frame)
        if way.state == "first" and character == ("}" if frame.bracket == "{" else "]"):
            return [self._leave(way, place, frame)]
        if way.state == "behind":
            return self._behind(way, place, character, frame)
        return self._member(way, place, frame) if frame.bracket == "{" else [way._replace(place=place, state="value")]

    def _behind(self, way: _Way, place: int, character: str, frame: _Frame) -> list[_Way]:
        if character == ("}" if frame.bracket == "{" else "]"):
            return [self._leave(way, place, frame)]
        if character != ",":
            return []
        behind = self._skip(place + 1)
        if self._text[behind : behind + 1] == ("}" if frame.bracket == "{" else "]"):  # a comma too many
            left = self._leave(way, behind, frame)
            return [left._replace(span=("comma", place, place + 1), before=way)]
        return [way._replace(place=place + 1, state="next")]

    def _member(self, way: _Way, place: int, frame: _Frame) -> list[_Way]:
        found = _KEY.match(self._text, place)
        if found is None or not self._may_follow(found[2], frame):
            return []
        inner = frame._replace(used=frame.used | {found[2]})
        return [
            way._replace(
                place=found.end(),
                state="value",
                frame=inner,
                key=found[2],
                span=("key", found.start(2), found.end(2)),
                before=way,
            )
        ]

    def _may_follow(self, key: str, frame: _Frame) -> bool:
        return (frame.schema.knows(key) or frame.schema.is_open) and key not in frame.used

    def _value(self, way: _Way, place: int, character: str, frame: _Frame) -> list[_Way]:
        schema = frame.schema.member(way.key) if frame.bracket == "{" else frame.schema.items
        if character in _MARK:
            return self._string(way, place, character, frame)
        if character in ("{", "["):
            return [self._enter(way, place, schema)]
        found = _SCALAR.match(self._text, place)
        if found is None or (found[0][0].isalpha() and found[0] not in LITERALS):
            return []
        span = ("word", found.start(), found.end()) if found[0][0].isalpha() else None
        return [way._replace(place=found.end(), state="behind", frame=frame, key="", span=span, before=way)]

    def _string(self, way: _Way, place: int, quote: str, frame: _Frame) -> list[_Way]:
        """Every place where this string could end."""
        found: list[_Way] = []
        kind = "item" if frame.bracket == "[" else "loose" if frame.schema.is_open else "value"
        marks = 0
        for mark in _MARK[quote].finditer(self._text, place + 1):
            if mark[0] != quote:
                continue
            self._steps += 1
            if self._ends(mark.end(), frame):
                odd = way.odd or marks % 2 == 1
                passed = way.passed or bool(found)
                span = (kind, place + 1, mark.start())
                found.append(_Way(mark.end(), "behind", frame, "", way.marks + marks, odd, passed, span, way))
                if len(found) > _MOST_READINGS * 4:
                    self._steps = _MOST_STEPS + 1
                    return []
            marks += 1
        return found

    def _ends(self, place: int, frame: _Frame) -> bool:
        """Tell whether what follows is what can follow a string here."""
        place = self._skip(place)
        character = self._text[place : place + 1]
        if character == ("}" if frame.bracket == "{" else "]"):
            return self._at(place + 1) in _BEHIND_END[frame.outer.bracket if frame.outer is not None else ""]
        if character != ",":
            return False
        if frame.bracket == "[":
            behind = self._skip(place + 1)
            return self._at(behind) in ('"', "'", "]", "{", "[") or _SCALAR.match(self._text, behind) is not None
        key = _KEY.match(self._text, self._skip(place + 1))
        return self._at(place + 1) == "}" or (key is not None and self._may_follow(key[2], frame))

    def _at(self, place: int) -> str:
        """The next character that is no white space; "" at the end."""
        place = self._skip(place)
        return self._text[place : place + 1]

    def _enter(self, way: _Way, place: int, schema: Schema) -> _Way:
        frame = _Frame(self._text[place], schema, frozenset(), way.frame)
        return way._replace(place=place + 1, state="first", frame=frame, key="", span=None, before=way)

    def _leave(self, way: _Way, place: int, frame: _Frame) -> _Way:
        """A container ends; one that lacks a required key leads nowhere."""
        missing = frame.bracket == "{" and bool(frame.schema.required - frame.used)
        end = len(self._text) + 1 if missing else place + 1
        return way._replace(place=end, state="behind", frame=frame.outer, key="", span=None, before=way)

    def _skip(self, place: int) -> int:
        found = _SPACE.match(self._text, place)
        return found.end() if found is not None else place


def _edits(text: str, way: _Way) -> list[Edit] | None:
    """Write the strings of a way as JSON does; None if one has an ambiguous escape."""
    edits: list[Edit] = []
    for kind, start, end in way.spans():
        inner = text[start:end]
        if kind == "comma":
            edits.append(Edit("trailing_comma", start, inner, ""))
            continue
        if kind == "word":
            if LITERALS[inner] != inner:
                edits.append(Edit("literal", start, inner, LITERALS[inner]))
            continue
        mended = mended_escapes(inner)
        if mended is None:
            return None
        edits += _delimiters(text, start - 1)
        own = [edit._replace(offset=edit.offset + start) for edit in mended]
        for found in _RAW.finditer(inner):
            if found[2]:
                code = "inner_quote" if found[2] == '"' else "control_character"
                own.append(Edit(code, start + found.start(), found[2], escaped(found[2])))
        edits += sorted(own, key=lambda edit: edit.offset)
        edits += _delimiters(text, end)
    return edits


def _delimiters(text: str, place: int) -> list[Edit]:
    return [Edit("quotes", place, "'", '"')] if text[place] == "'" else []
