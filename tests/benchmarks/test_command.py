"""The benchmarks run, and say what they measured; how fast it was is no test."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
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
    head, rule, row, blank, peers = run("--quick", "memory").stdout.splitlines()

    assert blank == ""
    assert re.fullmatch(r"Peers: (openai|jiter|partial-json-parser|json-repair) .*", peers)
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
    from benchmarks.__main__ import ROWS
    from benchmarks.report import as_target

    documented = [
        line.strip("|").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")
    ]
    told = {cells[0].strip(): (cells[1], cells[3]) for cells in documented if cells[0].strip() in ROWS}

    assert told == {row.name: (row.what, as_target(row.unit, row.target)) for row in ROWS.values()}


def test_peers() -> None:
    """A row against others says whom, in which version."""
    done = run("--quick", "--json", "peer-jiter", "peer-json-repair")
    jiter, repairer = (json.loads(line) for line in done.stdout.splitlines())

    assert jiter["detail"].endswith(f"µs, jiter {version('jiter')}")
    assert repairer["detail"].endswith(f"µs, json-repair {version('json-repair')}")


def test_the_page_shows_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its table and its charts are those that `python -m benchmarks charts` makes of the stored results."""
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.charts import charts
    from benchmarks.report import page, stored

    text = PAGE.read_text("utf-8")

    assert page(text, stored()) == text
    for path, svg in charts(stored()).items():
        assert path.read_text("utf-8") == svg, f"{path.name} is out of date; run python -m benchmarks charts"
        assert f"../assets/{path.name}" in text
        assert "http://www.w3.org/2000/svg" in svg
        assert "href" not in svg


def test_the_charts_have_every_stored_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bar for each row that has a target above 0, named, with its share of the target, or of the peer's time."""
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.charts import LEAST, charts
    from benchmarks.report import stored

    own, peers = charts(stored()).values()
    for line in stored():
        peer = line["name"].startswith("peer-")
        chart = peers if peer else own
        assert (f">{line['name']}</text>" in chart) is (line["target"] > 0), line["name"]
        if line["target"]:
            value = max(line["measured"] / (1 if peer else line["target"]), LEAST)
            assert f">{float(f'{value:.2g}'):g}</text>" in chart, line["name"]
