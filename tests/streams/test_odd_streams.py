"""Streams that break their promises: no calls, no names, errors, too much of everything."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from toolrun import CallStarted, StreamFinalizer, ToolCall, finalize
from toolrun._core import assembler, routing, slots
from toolrun._core.json_text import is_complete_container

from .events import (
    DONE,
    MESSAGE_STOP,
    block_start,
    chat,
    chunk,
    input_delta,
    message_delta,
    messages,
    piece,
    sse,
    tool_block,
    tool_start,
)
from .reading import diagnostics, runs, verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence


# -- odd streams ----------------------------------------------------------------------------


def test_finish_without_calls() -> None:
    """A finish that promises calls, and none came, is told."""
    assert diagnostics(chat(), "openai-chat") == ["finish_without_calls"]
    assert diagnostics(messages(), "anthropic-messages") == ["finish_without_calls"]
    assert diagnostics(chat(finish="stop"), "openai-chat") == []


def test_orphan_delta() -> None:
    """Argument text for a block that never began is told; a blank call beside it may have lost its arguments."""
    events = messages(tool_start(0, "t", "f"), input_delta(1, '{"path":"/"}'))
    assert diagnostics(events, "anthropic-messages") == ["orphan_delta"]
    assert verdicts(events) == [("incomplete", "beside_nameless")]


def test_orphan_delta_beside_arguments() -> None:
    """A call that has arguments of its own is none the worse for it; nor is one beside an empty orphan."""
    assert runs(messages(tool_block(0, "t", "f", '{"a":1}'), input_delta(3, "x"))) == [("f", {"a": 1})]
    assert runs(messages(tool_block(0, "t", "f"), input_delta(3, ""))) == [("f", {})]


def test_nameless_call() -> None:
    """A call without a name never runs, and a blank call beside its text may have lost its arguments."""
    events = chat(
        piece("", index=0, id="c", name="f"), piece('{"a":1}', index=1), piece("{}", index=2, id="d", name="g")
    )
    assert verdicts(events) == [("incomplete", "beside_nameless"), ("parse_error", "nameless"), ("ok", None)]
    assert runs(events) == [("g", {})]
    assert runs(chat(piece("", index=0, id="c", name="f"), piece("", index=1, id="d"))) == [("f", {})]


@pytest.mark.parametrize(
    "between", [{"choices": []}, {"choices": [{"index": 0, "delta": {}, "finish_reason": None}]}, {}]
)
def test_error_before_the_finish(between: dict[str, Any]) -> None:
    """A provider's error makes the calls incomplete, whatever else is in its event, and whatever follows."""
    begun = chunk(piece("{}", index=0, id="c", name="f"))
    error = {**between, "error": {"message": "overloaded"}}
    for after in ([], [DONE], [chunk(finish="tool_calls")], [chunk(finish="tool_calls"), DONE]):
        assert verdicts([begun, error, *after]) == [("incomplete", "stream_error")]
        assert "stream_error" in diagnostics([begun, error, *after], "openai-chat")


def test_error_of_another_choice() -> None:
    """A finish of another choice does not turn an error into one that came after the finish."""
    events = [
        chunk(piece("{}", index=0, id="c", name="f")),
        chunk(finish="stop", choice=1),
        {"error": {"message": "overloaded"}},
        DONE,
    ]
    assert runs(events) == []


def test_error_of_anthropic() -> None:
    """The same for an error event, and for one inside a choice."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    begun = messages(tool_block(0, "t", "f", "{}"), error, reason=None)
    assert verdicts(begun) == [("incomplete", "stream_error")]
    assert verdicts([*begun, message_delta("tool_use"), MESSAGE_STOP]) == [("incomplete", "stream_error")]
    choice = {"index": 0, "delta": {}, "error": {"message": "x"}, "finish_reason": None}
    assert verdicts([chunk(piece("{}", index=0, id="c", name="f")), {"choices": [choice]}, DONE]) == [
        ("incomplete", "stream_error")
    ]


def test_error_after_the_finish() -> None:
    """An error after the finish is told; the calls had finished before it."""
    events = [*chat(piece("{}", index=0, id="c", name="f")), {"error": "late"}]
    assert runs(events) == [("f", {})]
    assert diagnostics(events, "openai-chat") == ["error_after_finish"]


def test_failed_generation() -> None:
    """What the provider threw away is told, with what the model wrote."""
    finalizer = StreamFinalizer("openai-chat")
    told = finalizer.feed({"error": {"message": "bad call", "failed_generation": '{"name": "f"'}})
    assert [(item.code, item.message) for item in told] == [
        ("stream_error", "bad call"),
        ("failed_generation", '{"name": "f"'),
    ]


@pytest.mark.parametrize(
    "event", [{"error": {"message": "overloaded"}}, {"type": "error", "error": {"message": "overloaded"}}]
)
def test_nothing_but_an_error(event: dict[str, Any]) -> None:
    """A stream that is nothing but an error gives no calls, and does not complain about the wire instead."""
    assert finalize([event]) == ()


# -- limits ---------------------------------------------------------------------------------


def test_too_many_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call over the limit is incomplete with what fits; the others are not touched."""
    monkeypatch.setattr(assembler, "MAX_CHARACTERS", 10)
    events = chat(
        piece('{"a": 1', index=0, id="c", name="f"),
        piece('{"b": 22}', index=1, id="d", name="g"),
        piece(', "x": 2', index=0),
        piece("}", index=0),
    )
    calls = finalize(events)
    assert [(call.raw_arguments, call.status.value, call.code, call.executable) for call in calls] == [
        ('{"a": 1', "incomplete", "limit", False),
        ('{"b": 22}', "ok", None, True),
    ]


def test_a_call_of_just_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit itself is not over it."""
    monkeypatch.setattr(assembler, "MAX_CHARACTERS", 8)
    assert runs(chat(piece('{"a"', index=0, id="c", name="f"), piece(": 1}", index=0))) == [("f", {"a": 1})]
    assert runs(chat(piece('{"a"', index=0, id="c", name="f"), piece(": 12}", index=0))) == []


def overflow(wire: str) -> Sequence[object]:
    if wire == "openai-chat":
        return chat(*(piece("{}", index=place, id=f"c{place}", name="f") for place in range(9)), piece("x", index=8))
    return messages(*(tool_block(place, f"c{place}", "f", "{}") for place in range(9)))


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
def test_too_many_calls(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls over the limit end in one call that never runs; those well below it are not touched."""
    monkeypatch.setattr(routing, "MAX_CALLS", 4)
    calls = finalize(overflow(wire))
    assert [(call.id, call.executable) for call in calls[:3]] == [("c0", True), ("c1", True), ("c2", True)]
    assert len(calls) <= 5
    assert (calls[-1].status.value, calls[-1].code, calls[-1].executable) == ("incomplete", "limit", False)
    assert diagnostics(overflow(wire), wire) == ["limit"]


def test_start_events_of_too_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is over the limit gives no further events of new calls."""
    monkeypatch.setattr(routing, "MAX_CALLS", 2)
    finalizer = StreamFinalizer("openai-chat")
    told = [item for event in overflow("openai-chat") for item in finalizer.feed(event)]
    assert len([item for item in told if isinstance(item, CallStarted)]) <= 3


def test_damaged_event() -> None:
    """An event that looked like one and could not be read makes every call incomplete; nobody knows what it held."""
    good = sse(chat(piece('{"a":', index=0, id="c", name="f"), finish=None))
    rest = sse(chat(piece("1}", index=0)))
    assert verdicts(good + rest) == [("ok", None)]
    assert verdicts(good + b'data: {"choices": [{\n\n' + rest) == [("incomplete", "stream_error")]
    assert verdicts([good, {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": "9" * 5000}]}}]}, rest]) == [
        ("incomplete", "stream_error")
    ]


def test_text_blocks_do_not_disturb() -> None:
    """Other blocks and texts between the pieces of a call are nothing to it."""
    events = messages(
        block_start(0, "thinking", thinking=""),
        tool_start(1, "t", "f"),
        block_start(2, "text", text="a"),
        input_delta(1, '{"a":'),
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "b"}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "surprise_delta", "partial_json": "!"}},
        input_delta(1, "1}"),
    )
    assert runs(events) == [("f", {"a": 1})]


def equal_but_for_index(calls: Sequence[ToolCall]) -> list[ToolCall]:
    return [dataclasses.replace(call, index=None) for call in calls]


def test_blocks_without_an_index() -> None:
    """Blocks that have no index are taken in the order in which they come."""
    blocks = [
        tool_start(None, "t1", "f"),
        input_delta(None, '{"a":1}'),
        tool_start(None, "t2", "g"),
        input_delta(None, "{}"),
    ]
    indexed = [tool_block(0, "t1", "f", '{"a":1}'), tool_block(1, "t2", "g", "{}")]
    assert equal_but_for_index(finalize(messages(*blocks))) == equal_but_for_index(finalize(messages(*indexed)))


STREAMS = {
    "plain": lambda place, text: piece(text, index=0, **({} if place else {"id": "c", "name": "f"})),
    "id and name on each": lambda _, text: piece(text, index=0, id="c", name="f"),
    "name on each": lambda _, text: piece(text, index=0, name="f"),
    "nothing but the name, on each": lambda _, text: piece(text, name="f"),
    "a new id on each": lambda place, text: piece(text, index=0, id=f"c{place}", name=None if place else "f"),
}


@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS.keys())
def test_no_parsing_per_delta(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unfinished arguments are not read again with every piece, however the server labels its pieces."""
    read: list[int] = []

    def count(text: str) -> bool:
        read.append(len(text))
        return is_complete_container(text)

    monkeypatch.setattr(slots, "is_complete_container", count)
    raw = '{"text": "' + "x" * 2_000 + '"}'

    calls = finalize(chat(*(make(place, text) for place, text in enumerate(raw))))

    assert [call.raw_arguments for call in calls] == [raw]
    assert sum(read) <= 4 * len(raw)
