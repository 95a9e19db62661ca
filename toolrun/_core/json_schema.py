"""JSON Schemas as users and providers write them: checked, closed, and validated against.

Nothing that a `$ref` names is ever fetched, and no pattern can take more than linear time.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from toolrun._core.exceptions import RegistrationError
from toolrun._core.meta_schema import check_schema
from toolrun._core.schema_bounds import check_bounds, check_size, is_repetitive
from toolrun._core.schema_tree import (
    BRANCH_LISTS,
    BRANCH_MAPS,
    BRANCHES,
    DEFINITIONS,
    SUBSCHEMA_LISTS,
    SUBSCHEMA_MAPS,
    SUBSCHEMAS,
    branches,
    subschemas,
)
from toolrun._core.schema_validator import SchemaValidator

if TYPE_CHECKING:
    from toolrun._core.records import ArgumentIssue, JsonObject


class Validator(Protocol):
    """Checks arguments; gives the values for the parameters, or the issues."""

    def validate(self, text: str, arguments: JsonObject) -> Mapping[str, object] | tuple[ArgumentIssue, ...]:
        """Check a text that is known to be one strict JSON object, and that object."""
        ...


_SAYS_OPEN: Final = ("additionalProperties", "unevaluatedProperties", "patternProperties")


def from_json_schema(schema: Mapping[str, object], name: str, *, closed: bool = True) -> tuple[JsonObject, Validator]:
    """Take a JSON Schema for an object (Draft 2020-12, or the draft that `$schema` names).

    Objects that do not say otherwise are closed, here and in what models are told, unless `closed` is False.

    Raises:
        RegistrationError: It is not a valid schema, not for an object, too large, or refers to a place outside itself.
    """
    try:
        return _checked(schema, closed=closed)
    except RegistrationError as error:
        raise RegistrationError(f"tool {name!r}: {error}") from error.__cause__


def _checked(schema: Mapping[str, object], *, closed: bool) -> tuple[JsonObject, Validator]:
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415  # see SchemaValidator

    check_size(schema)
    own: JsonObject = copy.deepcopy(dict(schema))
    own.setdefault("type", "object")
    own.setdefault("properties", {})
    if own["type"] != "object":
        raise RegistrationError(f"the input schema's type must be 'object', not {own['type']!r}")
    for _ in subschemas(own):
        pass  # whatever recurses into it later does not exhaust the stack
    kind = validators.validator_for(own, default=Draft202012Validator)
    check_schema(own, kind)
    told = close_objects(own) if closed else own
    check_bounds(told)
    if "unevaluatedProperties" not in kind.VALIDATORS and any(
        "unevaluatedProperties" in item for item in subschemas(told)
    ):
        raise RegistrationError(
            f"{own['$schema']} cannot close an object that combines schemas;"
            " say additionalProperties there, or write the schema in draft 2020-12"
        )
    return told, SchemaValidator(told, kind, quick=not is_repetitive(told))


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
        for item in subschemas(schema)
        if _combines(item)
        for branch in (item, *branches(item))
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

    if key in SUBSCHEMA_LISTS and isinstance(value, list):
        return [close(item) for item in value]
    if key in SUBSCHEMAS:
        return close(value)
    if key in BRANCHES:
        return close(value, branch=True)
    if key in BRANCH_MAPS and isinstance(value, dict):
        return {name: close(item, branch=True) for name, item in value.items()}
    if key in BRANCH_LISTS and isinstance(value, list):
        return [close(item, branch=branch) for item in value]
    if key in SUBSCHEMA_MAPS and isinstance(value, dict):
        return {name: close(item) for name, item in value.items()}
    if key in DEFINITIONS and isinstance(value, dict):
        return {name: close(item, branch=f"#/{key}/{name}" in combined) for name, item in value.items()}
    return value


def _combines(schema: JsonObject) -> bool:
    """Tell whether keys of an object come from several schemas at once."""
    if "allOf" in schema:
        return True
    return "properties" in schema and (
        any(key in schema for key in ("anyOf", "oneOf", "if", "$ref"))
        or any(isinstance(schema.get(key), dict) for key in BRANCH_MAPS)
    )
