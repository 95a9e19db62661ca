"""The command as a process: signals, pipes that close, threads that stay, and streams that come slowly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

WAITS = 60
"""Seconds that a tool would take; every test here ends long before."""

PATIENCE = 30

# A shell that runs the tests in the background may have told its children to ignore Ctrl-C.
COMMAND = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import toolrun.cli; toolrun.cli.entry()"
)

SLOW = {
    "in the loop": (
        "@registry.tool\nasync def wait() -> None:\n    print('begun', flush=True)\n"
        f"    try:\n        await asyncio.sleep({WAITS})\n    finally:\n        print('stopped', flush=True)\n"
    ),
    "in a thread": f"@registry.tool\ndef wait() -> None:\n    print('begun', flush=True)\n    time.sleep({WAITS})\n",
    "in a thread of asyncio": (
        "@registry.tool\nasync def wait() -> None:\n    print('begun', flush=True)\n"
        f"    await asyncio.to_thread(time.sleep, {WAITS})\n"
    ),
}

needs_signals = pytest.mark.skipif(os.name == "nt", reason="Ctrl-C cannot be sent to one process there")


@pytest.fixture
def start():
    """Start the command and leave it running; it is ended after the test whatever happens."""
    started = []

    def go(*arguments: object, **options):
        child = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        started.append(child)
        return child

    yield go
    for child in started:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            pipe.close()


def read_until(child, word: bytes) -> bytes:
    """Read lines up to the one that has the word."""
    seen = b""
    for line in iter(child.stdout.readline, b""):
        seen += line
        if word in line:
            return seen
    raise AssertionError(f"{word!r} did not come; there was {seen!r} and {child.stderr.read()!r}")


@needs_signals
@pytest.mark.parametrize("where", SLOW)
def test_ctrl_c_cancels_the_tools_and_ends_at_once(start, tools, chat, tmp_path, where):
    stream = tmp_path / "stream.jsonl"
    stream.write_text(chat(("c1", "wait", "{}"), ("c2", "nope", "{}")))
    child = start("run", stream, "--tools", tools(SLOW[where]))
    read_until(child, b"begun")

    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=PATIENCE)

    lines = out.decode().splitlines()
    assert (child.returncode, err.decode()) == (130, "toolrun: interrupted\n")
    assert ("stopped" in lines) == (where == "in the loop")
    assert lines[-7:] == [
        "",
        " 0  wait  cancelled (cancelled)",
        "    The run was cancelled. It had started and may have had an effect.",
        " 1  nope  refused (unknown_tool)",
        "    Not run: there is no tool named 'nope'. Available tools: wait.",
        "",
        "2 calls: 1 cancelled, 1 refused",
    ]


@needs_signals
def test_ctrl_c_that_the_system_gives_to_another_thread(start, tools, chat, tmp_path):
    """The event loop, which has nothing to do, notices all the same."""
    stream = tmp_path / "stream.jsonl"
    stream.write_text(chat(("c1", "wait", "{}")))
    body = (
        "import signal, threading\n@registry.tool\ndef wait() -> None:\n"
        f"    signal.pthread_kill(threading.get_ident(), signal.SIGINT)\n    time.sleep({WAITS})\n"
    )

    child = start("run", stream, "--tools", tools(body))

    assert child.wait(timeout=PATIENCE) == 130
    assert child.stderr.read() == b"toolrun: interrupted\n"


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_tool_that_is_interrupted_itself(process, tools, chat, tmp_path, kind):
    """As a second Ctrl-C does it: no traceback either."""
    stream = tmp_path / "stream.jsonl"
    stream.write_text(chat(("c1", "stop", "{}"), ("c2", "stop", "{}")))

    ended = process("run", stream, "--tools", tools(f"@registry.tool\n{kind} stop():\n    raise KeyboardInterrupt\n"))

    assert (ended.code, ended.err) == (130, "toolrun: interrupted\n")


@needs_signals
def test_ctrl_c_with_json_tells_what_had_begun(start, tools, chat, tmp_path):
    """Tools print to standard error then, and the outcomes are all there."""
    stream = tmp_path / "stream.jsonl"
    stream.write_text(chat(("c1", "wait", "{}")))
    marker = tmp_path / "marker"
    os.mkfifo(marker)
    body = f"@registry.tool\nasync def wait() -> None:\n    open({str(marker)!r}, 'w').close()\n    await asyncio.sleep({WAITS})\n"
    child = start("run", stream, "--tools", tools(body), "--json")
    marker.read_bytes()  # opens when the tool opens it

    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=PATIENCE)

    (record,) = (json.loads(line) for line in out.splitlines())
    assert (child.returncode, err.decode()) == (130, "toolrun: interrupted\n")
    assert (record["status"], record["started"]) == ("cancelled", True)


@needs_signals
def test_ctrl_c_while_waiting_for_input(start, tools, chat):
    child = start("run", "-", "--tools", tools(SLOW["in the loop"]))
    child.stdin.write(chat(("c1", "wait", "{}"), finish=None).encode())
    child.stdin.flush()
    read_until(child, b"streaming")

    child.send_signal(signal.SIGINT)

    assert child.wait(timeout=PATIENCE) == 130
    assert child.stderr.read() == b"toolrun: interrupted\n"


def test_a_slow_producer_is_followed_live(start, tools, chat):
    """What has come is shown before the rest has come, and the call runs when it has."""
    child = start("run", "-", "--tools", tools("@registry.tool\ndef add(a: int) -> int:\n    return a + 1\n"))
    first, second = chat(("c1", "add", '{"a": 1}')).splitlines(keepends=True)
    child.stdin.write(first.encode())
    child.stdin.flush()

    assert read_until(child, b"streaming").split() == [b"0", b"streaming", b"add", b"c1"]

    out, err = child.communicate(second.encode(), timeout=PATIENCE)
    assert (child.returncode, err) == (0, b"")
    assert out.decode().splitlines()[-4:] == [" 0  add  done", "    2", "", "1 call: 1 succeeded"]


def test_a_tool_that_ran_out_of_time_does_not_keep_the_command(start, tools, chat, tmp_path):
    stream = tmp_path / "stream.jsonl"
    stream.write_text(chat(("c1", "wait", "{}")))
    child = start("run", stream, "--tools", tools(SLOW["in a thread"]), "--timeout", "0.1")

    out, err = child.communicate(timeout=PATIENCE)

    assert (child.returncode, err) == (1, b"")
    assert out.endswith(b"1 call: 1 timed out" + os.linesep.encode())


def test_nobody_reads_the_output_any_more(start, tools, chat):
    """`toolrun … | head -1`: no word about it."""
    child = start("run", "-", "--tools", tools("@registry.tool\ndef add(a: int) -> int:\n    return a + 1\n"))
    first, second = chat(("c1", "add", '{"a": 1}')).splitlines(keepends=True)
    child.stdin.write(first.encode())
    child.stdin.flush()
    read_until(child, b"streaming")

    child.stdout.close()
    child.stdin.write(second.encode())
    child.stdin.close()

    assert child.wait(timeout=PATIENCE) == 141
    assert child.stderr.read() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="a file that is always full")
def test_output_that_cannot_be_written(process, examples):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "toolrun.cli", "finalize", examples / "streams/plain.sse"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )

    assert (done.returncode, done.stderr) == (1, b"toolrun: standard output: no space left on device\n")


def test_an_encoding_that_lacks_a_character(examples, tools, chat, tmp_path):
    """It is written out."""
    stream = tmp_path / "stream.jsonl"
    stream.write_text(chat(("c1", "say", "{}")))
    own = tools("@registry.tool\ndef say() -> str:\n    return '\\u2713'\n")

    done = subprocess.run(
        [sys.executable, "-m", "toolrun.cli", "run", stream, "--tools", own],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert b"    \\u2713" in done.stdout.splitlines()
