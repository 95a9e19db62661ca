"""What a model wrote under a strict schema: a null for what was left out is read as that, and recorded."""

from __future__ import annotations

from typing import Any

import pytest

from toolrun import Grade, Runner, Tool, ToolRegistry
from toolrun._core.dialects import leave_out_nulls

from .kinds import TOOLS

CASES: list[tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    ("defaults", {"city": "Oslo", "days": None, "tags": ["a"]}, {"city": "Oslo", "tags": ["a"]}, ("$.days",)),
    ("defaults", {"city": None, "days": 1}, {"city": None, "days": 1}, ()),
    ("optional", {"city": None}, {"city": None}, ()),
    ("literal_with_null", {"unit": None}, {"unit": None}, ()),
    ("dataclass", {"point": {"x": 1, "y": None}, "other": None}, {"point": {"x": 1}, "other": None}, ("$.point.y",)),
    ("models", {"guests": [{"name": "a", "age": None}]}, {"guests": [{"name": "a", "age": None}]}, ()),
    ("typed_dict", {"options": {"depth": None, "label": None}}, {"options": {}}, ("$.options.depth", "$.options.label")),
    ("discriminated", {"pet": {"kind": "cat", "lives": None}}, {"pet": {"kind": "cat"}}, ("$.pet.lives",)),
    ("model_union", {"thing": {"x": 1, "y": None}}, {"thing": {"x": 1}}, ("$.thing.y",)),
    (
        "recursive",
        {"tree": {"value": 1, "children": [{"value": 2, "children": None}]}},
        {"tree": {"value": 1, "children": [{"value": 2}]}},
        ("$.tree.children[0].children",),
    ),
    ("scalars", {"other": None}, {"other": None}, ()),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "expected", "paths"), CASES)
def test_leave_out_nulls(kind: str, given: dict[str, Any], expected: dict[str, Any], paths: tuple[str, ...]) -> None:
    before = repr(given)

    assert leave_out_nulls(TOOLS[kind].definition.input_schema, given) == (expected, paths)
    assert repr(given) == before


SELF = {
    "type": "object",
    "properties": {"x": {"$ref": "#/$defs/X"}},
    "$defs": {"X": {"anyOf": [{"type": "null"}, {"anyOf": [{"$ref": "#/$defs/X"}]}, {"type": "integer"}]}},
}
BOTH = {
    "type": "object",
    "properties": {
        "x": {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]},
        "y": {"anyOf": [{"type": "object", "properties": {"a": {"type": kind}}} for kind in ("string", "integer")]},
    },
}
SCHEMAS = [
    (SELF, {"x": {"a": None}}, {"x": {"a": None}}),
    (BOTH, {"x": {"a": None}}, {"x": {}}),
    (BOTH, {"y": {"a": None}}, {"y": {"a": None}}),  # either branch could be meant: it is left for the validator
]


@pytest.mark.parametrize(("schema", "given", "expected"), SCHEMAS)
def test_combined_schemas(schema: dict[str, Any], given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert leave_out_nulls(schema, given)[0] == expected


def response(arguments: str) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "book", "arguments": arguments}}
    return {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}]}


def book(city: str, days: int = 3, note: str | None = "none") -> str:
    return f"{city} {days} {note}"


RAW = '{"city": "Oslo", "days": null, "note": null}'


def run(arguments: str, *, strict: bool, **options: Any) -> Any:
    with Runner(ToolRegistry([Tool.from_function(book, **options)], strict=strict)) as runner:
        return runner.run_sync(response(arguments))


@pytest.mark.parametrize("options", [{}, {"destructive": True}, {"repair": "never"}])
def test_a_strict_registry_reads_null_as_left_out_whatever_the_floor_of_repairs(options: dict[str, Any]) -> None:
    """It is what the model was told to write, and no repair; what it was is on record."""
    turn = run(RAW, strict=True, **options)
    (outcome,) = turn.outcomes

    assert (outcome.status, outcome.value, outcome.grade) == ("succeeded", "Oslo 3 None", Grade.EXACT)
    (record,) = outcome.repairs
    assert (record.hook, record.before, record.after) == ("strict-null", RAW, '{"city": "Oslo", "note": null}')
    assert record.note == "null under a strict schema, read as left out: $.days"
    assert turn.messages()[0]["tool_calls"][0]["function"]["arguments"] == RAW


def test_what_is_valid_as_it_is_is_left_alone() -> None:
    (outcome,) = run('{"city": "Oslo"}', strict=True).outcomes

    assert (outcome.value, outcome.grade, outcome.repairs) == ("Oslo 3 none", Grade.EXACT, ())


def test_any_other_registry_does_not() -> None:
    (outcome,) = run(RAW, strict=False, repair="never").outcomes

    assert (outcome.status, [issue.path for issue in outcome.error.issues]) == ("refused", ["$.days"])


def test_what_else_is_wrong_stays_wrong() -> None:
    (outcome,) = run('{"city": null, "days": null, "note": null}', strict=True).outcomes

    assert (outcome.status, [issue.path for issue in outcome.error.issues]) == ("refused", ["$.city"])
