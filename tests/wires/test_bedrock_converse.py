"""Bedrock Converse: written cases, recordings, boto3's own objects, history that was accepted, hostile events."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams import cases, corpus
from toolrun import FinishPolicy, Runner, finalize
from toolrun._core.assembler import Assembler
from toolrun.abc import ToolResult
from toolrun.wires.anthropic_messages import AnthropicMessages
from toolrun.wires.bedrock_converse import BedrockConverse
from toolrun.wires.openai_chat import OpenAIChat

from . import bedrock
from .bedrock import (
    START,
    Bedrock,
    at,
    call_start,
    feed,
    meaning,
    noting,
    piece,
    results_in,
    runs,
    stop,
    whole_response,
    wrapped,
)

if TYPE_CHECKING:
    from tests.streams.corpus import Expected, Recording

Json = dict[str, Any]

WIRE = BedrockConverse()
CASES = cases.of("bedrock-converse")
RECORDINGS = corpus.recordings("bedrock-converse")

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
recorded = pytest.mark.skipif(not RECORDINGS, reason=corpus.ABSENT)
each = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.id)

REFUSED_BY_BOTO3 = frozenset(("vercel-amazon-bedrock-tool-no-args",))
"""The block start of its text has no member (the fixture may be hand-made); boto3 raises on that."""


@pytest.fixture(scope="module")
def server():
    with Bedrock() as running:
        yield running


# -- cases ----------------------------------------------------------------------------------


@each_case
def test_case_through_boto3(case: Json, server: Bedrock) -> None:
    """The same through botocore's parser, which raises the exception that a stream ends with."""
    calls = finalize(server.converse_stream(case["events"]), wire=WIRE)
    assert any(cases.matches(answer, calls) for answer in cases.answers(case)), calls


# -- recordings -----------------------------------------------------------------------------


@recorded
def test_numbers_of_recordings() -> None:
    """What is peculiar to these recordings is in them."""
    calls = [call for recording in RECORDINGS for call in recording.calls]
    assert {call.name for call in calls if call.provider_executed} >= {"nova_grounding", "nova_code_interpreter"}
    assert {recording.id for recording in RECORDINGS} >= REFUSED_BY_BOTO3
    assert sum(recording.echo is not None for recording in RECORDINGS) >= 7


@recorded
@each
def test_recording_through_boto3(recording: Recording, server: Bedrock) -> None:
    """boto3's own event stream feeds the finalizer."""
    calls = finalize(server.converse_stream(wrapped(recording)), wire=WIRE)

    if recording.id in REFUSED_BY_BOTO3:
        assert not [call for call in calls if call.executable]
    else:
        corpus.check(calls, recording.calls)


@recorded
@each
def test_recording_as_whole_response(recording: Recording, server: Bedrock) -> None:
    """A response of the Converse operation goes in at the same door, as boto3 gives it and as raw JSON."""
    content = [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments, **served(call)}}
        for call in recording.calls
    ]
    want = [replace(call, index=place, raw=None) for place, call in enumerate(recording.calls)]
    server.serve_whole("whole", whole_response(content, "tool_use"))
    response = server.client.converse(modelId="whole", messages=[])

    for source in (response, json.dumps(whole_response(content, "tool_use")).encode()):
        finalizer = feed(WIRE, [source])
        corpus.check(finalizer.calls, want)
        assert finalizer.response.usage == {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}


def served(call: Expected) -> Json:
    return {"type": "server_tool_use"} if call.provider_executed else {}


@recorded
@each
async def test_recording_run(recording: Recording, server: Bedrock) -> None:
    """A runner reads boto3's stream; each client call runs once, and boto3 takes the messages back."""
    ran: list[tuple[str, Json]] = []
    stream = server.converse_stream(wrapped(recording))

    async with Runner(
        noting(ran, [call.name for call in recording.calls]), max_concurrency=1, on_stream_error="return"
    ) as runner:
        turn = await runner.run(stream, wire=WIRE)

    refused = recording.id in REFUSED_BY_BOTO3
    assert ran == ([] if refused else runs(recording))
    messages = turn.messages()
    assert server.send_converse(messages) == messages
    assert results_in(messages) == [outcome.call.id for outcome in turn.outcomes]


@recorded
@pytest.mark.parametrize("recording", [each for each in RECORDINGS if each.echo], ids=lambda recording: recording.id)
def test_echo(recording: Recording) -> None:
    """The next request says what the recorded client's next request said, which was answered 200."""
    assert recording.echo is not None
    finalizer = feed(WIRE, recording.events)
    texts = [bedrock.texts(block["toolResult"]["content"]) for block in recording.echo["results"][0]["content"]]
    results = [ToolResult(call, text, is_error=False) for call, text in zip(finalizer.calls, texts, strict=True)]

    messages = [*WIRE.assistant_messages(finalizer.response, finalizer.calls), *WIRE.result_messages(results)]

    assert meaning(messages) == meaning([*recording.echo["assistant"], *recording.echo["results"]])


# -- the seam -------------------------------------------------------------------------------


def test_recognises() -> None:
    """Own events and whole responses are recognised, those of other protocols are not, nor are ours by theirs."""
    own = [
        START,
        stop(),
        call_start(0),
        piece(0, ""),
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"type": "messageStart", "role": "assistant"},
        {"throttlingException": {"message": "slow"}},
        {"type": "validationException", "message": "wrong"},
        whole_response([], "end_turn"),
    ]
    foreign: list[Json] = [
        {"choices": []},
        {"type": "message_start", "message": {}},
        {"type": "message-start"},
        {"object": "response", "output": [{"type": "message"}]},
        {"metadata": {}},
        {"chunk": {"bytes": b""}},
        {"type": ["messageStart"]},
        {},
    ]

    assert [WIRE.recognises(event) for event in own] == [True] * len(own)
    assert [WIRE.recognises(event) for event in foreign] == [False] * len(foreign)
    for other in (OpenAIChat(), AnthropicMessages()):
        assert [other.recognises(event) for event in own] == [False] * len(own)


def test_continues() -> None:
    """No finish reason makes the response go back by itself."""
    assert not WIRE.continues("pause_turn")
    assert not WIRE.continues("tool_use")
    assert not WIRE.continues(None)


# -- hostile events -------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from(["", " ", "{", "}", '{"a":1}', "null", "AAE=", "t1", "f", "server_tool_use", "\ud83d", "\ude00"]),
    st.binary(max_size=3),
)
KEYS = st.sampled_from(
    (
        "type", "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata",
        "output", "message", "content", "stopReason", "usage", "error", "throttlingException", "ResponseMetadata",
        "RequestId", "contentBlockIndex", "start", "delta", "toolUse", "toolUseId", "name", "input", "text", "citation",
        "reasoningContent", "reasoningText", "signature", "redactedContent", "toolResult", "image", "source", "bytes",
        "citationsContent", "citations", "event", "data", "chunk", "json", "SDK_UNKNOWN_MEMBER",
    )
)  # fmt: skip
SOUP = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))
INDEXES = st.integers(0, 2) | SOUP
MEMBERS = st.dictionaries(
    st.sampled_from(["toolUse", "text", "reasoningContent", "citation", "toolResult", "image"]), SOUP, max_size=2
)
EVENTS = st.one_of(
    SOUP,
    st.builds(piece, st.integers(0, 2), st.sampled_from(["{", '"a"', ":1", "}", '{"a":1}']) | SCALARS),
    st.builds(call_start, st.integers(0, 2), st.sampled_from(["t1", "t2", None]), st.sampled_from(["f", "g", None])),
    st.builds(lambda index, members: {"contentBlockDelta": at(index, delta=members)}, INDEXES, MEMBERS),
    st.builds(lambda index, members: {"contentBlockStart": at(index, start=members)}, INDEXES, MEMBERS),
    st.builds(lambda body: {"messageStart": body}, SOUP),
)
ENDS = st.builds(stop, st.sampled_from(["tool_use", "end_turn", "max_tokens", "odd", None]))


@settings(max_examples=120, deadline=None)
@given(st.lists(EVENTS | ENDS, max_size=12))
def test_soup(events: list[Any]) -> None:
    """No event raises, neither out of the decoder nor out of the finalizer, and the history can always be written."""
    assembler = Assembler(lambda position: WIRE.synthetic_id(f"{position:032x}"))
    decode = WIRE.decoder(assembler)
    for event in events:
        decode(event)
    calls = assembler.close(FinishPolicy())

    WIRE.assistant_messages(assembler.response(WIRE.name), calls)
    assert len(WIRE.result_messages([ToolResult(call, "", is_error=True) for call in calls])) == bool(calls)
    feed(WIRE, events)


@settings(max_examples=80, deadline=None)
@given(st.lists(EVENTS.filter(lambda event: not ends(event)), max_size=12))
def test_soup_without_end(events: list[Any]) -> None:
    """Without a stop reason or a terminator nothing runs, whatever came."""
    assert not [call for call in finalize(events, wire=WIRE, end="eof") if call.executable]


def ends(event: Any) -> bool:
    """Whether an event holds anything that may be read as an end."""
    if isinstance(event, dict):
        return any(key in ("messageStop", "stopReason") for key in event) or any(map(ends, event.values()))
    return isinstance(event, list) and any(map(ends, event))


@recorded
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_recording_with_soup(data: st.DataObject) -> None:
    """A recorded stream with hostile events inside raises nothing and keeps every recorded call answered."""
    recording = data.draw(st.sampled_from(RECORDINGS))
    events = list(wrapped(recording))
    for _ in range(data.draw(st.integers(1, 4))):
        events.insert(data.draw(st.integers(0, len(events))), data.draw(EVENTS))

    finalizer = feed(WIRE, events)

    seen = Counter(call.name for call in finalizer.calls)
    assert seen >= Counter(call.name for call in recording.calls)
    WIRE.assistant_messages(finalizer.response, finalizer.calls)
