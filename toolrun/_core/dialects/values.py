"""Which values schemas have in common: what JSON types they take, and whether two of them exclude each other."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final, cast

from toolrun._core.dialects.walk import follow
from toolrun._core.json_text import dump_once
from toolrun._core.schema_tree import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolrun._core.records import JsonObject

_ALL: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def json_type(value: object) -> str:
    """The JSON type of a decoded value; whole numbers are integers, also if they are written with a fraction.

    Examples:
        >>> json_type(True), json_type(None), json_type(1), json_type(1.0), json_type([])
        ('boolean', 'null', 'integer', 'integer', 'array')
    """
    if value is None:
        return "null"
    if isinstance(value, float) and value.is_integer():
        return "integer"
    for name, kind in (("boolean", bool), ("integer", int), ("number", float), ("string", str), ("array", list)):
        if isinstance(value, kind):
            return name
    return "object"


def values_of(schema: JsonObject) -> list[object] | None:
    """The values that `enum` or `const` allow; None if the schema has neither."""
    if "const" in schema:
        return [schema["const"]]
    listed = schema.get("enum")
    return list(listed) if isinstance(listed, list) else None


def types_of(schema: object, root: JsonObject, known: dict[int, frozenset[str]] | None = None) -> frozenset[str]:
    """The JSON types of the values that a schema can take, none left out."""
    if not isinstance(schema, dict):
        return frozenset() if schema is False else _ALL
    known = {} if known is None else known
    if id(schema) not in known:
        known[id(schema)] = _ALL  # what a schema says of itself says nothing
        known[id(schema)] = _types_of(cast("JsonObject", schema), root, known)
    return known[id(schema)]


def _types_of(schema: JsonObject, root: JsonObject, known: dict[int, frozenset[str]]) -> frozenset[str]:
    found = _ALL
    named = schema.get("type")
    if isinstance(named, str | list):
        found = frozenset([named] if isinstance(named, str) else named)
        found |= {"integer"} if "number" in found else frozenset()
    values = values_of(schema)
    if values is not None:
        found &= frozenset(json_type(value) for value in values)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(branches := schema.get(keyword), list):
            found &= frozenset[str]().union(*(types_of(branch, root, known) for branch in branches))
    for branch in cast("list[object]", schema.get("allOf") or ()):
        found &= types_of(branch, root, known)
    if isinstance(reference := schema.get("$ref"), str) and (meant := resolve(root, reference)) is not None:
        found &= types_of(meant, root, known)
    return found


def takes_null(schema: object, root: JsonObject) -> bool:
    """Tell whether a schema takes null."""
    return "null" in types_of(schema, root)


def exclude_each_other(branches: Iterable[object], root: JsonObject) -> bool:
    """Tell whether it is certain that no value fits two of the schemas: by their types, or by a tag in each object."""
    return all(
        not types_of(one, root) & types_of(other, root) or _tagged_apart(one, other, root)
        for one, other in combinations(branches, 2)
    )


def _tagged_apart(one: object, other: object, root: JsonObject) -> bool:
    if types_of(one, root) & types_of(other, root) != {"object"}:
        return _values_apart(one, other)
    tags, others = _tags(one, root), _tags(other, root)
    return any(not tags[name] & others[name] for name in tags.keys() & others.keys())


def _values_apart(one: object, other: object) -> bool:
    values = [values_of(schema) if isinstance(schema, dict) else None for schema in (one, other)]
    return values[0] is not None and values[1] is not None and not _texts(values[0]) & _texts(values[1])


def _tags(schema: object, root: JsonObject) -> dict[str, frozenset[str]]:
    """The values of each required property that has only certain ones."""
    meant = follow(root, schema) if isinstance(schema, dict) else {}
    properties, required = meant.get("properties"), meant.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return {}
    found = {name: values_of(item) for name, item in properties.items() if name in required and isinstance(item, dict)}
    return {name: _texts(values) for name, values in found.items() if values is not None}


def _texts(values: list[object]) -> frozenset[str]:
    """`1` and `true` are equal in Python and not in JSON; `1` and `1.0` the other way round."""
    return frozenset(
        dump_once(float(value) if isinstance(value, int) and not isinstance(value, bool) else value) for value in values
    )
