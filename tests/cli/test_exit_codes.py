"""The table of exit codes in the documentation: each cell is produced."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolrun import Runner, ToolRegistry
from toolrun.cli import _exits
from toolrun.journals import SqliteJournal

ROOT = Path(__file__).parents[2]
TOOLS = "examples/tools.py"
STREAM = "examples/streams/plain.sse"
CUT = "examples/streams/cut.sse"
TOOL = "examples/get_weather.json"
KEY = "R:T:0"

ENDS = {
    ("run", 0): ["run", STREAM, "--tools", TOOLS],
    ("run", 1): ["run", CUT, "--tools", TOOLS],
    ("run", 2): ["run", "nowhere.sse", "--tools", TOOLS],
    ("finalize", 0): ["finalize", CUT],
    ("finalize", 2): ["finalize", TOOLS],
    ("schema", 0): ["schema", TOOLS, "--wire", "gemini"],
    ("schema", 2): ["schema", TOOLS, "--wire", "nonsense"],
    ("repair", 0): ["repair", "--tool", TOOL],
    ("repair", 1): ["repair", "--batch", "examples/malformed.jsonl", "--tool", TOOL],
    ("repair", 2): ["repair", "--tool", "nowhere.json"],
    ("journal", 0): ["journal", "calls.db"],
    ("journal", 1): ["journal", "calls.db", "--settle", KEY, "--result", "1"],
    ("journal", 2): ["journal", "calls.db", "--show", "nothing"],
    ("plugins", 0): ["plugins"],
    ("plugins", 2): ["plugins", "--yaml"],
    ("completion", 0): ["completion", "zsh"],
    ("completion", 2): ["completion", "csh"],
}


def documented() -> dict[tuple[str, int], str]:
    """What the table says, by command and code."""
    lines = (ROOT / "docs/reference/commands.md").read_text("utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| exit code |"))
    _, *commands = (cell.strip() for cell in lines[start].strip("|").split("|"))
    rows = [line.strip("|").split("|") for line in lines[start + 2 : lines.index("", start)]]
    return {
        (command, int(code)): cell.strip()
        for code, *cells in rows
        for command, cell in zip(commands, cells, strict=True)
        if cell.strip()
    }


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the examples, and a journal with one call that has an outcome."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    registry = ToolRegistry()

    @registry.tool
    def look() -> str:
        return "seen"

    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    with SqliteJournal(tmp_path / "calls.db") as journal, Runner(registry, journal=journal, run_id="R") as runner:
        runner.run_sync({"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}, turn_id="T")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_has_them_all():
    """A command has no other code; Ctrl-C and a closed pipe end any of them."""
    commands = {command for command, _ in ENDS}
    anywhere = {(command, code) for command in commands for code in (_exits.INTERRUPTED, _exits.BROKEN_PIPE)}

    assert set(documented()) == set(ENDS) | anywhere
    assert {code for _, code in documented()} == {
        value for name, value in vars(_exits).items() if name.isupper() and not name.startswith("_")
    }


@pytest.mark.parametrize(("command", "code"), ENDS)
def test_code(process, place, command, code):
    ended = process(*ENDS[command, code], stdin=b'{"city": "Oslo",}', cwd=place)

    assert ended.code == code, ended.err
    assert ended.err.count("\n") == (code == _exits.BAD_INPUT or (command, code) == ("journal", 1))


@pytest.mark.skipif(os.name == "nt", reason="pipes close in another way there")
@pytest.mark.parametrize("command", [command for command, code in ENDS if code == 0])
def test_nobody_reads(place, command):
    """As `toolrun … | head` does it."""
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "toolrun.cli", *ENDS[command, 0]],
            input=b'{"city": "Oslo",}',
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert (done.returncode, done.stderr) == (_exits.BROKEN_PIPE, b"")
