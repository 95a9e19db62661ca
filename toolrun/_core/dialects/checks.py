"""Whether a provider takes a schema: each rule of a dialect, checked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from toolrun._core.dialects.rules import CONSTRAINTS
from toolrun._core.dialects.values import json_type, values_of
from toolrun._core.dialects.walk import children, walk
from toolrun._core.exceptions import DialectError
from toolrun._core.issues import json_path
from toolrun._core.schema_tree import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolrun._core.dialects.rules import Limits, SchemaRules
    from toolrun._core.dialects.walk import Place
    from toolrun._core.records import JsonObject

_SHOWN: Final = 5

_COMBINED: Final = "write the combined object out"
_ADVICE: Final = {
    "additionalProperties": "take a list of objects with a key and a value",
    "allOf": _COMBINED,
    "unevaluatedProperties": _COMBINED,
    "patternProperties": "take a list of objects with a key and a value",
    "oneOf": "give each branch a tag of its own: a required property with one value",
    "prefixItems": "take an object with a property for each place",
    "uniqueItems": "take a list, and look for duplicates in the function",
}
_OTHERWISE: Final = "check it in the function instead"


def check(schema: JsonObject, rules: SchemaRules) -> None:
    """See to it that a schema keeps the rules.

    Raises:
        DialectError: It does not; each of up to five places is told as JSON path, part and what to do.
    """
    problems = [
        *_root_problems(schema, rules),
        *(problem for place, item in walk(schema) for problem in _problems(place, item, rules)),
        *_recursion_problems(schema, rules),
        *(f"$: {problem}" for problem in _limit_problems(schema, rules.limits)),
    ]
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise DialectError("; ".join(problems[:_SHOWN]) + more)


def problem(place: Place, part: str, why: str = "is not taken here", advice: str | None = None) -> str:
    """Say where, which part, and what to do."""
    return f"{json_path((*place, part))} {why}; {advice or _ADVICE.get(part, _OTHERWISE)}"


# -- one schema at a time -------------------------------------------------------------------


def _problems(place: Place, item: JsonObject, rules: SchemaRules) -> Iterator[str]:
    for keyword, value in item.items():
        if keyword in CONSTRAINTS and not rules.takes(keyword) and not rules.ignores:
            yield problem(place, keyword)
        elif keyword in rules.values and value not in rules.values[keyword]:
            only = " or ".join(map(str, rules.values[keyword]))
            yield problem(place, keyword, f"is {value!r}, and only {only} is taken here")
    yield from _value_problems(place, item, rules)
    if rules.closed and _is_open(item):
        yield problem(place, "additionalProperties", "must be false here")
    if rules.refs == "alone" and "$ref" in item and any(not keyword.startswith("$") for keyword in item):
        yield problem(place, "$ref", "must stand alone here", _COMBINED)
    if rules.all_of_without_refs and any("$ref" in branch for branch in _listed(item, "allOf")):
        yield problem(place, "allOf", "has a reference, which is not taken here")
    if rules.typed:
        yield from _untyped(place, item)


def _value_problems(place: Place, item: JsonObject, rules: SchemaRules) -> Iterator[str]:
    said = item.get("format")
    if rules.formats is not None and said is not None and said not in rules.formats:
        known = ", ".join(sorted(rules.formats))
        yield problem(place, "format", f"is {said!r}, and only {known} are taken here")
    values = values_of(item)
    if rules.enum_types is not None and values is not None:
        strange = [value for value in values if json_type(value) not in rules.enum_types]
        if strange:
            part = "enum" if "enum" in item else "const"
            advice = f"use values of the types {', '.join(sorted(rules.enum_types))}"
            yield problem(place, part, f"has the value {strange[0]!r}, which is not taken here", advice)
    pattern = item.get("pattern")
    if isinstance(pattern, str) and any(re.search(piece, pattern) for piece in rules.pattern_without):
        yield problem(place, "pattern", f"is {pattern!r}, which has pieces that are not taken here")
    properties = item.get("properties")
    if rules.property_names is not None and isinstance(properties, dict):
        for name in properties:
            if not re.fullmatch(rules.property_names, name):
                why = f"is named {name!r}, and names match {rules.property_names} here"
                yield problem((*place, "properties"), name, why, "name it otherwise, with an alias if need be")


def _listed(item: JsonObject, keyword: str) -> list[JsonObject]:
    held = item.get(keyword)
    return [part for part in held if isinstance(part, dict)] if isinstance(held, list) else []


def _is_open(item: JsonObject) -> bool:
    named = item.get("type")
    is_object = "properties" in item or named == "object" or (isinstance(named, list) and "object" in named)
    return is_object and item.get("additionalProperties") is not False


_SAYS_TYPE: Final = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "oneOf", "type"})


def _untyped(place: Place, item: JsonObject) -> Iterator[str]:
    advice = "say which types it takes"
    if not _SAYS_TYPE & item.keys():
        yield f"{json_path(place)} takes anything, which cannot be said here; {advice}"
    for step, child in children(item):
        if isinstance(child, bool) and step[0] not in ("additionalProperties", "unevaluatedProperties"):
            yield f"{json_path(place + step)} is {str(child).lower()}, which cannot be said here; {advice}"
    if item.get("type") == "array" and not {"items", "prefixItems"} & item.keys():
        yield problem(place, "items", "must be there", "say which items the list takes")


# -- the whole ------------------------------------------------------------------------------


def _root_problems(schema: JsonObject, rules: SchemaRules) -> Iterator[str]:
    for keyword in sorted(rules.root_without & schema.keys()):
        advice = "put it into a property of an outer object"
        yield problem((), keyword, "is not taken in the outermost schema", advice)
    if rules.some_required and not schema.get("required"):
        yield problem((), "required", "must name a property here", "make one parameter required")


def _recursion_problems(schema: JsonObject, rules: SchemaRules) -> Iterator[str]:
    if rules.recursion == "any":
        return
    circle = _circle(schema, schema, (), past_optional=rules.recursion == "none", above=(), done=set())
    if circle is None:
        return
    if rules.recursion == "none":
        advice = "describe a depth that is bounded, or a flat list whose items name their parent"
        yield problem(circle, "$ref", "refers to a schema that it is part of, which cannot be said here", advice)
    else:
        why = "refers to a schema that it is part of, through required properties alone"
        yield problem(circle, "$ref", why, "give a property on the way a default")


def _circle(
    schema: JsonObject, root: JsonObject, place: Place, *, past_optional: bool, above: tuple[int, ...], done: set[int]
) -> Place | None:
    """The place of a reference to a schema that it lies in; None if there is none."""
    if id(schema) in done:
        return None
    inside = (*above, id(schema))
    required = schema.get("required") or ()
    for step, child in children(schema):
        optional = step[0] == "properties" and step[1] not in cast("Sequence[object]", required)
        if not isinstance(child, dict) or step[0] in ("$defs", "definitions") or (optional and not past_optional):
            continue
        found = _circle(child, root, place + step, past_optional=past_optional, above=inside, done=done)
        if found is not None:
            return found
    reference = schema.get("$ref")
    meant = resolve(root, reference) if isinstance(reference, str) else None
    if meant is not None:
        if id(meant) in inside:
            return place
        found = _circle(meant, root, place, past_optional=past_optional, above=inside, done=done)
        if found is not None:
            return found
    done.add(id(schema))
    return None


# -- sizes ----------------------------------------------------------------------------------


def _limit_problems(schema: JsonObject, limits: Limits) -> Iterator[str]:
    items = [item for _, item in walk(schema)]
    properties = [name for item in items for name in _names(item, "properties")]
    definitions = [name for item in items for name in _names(item, "$defs")]
    values = [values_of(item) or [] for item in items]
    characters = sum(map(len, (*properties, *definitions, *(str(value) for own in values for value in own))))
    enums = [enum for item in items if isinstance(enum := item.get("enum"), list)]
    counted = (
        ("properties", len(properties), limits.properties),
        ("characters of names and values", characters, limits.characters),
        ("enum values", sum(len(enum) for enum in enums), limits.enum_values),
        ("objects inside each other", _depth(schema, schema, {}), limits.depth),
    )
    for what, number, most in counted:
        if most is not None and number > most:
            yield f"{number} {what}, and {most} are taken here; split the tool, or describe less"
    if limits.long_enum is not None:
        several, longest = limits.long_enum
        for own in values:
            length = sum(len(value) for value in own if isinstance(value, str))
            if len(own) > several and length > longest:
                yield f"an enum of {len(own)} values with {length} characters, and {longest} are taken here; use a string"


def _names(item: JsonObject, keyword: str) -> list[str]:
    held = item.get(keyword)
    return list(held) if isinstance(held, dict) else []


def _depth(schema: JsonObject, root: JsonObject, known: dict[int, int]) -> int:
    """How many objects lie inside each other; what lies in itself counts once."""
    if id(schema) in known:
        return known[id(schema)]
    known[id(schema)] = 0
    inside = [child for step, child in children(schema) if isinstance(child, dict) and step[0] != "$defs"]
    if isinstance(reference := schema.get("$ref"), str) and (meant := resolve(root, reference)) is not None:
        inside.append(meant)
    deepest = max((_depth(child, root, known) for child in inside), default=0)
    known[id(schema)] = deepest + ("properties" in schema)
    return known[id(schema)]
