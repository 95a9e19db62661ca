"""Schemas and arguments that were made to hurt: refused or answered within a second, and nothing is fetched."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from toolrun import RegistrationError, Tool
from toolrun._core import schema_validator


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch):
    """Whoever opens a connection fails the test."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def tool_for(schema: dict[str, Any]) -> Tool:
    return Tool.from_json_schema(name="t", input_schema=schema, handler=lambda **given: given)


def codes(tool: Tool, arguments: dict[str, Any]) -> list[str]:
    found = tool.validator.validate(json.dumps(arguments), arguments)
    return [issue.code for issue in found] if isinstance(found, tuple) else []


HANGS = 20.0
"""Seconds of processor time; what is not bounded takes minutes, and all of these take less than one on a quiet machine."""


def in_bounded_time(act: Callable[[], Any]) -> Any:
    began = time.thread_time()
    try:
        return act()
    finally:
        assert time.thread_time() - began < HANGS


# -- schemas that are refused -----------------------------------------------------------------


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def doubling(keyword: str, levels: int) -> dict[str, Any]:
    """Each definition refers twice to the next: 2 ** levels when they are followed."""
    definitions: dict[str, Any] = {f"d{levels}": {"type": "integer"}}
    for level in range(levels):
        two = [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"}]
        definitions[f"d{level}"] = (
            {"type": "object", "properties": {"l": two[0], "r": two[1]}} if keyword == "properties" else {keyword: two}
        )
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def chain(length: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}]} for n in range(length)}
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**definitions, f"d{length}": {}}}


def itself() -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {}}
    schema["properties"]["a"] = schema
    return schema


REFUSED = {
    "10 MB of text": ({"description": "x" * 10_000_000}, "too large"),
    "10 MB of properties": ({"properties": {f"p{n}": {"type": "string"} for n in range(250_000)}}, "too large"),
    "10 MB of names": ({"properties": {"x" * 1_000_000 + str(n): {} for n in range(10)}}, "too large"),
    "10 MB of enum": ({"properties": {"a": {"enum": list(range(1_000_000))}}}, "too large"),
    "100 deep": (nested(100), "schemas deep"),
    "100,000 deep": (nested(100_000), "schemas deep"),
    "inside itself": (itself(), "schemas deep"),
    "bomb through allOf": (doubling("allOf", 20), "multiplies"),
    "bomb through anyOf": (doubling("anyOf", 20), "multiplies"),
    "bomb through properties": (doubling("properties", 30), "multiplies"),
    "long chain": (chain(3_000), "nests too many"),
    "circle": ({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {}]}}},
        "in a circle"),
    "look-ahead": ({"properties": {"a": {"pattern": "^(?=a)(a+)+$"}}}, "unbounded time"),
    "back-reference": ({"properties": {"a": {"pattern": r"^(a*)*\1$"}}}, "unbounded time"),
    "pattern that grows": ({"properties": {"a": {"pattern": "((((a{99}){99}){99}){99}){99}"}}}, "unbounded time"),
    "look-ahead in keys": ({"patternProperties": {"^(?=a)(a+)+$": {}}}, "unbounded time"),
    "repetition in keys": ({"patternProperties": {"a*a*a*b": {}}, "unevaluatedProperties": False}, "unbounded time"),
    "not JSON": ({"properties": {"a": {"default": {1, 2}}}}, "is not JSON"),
    "not a name": ({"properties": {1: {}}}, "is not JSON"),
    **{
        f"{keyword} elsewhere in {place}": (schema, "nothing is ever fetched")
        for keyword in ("$ref", "$dynamicRef")
        for place, schema in {
            "properties": {"properties": {"a": {keyword: "http://127.0.0.1:9/s"}}},
            "dependentSchemas": {"dependentSchemas": {"a": {keyword: "http://127.0.0.1:9/s"}}},
            "dependencies": {"dependencies": {"a": {keyword: "http://127.0.0.1:9/s"}}},
            "unevaluatedItems": {"properties": {"a": {"unevaluatedItems": {keyword: "//127.0.0.1:9/s"}}}},
            "what is referred to": {"properties": {"a": {"$ref": "#/x/y"}}, "x": {"y": {keyword: "s.json"}}},
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_where_it_is_declared(name: str):
    """Within a second, and the error says what is wrong with it."""
    schema, said = REFUSED[name]

    with pytest.raises(RegistrationError, match=said):
        in_bounded_time(lambda: tool_for(schema))


def test_large_schemas_are_taken():
    """What is large but honest is taken: thousands of properties, deep objects, a definition used everywhere."""
    schema = {
        "properties": {f"p{n}": {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}} for n in range(1_000)}
        | {"deep": nested(30)},
        "$defs": {"X": {"type": "integer"}},
    }
    tool = in_bounded_time(lambda: tool_for(schema))

    assert codes(tool, {"p7": {"x": 1}, "deep": {"a": {"a": {}}}}) == []
    assert codes(tool, {"p7": {"x": "1"}}) == ["type"]


def test_recursive_schemas_are_taken():
    """A tree, and two definitions that refer to each other."""
    tree = {"type": "object", "properties": {"v": {"type": "integer"}, "kids": {"items": {"$ref": "#/$defs/T"}}}}
    tool = tool_for({"properties": {"t": {"$ref": "#/$defs/T"}}, "$defs": {"T": tree}})

    assert codes(tool, {"t": {"v": 1, "kids": [{"v": 2, "kids": []}]}}) == []
    assert codes(tool, {"t": {"v": 1, "kids": [{"v": "2"}]}}) == ["type"]


# -- arguments that are answered --------------------------------------------------------------


def deep(depth: int, key: str = "l") -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {key: value}
    return value


EXPRESSION = {
    "properties": {"e": {"$ref": "#/$defs/E"}},
    "$defs": {
        "E": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"type": "integer"}]},
        "A": {"type": "object", "properties": {"l": {"$ref": "#/$defs/E"}, "a": {}}},
        "B": {"type": "object", "properties": {"l": {"$ref": "#/$defs/E"}, "b": {}}},
    },
}
"""Honest, and yet a wrong leaf at depth n is looked at 2 ** n times."""

ANSWERED = {
    "nested alternatives": (EXPRESSION, {"e": deep(100) | {"zip": 1}}, {"limit", "value", "unknown_key"}),
    "wrong leaf": (EXPRESSION, {"e": {"l": deep(60, "l") | {"l": {"zip": 1}}}}, {"limit", "value"}),
    "pattern": ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 100_000 + "b"}, {"value"}),
    "pattern in keys": ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"a" * 100_000 + "b": 1}, {"unknown_key"}),
    "unique items": ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"n": n} for n in range(20_000)]}, set()),
}  # fmt: skip


@pytest.mark.parametrize("fast", [True, False], ids=["with jsonschema-rs", "without"])
@pytest.mark.parametrize("name", ANSWERED)
def test_answered_in_bounded_time(name: str, fast: bool, monkeypatch: pytest.MonkeyPatch):
    """Valid or not, or too much work to tell: never an exception, never a wait."""
    if not fast:
        monkeypatch.setattr(schema_validator, "quick", lambda schema: None)
    schema, arguments, expected = ANSWERED[name]
    tool = tool_for(schema)
    codes(tool, {})  # what is built at the first call is not the arguments' doing

    found = in_bounded_time(lambda: codes(tool, arguments))

    assert set(found) <= expected
    assert bool(found) is bool(expected)


def test_equal_items():
    """1 and 1.0 are the same item to JSON Schema; 1 and true, and 1 and "1", are not; the order of keys is nothing."""
    tool = tool_for({"properties": {"a": {"uniqueItems": True}}})

    assert codes(tool, {"a": [1, True, "1", [1], {"x": 1}, None, 0, False, "", "null"]}) == []
    assert codes(tool, {"a": [1, 1.0]}) == ["value"]
    assert codes(tool, {"a": [{"x": 1, "y": [2.0]}, {"y": [2], "x": 1.0}]}) == ["value"]
