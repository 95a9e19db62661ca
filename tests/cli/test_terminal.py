"""On a terminal: the table, and nothing in it that a stream could steer the terminal with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pseudo-terminals as Linux has them")

CONTROL_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def terminal():
    """Run the command on a terminal of 80 columns, and give what it wrote there."""

    def run(*arguments: object, code: str = "from toolrun.cli import entry; entry()", columns: int = 80, **env: str):
        import fcntl
        import pty
        import struct
        import termios

        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        plain = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
        with subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
            env={**plain, "TERM": "xterm-256color", **env},
            cwd=ROOT,
        ) as child:
            os.close(theirs)
            written = b""
            while block := _read(ours):
                written += block
            error = child.stderr.read() if child.stderr else b""
        os.close(ours)
        return child.returncode, written.decode(), error.decode()

    return run


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end is closed
        return b""


def last_screen(written: str) -> list[str]:
    """What is left to read when all is over: the text after the last frame began."""
    text = CONTROL_SEQUENCE.sub("", written[written.rindex("\x1b[2K") :] if "\x1b[2K" in written else written)
    return [line.rstrip() for line in text.replace("\r", "").split("\n")]


def test_the_table(terminal):
    code, written, error = terminal("run", "examples/streams/parallel.sse", "--tools", "examples/tools.py")

    assert (code, error) == (0, "")
    assert last_screen(written) == [
        " #  call                  state         arguments, result",
        ' 0  get_weather           done          {"city": "Lisbon", "unit": "f"}',
        '    toolu_parallel_1                    {"city":"Lisbon","degrees":76.1,"unit":…',
        ' 1  read_lines            done          {"path": "README.md", "count": 1}',
        "    toolu_parallel_2                    # Examples",
        "",
        "Text: I'll look up the weather and read the file.",
        "",
        " 0  get_weather  done",
        '    {"city":"Lisbon","degrees":76.1,"unit":"f"}',
        " 1  read_lines  done",
        "    # Examples",
        "",
        "2 calls: 2 succeeded",
        "",
    ]
    assert "running" in written
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1  # the cursor is given back


def test_repairs_and_attempts_stay_in_the_table(terminal):
    _, repaired, _ = terminal("run", "examples/streams/repaired.sse", "--tools", "examples/tools.py")
    _, retried, _ = terminal("run", "examples/streams/retried.jsonl", "--tools", "examples/tools.py")

    assert last_screen(repaired)[1:5] == [
        ' 0  in_both               done          {"a":[1,2,3],"b":[2,3,4]}',
        "    call_repaired_1       repaired      [2,3]",
        ' 1  save_note             done          {"title": "Shared", "text": "2, 3"}',
        "    call_repaired_2       repaired      saved 'Shared' for call_repaired_2",
    ]
    assert "retrying" in retried
    assert last_screen(retried)[1:3] == [
        ' 0  exchange_rate         done          {"base": "EUR", "quote": "NOK"}',
        "    toolu_retried_1       3 attempts    11.42",
    ]


def test_no_line_is_wider_than_the_terminal(terminal, chat, tools, tmp_path):
    """Wide characters count twice."""
    stream = tmp_path / "stream.jsonl"
    stream.write_text(chat(("c" * 90, "t" * 64, '{"text": "' + "長" * 300 + '"}')))

    for columns in (40, 80, 120):
        _, written, _ = terminal("run", stream, "--tools", tools(""), columns=columns)
        table = last_screen(written)[:3]
        assert all(len(line) + line.count("長") <= columns for line in table)
        assert table[1].endswith("…")


def test_a_hostile_stream_cannot_steer_the_terminal(terminal, chat, tools, tmp_path):
    """Nor write in the markup of the table."""
    evil = "\x1b[2J\x1b]0;owned\x07\x9b5m[bold red]hi[/]"
    own = tools(f"@registry.tool\ndef say() -> str:\n    return {evil!r}\n")
    stream = tmp_path / "stream.jsonl"
    stream.write_text(chat((evil, "say", "{}"), ("c2", evil, f'{{"a": "{evil}"}}'), text=evil))

    code, written, error = terminal("run", stream, "--tools", own, "--show-messages", columns=200)

    left = CONTROL_SEQUENCE.sub("", written)
    assert (code, error) == (1, "")
    assert "\x1b[2J" not in written
    assert "\x1b[5m" not in written
    assert [character for character in left if not character.isprintable() and character not in "\r\n"] == []
    assert left.count("\\u001b[2J\\u001b]0;owned\\u0007\\u009b5m[bold red]hi[/]") >= 5


@pytest.mark.parametrize(
    ("code", "env"),
    [
        pytest.param("from toolrun.cli import entry; entry()", {"TERM": "dumb"}, id="a dumb terminal"),
        pytest.param(
            "import sys; sys.modules['rich'] = None; from toolrun.cli import entry; entry()",
            {},
            id="rich is not installed",
        ),
    ],
)
def test_lines_where_there_can_be_no_table(terminal, code, env):
    ended, written, error = terminal(
        "run", "examples/streams/plain.sse", "--tools", "examples/tools.py", code=code, **env
    )

    assert (ended, error) == (0, "")
    assert "\x1b" not in written
    assert written.replace("\r", "").split("\n")[:2] == [
        " 0  streaming     get_weather       call_plain_1",
        ' 0  ready         get_weather       {"city": "Oslo", "unit": "c"}',
    ]


def test_no_colours_if_the_user_wants_none(terminal):
    _, written, _ = terminal("run", "examples/streams/plain.sse", "--tools", "examples/tools.py", NO_COLOR="1")

    assert re.findall(r"\x1b\[[0-9;]*3[0-7]m", written) == []
    assert "done" in written


def test_streams_have_titles_and_tools_may_print(terminal, chat, tools, tmp_path):
    """What a tool prints stands above the table."""
    own = tools("@registry.tool\ndef say() -> str:\n    print('hello from the tool')\n    return 'said'\n")
    stream = tmp_path / "one.jsonl"
    stream.write_text(chat(("c1", "say", "{}")))
    other = tmp_path / "two.jsonl"
    other.write_text(chat(text="No calls here.", finish="stop"))

    code, written, error = terminal("run", stream, other, "--tools", own, columns=120)

    # A frame of the table may stand there already: what overwrites it begins with a carriage return of its own.
    text = CONTROL_SEQUENCE.sub("", written).replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.rstrip() for line in text.split("\n")]
    assert (code, error) == (0, "")
    assert lines[0] == str(stream)
    assert "hello from the tool" in lines
    assert lines[-6:] == ["", str(other), "Text: No calls here.", "", "no calls", ""]


COMMANDS = {
    "finalize": (["finalize", "examples/streams/cut.sse"], "\x1b[33mincomplete (no_finish)\x1b[0m"),
    "repair": (
        ["repair", "--batch", "examples/malformed.jsonl", "--tool", "examples/get_weather.json"],
        "\x1b[35mrepaired (schema_unique)\x1b[0m",
    ),
}


@pytest.mark.parametrize(("arguments", "painted"), COMMANDS.values(), ids=COMMANDS)
def test_lines_have_colours_on_a_terminal_only(terminal, process, arguments, painted):
    """The same words as in a pipe, and in a pipe nothing but words."""
    _, written, _ = terminal(*arguments, columns=200)
    plain = process(*arguments).out

    assert painted in written
    assert CONTROL_SEQUENCE.sub("", written).replace("\r", "") == plain
    assert "\x1b" not in plain
    assert painted not in terminal(*arguments, columns=200, NO_COLOR="1")[1]
    assert "\x1b" not in terminal(*arguments, columns=200, TERM="dumb")[1]
