"""Ollama: the cases, the recordings, the wire's own rules, the official client, and what goes back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ollama
import pytest
from hypothesis import given

from tests.streams import corpus
from toolrun import Diagnostic, FinishPolicy, Runner, StreamFinalizer, StreamInterrupted, TextDelta, afinalize, finalize
from toolrun.wires.anthropic_messages import AnthropicMessages
from toolrun.wires.ollama import Ollama
from toolrun.wires.openai_chat import OpenAIChat

from . import chat_kit as kit
from .chat_server import Provider, ndjson, reply_of, whole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.streams.corpus import Json, Recording

WIRE = Ollama()
RECORDINGS = corpus.recordings("ollama")
ASKED: Any = {"model": "m", "messages": [{"role": "user", "content": "?"}]}

recorded = pytest.mark.skipif(not RECORDINGS, reason=corpus.ABSENT)
each = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.id)


def part(*calls: Json, content: str = "", **rest: Any) -> Json:
    """An event that is not the last."""
    message: Json = {"role": "assistant", "content": content, **rest}
    if calls:
        message["tool_calls"] = list(calls)
    return {"model": "m", "created_at": "2025-07-07T20:22:19Z", "message": message, "done": False}


def call(name: object, arguments: object = None, **rest: Any) -> Json:
    return {"function": {"name": name, **({} if arguments is None else {"arguments": arguments})}, **rest}


def last(reason: str | None = "stop", **rest: Any) -> Json:
    told = {**part(), "done": True, **rest}
    return told if reason is None else {**told, "done_reason": reason}


# -- cases and recordings -------------------------------------------------------------------


# -- calls ----------------------------------------------------------------------------------


def test_identical_calls_are_calls_of_their_own():
    """In one event or in several: each is sent once."""
    roll = call("roll", {"sides": 6})

    calls = finalize([part(roll, roll), part(roll), last()], wire=WIRE)

    assert [(got.name, got.arguments, got.executable) for got in calls] == [("roll", {"sides": 6}, True)] * 3
    assert [got.index for got in calls] == [0, 1, 2]
    assert len({got.id for got in calls}) == 3


def test_the_providers_index_starts_again_in_each_event():
    """Newer servers number the calls of a message; that says nothing across events."""
    one, two = ({"function": {"index": 0, "name": "f", "arguments": {"x": x}}} for x in (1, 2))

    calls = finalize([part(one), part(two), last()], wire=WIRE)

    assert [got.arguments for got in calls] == [{"x": 1}, {"x": 2}]


def test_ids_where_there_are_any():
    """A known id with the same call repeats it; with another one it is a call with an id of its own."""
    one, other = call("f", {"x": 1}, id="call_1"), call("f", {"x": 2}, id="call_1")

    calls = finalize([part(one), part(one), part(other), last()], wire=WIRE)

    assert [(got.arguments, got.synthetic_id) for got in calls] == [({"x": 1}, False), ({"x": 2}, True)]
    assert calls[0].id == "call_1"


@pytest.mark.parametrize(
    ("arguments", "raw", "status", "code"),
    [
        ({"a": [1, {"b": "é"}], "c": 1.0}, '{"a": [1, {"b": "é"}], "c": 1.0}', "ok", None),
        ({}, "{}", "ok", None),
        (None, "{}", "ok", None),
        ('{"x":1337}', '{"x":1337}', "ok", None),
        ("", "", "ok", None),
        ('{"x":', '{"x":', "parse_error", "truncated"),
        ('{"x":1,"x":2}', '{"x":1,"x":2}', "parse_error", "duplicate_key"),
        ([1], "[1]", "parse_error", "not_object"),
        (True, "true", "parse_error", "not_object"),
        ({"x": float("inf")}, '{"x": Infinity}', "parse_error", "non_finite"),
    ],
)
def test_arguments(arguments: object, raw: str, status: str, code: str | None):
    """An object is written down once, a string is the text itself, nothing at all is no arguments."""
    (got,) = finalize([part(call("f", arguments)), last()], wire=WIRE)

    assert (got.raw_arguments, got.status.value, got.code) == (raw, status, code)


@pytest.mark.parametrize(
    "entry", [{"name": "f", "arguments": {"x": 1}}, {"function": {"name": "f", "arguments": {"x": 1}}}]
)
@pytest.mark.parametrize("form", [lambda entry: entry, lambda entry: [entry]])
def test_shapes_of_a_call(entry: Json, form: Any):
    """A call may stand alone, and without its envelope."""
    event = {**part(), "message": {"role": "assistant", "tool_calls": form(entry)}}

    (got,) = finalize([event, last()], wire=WIRE)

    assert (got.name, got.arguments, got.executable) == ("f", {"x": 1}, True)


def test_a_whole_response():
    """A response that is not streamed is one event that is done; its calls count before its end."""
    response = {**last(), "message": part(call("f", {"x": 1}))["message"]}

    (got,) = finalize(response, wire=WIRE)

    assert (got.arguments, got.executable, got.finish_reason) == ({"x": 1}, True, "stop")


def test_a_nameless_call():
    """It is refused, and it does not disturb the one beside it, whose arguments are its own."""
    calls = finalize([part(call(None, {"x": 1}), call("f", {"x": 2}), {}), last()], wire=WIRE)

    assert [(got.name, got.code, got.executable) for got in calls] == [
        (None, "nameless", False),
        ("f", None, True),
        (None, "nameless", False),
    ]


# -- ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "runs", "run_held"),
    [("stop", True, True), ("length", False, True), ("load", False, False), ("unload", False, False)],
)
def test_done_reasons(reason: str, runs: bool, run_held: bool):
    """Only `stop` says that all was said."""
    events = [part(call("f", {})), last(reason)]

    assert [got.executable for got in finalize(events, wire=WIRE)] == [runs]
    held = finalize(events, wire=WIRE, policy=FinishPolicy(run_held={"length"}))
    assert [got.executable for got in held] == [run_held]


@pytest.mark.parametrize("reason", [None, ""])
def test_done_without_a_reason(reason: str | None):
    """Older servers give no reason: done is the terminator."""
    (got,) = finalize([part(call("f", {})), {**last(None), "done_reason": reason}], wire=WIRE)

    assert (got.code, got.executable) == ("finish_inferred", True)


@pytest.mark.parametrize("done", ["true", 1, None, [], {}])
def test_only_true_is_done(done: object):
    """Anything else is not an end."""
    (got,) = finalize([part(call("f", {})), {**last(), "done": done}], wire=WIRE)

    assert (got.code, got.executable) == ("no_finish", False)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"error": "model runner has unexpectedly stopped"}, "model runner has unexpectedly stopped"),
        ({"error": {"message": "no"}}, "no"),
        ({"error": "no", "done": True, "done_reason": "stop"}, "no"),
        (
            {"error parsing tool call": "invalid character 'c'"},
            """not a part of a chat: {"error parsing tool call": "invalid character 'c'"}""",
        ),
        ({"message": "no"}, 'not a part of a chat: {"message": "no"}'),
    ],
)
def test_errors(event: Json, message: str):
    """An error, also one that is not called so, leaves calls incomplete and is reported."""
    finalizer = StreamFinalizer(WIRE)
    told = [*finalizer.feed(part(call("f", {}))), *finalizer.feed(event), *finalizer.close()]

    assert [(got.status.value, got.code) for got in finalizer.calls] == [("incomplete", "stream_error")]
    assert [(item.code, item.message) for item in told if isinstance(item, Diagnostic)] == [("stream_error", message)]


@pytest.mark.parametrize("event", [{}, {"done": False}, {"model": "m", "response": "text", "done": False}])
def test_events_that_are_no_errors(event: Json):
    """Signs of life and events of the sibling API say nothing."""
    finalizer = StreamFinalizer(WIRE)
    finalizer.feed(part(call("f", {})))
    finalizer.feed(event)
    finalizer.feed(last())
    finalizer.close()

    assert [got.executable for got in finalizer.calls] == [True]


# -- the rest of the message ----------------------------------------------------------------

COUNTS = {"total_duration": 5, "prompt_eval_count": 3, "eval_count": 2}
RICH = [
    part(thinking="I must "),
    part(thinking="add."),
    part(content="Add"),
    part(content="ing."),
    part(call("add", {"a": 2})),
    part(call("add", {"a": 3}, id="call_9")),
    last(**COUNTS),
]
RICH_MESSAGE: Json = {
    "role": "assistant",
    "content": "Adding.",
    "thinking": "I must add.",
    "tool_calls": [
        {"function": {"name": "add", "arguments": {"a": 2}}},
        {"id": "call_9", "function": {"name": "add", "arguments": {"a": 3}}},
    ],
}
RICH_RESULTS: list[Json] = [
    {"role": "tool", "tool_name": "add", "content": '{"a":2}'},
    {"role": "tool", "tool_name": "add", "tool_call_id": "call_9", "content": '{"a":3}'},
]


async def test_a_message_goes_back_as_it_came():
    """Text, thinking and calls; arguments are objects, results are paired by name and order, and by id if there is one."""
    async with Runner(kit.registry("add")) as runner:
        turn = await runner.run(RICH, wire=WIRE)

    assert turn.messages() == [RICH_MESSAGE, *RICH_RESULTS]
    assert turn.text == "Adding."
    assert turn.usage == COUNTS
    assert turn.diagnostics == ()


def test_thinking_is_not_the_answer():
    """Listeners get it as reasoning."""
    finalizer = StreamFinalizer(WIRE)
    told = [item for event in RICH for item in finalizer.feed(event)]

    assert [(item.kind, item.text) for item in told if isinstance(item, TextDelta)] == [
        ("reasoning", "I must "),
        ("reasoning", "add."),
        ("text", "Add"),
        ("text", "ing."),
    ]


async def test_more_on_a_call():
    """What else the provider put on a call goes back on it; what is the call itself does not come twice."""
    events = [part(call("f", {}, signature="s", nothing=None), {"name": "f", "arguments": {"x": 1}}), last()]

    assistant, *_ = await kit.messages_of(events, WIRE, "f")

    assert assistant["tool_calls"] == [
        {"function": {"name": "f", "arguments": {}}, "signature": "s"},
        {"function": {"name": "f", "arguments": {"x": 1}}},
    ]


async def test_messages_without_calls():
    """A text is a message, images too, and nothing is none."""
    assert await kit.messages_of([part(content="Hi."), last()], WIRE) == [{"role": "assistant", "content": "Hi."}]
    assert await kit.messages_of([part(images=["aGk="]), last()], WIRE) == [
        {"role": "assistant", "content": "", "images": ["aGk="]}
    ]
    assert await kit.messages_of([last("load")], WIRE) == []


# -- recognising ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (part(), True),
        (last(), True),
        ({"message": {"role": "assistant"}}, False),
        ({"model": "m", "response": "x", "done": False}, False),
        ({"message": "x", "done": True}, False),
        ({"error": "no"}, False),
        ({"type": ["x"]}, False),
        ({}, False),
    ],
)
def test_recognises(event: Json, expected: bool):
    """A message, and whether it is done."""
    assert WIRE.recognises(event) is expected


@recorded
def test_recognises_no_other_protocol():
    """Every event of these recordings is this wire's alone, and none of any other recording is."""
    others = (OpenAIChat(), AnthropicMessages())
    for recording in RECORDINGS:
        for event in recording.objects:
            assert WIRE.recognises(event)
            assert not any(other.recognises(event) for other in others)
    for recording in corpus.recordings_of_others("ollama"):
        assert not any(WIRE.recognises(event) for event in recording.objects), recording.id


# -- the official client --------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Provider]:
    with Provider() as running:
        yield running


@pytest.fixture
def client(server: Provider) -> Iterator[ollama.Client]:
    with ollama.Client(host=server.url, trust_env=False) as client:
        yield client


@pytest.fixture
async def async_client(anyio_backend: str, server: Provider) -> AsyncIterator[ollama.AsyncClient]:
    async with ollama.AsyncClient(host=server.url, trust_env=False) as client:
        yield client


@recorded
@each
def test_sdk_stream(recording: Recording, server: Provider, client: ollama.Client):
    """The client's events over the recorded bytes finalize to the same calls."""
    server.will_answer(reply_of(recording))

    corpus.check(finalize(client.chat(**ASKED, stream=True), wire=WIRE), recording.calls)


@recorded
@each
async def test_sdk_async_stream(recording: Recording, server: Provider, async_client: ollama.AsyncClient):
    """The same for the async client."""
    server.will_answer(reply_of(recording))

    corpus.check(await afinalize(await async_client.chat(**ASKED, stream=True), wire=WIRE), recording.calls)


def known(messages: list[Json]) -> list[Json]:
    """What the client sends of messages: it leaves out ids and empty texts, for which it has no field."""
    kept = []
    for message in messages:
        told = {key: value for key, value in message.items() if value and key != "tool_call_id"}
        if "tool_calls" in told:
            told["tool_calls"] = [{"function": entry["function"]} for entry in told["tool_calls"]]
        kept.append(told)
    return kept


async def test_agent_loop(server: Provider, async_client: ollama.AsyncClient):
    """A stream is run, and what goes back is what the client sends."""
    server.will_answer(ndjson(*RICH), ndjson(part(content="5"), last()))
    messages: list[Any] = list(ASKED["messages"])

    async with Runner(kit.registry("add")) as runner:
        for _ in range(2):
            stream = await async_client.chat(model="m", messages=messages, stream=True)
            turn = await runner.run(stream, wire=WIRE)
            messages += turn.messages()

    assert known(messages[1:]) == known([RICH_MESSAGE, *RICH_RESULTS, {"role": "assistant", "content": "5"}])
    assert server.requests[-1].body["messages"] == known(messages[:4])
    assert not turn.needs_reply


@pytest.mark.parametrize("entry", ["finalize", "run", "run_sync"])
async def test_sync_stream(server: Provider, client: ollama.Client, entry: str):
    """A stream of the sync client goes into every entry."""
    server.will_answer(ndjson(*RICH))
    stream = client.chat(**ASKED, stream=True)

    if entry == "finalize":
        got = finalize(stream, wire=WIRE)
    elif entry == "run":
        got = (await Runner(kit.registry("add")).run(stream, wire=WIRE)).calls
    else:
        got = Runner(kit.registry("add")).run_sync(stream, wire=WIRE).calls

    assert [(item.name, item.arguments, item.executable) for item in got] == [
        ("add", {"a": 2}, True),
        ("add", {"a": 3}, True),
    ]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_whole_response(server: Provider, client: Any, async_client: Any, asynchronous: bool):
    """A response of the client that was not streamed goes in at the same door."""
    server.will_answer(whole({**last(**COUNTS), "message": part(call("add", {"a": 2}), content="Adding.")["message"]}))
    response = await async_client.chat(**ASKED) if asynchronous else client.chat(**ASKED)

    async with Runner(kit.registry("add")) as runner:
        turn = await runner.run(response, wire=WIRE)

    assert [(outcome.status, outcome.value) for outcome in turn.outcomes] == [("succeeded", {"a": 2})]
    assert (turn.text, turn.usage) == ("Adding.", COUNTS)
    assert WIRE.recognises(vars(response))


@pytest.mark.parametrize("error", [{"error": "out of memory"}, {"error parsing tool call": "invalid character"}])
async def test_an_error_that_the_client_raises(server: Provider, client: ollama.Client, error: Json):
    """The client raises at an error line, or at one that it cannot read: nothing runs."""
    server.will_answer(*[ndjson(part(call("add", {"a": 2})), error, last())] * 2)

    calls = finalize(client.chat(**ASKED, stream=True), wire=WIRE)
    with pytest.raises(StreamInterrupted) as raised:
        await Runner(kit.registry("add")).run(client.chat(**ASKED, stream=True), wire=WIRE)

    assert [(got.status.value, got.executable) for got in calls] == [("incomplete", False)]
    assert [outcome.status for outcome in raised.value.turn.outcomes] == ["refused"]


# -- history --------------------------------------------------------------------------------

STATUSES = [
    part(call("add", {"a": 1})),
    part(call("add", '{"a": @}'), call(None, {"a": 2}), call("bad name!", [1])),
    last(),
]
CUT = [part(call("add", {"a": 1})), part(call("add", '{"a"'))]


@pytest.mark.parametrize(
    ("events", "arguments"),
    [
        (
            STATUSES,
            [{"a": 1}, {"invalid_arguments": '{"a": @}'}, {"a": 2}, {"invalid_arguments": "[1]"}],
        ),
        (CUT, [{"invalid_arguments": '{"a": 1}'}, {"invalid_arguments": '{"a"'}]),
    ],
    ids=["statuses", "cut"],
)
async def test_every_status_goes_back(
    server: Provider, client: ollama.Client, events: list[Json], arguments: list[Json]
):
    """Good, malformed, nameless and cut calls go back in a form that the client takes, each with one result."""
    messages = await kit.messages_of(events, WIRE, "add")
    server.will_answer(ndjson(part(content="ok"), last()))
    finalize(client.chat(model="m", messages=[*ASKED["messages"], *messages], stream=True), wire=WIRE)

    assistant, *results = messages
    assert server.requests[-1].body["messages"] == [*ASKED["messages"], *known(messages)]
    assert [entry["function"]["arguments"] for entry in assistant["tool_calls"]] == arguments
    assert [entry["function"]["name"] for entry in assistant["tool_calls"]] == [item["tool_name"] for item in results]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", item["tool_name"]) for item in results)
    assert all(isinstance(item["content"], str) and item["content"] for item in results)


# -- soup -----------------------------------------------------------------------------------

WORDS = (
    "model", "message", "done", "done_reason", "role", "content", "thinking", "images", "tool_calls", "function",
    "name", "arguments", "id", "index", "error", "eval_count", "stop", "length",
)  # fmt: skip


@kit.UNHURRIED
@given(kit.soup((RICH, STATUSES, CUT, [{**last(), "message": part(call("f", {"x": 1}))["message"]}]), WORDS))
def test_soup(events: list[Any]):
    """Whatever comes, nothing raises, and nothing runs without an end."""
    kit.check_survives(WIRE, events)
