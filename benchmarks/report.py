"""What was measured, as a reader sees it: rows of a table, and the page that has it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

RESULTS = Path(__file__).parent / "results.jsonl"
"""What `--json` wrote at the last measurement."""

PAGE = Path(__file__).parents[1] / "docs/explanation/performance.md"

HEADER = "| row | what | measured | target | |\n|---|---|---|---|---|"
_FORMATS = {"x": "{:.2f}x", "s": "{:.2f} s", "µs": "{:.1f} µs", "exponent": "{:.2f}", "modules": "{:.0f}"}
_TABLE = re.compile(rf"{re.escape(HEADER)}\n(?:\|.*\n)*\nOver their targets .*\n|{re.escape(HEADER)}\n(?:\|.*\n)*")


class Line(TypedDict):
    """A measured row, as `--json` writes it."""

    name: str
    what: str
    unit: str
    measured: float
    target: float
    ok: bool
    detail: str


def stored() -> list[Line]:
    """What was measured last."""
    return [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()]


def as_row(line: Line) -> str:
    """A line of the table."""
    value = _FORMATS[line["unit"]].format(line["measured"])
    detail = f" ({line['detail']})" if line["detail"] else ""
    verdict = "ok" if line["ok"] else "over"
    return (
        f"| {line['name']} | {line['what']} | {value}{detail} | {as_target(line['unit'], line['target'])} | {verdict} |"
    )


def as_target(unit: str, target: float) -> str:
    """A target as the table has it."""
    return f"≤ {_FORMATS[unit].format(target)}"


def page(text: str, lines: Sequence[Line]) -> str:
    """The page with these lines in the place of its table, and with those over their targets named below it."""
    over = [f"`{line['name']}`" for line in lines if not line["ok"]]
    named = f"\nOver their targets are {', '.join(over[:-1])} and {over[-1]}.\n" if len(over) > 1 else ""
    table = "\n".join([HEADER, *map(as_row, lines)])
    return _TABLE.sub(lambda _: f"{table}\n{named}", text, count=1)
