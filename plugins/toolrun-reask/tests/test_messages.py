"""What is asked, for each wire."""

from __future__ import annotations

from typing import Any

import pytest

from toolrun import ArgumentIssue, CallStatus, Fault, RepairRequest, ToolCall, ToolDefinition
from toolrun_reask import WIRES, build_messages, force_tool

RAW = '{"query": "fjord" "limit": 3}'
DEFINITION = ToolDefinition(
    name="search",
    description="Search the archive.",
    input_schema={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
SYNTAX = ArgumentIssue("syntax", "expected `,` or `}`", "", 18, 1, 19, 'fjord" "limit')
TEXT = """\
Your call of the tool "search" could not be run: its arguments are not valid JSON.
- expected `,` or `}` (line 1, column 19, character 18, near 'fjord" "limit')

The JSON Schema of its arguments:
{
  "type": "object",
  "properties": {
    "query": {
      "type": "string"
    }
  },
  "required": [
    "query"
  ]
}

What you wrote, between the lines:
-----
{"query": "fjord" "limit": 3}
-----

Answer with the corrected arguments alone: one JSON object that fits the schema."""


def request(raw: str = RAW, **fields: Any) -> RepairRequest:
    call = ToolCall(
        id="c1", name="search", raw_arguments=raw, arguments=None, status=CallStatus.PARSE_ERROR, executable=True
    )
    given = {"call": call, "fault": Fault.PARSE, "text": raw, "definition": DEFINITION, "issue": SYNTAX}
    return RepairRequest(**{**given, **fields})


PLAIN = {"role": "user", "content": TEXT}


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ("openai-chat", PLAIN),
        ("openai-responses", PLAIN),
        ("anthropic-messages", PLAIN),
        ("gemini", {"role": "user", "parts": [{"text": TEXT}]}),
        ("bedrock-converse", {"role": "user", "content": [{"text": TEXT}]}),
        ("bedrock-invoke", PLAIN),
        ("mistral", PLAIN),
        ("cohere-v2", PLAIN),
        ("ollama", PLAIN),
    ],
)
def test_messages(wire: str, message: dict[str, Any]):
    """What was wrong and where, the schema, and what was written, in the wire's own form."""
    assert build_messages(request(), wire) == [message]


FUNCTION = {
    "name": "search",
    "description": "Search the archive.",
    "parameters": {**DEFINITION.input_schema, "additionalProperties": False},
}
CHAT = [{"type": "function", "function": FUNCTION}]
CLAUDE = {
    "tools": [
        {"name": "search", "description": "Search the archive.", "input_schema": FUNCTION["parameters"]},
    ],
    "tool_choice": {"type": "tool", "name": "search"},
}
FORCED = {
    "openai-chat": {"tools": CHAT, "tool_choice": {"type": "function", "function": {"name": "search"}}},
    "openai-responses": {
        "tools": [{"type": "function", **FUNCTION, "strict": False}],
        "tool_choice": {"type": "function", "name": "search"},
    },
    "anthropic-messages": CLAUDE,
    "gemini": {
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "search",
                        "description": "Search the archive.",
                        "parametersJsonSchema": FUNCTION["parameters"],
                    }
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["search"]}},
    },
    "bedrock-converse": {
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": "search",
                        "description": "Search the archive.",
                        "inputSchema": {"json": FUNCTION["parameters"]},
                    }
                }
            ],
            "toolChoice": {"tool": {"name": "search"}},
        }
    },
    "bedrock-invoke": CLAUDE,
    "mistral": {"tools": CHAT, "tool_choice": {"type": "function", "function": {"name": "search"}}},
    "cohere-v2": {"tools": CHAT, "tool_choice": "REQUIRED"},
    "ollama": {"tools": CHAT},
}


@pytest.mark.parametrize("wire", WIRES)
def test_forced(wire: str):
    """The one tool, and the provider's way to say that it must be called."""
    assert force_tool(DEFINITION, wire) == FORCED[wire]
    (message,) = build_messages(request(), wire, forced=True)
    assert 'Call the tool "search" once, with arguments that fit its schema.' in str(message)


@pytest.mark.parametrize(
    ("fields", "opening"),
    [
        (
            {
                "fault": Fault.SCHEMA,
                "issue": None,
                "issues": (
                    ArgumentIssue("type", "expected integer", "$.limit", came='"3"'),
                    ArgumentIssue("required", "missing", "$.query"),
                ),
            },
            'its arguments do not fit the tool\'s schema.\n- $.limit: expected integer, got "3"\n- $.query: missing',
        ),
        ({"fault": Fault.NOT_OBJECT, "issue": None}, "its arguments are not one JSON object."),
        ({"fault": Fault.INCOMPLETE, "issue": None}, "it was cut off before it was complete."),
        (
            {"text": '{"query": "fjord", "limit": 3'},
            "its arguments are not valid JSON.\n- expected `,` or `}`, near 'fjord\" \"limit'",
        ),
        (
            {"issue": SYNTAX._replace(message="x" * 400)},
            f"its arguments are not valid JSON.\n- {'x' * 300}…",
        ),
    ],
    ids=["schema", "not an object", "incomplete", "changed since", "a long line"],
)
def test_openings(fields: dict[str, Any], opening: str):
    """Every place is named; offsets only where they are those of the raw text."""
    (message,) = build_messages(request(**fields))

    begin = message["content"].split("\n\nThe JSON Schema", 1)[0]
    assert begin == f'Your call of the tool "search" could not be run: {opening}'


def test_long_texts():
    """Of a long text the beginning and the end are quoted."""
    (message,) = build_messages(request("a" * 50 + "b" * 50), max_quoted=11)

    assert "-----\naaaaaa\n[… 89 characters …]\nbbbbb\n-----" in message["content"]


@pytest.mark.parametrize(
    "function", [lambda: build_messages(request(), "smoke"), lambda: force_tool(DEFINITION, "smoke")]
)
def test_unknown_wires(function: Any):
    """A misspelt wire is a mistake."""
    with pytest.raises(ValueError, match="nothing is known of the messages of 'smoke'; known: openai-chat, "):
        function()


def test_no_tool():
    """Without a tool there is nothing to ask for."""
    with pytest.raises(ValueError, match="no tool was found"):
        build_messages(request(definition=None))
