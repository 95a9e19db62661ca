"""`toolrun repair`: one text from standard input, or many from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TOOL = "examples/get_weather.json"


def test_edits_in_place(process):
    """The raw text with marks, the edits with their places, and the arguments."""
    ended = process("repair", "--tool", TOOL, stdin=b"{'city': 'Oslo', days: \"3\",}")

    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [
        "repaired (schema_unique), 5 edits",
        "",
        '{[-\'city\'-]{+"city"+}: [-\'Oslo\'-]{+"Oslo"+}, [-days-]{+"days"+}: [-"3"-]{+3+}[-,-]}',
        "",
        "     1  quotes",
        "     9  quotes",
        "    17  bare_key",
        "    23  scalar",
        "    26  trailing_comma",
        "",
        '{"city": "Oslo", "days": 3}',
    ]


def test_untouched(process):
    ended = process("repair", "--tool", TOOL, stdin=b'{"city": "Oslo"}\n')

    assert (ended.code, ended.lines) == (0, ["untouched", "", '{"city": "Oslo"}'])


def test_a_tool_as_the_schema_command_prints_it(toolrun, tools, tmp_path, process):
    """A list of one."""
    own = tools("@registry.tool\ndef look(city: str) -> str:\n    return city\n")
    path = tmp_path / "tool.json"
    path.write_text(toolrun("schema", own, "--wire", "openai-chat").out)

    assert process("repair", "--tool", path, stdin=b"{city: 'Oslo'}").lines[-1] == '{"city": "Oslo"}'

    path.write_text("[{}, {}]")
    assert process("repair", "--tool", path)[::2] == (
        2,
        f"toolrun: {path}: one definition is needed, and there are 2\n",
    )


def test_refused(process):
    """With the code and the text for the model."""
    ended = process("repair", "--tool", TOOL, stdin=b'{"city": "Oslo", "country": "NO"}')

    assert ended.code == 1
    assert ended.lines[:2] == [
        "refused (unknown_key)",
        "Not run: the arguments have a key that the tool does not know. Use the tool's own keys instead of: country.",
    ]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("stop", {"city": "Oslo"}), ("none", {"city": "Oslo"}), ("length", None), ("weird", None)],
)
def test_the_finish_reason(process, reason, expected):
    """One that cuts refuses what one that says nothing of it lets pass."""
    ended = process("repair", "--tool", TOOL, "--finish-reason", reason, "--json", stdin=b'{"city": "Oslo"')

    assert [record["arguments"] for record in ended.objects] == [expected]
    assert ended.code == (expected is None)


def test_control_characters_are_shown(process):
    """What a model wrote is no command to the terminal."""
    ended = process("repair", "--tool", TOOL, stdin=b'{"city": "\x1b[31mOslo"}')

    assert "\x1b" not in ended.out
    assert ended.lines[2] == r'{"city": "[-\u001b-]{+\u001b+}[31mOslo"}'


def test_batch(toolrun, examples):
    """A line each; any refusal is an exit code of 1."""
    ended = toolrun("repair", "--batch", examples / "malformed.jsonl", "--tool", examples / "get_weather.json")

    assert ended.code == 1
    assert [line.split("  ")[:2] for line in ended.lines] == [
        ["python", "repaired (schema_unique)"],
        ["text-for-number", "repaired (schema_unique)"],
        ["two", "refused (several_objects)"],
        ["cut", "refused (truncated)"],
    ]


def test_batch_as_json(toolrun, tmp_path):
    """Each line may have a tool of its own; a line without an id is known by its number."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}}
    batch = tmp_path / "batch.jsonl"
    batch.write_text(json.dumps({"raw": '{"n": 1,}', "tool": tool}) + "\n\n")

    ended = toolrun("repair", "--batch", batch, "--json")

    assert ended.code == 0
    assert ended.objects == [
        {
            "id": "1",
            "arguments": {"n": 1},
            "grade": "lossless",
            "refusal": None,
            "message": "",
            "edits": [{"code": "trailing_comma", "offset": 7, "before": ",", "after": ""}],
            "raw": '{"n": 1,}',
        }
    ]


@pytest.mark.parametrize(
    ("tool", "batch", "told"),
    [
        (None, None, "--tool is needed"),
        ("missing.json", None, "missing.json: no such file or directory"),
        ("{", None, "tool.json:1: not JSON"),
        ("[]", None, "tool.json: not the definition of a tool"),
        ('{"name": "f"}', None, "tool.json: a tool's definition has a name and one of parameters"),
        ('{"name": "f", "parameters": {"type": "array"}}', None, "tool.json: tool 'f': the input schema's type"),
        (None, '{"raw": "{}"}', 'batch.jsonl:1: it has no "tool", and there is no --tool'),
        (None, '{"raw": 5}', 'batch.jsonl:1: not an object with the text "raw"'),
        (None, "\n{", "batch.jsonl:2: not JSON"),
        (None, "[" * 100_000, "batch.jsonl:1: too deep"),
    ],
)
def test_bad_input(toolrun, tmp_path, monkeypatch, tool, batch, told):
    """One line says what, and where."""
    monkeypatch.chdir(tmp_path)
    options = []
    if tool is not None:
        name = tool if tool.endswith(".json") else "tool.json"
        if name == "tool.json":
            Path(name).write_text(tool)
        options += ["--tool", name]
    if batch is not None:
        Path("batch.jsonl").write_text(batch)
        options += ["--batch", "batch.jsonl"]

    ended = toolrun("repair", *options)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"toolrun: {told}")
    assert ended.err.count("\n") == 1


def test_not_utf_8(process):
    ended = process("repair", "--tool", TOOL, stdin=b'{"city": "\xff"}')

    assert (ended.code, ended.err) == (2, "toolrun: standard input: not UTF-8 at byte 10\n")
