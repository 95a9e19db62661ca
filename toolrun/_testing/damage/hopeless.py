"""Damage that must be refused: what was meant is lost, or could be several things."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

from toolrun._testing.damage.places import (
    Call,
    described,
    members,
    pick,
    replaced,
    required,
    strings,
    tokens,
    with_value,
)

if TYPE_CHECKING:
    from random import Random


def two_objects(call: Call, rng: Random) -> str:
    """Other arguments behind it: which are meant?"""
    key = pick(rng, members(call, "string", "integer", "number"))
    value = call.arguments[key]
    other = {**call.arguments, key: f"{value} too" if isinstance(value, str) else 0 if value else 1}
    return call.text + rng.choice(["", "\n", " or "]) + json.dumps(other)


def unknown_key(call: Call, rng: Random) -> str:
    """A key that the schema does not have."""
    return json.dumps({**call.arguments, "force_all": True})


def not_a_number(call: Call, rng: Random) -> str:
    """NaN or infinity."""
    key = pick(rng, members(call, "integer", "number"))
    return json.dumps({**call.arguments, key: rng.choice([float("nan"), float("inf")])})


def required_null(call: Call, rng: Random) -> str:
    """Null for something that is required."""
    kinds = ("string", "integer", "number", "boolean", "array", "object")
    needed = [key for key in members(call, *kinds) if key in required(call)]
    return with_value(call, pick(rng, needed), None)


def other_tool(call: Call, rng: Random) -> str:
    """Inside of a call of another tool."""
    return json.dumps({"name": f"not_{call.tool}", "arguments": call.arguments})


def short_escape(call: Call, rng: Random) -> str:
    """An escape that lacks digits."""
    found = pick(rng, strings(call))
    return replaced(call.text, found, f'{found[0][:-1]}\\u00"')


def rounded(call: Call, rng: Random) -> str:
    """An integer as something that can only be guessed."""
    return with_value(
        call, pick(rng, members(call, "integer")), rng.choice([3.7, "3.7", "007", "+47", "1,000", "three"])
    )


def several_for_one(call: Call, rng: Random) -> str:
    """A list in place of one value."""
    key = pick(rng, members(call, "integer", "string"))
    return with_value(call, key, [call.arguments[key], call.arguments[key]])


def commas_for_list(call: Call, rng: Random) -> str:
    """A list of strings as a text with commas."""
    lists = [key for key in members(call, "array") if described(call, key).get("items", {}).get("type") == "string"]
    return with_value(call, pick(rng, lists), "a1,b2")


def missing_value(call: Call, rng: Random) -> str:
    """A key without its value."""
    found = tokens(call.text)
    values = [b for a, b in pairwise(found) if a[0] == ":" and b[0] not in "{["]
    return replaced(call.text, pick(rng, values), "")


def ellipsis(call: Call, rng: Random) -> str:
    """Three dots in place of the rest."""
    return call.text.rstrip()[:-1] + ", ...}"


def cut(call: Call, rng: Random) -> str:
    """The end is missing, from the middle of a string or before a value."""
    inside = [
        place for token in tokens(call.text) if token[0][0] == '"' for place in range(token.start() + 1, token.end())
    ]
    before = [token.end() for token in tokens(call.text) if token[0] == ":"]
    return call.text[: pick(rng, [*inside, *before])]
