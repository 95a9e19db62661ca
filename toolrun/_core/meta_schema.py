"""Checks that a JSON Schema is one, by the meta-schema of its draft, in time that grows with its size and little else."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, cast

from toolrun._core.exceptions import RegistrationError
from toolrun._core.issues import json_path

if TYPE_CHECKING:
    from jsonschema.protocols import Validator as JsonSchemaValidator

    from toolrun._core.records import JsonObject

_RECURSION: Final = ({"$dynamicRef": "#meta"}, {"$recursiveRef": "#"})


def check_schema(schema: JsonObject, kind: type[JsonSchemaValidator]) -> None:
    """See to it that a schema is valid in its draft.

    Raises:
        RegistrationError: It is not; the message has the place.
    """
    from jsonschema.exceptions import best_match  # noqa: PLC0415  # dear to import; few tools need it

    instance: Any = schema
    error = best_match(_checker(kind).iter_errors(instance))
    if error is not None:
        raise RegistrationError(
            f"not a valid JSON Schema at {json_path(error.absolute_path)}: {error.message[:200]}"
        ) from error


@functools.cache
def _checker(kind: type[JsonSchemaValidator]) -> JsonSchemaValidator:
    """The validator of a draft's meta-schema.

    Newer drafts put theirs together from vocabularies, through references that cost most of the time: they are
    merged into one schema first.
    """
    from jsonschema import validators  # noqa: PLC0415  # see above

    meta = cast("JsonObject", kind.META_SCHEMA)
    make: Any = validators.validator_for(cast("Any", meta), default=kind)
    return cast("JsonSchemaValidator", make(_merged(meta), format_checker=make.FORMAT_CHECKER))


def _merged(meta: JsonObject) -> JsonObject:
    parts = meta.get("allOf")
    if not isinstance(parts, list):
        return meta
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # noqa: PLC0415  # see above

    base = str(meta["$id"]).rpartition("/")[0]
    vocabularies = [cast("JsonObject", REGISTRY.contents(f"{base}/{part['$ref']}")) for part in cast("Any", parts)]
    merged: JsonObject = {"type": ["object", "boolean"], "properties": {}, "$defs": {}}
    for part in (*vocabularies, meta):
        for key in ("properties", "$defs"):
            cast("JsonObject", merged[key]).update(cast("JsonObject", part.get(key, {})))
    return cast("JsonObject", _at_home(merged))


def _at_home(value: object) -> object:
    """References to vocabularies, and to the whole, as references into the merged schema."""
    if value in _RECURSION:
        return {"$ref": "#"}
    if isinstance(value, list):
        return [_at_home(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    named = cast("JsonObject", value)
    return {
        key: f"#{item.partition('#')[2]}" if key == "$ref" and isinstance(item, str) else _at_home(item)
        for key, item in named.items()
    }
