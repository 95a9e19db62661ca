"""Damage around the arguments: what the model, its template or its server put before, behind and about them."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

from toolrun._testing.damage.places import Call, NotApplicable, members

if TYPE_CHECKING:
    from random import Random

_PLAIN = ("string", "integer", "number", "boolean")


def fence(call: Call, rng: Random) -> str:
    """A code fence around it, or half of one."""
    return rng.choice(["```json\n{}\n```", "```\n{}\n```\n", "{}\n```", "```JSON {} ```"]).replace("{}", call.text)


def prose(call: Call, rng: Random) -> str:
    """Words of the model before or behind it."""
    return rng.choice(
        ["Here are the arguments: {}", "{} I will call the tool now.", "Sure!\n\n{}\n\nDone.", "Use {city}. {}"]
    ).replace("{}", call.text)


def thinking(call: Call, rng: Random) -> str:
    """Thinking that leaked in front of it."""
    return f'<think>maybe {{"a": 1}}?</think>\n{call.text}'


def tags_behind(call: Call, rng: Random) -> str:
    """Markup of the chat template behind it."""
    return call.text + rng.choice(["</parameter></invoke>", "<|call|>", "</tool_call>", "<|im_end|>", "\n</function>"])


def byte_order_mark(call: Call, rng: Random) -> str:
    """A byte order mark in front of it."""
    return "\ufeff" + call.text


def whole_as_text(call: Call, rng: Random) -> str:
    """The whole as a JSON string."""
    return json.dumps(call.text)


def escaped_whole(call: Call, rng: Random) -> str:
    """The whole escaped, as inside of a string."""
    return json.dumps(call.text)[1:-1]


def twice(call: Call, rng: Random) -> str:
    """The same object twice."""
    return call.text + rng.choice(["", "\n"]) + call.text


def empty_first(call: Call, rng: Random) -> str:
    """An empty object in front of it."""
    return "{}" + call.text


def extra_closer(call: Call, rng: Random) -> str:
    """Closing brackets too many."""
    return call.text + rng.choice(["}", "]", "}}", "}]"])


def double_braces(call: Call, rng: Random) -> str:
    """Braces around the braces."""
    return "{" + call.text + "}"


def list_for_one(call: Call, rng: Random) -> str:
    """A list around the whole."""
    return f"[{call.text}]"


def envelope(call: Call, rng: Random) -> str:
    """The arguments inside of the call that they are part of."""
    key = rng.choice(["arguments", "parameters", "args", "input"])
    inner = rng.choice([call.arguments, call.arguments, call.text])
    around = rng.choice(
        [{}, {"name": call.tool}, {"type": "function", "name": call.tool}, {"id": "c1", "name": call.tool}]
    )
    return json.dumps({**around, key: inner})


def quote_entities(call: Call, rng: Random) -> str:
    """Quotes as entities of HTML."""
    if re.search(r"[&<>\'\\]", call.text):
        raise NotApplicable
    return html.escape(call.text)


def xml(call: Call, rng: Random) -> str:
    """Each argument in a tag."""
    if not all(isinstance(value, str | int | float) for value in call.arguments.values()):
        raise NotApplicable
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in call.arguments.items()}
    if any(re.search(r"[<&]", value) for value in texts.values()) or len(members(call, *_PLAIN)) < len(texts):
        raise NotApplicable
    return "".join(f'<parameter name="{key}">{value}</parameter>' for key, value in texts.items())
