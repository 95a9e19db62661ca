"""`python -m benchmarks.repair_score`: the repair cases, scored by category, for toolrun and for what else is installed.

*Right*: the arguments that were meant, or a refusal where they must be refused. *Silent*: arguments that pass the schema
and are others than were meant; the tool would run on them. *No*: refused although they could be known.

The others get the raw text (and the schema, where they take one); what they give is validated by the same schema. They
are in the dependency group `repair-score`: `uv run --group repair-score python -m benchmarks.repair_score`.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator

from toolrun import Tool, ToolRegistry, repair_arguments
from toolrun._core.conservation import same

CASES = Path(__file__).parents[1] / "tests/cases/repair_cases.jsonl"
NOTHING: Any = object()

Case = dict[str, Any]
System = Callable[[Case, Tool], Any]
"""Gives the arguments for a case, or NOTHING."""


class Score(NamedTuple):
    """How often each came out."""

    right: int
    silent: int
    no: int


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.repair_score", description="Score the repair cases by category."
    )
    parser.add_argument("cases", nargs="?", type=Path, default=CASES, help="a file like tests/cases/repair_cases.jsonl")
    parser.add_argument("--compare", action="store_true", help="also every other repairer that is installed")
    parser.add_argument("--failures", action="store_true", help="show what did not come out right, for toolrun")
    options = parser.parse_args()
    cases = read(options.cases)
    for line in by_category(cases):
        print(line)
    if options.compare:
        print()
        for line in side_by_side(cases):
            print(line)
    if options.failures:
        for case in cases:
            if (verdict := judge(case, toolrun)) != "right":
                print(verdict, case["id"], json.dumps(case["raw"]))


def read(path: Path) -> list[Case]:
    """The cases of a file."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def by_category(cases: Iterable[Case]) -> Iterator[str]:
    """A Markdown table: what toolrun makes of each category."""
    counts: dict[str, Counter[str]] = {}
    for case in cases:
        counts.setdefault(case["category"], Counter())[judge(case, toolrun)] += 1
    yield "| category | cases | right | silent | no |"
    yield "|---|---|---|---|---|"
    for category, found in sorted(counts.items()):
        yield f"| {category} | {found.total()} | {found['right']} | {found['silent']} | {found['no']} |"
    total = sum(counts.values(), Counter[str]())
    yield f"| all | {total.total()} | {total['right']} | {total['silent']} | {total['no']} |"


def side_by_side(cases: Iterable[Case]) -> Iterator[str]:
    """A Markdown table: every repairer that is installed, by how many are right of those that can be known."""
    listed = [case for case in cases if case["category"] != "tool_name"]
    mendable = [case for case in listed if case["expected"] is not None]
    hopeless = [case for case in listed if case["expected"] is None]
    yield (
        f"| system | version | right of {len(mendable)} | silent of {len(mendable)} |"
        f" run wrongly of {len(hopeless)} | silent in all |"
    )
    yield "|---|---|---|---|---|---|"
    rows = []
    for name, (package, system) in SYSTEMS.items():
        known, refused = score(mendable, system), score(hopeless, system)
        rows.append((known.right, name, version(package) if package else "", known.silent, refused.silent))
    for right, name, release, silent, wrongly in sorted(rows, reverse=True):
        yield f"| {name} | {release} | {right} | {silent} | {wrongly} | {silent + wrongly} |"


def score(cases: Iterable[Case], system: System) -> Score:
    """Count the verdicts."""
    found = Counter(judge(case, system) for case in cases)
    return Score(found["right"], found["silent"], found["no"])


def judge(case: Case, system: System) -> str:
    """Say what came of a case: `right`, `silent` or `no`."""
    if case["category"] == "tool_name":
        return _judge_name(case)
    schema = case["tool_schema"]
    tool = Tool.from_json_schema(name=schema["name"], input_schema=schema["parameters"], handler=_nothing)
    got, expected = system(case, tool), case["expected"]
    if got is NOTHING:
        return "right" if expected is None else "no"
    if expected is not None and same(got, expected):
        return "right"
    if case.get("untouched_ok") and same(got, json.loads(case["raw"])):
        return "right"
    return "silent"


def toolrun(case: Case, tool: Tool) -> Any:
    """The built-in chain."""
    arguments = repair_arguments(case["raw"], tool, finish_reason=case.get("finish_reason")).arguments
    return NOTHING if arguments is None else arguments


def _judge_name(case: Case) -> str:
    registry = ToolRegistry(
        Tool.from_json_schema(name=name, input_schema={"type": "object"}, handler=_nothing)
        for name in case["registered"]
    )
    found = registry.resolve_name(case["raw"])
    return "right" if found == case["expected_name"] else "no" if found is None else "silent"


def _nothing(**arguments: object) -> None:
    """Stand in for the tool."""


def _other(read_text: Callable[[Case], Any]) -> System:
    """Another repairer: whatever it raises is a refusal, and what it gives must pass the schema as it is."""

    def system(case: Case, tool: Tool) -> Any:
        try:
            value = read_text(case)
        except Exception:  # noqa: BLE001  # a refusal, in the repairer's own way
            return NOTHING
        fits = isinstance(value, dict) and Draft202012Validator(tool.definition.input_schema).is_valid(value)
        return value if fits else NOTHING

    return system


def _installed() -> Iterator[tuple[str, tuple[str, System]]]:
    """The others that can be imported."""
    yield "toolrun", ("toolrun", toolrun)
    yield "json.loads", ("", _other(lambda case: json.loads(case["raw"])))
    yield "ast.literal_eval", ("", _other(lambda case: ast.literal_eval(case["raw"])))
    for name, package, module, call in OTHERS:
        try:
            imported = import_module(module)
        except ImportError:
            continue
        yield name, (package, _other(partial(call, imported)))


def _schema(case: Case) -> Any:
    return case["tool_schema"]["parameters"]


OTHERS: tuple[tuple[str, str, str, Callable[[Any, Case], Any]], ...] = (
    ("json_repair", "json-repair", "json_repair", lambda module, case: module.loads(case["raw"])),
    ("json_repair strict", "json-repair", "json_repair", lambda module, case: module.loads(case["raw"], strict=True)),
    (
        "json_repair schema",
        "json-repair",
        "json_repair",
        lambda module, case: module.loads(case["raw"], schema=_schema(case)),
    ),
    (
        "json_repair schema, salvage",
        "json-repair",
        "json_repair",
        lambda module, case: module.loads(case["raw"], schema=_schema(case), schema_repair_mode="salvage"),
    ),
    ("fast_json_repair", "fast-json-repair", "fast_json_repair", lambda module, case: module.loads(case["raw"])),
    ("pyjson5", "pyjson5", "pyjson5", lambda module, case: module.decode(case["raw"])),
    ("json5", "json5", "json5", lambda module, case: module.loads(case["raw"])),
    ("hjson", "hjson", "hjson", lambda module, case: dict(module.loads(case["raw"]))),
    ("dirtyjson", "dirtyjson", "dirtyjson", lambda module, case: dict(module.loads(case["raw"]))),
    (
        "partial-json-parser",
        "partial-json-parser",
        "partial_json_parser",
        lambda module, case: module.loads(case["raw"]),
    ),
    (
        "jiter, partial",
        "jiter",
        "jiter",
        lambda module, case: module.from_json(case["raw"].encode(), partial_mode=True),
    ),
)
"""Name, distribution, module, and how it is called."""

SYSTEMS: dict[str, tuple[str, System]] = dict(_installed())

if __name__ == "__main__":
    main()
