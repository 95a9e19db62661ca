"""A generator of calls: random schemas, arguments that fit them, and damage done to them."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, Final

from toolrun._testing.damage.kinds import DAMAGE_KINDS, DamagedArguments
from toolrun._testing.damage.places import Call, NotApplicable

if TYPE_CHECKING:
    from collections.abc import Iterator

Arguments = dict[str, Any]

MENDABLE: Final = [kind for kind in DAMAGE_KINDS.values() if kind.grade is not None]
HOPELESS: Final = [kind for kind in DAMAGE_KINDS.values() if kind.grade is None]

TEXTS = (
    "Oslo", "x", "All done.", "Fill {city} in, then go", "He said it's fine", "a, b, and c", "true", "None", "12", "00713",
    "https://e.org/a//b#c?d=1&e=2", "// not a comment", "# Title\n\nFirst paragraph.\n", "all:\n\tcc main.c\n",
    'print("hi")', 'say "hello" loudly', '<p class="a">b &amp; c</p>', "^\\d{4}-\\w+$", "C:\\Projects\\app\\main.py",
    "\u00c5re \u201cbest\u201d \U0001f600", "[1, 2]", "keep ,} and ,] as is", "a: b", "``` fences ```", "tab\there", "ends in \\",
    "if (a && b) { return [c]; }", "SELECT * FROM t WHERE a = 'b'", "x" * 60, "two  spaces", "-5", "1.10", "</content>",
)  # fmt: skip
KEYS = (
    "query", "path", "file_path", "oldText", "newText", "content", "maxDepth", "limit", "is_open", "unit", "user_id", "tags",
    "options", "note", "body", "count", "ratio", "zip", "mode", "title", "when", "dry_run", "items", "target", "x", "y",
)  # fmt: skip
WORDS = (("celsius", "fahrenheit"), ("in_progress", "done"), ("r", "rb", "w"), ("HIGH", "LOW"), ("markdown", "json"))


def make_call(rng: random.Random) -> Call:
    """A random schema, arguments that fit it, and their text in one of the usual layouts."""
    schema, arguments = _object(rng, depth=0)
    layout = rng.choice([{}, {}, {"separators": (",", ":")}, {"indent": 2}, {"ensure_ascii": False}])
    return Call(schema, arguments, json.dumps(arguments, **layout))


def _object(rng: random.Random, depth: int) -> tuple[dict[str, Any], Arguments]:
    keys = rng.sample(KEYS, rng.randint(1, 5 if depth == 0 else 3))
    properties, values, required = {}, {}, []
    for key in keys:
        properties[key], value = _value(rng, depth)
        needed = rng.random() < 0.6
        if needed:
            required.append(key)
        if needed or rng.random() < 0.7:
            values[key] = value
    if not values:
        required.append(keys[0])
        values[keys[0]] = _value_of(rng, properties[keys[0]])
    order = list(values)
    rng.shuffle(order)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return schema, {key: values[key] for key in order}


def _value(rng: random.Random, depth: int) -> tuple[dict[str, Any], Any]:
    kinds = ["text"] * 5 + ["integer", "integer", "number", "boolean", "listed", "nullable", "texts", "integers"]
    kind = rng.choice(kinds + (["object", "objects"] if depth < 2 else []))
    if kind == "object":
        return _object(rng, depth + 1)
    if kind == "objects":
        item, first = _object(rng, depth + 1)
        return {"type": "array", "items": item}, [first, *(_value_of(rng, item) for _ in range(rng.randint(0, 2)))]
    schema: dict[str, Any] = {
        "text": {"type": "string"},
        "integer": {"type": "integer"},
        "number": {"type": "number"},
        "boolean": {"type": "boolean"},
        "listed": {"type": "string", "enum": list(rng.choice(WORDS))},
        "nullable": {"type": ["string", "null"]},
        "texts": {"type": "array", "items": {"type": "string"}},
        "integers": {"type": "array", "items": {"type": "integer"}},
    }[kind]
    return schema, _value_of(rng, schema)


def _value_of(rng: random.Random, schema: dict[str, Any]) -> Any:
    kind = schema["type"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if kind == "object":
        return {
            key: _value_of(rng, own)
            for key, own in schema["properties"].items()
            if key in schema["required"] or rng.random() < 0.5
        }
    if kind == "array":
        return [_value_of(rng, schema["items"]) for _ in range(rng.randint(0, 3))]
    if isinstance(kind, list):
        return rng.choice([None, rng.choice(TEXTS)])
    return {
        "string": lambda: rng.choice(TEXTS),
        "integer": lambda: rng.choice([0, 1, 7, -3, 100, 2**53 + 1]),
        "number": lambda: rng.choice([0.25, 1.5, -2.75, 3, 1e3]),
        "boolean": lambda: rng.random() < 0.5,
    }[kind]()


def faulty_calls(rng: random.Random, number: int, per_call: int = 8) -> Iterator[tuple[Call, DamagedArguments]]:
    """Random calls, each with one random fault; a few for each call, because a schema takes longest to prepare."""
    given = 0
    while given < number:
        call = make_call(rng)
        for _ in range(min(per_call, number - given)):
            kind = rng.choice(MENDABLE if rng.random() < 0.8 else HOPELESS)
            try:
                text = kind.damage(call, rng)
            except NotApplicable:
                continue
            given += 1
            expected = None if kind.grade is None else call.arguments
            yield call, DamagedArguments(kind.name, text, expected, kind.grade, kind.certain)
