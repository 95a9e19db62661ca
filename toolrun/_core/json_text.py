"""Strict JSON: one object, or one issue with its place. Nothing here raises.

RFC 8259 leaves duplicate keys, huge numbers and lone surrogates to the reader; arguments that
run a tool cannot: each is an issue here.
"""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Final, cast

import jiter

from toolrun._core.records import ArgumentIssue

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolrun._core.records import JsonObject

MAX_DEPTH: Final = 128
"""Containers inside containers; the deepest schema seen in practice is under 20."""

_PARSER_DEPTH: Final = 201
"""Containers that jiter reads inside each other."""

MAX_CHARACTERS: Final = 16_000_000
"""One call's argument text. A model that writes more is looping: the longest recorded call has 0.1 % of it."""

EXCERPT_CHARACTERS: Final = 24

_TOO_DEEP: Final = object()
_OPENING: Final = b"[" * (_PARSER_DEPTH - MAX_DEPTH)
_CLOSING: Final = b"]" * len(_OPENING)

_PLACE: Final = re.compile(r" at line (\d+) column (\d+)$")
_CODES: Final = (
    ("EOF while parsing", "truncated"),
    ("Detected duplicate key", "duplicate_key"),
    ("hex escape", "lone_surrogate"),
    ("invalid unicode code point", "lone_surrogate"),
    ("recursion limit", "too_deep"),
    ("number out of range", "number_out_of_range"),
)
_LONE: Final = re.compile("[\ud800-\udfff]")
_CONSTANT: Final = re.compile(r"-?(?:NaN|Infinity)")

# Digits to 0, exponents to e, so that a substring search finds what may overflow to infinity: an
# exponent of three digits or more, or a run of 200 digits (with e99 that is still below 1.8e308).
_NUMBER_SHAPE: Final = bytes(
    ord("0") if byte in b"0123456789" else ord("e") if byte in b"eE" else byte for byte in range(256)
)
_LONG_DIGITS: Final = b"0" * 200
_LONG_EXPONENTS: Final = (b"0e000", b"0e+000")


def parse_object(text: str) -> JsonObject | ArgumentIssue:
    """Parse a text that must be exactly one JSON object.

    Args:
        text: The argument text; JSON white space around the object is fine.

    Returns:
        The object, or the first issue: `syntax`, `truncated`, `not_object`, `duplicate_key`,
        `non_finite`, `number_out_of_range`, `lone_surrogate`, `too_deep`, `too_long`.
    """
    if len(text) > MAX_CHARACTERS:
        return ArgumentIssue("too_long", f"{len(text)} characters, at most {MAX_CHARACTERS} are read", "", 0, 1, 1)
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        return _issue(text, "lone_surrogate", "half of a surrogate pair stands alone", error.start)
    # Counting brackets is a cheap upper bound; most texts have too few to be too deep.
    may_be_deep = len(data) > 2 * MAX_DEPTH and data.count(b"{") + data.count(b"[") > MAX_DEPTH
    try:
        value = _parse_shallow(data) if may_be_deep else _parse(data)
    except ValueError as error:
        return _from_jiter(text, data, str(error))
    if value is _TOO_DEEP:
        return _issue(text, "too_deep", f"more than {MAX_DEPTH} containers inside each other", 0)
    if not isinstance(value, dict):
        kind = "null" if value is None else type(value).__name__
        return _issue(text, "not_object", f"the arguments are {kind}, not an object", 0)
    if _may_overflow(data) and (overflow := _infinite_path(value)) is not None:
        return _issue(text, "number_out_of_range", f"the number at {overflow} is too large for a double", 0)
    return value


def is_complete_container(text: str) -> bool:
    """Tell whether the text is one whole JSON object or array, by the strict rules of syntax alone."""
    stripped = text.strip(" \t\r\n")
    if stripped[:1] not in ("{", "["):
        return False
    try:
        jiter.from_json(stripped.encode(errors="surrogatepass"))
    except ValueError:
        return False
    return True


def opens_object(text: str) -> bool:
    """Tell whether the text begins a new JSON object."""
    return text.lstrip(" \t\r\n").startswith("{")


def dump_once(value: object) -> str:
    """Write a value that came decoded as JSON text: spaced like `json.dumps`, not ASCII-escaped."""
    return json.dumps(value, ensure_ascii=False, default=str)


def dump_strictly(arguments: JsonObject | None) -> str | None:
    """Write an object down as it is; None if JSON cannot say it: nothing is turned into something else."""
    try:
        return json.dumps(arguments, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return None


def join_surrogates(text: str) -> str:
    """Join surrogate halves that arrived in two pieces; a half without its other half stays.

    Some proxies split text by UTF-16 code units. A text without surrogates comes back as it is.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def encodable(value: object) -> object:
    """The same value with a replacement character for each half of a surrogate pair that stands alone.

    Such a half cannot be encoded as UTF-8: one in a message would end the whole next request.
    """
    if isinstance(value, str):
        return value if value.isascii() else _LONE.sub("\ufffd", join_surrogates(value))
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [encodable(item) for item in value]
    return value


def _from_jiter(text: str, data: bytes, said: str) -> ArgumentIssue:
    place = _PLACE.search(said)
    message = said[: place.start()] if place else said
    offset = _offset(data, int(place[1]), int(place[2])) if place else 0
    code = next((code for start, code in _CODES if start in message), "syntax")
    if code == "truncated" and not text.strip():
        return _issue(text, "empty", "the arguments are blank", 0)
    if code == "syntax" and (constant := _CONSTANT.match(text, max(offset - 1, 0)) or _CONSTANT.match(text, offset)):
        return _issue(text, "non_finite", f"{constant[0]} is not JSON", constant.start())
    return _issue(text, code, message, offset)


def _offset(data: bytes, line: int, column: int) -> int:
    """Turn jiter's line and byte column (both end at the offending byte) into a character offset."""
    start = 0
    for _ in range(line - 1):
        start = data.find(b"\n", start) + 1
    end = min(start + max(column - 1, 0), len(data))
    return len(data[:end].decode(errors="ignore"))  # the byte may lie inside a character


def _issue(text: str, code: str, message: str, offset: int) -> ArgumentIssue:
    before = text[:offset]
    line = before.count("\n") + 1
    column = offset - (before.rfind("\n") + 1) + 1
    start = max(0, offset - EXCERPT_CHARACTERS // 2)
    return ArgumentIssue(code, message, "", offset, line, column, text[start : start + EXCERPT_CHARACTERS])


_parse: Final[Callable[[bytes], object]] = functools.partial(
    jiter.from_json, catch_duplicate_keys=True, allow_inf_nan=False
)


def _parse_shallow(data: bytes) -> object:
    """Parse with the parser's own limit of depth at ours: inside so many arrays, no more than `MAX_DEPTH` is left.

    Walking the value would cost as much as parsing it.
    """
    try:
        value = _parse(_OPENING + data + _CLOSING)
        for _ in _OPENING:
            (value,) = cast("list[object]", value)
    except ValueError:
        _parse(data)  # what is not JSON raises here, with its own place
        return _TOO_DEEP
    return value


def _may_overflow(data: bytes) -> bool:
    shape = data.translate(_NUMBER_SHAPE)
    plain, signed = _LONG_EXPONENTS
    return plain in shape or signed in shape or (len(shape) >= len(_LONG_DIGITS) and _LONG_DIGITS in shape)


def _infinite_path(value: object) -> str | None:
    pending: list[tuple[str, object]] = [("$", value)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, dict):
            pending.extend((f"{path}.{key}", child) for key, child in item.items())
        elif isinstance(item, list):
            pending.extend((f"{path}[{index}]", child) for index, child in enumerate(item))
        elif isinstance(item, float) and item in (float("inf"), float("-inf")):
            return path
    return None
