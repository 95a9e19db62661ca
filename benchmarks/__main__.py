"""`python -m benchmarks [ROW…] [--quick] [--json]`: measure the rows, and print them beside their targets.

`python -m benchmarks charts` measures nothing: it draws what is stored in `benchmarks/results.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence

from benchmarks import (
    assembly,
    importing,
    journaling,
    listening,
    loopback,
    peers,
    preview,
    repairing,
    running,
    validation,
)
from benchmarks.harness import FULL, QUICK, Effort, Row
from benchmarks.report import HEADER, Line, as_row

FAMILIES = {
    "assembly": assembly.ROWS,
    "preview": preview.ROWS,
    "repairing": repairing.ROWS,
    "validation": validation.ROWS,
    "running": running.ROWS,
    "journaling": journaling.ROWS,
    "listening": listening.ROWS,
    "importing": importing.ROWS,
    "loopback": loopback.ROWS,
    "peers": peers.ROWS,
}
ROWS = {row.name: row for family in FAMILIES.values() for row in family}
_CHARTS = "charts"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print, each row as soon as it is there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"a row or a family: {', '.join((*FAMILIES, *ROWS))}; or `{_CHARTS}`"
    )
    parser.add_argument("--quick", action="store_true", help="a few short rounds: shows that it runs, not how fast")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args(arguments)
    if options.rows == [_CHARTS]:
        from benchmarks.charts import draw  # noqa: PLC0415  # pygal is needed for this alone

        draw()
        return
    try:
        chosen = list(dict.fromkeys(row for name in options.rows or FAMILIES for row in _named(name)))
    except KeyError as error:
        parser.error(f"no row or family is named {error}")
    if not options.json:
        print(HEADER)
    for line in measure(chosen, QUICK if options.quick else FULL):
        print(json.dumps(line, ensure_ascii=False) if options.json else as_row(line), flush=True)
    if not options.json:
        print(f"\nPeers: {peers.told()}")


def measure(rows: Sequence[Row], effort: Effort) -> Iterator[Line]:
    """Measure rows one after another."""
    for name, what, unit, target, run in rows:
        value, detail = run(effort)
        yield Line(name=name, what=what, unit=unit, measured=value, target=target, ok=value <= target, detail=detail)


def _named(name: str) -> Sequence[Row]:
    return FAMILIES[name] if name in FAMILIES else (ROWS[name],)


if __name__ == "__main__":
    main()
