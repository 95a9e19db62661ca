"""The tutorial, typed line by line: its files are saved, its commands run in a shell, and each prints what is shown."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs/tutorial.md").read_text("utf-8")
APPENDED = ", at the end"

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("bash") is None, reason="its commands are for a POSIX shell"
)


class Step(NamedTuple):
    """A file to save, or a command with what it prints; in the order of the page."""

    title: str | None
    text: str


def steps() -> list[Step]:
    found = re.findall(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', TUTORIAL, re.MULTILINE | re.DOTALL)
    return [Step(title or None, text) for language, title, text in found if title or language == "console"]


def commands(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)


@pytest.mark.usefixtures("provider")
def test_tutorial(tmp_path: Path) -> None:
    """From an empty directory to the last line."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    typed = []
    for title, text in steps():
        if title is not None:
            name, _, rest = title.partition(APPENDED)
            with (tmp_path / name).open("a" if APPENDED in title else "x", encoding="utf-8") as file:
                file.write(text)
            assert rest == ""
            continue
        for command, shown in commands(text):
            typed.append(command)
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env={**os.environ, "PATH": path, "NO_COLOR": "1", "PYTHONUTF8": "1"},
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
            assert done.stdout + done.stderr == shown, command

    assert [command.split()[0] for command in typed] == [
        "toolrun", "toolrun", "toolrun", "toolrun", "head", "toolrun", "python", "python", "python", "python",
    ]  # fmt: skip


def test_style(tmp_path: Path) -> None:
    """Its files read like the code of the project."""
    for title, text in steps():
        if title is not None and title.endswith(".py"):
            (tmp_path / title).write_text(text, "utf-8")
    ruff = Path(sys.executable).parent / "ruff"
    done = subprocess.run(
        [ruff, "check", "--quiet", "--isolated", "--select=E,F,W,B,I,UP", "--line-length=120", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == ""
    assert (
        subprocess.run(
            [ruff, "format", "--check", "--isolated", "--line-length=120", tmp_path], capture_output=True, check=False
        ).returncode
        == 0
    )
