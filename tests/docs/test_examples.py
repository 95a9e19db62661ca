"""Every code block of the documentation is run: Python with what it prints, `toolrun` commands with what they print."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "plugins").glob("*/README.md"),
    )
    if "changes" not in path.parts and path.name != "tutorial.md"  # `test_tutorial` types it line by line
)


class Block(NamedTuple):
    """A fenced block; `line` is the page's line that its first line is on, from 1."""

    language: str
    line: int
    source: str


def blocks(page: str, *languages: str) -> list[Block]:
    text = (ROOT / page).read_text("utf-8")
    return [
        Block(found[1], text[: found.start(2)].count("\n") + 1, found[2])
        for found in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if found[1] in languages
    ]


# -- Python -----------------------------------------------------------------------------------

WITH_PYTHON = [page for page in PAGES if blocks(page, "python", "py")]


def printed(page: str, monkeypatch: pytest.MonkeyPatch) -> dict[int, list[str]]:
    """Run the blocks of a page in order, in one module; give the lines that were printed, by the page's line."""
    module = ModuleType("example")
    lines: dict[int, list[str]] = {}

    def record(*values: object, sep: str = " ") -> None:
        frame = sys._getframe(1)
        lines.setdefault(frame.f_lineno, []).extend(sep.join(map(str, values)).split("\n"))

    monkeypatch.setitem(sys.modules, "example", module)
    module.__dict__["print"] = record
    for block in blocks(page, "python", "py"):
        code = compile("\n" * (block.line - 1) + block.source, ROOT / page, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # the project's own documentation
    return lines


def shown(page: str) -> dict[int, list[str]]:
    """The `#>` lines of a page, by the line of the `print` that they stand under."""
    lines: dict[int, list[str]] = {}
    for block in blocks(page, "python", "py"):
        source = block.source.splitlines()
        for node in ast.walk(ast.parse(block.source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                following = [line.strip() for line in source[node.end_lineno or 0 :]]
                count = next((n for n, line in enumerate(following) if not line.startswith("#>")), len(following))
                lines[node.lineno + block.line - 1] = [line[3:] for line in following[:count]]
    return lines


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python(page: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Every block runs, and prints what stands under each `print`."""
    request.getfixturevalue("temporal" if "temporal" in page else "provider")
    assert printed(page, monkeypatch) == shown(page)


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_style(page: str) -> None:
    """Examples read like the code of the project, and use no name that their page does not define."""
    sources = [block.source.replace("#>", "#") for block in blocks(page, "python", "py")]

    for source in sources:
        assert ruff(["format", "--diff"], source) == ""
    assert ruff(["check", "--quiet", "--select=E,F,W,B,I,UP", "--ignore=E402,E501,I001"], "\n".join(sources)) == ""


def ruff(arguments: list[str], source: str) -> str:
    program = Path(sys.executable).parent / "ruff"
    return subprocess.run([program, *arguments, "-"], input=source, capture_output=True, text=True, check=False).stdout


# -- commands ---------------------------------------------------------------------------------


class Command(NamedTuple):
    """A `toolrun …` command of a page; `output` is None where the page shows none."""

    page: str
    line: int
    words: list[str]
    output: str | None


def commands(page: str) -> Iterator[Command]:
    """`$ toolrun …` in `console` blocks with its output, `toolrun …` in `sh` blocks without."""
    for block in blocks(page, "console", "sh"):
        pattern = r"^\$ (toolrun .*)\n((?:(?!\$ ).*\n)*)" if block.language == "console" else r"\b(toolrun .*)\n()"
        for found in re.finditer(pattern, block.source, re.MULTILINE):
            line = block.line + block.source[: found.start()].count("\n")
            yield Command(page, line, shlex.split(found[1]), found[2] if block.language == "console" else None)


COMMANDS = [command for page in PAGES for command in commands(page)]


@pytest.mark.parametrize("command", COMMANDS, ids=[f"{command.page}:{command.line}" for command in COMMANDS])
def test_command(command: Command, tmp_path: Path) -> None:
    """The command prints what the page shows, or at least succeeds."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    program = shutil.which("toolrun", path=str(Path(sys.executable).parent))

    assert program is not None, "the package's script is not installed beside the interpreter"

    done = subprocess.run(
        [program, *command.words[1:]],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    if command.output is None:
        assert done.returncode == 0, done.stderr
    else:
        assert done.stdout + done.stderr == command.output
