"""Bytes and text to events: server-sent events, lines of JSON, one document; split anywhere, and damaged."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from toolrun import CallStatus, Diagnostic, StreamFinalizer, ToolCall, finalize

from .corpus import chunks
from .events import DONE, chat, chunk, input_delta, message_delta, message_start, piece, sse, tool_start

if TYPE_CHECKING:
    from collections.abc import Callable

ARGUMENTS = '{"city": "Zürich 🌍", "n": [1, {"a": "\\n}{"}]}'
EVENTS = chat(
    piece("", index=0, id="call_1", name="get_weather"),
    piece(ARGUMENTS[:14], index=0),
    piece(ARGUMENTS[14:21], index=0),
    piece(ARGUMENTS[21:], index=0),
)
PARSED = {"city": "Zürich 🌍", "n": [1, {"a": "\n}{"}]}


def codes(data: object) -> list[str]:
    """The codes of the diagnostics, in order."""
    finalizer = StreamFinalizer("openai-chat")
    told = [*finalizer.feed(data), *finalizer.close()]
    return [item.code for item in told if hasattr(item, "code")]


def is_whole(calls: tuple[ToolCall, ...]) -> bool:
    return [(call.id, call.name, call.raw_arguments, call.arguments, call.executable) for call in calls] == [
        ("call_1", "get_weather", ARGUMENTS, PARSED, True)
    ]


WHOLE = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {}}]}
WHOLE["choices"][0]["message"] = {"tool_calls": [piece(ARGUMENTS, id="call_1", name="get_weather")]}

FORMS = {
    "lf": sse(EVENTS),
    "crlf": sse(EVENTS, line_end="\r\n"),
    "cr": sse(EVENTS, line_end="\r"),
    "mixed line ends": sse(EVENTS[:2], line_end="\r\n") + sse(EVENTS[2:4], line_end="\r") + sse(EVENTS[4:]),
    "no space": sse(EVENTS, space=""),
    "bom": b"\xef\xbb\xbf" + sse(EVENTS),
    "done": sse([*EVENTS, DONE]),
    "no final blank line": sse(EVENTS)[:-1],
    "no final line end": sse(EVENTS)[:-2],
    "crlf, no final line end": sse(EVENTS, line_end="\r\n")[:-4],
    "comments": b": hello\n\n:\n"
    + b": keep-alive\n".join(part + b"\n\n" for part in sse(EVENTS).split(b"\n\n") if part),
    "comment inside an event": sse(EVENTS).replace(b"data:", b": ping\ndata:"),
    "ids and retries": b"retry: 3000\nid: 1\n\n" + sse(EVENTS).replace(b"data:", b"id: 7\nretry: 10\ndata:"),
    "fields without a colon": b"id\nretry\nevent\n\n" + sse(EVENTS),
    "many blank lines": b"\n\n\n" + sse(EVENTS).replace(b"\n\n", b"\n\n\n\n"),
    "event names": sse(EVENTS).replace(b"data:", b"event: message\ndata:"),
    "multi-line data": sse(EVENTS).replace(b'"choices": [', b'"choices":\ndata: ['),
    "lines of json": b"".join(json.dumps(event).encode() + b"\n" for event in EVENTS),
    "lines of json, crlf": b"".join(json.dumps(event, ensure_ascii=False).encode() + b"\r\n" for event in EVENTS),
    "lines of json, no last line end": b"\n".join(json.dumps(event).encode() for event in EVENTS),
    "lines of json with blank lines": b"\n\n".join(b"  " + json.dumps(event).encode() for event in EVENTS),
    "lines of json, done": b"".join(json.dumps(event).encode() + b"\n" for event in [*EVENTS, DONE]),
    "lines with an envelope": b"".join(
        json.dumps({"event": None, "data": event}).encode() + b"\n" for event in [*EVENTS, DONE]
    ),
    "envelopes around text": b"".join(
        json.dumps({"event": "message", "data": json.dumps(event)}).encode() + b"\n" for event in EVENTS
    ),
    "array": json.dumps(EVENTS).encode(),
    "pretty array": json.dumps(EVENTS, indent=2).encode(),
    "array, an event a line": b"[\n" + b"\n,\n".join(json.dumps(event).encode() for event in EVENTS) + b"\n]\n",
    "whole response": json.dumps(WHOLE).encode(),
    "pretty whole response": json.dumps(WHOLE, indent=4).encode(),
    "pretty whole response, crlf": json.dumps(WHOLE, indent=1).replace("\n", "\r\n").encode() + b"\r\n",
    "whole response as an event": sse([WHOLE, DONE]),
    "unescaped": "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in EVENTS).encode(),
}


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS.keys())
def test_forms(data: bytes) -> None:
    """Each way of writing the same stream gives the same call, as bytes, as text, and in any chunking."""
    assert is_whole(finalize(data))
    assert is_whole(finalize(bytearray(data)))
    assert is_whole(finalize(memoryview(data)))
    assert is_whole(finalize(data.decode()))
    assert is_whole(finalize([data[place : place + 1] for place in range(len(data))]))
    text = data.decode()
    assert is_whole(finalize([text[place : place + 1] for place in range(len(text))]))
    for seed in range(5):
        assert is_whole(finalize(chunks(data, f"{seed}", most=40)))
    assert codes(data) == []


def test_two_chunks() -> None:
    """A cut in two at any byte, inside a line end or a character too, changes nothing."""
    for data in (FORMS["crlf"], FORMS["unescaped"]):
        for at in range(len(data)):
            assert is_whole(finalize([data[:at], data[at:]])), at


def test_empty_chunks() -> None:
    """Empty pieces say nothing."""
    assert is_whole(finalize([b"", *(item for part in chunks(FORMS["lf"], "", most=9) for item in (part, b"", ""))]))


def test_surrogates_in_text() -> None:
    """Text that was split between the halves of a surrogate pair is put together."""
    event = chunk(piece('{"t": "😀"}', index=0, id="c", name="f"))
    text = f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
    halves = text.encode("utf-16-le", "surrogatepass")
    units = [halves[place : place + 2].decode("utf-16-le", "surrogatepass") for place in range(0, len(halves), 2)]
    (call,) = finalize([*units, sse([chunk(finish="stop")])])
    assert (call.raw_arguments, call.arguments) == ('{"t": "😀"}', {"t": "😀"})


def test_done_alone() -> None:
    """`[DONE]` is the terminator as an event, as data, as a line, as a JSON string and as text; nothing else is."""
    begun = chat(piece("{}", index=0, id="c", name="f"), finish=None)
    for end in (DONE, b"data: [DONE]\n\n", b"data:[DONE]\n\n", b"[DONE]\n", b'"[DONE]"\n', "data: [DONE]", b"[DONE]"):
        (call,) = finalize([*begun, end])
        assert (call.status, call.code, call.executable) == (CallStatus.OK, "finish_inferred", True), end
    for end in ("[DON", b"data: [DON]\n\n", b": [DONE]\n\n", b"event: [DONE]\n\n", b"data: [done]\n\n", b"DONE\n"):
        (call,) = finalize([*begun, end])
        assert (call.status, call.executable) == (CallStatus.INCOMPLETE, False), end


def test_event_name_gives_the_type() -> None:
    """Some servers write an event's type on the `event:` line alone."""
    events = [
        message_start(),
        tool_start(0, "toolu_1", "f"),
        input_delta(0, '{"a": 1}'),
        message_delta("tool_use"),
        {"type": "message_stop"},
    ]
    data = b"".join(
        f"event: {event['type']}\ndata: {json.dumps({k: v for k, v in event.items() if k != 'type'})}\n\n".encode()
        for event in events
    )
    (call,) = finalize(data)
    assert (call.id, call.name, call.arguments, call.executable) == ("toolu_1", "f", {"a": 1}, True)


def test_event_name_ends_with_its_event() -> None:
    """A name belongs to one event, also if that event has no data."""
    data = b"event: message_stop\n\n" + sse([chunk(piece("{}", index=0, id="c", name="f"))])
    (call,) = finalize(data, wire="openai-chat")
    assert call.code == "no_finish"


def test_data_before_bom_is_data() -> None:
    """Only the first bytes of the stream can be a byte order mark."""
    data = sse(EVENTS[:2]) + b"\xef\xbb\xbf" + sse(EVENTS[2:])
    assert codes(data) != []


# -- damage ---------------------------------------------------------------------------------

PIECES = [piece('{"n": 1', index=0, id="c", name="f"), piece("0", index=0), piece("0}", index=0)]


def damaged(line: bytes, *, form: str) -> list[bytes]:
    """A stream whose second piece is another line; without it the arguments parse, with another value."""
    first, _, last = (json.dumps(chunk(call)).encode() for call in PIECES)
    lines = [first, line, last, json.dumps(chunk(finish="tool_calls")).encode(), b"[DONE]"]
    return [b"data: " + item + b"\n\n" if form == "sse" else item + b"\n" for item in lines]


LOST = [
    b'{"choices": [{"index": 0, "delta": {"tool_calls": [{"index"',
    b'{"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "0"}}]}}]',
    b'{"choices": [}',
    b"[",
    b"  {",
    b'{"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "0\xff"}}]}}]}',
]


@pytest.mark.parametrize("form", ["sse", "lines"])
@pytest.mark.parametrize("line", LOST)
def test_lost_event(line: bytes, form: str) -> None:
    """What began like an event and cannot be read may have held arguments: no call of the stream is whole."""
    data = b"".join(damaged(line, form=form))
    for source in (data, damaged(line, form=form), chunks(data, "seed", most=5)):
        (call,) = finalize(source)
        assert (call.status, call.code, call.executable) == (CallStatus.INCOMPLETE, "stream_error", False)
        assert call.raw_arguments == '{"n": 10}'
    assert codes(data) == ["lost_event"]


@pytest.mark.parametrize("form", ["sse", "lines"])
@pytest.mark.parametrize(
    "line", [b"garbage", b"foo: bar", b"<html>502</html>", b"null", b"42", b'"text"', b"\xff\xfe", b"true"]
)
def test_noise(line: bytes, form: str) -> None:
    """What is no event is told, and costs nobody anything."""
    (call,) = finalize(damaged(line, form=form))
    assert (call.arguments, call.executable) == ({"n": 10}, True)
    assert codes(b"".join(damaged(line, form=form))) == ["undecodable_event"]


def test_line_of_a_diagnostic() -> None:
    """A diagnostic of a damaged event tells the last line of its data."""
    finalizer = StreamFinalizer("openai-chat")
    told = [*finalizer.feed(b": comment\n\ndata: {oops\n\n"), *finalizer.close()]
    assert [(item.code, item.line) for item in told if hasattr(item, "code")] == [("lost_event", 3)]


@pytest.mark.parametrize("form", ["sse", "lines"])
def test_cut_inside_the_last_event(form: str) -> None:
    """A stream that was cut inside an event is cut, not damaged: what had finished before stays finished."""
    end = b"\n\n" if form == "sse" else b"\n"
    start = b"data: " if form == "sse" else b""
    whole = [start + json.dumps(event).encode() + end for event in EVENTS]
    assert is_whole(finalize([*whole, start + b'{"choices": [], "usa']))
    (call,) = finalize([*whole[:-1], whole[-1][:-12]])
    assert (call.status, call.executable) == (CallStatus.INCOMPLETE, False)


def test_error_page() -> None:
    """An answer that is no stream at all gives no calls, and says what came."""
    finalizer = StreamFinalizer("openai-chat")
    told = [*finalizer.feed(b"<!doctype html>\n<title>502</title>\n"), *finalizer.close()]
    assert [(item.code, item.line) for item in told] == [("undecodable_event", 1), ("undecodable_event", 2)]
    assert finalizer.calls == ()


def test_error_document() -> None:
    """A pretty-printed error body is read as one document."""
    body = json.dumps({"error": {"message": "invalid api key", "code": 401}}, indent=2)
    finalizer = StreamFinalizer("openai-chat")
    told = [*finalizer.feed(body), *finalizer.close()]
    assert [(item.code, item.message) for item in told] == [("stream_error", "invalid api key")]


def test_long_line_in_small_pieces() -> None:
    """A long event in many small pieces is put together once, not once a piece."""
    arguments = json.dumps({"text": "x" * 300_000})
    data = sse(chat(piece(arguments, index=0, id="c", name="f")))
    (call,) = finalize(data[place : place + 7] for place in range(0, len(data), 7))
    assert call.arguments == {"text": "x" * 300_000}


def test_deep_payload() -> None:
    """A payload that is nested without end is damage like any other."""
    (call,) = finalize(damaged(b"[" * 100_000, form="sse"))
    assert (call.status, call.executable) == (CallStatus.INCOMPLETE, False)
    (call,) = finalize(damaged(b"[" * 100_000 + b"]" * 100_000, form="sse"))
    assert call.executable is False


LINES = {
    "sse": ["data: " + json.dumps(event) for event in EVENTS] + ["data: [DONE]"],
    "sse with blank lines": [line for event in EVENTS for line in ("data: " + json.dumps(event), "")],
    "sse with comments": [
        ": ping",
        "",
        *(line for event in EVENTS for line in ("data:" + json.dumps(event), ": ping")),
    ],
    "sse with names": [line for event in EVENTS for line in ("event: chunk", "data: " + json.dumps(event), "")],
    "ndjson": [json.dumps(event) for event in EVENTS],
}


@pytest.mark.parametrize("kind", [str, str.encode], ids=["text", "bytes"])
@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_lines_without_their_ends(lines: list[str], kind: Callable[[str], str | bytes]) -> None:
    """The `iter_lines` of HTTP clients takes line ends away."""
    assert is_whole(finalize([kind(line) for line in lines], wire="openai-chat"))


def test_pieces_that_begin_like_lines_continue_an_unfinished_event() -> None:
    """The text of a call may hold anything, and the transport may split it anywhere."""
    text = '{"a": "{}data: {} [DONE] : event: id: []"}'
    whole = "data: " + json.dumps(chunk(piece(text, index=0, id="c", name="f"), finish="stop")) + "\n\n"
    for width in (1, 2, 3, 5):
        [call] = finalize([whole[start : start + width] for start in range(0, len(whole), width)])
        assert call.raw_arguments == text


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize("after", ["id: 1", "data:", ": x", "{", "data: 5"])
def test_a_line_with_its_end_waits_for_the_blank_line(end: str, after: str) -> None:
    """A carriage return at the end of a piece ends the line, whatever the next piece begins with."""
    lines = ["data: " + json.dumps(EVENTS[0]), after, ""]
    text = "".join(line + end for line in lines)
    whole = codes(text)
    for width in (1, 3, len(lines[0]) + 1):
        finalizer = StreamFinalizer("openai-chat")
        told = [event for start in range(0, len(text), width) for event in finalizer.feed(text[start : start + width])]
        assert [event.code for event in [*told, *finalizer.close()] if isinstance(event, Diagnostic)] == whole


OVERLONG = {
    "line": [b'data: {"choices": "'],
    "line of many data lines": [b'data: {"choices": "\n'],
    "document": [b'{\n"choices": "\n'],
}


@pytest.mark.parametrize("start", OVERLONG.values(), ids=OVERLONG)
def test_an_event_without_an_end_is_lost_in_bounded_memory(start: list[bytes]) -> None:
    """What is kept of it is its head; the events after it are read."""
    finalizer = StreamFinalizer("openai-chat")
    more = b"x" * 4_000_000
    if start != OVERLONG["line"]:
        more = b"data: " * start[0].startswith(b"data") + more + b"\n"
    tracemalloc.start()
    for block in (*start, *([more] * 50)):
        finalizer.feed(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    after = b"\n\n" + sse(chat(piece("{}", index=0, id="c", name="f")))
    events = [*finalizer.feed(after), *finalizer.close()]
    assert peak < 250_000_000
    assert "lost_event" in [event.code for event in events if isinstance(event, Diagnostic)]
    assert [(call.id, call.executable) for call in finalizer.calls] in ([("c", False)], [])
