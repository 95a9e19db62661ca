"""Damage to what is said: types, keys and words that do not fit the schema, with one reading that does."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from toolrun._testing.damage.places import (
    Call,
    described,
    listed,
    members,
    pick,
    replaced,
    required,
    strings,
    with_value,
)

if TYPE_CHECKING:
    from random import Random


_SEVERAL_OR_NONE = re.compile(r"[,;|\n]|^\s*[\[{]|^\s*(null|none|undefined)?\s*$", re.IGNORECASE)
"""Texts that could stand for a list of several, or for nothing at all."""


def member_as_text(call: Call, rng: Random) -> str:
    """An object or a list as a JSON string."""
    key = pick(rng, members(call, "object", "array"))
    return with_value(call, key, json.dumps(call.arguments[key]))


def number_as_text(call: Call, rng: Random) -> str:
    """A number as a string."""
    key = pick(rng, members(call, "integer", "number"))
    return with_value(call, key, json.dumps(call.arguments[key]))


def integer_as_decimal_text(call: Call, rng: Random) -> str:
    """An integer as a string with `.0`."""
    key = pick(rng, members(call, "integer"))
    return with_value(call, key, f"{call.arguments[key]}.0")


def text_as_number(call: Call, rng: Random) -> str:
    """A string of digits as a number."""
    numeric = [token for token in strings(call) if re.fullmatch(r'"-?(0|[1-9]\d*)(\.\d+)?"', token[0])]
    found = pick(rng, numeric)
    return replaced(call.text, found, found[0][1:-1])


def bare_digits(call: Call, rng: Random) -> str:
    """Digits that begin with zeros, without their quotes."""
    found = pick(rng, [token for token in strings(call) if token[0] == '"00713"'])
    return replaced(call.text, found, "00713")


def boolean_as_text(call: Call, rng: Random) -> str:
    """A boolean as a string."""
    key = pick(rng, members(call, "boolean"))
    return with_value(call, key, rng.choice([str.lower, str.title, str.upper])(str(call.arguments[key])))


def boolean_as_number(call: Call, rng: Random) -> str:
    """A boolean as 0 or 1."""
    key = pick(rng, members(call, "boolean"))
    return with_value(call, key, int(call.arguments[key]))


def _absent(call: Call, rng: Random) -> str:
    optional = call.schema.get("properties", {}).keys() - call.arguments.keys() - set(required(call))
    kinds = ("integer", "number", "boolean", "array", "object")
    return str(pick(rng, sorted(key for key in optional if described(call, key).get("type") in kinds)))


def null_for_absent(call: Call, rng: Random) -> str:
    """Null, or the text `null`, for something optional that is not meant."""
    return with_value(call, _absent(call, rng), rng.choice([None, None, "null"]))


def undefined_for_absent(call: Call, rng: Random) -> str:
    """`undefined` for something optional that is not meant."""
    return f'{call.text.rstrip()[:-1].rstrip()}, "{_absent(call, rng)}": undefined}}'


def one_for_list(call: Call, rng: Random) -> str:
    """The only item in place of its list."""
    lists = [
        key
        for key in members(call, "array")
        if len(call.arguments[key]) == 1 and not _SEVERAL_OR_NONE.search(str(call.arguments[key][0]))
    ]
    key = pick(rng, lists)
    return with_value(call, key, call.arguments[key][0])


def numbered(call: Call, rng: Random) -> str:
    """A list as an object with numbers for keys."""
    key = pick(rng, [key for key in members(call, "array") if call.arguments[key]])
    return with_value(call, key, {str(number): item for number, item in enumerate(call.arguments[key])})


def other_key(call: Call, rng: Random) -> str:
    """A key in another spelling."""
    key = pick(rng, list(call.arguments))
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()
    camel = re.sub(r"_(\w)", lambda found: found[1].upper(), key)
    other = pick(
        rng,
        [spelling for spelling in (snake, camel, key.upper(), f"{key} ", snake.replace("_", "-")) if spelling != key],
    )
    return json.dumps({other if name == key else name: value for name, value in call.arguments.items()})


def other_case(call: Call, rng: Random) -> str:
    """One of the listed words in another spelling."""
    key = pick(rng, listed(call))
    word = call.arguments[key]
    other = pick(
        rng, [spelling for spelling in (word.upper(), word.title(), word.replace("_", " ")) if spelling != word]
    )
    return with_value(call, key, other)


def bare_listed(call: Call, rng: Random) -> str:
    """One of the listed words without its quotes."""
    key = pick(rng, listed(call))
    return json.dumps(call.arguments).replace(f'"{key}": "{call.arguments[key]}"', f'"{key}": {call.arguments[key]}', 1)
