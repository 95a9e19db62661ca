"""Scripted responses say the same on every wire, however they are told."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import pytest

from toolrun import Diagnostic, StreamFinalizer, TextDelta, UnknownWire, finalize
from toolrun.testing import ScriptedCall, ScriptedResponse, chunked
from toolrun.wires import WIRES

CALLS = [ScriptedCall("add", {"a": 1, "b": "é"}), ScriptedCall("sub", ['{"x": ', "[1, 2]}"])]
RESPONSE = ScriptedResponse(text="Hello there, wörld.", thinking="Hm, let me see.", calls=CALLS)
ARGUMENTS = [("add", {"a": 1, "b": "é"}), ("sub", {"x": [1, 2]})]

OBJECTS = {"gemini", "ollama"}
"""The wires whose arguments are objects: they have no pieces, and no text that is no JSON."""
AMAZON = {"bedrock-converse", "bedrock-invoke"}
"""The wires whose bytes are Amazon's event stream, which boto3 decodes."""

each_wire = pytest.mark.parametrize("wire", WIRES)


def fed(wire: str, events: list[Any]) -> tuple[StreamFinalizer, list[Any]]:
    finalizer = StreamFinalizer(wire)
    seen = [item for event in events for item in finalizer.feed(event)]
    return finalizer, [*seen, *finalizer.close()]


def verdicts(wire: str, response: ScriptedResponse) -> list[tuple[str, str | None, bool]]:
    finalizer, _ = fed(wire, response.events(wire))
    return [(call.status.value, call.code, call.executable) for call in finalizer.calls]


@each_wire
@pytest.mark.parametrize("split", [None, 1, 5, Random(4)], ids=["whole", "1", "5", "random"])
@pytest.mark.parametrize("interleaved", [False, True])
def test_events(wire: str, split: int | Random | None, interleaved: bool) -> None:
    """Texts, thoughts, calls, usage and finish arrive, and nothing is odd about the stream."""
    finalizer, seen = fed(wire, RESPONSE.events(wire, split=split, interleaved=interleaved))

    assert [(call.name, call.arguments) for call in finalizer.calls] == ARGUMENTS
    assert [call.id for call in finalizer.calls] == ["call00001", "call00002"]
    assert all(call.executable for call in finalizer.calls)
    assert finalizer.response.text == "Hello there, wörld."
    thoughts = [event.text for event in seen if isinstance(event, TextDelta) and event.kind == "reasoning"]
    assert "".join(thoughts) == "Hm, let me see."
    assert {"11", "7"} <= set(re.findall(r"\d+", json.dumps(finalizer.response.usage)))
    assert finalizer.response.finish_reason
    assert [event for event in seen if isinstance(event, Diagnostic)] == []


@each_wire
def test_the_wire_is_recognised(wire: str) -> None:
    """Nobody has to say which one it is."""
    finalizer, _ = fed("auto", RESPONSE.events(wire))

    assert finalizer.wire is WIRES[wire]


@each_wire
def test_events_are_plain_data(wire: str) -> None:
    """They can be written down, and are the same each time."""
    events = RESPONSE.events(wire, split=Random(1))

    assert json.loads(json.dumps(events)) == events == RESPONSE.events(wire, split=Random(1))


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire not in AMAZON])
@pytest.mark.parametrize("size", [1, 7, Random(2)], ids=["1", "7", "random"])
def test_bytes(wire: str, size: int | Random) -> None:
    """As the provider sends them, cut anywhere."""
    pieces = chunked(RESPONSE.encode(wire, split=4), size)

    assert [(call.name, call.arguments, call.executable) for call in finalize(pieces)] == [
        (name, arguments, True) for name, arguments in ARGUMENTS
    ]


@each_wire
def test_whole(wire: str) -> None:
    """What comes without streaming says the same."""
    calls = finalize(RESPONSE.whole(wire), wire=wire)

    assert [(call.name, call.arguments, call.executable) for call in calls] == [
        (name, arguments, True) for name, arguments in ARGUMENTS
    ]


def test_pieces_that_were_given_stay() -> None:
    """Where a text comes apart can be said outright."""
    response = ScriptedResponse(text=["a", "bc"], calls=[ScriptedCall("f", ['{"a', '": 1}'])])
    events = response.events("anthropic-messages", split=1)
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]

    assert deltas == [
        {"type": "text_delta", "text": "a"},
        {"type": "text_delta", "text": "bc"},
        {"type": "input_json_delta", "partial_json": '{"a'},
        {"type": "input_json_delta", "partial_json": '": 1}'},
    ]


def test_interleaved_calls() -> None:
    """The events of one call stand between those of the other."""
    events = RESPONSE.events("openai-chat", interleaved=True)
    entries = [
        call for event in events for choice in event["choices"] for call in choice["delta"].get("tool_calls", ())
    ]

    assert [entry["index"] for entry in entries] == [0, 1, 0, 1, 1]


@each_wire
def test_no_finish(wire: str) -> None:
    """A stream that just ends makes no call whole."""
    assert verdicts(wire, ScriptedResponse(calls=CALLS, finish=None)) == [("incomplete", "no_finish", False)] * 2


@each_wire
@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_held(wire: str, finish: str) -> None:
    """The neutral words become the wire's."""
    assert verdicts(wire, ScriptedResponse(calls=CALLS, finish=finish)) == [("ok", "held", False)] * 2


@pytest.mark.parametrize("wire", ["openai-chat", "mistral", "anthropic-messages", "bedrock-invoke", "ollama"])
def test_a_terminator_alone(wire: str) -> None:
    """Without a finish reason, it is the terminator that says that the calls are whole."""
    response = ScriptedResponse(calls=CALLS, finish=None, terminator=True)
    told = response.events(wire) if wire in AMAZON else chunked(response.encode(wire), 9)

    assert [(call.code, call.executable) for call in finalize(told, wire=wire)] == [("finish_inferred", True)] * 2


@each_wire
def test_an_error_in_the_stream(wire: str) -> None:
    """It is told in the provider's own form, and nothing runs."""
    finalizer, seen = fed(wire, ScriptedResponse(text="Well", calls=CALLS, error="overloaded").events(wire))

    assert [(call.status.value, call.code) for call in finalizer.calls] == [("incomplete", "stream_error")] * 2
    assert [event.code for event in seen if isinstance(event, Diagnostic)] == ["stream_error"]
    assert "overloaded" in next(event.message for event in seen if isinstance(event, Diagnostic))


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire not in OBJECTS])
@pytest.mark.parametrize("text", ['{"a": ', "", "null", "{'a': 1}"])
def test_arguments_as_they_are_written(wire: str, text: str) -> None:
    """Whatever the text is, it arrives."""
    (call,) = finalize(ScriptedResponse(calls=[ScriptedCall("f", text)]).events(wire, split=2), wire=wire)

    assert call.raw_arguments == text


@each_wire
def test_ids_and_names(wire: str) -> None:
    """An id of one's own, none, and no name."""
    calls = [ScriptedCall("f", "{}", "mine00001"), ScriptedCall("f", "{}", None), ScriptedCall(None, '{"a": 1}')]
    got, _ = fed(wire, ScriptedResponse(calls=calls).events(wire))

    assert [(call.name, call.synthetic_id) for call in got.calls] == [("f", False), ("f", True), (None, False)]
    assert got.calls[0].id == "mine00001"
    assert got.calls[2].id == "call00003"


@each_wire
def test_nothing_said(wire: str) -> None:
    """An empty response is one, with a finish and no usage."""
    finalizer, seen = fed(wire, ScriptedResponse(usage=None).events(wire))

    assert (finalizer.calls, finalizer.response.text) == ((), "")
    assert finalizer.response.ended
    assert [event for event in seen if isinstance(event, Diagnostic)] == []


def test_other_wires() -> None:
    """Of other protocols nothing is known, and the error says of which something is."""
    with pytest.raises(UnknownWire, match="nothing is known of the streams of 'house'; known: openai-chat, "):
        RESPONSE.events("house")


def test_pieces_are_not_empty() -> None:
    """A size of nothing would never end."""
    with pytest.raises(ValueError, match="at least one character or byte, not 0"):
        chunked(b"abc", 0)
