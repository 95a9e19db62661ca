"""Mistral: the cases, the recordings, the wire's own rules, the official client, and what goes back."""

from __future__ import annotations

import copy
import json
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from tests.streams import corpus
from toolrun import Diagnostic, FinishPolicy, Runner, StreamFinalizer, TextDelta, afinalize, finalize
from toolrun.wires.mistral import Mistral
from toolrun.wires.openai_chat import OpenAIChat

from . import chat_kit as kit
from .chat_server import Provider, reply_of, sse, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    import mistralai.client

    from tests.streams.corpus import Json, Recording

WIRE = Mistral()
RECORDINGS = corpus.recordings("mistral")
RESPONSE_ID = "2d313395799d459eb69e35f5aa73aa29"
ASKED: Any = {"model": "mistral-small-latest", "messages": [{"role": "user", "content": "?"}]}

recorded = pytest.mark.skipif(not RECORDINGS, reason=corpus.ABSENT)
each = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.id)
on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""The official async client runs on asyncio alone."""


def chunk(delta: Json | None = None, finish: str | None = None, **rest: Any) -> Json:
    """A chunk without any sign of whose it is."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **rest}


def call(id: str | None, name: str, arguments: object, **rest: Any) -> Json:
    told = {"id": id, "function": {"name": name, "arguments": arguments}, **rest}
    return {key: value for key, value in told.items() if value is not None}


def calls(*entries: Json, finish: str | None = "tool_calls") -> Json:
    """A chunk with whole calls and the finish reason, as this provider sends them."""
    return chunk({"tool_calls": list(entries)}, finish)


def thinking(*texts: str, **rest: Any) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text} for text in texts], **rest}


# -- cases and recordings -------------------------------------------------------------------


# -- ids ------------------------------------------------------------------------------------


def test_synthetic_ids_have_the_only_form_that_is_accepted():
    """Nine letters or digits; stable for a turn and a place, different between them."""
    events = [calls(call("null", "f", "{}"), call("", "g", "{}"))]

    def ids(turn: str) -> list[str]:
        finalizer = StreamFinalizer(WIRE, run_id="r", turn_id=turn)
        finalizer.feed(events[0])
        finalizer.close()
        return [call.id for call in finalizer.calls]

    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", made) for made in ids("one"))
    assert ids("one") == ids("one")
    assert len({*ids("one"), *ids("two")}) == 4
    assert WIRE.synthetic_id("0123456789abcdef" * 4) == "xdKw53ibo"


def test_ids_derive_from_the_response_id():
    """Two responses without ids on their calls do not share any, although nobody named the turns."""
    one, two = ({**calls(call(None, "f", "{}")), "id": response_id} for response_id in ("a", "b"))

    assert finalize([one], wire=WIRE)[0].id != finalize([two], wire=WIRE)[0].id


def test_a_providers_id_goes_back_as_it_came():
    """Models of others that Mistral serves have ids of other forms."""
    (got,) = finalize([calls(call("chatcmpl-tool-9f14", "f", "{}"))], wire=WIRE)
    assert (got.id, got.synthetic_id) == ("chatcmpl-tool-9f14", False)


# -- what the SDK makes up ------------------------------------------------------------------


def test_an_index_that_the_sdk_made_up_is_not_read():
    """Fragments that were sent without an index go on with the last call, not with the one at 0."""
    from mistralai.client.models import CompletionEvent

    entry = call("aaaaaaaaa", "f", "{}", index=0), call("bbbbbbbbb", "g", '{"a"', index=1)
    events = [chunk({"tool_calls": list(entry)}), chunk({"tool_calls": [call(None, "", ": 1}")]}, "tool_calls")]

    for given_events in (events, [CompletionEvent.model_validate({"data": event}) for event in events]):
        assert [(got.id, got.raw_arguments, got.executable) for got in finalize(given_events, wire=WIRE)] == [
            ("aaaaaaaaa", "{}", True),
            ("bbbbbbbbb", '{"a": 1}', True),
        ]


def test_usage_holds_no_markers_of_the_sdk():
    """What the SDK marks as not sent stays out of what is shown."""
    from mistralai.client.models import CompletionEvent

    event = chunk({"content": "x"}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4})
    finalizer = StreamFinalizer(WIRE)
    finalizer.feed(CompletionEvent.model_validate({"data": event}))

    assert finalizer.response.usage == {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}


def test_a_dict_around_sdk_objects():
    """Who unwraps half of it gets the same."""
    from mistralai.client.models import CompletionEvent

    event = CompletionEvent.model_validate({"data": calls(call(None, "f", "{}"))})
    for half in ({"data": event.data}, event.data, {"data": event.data.model_dump()}):
        (got,) = finalize([half], wire=WIRE)
        assert (got.name, got.synthetic_id, got.executable) == ("f", True, True)
    assert finalize([{"data": event.data}], wire=WIRE)[0].index is None


def test_arguments_that_look_like_the_sdks_own_marks():
    """Arguments that came as an object are read key by key, whatever their keys."""
    from mistralai.client.models import CompletionEvent

    given = {"is_unknown": True, "raw": {"id": "null", "index": 0}, "none": None}
    event = CompletionEvent.model_validate({"data": calls(call("aaaaaaaaa", "f", given))})

    assert finalize([event], wire=WIRE)[0].arguments == given


def test_an_object_without_fields_is_not_an_empty_one():
    """What somebody's client left undecoded is read, and never as no arguments."""
    function = SimpleNamespace(name="f", arguments=b'{"x": 1}')
    delta = SimpleNamespace(tool_calls=[SimpleNamespace(id="aaaaaaaaa", function=function)])
    event = SimpleNamespace(choices=[SimpleNamespace(index=0, delta=delta, finish_reason="stop")])

    (got,) = finalize([event], wire=WIRE)

    assert (got.raw_arguments, got.executable) == ('{"x": 1}', True)


def test_choices_without_an_index():
    """The order tells them apart: only the first may run, and only it is the answer."""
    event = chunk()
    event["choices"] = [
        {"delta": {"content": text, "tool_calls": [call(call_id, "f", "{}")]}, "finish_reason": "tool_calls"}
        for text, call_id in (("a", "aaaaaaaaa"), ("b", "bbbbbbbbb"))
    ]
    finalizer = StreamFinalizer(WIRE)
    finalizer.feed(event)
    finalizer.close()

    assert [(got.id, got.choice, got.executable) for got in finalizer.calls] == [
        ("aaaaaaaaa", 0, True),
        ("bbbbbbbbb", 1, False),
    ]
    assert finalizer.response.text == "a"
    assert [part.data for part in finalizer.response.parts if part.position is None] == [{"text": "a"}]


# -- typed content --------------------------------------------------------------------------

REASONED = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": [thinking("I must ")]}),
    chunk({"content": [thinking("add.")]}),
    chunk({"content": [thinking(signature="s1")]}),
    chunk({"content": "Add"}),
    chunk({"content": "ing, see "}),
    chunk({"content": [{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "there."}]}),
    calls(call("aaaaaaaaa", "add", '{"a": 2}')),
]


async def test_typed_content_goes_back_as_it_came():
    """A thought in many pieces is one again, its signature stays, and what follows keeps its order."""
    (assistant, _) = await kit.messages_of(REASONED, WIRE, "add")

    assert assistant == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "I must add."}], "signature": "s1"},
            {"type": "text", "text": "Adding, see "},
            {"type": "reference", "reference_ids": [1]},
            {"type": "text", "text": "there."},
        ],
        "tool_calls": [{"id": "aaaaaaaaa", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}],
    }


def test_thoughts_are_not_the_answer():
    """Listeners get thinking as reasoning; the text of the response is what was said."""
    finalizer = StreamFinalizer(WIRE)
    told = [item for event in REASONED for item in finalizer.feed(event)]

    assert [(item.kind, item.text) for item in told if isinstance(item, TextDelta)] == [
        ("reasoning", "I must "),
        ("reasoning", "add."),
        ("text", "Add"),
        ("text", "ing, see "),
        ("text", "there."),
    ]
    assert finalizer.response.text == "Adding, see there."


@pytest.mark.parametrize(
    ("pieces", "content"),
    [
        (["a", "b"], "ab"),
        ([[{"type": "text", "text": "a"}], [{"type": "text", "text": "b"}]], [{"type": "text", "text": "ab"}]),
        ([["a"], "b"], "ab"),
        ([[{"type": "text", "text": ""}], None, [], 7], None),
        (
            [[{"type": "text", "text": "a", "cache": 1}], "b"],
            [{"type": "text", "text": "a", "cache": 1}, {"type": "text", "text": "b"}],
        ),
        ([[thinking("a", signature="s")], [thinking("b")]], [thinking("a", signature="s"), thinking("b")]),
        ([[thinking("a", closed=True)], [thinking("b")]], [thinking("a", closed=True), thinking("b")]),
        ([[{"type": "thinking", "thinking": "a"}], [thinking("b")]], [thinking("ab")]),
        ([[thinking()]], [thinking()]),
        (
            [[{"type": "thinking", "thinking": [{"type": "reference", "reference_ids": [1]}]}], [thinking("b")]],
            [
                {
                    "type": "thinking",
                    "thinking": [{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "b"}],
                }
            ],
        ),
        ([[{"type": "new", "body": {"x": [1]}}]], [{"type": "new", "body": {"x": [1]}}]),
    ],
)
async def test_forms_of_content(pieces: list[object], content: object):
    """A text stays a text and a list a list; without anything, there is no message."""
    events = [*(chunk({"content": piece}) for piece in pieces), chunk(finish="stop")]

    messages = await kit.messages_of(events, WIRE)

    assert messages == ([] if content is None else [{"role": "assistant", "content": content}])


def test_an_unknown_kind_of_content_from_the_sdk():
    """What the SDK does not know it keeps under `raw`; that goes back, not the wrapper."""
    from mistralai.client.models import CompletionEvent

    event = chunk({"content": [{"type": "new", "body": [1]}]}, "stop")
    finalizer = StreamFinalizer(WIRE)
    finalizer.feed(CompletionEvent.model_validate({"data": event}))

    assert [part.data for part in finalizer.response.parts] == [{"type": "new", "body": [1]}]


# -- tools that the provider runs -----------------------------------------------------------


@pytest.mark.parametrize("whole_response", [False, True])
async def test_a_call_that_the_provider_answered_does_not_run(whole_response: bool):
    """A result inside the response: the provider ran a tool, so none of the calls is left to run."""
    messages = [
        {"role": "assistant", "content": "Look.", "tool_calls": [call("aaaaaaaaa", "search", "{}", index=0)]},
        {"role": "tool", "tool_call_id": "aaaaaaaaa", "content": "found"},
        {"role": "assistant", "content": " Done."},
    ]
    if whole_response:
        source: Any = chunk()
        source["choices"] = [{"index": 0, "messages": messages, "finish_reason": "stop"}]
    else:
        source = [chunk({**message, "index": place}) for place, message in enumerate(messages)]
        source.append(chunk({"index": 2, "content": ""}, "stop"))
    ran: list[str] = []
    tools = kit.registry()
    tools.tool(name="search")(lambda: ran.append("search"))

    async with Runner(tools) as runner:
        turn = await runner.run(source, wire=WIRE)

    assert ran == []
    assert [(got.name, got.executable) for got in turn.calls] == [("search", False)]
    assert (turn.text, turn.response.id) == ("Look. Done.", "r")
    assert [item.code for item in turn.diagnostics if isinstance(item, Diagnostic)] == ["provider_result"]


# -- ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "status", "runs", "run_held"),
    [
        ("tool_calls", "ok", True, True),
        ("stop", "ok", True, True),
        ("length", "ok", False, True),
        ("model_length", "ok", False, True),
        ("error", "incomplete", False, False),
    ],
)
def test_finish_reasons(reason: str, status: str, runs: bool, run_held: bool):
    """Both reasons for a lack of room hold whole calls back, and `error` breaks them."""
    events = [calls(call("aaaaaaaaa", "f", "{}"), finish=reason)]

    (got,) = finalize(events, wire=WIRE)
    (held,) = finalize(events, wire=WIRE, policy=FinishPolicy(run_held={"length"}))

    assert (got.status.value, got.executable) == (status, runs)
    assert held.executable is run_held


@pytest.mark.parametrize(
    "error",
    [
        {"object": "error", "message": "Service tier capacity exceeded", "type": "capacity", "code": "3505"},
        {"message": "Service unavailable.", "request_id": "q"},
        {"detail": [{"loc": ["body"], "msg": "no"}]},
        {"error": {"message": "overloaded"}},
    ],
)
def test_error_events(error: Json):
    """An error in the stream, in any of its shapes, leaves calls incomplete and is reported."""
    finalizer = StreamFinalizer(WIRE)
    told = [*finalizer.feed(calls(call("aaaaaaaaa", "f", "{}"), finish=None)), *finalizer.feed(error)]
    told += finalizer.close()

    assert [(got.status.value, got.code) for got in finalizer.calls] == [("incomplete", "stream_error")]
    assert [item.code for item in told if isinstance(item, Diagnostic)] == ["stream_error"]


# -- recognising ----------------------------------------------------------------------------


@recorded
@pytest.mark.parametrize(
    "recording",
    [*RECORDINGS, *corpus.recordings("openai-chat")],
    ids=lambda recording: f"{recording.wire}-{recording.id}",
)
def test_first_chunk_tells_whose_it_is(recording: Recording):
    """The first chunk of a recorded stream tells this provider from all that speak like OpenAI, but for one.

    That one is a model of another maker under its own name: read as `openai-chat`, its calls are the same.
    """
    first = next(event for event in recording.events if isinstance(event, dict))
    first = first["data"] if recording.named_events else first
    expected = recording.wire == "mistral" and recording.id != "vercel-mistral-incremental-tool-call"

    assert WIRE.recognises(first) is expected
    if recording.wire == "mistral":
        corpus.check(finalize(recording.events, wire=OpenAIChat()), recording.calls)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (chunk(p="abcdefgh"), True),
        (chunk(p="abcdefghijklmnopqrstuvwxyz0123456789ABC"), True),
        (chunk(p=""), False),
        (chunk(p="hello"), False),
        (chunk(p=3), False),
        (chunk({"content": [thinking("a")]}), True),
        (chunk({"content": [{"type": "thinking", "thinking": "a"}]}), False),
        (chunk({"content": [{"type": "text", "text": "a"}]}), False),
        (chunk(id=RESPONSE_ID, model="magistral-medium-2509"), True),
        (chunk(id=RESPONSE_ID, model="open-mistral-nemo"), True),
        (chunk(id=RESPONSE_ID, model="mistralai/mistral-small"), False),
        (chunk(id=RESPONSE_ID, model="gpt-5"), False),
        (chunk(id="chatcmpl-1", model="mistral-large-latest"), False),
        (chunk(id=[1], model={}), False),
        ({"data": chunk(id=RESPONSE_ID, model="mistral-small-latest")}, True),
        ({"data": "x"}, False),
        ({"id": RESPONSE_ID, "model": "mistral-small-latest", "choices": []}, False),
        ({"id": RESPONSE_ID, "model": "mistral-small-latest", "choices": 5}, False),
        ({"id": RESPONSE_ID, "model": "mistral-small-latest", "choices": ["x", None]}, True),
        ({"bytes": "e30=", "p": "abc"}, False),
        ({"type": ["x"]}, False),
        ({}, False),
    ],
)
def test_recognises(event: Json, expected: bool):
    """Only what no other server sends is a sign."""
    assert WIRE.recognises(event) is expected


def test_recognises_the_sdks_objects():
    """An event of the SDK and a whole response are known by their module."""
    from mistralai.client.models import ChatCompletionResponse, CompletionEvent

    message = {"role": "assistant", "content": "x"}
    response = {**chunk(), "usage": {}, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    assert WIRE.recognises(vars(CompletionEvent.model_validate({"data": chunk()})))
    assert WIRE.recognises(vars(ChatCompletionResponse.model_validate(response)))
    assert not WIRE.recognises({"choices": [SimpleNamespace(index=0)]})


# -- the official client --------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Provider]:
    with Provider() as running:
        yield running


@pytest.fixture
def client(server: Provider) -> Iterator[mistralai.client.Mistral]:
    import httpx2
    from mistralai.client import Mistral as Client

    with httpx2.Client(trust_env=False) as http:
        yield Client(api_key="k", server_url=server.url, client=http)


@pytest.fixture
async def async_client(anyio_backend: str, server: Provider) -> Any:
    import httpx2
    from mistralai.client import Mistral as Client

    async with httpx2.AsyncClient(trust_env=False) as http:
        yield Client(api_key="k", server_url=server.url, async_client=http)


@recorded
@each
def test_sdk_stream(recording: Recording, server: Provider, client: mistralai.client.Mistral):
    """The client's events over the recorded bytes finalize to the same calls."""
    server.will_answer(reply_of(recording))

    corpus.check(finalize(client.chat.stream(**ASKED), wire=WIRE), recording.calls)


@recorded
@on_asyncio
@each
async def test_sdk_async_stream(recording: Recording, server: Provider, async_client: mistralai.client.Mistral):
    """The same for the async client."""
    server.will_answer(reply_of(recording))

    corpus.check(await afinalize(await async_client.chat.stream_async(**ASKED), wire=WIRE), recording.calls)


TWO = [
    chunk({"role": "assistant", "content": [thinking("Hm.")]}),
    chunk({"content": "Adding."}),
    calls(call("aaaaaaaaa", "add", '{"a": 2}'), call("bbbbbbbbb", "add", '{"a":3}')),
]


@on_asyncio
async def test_agent_loop(server: Provider, async_client: mistralai.client.Mistral):
    """A stream is run, and what goes back is what the client sends, byte for byte."""
    server.will_answer(sse(*TWO, done=True), sse(chunk({"content": "5"}, "stop")))
    messages: list[Any] = list(ASKED["messages"])

    async with Runner(kit.registry("add")) as runner:
        for _ in range(2):
            stream = await async_client.chat.stream_async(model="m", messages=messages)
            turn = await runner.run(stream, wire=WIRE)
            messages += turn.messages()

    assert messages[1:] == [
        {
            "role": "assistant",
            "content": [thinking("Hm."), {"type": "text", "text": "Adding."}],
            "tool_calls": [
                {"id": "aaaaaaaaa", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}},
                {"id": "bbbbbbbbb", "type": "function", "function": {"name": "add", "arguments": '{"a":3}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "aaaaaaaaa", "name": "add", "content": '{"a":2}'},
        {"role": "tool", "tool_call_id": "bbbbbbbbb", "name": "add", "content": '{"a":3}'},
        {"role": "assistant", "content": "5"},
    ]
    assert sent(server) == messages[:4]
    assert not turn.needs_reply
    assert stream.response.is_closed


def sent(server: Provider) -> list[Json]:
    """The messages of the last request, without the keys that the client adds to every message."""
    added = {"prefix": False, "index": 0}
    messages = copy.deepcopy(server.requests[-1].body["messages"])
    for message in messages:
        for holder in (message, *message.get("tool_calls", ())):
            for key, value in added.items():
                if holder.get(key) == value:
                    del holder[key]
    return messages


@pytest.mark.parametrize("asynchronous", [False, True])
@on_asyncio
async def test_whole_response(server: Provider, client: Any, async_client: Any, asynchronous: bool):
    """A response that was not streamed goes in at the same door."""
    message = {"role": "assistant", "content": "Adding.", "tool_calls": [call("aaaaaaaaa", "add", '{"a": 2}')]}
    response = {
        **chunk(),
        "object": "chat.completion",
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    }
    server.will_answer(whole(response))
    given = await async_client.chat.complete_async(**ASKED) if asynchronous else client.chat.complete(**ASKED)

    turns = [await Runner(kit.registry("add")).run(source, wire=WIRE) for source in (given, response)]

    for turn in turns:
        assert [(outcome.status, outcome.value) for outcome in turn.outcomes] == [("succeeded", {"a": 2})]
        assert turn.text == "Adding."
        assert turn.usage == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
        assert turn.diagnostics == ()


@pytest.mark.parametrize("entry", ["finalize", "run", "run_sync"])
async def test_sync_stream(server: Provider, client: mistralai.client.Mistral, entry: str):
    """A stream of the sync client goes into every entry."""
    server.will_answer(sse(*TWO, done=True))
    stream = client.chat.stream(**ASKED)

    if entry == "finalize":
        got = finalize(stream, wire=WIRE)
    elif entry == "run":
        got = (await Runner(kit.registry("add")).run(stream, wire=WIRE)).calls
    else:
        got = Runner(kit.registry("add")).run_sync(stream, wire=WIRE).calls

    assert [(item.id, item.arguments, item.executable) for item in got] == [
        ("aaaaaaaaa", {"a": 2}, True),
        ("bbbbbbbbb", {"a": 3}, True),
    ]


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

    assert [meaning(assistant)] == [meaning(message) for message in recording.echo["assistant"]]
    assert [(item["role"], item["tool_call_id"]) for item in results] == [
        (item["role"], item["tool_call_id"]) for item in recording.echo["results"]
    ]
    assert all(isinstance(item["content"], str) for item in results)


def meaning(message: Json) -> Json:
    """Spacing of arguments does not matter; everything else does."""
    tool_calls = copy.deepcopy(message["tool_calls"])
    for entry in tool_calls:
        entry["function"]["arguments"] = json.loads(entry["function"]["arguments"])
    return {**message, "tool_calls": tool_calls}


STATUSES = [
    calls(
        call("aaaaaaaaa", "add", '{"a": 1}', index=0),
        call("bbbbbbbbb", "add", '{"a": @}', index=1),
        call("ccccccccc", "", '{"a": 2}', index=2),
        call(None, "bad name!", "[1]", index=3),
        call("ddddddddd", "add", "", index=4),
    )
]
CUT = [calls(call("aaaaaaaaa", "add", '{"a": 1', index=0), call("bbbbbbbbb", "add", "", index=1), finish=None)]


@pytest.mark.parametrize(
    ("events", "arguments"),
    [
        (
            STATUSES,
            [
                '{"a": 1}',
                '{"invalid_arguments": "{\\"a\\": @}"}',
                '{"a": 2}',
                '{"invalid_arguments": "[1]"}',
                '{"invalid_arguments": ""}',
            ],
        ),
        (CUT, ['{"invalid_arguments": "{\\"a\\": 1"}', '{"invalid_arguments": ""}']),
    ],
    ids=["statuses", "cut"],
)
async def test_every_status_goes_back(
    server: Provider, client: mistralai.client.Mistral, events: list[Json], arguments: list[str]
):
    """Good, malformed, nameless and cut calls go back in a form that the client takes, each with one result."""
    messages = await kit.messages_of(events, WIRE, "add")
    server.will_answer(sse(chunk({"content": "ok"}, "stop"), done=True))
    asked: list[Any] = [*ASKED["messages"], *messages]
    finalize(client.chat.stream(model="m", messages=asked), wire=WIRE)

    assistant, *results = messages
    assert sent(server) == asked
    assert [entry["function"]["arguments"] for entry in assistant["tool_calls"]] == arguments
    assert [entry["id"] for entry in assistant["tool_calls"]] == [item["tool_call_id"] for item in results]
    assert [entry["function"]["name"] for entry in assistant["tool_calls"]] == [item["name"] for item in results]
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", item["tool_call_id"]) for item in results)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", item["name"]) for item in results)


# -- soup -----------------------------------------------------------------------------------

WORDS = (
    "choices", "delta", "message", "messages", "content", "tool_calls", "function", "name", "arguments", "id", "index",
    "finish_reason", "tool", "role", "type", "text", "thinking", "signature", "data", "usage", "error", "p", "stop",
)  # fmt: skip
STREAMS = (REASONED, TWO, STATUSES, CUT, [{"data": event} for event in TWO])


@kit.UNHURRIED
@given(kit.soup(STREAMS, WORDS))
def test_soup(events: list[Any]):
    """Whatever comes, nothing raises, and nothing runs without an end."""
    kit.check_survives(WIRE, events)
