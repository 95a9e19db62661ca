"""Anthropic's Messages, and Bedrock's Converse, whose strict schemas are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._core.dialects.rules import Dialect, Limits, SchemaRules

if TYPE_CHECKING:
    from toolrun._core.calls import ToolDefinition
    from toolrun._core.records import JsonObject

_PROPERTY_NAMES: Final = r"[a-zA-Z0-9_.-]{1,64}"

RULES: Final = SchemaRules(
    sources=(
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools, 2026-11-30",
        # The outermost schema, and the names of properties.
        "https://platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes, 2026-11-30",
        "https://github.com/anthropics/claude-code/issues/40075 (the API's own words), 2026-11-30",
    ),
    root_without=frozenset({"allOf", "anyOf", "oneOf"}),
    property_names=_PROPERTY_NAMES,
)

_STRICT_KEYWORDS: Final = frozenset(
    {
        "$defs", "$ref", "additionalProperties", "allOf", "anyOf", "const", "description", "enum", "format", "items",
        "minItems", "properties", "required", "title", "type",
    }
)  # fmt: skip
_FORMATS: Final = frozenset(
    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"}
)
_ENUM_TYPES: Final = frozenset({"boolean", "integer", "null", "number", "string"})

STRICT: Final = SchemaRules(
    sources=(
        "https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations, 2026-11-30",
        "https://platform.claude.com/docs/en/build-with-claude/structured-outputs#schema-complexity-limits, 2026-11-30",
    ),
    keywords=_STRICT_KEYWORDS | {"default", "pattern"},
    values={"minItems": (0, 1)},
    formats=_FORMATS,
    enum_types=_ENUM_TYPES,
    pattern_without=(r"\(\?[=!<]", r"\\[bB1-9]"),
    all_of_without_refs=True,
    root_without=RULES.root_without,
    property_names=_PROPERTY_NAMES,
    closed=True,
    typed=True,
    refs="alone",
    recursion="none",
    limits=Limits(tools=20, request_optional=24, request_unions=16),
)

CONVERSE_STRICT: Final = SchemaRules(
    sources=("https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html, 2026-11-30",),
    keywords=_STRICT_KEYWORDS,
    values={"minItems": (0, 1)},
    formats=_FORMATS,
    enum_types=_ENUM_TYPES,
    all_of_without_refs=True,
    closed=True,
    typed=True,
    refs="alone",
    recursion="none",
)


def _messages_entry(definition: ToolDefinition, schema: JsonObject, strict: bool) -> JsonObject:  # `Dialect.shape`
    said: JsonObject = {"strict": True} if strict else {}
    return {"name": definition.name, "description": definition.description, "input_schema": schema, **said}


def _converse_entry(definition: ToolDefinition, schema: JsonObject, strict: bool) -> JsonObject:
    # An empty description is refused.
    described: JsonObject = {"description": definition.description} if definition.description else {}
    said: JsonObject = {"strict": True} if strict else {}
    return {"toolSpec": {"name": definition.name, **described, "inputSchema": {"json": schema}, **said}}


MESSAGES: Final = Dialect(
    name="anthropic",
    names=(
        r"[a-zA-Z0-9_-]{1,128}",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools, 2026-11-30",
    ),
    rules=RULES,
    strict=STRICT,
    shape=_messages_entry,
    parts=((), ("description", "input_schema")),
    kinds=frozenset({None, "custom"}),
)
CONVERSE: Final = Dialect(
    name="bedrock-converse",
    names=(
        r"[a-zA-Z0-9_-]{1,64}",
        "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolSpecification.html, 2026-11-30",
    ),
    rules=SchemaRules(
        sources=(
            "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolInputSchema.html, 2026-11-30",
        )
    ),
    strict=CONVERSE_STRICT,
    shape=_converse_entry,
    parts=(("toolSpec",), ("description", "inputSchema", "json")),
)
