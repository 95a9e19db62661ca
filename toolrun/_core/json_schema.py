"""JSON Schemas as users and providers write them: checked, closed, and validated against.

Nothing that a `$ref` names is ever fetched, and no pattern can take more than linear time.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import jiter

from toolrun._core.exceptions import RegistrationError
from toolrun._core.patterns import found_in, is_linear, is_simple
from toolrun._core.records import ArgumentIssue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jsonschema.protocols import Validator as JsonSchemaValidator

    from toolrun._core.records import JsonObject

MAX_ISSUES: Final = 20
"""How many schema issues are reported; a model cannot use more."""


class Validator(Protocol):
    """Checks arguments; gives the values for the parameters, or the issues."""

    def validate(self, text: str, arguments: JsonObject) -> Mapping[str, object] | tuple[ArgumentIssue, ...]:
        """Check a text that is known to be one strict JSON object, and that object."""
        ...


class SchemaValidator:
    """Validates by a JSON Schema, with jsonschema; the validator is built once, at the first call."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema

    @cached_property
    def _validator(self) -> JsonSchemaValidator:
        from jsonschema import Draft202012Validator, validators  # noqa: PLC0415  # dear to import; few tools need it

        kind = validators.validator_for(self._schema, default=Draft202012Validator)
        extend: Any = validators.extend
        return cast("JsonSchemaValidator", extend(kind, {"pattern": _linear_pattern})(self._schema))

    def validate(self, text: str, arguments: JsonObject) -> Mapping[str, object] | tuple[ArgumentIssue, ...]:
        """See `Validator`."""
        instance: Any = arguments
        if self._validator.is_valid(instance):
            # The handler gets values of its own: what it does to them changes neither history nor record.
            return cast("dict[str, object]", jiter.from_json(text.encode()))
        issues = []
        for error in self._validator.iter_errors(instance):
            code = ISSUE_CODES.get(str(error.validator), "value")
            issues.append(ArgumentIssue(code, error.message, json_path(error.absolute_path)))
            if len(issues) == MAX_ISSUES:
                break
        return tuple(issues)


def _linear_pattern(_validator: object, pattern: str, instance: object, _schema: object) -> Iterator[Exception]:
    """The keyword `pattern`, by the linear engine."""
    from jsonschema import ValidationError as Mismatch  # noqa: PLC0415  # see above

    if isinstance(instance, str) and not found_in(pattern, instance):
        yield Mismatch(f"{instance[:_SHOWN]!r} does not match {pattern!r}")


_SHOWN: Final = 60
ISSUE_CODES: Final = {
    "missing": "missing_key",
    "required": "missing_key",
    "extra_forbidden": "unknown_key",
    "additionalProperties": "unknown_key",
    "unevaluatedProperties": "unknown_key",
    "type": "type",
    "int_type": "type",
    "float_type": "type",
    "string_type": "type",
    "bool_type": "type",
    "list_type": "type",
    "dict_type": "type",
}


def json_path(location: Iterable[object]) -> str:
    """Write a location as a JSON path: `$.items[0].city`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)


_COMBINATORS: Final = ("allOf", "anyOf", "oneOf", "if", "$ref", "dependentSchemas")
_SAYS_OPEN: Final = ("additionalProperties", "unevaluatedProperties", "patternProperties")
_SUBSCHEMAS: Final = ("items", "contains", "not", "additionalProperties", "unevaluatedProperties", "unevaluatedItems")
_SUBSCHEMA_LISTS: Final = ("prefixItems",)
_SUBSCHEMA_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions")


def from_json_schema(schema: Mapping[str, object], name: str) -> tuple[JsonObject, Validator]:
    """Take a JSON Schema for an object (Draft 2020-12, or the draft that `$schema` names).

    Objects that do not say otherwise are closed, here and in what models are told.

    Raises:
        RegistrationError: It is not a valid schema, not for an object, or refers to a place outside itself.
    """
    from jsonschema import Draft202012Validator, SchemaError, validators  # noqa: PLC0415  # see SchemaValidator

    own = copy.deepcopy(dict(schema))
    own.setdefault("type", "object")
    own.setdefault("properties", {})
    if own["type"] != "object":
        raise RegistrationError(f"tool {name!r}: the input schema's type must be 'object', not {own['type']!r}")
    kind = validators.validator_for(own, default=Draft202012Validator)
    try:
        kind.check_schema(own)
    except SchemaError as error:
        raise RegistrationError(
            f"tool {name!r}: not a valid JSON Schema at {json_path(error.absolute_path)}: {error.message}"
        ) from error
    for keyword, pattern in _patterns(own):
        if not (is_linear if keyword == "pattern" else is_simple)(pattern):
            raise RegistrationError(
                f"tool {name!r}: {keyword} {pattern!r} could take unbounded time on what a model writes;"
                " use one without look-around, back-references and (in patternProperties) repeated groups"
            )
    for reference in _references(own):
        if not reference.startswith("#") or not _resolves(own, reference):
            raise RegistrationError(
                f"tool {name!r}: $ref {reference!r} does not point into the schema itself; nothing is ever fetched"
            )
    closed = close_objects(own)
    return closed, SchemaValidator(closed)


def close_objects(schema: JsonObject) -> JsonObject:
    """Close every object with properties that does not say whether it is open.

    Where a schema combines others, each of them sees only its own keys: the whole is closed with
    `unevaluatedProperties`, and the branches stay as they are.
    """
    closed: JsonObject = dict(schema)
    for key in _SUBSCHEMAS:
        if isinstance(value := closed.get(key), dict):
            closed[key] = close_objects(value)
    for key in _SUBSCHEMA_LISTS:
        if isinstance(value := closed.get(key), list):
            closed[key] = [close_objects(item) if isinstance(item, dict) else item for item in value]
    for key in _SUBSCHEMA_MAPS:
        if isinstance(value := closed.get(key), dict):
            closed[key] = {
                name: close_objects(item) if isinstance(item, dict) else item for name, item in value.items()
            }
    if "properties" in closed and not any(key in closed for key in _SAYS_OPEN):
        combined = any(key in closed for key in _COMBINATORS)
        closed["unevaluatedProperties" if combined else "additionalProperties"] = False
    return closed


def _patterns(schema: object) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    pending = [schema]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if isinstance(item.get("pattern"), str):
                found.append(("pattern", item["pattern"]))
            if isinstance(item.get("patternProperties"), dict):
                found += [("patternProperties", str(key)) for key in item["patternProperties"]]
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return found


def _references(schema: object) -> list[str]:
    found: list[str] = []
    pending = [schema]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            found += [item[key] for key in ("$ref", "$dynamicRef") if isinstance(item.get(key), str)]
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return found


def _resolves(schema: JsonObject, reference: str) -> bool:
    if reference == "#":
        return True
    if not reference.startswith("#/"):
        return any(item == reference[1:] for item in _anchors(schema))
    place: object = schema
    for step in reference[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(place, dict) or key not in place:
            return False
        place = place[key]
    return True


def _anchors(schema: object) -> list[object]:
    if isinstance(schema, dict):
        own = [schema[key] for key in ("$anchor", "$dynamicAnchor") if key in schema]
        return own + [anchor for value in schema.values() for anchor in _anchors(value)]
    if isinstance(schema, list):
        return [anchor for value in schema for anchor in _anchors(value)]
    return []
