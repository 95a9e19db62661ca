"""Bad input: exit code 2, one line on standard error, no traceback, and nothing runs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from toolrun.cli import main

EVENT = '{"choices":[{"index":0,"delta":{"content":"a"}}]}'
FINISH = '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
GARBAGE = bytes(range(256)) * 40


def one_line(ended) -> str:
    """The one line, without the command's name."""
    assert ended.code == 2
    assert ended.err.startswith("toolrun: ")
    assert ended.err.endswith("\n")
    assert ended.err.count("\n") == 1
    return ended.err.removeprefix("toolrun: ").rstrip("\n")


@pytest.fixture(params=["run", "finalize"])
def read(request, toolrun, examples, tmp_path):
    """Write a file and read it with either command."""

    def go(content: bytes | str, *options: str):
        path = tmp_path / "stream"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        tools = ("--tools", examples / "tools.py") if request.param == "run" else ()
        ended = toolrun(request.param, path, *tools, *options)
        return one_line(ended).replace(str(path), "FILE"), ended.out

    return go


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param("", "FILE: no events: it is empty", id="empty"),
        pytest.param(" \n\r\n\n", "FILE: no events: it is empty", id="blank"),
        pytest.param("Dear diary,\nit rained.\n", "FILE:1: no events: not JSON: Dear diary,", id="text"),
        pytest.param(
            '{"a": 1}\n', "FILE: no events: no wire knows this event: {'a': 1}", id="JSON of nobody's protocol"
        ),
        pytest.param(
            '{\n  "choices": [\n    {"message": {"content": "a" "b"}}\n  ]\n}\n',
            "FILE:3: no events: not JSON: Expecting ',' delimiter",
            id="one document, broken in its third line",
        ),
        pytest.param(": ping\n\n: ping\n\n", "FILE: no events of a provider that is known", id="comments alone"),
        pytest.param('data: {"choi', 'FILE:1: no events: not JSON: {"choi', id="cut in its first event"),
        pytest.param(
            f'{EVENT}\n{{"choices":[{{"del\n{FINISH}\n',
            'FILE:2: not JSON: {"choices":[{"del',
            id="a broken line in the middle",
        ),
        pytest.param(
            f'{EVENT}\r\n\r\n{{"choices":[{{"del\r\n{FINISH}\r\n',
            'FILE:3: not JSON: {"choices":[{"del',
            id="a broken line, lines that end in CRLF",
        ),
    ],
)
def test_no_stream(read, content, line):
    assert read(content) == (line, "")


def test_binary_garbage(read):
    """What is quoted of it is printable."""
    line, out = read(GARBAGE)

    assert line.startswith("FILE:")
    assert "no events: not JSON: " in line
    assert line.isprintable()
    assert out == ""


def test_a_named_wire_that_finds_nothing_of_its_own(read):
    assert read('{"a": 1}\n', "--wire", "openai-chat") == ("FILE: no events of a provider that is known", "")


def test_an_error_instead_of_a_response(read):
    line = read('{"error": {"message": "rate limited"}}', "--wire", "openai-chat")

    assert line == ("FILE: no events: rate limited", "")


def test_a_missing_file_stops_everything_before_anything_runs(toolrun, tools, chat, tmp_path):
    """The stream before it is not run."""
    ran = tmp_path / "ran"
    own = tools(f"@registry.tool\ndef mark() -> None:\n    open({str(ran)!r}, 'w').close()\n")
    good = tmp_path / "good.jsonl"
    good.write_text(chat(("c1", "mark", "{}")))
    missing = tmp_path / "missing.sse"

    ended = toolrun("run", good, missing, "--tools", own)

    assert one_line(ended) == f"{missing}: no such file or directory"
    assert (ended.out, ran.exists()) == ("", False)


@pytest.mark.parametrize("form", ["data: {}\n\n", "{}\n"], ids=["server-sent events", "lines of JSON"])
def test_a_broken_line_is_told_and_what_could_be_read_is_shown(toolrun, tools, chat, tmp_path, form):
    """The call is not run: what is broken held a piece of it, and without that piece it looks whole."""
    begin, finish = chat(("c1", "pay", '{"cents": 1')).splitlines()
    middle, end = (
        json.dumps(
            {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}}]}
        )
        for text in ("00", "}")
    )
    stream = tmp_path / "stream"
    stream.write_text("".join(form.format(line) for line in (begin, middle[:-4], end, finish)))
    ran = tmp_path / "ran"
    own = tools(f"@registry.tool\ndef pay(cents: int) -> None:\n    open({str(ran)!r}, 'w').close()\n")

    ended = toolrun("run", stream, "--tools", own, "--json")

    assert not ran.exists()
    assert "not JSON: " in one_line(ended)
    assert [(record["status"], record["code"]) for record in ended.objects] == [("refused", "stream_error")]


def test_a_bad_stream_does_not_hide_the_others(toolrun, examples, tmp_path):
    empty = tmp_path / "empty.sse"
    empty.touch()

    ended = toolrun("finalize", empty, examples / "streams/plain.sse", "--json")

    assert one_line(ended) == f"{empty}: no events: it is empty"
    assert [record["id"] for record in ended.objects] == ["call_plain_1"]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param('{"choices":[{"index":0,"del', id="cut in a line"),
        pytest.param("keep-alive\n" + FINISH, id="a line of a log"),
    ],
)
def test_what_is_no_bad_input(toolrun, tmp_path, rest):
    stream = tmp_path / "stream.jsonl"
    stream.write_text(f"{EVENT}\n{rest}\n")

    ended = toolrun("finalize", stream)

    assert (ended.code, ended.out, ended.err) == (0, "no calls\n", "")


def test_a_directory(toolrun, tmp_path):
    assert one_line(toolrun("finalize", tmp_path)) == f"{tmp_path}: is a directory; name the files in it"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="for root every file is readable")
def test_a_file_without_permission(toolrun, tmp_path):
    path = tmp_path / "secret.sse"
    path.write_text(EVENT)
    path.chmod(0)

    assert one_line(toolrun("finalize", path)) == f"{path}: permission denied"


@pytest.mark.skipif(sys.platform != "linux", reason="a file that opens and cannot be read")
def test_a_file_that_fails_while_it_is_read(toolrun, examples):
    run = toolrun("run", "/proc/self/mem", "--tools", examples / "tools.py")
    finalized = toolrun("finalize", "/proc/self/mem")

    assert one_line(run) == one_line(finalized) == "/proc/self/mem: input/output error"


def test_a_path_with_a_nul(toolrun, examples):
    assert "null" in one_line(toolrun("finalize", "a\0b"))
    assert "null" in one_line(toolrun("run", examples / "streams/plain.sse", "--tools", "a\0b.py"))


def test_a_hostile_file_name_is_written_out(toolrun):
    assert one_line(toolrun("finalize", "no\x1b[31m\nsuch")) == "no\\u001b[31m\\nsuch: no such file or directory"


def test_standard_input_twice(toolrun):
    assert one_line(toolrun("finalize", "-", "-")) == "standard input (-) can be read once only"


def test_standard_input_closed(toolrun, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)

    assert one_line(toolrun("finalize", "-")) == "standard input: it is closed"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: COMMAND (see toolrun --help)"),
        (["fly"], "invalid choice: 'fly'"),
        (["run", "x.sse"], "the following arguments are required: --tools (see toolrun run --help)"),
        (["finalize"], "name streams, or one --batch file (see toolrun finalize --help)"),
        (["finalize", "x", "--nope"], "unrecognized arguments: --nope"),
        (
            ["finalize", "x", "--wire", "carrier-pigeon"],
            "no wire named 'carrier-pigeon'; known: auto, anthropic-messages",
        ),
        (["finalize", "x", "--end", "soon"], "invalid choice: 'soon'"),
        (["run", "x", "--tools", "t.py", "--timeout", "0"], "'0' is not a number of seconds above 0"),
        (["run", "x", "--tools", "t.py", "--timeout", "nan"], "'nan' is not a number of seconds above 0"),
        (["run", "x", "--tools", "t.py", "--timeout", "soon"], "'soon' is not a number of seconds above 0"),
        (["run", "x", "--tools", "t.py", "--max-concurrency", "0"], "'0' is not a whole number above 0"),
        (["run", "x", "--tools", "t.py", "--max-concurrency", "1.5"], "'1.5' is not a whole number above 0"),
    ],
)
def test_arguments_that_are_not_taken(toolrun, arguments, said):
    ended = toolrun(*arguments)

    assert said in one_line(ended)
    assert ended.out == ""


@pytest.mark.parametrize(
    ("body", "spec", "line"),
    [
        pytest.param(None, "FILE", "FILE: no such file or directory", id="missing"),
        pytest.param("def broken(:", "FILE", "FILE:4: SyntaxError: invalid syntax", id="syntax"),
        pytest.param(
            "registry.nope",
            "FILE",
            "FILE:4: raised on import: AttributeError: 'ToolRegistry' object has no attribute 'nope'",
            id="raises",
        ),
        pytest.param(
            "def helper():\n    raise ValueError('two\\nlines')\n\nhelper()",
            "FILE",
            "FILE:5: raised on import: ValueError: two\\nlines",
            id="raises in a function",
        ),
        pytest.param("raise SystemExit(3)", "FILE", "FILE:4: raised on import: SystemExit: 3", id="exits"),
        pytest.param(
            "@registry.tool\ndef act(x: object()): ...",
            "FILE",
            None,
            id="a tool that cannot be described",
        ),
        pytest.param(
            "other = ToolRegistry()",
            "FILE:nothing",
            "FILE: there is no 'nothing'; registries in it: other, registry (name one as FILE:NAME)",
            id="no such name",
        ),
        pytest.param(
            "del registry",
            "FILE",
            "FILE: there is no 'registry'; registries in it: none (name one as FILE:NAME)",
            id="no registry",
        ),
        pytest.param(
            "registry = {}",
            "FILE",
            "FILE: 'registry' is of type dict, not a ToolRegistry; registries in it: none (name one as FILE:NAME)",
            id="not a registry",
        ),
    ],
)
def test_files_of_tools_that_cannot_be_used(toolrun, tools, examples, tmp_path, body, spec, line):
    path = tmp_path / "own_tools.py" if body is None else tools(body)

    ended = toolrun("run", examples / "streams/plain.sse", "--tools", spec.replace("FILE", str(path)))

    said = one_line(ended).replace(str(path), "FILE")
    assert said == line if line else said.startswith("FILE:4: raised on import: RegistrationError: ")
    assert ended.out == ""


def test_a_directory_of_tools(toolrun, examples, tmp_path):
    ended = toolrun("run", examples / "streams/plain.sse", "--tools", tmp_path)

    assert one_line(ended).startswith(f"{tmp_path}: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["finalize", "no-such-file.sse"],
        ["finalize", "-"],
        ["run", "examples/streams/plain.sse", "--tools", "no-such-file.py"],
        ["fly"],
    ],
)
def test_as_a_process(process, arguments):
    ended = process(*arguments, stdin=GARBAGE)

    assert one_line(ended)
    assert ended.out == ""


def test_help_tells_the_rule(capsys, monkeypatch):
    """Help is no bad input, and what is bad input stands in it."""
    monkeypatch.setenv("COLUMNS", "80")

    codes = [main(arguments) for arguments in (["--help"], ["run", "--help"], ["finalize", "--help"])]

    out = capsys.readouterr().out
    assert codes == [0, 0, 0]
    assert " ".join(out.split()).count("is not JSON, with other lines after it") == 2
    assert "toolrun run examples/streams/parallel.sse --tools examples/tools.py" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_path_is_left_as_it_was(toolrun, tools, examples):
    """The folder of the tools is on the path only while they are used."""
    path = tools("import sys\nassert sys.path[0] == __import__('os').path.dirname(__file__)")
    before = list(sys.path)

    assert toolrun("run", examples / "streams/cut.sse", "--tools", path).code == 1
    assert sys.path == before
    assert Path(path).parent not in map(Path, sys.path)
