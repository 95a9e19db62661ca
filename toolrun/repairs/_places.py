"""What a JSON Schema says of one place in the arguments, as far as a repair has to know."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, cast

from toolrun._core.schema_tree import follow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolrun._core.calls import ToolDefinition
    from toolrun._core.records import JsonObject

_MAX_EXPANSION: Final = 64
_MOST_PLACES: Final = 500
_KINDS: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


class Schema:
    """One place: every schema that may apply there, references followed.

    It only tells repairs where to look. Whether a repaired call fits, the tool's own validator decides.
    """

    def __init__(self, options: Iterable[JsonObject], root: JsonObject) -> None:
        self._root = root
        self._options = tuple(options)
        self._members: dict[str, Schema] = {}

    @classmethod
    def of(cls, definition: ToolDefinition | None) -> Schema:
        """The place of the arguments themselves."""
        schema = definition.input_schema if definition is not None else {}
        return cls([schema], schema)

    @cached_property
    def kinds(self) -> frozenset[str] | None:
        """The kinds of JSON values that may stand here; None if any may."""
        return _union(_kinds(option, self._root, 0) for option in self._options)

    @cached_property
    def texts(self) -> tuple[str, ...] | None:
        """The only texts that may stand here; None if they are not listed."""
        listed = _texts(self._options, self._root, 0)
        return None if listed is None else tuple(dict.fromkeys(listed))

    @cached_property
    def properties(self) -> dict[str, Schema]:
        """The declared keys."""
        found: dict[str, list[JsonObject]] = {}
        for part in self._parts:
            declared = part.get("properties")
            if isinstance(declared, dict):
                for key, schema in declared.items():
                    found.setdefault(key, []).append(schema if isinstance(schema, dict) else {})
        return {key: Schema(schemas, self._root) for key, schemas in found.items()}

    @cached_property
    def required(self) -> frozenset[str]:
        """Keys that some schema here requires."""
        lists = (part.get("required") for part in self._parts)
        return frozenset(str(key) for listed in lists if isinstance(listed, list) for key in listed)

    @cached_property
    def is_open(self) -> bool:
        """True if keys that are not declared may come."""
        return any(
            part.get("additionalProperties", False) is not False or part.get("patternProperties")
            for part in self._parts
        )

    @cached_property
    def all_keys(self) -> frozenset[str]:
        """The declared keys here and everywhere inside."""
        found: set[str] = set()
        pending: list[Schema] = [self]
        for _ in range(_MOST_PLACES):
            if not pending:
                break
            place = pending.pop(0)
            fresh = {key: schema for key, schema in place.properties.items() if key not in found}
            found.update(fresh)
            pending += [*place.properties.values(), place.items] if fresh or place.has_items else []
        return frozenset(found)

    @cached_property
    def has_items(self) -> bool:
        """True if an array may stand here whose items are described."""
        return any(isinstance(part.get("items"), dict) for part in self._parts)

    def knows(self, key: str) -> bool:
        """Tell whether a key is declared."""
        return key in self.properties

    def member(self, key: str) -> Schema:
        """The place under a key."""
        if (declared := self.properties.get(key)) is not None:
            return declared
        return self._others or self._anything

    @cached_property
    def _others(self) -> Schema | None:
        others = [part.get("additionalProperties") for part in self._parts]
        found = [schema for schema in others if isinstance(schema, dict)]
        return Schema(found, self._root) if found else None

    @cached_property
    def _anything(self) -> Schema:
        """A place of which nothing is known; so it is inside of it."""
        return Schema([{}], self._root) if any(self._options) else self

    @cached_property
    def items(self) -> Schema:
        """The place of an item of an array."""
        found = [items for part in self._parts if isinstance(items := part.get("items"), dict)]
        return Schema(found, self._root) if found else self._anything

    @cached_property
    def _parts(self) -> tuple[JsonObject, ...]:
        """The options, and all that they combine."""
        found: list[JsonObject] = []
        pending = list(self._options)
        while pending and len(found) < _MAX_EXPANSION:
            part = _resolved(pending.pop(0), self._root)
            found.append(part)
            pending += [option for key in ("allOf", "anyOf", "oneOf") for option in _list(part, key)]
        return tuple(found)


def _resolved(schema: JsonObject, root: JsonObject) -> JsonObject:
    reference = schema.get("$ref")
    found = follow(root, reference) if isinstance(reference, str) else None
    return schema if found is None else {**found, **{key: value for key, value in schema.items() if key != "$ref"}}


def _list(schema: JsonObject, key: str) -> Iterator[JsonObject]:
    listed = schema.get(key)
    yield from (item for item in listed if isinstance(item, dict)) if isinstance(listed, list) else ()


def _kinds(schema: JsonObject, root: JsonObject, depth: int) -> frozenset[str] | None:
    if depth > _MAX_EXPANSION:
        return None
    schema = _resolved(schema, root)
    allowed: list[frozenset[str] | None] = []
    if isinstance(own := schema.get("type"), str | list):
        allowed.append(frozenset([own] if isinstance(own, str) else map(str, own)))
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list):
        allowed.append(frozenset("null" if value is None else _KINDS[type(value)] for value in values))
    for options in filter(None, (list(_list(schema, key)) for key in ("anyOf", "oneOf"))):
        allowed += [_union(_kinds(option, root, depth + 1) for option in options)]
    allowed += [_kinds(option, root, depth + 1) for option in _list(schema, "allOf")]
    known = [kinds for kinds in allowed if kinds is not None]
    return None if not known else frozenset.intersection(*map(_with_integers, known))


def _with_integers(kinds: frozenset[str]) -> frozenset[str]:
    return kinds | {"integer"} if "number" in kinds else kinds


def _union(options: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    listed = list(options)
    if any(kinds is None for kinds in listed):
        return None
    return frozenset().union(*cast("list[frozenset[str]]", listed))


def _texts(options: Iterable[JsonObject], root: JsonObject, depth: int) -> list[str] | None:
    found: list[str] = []
    for option in options:
        schema = _resolved(option, root)
        kinds = _kinds(schema, root, depth)
        if kinds is not None and "string" not in kinds:
            continue
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list):
            found.extend(value for value in values if isinstance(value, str))
            continue
        inner = [*_list(schema, "anyOf"), *_list(schema, "oneOf"), *_list(schema, "allOf")]
        listed = _texts(inner, root, depth + 1) if inner and depth < _MAX_EXPANSION else None
        if listed is None:
            return None
        found += listed
    return found
