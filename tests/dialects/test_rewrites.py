"""Schemas in other words, with the same meaning; each expected form is written out."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from toolrun import DialectError, Tool, ToolRegistry
from toolrun._core.dialects import DIALECTS
from toolrun._core.dialects.express import MAX_INLINED, express

from .kinds import TOOLS

TEXT = {"type": "string"}


def tool(**properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool.from_json_schema(name="it", input_schema=schema, handler=lambda **given: given)


def written(dialect: str, *, strict: bool = False, **properties: Any) -> dict[str, Any]:
    found = DIALECTS[dialect]
    rules = found.strict if strict else found.rules
    assert rules is not None
    return express(tool(**properties).definition.input_schema, rules)["properties"]  # type: ignore[return-value]


OPENAI = [
    pytest.param({"const": 1}, {"type": "integer", "const": 1}, id="const-with-its-type"),
    pytest.param({"enum": ["a", None]}, {"type": ["null", "string"], "enum": ["a", None]}, id="enum-with-its-types"),
    pytest.param({"oneOf": [TEXT, {"type": "integer"}]}, {"anyOf": [TEXT, {"type": "integer"}]}, id="one-of-types"),
    pytest.param({"allOf": [TEXT], "description": "A."}, {"type": "string", "description": "A."}, id="all-of-one"),
    pytest.param(
        {"allOf": [{"type": "object", "properties": {"a": TEXT}, "required": ["a"]}]},
        {"type": "object", "properties": {"a": TEXT}, "required": ["a"], "additionalProperties": False},
        id="all-of-one-object",
    ),
    pytest.param({"type": "string", "format": "path"}, TEXT, id="format-of-any-string"),
    pytest.param({"type": "string", "minLength": 0, "$comment": "!"}, {"type": "string", "minLength": 0}, id="comment"),
    pytest.param({"type": "array", "items": TEXT, "uniqueItems": False}, {"type": "array", "items": TEXT}, id="says-nothing"),
    pytest.param(
        {"type": "array", "prefixItems": [TEXT, TEXT], "minItems": 2, "items": False},
        {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2},
        id="equal-tuple",
    ),
    pytest.param(
        {"type": "string", "default": "a", "description": "A letter."},
        {"type": "string", "description": 'A letter. Default: "a".'},
        id="default-told-in-words",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), OPENAI)
def test_strict_openai(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert written("openai-chat", strict=True, x=given) == {"x": expected}


def test_a_discriminated_union_becomes_any_of_without_its_discriminator() -> None:
    (entry,) = ToolRegistry([TOOLS["discriminated"]]).definitions("openai-chat", strict=True)

    assert entry["function"]["parameters"]["properties"]["pet"] == {
        "anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
    }


OVERLAPPING = [
    [{"type": "integer"}, {"type": "number"}],
    [{"enum": ["a", "b"]}, {"enum": ["b"]}],
    [
        {"type": "object", "properties": {"a": TEXT}, "required": ["a"], "additionalProperties": False},
        {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"], "additionalProperties": False},
    ],
    [
        {"type": "object", "properties": {"kind": {"const": kind}}, "additionalProperties": False}  # not required
        for kind in "ab"
    ],
]


@pytest.mark.parametrize("branches", OVERLAPPING)
def test_one_of_whose_branches_overlap_is_no_any_of(branches: list[Any]) -> None:
    with pytest.raises(
        DialectError, match=r"\$\.properties\.x\.oneOf has branches that a value could fit two of; give"
    ):
        ToolRegistry([tool(x={"oneOf": branches})]).definitions("openai-chat", strict=True)


def test_what_may_be_left_out_is_required_and_takes_null() -> None:
    (entry,) = ToolRegistry([TOOLS["defaults"]]).definitions("openai-responses", strict=True)

    assert entry == {
        "type": "function",
        "name": "defaults",
        "description": "",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {
                    "anyOf": [{"type": "integer"}, {"type": "null"}],
                    "description": "Default: 3. Null: left out.",
                },
                "tags": {
                    "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                    "description": "Default: []. Null: left out.",
                },
            },
            "required": ["city", "days", "tags"],
            "additionalProperties": False,
        },
        "strict": True,
    }


def test_responses_always_says_whether_it_is_strict() -> None:
    (entry,) = ToolRegistry([TOOLS["no_parameters"]]).definitions("openai-responses")

    assert entry["strict"] is False


GEMINI = [
    ({"const": "a"}, {"type": "string", "enum": ["a"]}),
    ({"enum": ["a", None]}, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
    ({"const": None}, {"type": "null"}),
    ({"type": "boolean", "enum": [True, False]}, {"type": "boolean"}),
    ({"type": "string", "minLength": 2}, {"type": "string", "minLength": 2}),
]


@pytest.mark.parametrize(("given", "expected"), GEMINI)
def test_gemini(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert written("gemini", x=given) == {"x": expected}


def test_gemini_has_a_reference_with_a_description_in_a_branch_of_its_own() -> None:
    ((tool_entry,),) = ([entry["functionDeclarations"] for entry in _gemini("described_model")],)

    assert tool_entry[0]["parametersJsonSchema"]["properties"]["guest"] == {
        "anyOf": [{"$ref": "#/$defs/Guest"}],
        "description": "Who.",
    }


def _gemini(kind: str) -> list[Any]:
    return ToolRegistry([TOOLS[kind]]).definitions("gemini")


def test_gemini_gathers_all_declarations_in_one_tool() -> None:
    definitions = ToolRegistry([TOOLS["scalars"], TOOLS["uuid"]]).definitions("gemini")

    assert [[item["name"] for item in entry["functionDeclarations"]] for entry in definitions] == [["scalars", "uuid"]]


def test_ollama_has_each_reference_in_its_place() -> None:
    (entry,) = ToolRegistry([TOOLS["same_model_twice"]]).definitions("ollama")
    parameters = entry["function"]["parameters"]

    assert "$defs" not in parameters
    assert parameters["properties"]["x"] == parameters["properties"]["y"] == parameters["properties"]["z"]
    assert [*parameters["properties"]["x"]["properties"]] == ["name", "age"]


def test_a_bomb_of_references_is_refused() -> None:
    levels = {f"L{n}": {"type": "array", "prefixItems": [{"$ref": f"#/$defs/L{n + 1}"}] * 2} for n in range(11)}
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/L0"}},
        "$defs": {**levels, "L11": TEXT},
    }
    bomb = Tool.from_json_schema(name="bomb", input_schema=schema, handler=lambda **given: given)

    with pytest.raises(DialectError, match=rf"more than {MAX_INLINED} schemas"):
        ToolRegistry([bomb]).definitions("ollama")


@pytest.mark.parametrize("dialect", ["openai-chat", "ollama", "gemini"])
def test_definitions_of_older_drafts(dialect: str) -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"x": {"$ref": "#/definitions/X"}},
        "required": ["x"],
        "definitions": {"X": {"type": "integer"}},
    }
    old = Tool.from_json_schema(name="old", input_schema=schema, handler=lambda **given: given)

    (entry,) = ToolRegistry([old]).definitions(dialect)

    assert "definitions" not in str(entry) or dialect == "openai-chat"


def test_an_empty_description_is_left_out_where_it_is_refused() -> None:
    (entry,) = ToolRegistry([TOOLS["scalars"]]).definitions("bedrock-converse")

    assert [*entry["toolSpec"]] == ["name", "inputSchema"]


def test_a_wire_itself_names_its_dialect() -> None:
    from toolrun.wires import BedrockInvoke

    registry = ToolRegistry([TOOLS["scalars"]])

    assert registry.definitions(BedrockInvoke()) == registry.definitions("bedrock-invoke")
    assert registry.definitions("bedrock-invoke") == registry.definitions("anthropic-messages")


def test_a_strict_registry_writes_strict_definitions_unless_asked_otherwise() -> None:
    registry = ToolRegistry([TOOLS["scalars"]], strict=True)

    assert registry.definitions("openai-chat")[0]["function"]["strict"] is True
    assert "strict" not in registry.definitions("openai-chat", strict=False)[0]["function"]


def test_registries_made_of_a_strict_one_are_strict() -> None:
    registry, other = ToolRegistry([TOOLS["scalars"]], strict=True), ToolRegistry([TOOLS["uuid"]])
    registry.prepare(lambda deps, tools: tools)

    made = [registry | other, other | registry, registry.filtered(), registry.prefixed("a_"), registry.prepared()]
    assert [one.strict for one in made] == [True] * 5
    assert other.filtered().strict is False


def test_all_of_one_reference_stays_what_it_is_where_that_is_taken() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"allOf": [{"$ref": "#/$defs/X"}], "description": "An x."}},
        "required": ["x"],
        "$defs": {"X": {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}},
    }
    older = Tool.from_json_schema(name="older", input_schema=schema, handler=lambda **given: given)

    assert ToolRegistry([older]).definitions("mcp")
    with pytest.raises(DialectError, match=r"\$\.properties\.x\.unevaluatedProperties|\$\.properties\.x\.allOf"):
        ToolRegistry([older]).definitions("openai-chat", strict=True)


def test_a_nullable_object_is_closed_and_all_required_too() -> None:
    inner = {"type": ["object", "null"], "properties": {"a": TEXT}}

    assert written("openai-chat", strict=True, x=inner) == {
        "x": {
            "type": ["object", "null"],
            "properties": {"a": {"anyOf": [TEXT, {"type": "null"}], "description": "Null: left out."}},
            "required": ["a"],
            "additionalProperties": False,
        }
    }


def test_a_keyword_beside_a_reference_that_both_have_cannot_be_put_in_place() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/X", "type": "string"}},
        "$defs": {"X": TEXT},
    }
    both = Tool.from_json_schema(name="both", input_schema=schema, handler=lambda **given: given)

    with pytest.raises(
        DialectError, match=r"""\$\.properties\.x\["\$ref"\] cannot be put together with what stands beside it"""
    ):
        ToolRegistry([both]).definitions("ollama")


def test_values_that_one_of_branches_can_share_by_number() -> None:
    """1 and 1.0 are the same value in JSON; 1 and true are not."""
    apart = {"oneOf": [{"const": 1}, {"const": True}]}
    shared = {"oneOf": [{"enum": [1]}, {"type": "number", "enum": [1.0]}]}

    assert "anyOf" in written("openai-chat", strict=True, x=apart)["x"]
    with pytest.raises(DialectError, match="oneOf"):
        written("openai-chat", strict=True, x=shared)


def test_the_same_model_twice_is_no_recursion() -> None:
    """Each use has its own copy where references are put in their place."""

    class Axis(BaseModel):
        label: str

    def plot(x: Axis, y: Axis) -> None: ...

    tools = ToolRegistry([Tool.from_function(plot)])
    [definition] = tools.definitions("ollama")
    properties = definition["function"]["parameters"]["properties"]
    assert properties["x"]["properties"] == properties["y"]["properties"] == {"label": {"type": "string"}}
