"""Every kind of type, for every dialect, strict or not: written so that the provider takes it, or refused with the part."""

from __future__ import annotations

from typing import Any

import pytest

from toolrun import DialectError, ToolRegistry
from toolrun._core.dialects import DIALECTS

from .kinds import TOOLS
from .meta import META, problems

WRITTEN = list(META)

TUPLE, DICT, SET, ANY = "prefixItems", "additionalProperties", "uniqueItems", "takes anything"
OPENAI = {"named_tuple": TUPLE, "mixed_tuple": TUPLE, "mapping": DICT, "sets": SET, "anything": ANY}
CLAUDE = {
    **OPENAI,
    "equal_tuple": "minItems",
    "few_items": "maxItems",
    "bounded": "minimum",
    "recursive": "$ref",
    "recursive_required": "$ref",
}
REFUSED: dict[tuple[str, bool], dict[str, str]] = {
    ("openai-chat", True): OPENAI,
    ("openai-responses", True): OPENAI,
    ("anthropic", True): CLAUDE,
    ("bedrock-converse", True): {**CLAUDE, "pattern": "pattern"},
    ("mistral", True): {"mapping": DICT},
    ("gemini", False): {"recursive_required": "$ref"},
    ("ollama", False): {"recursive": "$ref", "recursive_required": "$ref"},
    ("cohere-v2", True): {
        "no_parameters": "required",
        "optional": "required",
        "literal_with_null": "required",
        "named_tuple": TUPLE,
        "mixed_tuple": TUPLE,
        "equal_tuple": "minItems",
        "few_items": "minItems",
        "sets": SET,
        "bounded": "minimum",
        "pattern": "pattern",
        "dates": "format",
    },
}


def schema_in(entry: dict[str, Any], dialect: str) -> dict[str, Any]:
    if dialect == "gemini":
        (entry,) = entry["functionDeclarations"]
    holder_path, (_, *path) = DIALECTS[dialect].parts
    for key in (*holder_path, *path):
        entry = entry[key]
    return entry


@pytest.mark.parametrize(("dialect", "strict"), WRITTEN)
@pytest.mark.parametrize("kind", TOOLS)
def test_every_kind(kind: str, dialect: str, strict: bool) -> None:
    registry = ToolRegistry([TOOLS[kind]])
    part = REFUSED.get((dialect, strict), {}).get(kind)

    if part is None:
        (entry,) = registry.definitions(dialect, strict=strict)
        assert [*problems(dialect, schema_in(entry, dialect), strict=strict)] == []
        return
    with pytest.raises(DialectError) as raised:
        registry.definitions(dialect, strict=strict)
    message = str(raised.value)
    assert message.startswith(f"tool {kind!r} cannot be written for {dialect}{' (strict)' if strict else ''}: $")
    assert part in message
    assert message.endswith(", or leave strict out") is strict


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_definition_is_the_callers_to_change(dialect: str) -> None:
    registry = ToolRegistry([TOOLS["defaults"]])
    before = registry.definitions(dialect)

    schema_in(registry.definitions(dialect)[0], dialect)["properties"].clear()

    assert registry.definitions(dialect) == before


@pytest.mark.parametrize("dialect", ["gemini", "ollama", "mcp"])
def test_what_has_no_strict_definitions_says_what_to_do(dialect: str) -> None:
    with pytest.raises(DialectError, match=rf"^{dialect} has no strict definitions: .{{20,}}"):
        ToolRegistry([TOOLS["scalars"]]).definitions(dialect, strict=True)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_tools(dialect: str) -> None:
    assert ToolRegistry().definitions(dialect) == []


def test_the_error_names_tool_place_part_and_remedy() -> None:
    with pytest.raises(DialectError) as raised:
        ToolRegistry([TOOLS["sets"]]).definitions("openai-chat", strict=True)

    assert str(raised.value) == (
        "tool 'sets' cannot be written for openai-chat (strict):"
        " $.properties.tags.uniqueItems is not taken here;"
        " take a list, and look for duplicates in the function;"
        " $.properties.more.anyOf[0].uniqueItems is not taken here;"
        " take a list, and look for duplicates in the function, or leave strict out"
    )
