"""One schema that breaks each rule of each dialect: refused by the written meta-schema, and by the dialect."""

from __future__ import annotations

from typing import Any

import pytest

from toolrun import DialectError, Tool, ToolRegistry
from toolrun._core.dialects import DIALECTS
from toolrun._core.dialects.checks import check

from .meta import META, problems

OBJECT = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
TEXT = {"type": "string"}


def of(**properties: Any) -> dict[str, Any]:
    return OBJECT | {"properties": properties, "required": list(properties)}


def nested(levels: int) -> dict[str, Any]:
    schema = of(x=TEXT)
    for _ in range(levels - 1):
        schema = of(x=schema)
    return schema


TREE = of(tree={"$ref": "#/$defs/Tree"}) | {
    "$defs": {"Tree": OBJECT | {"properties": {"left": {"$ref": "#/$defs/Tree"}}, "required": []}}
}
ENDLESS = of(tree={"$ref": "#/$defs/Tree"}) | {"$defs": {"Tree": of(left={"$ref": "#/$defs/Tree"})}}
REF_BESIDE = of(x={"$ref": "#/$defs/X", "description": "An x."}) | {"$defs": {"X": TEXT}}
UNION_ROOT = OBJECT | {"anyOf": [{"required": ["x"]}, {"required": ["y"]}]}

OPENAI: dict[str, dict[str, Any]] = {
    "keyword": of(x={"type": "array", "items": TEXT, "uniqueItems": True}),
    "allOf": of(x={"allOf": [TEXT]}),
    "oneOf": of(x={"oneOf": [TEXT, {"type": "null"}]}),
    "format": of(x={"type": "string", "format": "uri"}),
    "root": UNION_ROOT,
    "closed": of(x={"type": "object", "properties": {}, "required": []}),
    "closed without properties": of(x={"type": "object"}),
    "required": OBJECT | {"properties": {"x": TEXT}},
    "typed": of(x={"description": "Anything."}),
    "ref alone": REF_BESIDE,
    "properties": of(**{f"p{n}": TEXT for n in range(5001)}),
    "depth": nested(11),
    "characters": of(**{f"{n:0>1000}": TEXT for n in range(121)}),
    "enum values": of(x={"type": "integer", "enum": list(range(1001))}),
    "long enum": of(x={"type": "string", "enum": [f"{n:0>61}" for n in range(251)]}),
}
CLAUDE: dict[str, dict[str, Any]] = {
    "keyword": of(x={"type": "integer", "minimum": 1}),
    "oneOf": OPENAI["oneOf"],
    "minItems": of(x={"type": "array", "items": TEXT, "minItems": 2}),
    "format": of(x={"type": "string", "format": "regex"}),
    "enum": of(x={"enum": [{"a": 1}], "type": "object", "additionalProperties": False}),
    "pattern": of(x={"type": "string", "pattern": r"\bword\b"}),
    "allOf": of(x={"allOf": [{"$ref": "#/$defs/X"}]}) | {"$defs": {"X": TEXT}},
    "closed": OPENAI["closed"],
    "typed": OPENAI["typed"],
    "ref alone": REF_BESIDE,
    "recursion": TREE,
}
BROKEN: dict[tuple[str, bool], dict[str, dict[str, Any]]] = {
    ("openai-chat", False): {"root": UNION_ROOT},
    ("openai-chat", True): OPENAI,
    ("openai-responses", False): {"root": UNION_ROOT},
    ("openai-responses", True): OPENAI,
    ("anthropic", False): {"root": UNION_ROOT},
    ("anthropic", True): {**CLAUDE, "root": UNION_ROOT, "property names": of(**{"to whom": TEXT})},
    ("bedrock-converse", True): CLAUDE,
    ("gemini", False): {
        "enum": of(x={"type": "boolean", "enum": [True]}),
        "ref alone": REF_BESIDE,
        "recursion": ENDLESS,
    },
    ("mistral", True): {"closed": OPENAI["closed"]},
    ("cohere-v2", True): {
        "keyword": of(x={"type": "string", "minLength": 1}),
        "oneOf": OPENAI["oneOf"],
        "format": of(x={"type": "string", "format": "email"}),
        "enum": CLAUDE["enum"],
        "pattern": of(x={"type": "string", "pattern": "^a$"}),
        "required": OBJECT | {"properties": {"x": TEXT}},
    },
}
CASES = [(dialect, strict, rule) for (dialect, strict), broken in BROKEN.items() for rule in broken]


@pytest.mark.parametrize(("dialect", "strict", "rule"), CASES)
def test_a_broken_schema_fails_the_meta_schema(dialect: str, strict: bool, rule: str) -> None:
    assert next(problems(dialect, BROKEN[dialect, strict][rule], strict=strict), None) is not None


def made(dialect: str, rule: str) -> bool:
    """Required properties of these are made, and so need no check."""
    return dialect.startswith("openai") and rule == "required"


@pytest.mark.parametrize(("dialect", "strict", "rule"), [case for case in CASES if not made(case[0], case[2])])
def test_a_broken_schema_is_refused(dialect: str, strict: bool, rule: str) -> None:
    rules = DIALECTS[dialect].strict if strict else DIALECTS[dialect].rules
    assert rules is not None

    with pytest.raises(DialectError, match=r"^\$"):
        check(BROKEN[dialect, strict][rule], rules)


@pytest.mark.parametrize(("dialect", "strict"), META)
def test_a_sound_schema_keeps_every_rule(dialect: str, strict: bool) -> None:
    rules = DIALECTS[dialect].strict if strict else DIALECTS[dialect].rules
    assert rules is not None
    sound = of(x={"type": "array", "items": {"type": "string", "enum": ["a"]}}, y={"anyOf": [TEXT, {"type": "null"}]})

    assert [*problems(dialect, sound, strict=strict)] == []
    check(sound, rules)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_rule_has_an_address_and_a_day(dialect: str) -> None:
    found = DIALECTS[dialect]
    sources = [*found.rules.sources, *(found.strict.sources if found.strict else ()), *(found.names or ("", ""))[1:]]

    assert all(not source or (source.startswith("https://") and source.endswith(", 2026-11-30")) for source in sources)


NAMES = {
    "openai-chat": (["a", "get-it_2", "x" * 64], ["", "a.b", "a b", "é", "x" * 65]),
    "openai-responses": (["x" * 64], ["a.b", "x" * 65]),
    "anthropic": (["get-it_2", "x" * 128], ["a.b", "x" * 129]),
    "bedrock-converse": (["get-it_2", "x" * 64], ["a.b", "x" * 65]),
    "gemini": (["_a", "a.b:c-d", "x" * 128], ["2a", "-a", "a b", "x" * 129]),
    "mistral": (["get-it_2", "x" * 64], ["a.b", "x" * 65]),
    "cohere-v2": (["anything at all"], []),
    "ollama": (["anything at all"], []),
    "mcp": (["admin.tools.list", "x" * 128], ["a:b", "a b", "x" * 129]),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names(dialect: str) -> None:
    taken, refused = NAMES[dialect]

    for name in taken:
        assert ToolRegistry([Tool.from_function(lambda: None, name=name)]).definitions(dialect)
    for name in filter(None, refused):
        with pytest.raises(DialectError, match=r"takes names that match .*; register it under another name with name="):
            ToolRegistry([Tool.from_function(lambda: None, name=name)]).definitions(dialect)


def many(number: int, parameters: int, schema: dict[str, Any], required: int = 0) -> ToolRegistry:
    names = [f"p{n}" for n in range(parameters)]
    own = {"type": "object", "properties": dict.fromkeys(names, schema), "required": names[:required]}
    return ToolRegistry(
        Tool.from_json_schema(name=f"tool{n}", input_schema=own, handler=lambda **given: given) for n in range(number)
    )


UNION = {"anyOf": [TEXT, {"type": "integer"}]}
REQUESTS = [
    ("anthropic", (20, 1, TEXT, 1), (21, 1, TEXT, 1), "20 tools in one request, and these are 21"),
    ("anthropic", (4, 6, TEXT), (5, 5, TEXT), "24 optional parameters in one request, and these are 25"),
    ("anthropic", (4, 4, UNION, 4), (17, 1, UNION, 1), "16 parameters with several types in one request, .* 17"),
    ("cohere-v2", (10, 20, TEXT, 1), (3, 67, TEXT, 1), "200 parameters in one request, and these are 201"),
]


@pytest.mark.parametrize(("dialect", "most", "more", "said"), REQUESTS)
def test_what_is_counted_over_a_request(dialect: str, most: Any, more: Any, said: str) -> None:
    assert many(*most).definitions(dialect, strict=True)
    assert many(*more).definitions(dialect)
    with pytest.raises(DialectError, match=said):
        many(*more).definitions(dialect, strict=True)
