"""OpenAI: Chat Completions and Responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._core.dialects.rules import Dialect, Limits, SchemaRules

if TYPE_CHECKING:
    from toolrun._core.calls import ToolDefinition
    from toolrun._core.records import JsonObject

NAMES: Final = (
    r"[a-zA-Z0-9_-]{1,64}",
    "https://developers.openai.com/api/reference/resources/chat (FunctionDefinition.name; openai 3.57.0), 2026-11-30",
)

_ROOT_WITHOUT: Final = frozenset({"allOf", "anyOf", "enum", "not", "oneOf"})

RULES: Final = SchemaRules(
    sources=(
        "https://developers.openai.com/api/docs/guides/function-calling, 2026-11-30",
        # "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level"
        "https://github.com/langchain-ai/langchainjs/issues/9804 (the API's own words), 2026-11-30",
    ),
    root_without=_ROOT_WITHOUT,
)

STRICT: Final = SchemaRules(
    sources=("https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas, 2026-11-30",),
    keywords=frozenset(
        {
            "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "exclusiveMaximum",
            "exclusiveMinimum", "format", "items", "maxItems", "maxLength", "maximum", "minItems", "minLength",
            "minimum", "multipleOf", "pattern", "properties", "required", "title", "type",
        }
    ),
    formats=frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}),
    root_without=_ROOT_WITHOUT,
    closed=True,
    all_required=True,
    typed=True,
    refs="alone",
    limits=Limits(properties=5000, depth=10, characters=120_000, enum_values=1000, long_enum=(250, 15_000)),
)  # fmt: skip


def _function(definition: ToolDefinition, schema: JsonObject) -> JsonObject:
    return {"name": definition.name, "description": definition.description, "parameters": schema}


def chat_entry(definition: ToolDefinition, schema: JsonObject, strict: bool) -> JsonObject:  # `Dialect.shape`
    """An entry as Chat Completions has it, and those who took it over."""
    said: JsonObject = {"strict": True} if strict else {}
    return {"type": "function", "function": _function(definition, schema) | said}


def _responses_entry(definition: ToolDefinition, schema: JsonObject, strict: bool) -> JsonObject:
    # `strict` is always there: Responses takes a tool that does not say for a strict one.
    return {"type": "function", **_function(definition, schema), "strict": strict}


CHAT_PARTS: Final = (("function",), ("description", "parameters"))

FUNCTION: Final[frozenset[str | None]] = frozenset({"function"})

CHAT: Final = Dialect(
    name="openai-chat", names=NAMES, rules=RULES, strict=STRICT, shape=chat_entry, parts=CHAT_PARTS, kinds=FUNCTION
)
RESPONSES: Final = Dialect(
    name="openai-responses",
    names=NAMES,
    rules=RULES,
    strict=STRICT,
    shape=_responses_entry,
    parts=((), ("description", "parameters")),
    kinds=FUNCTION,
)
