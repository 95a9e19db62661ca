"""What is wrong with arguments, said the same way whichever validator found it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from toolrun._core.records import ArgumentIssue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from jsonschema import ValidationError as Mismatch
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from toolrun._core.records import JsonObject

MAX_ISSUES: Final = 20
"""How many issues are reported; a model cannot use more."""

_SHOWN: Final = 60
_SAID: Final = 200
_CODES: Final = {
    "missing": "missing_key",
    "missing_argument": "missing_key",
    "required": "missing_key",
    "extra_forbidden": "unknown_key",
    "unexpected_keyword_argument": "unknown_key",
    "additionalProperties": "unknown_key",
    "unevaluatedProperties": "unknown_key",
    "type": "type",
}
_SHOULD: Final = "Input should be "


def code_of(kind: str) -> str:
    """The issue code for one of pydantic's error types or a keyword of JSON Schema."""
    return _CODES.get(kind, "type" if kind.endswith("_type") else "value")


def json_path(location: Iterable[object]) -> str:
    """Write a location as a JSON path: `$.items[0].city`; names that need it are quoted: `$["a b"]`."""
    return "$" + "".join(_step(step) for step in location)


def _step(step: object) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    name = str(step)
    return f".{name}" if name.isidentifier() else f"[{json.dumps(name, ensure_ascii=False)}]"


def describe_value(value: object) -> str:
    """Say what came, in a few words: scalars as JSON, cut if long; containers by what they hold."""
    if isinstance(value, dict):
        return f"an object with the keys {_cut(', '.join(map(str, value)))}" if value else "an empty object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, str):
        return json.dumps(value[:_SHOWN], ensure_ascii=False) + ("…" if len(value) > _SHOWN else "")
    return _cut(json.dumps(value, default=repr))


def _cut(text: str, length: int = _SHOWN) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


def issue(code: str, location: Iterable[object], message: str, came: str = "") -> ArgumentIssue:
    """Make an issue of the schema; what was expected is in the message."""
    expected = message.removeprefix(_SHOULD) if message.startswith(_SHOULD) else ""
    return ArgumentIssue(code, message, json_path(location), expected=expected, came=came)


# -- pydantic -------------------------------------------------------------------------------


def typed_issues(error: ValidationError, arguments: JsonObject) -> tuple[ArgumentIssue, ...]:
    """Say what pydantic found, at most `MAX_ISSUES`."""
    return _first(_typed(item, arguments) for item in error.errors(include_url=False, include_context=False))


def _typed(found: ErrorDetails, arguments: JsonObject) -> ArgumentIssue:
    code = code_of(found["type"])
    location = _location(found["loc"], arguments, missing=code == "missing_key")
    return issue(code, location, found["msg"], "" if code.endswith("_key") else describe_value(found["input"]))


def _location(steps: tuple[int | str, ...], arguments: object, *, missing: bool) -> list[int | str]:
    """The steps that lead through the arguments; pydantic puts the names of union arms between them."""
    location: list[int | str] = []
    place: Any = arguments
    for step in steps:
        if _leads_on(place, step):
            place = place[step]
            location.append(step)
    return [*location, steps[-1]] if missing else location


def _leads_on(place: object, step: int | str) -> bool:
    if isinstance(place, list):
        return isinstance(step, int) and step < len(place)
    return isinstance(place, dict) and step in place


# -- jsonschema -----------------------------------------------------------------------------


def schema_issues(errors: Iterable[Mismatch]) -> tuple[ArgumentIssue, ...]:
    """Say what jsonschema found, at most `MAX_ISSUES`."""
    return _first(found for error in errors for found in _described(error))


def _first(found: Iterable[ArgumentIssue]) -> tuple[ArgumentIssue, ...]:
    issues: dict[ArgumentIssue, None] = {}
    for item in found:
        issues[item] = None
        if len(issues) == MAX_ISSUES:
            break
    return tuple(issues)


def _described(error: Mismatch) -> Iterator[ArgumentIssue]:
    keyword, rule, path = str(error.validator), cast("Any", error.validator_value), list(error.absolute_path)
    instance = cast("Any", error.instance)
    if keyword == "required":
        for name in (name for name in rule if name not in instance):
            yield issue("missing_key", [*path, name], "Field required")
    elif keyword == "additionalProperties" and rule is False:
        yield issue("unknown_key", path, error.message)
    else:
        say = _SAY.get(keyword)
        if say is None:
            yield issue(code_of(keyword), path, _cut(_nearest(error) or error.message, _SAID))
        else:
            yield issue(code_of(keyword), path, _SHOULD + say(rule), describe_value(instance))


def _nearest(error: Mismatch) -> str | None:
    """Of alternatives that all fail, say what the one that failed deepest would still need."""
    if not error.context:
        return None
    nearest = max(error.context, key=lambda item: len(item.absolute_path))
    told = next(_described(nearest), None)
    alternatives = f"{_SHOULD}one of {len(cast('Any', error.validator_value))} alternatives"
    return f"{alternatives}; the nearest needs: {told.describe()}" if told else alternatives


def _type(rule: object) -> str:
    return "of type " + " or ".join([rule] if isinstance(rule, str) else cast("list[str]", rule))


def _json(rule: object) -> str:
    return _cut(json.dumps(rule, ensure_ascii=False), _SAID)


_SAY: Final[dict[str, Callable[[Any], str]]] = {
    "type": _type,
    "const": _json,
    "enum": lambda rule: " or ".join(_json(item) for item in rule[:MAX_ISSUES]),
    "pattern": lambda rule: f"text that matches the pattern {rule!r}",
    "minimum": "at least {}".format,
    "maximum": "at most {}".format,
    "exclusiveMinimum": "more than {}".format,
    "exclusiveMaximum": "less than {}".format,
    "multipleOf": "a multiple of {}".format,
    "minLength": "at least {} characters long".format,
    "maxLength": "at most {} characters long".format,
    "minItems": "an array of at least {}".format,
    "maxItems": "an array of at most {}".format,
    "minProperties": "an object with at least {} keys".format,
    "maxProperties": "an object with at most {} keys".format,
    "uniqueItems": lambda _: "an array without repeated items",
}
