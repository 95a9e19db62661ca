"""`python -m benchmarks [ROW…] [--quick] [--json]`: measure the rows, and print them beside their targets."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import TypedDict

from benchmarks import assembly, importing, journaling, loopback, preview, repairing, running, validation
from benchmarks.harness import FULL, QUICK, Effort, Row

FAMILIES = {
    "assembly": assembly.ROWS,
    "preview": preview.ROWS,
    "repairing": repairing.ROWS,
    "validation": validation.ROWS,
    "running": running.ROWS,
    "journaling": journaling.ROWS,
    "importing": importing.ROWS,
    "loopback": loopback.ROWS,
}
ROWS = {row.name: row for family in FAMILIES.values() for row in family}
_FORMATS = {"x": "{:.2f}x", "s": "{:.2f} s", "µs": "{:.1f} µs", "exponent": "{:.2f}", "modules": "{:.0f}"}


class Line(TypedDict):
    """A measured row, as `--json` writes it."""

    name: str
    what: str
    unit: str
    measured: float
    target: float
    ok: bool
    detail: str


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print, each row as soon as it is there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"a row or a family: {', '.join((*FAMILIES, *ROWS))}")
    parser.add_argument("--quick", action="store_true", help="a few short rounds: shows that it runs, not how fast")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args(arguments)
    try:
        chosen = list(dict.fromkeys(row for name in options.rows or FAMILIES for row in _named(name)))
    except KeyError as error:
        parser.error(f"no row or family is named {error}")
    if not options.json:
        print("| row | what | measured | target | |\n|---|---|---|---|---|")
    for line in measure(chosen, QUICK if options.quick else FULL):
        print(json.dumps(line, ensure_ascii=False) if options.json else as_row(line), flush=True)


def measure(rows: Sequence[Row], effort: Effort) -> Iterator[Line]:
    """Measure rows one after another."""
    for name, what, unit, target, run in rows:
        value, detail = run(effort)
        yield Line(name=name, what=what, unit=unit, measured=value, target=target, ok=value <= target, detail=detail)


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


def _named(name: str) -> Sequence[Row]:
    return FAMILIES[name] if name in FAMILIES else (ROWS[name],)


if __name__ == "__main__":
    main()
