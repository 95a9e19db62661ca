"""`toolrun run`, its options and its ways to end."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from toolrun import ArgumentsReplaced, CallDelta, CallStarted
from toolrun.cli._rows import Rows


@pytest.fixture
def run(toolrun, tools, tmp_path):
    """Run one stream with tools of one's own."""

    def go(stream: str, body: str, *options: str):
        path = tmp_path / "stream.jsonl"
        path.write_text(stream)
        return toolrun("run", path, "--tools", tools(body), *options)

    return go


ADD = "@registry.tool\ndef add(a: int, b: int) -> int:\n    return a + b\n"


def test_an_object_a_call(run, chat, tmp_path):
    ended = run(chat(("c1", "add", '{"a": 1, "b": 2}')), ADD, "--json")

    assert (ended.code, ended.err) == (0, "")
    assert ended.objects == [
        {
            "stream": str(tmp_path / "stream.jsonl"),
            "position": 0,
            "id": "c1",
            "tool": "add",
            "name": "add",
            "status": "succeeded",
            "code": None,
            "value": 3,
            "attempts": 1,
            "started": True,
            "grade": "exact",
            "repairs": [],
            "raw_arguments": '{"a": 1, "b": 2}',
            "arguments": {"a": 1, "b": 2},
        }
    ]


def test_every_call_has_its_object_and_one_that_fails_decides_the_code(run, chat):
    """What the model is told is the message; the developer gets the exception too."""
    body = ADD + "@registry.tool\ndef boom() -> None:\n    raise ValueError('secret')\n"
    stream = chat(("c1", "boom", "{}"), ("c2", "add", '{"a": 1}'), ("c3", "nope", "{}"), ("c4", "add", '{"a":1,"b":1}'))

    ended = run(stream, body, "--json")

    assert ended.code == 1
    assert [(record["id"], record["status"], record["code"], record["attempts"]) for record in ended.objects] == [
        ("c1", "failed", "raised", 1),
        ("c2", "refused", "schema", 0),
        ("c3", "refused", "unknown_tool", 0),
        ("c4", "succeeded", None, 1),
    ]
    failed = ended.objects[0]
    assert failed["error"] == "ValueError: secret"
    assert "secret" not in failed["message"]
    assert "value" not in failed


def test_a_failure_for_a_reader(run, chat):
    body = (
        "from toolrun import ToolError\n"
        "@registry.tool\ndef boom() -> None:\n    raise ValueError('secret')\n"
        "@registry.tool\ndef shut() -> None:\n    raise ToolError('closed on Sundays')\n"
        "@registry.tool\ndef nothing() -> str:\n    return ''\n"
    )

    ended = run(chat(("c1", "boom", "{}"), ("c2", "shut", "{}"), ("c3", "nothing", "{}")), body)

    assert ended.code == 1
    assert ended.lines[-8:] == [
        " 0  boom  failed (raised)",
        "    ValueError: secret",
        " 1  shut  failed (raised)",
        "    closed on Sundays",
        " 2  nothing  done",
        "    (nothing)",
        "",
        "3 calls: 2 failed, 1 succeeded",
    ]


def test_timeout(run, chat):
    ended = run(
        chat(("c1", "wait", "{}")),
        "@registry.tool\nasync def wait() -> None:\n    await asyncio.sleep(60)\n",
        "--timeout",
        "0.05",
        "--json",
    )

    assert (ended.code, ended.objects[0]["status"], ended.objects[0]["code"]) == (1, "timed_out", "deadline")


def test_max_concurrency(run, chat):
    """One at a time: the first call is done before the second begins."""
    body = "@registry.tool\nasync def wait() -> None:\n    await asyncio.sleep(0)\n"

    ended = run(chat(("c1", "wait", "{}"), ("c2", "wait", "{}")), body, "--max-concurrency", "1")

    order = [tuple(line.split()[:2]) for line in ended.lines if line.split()[1:2] in (["running"], ["done"])]
    assert order == [("0", "running"), ("0", "done"), ("1", "running"), ("1", "done")]


@pytest.mark.parametrize(("end", "code", "status"), [("auto", 1, "refused"), ("normal", 0, "succeeded")])
def test_end(run, chat, end, code, status):
    ended = run(chat(("c1", "add", '{"a":1,"b":1}'), finish=None), ADD, "--end", end, "--json")

    assert (ended.code, ended.objects[0]["status"]) == (code, status)


def test_wire(run, chat):
    """A stream without a mark of its protocol can be read once it is named."""
    ended = run(chat(("c1", "add", '{"a":1,"b":1}')), ADD, "--wire", "openai-chat", "--json")
    wrong = run(chat(("c1", "add", '{"a":1,"b":1}')), ADD, "--wire", "anthropic-messages", "--json")

    assert (ended.code, ended.objects[0]["value"]) == (0, 2)
    assert (wrong.code, wrong.out) == (2, "")


def test_messages(run, chat):
    stream = chat(("c1", "add", '{"a":1,"b":1}'))
    expected = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"b":1}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
    ]

    as_objects = run(stream, ADD, "--show-messages", "--json")
    for_a_reader = run(stream, ADD, "--show-messages")

    assert as_objects.objects[1]["messages"] == expected
    assert json.loads(for_a_reader.out.partition("1 call: 1 succeeded\n")[2]) == expected


def test_what_tools_print_does_not_get_into_the_json(run, chat):
    """On import, in the loop and in a thread."""
    body = (
        "print('imported')\n"
        "@registry.tool\ndef sync() -> int:\n    print('sync')\n    return 1\n"
        "@registry.tool\nasync def loop() -> int:\n    print('loop')\n    return 2\n"
    )

    ended = run(chat(("c1", "sync", "{}"), ("c2", "loop", "{}")), body, "--json")

    assert [record["value"] for record in ended.objects] == [1, 2]
    assert sorted(ended.err.split()) == ["imported", "loop", "sync"]


def test_values_are_written_as_the_model_is_told(run, chat):
    body = (
        "import datetime, decimal\n"
        "@registry.tool\ndef data() -> object:\n"
        "    return {'when': datetime.date(2026, 1, 2), 'n': decimal.Decimal('1.50'), 'f': float('nan')}\n"
    )

    ended = run(chat(("c1", "data", "{}")), body, "--json")

    assert ended.objects[0]["value"] == {"when": "2026-01-02", "n": "1.50", "f": None}


def test_a_name_after_the_colon(toolrun, tools, chat, tmp_path):
    stream = tmp_path / "stream.jsonl"
    stream.write_text(chat(("c1", "two", "{}")))
    own = tools("other = ToolRegistry()\n@other.tool\ndef two() -> int:\n    return 2\n")

    ended = toolrun("run", stream, "--tools", f"{own}:other", "--json")

    assert (ended.code, ended.objects[0]["value"]) == (0, 2)


def test_tools_may_import_their_neighbours_and_use_hints_as_text(run, chat, tmp_path):
    (tmp_path / "neighbour_of_tools.py").write_text("from enum import Enum\nclass Unit(Enum):\n    C = 'c'\n")
    body = (
        "from neighbour_of_tools import Unit\n@registry.tool\ndef named(unit: 'Unit') -> str:\n    return unit.name\n"
    )

    ended = run(chat(("c1", "named", '{"unit": "c"}')), body, "--json")

    assert (ended.code, ended.objects[0]["value"]) == (0, "C")


def test_calls_of_the_provider_are_shown_and_not_judged(run):
    stream = (
        '{"type":"message_start","message":{"id":"m","content":[]}}\n'
        '{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s1","name":"add","input":{"q":"x"}}}\n'
        '{"type":"content_block_stop","index":0}\n'
        '{"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n'
        '{"type":"message_stop"}\n'
    )

    as_objects = run(stream, ADD, "--json")
    for_a_reader = run(stream, ADD)

    assert (as_objects.code, for_a_reader.code) == (0, 0)
    assert [(record["status"], record["arguments"]) for record in as_objects.objects] == [
        ("provider_executed", {"q": "x"})
    ]
    assert for_a_reader.lines[-3:] == [" 0  add  run by the provider", "", "1 call: 1 run by the provider"]


def test_a_repair_that_is_not_accepted_is_told(run, chat):
    body = (
        ADD + "from toolrun import Repaired\n"
        "@registry.repair(on='parse')\ndef guess(request):\n    return Repaired(text='{')\n"
        "@registry.repair(on='parse')\ndef stop(request):\n    raise KeyError('gone')\n"
    )

    ended = run(chat(("c1", "add", "{'a' 1}")), body)

    told = [line.strip() for line in ended.lines if line.startswith("    not repaired by ")]
    assert ended.code == 1
    assert told[0].startswith("not repaired by guess: Not run: the arguments end before they are complete")
    assert told[1] == "not repaired by stop: the hook raised KeyError: 'gone'"


def test_a_rename_is_told(run, chat):
    body = (
        ADD + "from toolrun import Renamed\n"
        "@registry.repair(on='unknown_tool')\ndef alias(request):\n    return Renamed('add')\n"
    )
    stream = chat(("c1", "plus", '{"a":1,"b":1}'))

    for_a_reader = run(stream, body)
    (record,) = run(stream, body, "--json").objects

    assert "    repaired by alias (hook): plus is add" in for_a_reader.lines
    assert (record["name"], record["tool"], record["repairs"][0]["renamed_to"]) == ("plus", "add", "add")


def test_many_oddities_are_cut_short(run, chat):
    """Five are told, and how many there are besides."""
    ended = run("keep-alive\n" * 9 + chat(finish="stop"), ADD)

    notes = [line for line in ended.lines if line.startswith("Note: ")]
    assert ended.code == 0
    assert notes == [f"Note: undecodable_event, line {number}: not JSON: keep-alive" for number in range(1, 6)]
    assert ended.lines[-2:] == ["and 4 other notes", "no calls"]


def test_hostile_text_is_printable_wherever_it_comes_from(run, chat):
    """Ids, names, arguments, the answer, results and exceptions."""
    evil = "\x1b]0;owned\x07\x9b31m\u202e"
    body = (
        f"EVIL = {evil!r}\n"
        "@registry.tool\ndef say() -> str:\n    return EVIL\n"
        "@registry.tool\ndef boom() -> str:\n    raise ValueError(EVIL)\n"
    )
    stream = chat((evil, "say", "{}"), ("c2", "boom", "{}"), ("c3", evil, f'{{"a": "{evil}"}}'), text=evil)

    ended = run(stream, body, "--show-messages")

    assert all(line.isprintable() for line in ended.lines)
    assert ended.out.count("\\u001b]0;owned\\u0007\\u009b31m\\u202e") >= 6


def test_ctrl_c(run, chat):
    """What had been shown stays; the call that was running is told of."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    body = (
        "import signal\n"
        "@registry.tool\nasync def stop() -> None:\n    signal.raise_signal(signal.SIGINT)\n    await asyncio.sleep(60)\n"
    )
    try:
        ended = run(chat(("c1", "stop", "{}")), body)
    finally:
        signal.signal(signal.SIGINT, handler)

    assert (ended.code, ended.err) == (130, "toolrun: interrupted\n")
    assert ended.lines[-1] == "1 call: 1 cancelled"


def test_nobody_reads_the_output(run, chat, monkeypatch):
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        ended = run(chat(("c1", "add", '{"a":1,"b":1}')), ADD)

    assert (ended.code, ended.err) == (141, "")


def test_a_final_copy_replaces_the_arguments_that_are_shown():
    rows = Rows()
    rows.apply(CallStarted(position=0, id="c1", name="add"))
    rows.apply(CallDelta(position=0, text='{"a": 1'))

    row = rows.apply(ArgumentsReplaced(position=0, before='{"a": 1', after='{"a": 12}'))

    assert row is not None
    assert (row.arguments, row.size, row.state) == ('{"a": 12}', 9, "streaming")


def test_long_arguments_are_counted_and_not_kept():
    rows = Rows()
    rows.apply(CallStarted(position=0, id="c1", name="add"))
    for _ in range(500):
        row = rows.apply(CallDelta(position=0, text="1234567890"))

    assert row is not None
    assert (len(row.arguments), row.size) == (2000, 5000)


def test_version(toolrun):
    ended = toolrun("--version")

    assert ended.code == 0
    assert ended.out.startswith("toolrun 0.")
