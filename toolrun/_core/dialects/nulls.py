"""Reading what was written under a strict schema: a null that stands for a property that was left out.

Strict schemas of some providers require every property (see `express.with_all_required`); what a model would leave
out it writes as null. Where a property may be left out and takes no null itself, null says that and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from toolrun._core.dialects.express import reads_null_as_left_out
from toolrun._core.dialects.values import json_type, types_of, values_of
from toolrun._core.dialects.walk import Place, follow
from toolrun._core.issues import json_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun._core.records import JsonObject


def leave_out_nulls(schema: JsonObject, arguments: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Take the nulls out that stand for properties that were left out.

    Args:
        schema: The tool's own schema, as it is without strictness.
        arguments: What a model wrote under the strict form of that schema; it is not changed.

    Returns:
        The arguments as the tool's schema has them, and the JSON path of every null that is gone.

    Examples:
        >>> schema = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
        >>> leave_out_nulls({**schema, "required": ["city"]}, {"city": "Oslo", "days": None})
        ({'city': 'Oslo'}, ('$.days',))
    """
    gone: list[Place] = []
    read = _read(schema, arguments, schema, (), gone)
    return cast("JsonObject", read), tuple(json_path(place) for place in gone)


def _read(schema: object, value: object, root: JsonObject, place: Place, gone: list[Place]) -> object:
    if not isinstance(schema, dict) or not isinstance(value, dict | list):
        return value
    for part in _parts(cast("JsonObject", schema), value, root):
        value = _read_object(part, value, root, place, gone) if isinstance(value, dict) else value
        value = _read_array(part, value, root, place, gone) if isinstance(value, list) else value
    return value


def _read_object(
    schema: JsonObject, value: JsonObject, root: JsonObject, place: Place, gone: list[Place]
) -> JsonObject:
    properties = cast("JsonObject", schema.get("properties") or {})
    required = cast("Sequence[object]", schema.get("required") or ())
    read: JsonObject = {}
    for name, item in value.items():
        described = properties.get(name, schema.get("additionalProperties"))
        optional = name in properties and name not in required
        if item is None and optional and reads_null_as_left_out(described, root):
            gone.append((*place, name))
        else:
            read[name] = _read(described, item, root, (*place, name), gone)
    return read


def _read_array(
    schema: JsonObject, value: list[object], root: JsonObject, place: Place, gone: list[Place]
) -> list[object]:
    first = cast("list[object]", schema.get("prefixItems") or [])
    described = [*first, *[schema.get("items")] * max(len(value) - len(first), 0)]
    return [_read(described[index], item, root, (*place, index), gone) for index, item in enumerate(value)]


def _parts(schema: JsonObject, value: object, root: JsonObject, above: tuple[int, ...] = ()) -> list[JsonObject]:
    """The schemas that say something about the value: itself, and the only branch of each union that it can be of."""
    meant = follow(root, schema)
    if id(meant) in above:
        return []
    parts, above = [meant], (*above, id(meant))
    for keyword in ("anyOf", "oneOf"):
        able = [branch for branch in _branches(meant, keyword) if _could_be(branch, value, root)]
        if len(able) == 1:
            parts += _parts(able[0], value, root, above)
    for branch in _branches(meant, "allOf"):
        parts += _parts(branch, value, root, above)
    return parts


def _branches(schema: JsonObject, keyword: str) -> list[JsonObject]:
    held = schema.get(keyword)
    return [branch for branch in held if isinstance(branch, dict)] if isinstance(held, list) else []


def _could_be(branch: JsonObject, value: object, root: JsonObject) -> bool:
    """Tell whether a model can have meant this branch: under a strict schema, an object has all keys and no other."""
    if json_type(value) not in types_of(branch, root):
        return False
    meant = follow(root, branch)
    properties = meant.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return True
    tags = {name: values_of(item) for name, item in properties.items() if isinstance(item, dict)}
    return value.keys() == properties.keys() and all(
        values is None or value[name] in values or value[name] is None for name, values in tags.items()
    )
