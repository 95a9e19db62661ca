"""Writing a schema in a dialect: exact rewrites where a provider has other words, and an error where it has none.

Each function takes a schema and gives another that takes the same values. Only two things are ever left out: what
says nothing about which values are valid, and a null that stands for a property that was left out (see `nulls`).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final, TypeGuard, cast

from toolrun._core.dialects.checks import check, problem
from toolrun._core.dialects.rules import ANNOTATIONS, CONSTRAINTS, OPEN_FORMATS
from toolrun._core.dialects.values import exclude_each_other, json_type, takes_null, types_of, values_of
from toolrun._core.dialects.walk import rewrite, with_children
from toolrun._core.exceptions import DialectError
from toolrun._core.json_text import dump_once
from toolrun._core.schema_tree import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolrun._core.dialects.rules import SchemaRules
    from toolrun._core.dialects.walk import Place
    from toolrun._core.records import JsonObject

MAX_INLINED: Final = 2_000
"""Schemas in a schema whose references were put in place; more come of a schema that is meant to explode."""

_SAY_NOTHING: Final = {"minItems": 0, "minLength": 0, "minProperties": 0, "uniqueItems": False}
"""Values of keywords that refuse no value."""


def express(schema: JsonObject, rules: SchemaRules) -> JsonObject:
    """Write a schema for arguments so that a provider with these rules takes it, with the same meaning.

    Raises:
        DialectError: It cannot be said under these rules; the message has the JSON path, the part and what to do.
    """
    written = _with_defs(copy.deepcopy(schema))
    if rules.refs == "inlined":
        written = _inlined(written)
    if rules.keywords is not None:
        root = written
        written = rewrite(written, lambda place, item: _in_other_words(place, item, root, rules))
    if rules.refs == "alone":
        written = rewrite(written, lambda _, item: _with_ref_alone(item))
    if rules.all_required:
        written = with_all_required(written)
    check(written, rules)
    return written


# -- references -----------------------------------------------------------------------------


def _with_defs(schema: JsonObject) -> JsonObject:
    """`definitions`, as older drafts say, under its name of today."""
    if "definitions" not in schema or "$defs" in schema:
        return schema

    def renamed(_: Place, item: JsonObject) -> JsonObject:
        reference = item.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/definitions/"):
            return item | {"$ref": "#/$defs/" + reference.removeprefix("#/definitions/")}
        return item

    return rewrite({("$defs" if key == "definitions" else key): value for key, value in schema.items()}, renamed)


def _inlined(root: JsonObject) -> JsonObject:
    """Put what each reference points at in its place.

    What is recursive is decided on the way down, not by what was seen: two properties may refer to the same schema.
    """
    left = MAX_INLINED

    def inlined(schema: JsonObject, place: Place, above: tuple[str, ...]) -> JsonObject:
        nonlocal left
        left -= 1
        if left < 0:
            raise DialectError(f"$: more than {MAX_INLINED} schemas when references are put in place; describe less")
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return with_children(schema, lambda step, child: inlined(child, place + step, above))
        meant = resolve(root, reference)
        if meant is None or reference in above:
            advice = "describe a depth that is bounded, or a flat list whose items name their parent"
            raise DialectError(problem(place, "$ref", "refers to a schema that it is part of", advice))
        beside = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
        if beside.keys() & meant.keys() & CONSTRAINTS:
            raise DialectError(problem(place, "$ref", "cannot be put together with what stands beside it"))
        return inlined({**meant, **beside}, place, (*above, reference))

    return inlined({key: value for key, value in root.items() if key != "$defs"}, (), ())


def _with_ref_alone(item: JsonObject) -> JsonObject:
    """A reference in a branch of its own, if something stands beside it."""
    beside = {keyword: value for keyword, value in item.items() if not keyword.startswith("$")}
    if "$ref" not in item or not beside or beside.keys() & CONSTRAINTS:
        return item
    return {"anyOf": [{keyword: value for keyword, value in item.items() if keyword not in beside}], **beside}


# -- other words ----------------------------------------------------------------------------


def _in_other_words(place: Place, item: JsonObject, root: JsonObject, rules: SchemaRules) -> JsonObject:
    written = dict(_said(item, rules))
    if "const" in written and not rules.takes("const"):
        written["enum"] = [written.pop("const")]
    if "oneOf" in written and not rules.takes("oneOf"):
        if "anyOf" in written or not exclude_each_other(cast("list[object]", written["oneOf"]), root):
            raise DialectError(problem(place, "oneOf", "has branches that a value could fit two of"))
        written["anyOf"] = written.pop("oneOf")
    if not rules.takes("prefixItems"):
        written = _with_equal_items(written)
    if not rules.takes("allOf"):
        written = _without_single_all_of(written, root)
    if isinstance(values := written.get("enum"), list):
        if rules.enum_types is not None and "null" not in rules.enum_types and any(value is None for value in values):
            return _with_null_apart(written)
        if rules.enum_types is not None and "boolean" not in rules.enum_types and _are_both(values):
            return {**{keyword: value for keyword, value in written.items() if keyword != "enum"}, "type": "boolean"}
    if "type" not in written and (values := values_of(written)) is not None:
        return _type_of(values) | written
    return written


def _type_of(values: list[object]) -> JsonObject:
    types = sorted({json_type(value) for value in values})
    return {"type": types[0] if len(types) == 1 else types}


def _said(item: JsonObject, rules: SchemaRules) -> Iterator[tuple[str, object]]:
    """What stays of a schema: all that decides which values are valid, and the rest that the provider knows."""
    described = item.get("description")
    if "default" in item and not rules.takes("default") and not rules.ignores:
        described = _and_say(described, f"Default: {dump_once(item['default'])}.")
    for keyword, value in item.items():
        if keyword != "description" and _stays(keyword, value, rules):
            yield keyword, value
    if described is not None:
        yield "description", described


def _stays(keyword: str, value: object, rules: SchemaRules) -> bool:
    if keyword == "format" and value in OPEN_FORMATS:
        return rules.takes(keyword) and (rules.formats is None or value in rules.formats)
    if rules.takes(keyword):
        return True
    if rules.ignores:
        return keyword != "discriminator"
    return keyword in CONSTRAINTS and (keyword not in _SAY_NOTHING or value != _SAY_NOTHING[keyword])


def _and_say(described: object, more: str) -> str:
    return f"{described.rstrip('. ')}. {more}" if isinstance(described, str) and described.strip() else more


def _with_equal_items(item: JsonObject) -> JsonObject:
    """A tuple of one type is a list of that type, of that length."""
    places = item.get("prefixItems")
    if not isinstance(places, list) or any(place != places[0] for place in places):
        return item
    if item.get("minItems") != len(places) or item.get("maxItems", len(places)) != len(places):
        return item
    if "maxItems" not in item and item.get("items") is not False:
        return item
    rest = {keyword: value for keyword, value in item.items() if keyword != "prefixItems"}
    return {**rest, "items": places[0], "maxItems": len(places)}


def _without_single_all_of(item: JsonObject, root: JsonObject) -> JsonObject:
    """All of one schema is that schema; what closed the two together closes it, if it is of objects at all."""
    parts = item.get("allOf")
    if not isinstance(parts, list) or len(parts) != 1 or not isinstance(parts[0], dict):
        return item
    only = cast("JsonObject", parts[0])
    rest = {keyword: value for keyword, value in item.items() if keyword != "allOf"}
    closed = rest.pop("unevaluatedProperties", None)
    if rest.keys() & only.keys() & CONSTRAINTS:
        return item
    if closed is False and "object" in types_of(only, root):
        if only.keys() & {"$ref", "anyOf", "oneOf", "additionalProperties"}:
            return item
        rest["additionalProperties"] = False
    return {**only, **rest}


def _are_both(values: list[object]) -> bool:
    return all(isinstance(value, bool) for value in values) and len({*values}) == len((True, False))


def _with_null_apart(item: JsonObject) -> JsonObject:
    """Null among the values as a type beside them."""
    values = [value for value in cast("list[object]", item["enum"]) if value is not None]
    said = {keyword: value for keyword, value in item.items() if keyword in ANNOTATIONS}
    if not values:
        return {"type": "null", **said}
    rest = {keyword: value for keyword, value in item.items() if keyword in CONSTRAINTS and keyword != "type"}
    return {"anyOf": [{**_type_of(values), **rest, "enum": values}, {"type": "null"}], **said}


# -- properties that may be left out --------------------------------------------------------


def with_all_required(root: JsonObject) -> JsonObject:
    """Make every property required; one that could be left out takes null instead, if it did not before."""

    def required(_: Place, item: JsonObject) -> JsonObject:
        properties = item.get("properties")
        if not isinstance(properties, dict):
            return item
        before = cast("list[object]", item.get("required") or [])
        now = {
            name: _or_null(described) if name not in before and reads_null_as_left_out(described, root) else described
            for name, described in cast("JsonObject", properties).items()
        }
        return item | {"properties": now, "required": list(now)}

    return rewrite(root, required)


def reads_null_as_left_out(described: object, root: JsonObject) -> TypeGuard[JsonObject]:
    """Tell whether null, for a property that may be left out, can only stand for that: it takes no null itself."""
    return isinstance(described, dict) and not takes_null(described, root)


def _or_null(item: JsonObject) -> JsonObject:
    said = {"description": _and_say(item.get("description"), "Null: left out.")}
    rest = {keyword: value for keyword, value in item.items() if keyword != "description"}
    branches = rest.get("anyOf")
    if isinstance(branches, list) and len(rest) == 1:
        return {"anyOf": [*branches, {"type": "null"}], **said}
    return {"anyOf": [rest, {"type": "null"}], **said}
