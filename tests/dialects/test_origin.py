"""Definitions that exist already become tools, and are written back as they came."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest

from toolrun import DialectError, RegistrationError, Runner, Tool, ToolRegistry

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "title": "City"}, "days": {"type": ["integer", "null"]}},
    "required": ["city"],
}
FUNCTION = {"name": "forecast", "description": "Weather.", "parameters": PARAMETERS}

ENTRIES: list[tuple[str, dict[str, Any]]] = [
    ("openai-chat", {"type": "function", "function": FUNCTION}),
    ("openai-chat", {"type": "function", "function": {**FUNCTION, "strict": True}}),
    ("openai-chat", {"type": "function", "function": {"name": "forecast"}}),
    ("openai-responses", {"type": "function", **FUNCTION, "strict": None, "defer_loading": True}),
    (
        "anthropic",
        {"name": "forecast", "input_schema": PARAMETERS, "cache_control": {"type": "ephemeral"}, "type": "custom"},
    ),
    ("anthropic", {"name": "forecast", "description": "Weather.", "input_schema": {"type": "object"}}),
    (
        "mcp",
        {
            "name": "forecast",
            "title": "Forecast",
            "description": "Weather.",
            "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", **PARAMETERS},
            "outputSchema": {"type": "object", "properties": {"t": {"type": "number"}}},
            "annotations": {"readOnlyHint": True},
            "_meta": {"vendor": 1},
        },
    ),
    ("bedrock-converse", {"toolSpec": {"name": "forecast", "inputSchema": {"json": PARAMETERS}}}),
    ("gemini", {"name": "forecast", "description": "Weather.", "parametersJsonSchema": PARAMETERS}),
]


def handler(**given: Any) -> Any:
    return given


@pytest.mark.parametrize(("dialect", "entry"), ENTRIES)
def test_written_back_as_it_came(dialect: str, entry: dict[str, Any]) -> None:
    before = copy.deepcopy(entry)
    tool = Tool.from_definition(entry, handler=handler)

    (written,) = ToolRegistry([tool]).definitions(dialect)

    assert written == ({"functionDeclarations": [entry]} if dialect == "gemini" else entry)
    assert tool.name == "forecast"
    written.clear()
    assert entry == before


@pytest.mark.parametrize("dialect", ["mistral", "cohere-v2", "ollama"])
def test_a_shape_that_several_share_is_written_back_for_the_one_that_was_named(dialect: str) -> None:
    entry = {"type": "function", "function": FUNCTION}

    (written,) = ToolRegistry([Tool.from_definition(entry, handler=handler, dialect=dialect)]).definitions(dialect)

    assert written == entry


def test_for_another_provider_it_is_written_anew_and_closed() -> None:
    tool = Tool.from_definition({"name": "forecast", "inputSchema": PARAMETERS}, handler=handler)

    assert ToolRegistry([tool]).definitions("anthropic") == [
        {"name": "forecast", "description": "", "input_schema": {**PARAMETERS, "additionalProperties": False}}
    ]


def test_strict_definitions_of_one_that_was_not() -> None:
    tool = Tool.from_definition({"type": "function", "function": FUNCTION}, handler=handler)

    (written,) = ToolRegistry([tool]).definitions("openai-chat", strict=True)

    assert written["function"]["strict"] is True
    assert written["function"]["parameters"]["required"] == ["city", "days"]


def test_one_that_was_strict_stays_as_it_came() -> None:
    entry = {"type": "function", "function": {**FUNCTION, "strict": True}}

    assert ToolRegistry([Tool.from_definition(entry, handler=handler)]).definitions("openai-chat", strict=True) == [
        entry
    ]


def test_another_name_or_description_shows() -> None:
    tool = Tool.from_definition(ENTRIES[4][1], handler=handler)
    renamed = dataclasses.replace(tool, definition=dataclasses.replace(tool.definition, name="weather"))
    told = dataclasses.replace(tool, definition=dataclasses.replace(tool.definition, description="Told otherwise."))

    assert ToolRegistry([renamed]).definitions("anthropic") == [{**ENTRIES[4][1], "name": "weather"}]
    assert ToolRegistry([told]).definitions("anthropic")[0]["description"] == "Told otherwise."


def test_it_runs_on_validated_arguments() -> None:
    registry = ToolRegistry([Tool.from_definition(ENTRIES[0][1], handler=handler, effect="pure")])

    def call(arguments: str) -> dict[str, Any]:
        entry = {"id": "call_1", "type": "function", "function": {"name": "forecast", "arguments": arguments}}
        return {"choices": [{"message": {"tool_calls": [entry]}, "finish_reason": "tool_calls"}]}

    with Runner(registry) as runner:
        (right,) = runner.run_sync(call('{"city": "Oslo"}')).outcomes
        (wrong,) = runner.run_sync(call('{"city": "Oslo", "zip": 1}')).outcomes

    assert (right.value, wrong.status, wrong.code) == ({"city": "Oslo"}, "refused", "unknown_key")


def test_without_a_handler_it_is_executed_elsewhere() -> None:
    registry = ToolRegistry([Tool.from_definition(ENTRIES[4][1])])
    entry = {"id": "call_1", "type": "function", "function": {"name": "forecast", "arguments": '{"city": "Oslo"}'}}

    with Runner(registry) as runner:
        turn = runner.run_sync({"choices": [{"message": {"tool_calls": [entry]}, "finish_reason": "tool_calls"}]})

    assert [outcome.status for outcome in turn.outcomes] == ["deferred"]
    assert registry.definitions("anthropic") == [ENTRIES[4][1]]


NO_DEFINITIONS = [
    ({}, "an object with nothing in it"),
    ({"type": "web_search"}, "an object with 'type' of type 'web_search'"),
    ({"type": "computer_20250124", "name": "computer"}, "an object with 'type', 'name' of type 'computer_20250124'"),
    ({"type": "custom", "name": "write", "format": {}}, "an object with 'type', 'name', 'format' of type 'custom'"),
    ({"name": "f", "parameters": {"type": "OBJECT"}}, "an object with 'name', 'parameters'"),
    ({"functionDeclarations": []}, "an object with 'functionDeclarations'"),
    ({"type": "function", "function": {"name": 1}}, "an object with 'type', 'function' of type 'function'"),
]


@pytest.mark.parametrize(("entry", "said"), NO_DEFINITIONS)
def test_no_definition(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(RegistrationError, match=rf"^no tool definition: {said}; expected an object with a name"):
        Tool.from_definition(entry, handler=handler)


def test_an_unknown_dialect() -> None:
    with pytest.raises(DialectError, match="no schema dialect named 'telnet'"):
        Tool.from_definition(ENTRIES[0][1], handler=handler, dialect="telnet")
