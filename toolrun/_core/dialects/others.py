"""Gemini, Mistral, Cohere, Ollama and MCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._core.dialects.openai import CHAT_PARTS, FUNCTION, chat_entry
from toolrun._core.dialects.rules import Dialect, Limits, SchemaRules

if TYPE_CHECKING:
    from toolrun._core.calls import ToolDefinition
    from toolrun._core.records import JsonObject

# -- Gemini ---------------------------------------------------------------------------------


def _declaration(definition: ToolDefinition, schema: JsonObject, strict: bool) -> JsonObject:  # noqa: ARG001  # `Dialect.shape`
    # `parameters` is an older way to say the same, in a subset of OpenAPI without references, unions of objects or
    # closed objects; `parametersJsonSchema` takes JSON Schema.
    return {"name": definition.name, "description": definition.description, "parametersJsonSchema": schema}


def _one_tool(entries: list[JsonObject]) -> list[JsonObject]:
    return [{"functionDeclarations": entries}] if entries else []


GEMINI: Final = Dialect(
    name="gemini",
    names=(
        r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}",
        "https://ai.google.dev/api/caching#FunctionDeclaration (name; google-genai 3.6.1), 2026-11-30",
    ),
    rules=SchemaRules(
        sources=("https://ai.google.dev/api/generate-content#GenerationConfig (responseJsonSchema), 2026-11-30",),
        keywords=frozenset(
            {
                "$anchor", "$defs", "$id", "$ref", "additionalProperties", "anyOf", "description", "enum", "format",
                "items", "maxItems", "maximum", "minItems", "minimum", "oneOf", "prefixItems", "properties",
                "propertyOrdering", "required", "title", "type",
            }
        ),
        ignores=True,
        enum_types=frozenset({"integer", "number", "string"}),
        refs="alone",
        recursion="optional",
    ),
    no_strict=(
        "the request as a whole is made strict, with the mode VALIDATED of its functionCallingConfig;"
        " the definitions stay as they are without strict"
    ),
    shape=_declaration,
    gather=_one_tool,
    parts=((), ("description", "parametersJsonSchema")),
)  # fmt: skip

# -- those that took over the entry of OpenAI's Chat Completions ----------------------------


def _without_flag(definition: ToolDefinition, schema: JsonObject, strict: bool) -> JsonObject:  # noqa: ARG001
    return chat_entry(definition, schema, False)  # noqa: FBT003


_MISTRAL: Final = "https://docs.mistral.ai/api/endpoint/chat (tools; mistralai 3.7.0), 2026-11-30"

MISTRAL: Final = Dialect(
    name="mistral",
    names=(
        r"[a-zA-Z0-9_-]{1,64}",
        "https://github.com/mistralai/mistral-common (protocol/instruct/validator.py), 2026-11-30",
    ),
    rules=SchemaRules(sources=(_MISTRAL,)),
    # It has the flag, and no list of what is taken with it: as for any strict schema, objects are closed.
    strict=SchemaRules(sources=(_MISTRAL,), closed=True),
    shape=chat_entry,
    parts=CHAT_PARTS,
    kinds=FUNCTION,
)

_COHERE: Final = "https://docs.cohere.com/docs/structured-outputs#parameter-types-support, 2026-11-30"

COHERE: Final = Dialect(
    name="cohere-v2",
    rules=SchemaRules(sources=(_COHERE,)),
    strict=SchemaRules(
        sources=(_COHERE, "https://docs.cohere.com/docs/tool-use-parameter-types#important-notes, 2026-11-30"),
        keywords=frozenset(
            {
                "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "format", "items",
                "pattern", "properties", "required", "title", "type",
            }
        ),
        formats=frozenset({"date", "date-time", "time", "uuid"}),
        enum_types=frozenset({"boolean", "integer", "null", "number", "string"}),
        pattern_without=(r"(?<!\\)\^(?<!\[\^)", r"(?<!\\)\$", r"\(\?[=!]"),
        some_required=True,
        limits=Limits(request_properties=200),
    ),
    # The flag, `strict_tools`, stands in the request and not in the entry.
    shape=_without_flag,
    parts=CHAT_PARTS,
    kinds=FUNCTION,
)  # fmt: skip

OLLAMA: Final = Dialect(
    name="ollama",
    # It hands the schema to the model's template, and keeps of each property what its type has fields for; a
    # reference is no such field, so a property that is one would say nothing.
    rules=SchemaRules(
        sources=("https://github.com/ollama/ollama/blob/main/api/types.go (ToolProperty; ollama 0.6.3), 2026-11-30",),
        keywords=frozenset({"anyOf", "description", "enum", "items", "properties", "required", "type"}),
        ignores=True,
        refs="inlined",
    ),
    no_strict="Ollama guarantees nothing about calls; leave strict out",
    shape=_without_flag,
    parts=CHAT_PARTS,
    kinds=FUNCTION,
)

# -- MCP ------------------------------------------------------------------------------------


def _listed(definition: ToolDefinition, schema: JsonObject, strict: bool) -> JsonObject:  # noqa: ARG001
    return {"name": definition.name, "description": definition.description, "inputSchema": schema}


MCP: Final = Dialect(
    name="mcp",
    names=(
        r"[a-zA-Z0-9_.-]{1,128}",
        "https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-names, 2026-11-30",
    ),
    rules=SchemaRules(
        sources=("https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool, 2026-11-30",)
    ),
    no_strict="MCP has no strict tools; what a client makes of them is its own business",
    shape=_listed,
    parts=((), ("description", "inputSchema")),
)
