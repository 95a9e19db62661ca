"""Where damage is done: a call, and the places in its text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

T = TypeVar("T")

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class NotApplicable(Exception):  # no error: this damage cannot be done to that call
    """The damage cannot be done to this call."""


class Call(NamedTuple):
    """A valid call: its schema, its arguments, their text, and the name of the tool."""

    schema: Mapping[str, Any]  # Any: a JSON Schema
    arguments: dict[str, Any]  # Any: JSON values
    text: str
    tool: str = "f"


def pick(rng: Random, found: Sequence[T]) -> T:
    """One of them.

    Raises:
        NotApplicable: There is none.
    """
    if not found:
        raise NotApplicable
    return rng.choice(found)


# -- in the text ----------------------------------------------------------------------------


def tokens(text: str) -> list[re.Match[str]]:
    """Strings, numbers, words and punctuation."""
    return list(_TOKEN.finditer(text))


def replaced(text: str, found: re.Match[str], instead: str) -> str:
    """The text with something else in a place."""
    return text[: found.start()] + instead + text[found.end() :]


def strings(call: Call) -> list[re.Match[str]]:
    """The strings that are values."""
    found = tokens(call.text)
    return [
        token
        for number, token in enumerate(found)
        if token[0].startswith('"') and (number + 1 == len(found) or found[number + 1][0] != ":")
    ]


def keys(call: Call) -> list[re.Match[str]]:
    """The keys, at any depth."""
    found = tokens(call.text)
    return [token for token, after in pairwise(found) if after[0] == ":"]


def with_value(call: Call, key: str, value: object) -> str:
    """The text with another value for a key at the root."""
    return json.dumps({**call.arguments, key: value})


# -- in the schema --------------------------------------------------------------------------


def described(call: Call, key: str) -> Mapping[str, Any]:  # Any: a JSON Schema
    """What the schema says of a key at the root; nothing of one that it does not describe itself."""
    found = call.schema.get("properties", {}).get(key)
    return found if isinstance(found, Mapping) else {}


def required(call: Call) -> Sequence[str]:
    """The keys that a call must have."""
    found: Sequence[str] = call.schema.get("required", ())
    return found


def members(call: Call, *kinds: str) -> list[str]:
    """The keys of the call whose schema has one of these types, and no other."""
    return [key for key in call.arguments if described(call, key).get("type") in kinds]


def listed(call: Call) -> list[str]:
    """The keys of the call whose value is one of the words that the schema lists."""
    return [key for key in call.arguments if "enum" in described(call, key) and isinstance(call.arguments[key], str)]
