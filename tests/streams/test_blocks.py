"""Finish reasons, Anthropic's blocks, and the calls that are no ordinary ones: the provider's own and free text."""

from __future__ import annotations

from typing import Any

import pytest

from toolrun import ArgumentsReplaced, CallDelta, StreamFinalizer, finalize

from .events import (
    DONE,
    MESSAGE_STOP,
    block_stop,
    chat,
    chunk,
    input_delta,
    message_delta,
    message_start,
    messages,
    piece,
    tool_block,
    tool_start,
)
from .reading import calls_of, runs, verdicts

# -- finish reasons -------------------------------------------------------------------------


def test_finish_in_the_chunk_of_the_last_piece() -> None:
    """A chunk's pieces are merged before its finish reason counts, whatever stands first in it."""
    choice = {"finish_reason": "tool_calls", "index": 0, "delta": {"tool_calls": [piece("1}", index=0)]}}
    events = [chunk(piece('{"a":', index=0, id="c", name="f")), {"choices": [choice]}]
    assert runs(events) == [("f", {"a": 1})]


def test_pieces_after_the_finish() -> None:
    """Calls are finalized when the stream closes, not at the first finish reason."""
    events = [
        chunk(piece('{"a":', index=0, id="c", name="f")),
        chunk(finish="tool_calls"),
        chunk(piece("1}", index=0)),
        chunk(piece("{}", index=1, id="d", name="g")),
        chunk(finish="tool_calls"),
        {"choices": [], "usage": {"total_tokens": 9}},
        DONE,
    ]
    assert runs(events) == [("f", {"a": 1}), ("g", {})]


@pytest.mark.parametrize("end", ["eof", "error"])
def test_call_that_begins_after_the_finish(end: Any) -> None:
    """A finish proves what came before it: a call that begins after it and is cut, before its first byte too, is cut."""
    chunks = [*chat(piece("{}", index=0, id="c", name="f")), chunk(piece("", index=1, id="d", name="wipe"))]
    assert runs(chunks, end=end) == [("f", {})]
    assert runs([*chunks, DONE], end=end) == [("f", {}), ("wipe", {})]
    assert runs([*chunks, chunk(finish="tool_calls")], end=end) == [("f", {}), ("wipe", {})]
    blocks = [
        *messages(tool_block(0, "t", "f", "{}"), reason=None),
        message_delta("tool_use"),
        tool_start(1, "u", "wipe"),
    ]
    assert runs(blocks, end=end) == [("f", {})]
    assert runs([*blocks, MESSAGE_STOP], end=end) == [("f", {}), ("wipe", {})]


def test_call_behind_a_finish_before_another_message() -> None:
    """The finish of the message after it proves nothing about it either."""
    late = [tool_start(1, "b", "g"), input_delta(1, "{}")]
    first = [message_start("m1"), *tool_block(0, "a", "f", "{}"), message_delta("tool_use"), *late]
    second = [message_start("m2"), *tool_block(0, "c", "h", "{}"), message_delta("tool_use"), MESSAGE_STOP]

    assert [(name, status) for name, (status, _) in zip("fgh", verdicts([*first, *second]), strict=True)] == [
        ("f", "ok"),
        ("g", "incomplete"),
        ("h", "ok"),
    ]


@pytest.mark.parametrize(
    ("reasons", "finish", "allowed"),
    [
        (["tool_calls", "tool_calls"], "tool_calls", True),
        (["stop", "tool_calls"], "stop", True),
        (["", " ", "tool_calls"], "tool_calls", True),
        (["tool_calls", "length"], "length", False),
        (["length", "stop"], "length", False),
        (["length", "error"], "error", False),
        (["error", "tool_calls"], "error", False),
        (["odd", "tool_calls"], "odd", False),
    ],
)
def test_several_finish_reasons(reasons: list[str], finish: str, allowed: bool) -> None:
    """Finish reasons repeat and disagree: the one that lets least run counts."""
    events = [chunk(piece("{}", index=0, id="c", name="f")), *(chunk(finish=reason) for reason in reasons)]
    (call,) = finalize(events)
    assert (call.finish_reason, call.executable) == (finish, allowed)


# -- Anthropic ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "texts", "raw", "arguments"),
    [
        ({}, [], "", {}),
        (None, [""], "", {}),
        ({"a": 1}, [], '{"a": 1}', {"a": 1}),
        ({"a": 1}, [""], '{"a": 1}', {"a": 1}),
        ({"a": 1}, ['{"b"', ": 2}"], '{"b": 2}', {"b": 2}),
        ({}, ['{"b": 2}'], '{"b": 2}', {"b": 2}),
        ('{"a": 1}', [], '{"a": 1}', {"a": 1}),
        ({"a": 1}, ['{"b"'], '{"b"', None),
    ],
)
def test_input_in_the_start(given: object, texts: list[str], raw: str, arguments: object) -> None:
    """`input` in the start is what the arguments are only if no delta follows."""
    events = messages(tool_start(0, "t", "f", given), [input_delta(0, text) for text in texts], block_stop(0))
    (call,) = finalize(events)
    assert (call.raw_arguments, call.arguments) == (raw, arguments)


def test_input_in_the_start_and_blanks() -> None:
    """White space is no delta: it does not turn the input of the start into `{}`."""
    events = messages(tool_start(0, "t", "f", {"a": 1}), input_delta(0, " "), block_stop(0))
    assert [item for item in runs(events) if item[1] != {"a": 1}] == []


def test_input_in_the_start_and_an_empty_start() -> None:
    """A start that comes twice does not turn the input of the first into `{}`."""
    events = messages(tool_start(0, "t", "f", {"a": 1}), tool_start(0, "t", "f"), block_stop(0))
    assert [item for item in runs(events) if item[1] != {"a": 1}] == []


def test_input_in_the_start_is_told() -> None:
    """Listeners get the input of the start as text too: deltas and raw text never disagree."""
    finalizer = StreamFinalizer("anthropic-messages")
    told = [item for event in messages(tool_start(0, "t", "f", {"a": 1})) for item in finalizer.feed(event)]
    told += finalizer.close()
    assert [item.text for item in told if isinstance(item, CallDelta)] == ['{"a": 1}']
    assert not any(isinstance(item, ArgumentsReplaced) for item in told)


def test_blocks_in_message_start() -> None:
    """Blocks may stand in `message_start`, with the finish beside them."""
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    events = [message_start(content=[{"type": "text", "text": "x"}, block], stop_reason="tool_use"), MESSAGE_STOP]
    (call,) = finalize(events)
    assert (call.id, call.arguments, call.index, call.executable) == ("t", {"a": 1}, 1, True)


def test_whole_message() -> None:
    """A message that was not streamed goes in at the same door."""
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    message = {"type": "message", "id": "m", "role": "assistant", "content": [block], "stop_reason": "tool_use"}
    assert runs(message) == [("f", {"a": 1})]
    assert runs({**message, "stop_reason": None}) == []
    assert runs({**message, "stop_reason": "max_tokens"}) == []


def test_reused_block_index() -> None:
    """A start at a used index is another call, and deltas belong to the newer one."""
    events = messages(tool_block(0, "t1", "f", '{"a":1}'), tool_block(0, "t2", "g", '{"b":', "2}"))
    assert calls_of(events) == [("t1", "f", '{"a":1}'), ("t2", "g", '{"b":2}')]


def test_block_stops() -> None:
    """Missing and doubled block stops and deltas after a stop change nothing."""
    whole = messages(tool_block(0, "t1", "f", '{"a":', "1}"), tool_block(1, "t2", "g", "{}"))
    without = [event for event in whole if event["type"] != "content_block_stop"]
    doubled = [
        item for event in whole for item in ([event, event] if event["type"] == "content_block_stop" else [event])
    ]
    early = [*whole[:3], block_stop(0), *whole[3:]]
    assert runs(whole) == [("f", {"a": 1}), ("g", {})]
    assert finalize(without) == finalize(doubled) == finalize(early) == finalize(whole)


def test_blocks_interleave() -> None:
    """Deltas go by the index of their block."""
    events = messages(
        tool_start(1, "t1", "f"),
        tool_start(2, "t2", "g"),
        input_delta(1, '{"a":'),
        input_delta(2, '{"b":'),
        input_delta(1, "1}"),
        input_delta(2, "2}"),
    )
    assert runs(events) == [("f", {"a": 1}), ("g", {"b": 2})]


def test_start_that_comes_twice() -> None:
    """A start that comes twice is one call."""
    events = messages(tool_start(0, "t", "f"), tool_block(0, "t", "f", '{"a":', "1}"))
    assert calls_of(events) == [("t", "f", '{"a":1}')]


@pytest.mark.parametrize("index", [0, 1])
def test_block_that_comes_twice(index: int) -> None:
    """A whole block that is replayed with its id, name and arguments is one call."""
    events = messages(tool_block(0, "t", "f", '{"a":', "1}"), tool_block(index, "t", "f", '{"a":1}'))
    assert runs(events) == [("f", {"a": 1})]


def test_second_message_start() -> None:
    """A second `message_start` cuts what the first left unfinished; what follows is another message."""
    events = [
        message_start("m1"),
        *tool_block(0, "t1", "f", '{"a":1}'),
        *[message_start("m2"), *messages(tool_block(0, "t2", "g", '{"b":2}'))[1:]],
    ]
    assert calls_of(events) == [("t1", "f", '{"a":1}'), ("t2", "g", '{"b":2}')]
    assert verdicts(events) == [("incomplete", "no_finish"), ("ok", None)]


def test_second_message_start_without_ids() -> None:
    """The same if the messages have no id."""
    events = [
        message_start(None),
        *tool_block(0, "t1", "f", '{"a":1}'),
        *[message_start(None), *messages(tool_block(0, "t2", "g", '{"b":2}'))[1:]],
    ]
    assert verdicts(events) == [("incomplete", "no_finish"), ("ok", None)]


def test_second_message_start_after_a_finish() -> None:
    """The finish of one message proves nothing about the next."""
    events = [*messages(tool_block(0, "t1", "f", '{"a":1}')), message_start("m2"), *tool_block(0, "t2", "g", '{"b":2}')]
    assert runs(events) == [("f", {"a": 1})]


# -- what the provider runs itself ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_server_tools(kind: str) -> None:
    """Calls that the provider runs are reported and never run."""
    events = messages(
        tool_start(0, "s", "search", kind=kind, server_name="x"),
        input_delta(0, '{"q":1}'),
        tool_block(1, "t", "search", "{}"),
    )
    server, client = finalize(events)
    assert (server.provider_executed, server.executable, server.arguments) == (True, False, {"q": 1})
    assert server.extra == {"type": kind, "server_name": "x"}
    assert (client.provider_executed, client.executable) == (False, True)


EXECUTED = {"index": 0, "name": "search", "type": "function", "arguments": '{"q":1}', "output": "found"}


def executed(**changes: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"executed_tools": [{**EXECUTED, **changes}]}}]}


def test_executed_tools() -> None:
    """Tools that the provider ran are told twice and reported once; they share no index with client calls."""
    calls = finalize(
        [executed(output=None), *chat(piece("{}", index=0, id="c", name="search"), finish=None), executed(), DONE]
    )
    assert [(call.name, call.raw_arguments, call.provider_executed, call.executable) for call in calls] == [
        ("search", '{"q":1}', True, False),
        ("search", "{}", False, True),
    ]


def test_index_of_executed_tools() -> None:
    """The index that is reported is the one that was sent."""
    (call,) = finalize([executed(), chunk(finish="stop")])
    assert call.index == 0


def test_client_call_after_an_executed_tool() -> None:
    """A client call without id and index is not taken for the provider's call of the same name."""
    events = [executed(), *chat(piece('{"q":2}', name="search"))]
    assert runs(events) == [("search", {"q": 2})]


def test_custom_tools() -> None:
    """A free-text call has its text, whatever it is, and no arguments."""
    events = chat(
        piece("SELECT 1;\n", index=0, id="c", name="sql", custom=True, type="custom"),
        piece("-- {", index=0, custom=True),
        piece("", index=1, id="d", name="note", custom=True),
    )
    calls = finalize(events)
    assert [(call.kind, call.text, call.arguments, call.raw_arguments) for call in calls] == [
        ("custom", "SELECT 1;\n-- {", None, "SELECT 1;\n-- {"),
        ("custom", "", None, ""),
    ]
    assert [call.executable for call in calls] == [True, True]
    assert verdicts(chat(*(piece("x", index=0, id="c", name="sql", custom=True),), finish="length")) == [
        ("incomplete", "truncated")
    ]
    assert runs(chat(piece("x", index=0, id="c", name="sql", custom=True), finish=None)) == []


@pytest.mark.parametrize("id", ["c", None])
def test_custom_tool_with_a_repeated_name(id: str | None) -> None:
    """A name that is repeated on every piece of free text does not cut it into calls."""
    events = chat(
        *(piece(text, index=0, id=id, name="sql", custom=True) for text in ("DELETE FROM t", " WHERE id = 1"))
    )
    assert runs(events) == [("sql", "DELETE FROM t WHERE id = 1")]


def test_custom_tool_without_an_index() -> None:
    """A free-text call without an index does not draw in what belongs to the call after it."""
    events = chat(piece("x", id="c1", name="sql", custom=True), piece("", id="c2", name="f"), piece('{"a":1}'))
    assert runs(events) == [("sql", "x"), ("f", {"a": 1})]


def test_extra_fields() -> None:
    """What else the provider put on a call is kept on that call."""
    signature = {"google": {"thought_signature": "s"}}
    events = chat(
        piece("{}", index=0, id="c", name="f", extra_content=signature), piece("{}", index=1, id="d", name="g")
    )
    assert [call.extra for call in finalize(events)] == [{"extra_content": signature}, {}]
    block = tool_start(0, "t", "f", caller={"type": "direct"})
    assert [call.extra for call in finalize(messages(block))] == [{"caller": {"type": "direct"}}]


@pytest.mark.parametrize("kind", [["deep"], {"a": 1}, None, 7])
def test_a_block_whose_type_is_no_text(kind: Any) -> None:
    """It is a block that nobody knows, and no event that cannot be read: the calls beside it run."""
    odd = {"type": "content_block_start", "index": 0, "content_block": {"type": kind, "text": ""}}
    events = messages(odd, *tool_block(1, "t", "f", '{"a": 1}'))
    finalizer = StreamFinalizer("anthropic-messages")
    seen = [item for event in events for item in finalizer.feed(event)]
    finalizer.close()

    assert [call.executable for call in finalizer.calls] == [True]
    assert [item for item in seen if type(item).__name__ == "Diagnostic"] == []
