"""The cases: malformed arguments in the shape of public bug reports, and what must come of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolrun import Grade, Tool, ToolRegistry, repair_arguments
from toolrun._core.conservation import same

LINES = (Path(__file__).parents[1] / "cases/repair_cases.jsonl").read_text("utf-8").splitlines()
CASES = [json.loads(line) for line in LINES]
ARGUMENTS = [case for case in CASES if case["category"] != "tool_name"]
NAMES = [case for case in CASES if case["category"] == "tool_name"]


def nothing(**arguments: object) -> None:
    """Stand in for the tool."""


def tool_of(case: dict[str, Any]) -> Tool:
    schema = case["tool_schema"]
    return Tool.from_json_schema(name=schema["name"], input_schema=schema["parameters"], handler=nothing)


@pytest.mark.parametrize("case", ARGUMENTS, ids=lambda case: case["id"])
def test_arguments(case: dict[str, Any]):
    """Right, or refused with a code and a text; never another value."""
    found = repair_arguments(case["raw"], tool_of(case), finish_reason=case.get("finish_reason"))

    if case["expected"] is None:
        untouched = case.get("untouched_ok", False) and found.grade is Grade.EXACT
        assert untouched or (found.arguments is None and found.refusal and found.message.startswith("Not run: "))
    else:
        assert same(found.arguments, case["expected"])


@pytest.mark.parametrize("case", ARGUMENTS, ids=lambda case: case["id"])
def test_the_finish_reason_is_not_needed(case: dict[str, Any]):
    """Under a finish that says that all is well, what was cut is still seen to be cut."""
    found = repair_arguments(case["raw"], tool_of(case))

    untouched = case.get("untouched_ok", False) and found.grade is Grade.EXACT
    assert untouched or same(found.arguments, case["expected"])


@pytest.mark.parametrize("case", ARGUMENTS, ids=lambda case: case["id"])
def test_repaired_arguments_are_left_alone(case: dict[str, Any]):
    """What came out once comes out again, untouched; the edits on record lead there from the raw text."""
    tool = tool_of(case)
    once = repair_arguments(case["raw"], tool, finish_reason=case.get("finish_reason"))
    if once.text is None or not case["raw"].strip():
        return  # refused; or blank, which is `{}` without an edit

    again = repair_arguments(once.text, tool)

    assert (again.text, again.grade, again.edits, again.records) == (once.text, Grade.EXACT, (), ())
    pieces, place = [], 0
    for edit in once.edits:
        assert case["raw"][edit.offset : edit.offset + len(edit.before)] == edit.before
        pieces += [case["raw"][place : edit.offset], edit.after]
        place = edit.offset + len(edit.before)
    assert "".join((*pieces, case["raw"][place:])) == once.text


@pytest.mark.parametrize("case", NAMES, ids=lambda case: case["id"])
def test_names(case: dict[str, Any]):
    """The one tool that is meant, or none."""
    registry = ToolRegistry(
        Tool.from_json_schema(name=name, input_schema={"type": "object"}, handler=nothing)
        for name in case["registered"]
    )

    assert registry.resolve_name(case["raw"]) == case["expected_name"]
