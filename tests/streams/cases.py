"""The written cases of all wires, and when calls are what a case says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .corpus import same_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun import ToolCall

Json = dict[str, Any]

FILE: Final = Path(__file__).resolve().parents[1] / "cases" / "stream_cases.jsonl"
CASES: Final[list[Json]] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").split("\n") if line]
BY_ID: Final = {case["id"]: case for case in CASES}


def of(wire: str) -> list[Json]:
    """The cases of a wire."""
    return [case for case in CASES if case["wire"] == wire]


def answers(case: Json, *, policy: str | None = None) -> list[Json]:
    """The primary answer and the alternatives; those of a policy only under that policy."""
    expected = case["expected"]
    alternatives = [other for other in expected.get("alternatives", ()) if other.get("policy") == policy]
    return alternatives if policy else [expected, *alternatives]


def client_calls(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls that cases list: not those that the provider runs itself."""
    return [call for call in calls if not call.provider_executed]


def matches(answer: Json, calls: Sequence[ToolCall], executable: Sequence[str | None] | None = None) -> bool:
    """Tell whether calls are what an answer says, and so is what may run."""
    listed = client_calls(calls)
    runs = [call.name for call in listed if call.executable] if executable is None else [*executable]
    return (
        len(listed) == len(answer["calls"])
        and all(_same_call(got, want) for got, want in zip(listed, answer["calls"], strict=True))
        and runs == answer["executable"]
    )


def _same_call(got: ToolCall, want: Json) -> bool:
    return (
        (got.synthetic_id and bool(got.id) if want["id"] is None else got.id == want["id"])
        and got.name == (want["name"] or None)
        and got.arguments == want["arguments"]
        and got.status.value == want["status"]
        and same_text(got.raw_arguments, want["raw"])
    )
