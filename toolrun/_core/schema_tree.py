"""JSON Schemas as trees: the schemas inside a schema, and where references lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote

from toolrun._core.exceptions import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolrun._core.records import JsonObject

MAX_SCHEMA_DEPTH: Final = 64
"""Schemas inside schemas; what is deeper is a mistake, or meant to exhaust the stack."""

SUBSCHEMAS: Final = (
    "items", "additionalItems", "contains", "additionalProperties", "unevaluatedProperties", "unevaluatedItems",
    "propertyNames", "contentSchema",
)  # fmt: skip
SUBSCHEMA_LISTS: Final = ("prefixItems", "items")
SUBSCHEMA_MAPS: Final = ("properties", "patternProperties")
DEFINITIONS: Final = ("$defs", "definitions")
BRANCHES: Final = ("not", "if", "then", "else")
BRANCH_LISTS: Final = ("allOf", "anyOf", "oneOf")
BRANCH_MAPS: Final = ("dependentSchemas", "dependencies")
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def subschemas(schema: JsonObject) -> Iterator[JsonObject]:
    """Every schema in a schema, itself included; data in `enum`, `const`, `default` and `examples` is none.

    Raises:
        RegistrationError: They lie more than `MAX_SCHEMA_DEPTH` inside each other.
    """
    level = [schema]
    for _ in range(MAX_SCHEMA_DEPTH):
        yield from level
        level = [child for parent in level for child in (*inside(parent), *branches(parent), *definitions(parent))]
        if not level:
            return
    raise RegistrationError(f"the schema is more than {MAX_SCHEMA_DEPTH} schemas deep")


def inside(schema: JsonObject) -> list[JsonObject]:
    """The schemas for what is inside the value."""
    return _under(schema, SUBSCHEMAS, SUBSCHEMA_LISTS, SUBSCHEMA_MAPS)


def branches(schema: JsonObject) -> list[JsonObject]:
    """The schemas that look at the same value; references aside."""
    return _under(schema, BRANCHES, BRANCH_LISTS, BRANCH_MAPS)


def definitions(schema: JsonObject) -> list[JsonObject]:
    """The schemas that are only there to be referred to."""
    return _under(schema, (), (), DEFINITIONS)


def _under(
    schema: JsonObject, single: tuple[str, ...], lists: tuple[str, ...], maps: tuple[str, ...]
) -> list[JsonObject]:
    found: list[object] = []
    for key, value in schema.items():
        if isinstance(value, list) and key in lists:
            found += value
        elif isinstance(value, dict) and key in maps:
            found += value.values()
        elif key in single:
            found.append(value)
    return [item for item in found if isinstance(item, dict)]


def references(schema: JsonObject) -> list[str]:
    """What a schema itself, not those inside it, refers to."""
    return [value for key in REFERENCES if isinstance(value := schema.get(key), str)]


def follow(schema: JsonObject, reference: str) -> JsonObject | None:
    """What a reference points to inside the schema; None if it points nowhere, or only at references in a circle."""
    seen: set[str] = set()
    while reference not in seen:
        seen.add(reference)
        found = resolve(schema, reference)
        if found is None or not isinstance(further := found.get("$ref"), str):
            return found
        if found.keys() - {"$ref", "$defs", "definitions", "type", "properties", "additionalProperties"}:
            return found
        reference = further
    return None


def resolve(schema: JsonObject, reference: str) -> JsonObject | None:
    if not reference.startswith("#"):
        return None
    pointer = unquote(reference[1:])
    if pointer and not pointer.startswith("/"):
        anchored = (item for item in subschemas(schema) if pointer in (item.get("$anchor"), item.get("$dynamicAnchor")))
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
