"""A generator of calls with one fault each, and the answer that is right: the arguments as they were, or a refusal.

It knows JSON and what goes wrong with it, and nothing of the strategies.
"""

from __future__ import annotations

import html
import json
import random
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

Arguments = dict[str, Any]

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


class Faulty(NamedTuple):
    """A text with a fault, and what must come of it; None: it must be refused."""

    fault: str
    text: str
    schema: dict[str, Any]
    expected: Arguments | None


class Call(NamedTuple):
    """A valid call: its schema, its arguments, and their text."""

    schema: dict[str, Any]
    arguments: Arguments
    text: str


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


# -- places -----------------------------------------------------------------------------------

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def tokens(text: str) -> list[re.Match[str]]:
    return list(TOKEN.finditer(text))


def pick(rng: random.Random, found: list[Any]) -> Any:
    """One of them; a `Skip` if there is none."""
    if not found:
        raise Skip
    return rng.choice(found)


class Skip(Exception):
    """The fault does not apply to this call."""


def replaced(text: str, found: re.Match[str], instead: str) -> str:
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
    found = tokens(call.text)
    return [token for token, after in pairwise(found) if after[0] == ":"]


def members(call: Call, *, required: bool | None = None, **wanted: Any) -> list[str]:
    """Keys at the root whose schema has these entries."""
    return [
        key
        for key in call.arguments
        if all(call.schema["properties"][key].get(name) == value for name, value in wanted.items())
        and (required is None or (key in call.schema["required"]) is required)
    ]


def with_value(call: Call, key: str, value: Any) -> str:
    return json.dumps({**call.arguments, key: value})


# -- faults with one right answer -------------------------------------------------------------


def trailing_comma(call: Call, rng: random.Random) -> str:
    found = tokens(call.text)
    closers = [b for a, b in pairwise(found) if b[0] in "}]" and a[0] not in "{["]
    return replaced(call.text, closer := pick(rng, closers), "," + closer[0])


def missing_comma(call: Call, rng: random.Random) -> str:
    found = tokens(call.text)
    commas = [
        comma
        for before, comma, after in zip(found, found[1:], found[2:], strict=False)
        if comma[0] == "," and not (before[0][-2:-1].isspace() or after[0][1:2].isspace())
    ]
    return replaced(call.text, pick(rng, commas), rng.choice(["\n", " "]))


def python_repr(call: Call, rng: random.Random) -> str:
    if "\\x" in repr(call.arguments):
        raise Skip
    return repr(call.arguments)


def python_word(call: Call, rng: random.Random) -> str:
    words = [token for token in tokens(call.text) if token[0] in ("true", "false", "null")]
    found = pick(rng, words)
    return replaced(call.text, found, {"true": "True", "false": "False", "null": "None"}[found[0]])


def single_quotes(call: Call, rng: random.Random) -> str:
    plain = [token for token in tokens(call.text) if token[0].startswith('"') and not set(token[0]) & {"'", "\\"}]
    found = pick(rng, plain)
    return replaced(call.text, found, f"'{found[0][1:-1]}'")


def smart_quotes(call: Call, rng: random.Random) -> str:
    plain = [t for t in tokens(call.text) if t[0].startswith('"') and not set(t[0]) & {"\\", "\u201c", "\u201d"}]
    found = pick(rng, plain)
    return replaced(call.text, found, f"\u201c{found[0][1:-1]}\u201d")


def raw_control(call: Call, rng: random.Random) -> str:
    found = pick(rng, [token for token in strings(call) if re.search(r"(?<!\\)\\[nt]", token[0])])
    return replaced(call.text, found, re.sub(r"(?<!\\)\\([nt])", lambda m: {"n": "\n", "t": "\t"}[m[1]], found[0]))


def inner_quotes(call: Call, rng: random.Random) -> str:
    found = pick(rng, [token for token in strings(call) if re.search(r'(?<!\\)\\"', token[0])])
    return replaced(call.text, found, found[0].replace('\\"', '"'))


def escaped_apostrophe(call: Call, rng: random.Random) -> str:
    found = pick(rng, [token for token in strings(call) if "'" in token[0]])
    return replaced(call.text, found, found[0].replace("'", "\\'"))


def bare_backslashes(call: Call, rng: random.Random) -> str:
    found = pick(rng, [token for token in strings(call) if re.search(r"\\\\[dwPm]", token[0])])
    return replaced(call.text, found, re.sub(r"\\\\(?=[dwPam])", r"\\", found[0]))


def fence(call: Call, rng: random.Random) -> str:
    return rng.choice(["```json\n{}\n```", "```\n{}\n```\n", "{}\n```", "```JSON {} ```"]).replace("{}", call.text)


def prose(call: Call, rng: random.Random) -> str:
    return rng.choice(
        ["Here are the arguments: {}", "{} I will call the tool now.", "Sure!\n\n{}\n\nDone.", "Use {city}. {}"]
    ).replace("{}", call.text)


def thinking(call: Call, rng: random.Random) -> str:
    return f'<think>maybe {{"a": 1}}?</think>\n{call.text}'


def tags_behind(call: Call, rng: random.Random) -> str:
    return call.text + rng.choice(["</parameter></invoke>", "<|call|>", "</tool_call>", "<|im_end|>", "\n</function>"])


def whole_as_text(call: Call, rng: random.Random) -> str:
    return json.dumps(call.text)


def escaped_whole(call: Call, rng: random.Random) -> str:
    return json.dumps(call.text)[1:-1]


def member_as_text(call: Call, rng: random.Random) -> str:
    key = pick(rng, [*members(call, type="object"), *members(call, type="array")])
    return with_value(call, key, json.dumps(call.arguments[key]))


def twice(call: Call, rng: random.Random) -> str:
    return call.text + rng.choice(["", "\n"]) + call.text


def empty_first(call: Call, rng: random.Random) -> str:
    return "{}" + call.text


def no_last_brace(call: Call, rng: random.Random) -> str:
    if call.text[:-1].rstrip()[-1].isdigit():
        raise Skip  # the number may have been cut
    return call.text[:-1].rstrip()


def no_inner_closer(call: Call, rng: random.Random) -> str:
    found = tokens(call.text)
    closers = [a for a, b in pairwise(found) if a[0] == "]" and b[0] in ",}"]
    return replaced(call.text, pick(rng, closers), "")


def wrong_closer(call: Call, rng: random.Random) -> str:
    found = tokens(call.text)
    closers = [a for a, b in pairwise(found) if a[0] == "]" and b[0] == "}"]
    closer = pick(rng, closers)
    return (
        replaced(call.text, closer, "}")[:-1].rstrip()
        if closer.end() + 1 >= len(call.text)
        else replaced(call.text, closer, "")
    )


def extra_closer(call: Call, rng: random.Random) -> str:
    return call.text + rng.choice(["}", "]", "}}", "}]"])


def extra_inner_closer(call: Call, rng: random.Random) -> str:
    found = pick(rng, [token for token in tokens(call.text) if token[0] == "]"])
    return replaced(call.text, found, "]]")


def double_braces(call: Call, rng: random.Random) -> str:
    return "{" + call.text + "}"


def early_close(call: Call, rng: random.Random) -> str:
    depth, commas = 0, []
    for token in tokens(call.text):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if token[0] == "," and depth == 1:
            commas.append(token)
    return replaced(call.text, pick(rng, commas), "},")


def comment(call: Call, rng: random.Random) -> str:
    found = pick(rng, [token for token in tokens(call.text) if token[0] in ",{["])
    return replaced(call.text, found, found[0] + rng.choice([" // what\n", " /* what, {this} */ ", " # what's this\n"]))


def bare_key(call: Call, rng: random.Random) -> str:
    found = pick(rng, keys(call))
    return replaced(call.text, found, found[0][1:-1])


def bare_keys(call: Call, rng: random.Random) -> str:
    text = call.text
    for found in reversed(keys(call)):
        text = replaced(text, found, found[0][1:-1])
    return text


def half_key(call: Call, rng: random.Random) -> str:
    found = pick(rng, keys(call))
    return replaced(call.text, found, found[0][1:])


def plus(call: Call, rng: random.Random) -> str:
    found = pick(rng, [token for token in tokens(call.text) if re.fullmatch(r"\d+(\.\d+)?", token[0])])
    return replaced(call.text, found, f"+{found[0]}")


def no_zero(call: Call, rng: random.Random) -> str:
    found = pick(rng, [token for token in tokens(call.text) if re.fullmatch(r"0\.\d+", token[0])])
    return replaced(call.text, found, found[0][1:])


def number_as_text(call: Call, rng: random.Random) -> str:
    key = pick(rng, [*members(call, type="integer"), *members(call, type="number")])
    return with_value(call, key, json.dumps(call.arguments[key]))


def integer_as_decimal_text(call: Call, rng: random.Random) -> str:
    key = pick(rng, members(call, type="integer"))
    return with_value(call, key, f"{call.arguments[key]}.0")


def text_as_number(call: Call, rng: random.Random) -> str:
    numeric = [token for token in strings(call) if re.fullmatch(r'"-?(0|[1-9]\d*)(\.\d+)?"', token[0])]
    found = pick(rng, numeric)
    return replaced(call.text, found, found[0][1:-1])


def bare_digits(call: Call, rng: random.Random) -> str:
    found = pick(rng, [token for token in strings(call) if token[0] == '"00713"'])
    return replaced(call.text, found, "00713")


def boolean_as_text(call: Call, rng: random.Random) -> str:
    key = pick(rng, members(call, type="boolean"))
    return with_value(call, key, rng.choice([str.lower, str.title, str.upper])(str(call.arguments[key])))


def boolean_as_number(call: Call, rng: random.Random) -> str:
    key = pick(rng, members(call, type="boolean"))
    return with_value(call, key, int(call.arguments[key]))


def _absent(call: Call, rng: random.Random) -> str:
    kinds = ("integer", "number", "boolean", "array", "object")
    missing = [
        key
        for key, own in call.schema["properties"].items()
        if key not in call.arguments and own["type"] in kinds and key not in call.schema["required"]
    ]
    return str(pick(rng, missing))


def null_for_absent(call: Call, rng: random.Random) -> str:
    return with_value(call, _absent(call, rng), rng.choice([None, None, "null"]))


def undefined_for_absent(call: Call, rng: random.Random) -> str:
    return f'{call.text.rstrip()[:-1].rstrip()}, "{_absent(call, rng)}": undefined}}'


def one_for_list(call: Call, rng: random.Random) -> str:
    lists = [
        key
        for key in members(call, type="array")
        if len(call.arguments[key]) == 1 and not re.search(r"[,;|\n]|^\s*[\[{]|^\s*$", str(call.arguments[key][0]))
    ]
    key = pick(rng, lists)
    return with_value(call, key, call.arguments[key][0])


def list_for_one(call: Call, rng: random.Random) -> str:
    return f"[{call.text}]"


def numbered(call: Call, rng: random.Random) -> str:
    key = pick(rng, [key for key in members(call, type="array") if call.arguments[key]])
    return with_value(call, key, {str(number): item for number, item in enumerate(call.arguments[key])})


def other_key(call: Call, rng: random.Random) -> str:
    key = pick(rng, list(call.arguments))
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()
    camel = re.sub(r"_(\w)", lambda found: found[1].upper(), key)
    other = pick(
        rng,
        [spelling for spelling in (snake, camel, key.upper(), f"{key} ", snake.replace("_", "-")) if spelling != key],
    )
    return json.dumps({other if name == key else name: value for name, value in call.arguments.items()})


def other_case(call: Call, rng: random.Random) -> str:
    listed = [key for key in call.arguments if "enum" in call.schema["properties"][key]]
    key = pick(rng, listed)
    word = call.arguments[key]
    other = pick(
        rng, [spelling for spelling in (word.upper(), word.title(), word.replace("_", " ")) if spelling != word]
    )
    return with_value(call, key, other)


def envelope(call: Call, rng: random.Random) -> str:
    key = rng.choice(["arguments", "parameters", "args", "input"])
    inner = rng.choice([call.arguments, call.arguments, call.text])
    around = rng.choice([{}, {"name": "f"}, {"type": "function", "name": "f"}, {"id": "c1", "name": "f"}])
    return json.dumps({**around, key: inner})


def odd_spaces(call: Call, rng: random.Random) -> str:
    found = pick(rng, [token for token in tokens(call.text) if token[0] in "{,:"])
    return replaced(call.text, found, found[0] + rng.choice(["\u00a0", "\u200b", "\ufeff", "\u2003"]))


def byte_order_mark(call: Call, rng: random.Random) -> str:
    return "\ufeff" + call.text


def quote_entities(call: Call, rng: random.Random) -> str:
    if re.search(r"[&<>\'\\]", call.text):
        raise Skip
    return html.escape(call.text)


def tuple_for_list(call: Call, rng: random.Random) -> str:
    found = tokens(call.text)
    number = pick(rng, [n for n, token in enumerate(found[:-1]) if token[0] == "["])
    depth = 0
    for token in found[number:]:
        depth += {"[": 1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return replaced(replaced(call.text, token, ")"), found[number], "(")
    raise Skip


def bare_listed(call: Call, rng: random.Random) -> str:
    listed = [key for key in call.arguments if "enum" in call.schema["properties"][key]]
    key = pick(rng, listed)
    return json.dumps(call.arguments).replace(f'"{key}": "{call.arguments[key]}"', f'"{key}": {call.arguments[key]}', 1)


def xml(call: Call, rng: random.Random) -> str:
    if not all(isinstance(value, str | int | float) for value in call.arguments.values()):
        raise Skip
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in call.arguments.items()}
    if any(re.search(r"[<&]", value) for value in texts.values()) or any(
        isinstance(call.schema["properties"][key]["type"], list) for key in texts
    ):
        raise Skip
    return "".join(f'<parameter name="{key}">{value}</parameter>' for key, value in texts.items())


# -- faults that must be refused --------------------------------------------------------------


def two_objects(call: Call, rng: random.Random) -> str:
    other = make_call(random.Random(rng.random()))
    if other.arguments == call.arguments:
        raise Skip
    return call.text + rng.choice(["", "\n", " or "]) + other.text


def unknown_key(call: Call, rng: random.Random) -> str:
    return json.dumps({**call.arguments, "force_all": True})


def not_a_number(call: Call, rng: random.Random) -> str:
    key = pick(rng, [*members(call, type="integer"), *members(call, type="number")])
    return json.dumps({**call.arguments, key: rng.choice([float("nan"), float("inf")])})


def required_null(call: Call, rng: random.Random) -> str:
    needed = [
        key for key in members(call, required=True) if not isinstance(call.schema["properties"][key]["type"], list)
    ]
    return with_value(call, pick(rng, needed), None)


def other_tool(call: Call, rng: random.Random) -> str:
    return json.dumps({"name": "delete_file", "arguments": call.arguments})


def short_escape(call: Call, rng: random.Random) -> str:
    found = pick(rng, strings(call))
    return replaced(call.text, found, f'{found[0][:-1]}\\u00"')


def rounded(call: Call, rng: random.Random) -> str:
    return with_value(
        call, pick(rng, members(call, type="integer")), rng.choice([3.7, "3.7", "007", "+47", "1,000", "three"])
    )


def several_for_one(call: Call, rng: random.Random) -> str:
    key = pick(rng, [*members(call, type="integer"), *members(call, type="string")])
    return with_value(call, key, [call.arguments[key], call.arguments[key]])


def commas_for_list(call: Call, rng: random.Random) -> str:
    lists = [key for key in members(call, type="array") if call.schema["properties"][key]["items"]["type"] == "string"]
    return with_value(call, pick(rng, lists), "a1,b2")


def missing_value(call: Call, rng: random.Random) -> str:
    found = tokens(call.text)
    values = [b for a, b in pairwise(found) if a[0] == ":" and b[0] not in "{["]
    return replaced(call.text, pick(rng, values), "")


def ellipsis(call: Call, rng: random.Random) -> str:
    return call.text.rstrip()[:-1] + ", ...}"


Fault = Callable[[Call, random.Random], str]

MENDABLE: tuple[Fault, ...] = (
    trailing_comma, missing_comma, python_repr, python_word, single_quotes, smart_quotes, raw_control, inner_quotes,
    escaped_apostrophe, bare_backslashes, fence, prose, thinking, tags_behind, whole_as_text, escaped_whole, member_as_text, twice, empty_first,
    no_last_brace, no_inner_closer, wrong_closer, extra_closer, extra_inner_closer, double_braces, early_close, comment,
    bare_key, bare_keys, half_key, plus, no_zero, number_as_text, integer_as_decimal_text, text_as_number, bare_digits,
    boolean_as_text, boolean_as_number, null_for_absent, undefined_for_absent, one_for_list, list_for_one, numbered, other_key,
    other_case, envelope, odd_spaces, byte_order_mark, quote_entities, tuple_for_list, bare_listed, xml,
)  # fmt: skip
HOPELESS: tuple[Fault, ...] = (
    two_objects, unknown_key, not_a_number, required_null, other_tool, short_escape, rounded, several_for_one,
    commas_for_list, missing_value, ellipsis,
)  # fmt: skip


def faulty_calls(rng: random.Random, number: int, per_call: int = 8) -> Iterator[Faulty]:
    """Random calls, each with one random fault; a few for each call, because a schema takes longest to prepare."""
    given = 0
    while given < number:
        call = make_call(rng)
        for _ in range(min(per_call, number - given)):
            fault = rng.choice(MENDABLE if rng.random() < 0.8 else HOPELESS)
            try:
                text = fault(call, rng)
            except Skip:
                continue
            given += 1
            yield Faulty(fault.__name__, text, call.schema, call.arguments if fault in MENDABLE else None)
