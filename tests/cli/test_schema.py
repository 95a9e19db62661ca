"""`toolrun schema`."""

from __future__ import annotations

import json

import pytest

TOOLS = '''
from toolrun import ToolRegistry

print("loading")
registry = ToolRegistry()
others = ToolRegistry(strict=True)


@registry.tool
def lookup(word: str, limit: int = 3) -> str:
    """Look a word up \\u2028."""
    return word


@others.tool
def tag(names: set[str]) -> None:
    """Tag."""
'''


@pytest.fixture
def tools(tmp_path):
    path = tmp_path / "tools.py"
    path.write_text(TOOLS)
    return path


def test_the_definitions_as_a_json_array(toolrun, tools):
    ended = toolrun("schema", str(tools), "--wire", "anthropic-messages")

    assert ended.code == 0
    assert json.loads(ended.out) == [
        {
            "name": "lookup",
            "description": "Look a word up \u2028.",
            "input_schema": {
                "type": "object",
                "properties": {"word": {"type": "string"}, "limit": {"type": "integer", "default": 3}},
                "required": ["word"],
                "additionalProperties": False,
            },
        }
    ]
    assert ended.err == "loading\n"
    assert "\u2028" not in ended.out


def test_strict(toolrun, tools):
    (entry,) = json.loads(toolrun("schema", f"{tools}:registry", "--wire", "openai-chat", "--strict").out)

    assert entry["function"]["strict"] is True
    assert entry["function"]["parameters"]["required"] == ["word", "limit"]


def test_a_registry_that_is_strict_of_itself(toolrun, tools):
    assert toolrun("schema", f"{tools}:others", "--wire", "openai-chat").code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--wire", "openai-chat", "--strict"], "tool 'tag' cannot be written for openai-chat (strict): $.properties.names.uniqueItems"),
        (["--wire", "telnet"], "no schema dialect named 'telnet'; known: anthropic, "),
        (["--wire", "mcp"], "mcp has no strict definitions: "),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_one_line(toolrun, tools, arguments, said):
    ended = toolrun("schema", f"{tools}:others", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"loading\ntoolrun: {tools}:others: {said}")
    assert ended.err.count("\n") == 2


def test_the_wire_must_be_named(toolrun, tools):
    ended = toolrun("schema", str(tools))

    assert (ended.code, "--wire" in ended.err) == (2, True)
