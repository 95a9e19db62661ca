"""Cohere v2: the cases, the recordings, the wire's own rules, the official client, and what goes back."""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from tests.streams import corpus
from toolrun import Diagnostic, FinishPolicy, Runner, StreamFinalizer, TextDelta, afinalize, finalize
from toolrun.wires.anthropic_messages import AnthropicMessages
from toolrun.wires.cohere_v2 import CohereV2
from toolrun.wires.openai_chat import OpenAIChat

from . import chat_kit as kit
from .chat_server import Provider, reply_of, sse, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    import cohere

    from tests.streams.corpus import Json, Recording

WIRE = CohereV2()
RECORDINGS = corpus.recordings("cohere-v2")
ASKED: Any = {"model": "command-a", "messages": [{"role": "user", "content": "?"}]}

recorded = pytest.mark.skipif(not RECORDINGS, reason=corpus.ABSENT)
each = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.id)
# The client leaves its inner generators unfinished at the last event, and trio says so.
unfinished = pytest.mark.filterwarnings(r"ignore:Async generator '(cohere|httpx|httpcore)\.:ResourceWarning")

START: Json = {
    "type": "message-start",
    "id": "r1",
    "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}},
}


def message(kind: str, index: int | None = None, **told: Any) -> Json:
    """An event with a part of the message."""
    return {"type": kind, **({} if index is None else {"index": index}), "delta": {"message": told}}


def call(id: str | None, name: str | None, arguments: Any = "") -> Json:
    function = {"name": name, "arguments": arguments}
    told = {"id": id, "type": "function", "function": {key: value for key, value in function.items() if value}}
    return {key: value for key, value in told.items() if value is not None}


def start(index: int | None, id: str | None, name: str | None, arguments: Any = "") -> Json:
    return message("tool-call-start", index, tool_calls=call(id, name, arguments))


def delta(index: int | None, text: str) -> Json:
    return message("tool-call-delta", index, tool_calls={"function": {"arguments": text}})


def stop(index: int) -> Json:
    return {"type": "tool-call-end", "index": index}


def end(reason: str | None = "TOOL_CALL", **told: Any) -> Json:
    return {"type": "message-end", "delta": {"finish_reason": reason, "usage": {}, **told}}


def one_call(index: int, id: str, name: str, *texts: str) -> list[Json]:
    return [start(index, id, name), *(delta(index, text) for text in texts), stop(index)]


# -- cases and recordings -------------------------------------------------------------------


@recorded
def test_a_generation_that_failed():
    """A recorded `ERROR` end is reported with the provider's words."""
    (recording,) = (found for found in RECORDINGS if found.id == "lccohere-cassettes-test-sql-agent")
    finalizer = StreamFinalizer(WIRE)
    told = [item for event in recording.events for item in finalizer.feed(event)]

    assert [(item.code, item.message) for item in told if isinstance(item, Diagnostic)] == [
        (
            "stream_error",
            "your request resulted in an invalid tool generation. Try updating the messages or tool definitions",
        )
    ]
    assert finalizer.response.finish_reason == "ERROR"


# -- calls ----------------------------------------------------------------------------------


def got_from(*events: Json) -> list[tuple[str | None, str | None, str, bool]]:
    """Id (None for a synthetic one), name, raw text and whether it may run."""
    calls = finalize([START, *events], wire=WIRE)
    return [(None if got.synthetic_id else got.id, got.name, got.raw_arguments, got.executable) for got in calls]


def test_two_calls_in_one_event():
    """A list with several calls at one index: ids and names tell them apart."""
    both = message("tool-call-start", 0, tool_calls=[call("a", "f", '{"x":1}'), call("b", "g", "{}")])

    assert got_from(both, end()) == [("a", "f", '{"x":1}', True), ("b", "g", "{}", True)]


def test_events_without_an_index():
    """Without indexes a delta goes on with the last call."""
    events = [start(None, "a", "f"), delta(None, '{"x"'), delta(None, ":1}"), start(None, "b", "g"), delta(None, "{}")]

    assert got_from(*events, end()) == [("a", "f", '{"x":1}', True), ("b", "g", "{}", True)]


def test_deltas_that_interleave():
    """The index says whose a delta is; it need not begin at 0."""
    events = [
        start(5, "a", "f"),
        start(9, "b", "g"),
        delta(9, '{"y"'),
        delta(5, '{"x"'),
        delta(9, ":2}"),
        delta(5, ":1}"),
    ]

    assert got_from(*events, end()) == [("a", "f", '{"x":1}', True), ("b", "g", '{"y":2}', True)]


def test_a_start_that_comes_twice():
    """The same id is the same call."""
    events = [start(0, "a", "f"), start(0, "a", "f"), delta(0, "{}")]

    assert got_from(*events, end()) == [("a", "f", "{}", True)]


def test_arguments_in_the_start():
    """Text in the start is the first piece; an object is written down."""
    assert got_from(start(0, "a", "f", '{"x"'), delta(0, ":1}"), end()) == [("a", "f", '{"x":1}', True)]
    assert got_from(start(0, "a", "f", {"x": 1}), end()) == [("a", "f", '{"x": 1}', True)]


def test_calls_without_ids():
    """Each gets an id of its own."""
    calls = finalize([START, start(0, None, "f"), start(1, None, "f"), end()], wire=WIRE)

    assert [got.synthetic_id for got in calls] == [True, True]
    assert len({got.id for got in calls}) == 2


def test_a_call_that_lost_its_start():
    """Text without a name is a call that cannot run, and blank calls beside it may have lost theirs."""
    assert got_from(start(0, "a", "f"), delta(1, '{"x":1}'), end()) == [
        ("a", "f", "", False),
        (None, None, '{"x":1}', False),
    ]
    assert got_from(message("tool-call-start", 0), delta(0, "{}"), end()) == [(None, None, "{}", False)]
    assert got_from(message("tool-call-start", 0), end()) == [(None, None, "", False)]
    assert got_from(message("tool-call-delta", 0), message("tool-call-delta", 0, tool_calls=[{}]), end()) == []


# -- ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "runs", "run_held"),
    [
        ("TOOL_CALL", True, True),
        ("COMPLETE", True, True),
        ("STOP_SEQUENCE", True, True),
        ("MAX_TOKENS", False, True),
        ("ERROR", False, False),
        ("TIMEOUT", False, False),
    ],
)
def test_finish_reasons(reason: str, runs: bool, run_held: bool):
    """Only a finish that says so lets a whole call run."""
    events = [START, *one_call(0, "a", "f", "{}"), end(reason)]

    assert [got.executable for got in finalize(events, wire=WIRE)] == [runs]
    held = finalize(events, wire=WIRE, policy=FinishPolicy(run_held={"length"}))
    assert [got.executable for got in held] == [run_held]


@pytest.mark.parametrize("text", ["{}", ""])
def test_the_end_of_a_call_proves_nothing(text: str):
    """A stream that was cut after `tool-call-end` runs nothing."""
    (got,) = finalize([START, *one_call(0, "a", "f", text)], wire=WIRE)

    assert (got.status.value, got.code, got.executable) == ("incomplete", "no_finish", False)


def test_an_end_without_a_reason():
    """`message-end` is the terminator."""
    (got,) = finalize([START, *one_call(0, "a", "f", "{}"), end(None)], wire=WIRE)

    assert (got.status.value, got.code, got.executable) == ("ok", "finish_inferred", True)


@pytest.mark.parametrize("reason", ["TOOL_CALL", None])
def test_an_end_with_an_error(reason: str | None):
    """An error beside a good reason: nothing runs."""
    (got,) = finalize([START, *one_call(0, "a", "f", "{}"), end(reason, error="no")], wire=WIRE)

    assert (got.status.value, got.executable) == ("incomplete", False)


@pytest.mark.parametrize("error", [{"type": "error", "message": "no"}, {"id": "r", "message": "no"}])
def test_error_events(error: Json):
    """An error in the stream leaves calls incomplete and is reported."""
    finalizer = StreamFinalizer(WIRE)
    told = [item for event in (START, *one_call(0, "a", "f", "{}"), error) for item in finalizer.feed(event)]
    finalizer.close()

    assert [(got.status.value, got.code) for got in finalizer.calls] == [("incomplete", "stream_error")]
    assert [(item.code, item.message) for item in told if isinstance(item, Diagnostic)] == [("stream_error", "no")]


def test_a_second_message_cuts_the_first():
    """A server that began anew left the first call unfinished."""
    first, second = finalize(
        [START, *one_call(0, "a", "f", "{}"), START, *one_call(0, "b", "f", "{}"), end()], wire=WIRE
    )

    assert (first.executable, second.executable) == (False, True)


# -- the rest of the message ----------------------------------------------------------------

CITATION: Json = {"start": 0, "end": 3, "text": "Sun", "sources": [{"type": "tool", "id": "a:0"}]}
RICH = [
    START,
    message("tool-plan-delta", tool_plan="I will "),
    message("tool-plan-delta", tool_plan="look."),
    message("content-start", 0, content={"type": "thinking", "thinking": "H"}),
    message("content-delta", 0, content={"thinking": "m."}),
    {"type": "content-end", "index": 0},
    message("content-start", 1, content={"type": "text", "text": ""}),
    message("content-delta", 1, content={"text": "Sun"}),
    message("citation-start", 0, citations=CITATION),
    {"type": "citation-end", "index": 0},
    message("content-delta", 1, content={"text": "ny."}),
    {"type": "content-end", "index": 1},
    *one_call(0, "a", "f", '{"x":', " 1}"),
    {"type": "debug", "prompt": "?"},
    end(usage={"tokens": {"input_tokens": 5, "output_tokens": 7}}),
]
RICH_MESSAGE: Json = {
    "role": "assistant",
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}],
    "tool_plan": "I will look.",
    "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Sunny."}],
    "citations": [CITATION],
}
RICH_RESPONSE: Json = {
    "id": "r1",
    "finish_reason": "TOOL_CALL",
    "message": RICH_MESSAGE,
    "usage": {"tokens": {"input_tokens": 5, "output_tokens": 7}},
}


@pytest.mark.parametrize("source", [RICH, RICH_RESPONSE], ids=["stream", "whole"])
async def test_a_message_goes_back_as_it_came(source: Any):
    """Plan, thoughts, text, citations and calls, streamed or whole."""
    async with Runner(kit.registry("f")) as runner:
        turn = await runner.run(source, wire=WIRE)

    assert turn.messages() == [RICH_MESSAGE, {"role": "tool", "tool_call_id": "a", "content": '{"x":1}'}]
    assert turn.text == "Sunny."
    assert turn.response.id == "r1"
    assert turn.usage == {"tokens": {"input_tokens": 5, "output_tokens": 7}}
    assert turn.diagnostics == ()


def test_the_plan_is_a_thought():
    """Listeners get plan and thinking as reasoning."""
    finalizer = StreamFinalizer(WIRE)
    told = [item for event in RICH for item in finalizer.feed(event)]

    assert [(item.kind, item.text) for item in told if isinstance(item, TextDelta)] == [
        ("reasoning", "I will "),
        ("reasoning", "look."),
        ("reasoning", "H"),
        ("reasoning", "m."),
        ("text", "Sun"),
        ("text", "ny."),
    ]


async def test_a_plan_alone_is_no_message():
    """A plan that nothing follows cannot be sent back; neither can an empty message."""
    plan = message("tool-plan-delta", tool_plan="I will look.")
    empty = message("content-start", 0, content={"type": "text", "text": ""})

    assert await kit.messages_of([START, plan, end("ERROR")], WIRE) == []
    assert await kit.messages_of([START, empty, end("COMPLETE")], WIRE) == []


async def test_more_on_a_call():
    """What else the provider put on a call goes back on it."""
    more = {**call("a", "f", "{}"), "signature": "s", "nothing": None}

    (assistant, _) = await kit.messages_of([message("tool-call-start", 0, tool_calls=more), end()], WIRE, "f")

    assert assistant["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "signature": "s"}
    ]


async def test_content_without_a_start():
    """A delta that nothing announced says itself what it is; one without an index goes on."""
    events = [message("content-delta", 3, content={"text": "a"}), message("content-delta", content=[{"text": "b"}])]

    (assistant,) = await kit.messages_of([*events, end("COMPLETE")], WIRE)

    assert assistant == {"role": "assistant", "content": [{"type": "text", "text": "ab"}]}


# -- recognising ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        *((event, event["type"] != "debug") for event in RICH),
        (RICH_RESPONSE, True),
        ({"finish_reason": "COMPLETE", "message": "x"}, False),
        ({"message": {"role": "assistant"}, "done": True}, False),
        ({"type": "message_start", "message": {}}, False),
        ({"type": ["message-start"]}, False),
        ({"message": "unauthorized"}, False),
        ({}, False),
    ],
)
def test_recognises(event: Json, expected: bool):
    """Types of this protocol's own, and whole responses."""
    assert WIRE.recognises(event) is expected


@recorded
def test_recognises_no_other_protocol():
    """Every event of these recordings is this wire's alone, and none of any other recording is."""
    others = (OpenAIChat(), AnthropicMessages())
    for recording in RECORDINGS:
        for event in recording.objects:
            assert WIRE.recognises(event)
            assert not any(other.recognises(event) for other in others)
    for recording in corpus.recordings_of_others("cohere-v2"):
        assert not any(WIRE.recognises(event) for event in recording.objects), recording.id


# -- the official client --------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Provider]:
    with Provider() as running:
        yield running


@pytest.fixture
def client(server: Provider) -> Iterator[cohere.ClientV2]:
    import cohere
    import httpx

    with httpx.Client(trust_env=False) as http:
        yield cohere.ClientV2(api_key="k", base_url=server.url, httpx_client=http)


@pytest.fixture
async def async_client(anyio_backend: str, server: Provider) -> Any:
    import cohere
    import httpx

    async with httpx.AsyncClient(trust_env=False) as http:
        yield cohere.AsyncClientV2(api_key="k", base_url=server.url, httpx_client=http)


@recorded
@each
def test_sdk_stream(recording: Recording, server: Provider, client: cohere.ClientV2):
    """The client's events over the recorded bytes finalize to the same calls."""
    server.will_answer(reply_of(recording))

    corpus.check(finalize(client.chat_stream(**ASKED), wire=WIRE), recording.calls)


@recorded
@unfinished
@each
async def test_sdk_async_stream(recording: Recording, server: Provider, async_client: cohere.AsyncClientV2):
    """The same for the async client."""
    server.will_answer(reply_of(recording))

    corpus.check(await afinalize(async_client.chat_stream(**ASKED), wire=WIRE), recording.calls)


@unfinished
async def test_agent_loop(server: Provider, async_client: cohere.AsyncClientV2):
    """A stream is run, and what goes back is what the client sends."""
    done = [message("content-start", 0, content={"type": "text", "text": "Done."}), end("COMPLETE")]
    server.will_answer(sse(*RICH), sse(START, *done))
    messages: list[Any] = list(ASKED["messages"])

    async with Runner(kit.registry("f")) as runner:
        for _ in range(2):
            turn = await runner.run(async_client.chat_stream(model="m", messages=messages), wire=WIRE)
            messages += turn.messages()

    assert messages[1:] == [
        RICH_MESSAGE,
        {"role": "tool", "tool_call_id": "a", "content": '{"x":1}'},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ]
    assert server.requests[-1].body["messages"] == messages[:3]
    assert not turn.needs_reply


@pytest.mark.parametrize("entry", ["finalize", "run", "run_sync"])
async def test_sync_stream(server: Provider, client: cohere.ClientV2, entry: str):
    """A stream of the sync client goes into every entry."""
    server.will_answer(sse(*RICH))
    stream = client.chat_stream(**ASKED)

    if entry == "finalize":
        got = finalize(stream, wire=WIRE)
    elif entry == "run":
        got = (await Runner(kit.registry("f")).run(stream, wire=WIRE)).calls
    else:
        got = Runner(kit.registry("f")).run_sync(stream, wire=WIRE).calls

    assert [(item.id, item.raw_arguments, item.executable) for item in got] == [("a", '{"x": 1}', True)]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_whole_response(server: Provider, client: Any, async_client: Any, asynchronous: bool):
    """A response of the client that was not streamed goes in at the same door, and goes back as it came."""
    server.will_answer(whole(RICH_RESPONSE))
    response = await async_client.chat(**ASKED) if asynchronous else client.chat(**ASKED)

    async with Runner(kit.registry("f")) as runner:
        turn = await runner.run(response, wire=WIRE)

    assert turn.messages() == [RICH_MESSAGE, {"role": "tool", "tool_call_id": "a", "content": '{"x":1}'}]
    assert turn.text == "Sunny."
    assert WIRE.recognises(vars(response))


# -- history --------------------------------------------------------------------------------


@recorded
@pytest.mark.parametrize(
    "recording", [recording for recording in RECORDINGS if recording.echo], ids=lambda recording: recording.id
)
async def test_echo(recording: Recording):
    """What goes back means what a real client sent next and was answered 200 for."""
    assert recording.echo is not None
    names = [want.name for want in recording.calls]
    assistant, *results = await kit.messages_of(recording.events, WIRE, *names)

    assert [meaning(assistant)] == [meaning(sent) for sent in recording.echo["assistant"]]
    assert [(item["role"], item["tool_call_id"]) for item in results] == [
        (item["role"], item["tool_call_id"]) for item in recording.echo["results"]
    ]
    assert all(isinstance(item["content"], str) for item in results)
    assert all(list(item) == ["role", "tool_call_id", "content"] for item in results)


def meaning(sent: Json) -> Json:
    """Spacing of arguments and empty texts do not matter; that client drops the plan, which is more than it should."""
    told = copy.deepcopy(sent)
    told.pop("tool_plan", None)
    told["content"] = [block for block in told.get("content", []) if block.get("text")]
    for entry in told["tool_calls"]:
        entry["function"]["arguments"] = json.loads(entry["function"]["arguments"])
    return told


STATUSES = [
    START,
    *one_call(0, "a", "f", '{"x": 1}'),
    *one_call(1, "b", "f", '{"x": @}'),
    message("tool-call-start", 2, tool_calls={"id": "c"}),
    delta(2, '{"x": 2}'),
    message("tool-call-start", 3, tool_calls=call(None, "bad name!", "[1]")),
    *one_call(4, "e", "f"),
    end(),
]
CUT = [START, *one_call(0, "a", "f", '{"x": 1'), *one_call(1, "b", "f")]


@pytest.mark.parametrize(
    ("events", "arguments"),
    [
        (
            STATUSES,
            [
                '{"x": 1}',
                '{"invalid_arguments": "{\\"x\\": @}"}',
                '{"x": 2}',
                '{"invalid_arguments": "[1]"}',
                '{"invalid_arguments": ""}',
            ],
        ),
        (CUT, ['{"invalid_arguments": "{\\"x\\": 1"}', '{"invalid_arguments": ""}']),
    ],
    ids=["statuses", "cut"],
)
async def test_every_status_goes_back(
    server: Provider, client: cohere.ClientV2, events: list[Json], arguments: list[str]
):
    """Good, malformed, nameless and cut calls go back in a form that the client takes, each with one result."""
    messages = await kit.messages_of(events, WIRE, "f")
    server.will_answer(sse(START, end("COMPLETE")))
    asked: list[Any] = [*ASKED["messages"], *messages]
    finalize(client.chat_stream(model="m", messages=asked), wire=WIRE)

    assistant, *results = messages
    assert server.requests[-1].body["messages"] == asked
    assert [entry["function"]["arguments"] for entry in assistant["tool_calls"]] == arguments
    assert [entry["id"] for entry in assistant["tool_calls"]] == [item["tool_call_id"] for item in results]
    names = [entry["function"]["name"] for entry in assistant["tool_calls"]]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)


@pytest.mark.parametrize("events", [STATUSES, CUT, RICH], ids=["statuses", "cut", "rich"])
async def test_the_clients_types_accept_history(events: list[Json]):
    """Each message is one of the types that the client declares for requests, with nothing left over."""
    import cohere.types as models
    from pydantic import TypeAdapter

    for written in await kit.messages_of(events, WIRE, "f"):
        kind = models.AssistantChatMessageV2 if written["role"] == "assistant" else models.ToolChatMessageV2
        read = TypeAdapter(kind).validate_python(written)
        assert read.model_dump(exclude_none=True, exclude_unset=True) == written
        assert not read.model_extra


# -- soup -----------------------------------------------------------------------------------

WORDS = (
    "type", "delta", "message", "index", "id", "tool_calls", "function", "name", "arguments", "tool_plan", "content",
    "text", "thinking", "citations", "finish_reason", "usage", "error", "message-start", "tool-call-start",
    "tool-call-delta", "content-start", "content-delta", "message-end", "TOOL_CALL", "COMPLETE",
)  # fmt: skip


@kit.UNHURRIED
@given(kit.soup((RICH, STATUSES, CUT, [RICH_RESPONSE]), WORDS))
def test_soup(events: list[Any]):
    """Whatever comes, nothing raises, and nothing runs without an end."""
    kit.check_survives(WIRE, events)
