"""The benchmarks run, and say what they measured; how fast it was is no test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "performance.md"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_json() -> None:
    """Each row is one line, in the order asked for, with the verdict that its numbers give; a row asked for twice is measured once."""
    done = run("--quick", "--json", "validation", "dicts-1k", "validation")
    lines = [json.loads(line) for line in done.stdout.splitlines()]

    assert (done.returncode, done.stderr) == (0, "")
    assert [(line["name"], line["unit"], line["target"]) for line in lines] == [
        ("validation", "x", 2.0),
        ("dicts-1k", "x", 2.2),
    ]
    for line in lines:
        assert line["measured"] > 0
        assert line["ok"] is (line["measured"] <= line["target"])


def test_table() -> None:
    """Without `--json` it is the table of the documentation."""
    head, rule, row = run("--quick", "memory").stdout.splitlines()

    assert (head, rule) == ("| row | what | measured | target | |", "|---|---|---|---|---|")
    assert row.split(" | ")[:2] == ["| memory", "peak memory, 100 KB"]
    assert row.split(" | ")[3] == "≤ 1.10x"


def test_unknown_row() -> None:
    """A name that is no row's is an error of usage, and the rows are listed."""
    done = run("nonsense")

    assert done.returncode == 2
    assert done.stdout == ""
    assert "no row or family is named 'nonsense'" in done.stderr


def test_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's table has every row, with what it is and its target as they are now."""
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.__main__ import ROWS, as_target

    documented = [
        line.strip("|").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")
    ]
    told = {cells[0].strip(): (cells[1], cells[3]) for cells in documented if cells[0].strip() in ROWS}

    assert told == {row.name: (row.what, as_target(row.unit, row.target)) for row in ROWS.values()}
