"""The check that assigns `lossless`: every token of the text before is there afterwards, or its removal is one that loses nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolrun._core.json_text import parse_object
from toolrun._core.lexemes import INVISIBLE, meanings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolrun._core.records import Edit, JsonObject

NOISE: Final = "outer_noise"
"""Edits of this code take away what stands before or behind the object."""

TAG: Final = "stray_tag"
"""Edits of this code take away closing tags and chat template tokens between tokens."""

THINKING: Final = re.compile(rf"\A[\s{INVISIBLE}]*<(think|thinking|reasoning)>(?:(?!</\1>).)*+</\1>", re.DOTALL)

_TAG: Final = re.compile(r"(?:</[A-Za-z_][^<>\"'{}\n]{0,100}>|<\|[^|<>\n]{0,60}\|>)++")
_BRACKET: Final = re.compile(
    rf"""
      "(?:[^"\\]|\\.)*+(?:"|\\?\Z)
    | (?<=[\[{{:,(\s{INVISIBLE}])'(?:[^'\\\n]|\\.)*+'
    | [{{}}\[\]]
    """,
    re.VERBOSE | re.DOTALL,
)


def conserves(before: str, after: str, edits: tuple[Edit, ...]) -> bool:
    """Check that the edits, and nothing else, turn one text into the other without losing a token.

    Each edit must find the text that it says it replaces. Strings, numbers, words and odd characters must say the
    same before and after, one by one and in the same order; how they are written, what separates them, and comments
    may change. Two kinds of edits may take text away: `stray_tag` whole closing tags, and `outer_noise` what stands
    before or behind the object, as long as no other object stands there.
    """
    kept = _apply(before, edits, after)
    return kept is not None and meanings(kept) == meanings(after)


def regions(text: str) -> Iterator[tuple[int, int]]:
    """The outermost pieces of a text in braces: where each begins and ends; one that never ends, ends with the text."""
    place = 0
    while (start := text.find("{", place)) >= 0:
        depth = 0
        place = len(text)
        for found in _BRACKET.finditer(text, start):
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(found[0], 0)
            if depth <= 0:
                place = found.end()
                break
        yield start, place


def _apply(before: str, edits: tuple[Edit, ...], after: str) -> str | None:
    """The text before, without what may be taken away; None if the edits do not make the text after of it."""
    built: list[str] = []
    kept: list[str] = []
    place = 0
    noise: list[str] = []
    for edit in edits:
        end = edit.offset + len(edit.before)
        if edit.offset < place or before[edit.offset : end] != edit.before:
            return None
        between = before[place : edit.offset]
        built += (between, edit.after)
        taken = edit.code == NOISE or (edit.code == TAG and _TAG.fullmatch(edit.before) is not None)
        kept += (between, " " if taken else edit.before)
        if edit.code == NOISE:
            if edit.after or (edit.offset != 0 and end != len(before)):
                return None
            noise.append(edit.before)
        place = end
    rest = before[place:]
    if "".join((*built, rest)) != after or not all(_is_noise(text, after) for text in noise):
        return None
    return "".join((*kept, rest))


def _is_noise(text: str, kept: str) -> bool:
    """Tell whether no object stands in a text except the one that is kept, again, or an empty one.

    What the model says that it thinks is not what it calls.
    """
    text = THINKING.sub("", text)
    own: JsonObject | None = None
    for start, end in regions(text):
        value = parse_object(text[start:end])
        if not isinstance(value, dict):
            continue
        if own is None:
            parsed = parse_object(kept)
            if not isinstance(parsed, dict):
                return False
            own = parsed
        if value and not same(value, own):
            return False
    return True


def same(one: object, other: object) -> bool:
    """Tell whether two decoded values are equal as JSON: `true` is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other
