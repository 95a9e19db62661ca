"""What each provider takes, written down a second time as schemas for schemas, independent of the code.

JSON Schema cannot say everything: what it cannot is a function beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jsonschema import Draft202012Validator

SCHEMA = {"$ref": "#/$defs/schema"}
SCHEMA_OR_BOOLEAN = {"anyOf": [{"type": "boolean"}, SCHEMA]}
MAP = {"type": "object", "additionalProperties": SCHEMA}
LIST = {"type": "array", "items": SCHEMA, "minItems": 1}
NUMBER = {"type": "number"}
COUNT = {"type": "integer", "minimum": 0}
TEXT = {"type": "string"}
NAME = {"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]}
BASE = {
    "type": {"anyOf": [NAME, {"type": "array", "items": NAME}]},
    "properties": MAP,
    "required": {"type": "array", "items": TEXT},
    "items": SCHEMA,
    "anyOf": LIST,
    "description": TEXT,
    "title": TEXT,
    "$defs": MAP,
    "$ref": {"type": "string", "pattern": "^#"},
}
TYPED = {"anyOf": [{"required": [keyword]} for keyword in ("type", "anyOf", "allOf", "$ref")]}
CLOSED = {
    "if": {
        "anyOf": [{"required": ["properties"]}, {"properties": {"type": {"const": "object"}}, "required": ["type"]}]
    },
    "then": {"required": ["additionalProperties"]},
}
REF_ALONE = {"if": {"required": ["$ref"]}, "then": {"propertyNames": {"pattern": r"^\$"}}}
ROOT = {"properties": {"type": {"const": "object"}}, "required": ["type"]}
PRIMITIVE = {"type": ["boolean", "null", "number", "string"]}


def without(*keywords: str) -> dict[str, Any]:
    return {"not": {"anyOf": [{"required": [keyword]} for keyword in keywords]}}


def strict_subset(
    properties: dict[str, Any], *rules: dict[str, Any], root: tuple[dict[str, Any], ...] = ()
) -> dict[str, Any]:
    """A schema for schemas with these keywords and no other."""
    own = {"type": "object", "properties": {**BASE, **properties}, "additionalProperties": False, "allOf": list(rules)}
    return {"$defs": {"schema": own}, "allOf": [SCHEMA, ROOT, *root]}


def loose(*root: dict[str, Any]) -> dict[str, Any]:
    """Any JSON Schema for an object."""
    return {"allOf": [{"$ref": "https://json-schema.org/draft/2020-12/schema"}, ROOT, *root]}


# https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html
CLAUDE_FORMATS = ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"]
CONVERSE = {
    "additionalProperties": {"const": False},
    "enum": {"type": "array", "items": PRIMITIVE},
    "const": PRIMITIVE,
    "allOf": {"type": "array", "items": {"allOf": [SCHEMA, without("$ref")]}},
    "format": {"enum": CLAUDE_FORMATS},
    "minItems": {"enum": [0, 1]},
}
# https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
CLAUDE = {
    **CONVERSE,
    "default": True,
    "pattern": {"type": "string", "not": {"pattern": r"\(\?[=!<]|\\b|\\B|\\[1-9]"}},
}
CLAUDE_NAMES = {"properties": {"properties": {"propertyNames": {"pattern": "^[a-zA-Z0-9_.-]{1,64}$"}}}}
NO_UNION_ROOT = without("anyOf", "allOf", "oneOf")

# https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
OPENAI_ROOT = without("anyOf", "allOf", "oneOf", "enum", "not")
OPENAI_STRICT = strict_subset(
    {
        "additionalProperties": {"const": False},
        "enum": {"type": "array", "minItems": 1},
        "const": True,
        "format": {"enum": ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]},
        "pattern": TEXT,
        "minLength": COUNT,
        "maxLength": COUNT,
        "minItems": COUNT,
        "maxItems": COUNT,
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), NUMBER),
    },
    TYPED,
    CLOSED,
    REF_ALONE,
    root=(OPENAI_ROOT,),
)

# https://docs.cohere.com/docs/structured-outputs#parameter-types-support
COHERE_STRICT = strict_subset(
    {
        "additionalProperties": {"anyOf": [{"type": "boolean"}, SCHEMA]},
        "enum": {"type": "array", "items": PRIMITIVE},
        "const": PRIMITIVE,
        "format": {"enum": ["date-time", "uuid", "date", "time"]},
        "pattern": {"type": "string", "not": {"pattern": r"^\^|\$$|\(\?[=!]"}},
    },
    root=({"required": ["required"], "properties": {"required": {"minItems": 1}}},),
)

# https://ai.google.dev/api/generate-content#GenerationConfig (responseJsonSchema): what it does not list is ignored.
GEMINI_NODE = {
    "allOf": [REF_ALONE, without("const", "discriminator")],
    "properties": {
        "enum": {"type": "array", "items": {"type": ["string", "number"]}},
        **dict.fromkeys(("items", "additionalProperties"), SCHEMA_OR_BOOLEAN),
        **dict.fromkeys(("properties", "$defs"), MAP),
        **dict.fromkeys(("anyOf", "oneOf", "prefixItems"), LIST),
    },
}
GEMINI = {"$defs": {"schema": GEMINI_NODE}, "allOf": [SCHEMA, ROOT]}

# https://github.com/ollama/ollama/blob/main/api/types.go: a property has no field for a reference.
OLLAMA_NODE = {
    "allOf": [without("$ref", "$defs", "const", "discriminator")],
    "properties": {
        **dict.fromkeys(("items", "additionalProperties"), SCHEMA_OR_BOOLEAN),
        "properties": MAP,
        **dict.fromkeys(("anyOf", "oneOf", "prefixItems"), LIST),
    },
}
OLLAMA = {"$defs": {"schema": OLLAMA_NODE}, "allOf": [SCHEMA, ROOT]}

META: dict[tuple[str, bool], dict[str, Any]] = {
    ("openai-chat", False): loose(OPENAI_ROOT),
    ("openai-chat", True): OPENAI_STRICT,
    ("openai-responses", False): loose(OPENAI_ROOT),
    ("openai-responses", True): OPENAI_STRICT,
    ("anthropic", False): loose(NO_UNION_ROOT),
    ("anthropic", True): strict_subset(CLAUDE, TYPED, CLOSED, REF_ALONE, CLAUDE_NAMES, root=(NO_UNION_ROOT,)),
    ("bedrock-converse", False): loose(),
    ("bedrock-converse", True): strict_subset(CONVERSE, TYPED, CLOSED, REF_ALONE),
    ("gemini", False): GEMINI,
    # https://docs.mistral.ai/api/endpoint/chat: JSON Schema, with no list of what is taken.
    ("mistral", False): loose(),
    ("mistral", True): loose(),
    ("cohere-v2", False): loose(),
    ("cohere-v2", True): COHERE_STRICT,
    ("ollama", False): OLLAMA,
    # https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool
    ("mcp", False): loose(),
}


# -- what JSON Schema cannot say ------------------------------------------------------------


def schemas_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from schemas_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from schemas_in(item)


def objects_in(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in schemas_in(schema) if isinstance(item.get("properties"), dict) and "type" in item]


def all_required(schema: dict[str, Any]) -> list[str]:
    return [
        f"{item}: not all required"
        for item in objects_in(schema)
        if {*item["properties"]} != {*item.get("required", ())}
    ]


def all_closed(schema: dict[str, Any]) -> list[str]:
    return [f"{item}: open" for item in objects_in(schema) if item.get("additionalProperties") is not False]


def openai_sizes(schema: dict[str, Any]) -> list[str]:
    names = [name for item in objects_in(schema) for name in item["properties"]]
    enums = [item["enum"] for item in schemas_in(schema) if isinstance(item.get("enum"), list)]
    text = sum(map(len, names)) + sum(map(len, schema.get("$defs", ()))) + sum(len(str(v)) for e in enums for v in e)
    long = [enum for enum in enums if len(enum) > 250 and sum(len(v) for v in enum if isinstance(v, str)) > 15_000]
    found = {
        "properties": len(names) > 5000,
        "characters": text > 120_000,
        "enum values": sum(map(len, enums)) > 1000,
        "long enum": bool(long),
        "depth": depth(schema) > 10,
    }
    return [what for what, wrong in found.items() if wrong]


def depth(value: Any) -> int:
    """Levels of objects written inside each other."""
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    own = isinstance(value, dict) and "properties" in value and "type" in value
    return own + max((depth(item) for item in inside), default=0)


def not_recursive(schema: dict[str, Any], *, through_optional: bool = True) -> list[str]:
    """References to a schema that they lie in, by name; the root is `#`."""
    named = {"#": {k: v for k, v in schema.items() if k != "$defs"}}
    named |= {f"#/$defs/{name}": item for name, item in schema.get("$defs", {}).items()}

    def used(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for key, item in value.items():
                if key == "properties" and isinstance(item, dict) and not through_optional:
                    yield from (ref for name, p in item.items() if name in value.get("required", ()) for ref in used(p))
                else:
                    yield from used(item)
        elif isinstance(value, list):
            for item in value:
                yield from used(item)

    edges = {name: {*used(item)} for name, item in named.items()}
    while True:
        reach = {name: found | {r for f in found for r in edges[f]} for name, found in edges.items()}
        if reach == edges:
            return [name for name, found in edges.items() if name in found]
        edges = reach


BESIDE: dict[tuple[str, bool], tuple[Callable[[dict[str, Any]], list[str]], ...]] = {
    ("openai-chat", True): (all_required, openai_sizes),
    ("openai-responses", True): (all_required, openai_sizes),
    ("anthropic", True): (not_recursive,),
    ("bedrock-converse", True): (not_recursive,),
    ("mistral", True): (all_closed,),
    ("gemini", False): (lambda schema: not_recursive(schema, through_optional=False),),
}


def problems(dialect: str, schema: dict[str, Any], *, strict: bool) -> Iterator[str]:
    """Why the provider would not take the schema; nothing if it would. Sizes come first: they are quickly counted."""
    for rule in BESIDE.get((dialect, strict), ()):
        yield from rule(schema)
    for error in Draft202012Validator(META[dialect, strict]).iter_errors(schema):
        yield f"{error.json_path}: {error.message}"
