"""`python -m docs.views [--check]`: run the command on a terminal, and draw what is left on the screen as SVG.

The pictures are in `docs/assets`. `--check` draws them too, and says which of them are not what the command shows now.
"""

from __future__ import annotations

import argparse
import fcntl
import inspect
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROOT = Path(__file__).parents[1]
ASSETS = Path(__file__).parent / "assets"
WIDTH = 100
LINES = 40
FRAME = inspect.signature(Console.export_svg).parameters["code_format"].default
SVG = re.sub(r"@font-face \{\{.*?\}\}\s*", "", FRAME, flags=re.DOTALL)
"""rich's own frame, without the fonts that it would fetch."""

JOURNAL = """
import os, sys
from toolrun import Runner, ToolRegistry
from toolrun.journals import SqliteJournal

registry = ToolRegistry()

@registry.tool(effect="pure")
async def look(order: int) -> str:
    return f"order {order}: 500 cents"

@registry.tool
async def charge(order: int, cents: int) -> None:
    os._exit(1)  # the machine goes down

texts = {"look": '{"order": 12}', "charge": '{"order": 12, "cents": 500}'}
calls = [
    {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": text}}
    for number, (name, text) in enumerate(texts.items())
]
response = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
with SqliteJournal(sys.argv[1]) as journal, Runner(registry, journal=journal, run_id="5f0c", max_concurrency=1) as runner:
    runner.run_sync(response, turn_id="7")
"""


class View(NamedTuple):
    """A picture: the command as a reader types it, and a script that makes a file for it first."""

    command: str
    before: str = ""
    file: str = ""


VIEWS = {
    "run": View("toolrun run examples/streams/repaired.sse --tools examples/tools.py"),
    "finalize": View("toolrun finalize examples/streams/cut.sse"),
    "repair": View("""printf "{'city': 'Oslo', days: \\"3\\",}" | toolrun repair --tool examples/get_weather.json"""),
    "journal": View("toolrun journal calls.db", JOURNAL, "calls.db"),
}


def main() -> int:
    """Draw the pictures, or compare them."""
    parser = argparse.ArgumentParser(prog="python -m docs.views", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a picture is out of date")
    options = parser.parse_args()
    drawn = {ASSETS / f"{name}.svg": drawing(name, view) for name, view in VIEWS.items()}
    stale = [path for path, svg in drawn.items() if not path.is_file() or path.read_text("utf-8") != svg]
    for path in stale:
        told = f"{path.relative_to(ROOT)} is out of date; run python -m docs.views"
        print(told if options.check else path.relative_to(ROOT))
        if not options.check:
            path.write_text(drawn[path], "utf-8")
    return int(options.check and bool(stale))


def drawing(name: str, view: View) -> str:
    """The SVG of a command and its output."""
    with tempfile.TemporaryDirectory() as place:
        Path(place, "examples").symlink_to(ROOT / "examples")
        if view.before:
            subprocess.run([sys.executable, "-c", view.before, view.file], cwd=place, check=False)
        screen = on_terminal(view.command, place)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False, force_terminal=True)
    console.print(Text(f"$ {view.command}", "bold"))
    console.print(Text.from_ansi(screen.strip("\n")))
    return console.export_svg(title="", theme=SVG_EXPORT_THEME, code_format=SVG, unique_id=f"toolrun-{name}")


def on_terminal(command: str, place: str) -> str:
    """What a terminal has on its screen when the command is over."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, WIDTH, 0, 0))
    plain = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(
        ["sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**plain, "TERM": "xterm-256color", "PATH": path},
        cwd=place,
    ):
        os.close(theirs)
        written = b""
        try:
            while block := os.read(ours, 65536):
                written += block
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    last_frame = written.decode().replace("\r", "").rpartition("\x1b[2K")[2]
    return re.sub(r"\x1b\[\?25[hl]", "", last_frame)


if __name__ == "__main__":
    sys.exit(main())
