"""`toolrun finalize`."""

from __future__ import annotations

import io
import sys

import pytest


@pytest.fixture
def stream(tmp_path):
    def write(text: str):
        path = tmp_path / "stream.jsonl"
        path.write_text(text)
        return path

    return write


def test_a_line_a_call(toolrun, stream, chat):
    path = stream(
        chat(
            ("c1", "add", '{"a": 1}'),
            ("c2", "write_file", '{"path": "a.md",}'),
            ("call_three", "", "{}"),
        )
    )

    ended = toolrun("finalize", path)

    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [
        '0  ok                      add         c1          {"a": 1}',
        '1  parse_error (syntax)    write_file  c2          {"path": "a.md",}  <- trailing comma, line 1, column 17',
        "2  parse_error (nameless)  (no name)   call_three  {}",
    ]


def test_json_has_every_field(toolrun, stream, chat):
    path = stream(chat(("c1", "add", '{"a": 1}'), ("c2", "add", '{"a":\n1,}')))

    good, bad = toolrun("finalize", path, "--json").objects

    assert good == {
        "stream": str(path),
        "position": 0,
        "id": "c1",
        "name": "add",
        "status": "ok",
        "code": None,
        "executable": True,
        "provider_executed": False,
        "raw_arguments": '{"a": 1}',
        "arguments": {"a": 1},
        "text": None,
        "finish_reason": "tool_calls",
        "choice": 0,
        "index": 0,
    }
    assert bad["status"] == "parse_error"
    assert bad["arguments"] is None
    assert bad["issue"] == {"code": "syntax", "message": "trailing comma", "offset": 8, "line": 2, "column": 3}


@pytest.mark.parametrize(
    ("end", "finish", "status", "code"),
    [
        ("auto", None, "incomplete", "no_finish"),
        ("eof", None, "incomplete", "no_finish"),
        ("normal", None, "ok", "finish_inferred"),
        ("error", None, "incomplete", "stream_error"),
        ("auto", "length", "ok", "held"),
    ],
)
def test_how_it_ended(toolrun, stream, chat, end, finish, status, code):
    path = stream(chat(("c1", "add", "{}"), finish=finish))

    (call,) = toolrun("finalize", path, "--end", end, "--json").objects

    assert (call["status"], call["code"]) == (status, code)


def test_calls_that_never_run_here_say_why(toolrun, stream):
    """One that the provider ran, and one of a second choice."""
    path = stream(
        '{"type":"message_start","message":{"id":"m","content":[]}}\n'
        '{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s1","name":"search","input":{}}}\n'
        '{"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n'
    )
    assert toolrun("finalize", path).lines == ["0  ok (provider)  search  s1"]

    path = stream(
        '{"choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]}}]}\n'
        '{"choices":[{"index":1,"delta":{},"finish_reason":"tool_calls"}]}\n'
    )
    assert toolrun("finalize", path).lines == ["0  ok (choice 1)  f  c1  {}"]


def test_several_streams_have_headings(toolrun, examples):
    plain, cut = examples / "streams/plain.sse", examples / "streams/cut.sse"

    ended = toolrun("finalize", plain, cut)

    assert ended.code == 0
    assert ended.lines == [
        str(plain),
        '0  ok  get_weather  call_plain_1  {"city": "Oslo", "unit": "c"}',
        str(cut),
        '0  incomplete (no_finish)  save_note    call_cut_1  {"title": "Trip", "text": "Pack for 18 degrees."}',
        '1  incomplete (no_finish)  get_weather  call_cut_2  {"city": "Lis',
    ]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param('data: {"choices":[{C}]}\n\ndata: [DONE]\n\n', id="server-sent events"),
        pytest.param('{"choices":[{C}]}\n', id="a line"),
        pytest.param('{"event": null, "data": {"choices":[{C}]}}\n{"event": null, "data": "[DONE]"}\n', id="envelopes"),
        pytest.param('{\n "choices": [\n{C}\n]\n}', id="a document over several lines"),
        pytest.param('\ufeffdata: {"choices":[{C}]}\r\n\r\n', id="a byte order mark and CRLF"),
    ],
)
def test_every_framing_and_standard_input(toolrun, monkeypatch, content):
    call = '{"id":"c1","function":{"name":"add","arguments":"{}"}}'
    text = content.replace("{C}", f'{{"index":0,"delta":{{"tool_calls":[{call}]}},"finish_reason":"stop"}}')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    (call,) = toolrun("finalize", "-", "--json").objects

    assert (call["stream"], call["id"], call["status"]) == ("-", "c1", "ok")


def test_long_arguments_are_cut_for_readers_alone(toolrun, stream, chat):
    long = f'{{"text": "{"x" * 400}"}}'
    path = stream(chat(("c1", "add", long)))

    (line,) = toolrun("finalize", path).lines
    (call,) = toolrun("finalize", path, "--json").objects

    assert line == f"0  ok  add  c1  {long[:159]}…"
    assert call["raw_arguments"] == long


def test_text_of_a_stream_is_no_command_to_a_terminal(toolrun, stream, chat):
    """Escapes, C1 controls, overrides of writing direction and lone surrogates are written out; JSON keeps them."""
    path = stream(chat(("id\x1b[31m", "na\x9bme", '{"a": "\u202e\ud800\x07\t"}')))

    line = toolrun("finalize", path).lines[0]
    ended = toolrun("finalize", path, "--json")

    assert line.startswith(
        '0  parse_error (lone_surrogate)  na\\u009bme  id\\u001b[31m  {"a": "\\u202e\\ud800\\u0007\\t"}'
    )
    assert line.isprintable()
    assert ended.out.isascii()
    assert ended.objects[0]["raw_arguments"] == '{"a": "\u202e\ud800\x07\t"}'
