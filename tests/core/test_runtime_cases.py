"""The public bug reports on validation, schemas and lookup (rows I, J and K of the runtime cases): each has a test.

A row is red here until a test stands beside it, and when that test is gone.
"""

# Tools with annotations of their own: no postponed evaluation here.
import ast
from pathlib import Path
from typing import Any

import pytest

from toolrun import Runner, ToolRegistry

TESTS = Path(__file__).parents[1]

ROWS = {
    "R84 enum values become members": "core/test_validation.py::test_what_fits",
    "R85 union arms are closed": "core/test_validation.py::test_holes_inside_models",
    "R86 arguments are always validated": "core/test_runtime_cases.py::test_arguments_are_always_validated",
    "R87 cut, malformed and unfit read differently": "core/test_runtime_cases.py::test_three_faults_three_texts",
    "R88 correction is bounded": "core/test_flow.py::test_the_budget_of_questions",
    "R90 strict first": "core/test_runtime_cases.py::test_valid_arguments_are_never_touched",
    "R91 huge numbers and depth are data": "core/test_runtime_cases.py::test_no_text_raises",
    "R92 mutable defaults": "core/test_schema.py::test_mutable_defaults_are_not_shared",
    "R93 postponed annotations": "core/test_schema.py::test_postponed_annotations",
    "R94 the context by resolved type": "core/test_schema.py::test_postponed_annotations",
    "R95 no parameter is dropped": "core/test_tool_properties.py::test_what_the_schema_allows_reaches_the_function",
    "R96 unresolvable annotations are named": "core/test_declaration.py::test_an_annotation_that_cannot_be_resolved",
    "R101 definitions of draft-07": "core/test_schema.py::test_objects_are_closed",
    "R102 methods and their instances": "core/test_declaration.py::test_methods_of_two_instances",
    "R103 *args and **kwargs": "core/test_declaration.py::test_keyword_arguments",
    "R104 every kind of parameter": "core/test_schema.py::test_every_kind_of_parameter",
    "R105 docstrings": "core/test_docstrings.py::test_docstrings",
    "R106 types": "core/test_schema.py::test_types",
    "R108 literals": "core/test_schema.py::test_types",
    "R109 Annotated as text": "core/test_schema.py::test_postponed_annotations",
    "R110 unknown tools": "core/test_runtime_cases.py::test_an_unknown_tool_is_an_answer",
    "R112 the requested name": "core/test_runtime_cases.py::test_an_unknown_tool_is_an_answer",
    "R114 reserved names": "core/test_registries.py::test_reserved_names",
}

ROWS_OF_DIALECTS: dict[str, str] = {
    # R97 strict objects, R98 discriminators, R99 recursion, R100 the same model twice, R107 unions for Gemini
    "R97": "dialects/test_rewrites.py::test_a_nullable_object_is_closed_and_all_required_too",
    "R98": "dialects/test_rewrites.py::test_a_discriminated_union_becomes_any_of_without_its_discriminator",
    "R99": "dialects/test_table.py::test_every_kind",
    "R100": "dialects/test_rewrites.py::test_the_same_model_twice_is_no_recursion",
    "R107": "dialects/test_table.py::test_every_kind",
}
"""Rows that the schema dialects answer: the place of the test."""

ROWS_OF_REPAIR: dict[str, str] = {
    # R82 containers as strings, R83 twice, R89 nothing is closed by default, R111 candidates, R113 odd names
    "R82": "repairs/test_encoded.py::test_containers_in_strings",
    "R83": "repairs/test_encoded.py::test_containers_in_strings",
    "R89": "repairs/test_encoded.py::test_nothing_is_closed",
    "R111": "repairs/test_encoded.py::test_an_unknown_tool_names_those_that_there_are",
    "R113": "repairs/test_encoded.py::test_a_name_that_no_request_takes_is_put_right_in_the_history_alone",
}
"""Rows that the repair chain and the wires answer: the place of the test."""


def test_every_row_is_listed():
    """All of I, J and K."""
    listed = {row.split()[0] for table in (ROWS, ROWS_OF_DIALECTS, ROWS_OF_REPAIR) for row in table}

    assert listed == {f"R{number}" for number in range(82, 115)}


@pytest.mark.parametrize("row", {**ROWS, **ROWS_OF_DIALECTS, **ROWS_OF_REPAIR})
def test_every_row_has_a_test(row: str):
    """The test that the table names is there."""
    place = {**ROWS, **ROWS_OF_DIALECTS, **ROWS_OF_REPAIR}[row]
    file, _, name = place.partition("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))

    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


# -- rows that a whole run shows ----------------------------------------------------------------

ran: list[Any] = []


def registry() -> ToolRegistry:
    """One tool that keeps what it got."""
    ran.clear()
    tools = ToolRegistry()

    @tools.tool
    async def pay(amount: int, to: str = "nobody") -> str:
        ran.append((amount, to))
        return "paid"

    return tools


async def outcome(arguments: str, *, name: str = "pay", finish: str = "tool_calls") -> Any:
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    response = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": finish}]}
    async with Runner(registry(), on_stream_error="return") as runner:
        return (await runner.run(response)).outcomes[0]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("{}", "schema"),
        ('{"amount": "five"}', "schema"),
        ('{"amount": true}', "schema"),
        ('{"amount": 1, "rate": 2}', "unknown_key"),
    ],
)
async def test_arguments_are_always_validated(arguments: str, code: str):
    """Missing, wrong or unknown: the tool is not run."""
    found = await outcome(arguments)

    assert (found.status, found.code) == ("refused", code)
    assert ran == []


async def test_three_faults_three_texts():
    """The model is told whether its arguments were cut, are no JSON, or do not fit."""
    cut = await outcome('{"amount": 5, "to": "al', finish="length")
    malformed = await outcome('{"amount": 5, "to": }')
    unfit = await outcome('{"amount": "five"}')

    assert "were cut off before they were complete" in cut.message
    assert "are not one valid JSON object" in malformed.message
    assert unfit.message.splitlines() == [
        "Not run: the arguments do not fit the tool's schema. Correct them and send the call again.",
        '- $.amount: Input should be a valid integer, got "five"',
    ]
    assert ran == []


@pytest.mark.parametrize("to", ["a}{b", "[1,]", "```json", "it's", "{'a': None}", "\\u00e5,}", "// no comment"])
async def test_valid_arguments_are_never_touched(to: str):
    """Text that looks broken inside a string is text."""
    found = await outcome(f'{{"amount": 1, "to": "{to}"}}')

    assert ran == [(1, to.replace("\\u00e5", "å"))]
    assert (found.status, found.grade, found.repairs) == ("succeeded", "exact", ())


@pytest.mark.parametrize(
    "text", ['{"amount": ' + "9" * 5_000 + "}", "[" * 100_000, '{"amount": 1e999}', '{"a": [[[[' * 99]
)
async def test_no_text_raises(text: str):
    """Whatever it is, it is an outcome: a refusal."""
    assert (await outcome(text)).status == "refused"
    assert ran == []


async def test_an_unknown_tool_is_an_answer():
    """It names what was asked for and what there is."""
    found = await outcome("{}", name="pay_now")

    assert (found.status, found.code) == ("refused", "unknown_tool")
    assert found.message == "Not run: there is no tool named 'pay_now'. Available tools: pay."
    assert found.call.name == "pay_now"
