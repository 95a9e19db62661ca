"""What the pages under Extending make passes the contract suites that its users are told to run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from toolrun.testing import JournalSuite

if TYPE_CHECKING:
    from toolrun.abc import Journal

PAGES = Path(__file__).parents[2] / "docs" / "extending"


def made_by(page: str, name: str) -> Any:
    """What the first block of a page that has the name makes of it."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (PAGES / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    namespace: dict[str, Any] = {"__name__": "page"}
    exec(next(block for block in blocks if f"class {name}" in block), namespace)
    return namespace[name]


class TestFileJournal(JournalSuite):
    """The journal of the page, open to whoever copies it."""

    async def open(self, directory: Path) -> Journal:
        return made_by("journals.md", "FileJournal")(directory / "journal.jsonl")

    async def reopen(self, journal: Journal, directory: Path) -> Journal:
        await journal.aclose()
        return type(journal)(directory / "journal.jsonl")  # type: ignore[call-arg]


async def test_a_line_that_was_cut(tmp_path: Path) -> None:
    """The process ended while it wrote: what was confirmed is there, and the file goes on behind it."""
    path = tmp_path / "journal.jsonl"
    journal = made_by("journals.md", "FileJournal")
    async with journal(path):
        pass
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"epoch": 2')

    async with journal(path) as later:
        assert later.epoch == 2
    assert path.read_bytes() == whole + b'{"epoch": 2}\n'


def test_the_plugin(tmp_path: Path) -> None:
    """Its files are saved and put where pip would put them; its tests pass, and `toolrun plugins` shows it as the page does."""
    text = (PAGES / "plugins.md").read_text("utf-8")
    for name, source in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, "utf-8")
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]
    info = tmp_path / "src" / f"toolrun_ruby-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in named.items())
        for group, named in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points))

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "4 passed" in run("pytest", "-q", "-p", "no:cacheprovider")
    (shown,) = re.findall(r"^```text\n(toolrun\.repairs\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    listed = {" ".join(line.split()) for line in run("toolrun.cli", "plugins").splitlines()}
    assert {" ".join(line.split()) for line in shown.splitlines()} <= listed


@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.glob("*.md")))
def test_only_what_is_public(page: str) -> None:
    """Whoever copies from these pages imports no private module."""
    assert re.findall(r"^\s*(?:from|import) toolrun\._.*$", (PAGES / page).read_text("utf-8"), re.MULTILINE) == []
