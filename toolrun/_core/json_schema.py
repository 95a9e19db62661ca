"""JSON Schemas as users and providers write them: checked, closed, and validated against.

Nothing that a `$ref` names is ever fetched, and no pattern can take more than linear time.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import unquote

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


MAX_SCHEMA_DEPTH: Final = 64
"""Schemas inside schemas; what is deeper is a mistake, or meant to exhaust the stack."""

_SAYS_OPEN: Final = ("additionalProperties", "unevaluatedProperties", "patternProperties")
_SUBSCHEMAS: Final = (
    "items", "contains", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames",
)  # fmt: skip
_SUBSCHEMA_LISTS: Final = ("prefixItems",)
_SUBSCHEMA_MAPS: Final = ("properties", "patternProperties")
_DEFINITIONS: Final = ("$defs", "definitions")
_BRANCHES: Final = ("not", "if", "then", "else")
_BRANCH_LISTS: Final = ("allOf", "anyOf", "oneOf")


def from_json_schema(schema: Mapping[str, object], name: str) -> tuple[JsonObject, Validator]:
    """Take a JSON Schema for an object (Draft 2020-12, or the draft that `$schema` names).

    Objects that do not say otherwise are closed, here and in what models are told.

    Raises:
        RegistrationError: It is not a valid schema, not for an object, or refers to a place outside itself.
    """
    from jsonschema import Draft202012Validator, SchemaError, validators  # noqa: PLC0415  # see SchemaValidator

    try:
        own = copy.deepcopy(dict(schema))
    except RecursionError:
        raise RegistrationError(f"tool {name!r}: the schema is more than {MAX_SCHEMA_DEPTH} schemas deep") from None
    own.setdefault("type", "object")
    own.setdefault("properties", {})
    if own["type"] != "object":
        raise RegistrationError(f"tool {name!r}: the input schema's type must be 'object', not {own['type']!r}")
    kind = validators.validator_for(own, default=Draft202012Validator)
    try:
        _check_depth(own)
        kind.check_schema(own)
        _check_bounds(own)
    except SchemaError as error:
        raise RegistrationError(
            f"tool {name!r}: not a valid JSON Schema at {json_path(error.absolute_path)}: {error.message}"
        ) from error
    except RegistrationError as error:
        raise RegistrationError(f"tool {name!r}: {error}") from error
    closed = close_objects(own)
    if "unevaluatedProperties" not in kind.VALIDATORS and any(
        "unevaluatedProperties" in item for item in _subschemas(closed)
    ):
        raise RegistrationError(
            f"tool {name!r}: {own['$schema']} cannot close an object that combines schemas;"
            " say additionalProperties there, or write the schema in draft 2020-12"
        )
    return closed, SchemaValidator(closed)


def _check_depth(schema: JsonObject) -> None:
    """See to it that nothing that recurses into the schema exhausts the stack."""
    for _ in _subschemas(schema):
        pass


def _check_bounds(schema: JsonObject) -> None:
    """See to it that no pattern takes unbounded time and no reference leads out or round in a circle."""
    for keyword, pattern in _patterns(schema):
        if not (is_linear if keyword == "pattern" else is_simple)(pattern):
            raise RegistrationError(
                f"{keyword} {pattern!r} could take unbounded time on what a model writes;"
                " use one without look-around, back-references and (in patternProperties) repeated groups"
            )
    for reference in _references(schema):
        if _follow(schema, reference) is None:
            raise RegistrationError(
                f"$ref {reference!r} does not point at a schema inside this one; nothing is ever fetched"
            )
    if _follow({**schema}, "#") is None:
        raise RegistrationError("$ref '#' leads round in a circle")


def close_objects(schema: JsonObject) -> JsonObject:
    """Close every object with properties that does not say whether it is open.

    Where a schema combines others, each of them sees only its own keys: the whole is closed with
    `unevaluatedProperties`, and what it combines, definitions included, stays open.
    """
    return _close(schema, combined_definitions(schema), branch=False)


def combined_definitions(schema: JsonObject) -> frozenset[str]:
    """The `$ref`s that schemas with keys of their own are combined with."""
    return frozenset(
        reference
        for item in _subschemas(schema)
        if _combines(item)
        for branch in (item, *_branches(item))
        if isinstance(reference := branch.get("$ref"), str)
    )


def _close(schema: JsonObject, combined: frozenset[str], *, branch: bool) -> JsonObject:
    """Close what is inside, then the schema itself, unless it is a branch of a larger one."""
    inner = _combines(schema)
    closed = {key: _close_inside(key, value, combined, branch=branch or inner) for key, value in schema.items()}
    if branch or any(key in schema for key in _SAYS_OPEN):
        return closed
    if inner or schema.get("$ref") in combined:
        closed["unevaluatedProperties"] = False
    elif "properties" in schema:
        closed["additionalProperties"] = False
    return closed


def _close_inside(key: str, value: object, combined: frozenset[str], *, branch: bool) -> object:
    """Close the schemas under one keyword; what is data, or not a schema, stays as it is."""

    def close(item: object, *, branch: bool = False) -> object:
        return _close(item, combined, branch=branch) if isinstance(item, dict) else item

    if key in _SUBSCHEMAS:
        return close(value)
    if key in _BRANCHES:
        return close(value, branch=True)
    if key in _SUBSCHEMA_LISTS and isinstance(value, list):
        return [close(item) for item in value]
    if key in _BRANCH_LISTS and isinstance(value, list):
        return [close(item, branch=branch) for item in value]
    if key in _SUBSCHEMA_MAPS and isinstance(value, dict):
        return {name: close(item) for name, item in value.items()}
    if key in _DEFINITIONS and isinstance(value, dict):
        return {name: close(item, branch=f"#/{key}/{name}" in combined) for name, item in value.items()}
    return value


def _combines(schema: JsonObject) -> bool:
    """Tell whether keys of an object come from several schemas at once."""
    if "allOf" in schema:
        return True
    return "properties" in schema and any(key in schema for key in ("anyOf", "oneOf", "if", "$ref", "dependentSchemas"))


def _branches(schema: JsonObject) -> list[JsonObject]:
    lists = [item for key in _BRANCH_LISTS if isinstance(value := schema.get(key), list) for item in value]
    return [item for item in (*lists, *(schema.get(key) for key in _BRANCHES)) if isinstance(item, dict)]


def _subschemas(schema: JsonObject) -> Iterator[JsonObject]:
    """Every schema in a schema, itself included; data in `enum`, `const`, `default` and `examples` is none.

    Raises:
        RegistrationError: They lie more than `MAX_SCHEMA_DEPTH` inside each other.
    """
    level = [schema]
    for _ in range(MAX_SCHEMA_DEPTH):
        yield from level
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise RegistrationError(f"the schema is more than {MAX_SCHEMA_DEPTH} schemas deep")


def _children(schema: JsonObject) -> Iterator[JsonObject]:
    for key, value in schema.items():
        if key in (*_SUBSCHEMAS, *_BRANCHES):
            found: list[object] = [value]
        elif key in (*_SUBSCHEMA_LISTS, *_BRANCH_LISTS) and isinstance(value, list):
            found = list(value)
        elif key in (*_SUBSCHEMA_MAPS, *_DEFINITIONS) and isinstance(value, dict):
            found = list(value.values())
        else:
            continue
        yield from (item for item in found if isinstance(item, dict))


def _patterns(schema: JsonObject) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for item in _subschemas(schema):
        if isinstance(pattern := item.get("pattern"), str):
            found.append(("pattern", pattern))
        if isinstance(keys := item.get("patternProperties"), dict):
            found += [("patternProperties", str(key)) for key in keys]
    return found


def _references(schema: JsonObject) -> list[str]:
    return [
        value
        for item in _subschemas(schema)
        for key in ("$ref", "$dynamicRef")
        if isinstance(value := item.get(key), str)
    ]


def _follow(schema: JsonObject, reference: str) -> JsonObject | None:
    """What a reference points to inside the schema; None if it points nowhere, or only at references in a circle."""
    seen: set[str] = set()
    while reference not in seen:
        seen.add(reference)
        found = _resolve(schema, reference)
        if found is None or not isinstance(further := found.get("$ref"), str):
            return found
        if found.keys() - {"$ref", "$defs", "definitions", "type", "properties", "additionalProperties"}:
            return found
        reference = further
    return None


def _resolve(schema: JsonObject, reference: str) -> JsonObject | None:
    if not reference.startswith("#"):
        return None
    pointer = unquote(reference[1:])
    if pointer and not pointer.startswith("/"):
        anchored = (
            item for item in _subschemas(schema) if pointer in (item.get("$anchor"), item.get("$dynamicAnchor"))
        )
        return next(anchored, None)
    place: object = schema
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list):
            listed = cast("list[object]", place)
            place = listed[int(key)] if key.isdecimal() and int(key) < len(listed) else None
        elif isinstance(place, dict) and key in place:
            place = place[key]
        else:
            return None
    return place if isinstance(place, dict) else {} if isinstance(place, bool) else None
