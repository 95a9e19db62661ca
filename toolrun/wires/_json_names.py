"""Reading SDK objects under the names and in the forms of the JSON that they were made from.

Some SDKs write `functionCall` as `function_call`, and have enums, bytes and dates where the JSON has text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

from toolrun._core.json_text import MAX_DEPTH, dump_once
from toolrun.wires._reading import fields


def json_fields(value: object) -> Mapping[str, object]:
    """See a mapping or an SDK's object under the names of the JSON: an SDK writes `functionCall` as `function_call`."""
    told = fields(value)
    for key in told:
        if type(key) is not str or "_" in key:
            return {_camel(str(name)): item for name, item in told.items() if item is not None}
    return told


@lru_cache(maxsize=512)
def _camel(key: str) -> str:
    first, *words = key.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in words)


def json_value(value: object, depth: int = 0) -> object:
    """Turn what came into JSON values: an SDK has enums, bytes and dates. What is deeper than arguments may be is cut."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if depth > 2 * MAX_DEPTH:
        return None
    if isinstance(value, list | tuple):
        return [json_value(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {str(key): json_value(item, depth + 1) for key, item in value.items()}
    told = fields(value)
    if not told:
        return str(value)
    return {_camel(key): json_value(item, depth + 1) for key, item in told.items() if item is not None}


def json_or_text(value: object) -> str | None:
    """Text as it is, anything else as JSON; None for nothing, and for what JSON cannot say."""
    value = json_value(value)
    if value is None or isinstance(value, str):
        return value
    try:
        return dump_once(value)
    except ValueError:  # a number with thousands of digits
        return None
