"""A bar for long work: on a terminal, on standard error, and never between lines of output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pseudo-terminals as Linux has them")

AT_ONCE = "import toolrun.cli._progress as p; p.DELAY_SECONDS = 0; from toolrun.cli import entry; entry()"
AFTER_A_WHILE = "from toolrun.cli import entry; entry()"
WITHOUT_RICH = f"import sys; sys.modules['rich'] = None; {AT_ONCE}"
ROOT = Path(__file__).parents[2]


def run(*arguments: object, code: str = AT_ONCE, everywhere: bool = False, **env: str) -> tuple[int, str, str]:
    """Run the command with standard error on a terminal, and standard output there too or in a pipe."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs if everywhere else subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **env},
        cwd=ROOT,
    ) as child:
        os.close(theirs)
        shown = b""
        try:
            while block := os.read(ours, 65536):
                shown += block
        except OSError:  # the other end is closed
            pass
        out = b"" if child.stdout is None else child.stdout.read()
    os.close(ours)
    return child.returncode, out.decode(), shown.decode()


@pytest.fixture
def long_stream(chat, tmp_path: Path) -> Path:
    """Several blocks long."""
    path = tmp_path / "long.jsonl"
    path.write_text(chat(("c1", "say", json.dumps({"text": "x" * 300_000}))))
    return path


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps({"id": n, "events": [], "wire": "gemini"}) + "\n" for n in range(50)) + "no\n")
    return path


def test_a_long_stream(long_stream):
    """The bar is on the terminal while the stream is read, and gone before the result is printed."""
    code, out, shown = run("finalize", long_stream)
    _, plain, _ = run("finalize", long_stream, code=AFTER_A_WHILE)

    assert (code, out) == (0, plain)
    assert "long.jsonl" in shown
    assert "/300.2" in shown
    assert shown.endswith("\x1b[1A\x1b[2K")


def test_a_batch(cases):
    """What is wrong with a line stands above the bar; the answers go where they should."""
    code, out, shown = run("finalize", "--batch", cases)

    assert code == 2
    assert [json.loads(line)["id"] for line in out.splitlines()] == list(range(50))
    assert "cases.jsonl:51: not JSON" in shown
    assert "/2.1 kB" in shown


def test_a_batch_of_repairs():
    code, out, shown = run(
        "repair", "--batch", "examples/malformed.jsonl", "--tool", "examples/get_weather.json", "--json"
    )

    assert code == 1
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["python", "text-for-number", "two", "cut"]
    assert "malformed.jsonl" in shown


@pytest.mark.parametrize(
    ("code", "everywhere", "env"),
    [
        pytest.param(AFTER_A_WHILE, False, {}, id="the work is short"),
        pytest.param(AT_ONCE, True, {}, id="the answers are on the same terminal"),
        pytest.param(AT_ONCE, False, {"TERM": "dumb"}, id="a dumb terminal"),
        pytest.param(WITHOUT_RICH, False, {}, id="rich is not installed"),
    ],
)
def test_no_bar(code, everywhere, env):
    ended, out, shown = run("finalize", "--batch", "examples/cases.jsonl", code=code, everywhere=everywhere, **env)

    assert ended == 0
    assert (out or shown).count("\n") == 2
    assert "\x1b" not in shown


def test_no_colours_if_the_user_wants_none(cases):
    _, _, shown = run("finalize", "--batch", cases, NO_COLOR="1")

    assert "cases.jsonl" in shown
    assert "\x1b[3" not in shown.replace("\x1b[?25", "")
