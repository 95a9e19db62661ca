"""Reading what a provider or its SDK hands over, without importing the SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from toolrun._core.json_text import dump_once

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject

_NOTHING: Mapping[str, object] = {}


def fields(value: object) -> Mapping[str, object]:
    """See a mapping or an SDK's object as a mapping; anything else as an empty one.

    A pydantic model keeps its fields in `__dict__` and what it did not know in
    `__pydantic_extra__`; reading them there costs nothing and changes nothing.

    Args:
        value: An event, or anything in one.

    Examples:
        >>> from types import SimpleNamespace
        >>> fields({"a": 1}), fields(SimpleNamespace(a=1)), fields("a"), fields(None)
        ({'a': 1}, {'a': 1}, {}, {})
    """
    if type(value) is dict:
        return value
    own = getattr(value, "__dict__", None)
    extra = getattr(value, "__pydantic_extra__", _NOTHING)
    if extra is not _NOTHING and type(own) is dict:  # a model; asked first, as telling a Mapping is slow
        return {**own, **extra} if extra else own
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value)
    return own if type(own) is dict else _NOTHING


def plain(value: object) -> object:
    """Turn SDK objects into plain data, all the way down; what has no fields stays as it is.

    Args:
        value: What a provider wants back, for instance.

    Examples:
        >>> from types import SimpleNamespace
        >>> plain([SimpleNamespace(a=SimpleNamespace(b=1))])
        [{'a': {'b': 1}}]
    """
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return plain_object(value) if isinstance(value, Mapping) or fields(value) else value


def plain_object(value: object) -> JsonObject:
    """`plain` for something that has fields. Of a model, a None that was sent stays, and one that is a default goes.

    Args:
        value: A mapping or an SDK's object; anything else becomes an empty object.
    """
    sent = fields(value).keys() if isinstance(value, Mapping) else getattr(value, "model_fields_set", ())
    return {key: plain(item) for key, item in fields(value).items() if item is not None or key in sent}


def items(value: object) -> Sequence[object]:
    """See a list; a single object counts as a list of one, anything else as empty.

    Args:
        value: What stands where a list should.

    Examples:
        >>> items([1, 2]), items({"a": 1}), items(None)
        ([1, 2], ({'a': 1},), ())
    """
    if isinstance(value, list | tuple):
        return value
    return (value,) if fields(value) else ()


def as_index(value: object) -> int | None:
    """Read a provider's index: strings of digits and whole floats count, anything else is absent.

    Args:
        value: What stands where an index should.

    Examples:
        >>> as_index(1), as_index("1"), as_index(1.0), as_index("first"), as_index(True)
        (1, 1, 1, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():  # what protobuf makes of every number
        return int(value)
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return None


def as_name(value: object) -> str | None:
    """Read an id or a name; a number is read as its digits, blank is absent.

    Args:
        value: What stands where an id or a name should.

    Examples:
        >>> as_name("add"), as_name(7), as_name(" "), as_name({})
        ('add', '7', None, None)
    """
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None


def as_text(value: object) -> str:
    """Read argument text; an object or a scalar is written down once, None is no text.

    What is neither becomes a text that is no JSON object: it can be repaired, and never runs as `{}`.

    Args:
        value: What stands where a text should.

    Examples:
        >>> as_text('{"a"'), as_text({"a": 1}), as_text(None)
        ('{"a"', '{"a": 1}', '')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray):
        return value.decode(errors="surrogateescape")
    return dump_once(plain(value))


def error_message(error: object) -> str:
    """Put what a provider says of an error into one line.

    Args:
        error: A text, or an object with a message, a type or a code.

    Examples:
        >>> error_message({"message": "overloaded", "code": 529})
        'overloaded'
    """
    if isinstance(error, str):
        return error
    told = fields(error)
    message = told.get("message") or told.get("type") or told.get("code")
    return str(message) if message else dump_once(plain(error))
