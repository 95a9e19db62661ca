"""Bedrock InvokeModel: what is inside the chunks, boto3's own objects, history of both kinds, hostile events."""

from __future__ import annotations

import base64
import functools
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.streams import corpus
from toolrun import FinishPolicy, Runner, StreamFinalizer, finalize
from toolrun._core.assembler import Assembler
from toolrun.abc import ToolResult
from toolrun.wires.anthropic_messages import AnthropicMessages
from toolrun.wires.bedrock_converse import BedrockConverse
from toolrun.wires.bedrock_invoke import BedrockInvoke
from toolrun.wires.openai_chat import OpenAIChat

from . import bedrock
from .bedrock import (
    START,
    Bedrock,
    a_call,
    call_start,
    collect,
    delta,
    diagnostics,
    feed,
    meaning,
    noting,
    piece,
    runs,
    stop,
    whole_response,
    wrapped,
)

if TYPE_CHECKING:
    from tests.streams.corpus import Recording

Json = dict[str, Any]

WIRE = BedrockInvoke()
RECORDINGS = corpus.recordings("bedrock-invoke")

recorded = pytest.mark.skipif(not RECORDINGS, reason=corpus.ABSENT)
each = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.id)


@pytest.fixture(scope="module")
def server():
    with Bedrock() as running:
        yield running


# -- writing events down --------------------------------------------------------------------


def chunk(inner: Any, form: str = "boto3") -> Json:
    """One inner event, as boto3 yields it or as recorders keep it."""
    data = inner if isinstance(inner, bytes) else json.dumps(inner).encode()
    text = base64.b64encode(data).decode()
    return {
        "boto3": {"chunk": {"bytes": data}},
        "recorded": {"event": "chunk", "data": {"bytes": text, "p": "abcdef"}},
        "opened": {"bytes": text, "p": "abcdef"},
        "text": {"chunk": {"bytes": data.decode(errors="replace")}},
        "inner": inner,
    }[form]


FORMS = ("boto3", "recorded", "opened", "text", "inner")


def claude(*inputs: str, id: str = "toolu_1", reason: str | None = "tool_use") -> list[Json]:
    """The events of a response of Anthropic's with one call."""
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}
        for text in inputs
    ]
    end = [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}]
    return [
        {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": []}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": id, "name": "f", "input": {}},
        },
        *deltas,
        {"type": "content_block_stop", "index": 0},
        *([*end, {"type": "message_stop"}] if reason else []),
    ]


def nova(*inputs: Any, id: str = "t1", reason: str | None = "tool_use") -> list[Json]:
    """The events of a response of Nova's with one call."""
    return [START, *a_call(0, id, "f", *inputs), *([stop(reason)] if reason else [])]


INSIDE = pytest.mark.parametrize("make", [claude, nova], ids=["claude", "nova"])


def messages_of(finalizer: StreamFinalizer) -> list[Json]:
    """The messages of a response whose calls all succeed."""
    results = [ToolResult(call, "done", is_error=False) for call in finalizer.calls if not call.provider_executed]
    return [*WIRE.assistant_messages(finalizer.response, finalizer.calls), *WIRE.result_messages(results)]


# -- recordings -----------------------------------------------------------------------------


@recorded
@each
def test_recording_garbled(recording: Recording) -> None:
    """With any one chunk of a call unreadable nothing runs, though the rest may look whole."""
    for place, line in enumerate(recording.events):
        inner = base64.b64decode(line["data"]["bytes"])
        if b"partial_json" not in inner and b'"input"' not in inner:
            continue
        garbled = [*recording.events]
        garbled[place] = {"event": "chunk", "data": {"bytes": base64.b64encode(inner[:-2]).decode()}}
        assert not [call for call in finalize(garbled, wire=WIRE) if call.executable]


@recorded
@each
def test_recording_through_boto3(recording: Recording, server: Bedrock) -> None:
    """boto3's own event stream feeds the finalizer."""
    corpus.check(finalize(server.invoke_stream(wrapped(recording)), wire=WIRE), recording.calls)


@recorded
@each
async def test_recording_run(recording: Recording, server: Bedrock) -> None:
    """A runner reads boto3's stream and runs each call once; results answer the calls, in the form that is inside."""
    ran: list[Any] = []

    async with Runner(noting(ran, [call.name for call in recording.calls]), max_concurrency=1) as runner:
        turn = await runner.run(server.invoke_stream(wrapped(recording)), wire=WIRE)

    assert ran == runs(recording)
    said = meaning(turn.messages())
    assert [block[1] for role, blocks in said for block in blocks if block[0] == "result"] == [
        call.id for call in recording.calls
    ]
    check_form(turn.messages(), server)


def check_form(messages: list[Json], server: Bedrock) -> None:
    """Hold messages against the request types of the SDK whose form they are in, and against plain JSON."""
    for message in messages:
        assert json.loads(json.dumps(message)) == message
        for block in message["content"]:
            if "type" in block:
                adapter(block["type"]).validate_python(block)
    if not any("type" in block for message in messages for block in message["content"]):
        assert server.send_converse(messages) == messages


@functools.cache
def adapter(kind: str) -> TypeAdapter[Any]:
    from anthropic import types  # the SDK takes long to import

    return TypeAdapter(
        {
            "text": types.TextBlockParam,
            "tool_use": types.ToolUseBlockParam,
            "tool_result": types.ToolResultBlockParam,
        }[kind]
    )


@recorded
@pytest.mark.parametrize("recording", [each for each in RECORDINGS if each.echo], ids=lambda recording: recording.id)
def test_echo(recording: Recording) -> None:
    """The next request says what the recorded client's next request said, which was answered 200."""
    assert recording.echo is not None
    finalizer = feed(WIRE, recording.events)
    blocks = [block.get("toolResult", block) for block in recording.echo["results"][0]["content"]]
    texts = [bedrock.texts(block["content"]) for block in blocks]
    results = [ToolResult(call, text, is_error=False) for call, text in zip(finalizer.calls, texts, strict=True)]

    messages = [*WIRE.assistant_messages(finalizer.response, finalizer.calls), *WIRE.result_messages(results)]

    assert meaning(messages) == meaning([*recording.echo["assistant"], *recording.echo["results"]])


# -- chunks ---------------------------------------------------------------------------------


@INSIDE
@pytest.mark.parametrize("form", FORMS)
def test_forms(make: Any, form: str) -> None:
    """Bytes, base64 text, JSON text and inner events that were opened already are read alike."""
    (call,) = finalize([chunk(inner, form) for inner in make('{"a"', ":1}")], wire=WIRE)

    assert (call.raw_arguments, call.arguments, call.executable) == ('{"a":1}', {"a": 1}, True)


@INSIDE
@pytest.mark.parametrize(
    "broken",
    [b"", b"{", b"\xff\xfe", b"5", b"[]", b"null", b"not JSON", b'"text"', b"[" * 100_000],
    ids=lambda data: repr(data[:8]),
)
def test_unreadable_chunk(make: Any, broken: bytes) -> None:
    """A chunk that cannot be read may have held a piece of any call: nothing runs, and the calls are still listed."""
    events = [chunk(inner) for inner in make('{"n": 1', "}")]
    lost = [*events[:3], chunk(broken), *events[3:]]
    finalizer = feed(WIRE, lost)
    (call,) = finalizer.calls

    assert (call.raw_arguments, call.status.value, call.executable) == ('{"n": 1}', "incomplete", False)
    assert [diagnostic.code for diagnostic in diagnostics(WIRE, lost)] == ["lost_event"]


@pytest.mark.parametrize(
    "empty",
    [{"chunk": {}}, {"chunk": None}, {"chunk": 5}, {"chunk": {"bytes": None}}, {"bytes": 5}, {"type": "chunk"}],
    ids=str,
)
def test_chunk_without_bytes(empty: Json) -> None:
    """A chunk without bytes is a lost one."""
    events = [chunk(inner) for inner in claude('{"n": 1', "}")]

    (call,) = finalize([*events[:3], empty, *events[3:]], wire=WIRE)

    assert not call.executable


def test_decoded_piece_of_nova() -> None:
    """What holds for pieces of Converse holds inside chunks: a piece that is JSON by itself is its text."""
    (call,) = finalize([chunk(inner) for inner in nova('{"n": ', 104857600, "}")], wire=WIRE)

    assert call.arguments == {"n": 104857600}


def test_interleaved_blocks_of_nova() -> None:
    """Pieces of two calls, mixed, go to the call of their index."""
    events = [START, call_start(22, "a", "f"), call_start(24, "b", "g"), piece(24, '{"y"'), piece(22, '{"x":1}')]
    calls = finalize([chunk(inner) for inner in [*events, piece(24, ":2}"), stop()]], wire=WIRE)

    assert [(call.id, call.arguments) for call in calls] == [("a", {"x": 1}), ("b", {"y": 2})]


def test_neither_inside() -> None:
    """What neither protocol knows is reported once, and nothing runs."""
    foreign = [chunk({"outputText": "Hello", "completionReason": None}), chunk({"outputText": "!"})]

    assert finalize(foreign, wire=WIRE) == ()
    assert [(diagnostic.code, "outputText" in diagnostic.message) for diagnostic in diagnostics(WIRE, foreign)] == [
        ("unknown_wire", True)
    ]


@INSIDE
@pytest.mark.parametrize("form", ["wrapped", "recorded", "typed"])
def test_exception(make: Any, form: str) -> None:
    """An exception beside the chunks ends the stream: nothing runs."""
    body = {"message": "no more"}
    event = {
        "wrapped": {"modelStreamErrorException": body},
        "recorded": {"event": "modelStreamErrorException", "data": body},
        "typed": {"type": "modelStreamErrorException", **body},
    }[form]
    events = [*(chunk(inner) for inner in make('{"a":1}', reason=None)), event]
    (call,) = finalize(events, wire=WIRE)

    assert (call.code, call.executable) == ("stream_error", False)
    assert [diagnostic.message for diagnostic in diagnostics(WIRE, events)] == ["modelStreamErrorException: no more"]


@INSIDE
def test_exception_inside(make: Any) -> None:
    """So does one inside a chunk."""
    inner = [*make('{"a":1}', reason=None), {"throttlingException": {"message": "slow down"}}]
    (call,) = finalize([chunk(event) for event in inner], wire=WIRE)

    assert (call.code, call.executable) == ("stream_error", False)


def test_error_inside() -> None:
    """An error event of Anthropic's inside a chunk ends the stream, also before anything else."""
    error = chunk({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    (call,) = finalize([*(chunk(inner) for inner in claude('{"a":1}', reason=None)), error], wire=WIRE)

    assert (call.code, call.executable) == ("stream_error", False)
    assert [diagnostic.message for diagnostic in diagnostics(WIRE, [error])] == ["Overloaded"]


@pytest.mark.parametrize(
    "name",
    ["internalServerException", "modelStreamErrorException", "modelTimeoutException", "throttlingException"],
)
@INSIDE
async def test_exception_through_boto3(make: Any, name: str, server: Bedrock) -> None:
    """boto3 raises it; the runner runs nothing and gives the turn, whose messages can be sent."""
    events = [*(chunk(inner) for inner in make('{"a":1}', reason=None)), {name: {"message": "no more"}}]
    ran: list[Any] = []

    async with Runner(noting(ran, "f"), on_stream_error="return") as runner:
        turn = await runner.run(server.invoke_stream(events), wire=WIRE)

    assert ran == []
    assert [(outcome.status, outcome.call.status.value) for outcome in turn.outcomes] == [("refused", "incomplete")]
    check_form(turn.messages(), server)


@INSIDE
def test_connection_breaks(make: Any, server: Bedrock) -> None:
    """Without its last bytes the stream has no stop reason, and nothing runs."""
    events = [chunk(inner) for inner in make('{"a":1}')]
    lost = len(bedrock.event_stream(events[-1:])) + 1

    (call,) = finalize(server.invoke_stream(events, missing=lost), wire=WIRE)

    assert not call.executable


# -- whole bodies ---------------------------------------------------------------------------

WHOLE_CLAUDE: Json = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
WHOLE_NOVA = whole_response(
    [{"text": "Let me look."}, {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}}], "tool_use"
)


@pytest.mark.parametrize("body", [WHOLE_CLAUDE, WHOLE_NOVA], ids=["claude", "nova"])
def test_whole_body(body: Json, server: Bedrock) -> None:
    """boto3's streaming body goes in as it is, read, or decoded; the message goes back as it came."""
    server.serve_whole("model", body)

    def answered() -> Any:
        return server.client.invoke_model(modelId="model", body=b"{}")["body"]

    for source in (answered(), [answered().read()], [json.loads(answered().read())]):
        finalizer = feed(WIRE, source)
        (call,) = finalizer.calls
        assert (call.name, call.arguments, call.executable) == ("f", {"a": 1}, True)
        content = body["content"] if "content" in body else body["output"]["message"]["content"]
        assert WIRE.assistant_messages(finalizer.response, finalizer.calls) == [
            {"role": "assistant", "content": content}
        ]


@pytest.mark.parametrize("body", [WHOLE_CLAUDE, WHOLE_NOVA], ids=["claude", "nova"])
async def test_whole_body_run(body: Json, server: Bedrock) -> None:
    """A runner reads the streaming body, closes it, and answers the call."""
    server.serve_whole("model", body)
    source = server.client.invoke_model(modelId="model", body=b"{}")["body"]
    ran: list[Any] = []

    async with Runner(noting(ran, "f")) as runner:
        turn = await runner.run(source, wire=WIRE)

    assert ran == [("f", {"a": 1})]
    assert meaning(turn.messages())[-1] == ("user", [("result", turn.calls[0].id, "done", False)])
    check_form(turn.messages(), server)


@pytest.mark.parametrize(
    "body",
    [{**WHOLE_CLAUDE, "stop_reason": None}, {**WHOLE_NOVA, "stopReason": None}],
    ids=["claude", "nova"],
)
def test_whole_body_without_reason(body: Json) -> None:
    """A body without a stop reason is not finished."""
    (call,) = finalize([json.dumps(body).encode()], wire=WIRE)

    assert (call.code, call.executable) == ("no_finish", False)


# -- history --------------------------------------------------------------------------------


def test_history_of_claude() -> None:
    """Anthropic's form, if that is what was inside."""
    finalizer = feed(WIRE, [chunk(inner) for inner in claude('{"a":1}')])

    assert messages_of(finalizer) == [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}]},
    ]


def test_history_of_nova() -> None:
    """Converse's form, if Nova was inside."""
    finalizer = feed(WIRE, [chunk(inner) for inner in nova('{"a":1}')])

    assert messages_of(finalizer) == [
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "done"}]}}]},
    ]


def test_history_of_nova_without_start() -> None:
    """Converse's form, also if a piece began the call."""
    first = delta(0, toolUse={"toolUseId": "t1", "name": "f", "input": "{}"})

    assistant, result = messages_of(feed(WIRE, [chunk(inner) for inner in [START, first, stop()]]))

    assert assistant["content"] == [{"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}]
    assert result["content"] == [{"toolResult": {"toolUseId": "t1", "content": [{"text": "done"}]}}]


def test_history_of_texts() -> None:
    """Without a call the form is told by the blocks."""
    of_nova = [chunk(inner) for inner in [START, delta(0, text="Hel"), delta(1, text="lo"), stop("end_turn")]]
    cited = {"type": "text", "text": "Hello", "citations": [{"type": "char_location", "cited_text": "Hello"}]}
    of_claude = [chunk({**WHOLE_CLAUDE, "content": [cited], "stop_reason": "end_turn"})]

    assert messages_of(feed(WIRE, of_nova)) == [{"role": "assistant", "content": [{"text": "Hello"}]}]
    assert messages_of(feed(WIRE, of_claude)) == [
        {"role": "assistant", "content": [cited]},
    ]
    assert messages_of(feed(WIRE, [])) == []


def test_reasoning_of_claude_goes_back() -> None:
    """Thinking inside chunks goes back with its signature."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    content = [thinking, *WHOLE_CLAUDE["content"]]
    finalizer = feed(WIRE, [chunk({**WHOLE_CLAUDE, "content": content})])

    assert messages_of(finalizer)[0] == {"role": "assistant", "content": content}


@INSIDE
async def test_every_status_goes_back(make: Any, server: Bedrock) -> None:
    """Calls that are ok, malformed, cut or nameless go back in a form that the SDK's types take."""
    shapes: dict[str, list[Json]] = {
        "succeeded": make('{"a":1}'),
        "refused": make('{"a":'),
        "cut": make('{"a":', reason=None),
        "nameless": [json.loads(json.dumps(inner).replace('"name": "f"', '"name": ""')) for inner in make('{"a":1}')],
        "without id": [
            json.loads(json.dumps(inner).replace('"toolu_1"', "null").replace('"t1"', "null"))
            for inner in make('{"a":1}')
        ],
    }
    inputs = []
    ran: list[Any] = []
    async with Runner(noting(ran, "f"), repairs=()) as runner:
        for shape in shapes.values():
            turn = await runner.run([chunk(inner) for inner in shape], wire=WIRE)
            check_form(turn.messages(), server)
            assistant, results = meaning(turn.messages())
            assert [block[1] for block in results[1]] == [outcome.call.id for outcome in turn.outcomes]
            inputs += [block[2:] for block in assistant[1]]

    assert ran == [("f", {"a": 1}), ("f", {"a": 1})]
    assert inputs == [
        ("f", {"a": 1}),
        ("f", {"invalid_arguments": '{"a":'}),
        ("f", {"invalid_arguments": '{"a":'}),
        ("unnamed_tool", {"a": 1}),
        ("f", {"a": 1}),
    ]


def test_paused_turn() -> None:
    """A paused turn of Anthropic's goes on when it is sent back; nothing else does."""
    assert WIRE.continues("pause_turn")
    assert not WIRE.continues("tool_use")
    assert not WIRE.continues(None)


def test_synthetic_ids() -> None:
    """Ids are of a form that both protocols take."""
    assert WIRE.synthetic_id("0123456789abcdef" * 2) == "toolu_bdrk_0123456789abcdef01234567"


# -- the seam -------------------------------------------------------------------------------


def test_recognises() -> None:
    """Chunks of bytes are recognised; what is inside, once opened, belongs to its own wire."""
    own = [chunk({}), chunk({}, "opened"), chunk({}, "text"), {"type": "chunk", "bytes": "e30=", "p": "a"}]
    foreign: list[Json] = [
        {"type": "chunk", "chunk": {"choices": []}},
        {"choices": []},
        {"type": "message_start", "message": {}},
        WHOLE_CLAUDE,
        WHOLE_NOVA,
        {"chunk": None},
        {},
    ]

    assert [WIRE.recognises(event) for event in own] == [True] * len(own)
    assert [WIRE.recognises(event) for event in foreign] == [False] * len(foreign)
    for other in (OpenAIChat(), AnthropicMessages(), BedrockConverse()):
        assert [other.recognises(event) for event in own] == [False] * len(own)


# -- hostile events -------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.floats(), st.text(max_size=3), st.binary(max_size=4)
)
KEYS = st.sampled_from(
    (
        "chunk", "bytes", "type", "message", "content_block", "index", "delta", "content", "messageStart", "start",
        "contentBlockDelta", "contentBlockStart", "toolUse", "error", "internalServerException", "event", "data",
    )
)  # fmt: skip
SOUP = st.recursive(
    SCALARS | st.sampled_from(["chunk", "tool_use", "toolu_1", "e30="]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
)
PLAIN = st.sampled_from([*claude('{"a"', ":1}"), *nova('{"a"', ":1}"), WHOLE_CLAUDE, WHOLE_NOVA, {}, [], None, 5])
EVENTS = st.one_of(
    SOUP,
    st.builds(chunk, PLAIN, st.sampled_from(FORMS)),
    st.builds(lambda data: {"chunk": {"bytes": data}}, SOUP),
    st.builds(lambda data: {"bytes": data}, SOUP),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=10))
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


@recorded
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_recording_with_soup(data: st.DataObject) -> None:
    """A recorded stream with a hostile chunk inside raises nothing and keeps every recorded call."""
    recording = data.draw(st.sampled_from(RECORDINGS))
    events: list[Any] = [*wrapped(recording)]
    events.insert(data.draw(st.integers(1, len(events))), data.draw(EVENTS))

    finalizer = feed(WIRE, events)

    assert {call.id for call in recording.calls} <= {call.id for call in finalizer.calls}
    messages_of(finalizer)


def test_boto3_gives_bytes(server: Bedrock) -> None:
    """What the forms above stand for: boto3 yields chunks of bytes, and drops the padding."""
    inner = {"type": "message_stop"}
    payload = base64.b64encode(json.dumps(inner).encode()).decode()

    (event,) = collect(server.invoke_stream([{"chunk": {"bytes": payload, "p": "abcdef"}}]))

    assert event == chunk(inner)
