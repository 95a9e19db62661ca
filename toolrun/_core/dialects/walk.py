"""Going through a schema: every schema in it with its place, and copies with each one rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from toolrun._core.schema_tree import (
    BRANCH_LISTS,
    BRANCH_MAPS,
    BRANCHES,
    DEFINITIONS,
    SUBSCHEMA_LISTS,
    SUBSCHEMA_MAPS,
    SUBSCHEMAS,
    resolve,
)

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject

Place: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead to a schema from the outermost one."""

_ONE: Final = frozenset((*SUBSCHEMAS, *BRANCHES))
_LISTS: Final = frozenset((*SUBSCHEMA_LISTS, *BRANCH_LISTS))
_MAPS: Final = frozenset((*SUBSCHEMA_MAPS, *BRANCH_MAPS, *DEFINITIONS))


def children(schema: JsonObject) -> Iterator[tuple[Place, object]]:
    """The schemas directly in a schema, with the way to each; they can be booleans too."""
    for keyword, value in schema.items():
        if keyword in _ONE and isinstance(value, dict | bool):
            yield (keyword,), value
        elif keyword in _LISTS and isinstance(value, list):
            yield from (((keyword, index), item) for index, item in enumerate(value))
        elif keyword in _MAPS and isinstance(value, dict):
            yield from (((keyword, name), item) for name, item in cast("JsonObject", value).items())


def walk(schema: JsonObject, place: Place = ()) -> Iterator[tuple[Place, JsonObject]]:
    """Every schema in a schema, itself first."""
    yield place, schema
    for step, child in children(schema):
        if isinstance(child, dict):
            yield from walk(child, place + step)


def with_children(schema: JsonObject, change: Callable[[Place, JsonObject], object]) -> JsonObject:
    """A copy in which each schema directly inside is what `change` makes of it and of the way to it."""
    changed = dict(schema)
    for step, child in children(schema):
        if not isinstance(child, dict):
            continue
        made = change(step, child)
        if len(step) == 1:
            changed[str(step[0])] = made
            continue
        keyword, key = str(step[0]), step[1]
        held = changed[keyword]
        if held is schema[keyword]:
            changed[keyword] = held = held.copy() if isinstance(held, dict | list) else held
        cast("dict[str | int, object]", held)[key] = made
    return changed


def rewrite(schema: JsonObject, change: Callable[[Place, JsonObject], JsonObject], place: Place = ()) -> JsonObject:
    """A copy in which each schema is what `change` makes of it, the innermost ones first."""
    return change(place, with_children(schema, lambda step, child: rewrite(child, change, place + step)))


def follow(root: JsonObject, schema: JsonObject) -> JsonObject:
    """What a schema that is a reference stands for; any other, and one that leads in a circle, is itself."""
    seen: list[str] = []
    while isinstance(reference := schema.get("$ref"), str) and reference not in seen:
        seen.append(reference)
        found = resolve(root, reference)
        if found is None:
            break
        schema = found
    return schema
