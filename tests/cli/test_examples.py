"""Every example does what its README says."""

from __future__ import annotations

import re

import pytest

NOT_FINISHED = "Not run: the response ended before the call was finished. Send the whole call again."


def test_plain(toolrun, examples):
    ended = toolrun("run", examples / "streams/plain.sse", "--tools", examples / "tools.py")

    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [
        " 0  streaming     get_weather       call_plain_1",
        ' 0  ready         get_weather       {"city": "Oslo", "unit": "c"}',
        ' 0  running       get_weather       {"city": "Oslo", "unit": "c"}',
        ' 0  done          get_weather       {"city":"Oslo","degrees":18.5,"unit":"c"}',
        "",
        " 0  get_weather  done",
        '    {"city":"Oslo","degrees":18.5,"unit":"c"}',
        "",
        "1 call: 1 succeeded",
    ]


def test_parallel(toolrun, examples):
    """Both calls run before either is done, and the results come in call order."""
    ended = toolrun("run", examples / "streams/parallel.sse", "--tools", examples / "tools.py")

    assert (ended.code, ended.err) == (0, "")
    states = [tuple(line.split()[:2]) for line in ended.lines[:8]]
    assert states[4:6] == [("0", "running"), ("1", "running")]
    assert sorted(states[6:]) == [("0", "done"), ("1", "done")]
    assert ended.lines[8:] == [
        "",
        "Text: I'll look up the weather and read the file.",
        "",
        " 0  get_weather  done",
        '    {"city":"Lisbon","degrees":76.1,"unit":"f"}',
        " 1  read_lines  done",
        "    # Examples",
        "",
        "2 calls: 2 succeeded",
    ]


def test_repaired(toolrun, examples):
    """One by the hook in the file, one by the built-in chain; both are on the record."""
    ended = toolrun("run", examples / "streams/repaired.sse", "--tools", examples / "tools.py", "--json")

    assert (ended.code, ended.err) == (0, "")
    by_hook, by_chain = ended.objects
    assert by_hook["raw_arguments"] == '{"a":[1,2,3]}</a>\n<b>[2,3,4]}'
    assert by_hook["arguments"] == {"a": [1, 2, 3], "b": [2, 3, 4]}
    assert by_hook["value"] == [2, 3]
    assert by_hook["grade"] == "hook"
    assert by_hook["repairs"] == [
        {
            "hook": "early_root_close",
            "fault": "parse",
            "accepted": True,
            "grade": "hook",
            "edits": [],
            "renamed_to": None,
            "refusal": None,
            "note": "the root was closed early, and markup followed",
        }
    ]
    assert by_chain["arguments"] == {"title": "Shared", "text": "2, 3"}
    assert by_chain["grade"] == "lossless"
    assert [(repair["hook"], repair["accepted"], repair["edits"]) for repair in by_chain["repairs"]] == [
        ("trailing_comma", True, [{"code": "trailing_comma", "offset": 34, "before": ",", "after": ""}])
    ]


def test_repaired_for_a_reader(toolrun, examples):
    ended = toolrun("run", examples / "streams/repaired.sse", "--tools", examples / "tools.py")

    assert ended.lines[-8:] == [
        " 0  in_both  done",
        "    repaired by early_root_close (hook): the root was closed early, and markup followed",
        "    [2,3]",
        " 1  save_note  done",
        "    repaired by trailing_comma (lossless), 1 edit",
        "    saved 'Shared' for call_repaired_2",
        "",
        "2 calls: 2 succeeded",
    ]
    states = {tuple(line.split()[:2]) for line in ended.lines if line.startswith((" 0", " 1"))}
    assert {("0", "malformed"), ("1", "malformed"), ("0", "repaired"), ("1", "repaired")} <= states


def test_cut(toolrun, examples):
    """Nothing runs, the call that looks whole included; a cut is no bad input."""
    ended = toolrun("run", examples / "streams/cut.sse", "--tools", examples / "tools.py")

    assert (ended.code, ended.err) == (1, "")
    assert "running" not in ended.out
    assert ended.lines[-8:-3] == [
        " 0  save_note  refused (no_finish)",
        f"    {NOT_FINISHED}",
        " 1  get_weather  refused (no_finish)",
        f"    {NOT_FINISHED}",
        "",
    ]
    assert ended.lines[-3].startswith("Note: undecodable_event, line 13: not JSON: {")
    assert ended.lines[-2:] == ["", "2 calls: 2 refused"]


def test_retried(toolrun, examples):
    ended = toolrun("run", examples / "streams/retried.jsonl", "--tools", examples / "tools.py")

    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [
        " 0  streaming     exchange_rate     toolu_retried_1",
        ' 0  ready         exchange_rate     {"base": "EUR", "quote": "NOK"}',
        ' 0  running       exchange_rate     {"base": "EUR", "quote": "NOK"}',
        " 0  retrying 2    exchange_rate     ConnectionError: the rate service does not answer",
        " 0  retrying 3    exchange_rate     ConnectionError: the rate service does not answer",
        " 0  done          exchange_rate     11.42",
        "",
        " 0  exchange_rate  done after 3 attempts",
        "    11.42",
        "",
        "1 call: 1 succeeded",
    ]


@pytest.mark.parametrize(
    ("name", "code"),
    [("plain.sse", 0), ("parallel.sse", 0), ("repaired.sse", 0), ("cut.sse", 1), ("retried.jsonl", 0)],
)
def test_as_a_process(process, examples, name, code):
    ended = process("run", f"examples/streams/{name}", "--tools", "examples/tools.py", "--json")

    assert (ended.code, ended.err) == (code, "")
    assert {record["status"] for record in ended.objects} == {"succeeded" if code == 0 else "refused"}


def test_every_stream_has_its_command_in_the_readme(examples):
    """The commands are those that `test_as_a_process` runs."""
    text = (examples / "README.md").read_text(encoding="utf-8")

    commands = re.findall(r"`uv run toolrun run (\S+) --tools examples/tools.py`", text)
    assert sorted(commands) == sorted(f"examples/streams/{file.name}" for file in (examples / "streams").iterdir())
