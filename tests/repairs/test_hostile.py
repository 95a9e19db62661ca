"""Hostile texts of 100 KB: answered each, in bounded work, and never with an error."""

from __future__ import annotations

import time

import pytest

from toolrun import Tool, repair_arguments

from .hostile import HOSTILE, SCHEMA


def nothing(**arguments: object) -> None:
    """Stand in for the tool."""


HANGS = 20.0
"""Seconds of processor time. What is not linear takes minutes; `python -m benchmarks` says how long each really takes."""

TOOL = Tool.from_json_schema(name="f", input_schema=SCHEMA, handler=nothing)
repair_arguments('{"limit": "1"}', TOOL)  # imports are not what is measured


@pytest.mark.parametrize("name", HOSTILE)
def test_answered(name: str):
    """Repaired or refused, and not in the time that anything but linear work would take."""
    began = time.process_time()
    found = repair_arguments(HOSTILE[name], TOOL)
    seconds = time.process_time() - began

    assert (found.arguments is None) != (found.refusal is None)
    assert seconds < HANGS


@pytest.mark.parametrize("name", HOSTILE)
def test_cut_is_answered_at_once(name: str):
    """Under a finish that cuts, nothing is tried."""
    found = repair_arguments(HOSTILE[name], TOOL, finish_reason="length")

    assert found.refusal in ("truncated", "held")
    assert found.records == ()


def test_what_is_too_long_is_not_repaired():
    """Above a million characters; strict JSON has no such limit."""
    long = "x" * 1_000_001

    assert repair_arguments(f'{{"text": "{long}"}}', TOOL).grade == "exact"
    assert repair_arguments(f'{{"text": "{long}",}}', TOOL).refusal == "syntax"
    assert repair_arguments(f'{{"tags": "{long}"}}', TOOL).refusal == "limit"
