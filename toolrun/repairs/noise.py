"""Noise around the arguments: prose, code fences, thinking, template tokens, and the same object twice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolrun._core.conservation import NOISE, THINKING, regions, same
from toolrun._core.json_text import parse_object
from toolrun._core.lexemes import CURLY_DOUBLE, CURLY_SINGLE, INVISIBLE, meanings
from toolrun._core.records import Edit
from toolrun._core.repair import Declined
from toolrun.repairs._places import Schema
from toolrun.repairs._text import is_beyond, repaired

if TYPE_CHECKING:
    from toolrun._core.repair import Repaired, RepairRequest


# What is no prose: structure, a member, or something that a member could have been.
_TEMPLATE: Final = re.compile(r"\[/?[A-Z_]{3,30}\]|<\|[^|<>\n]{0,60}\|>|</?[A-Za-z_][^<>\"'{}\n]{0,100}>")
_STRUCTURE: Final = re.compile(rf"""[{{}}\[\]]|["'{CURLY_DOUBLE}][ \t\r\n]*:""")
_BLANK: Final = re.compile(rf"[\s{INVISIBLE}]+")
_LONGEST_EMPTY: Final = 200
_FENCE_NAME: Final = re.compile(r"```[\w+-]*")
_MOST_OBJECTS: Final = 64

# How an object can begin, in whatever notation: `{4}` in a pattern and `{city}` in prose are none.
_BEGINS: Final = re.compile(
    rf"""\{{[\s{INVISIBLE}]*+(?:["'{CURLY_DOUBLE}{CURLY_SINGLE}}}{{/\#]|&quot;|[\w$-]++["']?\s*:)"""
)


def outer_noise(request: RepairRequest) -> Repaired | Declined | None:
    r"""Take off what stands around the one object: prose, a code fence, a block of thinking, template tokens.

    An empty object or the same object again counts as noise: some streams send a first and a last snapshot. What is
    taken off must be prose: no brackets, no quoted text with a colon behind it, no comma at the seam.

    Source: fences and prose of chat models; `<|call|>`, `</invoke>` and `[TOOL_CALLS]` of chat templates;
    snapshots glued together by proxies.

    Refuses two different objects: which one was meant is a guess, and running one loses the other. Refuses an empty
    object in prose: `{}` in a sentence is no call without arguments. Refuses what may be a parameter: `limit=5`.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> fence = "`" * 3
        >>> ask(outer_noise, f'Here it is:\n{fence}json\n{{"a": 1}}\n{fence}')
        '{"a": 1}'
        >>> ask(outer_noise, '{"a": 1}{"a": 2}')
        Declined(code='several_objects', detail='2 different objects')
    """
    text = request.text
    if is_beyond(request):
        return None
    begin = found.end() if (found := THINKING.match(text)) else 0
    objects = [(begin + start, begin + end) for start, end in regions(text[begin:])]
    if not objects or len(objects) > _MOST_OBJECTS:
        return None
    kept = _the_one(text, objects)
    if kept is None or isinstance(kept, Declined):
        return kept
    start, end = kept
    before, after = text[begin:start], text[end:]
    if _is_empty(text[start:end]) and _has_words(f"{before} {after}"):
        return None  # braces in a sentence are no call without arguments
    if not _is_prose(before, objects, begin, text) or not _is_prose(after, objects, end, text):
        return None
    if _gives_value(f"{before}\n{after}", Schema.of(request.definition)):
        return None
    edits = [
        Edit(NOISE, place, piece, "") for place, piece in ((0, text[:start]), (end, after)) if piece.strip(" \t\r\n")
    ]
    return repaired(text, edits)


def _gives_value(margins: str, schema: Schema) -> bool:
    """Tell whether a known parameter is given a value outside of the object, as in `limit: 5`."""
    names = "|".join(map(re.escape, schema.properties))
    return bool(names) and re.search(rf"(?<![\w-])(?:{names})[ \t]*[:=][ \t]*[^\s`]", margins) is not None


def _is_empty(region: str) -> bool:
    """Tell whether braces hold nothing that says anything."""
    return len(region) <= _LONGEST_EMPTY and not meanings(_TEMPLATE.sub(" ", region))


def _has_words(margins: str) -> bool:
    """Tell whether anything but code fences and template tokens stands there."""
    bare = _TEMPLATE.sub(" ", _FENCE_NAME.sub(" ", margins)).replace("`", " ")
    return _BLANK.sub("", bare) != ""


def _the_one(text: str, objects: list[tuple[int, int]]) -> tuple[int, int] | Declined | None:
    """Where the object that counts stands."""
    if len(objects) == 1:
        return objects[0] if _BEGINS.match(text, objects[0][0]) else None
    parsed = [(place, value) for place in objects if isinstance(value := parse_object(text[slice(*place)]), dict)]
    full = [(place, value) for place, value in parsed if value]
    if not full:
        return parsed[0][0] if parsed and len(parsed) == len(objects) else None
    different = [number for number, (_, value) in enumerate(full) if not any(same(value, v) for _, v in full[:number])]
    if len(different) > 1:
        return Declined("several_objects", f"{len(different)} different objects")
    return full[0][0]


def _is_prose(piece: str, objects: list[tuple[int, int]], offset: int, text: str) -> bool:
    """Tell whether text around the object holds nothing that could belong to it."""
    place = offset
    outside: list[str] = []
    for start, end in objects:
        if offset <= start and end <= offset + len(piece):
            outside.append(text[place:start])
            # `{city}` in prose, an empty object, or the same one: the caller has looked at those that parse.
            place = end
    outside.append(text[place : offset + len(piece)])
    joined = _TEMPLATE.sub(" ", " ".join(outside))
    lead = _BLANK.sub(" ", joined).strip()
    return not _STRUCTURE.search(joined) and lead[:1] not in (",", ":") and lead[-1:] != ","
