"""What it takes to answer hostile arguments: 56 kinds of text, 100 KB each."""

from __future__ import annotations

import time

from benchmarks.harness import Effort, Measured, Row
from tests.repairs.hostile import HOSTILE, SCHEMA
from toolrun import Tool, repair_arguments


def nothing(**arguments: object) -> None:
    """Stand in for the tool."""


def hostile(effort: Effort) -> Measured:
    """Each text once: what is not linear shows in one round."""
    tool = Tool.from_json_schema(name="f", input_schema=SCHEMA, handler=nothing)
    repair_arguments('{"limit": "1"}', tool)  # imports are not what is measured
    names = list(HOSTILE)[: None if effort.rounds > 3 else 5]  # noqa: PLR2004  # a quick run shows that it runs
    taken = {}
    for name in names:
        began = time.process_time()
        repair_arguments(HOSTILE[name], tool)
        taken[name] = time.process_time() - began
    slowest = max(taken, key=taken.__getitem__)
    return Measured(taken[slowest], f"{len(taken)} kinds, the slowest: {slowest}")


ROWS = (Row("repair-hostile", "hostile arguments of 100 KB, the slowest", "s", 1.0, hostile),)
