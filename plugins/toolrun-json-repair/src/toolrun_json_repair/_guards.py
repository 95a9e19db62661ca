"""What a proposal must not have done. Every guard reads the text as it stands, without a guess at where strings end.

A repairer that takes any text has an answer for any text. These tell the answers that only sort the characters of the
text from those that invent something, leave something out, or close what was cut. In doubt they say no.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

_QUOTE: Final = re.compile(r'(?<!\\)(?:\\\\)*+"')
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BEFORE_A_STRING: Final = re.compile(r"[:,\[{(]\s*+\Z")
_NO_VALUE: Final = re.compile(r"[:,\[]\s*+(?:[,}\]]|\.\.\.|-?(?:undefined|NaN|Infinity)\b)")
_KEY: Final = re.compile(
    r"""
      "([^"'\\:,{}\[\]\n]{1,200})"\s*+:
    | '([^"'\\:,{}\[\]\n]{1,200})'\s*+:
    | [{,\n][ \t]*+([^\W\d][\w-]{0,200})\s*+:(?!//)
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|[bfnrt"\\/])')
_ODD_ESCAPE: Final = re.compile(r'(?<!\\)(?:\\\\)*+\\(?!["\\/bfnrt]|u[0-9A-Fa-f]{4})')
_LITERAL: Final = re.compile(r"\b(?:True|TRUE|False|FALSE|None|NULL)\b")
_AS_JSON: Final = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "None": "null", "NULL": "null"}
_SPACE: Final = re.compile(r"\s+")
_COMMA_IN_DIGITS: Final = re.compile(r"(?<=\d),(?=\d)")
_STRUCTURE: Final = re.compile("[\"'\u201c\u201d\u2018\u2019`{}\\[\\],:\\\\]+")


def may_be_cut(text: str) -> bool:
    """Tell whether the end of a text may be missing: closing it would make a part pass for the whole.

    Examples:
        >>> [may_be_cut(text) for text in ('{"a": [{"b": 1}', '{"code": "}', '{"a": "5" tall"}')]
        [True, True, False]
    """
    text = text.rstrip(" \t\r\n`")
    # With what seem to be strings and without: either may hold brackets of its own that make up for missing ones.
    if not text.endswith("}") or _is_open(text) or _is_open(_STRING.sub("", text)):
        return True
    last = 0
    for found in _QUOTE.finditer(text):
        last = found.end() - 1
    return _BEFORE_A_STRING.search(text, max(0, last - 100), last) is not None


def _is_open(text: str) -> bool:
    return text.count("{") + text.count("[") > text.count("}") + text.count("]")


def lacks_a_value(text: str) -> bool:
    """Tell whether a value is missing somewhere, or is none that JSON has.

    Examples:
        >>> [lacks_a_value(text) for text in ('{"a": , "b": 1}', '{"a": undefined}', '{"a": ""}')]
        [True, True, False]
    """
    return _NO_VALUE.search(text) is not None


def has_an_odd_escape(text: str) -> bool:
    r"""Tell whether there is a backslash that JSON has no reading for; whether it belongs to the value is not known.

    Examples:
        >>> [has_an_odd_escape(text) for text in (r'{"a": "\$HOME"}', r'{"a": "x\u00"}', r'{"a": "\n\u00e9"}')]
        [True, True, False]
    """
    return _ODD_ESCAPE.search(text) is not None


def keeps_keys(text: str, proposal: dict[str, object]) -> bool:
    """Tell whether whatever looks like a key in the text is a key of the proposal, as often as in the text.

    Examples:
        >>> [keeps_keys('{"a": "x, "b": 1}', proposal) for proposal in ({"a": "x", "b": 1}, {"a": 'x, "b": 1'})]
        [True, False]
    """
    written = Counter(key for found in _KEY.findall(text) for key in found if key)
    return written <= Counter(_keys(proposal))


def keeps_characters(text: str, proposal: str) -> bool:
    """Tell whether two texts have the same characters in the same order, apart from space, quotes, brackets, commas and colons.

    So no word, digit or sign was invented, left out or written in another way. A comma between digits counts.

    Examples:
        >>> [keeps_characters('{"a": 1,200}', proposal) for proposal in ('{"a":"1,200"}', '{"a":1200}')]
        [True, False]
    """
    return _significant(text) == _significant(proposal)


def joined(text: str) -> str:
    """The text with the halves of surrogate pairs joined where they stand side by side: `json_repair` leaves them apart."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _keys(value: object) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield from item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _significant(text: str) -> str:
    text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "", text)
    text = _LITERAL.sub(lambda found: _AS_JSON[found[0]], joined(text))
    return _STRUCTURE.sub("", _COMMA_IN_DIGITS.sub("|", _SPACE.sub("", text)))
