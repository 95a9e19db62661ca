"""A wire that is not the library's own, through the public seam: the OpenAI Realtime protocol."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.streams import corpus
from toolrun import Runner, StreamFinalizer, UsageReported, finalize

from . import chat_kit as kit
from . import openai_realtime
from .openai_realtime import OpenAIRealtime

Json = dict[str, Any]

WIRE = OpenAIRealtime()
RECORDINGS = corpus.recordings("openai-realtime")

recorded = pytest.mark.skipif(not RECORDINGS, reason=corpus.ABSENT)
each = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.id)


def created(id: str = "r1") -> Json:
    return {"type": "response.created", "event_id": "e", "response": {"id": id, "status": "in_progress"}}


def item(number: int, arguments: str = "", *, name: str = "f", status: str = "completed", **rest: Any) -> Json:
    told = {"id": f"item_{number}", "type": "function_call", "call_id": f"call_{number}", "name": name}
    return {**told, "arguments": arguments, "status": status, **rest}


def added(told: Json, index: int = 0) -> Json:
    return {"type": "response.output_item.added", "response_id": "r1", "output_index": index, "item": told}


def item_done(told: Json, index: int = 0) -> Json:
    return {"type": "response.output_item.done", "response_id": "r1", "output_index": index, "item": told}


def delta(number: int, text: str, index: int = 0) -> Json:
    told = {"response_id": "r1", "item_id": f"item_{number}", "call_id": f"call_{number}", "output_index": index}
    return {"type": "response.function_call_arguments.delta", **told, "delta": text}


def arguments_done(number: int, text: str, index: int = 0) -> Json:
    return {**delta(number, "", index), "type": "response.function_call_arguments.done", "arguments": text}


def done(status: str = "completed", *output: Json, **details: Any) -> Json:
    usage = {"input_tokens": 5, "output_tokens": 7}
    told = {"id": "r1", "status": status, "status_details": details or None, "output": [*output], "usage": usage}
    return {"type": "response.done", "event_id": "e", "response": told}


def say(text: str, kind: str = "output_text") -> Json:
    told = {"response_id": "r1", "item_id": "item_0", "output_index": 0, "content_index": 0}
    return {"type": f"response.{kind}.delta", **told, "delta": text}


def got_from(*events: Json) -> list[tuple[str | None, str | None, str, str, bool]]:
    """Id (None for a synthetic one), name, raw text, status and whether it may run."""
    calls = finalize([created(), *events], wire=WIRE)
    return [
        (None if got.synthetic_id else got.id, got.name, got.raw_arguments, got.status.value, got.executable)
        for got in calls
    ]


def test_only_what_is_public():
    """The wire imports public modules of the library, and no other."""
    tree = ast.parse(Path(openai_realtime.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}

    assert {module for module in modules if module.startswith("toolrun")} == {
        "toolrun",
        "toolrun.abc",
        "toolrun.wires.helpers",
    }


# -- recordings -----------------------------------------------------------------------------


@recorded
@each
def test_recording_with_lost_events(recording: corpus.Recording):
    """The final copies alone, or the deltas alone, give the same call."""
    for lost in (
        (".delta",),
        ("arguments.done", "item.done"),
        ("item.added",),
        ("item.added", ".delta", "arguments.done"),
    ):
        events = [event for event in recording.events if not event["type"].endswith(lost)]
        corpus.check(finalize(events, wire=WIRE), recording.calls)


@recorded
@each
def test_recording_of_sdk_objects(recording: corpus.Recording):
    """The events that the SDK's connection yields give the same calls."""
    from openai._models import construct_type_unchecked  # what the connection itself calls on each message
    from openai.types.realtime import RealtimeServerEvent

    objects = [construct_type_unchecked(value=event, type_=RealtimeServerEvent) for event in recording.events]

    assert not any(isinstance(event, dict) for event in objects)
    corpus.check(finalize(objects, wire=WIRE), recording.calls)


@recorded
@each
async def test_recording_run(recording: corpus.Recording):
    """A turn runs the call, and only its result goes back: the server has the call."""
    async with Runner(kit.registry("get_weather")) as runner:
        turn = await runner.run(recording.events, wire=WIRE)

    (call,) = recording.calls
    assert turn.messages() == [
        {
            "type": "conversation.item.create",
            "item": {"type": "function_call_output", "call_id": call.id, "output": '{"city":"London"}'},
        }
    ]
    assert turn.usage["output_tokens"] > 0


@recorded
def test_recognises():
    """The wire claims the events of its responses, and none of any other recording."""
    for recording in RECORDINGS:
        claimed = [event["type"] for event in recording.events if WIRE.recognises(event)]
        assert claimed == [event["type"] for event in recording.events if event["type"].startswith("response.")]
    assert not any(
        WIRE.recognises(event)
        for recording in corpus.recordings_of_others("openai-realtime")
        for event in recording.objects
    )


# -- calls ----------------------------------------------------------------------------------

TWO = [
    added(item(1), 0),
    added(item(2, name="g"), 1),
    delta(1, '{"x"', 0),
    delta(2, '{"y"', 1),
    delta(1, ":1}", 0),
    delta(2, ":2}", 1),
]
BOTH = [("call_1", "f", '{"x":1}', "ok", True), ("call_2", "g", '{"y":2}', "ok", True)]


def test_deltas_that_interleave():
    """The output index says whose a delta is; without one the item id does."""
    without = [{key: value for key, value in event.items() if key != "output_index"} for event in TWO]

    assert got_from(*TWO, done()) == BOTH
    assert got_from(*without, done()) == BOTH


def test_the_list_at_the_end_has_positions_of_its_own():
    """Items are found by id there, and one that no event announced is a call too."""
    output = [item(2, '{"y":2}', name="g"), item(1, '{"x":1}'), item(3, "{}", name="h")]

    assert got_from(*TWO, done("completed", *output)) == [*BOTH, ("call_3", "h", "{}", "ok", True)]


def test_a_final_copy_wins():
    """What the wire says at the end of a call counts, and listeners are told."""
    finalizer = StreamFinalizer(WIRE)
    told = [
        event
        for each in (created(), added(item(1)), delta(1, '{"x":'), arguments_done(1, '{"x":2}'), done())
        for event in finalizer.feed(each)
    ]
    finalizer.close()

    kinds = [type(event).__name__ for event in told if not isinstance(event, UsageReported)]
    assert kinds == ["CallStarted", "CallDelta", "ArgumentsReplaced"]
    assert finalizer.calls[0].raw_arguments == '{"x":2}'


def test_a_start_alone_is_no_call():
    """Without a piece of arguments or a copy of them nothing tells that they are blank."""
    assert got_from(added(item(1)), done()) == [("call_1", "f", "", "incomplete", False)]
    assert got_from(added(item(1)), arguments_done(1, ""), done()) == [("call_1", "f", "", "ok", True)]


def test_the_servers_own_calls_never_run():
    """MCP calls are shown, and have no result."""
    mcp = {"id": "mcp_1", "type": "mcp_call", "name": "f", "arguments": '{"x":1}', "output": "found"}
    pieces = {"type": "response.mcp_call_arguments.delta", "item_id": "mcp_1", "output_index": 0, "delta": '{"x":1}'}
    events = [created(), added({**mcp, "arguments": ""}), pieces, item_done(mcp), done()]

    turn = Runner(kit.registry("f")).run_sync(events, wire=WIRE)

    assert [(call.name, call.provider_executed, call.executable) for call in turn.calls] == [("f", True, False)]
    assert turn.outcomes == ()
    assert turn.messages() == []


@pytest.mark.parametrize(
    ("status", "details", "expected"),
    [
        ("completed", {}, ("ok", None, True)),
        ("incomplete", {"reason": "max_output_tokens"}, ("ok", "held", False)),
        ("incomplete", {"reason": "content_filter"}, ("ok", "held", False)),
        ("cancelled", {"reason": "turn_detected"}, ("incomplete", "broken_finish", False)),
        ("failed", {"error": {"message": "overloaded"}}, ("incomplete", "stream_error", False)),
        ("in_progress", {}, ("incomplete", "no_finish", False)),
        (["completed"], {}, ("incomplete", "no_finish", False)),
    ],
)
def test_ends(status: Any, details: Json, expected: tuple[str, str | None, bool]):
    """Only a response that is completed runs its calls: a person who speaks cancels it."""
    (got,) = finalize([created(), added(item(1)), delta(1, "{}"), done(status, **details)], wire=WIRE)

    assert (got.status.value, got.code, got.executable) == expected


def test_an_item_that_was_cut():
    """A call that its own copy calls incomplete does not run, though its text may look whole."""
    cut = item(1, '{"x":1}', status="incomplete")

    assert got_from(added(item(1)), item_done(cut), done()) == [("call_1", "f", '{"x":1}', "incomplete", False)]


def test_another_response_in_the_same_session():
    """Responses overlap in a session: one finalizer reads one of them."""
    other = {**delta(9, '{"z":9}', 0), "response_id": "r2"}
    finalizer = StreamFinalizer(WIRE)
    told = [
        event
        for each in (created(), *TWO[:3], created("r2"), other, *TWO[3:], done())
        for event in finalizer.feed(each)
    ]
    finalizer.close()

    assert [call.raw_arguments for call in finalizer.calls] == ['{"x":1}', '{"y":2}']
    assert [event.code for event in told if type(event).__name__ == "Diagnostic"] == ["other_response"]


def test_an_error_event():
    """An error before the end leaves calls incomplete."""
    error = {"type": "error", "event_id": "e", "error": {"type": "server_error", "message": "no"}}

    assert got_from(added(item(1)), delta(1, "{}"), error) == [("call_1", "f", "{}", "incomplete", False)]


# -- history --------------------------------------------------------------------------------

MIXED = [
    created(),
    added({"id": "item_0", "type": "message", "role": "assistant"}, 0),
    say("Look"),
    say("ing."),
    added(item(1), 1),
    delta(1, '{"x": 1}', 1),
    added({**item(2), "call_id": None}, 2),
    delta(2, '{"x": @}', 2) | {"call_id": None},
    done(),
]


def test_a_call_without_an_id():
    """The server knows it by no id: it is written down under one, then answered."""
    turn = Runner(kit.registry("f")).run_sync(MIXED, wire=WIRE)

    first, call, second = (message["item"] for message in turn.messages())
    assert turn.text == "Looking."
    assert first == {"type": "function_call_output", "call_id": "call_1", "output": '{"x":1}'}
    assert call == {
        "type": "function_call",
        "call_id": turn.calls[1].id,
        "name": "f",
        "arguments": '{"invalid_arguments": "{\\"x\\": @}"}',
    }
    assert (second["type"], second["call_id"]) == ("function_call_output", turn.calls[1].id)


def test_replay():
    """A new session is told the whole response, each call with its result."""
    turn = Runner(kit.registry("f")).run_sync(MIXED, wire=OpenAIRealtime(replay=True))

    told = [(message["item"]["type"], message["item"].get("call_id")) for message in turn.messages()]
    synthetic = turn.calls[1].id
    assert told == [
        ("message", None),
        ("function_call", "call_1"),
        ("function_call", synthetic),
        ("function_call_output", "call_1"),
        ("function_call_output", synthetic),
    ]
    assert turn.messages()[1]["item"]["arguments"] == '{"x": 1}'


@pytest.mark.parametrize("replay", [False, True])
def test_the_client_takes_what_goes_back(replay: bool):
    """Every item has the form of the SDK's own request types."""
    from openai.types.realtime import ConversationItemCreateEvent

    for message in Runner(kit.registry("f")).run_sync(MIXED, wire=OpenAIRealtime(replay=replay)).messages():
        taken = ConversationItemCreateEvent.model_validate(message, extra="forbid")
        assert taken.model_dump(exclude_unset=True) == message


# -- soup -----------------------------------------------------------------------------------

WORDS = (
    "type", "response", "id", "response_id", "item", "item_id", "output_index", "call_id", "name", "arguments", "delta",
    "status", "status_details", "error", "message", "output", "usage", "function_call", "mcp_call", "completed",
    "response.done", "response.output_item.added", "response.output_item.done", "response.output_text.delta",
)  # fmt: skip


@kit.UNHURRIED
@given(kit.soup([[created(), *TWO, item_done(item(1, '{"x":1}')), done("completed", item(2, "{}"))], MIXED], WORDS))
def test_soup(events: list[Any]):
    """Whatever comes, nothing raises, and nothing runs without an end."""
    kit.check_survives(WIRE, events)
