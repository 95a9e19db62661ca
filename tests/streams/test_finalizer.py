"""`StreamFinalizer`, `finalize` and `afinalize`: events, states, wires, sources."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from toolrun import (
    CallDelta,
    CallFinalized,
    CallStarted,
    CallStatus,
    Diagnostic,
    FinalizerClosed,
    FinishPolicy,
    StreamFinalizer,
    TextDelta,
    ToolCall,
    UnknownWire,
    afinalize,
    finalize,
)
from toolrun.wires import WIRES, AnthropicMessages, OpenAIChat, get_wire

from .events import (
    DONE,
    MESSAGE_STOP,
    block_start,
    chat,
    chunk,
    input_delta,
    message_delta,
    message_start,
    messages,
    piece,
    sse,
    tool_block,
    tool_start,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

CHAT = chat(piece('{"a":', index=0, id="c", name="f"), piece("1}", index=0))
MESSAGES = messages(tool_block(0, "t", "f", '{"a":', "1}"))


def is_whole(calls: tuple[ToolCall, ...]) -> bool:
    return [(call.name, call.arguments, call.executable) for call in calls] == [("f", {"a": 1}, True)]


# -- events ---------------------------------------------------------------------------------


def test_events() -> None:
    """Each feed gives what came of that event; calls are finalized by `close` alone."""
    finalizer = StreamFinalizer("openai-chat")

    assert list(finalizer.feed(CHAT[0])) == [CallStarted(0, "c", "f"), CallDelta(0, '{"a":')]
    assert list(finalizer.feed(CHAT[1])) == [CallDelta(0, "1}")]
    assert list(finalizer.feed(CHAT[2])) == []
    assert finalizer.calls == ()
    (last,) = finalizer.close()

    assert isinstance(last, CallFinalized)
    assert (last.position, last.call) == (0, finalizer.calls[0])
    assert finalizer.calls[0] == ToolCall(
        id="c",
        name="f",
        raw_arguments='{"a":1}',
        arguments={"a": 1},
        status=CallStatus.OK,
        executable=True,
        finish_reason="tool_calls",
        index=0,
        name_readings=("f",),
    )


def test_deltas_of_split_characters() -> None:
    """Half of a surrogate pair waits for the other half; one that waits in vain is told before the call is finalized."""
    finalizer = StreamFinalizer("openai-chat")
    finalizer.feed(chunk(piece("", index=0, id="c", name="f")))
    texts = ['{"t": "x\ud83d', "\ude00", "\ud83d", "\ude00\ud83d", "\ude00", '"}\ud83d']
    told = [[item.text for item in finalizer.feed(chunk(piece(text, index=0)))] for text in texts]
    assert told == [['{"t": "x'], ["😀"], [], ["😀"], ["😀"], ['"}']]
    delta, last = finalizer.close()
    assert (delta, last.call.raw_arguments) == (CallDelta(0, "\ud83d"), '{"t": "x😀😀😀"}\ud83d')


def test_order_of_the_last_events() -> None:
    """Calls are finalized in call order, in whatever order their last pieces came; dropped and nameless ones too."""
    finalizer = StreamFinalizer("openai-chat")
    for event in chat(
        piece("{", index=5, id="c5", name="f"),
        piece('{"b"', index=0),
        piece("", index=2, id="c2", name="h"),
        piece("}", index=5),
        finish="length",
    ):
        finalizer.feed(event)
    told = finalizer.close()
    assert [
        (type(item), item.position, item.call.id, item.call.code) for item in told if isinstance(item, CallFinalized)
    ] == [
        (CallFinalized, 0, "c5", "held"),
        (CallFinalized, 1, finalizer.calls[1].id, "truncated"),
        (CallFinalized, 2, "c2", "truncated"),
    ]


def test_text_events() -> None:
    """Text, reasoning and refusals beside the calls are told as what they are."""
    finalizer = StreamFinalizer("openai-chat")
    delta = {"role": "assistant", "content": "Hello", "reasoning_content": "Hm", "refusal": "No", "reasoning": ""}
    told = finalizer.feed({"choices": [{"index": 0, "delta": delta}]})
    assert list(told) == [TextDelta("Hello", "text"), TextDelta("Hm", "reasoning"), TextDelta("No", "refusal")]
    assert list(finalizer.feed({"choices": [{"index": 1, "delta": {"content": "Other"}}]})) == [
        TextDelta("Other", "text", 1)
    ]
    assert finalizer.response.text == "Hello"


def test_text_events_of_anthropic() -> None:
    """The same for blocks; signatures and redacted thinking are kept, and told to nobody."""
    finalizer = StreamFinalizer("anthropic-messages")
    told: list[Any] = []
    for event in [
        message_start(),
        block_start(0, "thinking", thinking="", signature=""),
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s1"}},
        block_start(1, "redacted_thinking", data="xyz"),
        block_start(2, "text", text="He"),
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "llo"}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": {"n": 1}}},
        tool_start(3, "t", "f"),
        message_delta("tool_use"),
        MESSAGE_STOP,
    ]:
        told += finalizer.feed(event)
    assert [item for item in told if isinstance(item, TextDelta)] == [
        TextDelta("Hm", "reasoning"),
        TextDelta("He", "text"),
        TextDelta("llo", "text"),
    ]
    response = finalizer.response
    assert (response.wire, response.id, response.text, response.finish_reason) == (
        "anthropic-messages",
        "msg_1",
        "Hello",
        "tool_use",
    )
    assert response.usage == {"output_tokens": 20}
    assert [(part.key, part.data, part.position) for part in response.parts] == [
        (0, {"type": "thinking", "thinking": "Hm", "signature": "s1"}, None),
        (1, {"type": "redacted_thinking", "data": "xyz"}, None),
        (2, {"type": "text", "text": "Hello", "citations": [{"n": 1}]}, None),
        ("call", {}, 0),
    ]


def test_without_deltas() -> None:
    """`deltas=False` leaves out deltas of calls and of text, and nothing else."""
    finalizer = StreamFinalizer("openai-chat", deltas=False)
    text = {"choices": [{"index": 0, "delta": {"content": "Hello"}}]}
    told = [item for event in [text, *CHAT] for item in finalizer.feed(event)]
    assert [type(item) for item in [*told, *finalizer.close()]] == [CallStarted, CallFinalized]
    assert finalizer.response.text == "Hello"


def test_usage() -> None:
    """Usage is kept as sent; later counts win one by one, and nulls say nothing."""
    finalizer = StreamFinalizer("openai-chat")
    finalizer.feed({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1, "details": {"a": 1}}})
    finalizer.feed({"choices": [], "usage": {"completion_tokens": 4, "prompt_tokens": None}})
    finalizer.feed({"choices": [], "usage": None})
    assert finalizer.response.usage == {"prompt_tokens": 3, "completion_tokens": 4, "details": {"a": 1}}


# -- states ---------------------------------------------------------------------------------


def test_closed() -> None:
    """Feeding after `close` is an error; closing again gives nothing and changes nothing."""
    finalizer = StreamFinalizer("openai-chat")
    finalizer.feed(CHAT[0])
    finalizer.close()
    before = finalizer.calls

    with pytest.raises(FinalizerClosed):
        finalizer.feed(CHAT[1])

    assert list(finalizer.close("normal")) == []
    assert finalizer.calls is before
    assert before[0].code == "no_finish"


@pytest.mark.parametrize(
    ("events", "ended"),
    [
        (CHAT[:2], False),
        (CHAT, True),
        ([*CHAT[:2], DONE], True),
        ([chunk(finish="")], False),
        (MESSAGES[:-2], False),
        (MESSAGES[:-1], True),
        (MESSAGES, True),
        ([{"error": {"message": "x"}}], False),
    ],
)
def test_ended(events: list[Any], ended: bool) -> None:
    """`ended` tells as soon as a finish reason or a terminator was seen."""
    finalizer = StreamFinalizer("openai-chat" if "type" not in events[0] else "anthropic-messages")
    for event in events:
        finalizer.feed(event)
    assert finalizer.ended is ended
    assert finalizer.response.ended is ended


def test_close_of_an_unfinished_line() -> None:
    """`close` takes what is left of the bytes as if the line had ended."""
    finalizer = StreamFinalizer("openai-chat")
    finalizer.feed(sse(CHAT)[:-2])
    assert not finalizer.ended
    assert [type(item) for item in finalizer.close()] == [CallFinalized]
    assert is_whole(finalizer.calls)


def test_damage_does_not_end_it() -> None:
    """Something that is no event is told, and the next event is read."""
    finalizer = StreamFinalizer("openai-chat")
    for noise in (None, 5, [], "", "x\n", object(), {}, (), {"choices": None}, {"choices": [None, 5, "x"]}):
        assert all(isinstance(item, Diagnostic) for item in finalizer.feed(noise))
    for event in CHAT:
        finalizer.feed(event)
    finalizer.close()
    assert is_whole(finalizer.calls)


# -- wires ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "name"),
    [
        (CHAT, "openai-chat"),
        (MESSAGES, "anthropic-messages"),
        ([{"type": "ping"}, *MESSAGES], "anthropic-messages"),
        ([{"unknown": 1}, *CHAT], "openai-chat"),
        (sse(CHAT), "openai-chat"),
        (sse(MESSAGES), "anthropic-messages"),
        ([{"object": "chat.completion.chunk", "choices": []}, *CHAT], "openai-chat"),
        (MESSAGES[1:], "anthropic-messages"),
        ([{"event": "message_start", "data": MESSAGES[0]}, *MESSAGES[1:]], "anthropic-messages"),
        ([{"type": "chunk", "chunk": event} for event in CHAT], "openai-chat"),
    ],
)
def test_auto(events: Any, name: str) -> None:
    """The first event that is known tells the wire; those before it are read then."""
    finalizer = StreamFinalizer()
    assert finalizer.wire is None
    for event in [events] if isinstance(events, bytes) else events:
        finalizer.feed(event)
    finalizer.close()
    assert finalizer.wire is WIRES[name]
    assert is_whole(finalizer.calls)


def test_auto_knows_none() -> None:
    """If no event is known, each is told; `finalize` says that the wire must be named."""
    finalizer = StreamFinalizer()
    assert list(finalizer.feed({"frames": []})) == []
    assert [item.code for item in finalizer.close()] == ["unknown_wire"]
    assert finalizer.calls == ()
    with pytest.raises(UnknownWire, match="name the wire"):
        finalize([{"frames": []}])


def test_auto_with_many_unknown_events() -> None:
    """Unknown events without end are not all kept, and do not keep the wire from being found."""
    assert is_whole(finalize([*({"heartbeat": number} for number in range(1_000)), *CHAT]))


def test_named_wires() -> None:
    """A wire is named or passed; one that is not known is an error that lists the known ones."""
    assert is_whole(finalize(CHAT, wire=OpenAIChat()))
    assert is_whole(finalize(MESSAGES, wire=AnthropicMessages()))
    assert get_wire("openai-chat") is WIRES["openai-chat"]
    with pytest.raises(UnknownWire, match="anthropic-messages"):
        StreamFinalizer("openai")


class ServerSentEvent:
    """An event as clients of server-sent events give it: properties, with the text still undecoded."""

    def __init__(self, event: str, data: str) -> None:
        self._event = event
        self._data = data

    @property
    def event(self) -> str:
        return self._event

    @property
    def data(self) -> str:
        return self._data


@pytest.mark.parametrize("wire", ["auto", "openai-chat", "anthropic-messages"])
@pytest.mark.parametrize("make", [ServerSentEvent, lambda event, data: SimpleNamespace(event=event, data=data, id="1")])
def test_objects_of_sse_clients(make: Any, wire: str) -> None:
    """What clients of server-sent events give is opened like `{"event": …, "data": …}`."""
    events = MESSAGES if wire == "anthropic-messages" else CHAT
    calls = finalize([make(event.get("type", "message"), json.dumps(event)) for event in events], wire=wire)
    assert is_whole(calls)


def test_another_wire() -> None:
    """Events of another protocol give no calls under the wrong name, and raise nothing."""
    assert finalize(MESSAGES, wire="openai-chat") == ()
    assert finalize(CHAT, wire="anthropic-messages") == ()


class Lines:
    """A wire of one's own: an event is a name and a text."""

    name = "lines"
    dialect = "openai-chat"

    def recognises(self, event: Any) -> bool:
        return "line" in event

    def decoder(self, sink: Any) -> Any:
        def decode(event: Any) -> None:
            if "done" in event:
                sink.terminate()
            elif "final" in event:
                sink.tool_replace(0, event["index"], event["final"])
            else:
                sink.tool_delta(0, event["index"], None, event.get("name"), event["line"])

        return decode

    def synthetic_id(self, digest: str) -> str:
        return digest[:9]

    def assistant_messages(self, response: Any, calls: Any) -> list[Any]:
        return []

    def result_messages(self, results: Any) -> list[Any]:
        return []

    def continues(self, finish_reason: str | None) -> bool:
        return False


def test_a_wire_of_ones_own() -> None:
    """Any object with the methods of a wire is one; the wire's own final copy of the arguments wins, and is told."""
    finalizer = StreamFinalizer(Lines())
    events = [{"index": 0, "name": "f", "line": '{"a": 1}'}, {"index": 0, "final": '{"a": 2}'}]
    told = [item for event in events for item in finalizer.feed(event)]
    assert [type(item).__name__ for item in told] == ["CallStarted", "CallDelta", "ArgumentsReplaced"]
    assert (told[-1].before, told[-1].after) == ('{"a": 1}', '{"a": 2}')
    assert list(finalizer.feed({"index": 0, "final": '{"a": 2}'})) == []
    assert [item.code for item in finalizer.feed({"index": 7, "final": "{}"})] == ["orphan_delta"]
    finalizer.feed({"done": True})
    finalizer.close()
    (call,) = finalizer.calls
    assert (call.arguments, call.raw_arguments, len(call.id)) == ({"a": 2}, '{"a": 2}', 9)


# -- sources --------------------------------------------------------------------------------


def generator(events: list[Any], *, error: Exception | None = None) -> Iterator[Any]:
    yield from events
    if error is not None:
        raise error


async def agenerator(events: list[Any], *, error: Exception | None = None) -> AsyncIterator[Any]:
    for event in events:
        yield event
    if error is not None:
        raise error


RESPONSE = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"tool_calls": []}}]}
RESPONSE["choices"][0]["message"]["tool_calls"] = [piece('{"a":1}', id="c", name="f")]

SOURCES = {
    "list": CHAT,
    "tuple": tuple(CHAT),
    "generator": CHAT,
    "response": RESPONSE,
    "response as an object": SimpleNamespace(
        model_fields_set=set(), choices=[SimpleNamespace(**RESPONSE["choices"][0])]
    ),
    "text": sse(CHAT).decode(),
    "bytes": sse(CHAT),
    "text of a response": json.dumps(RESPONSE),
}


@pytest.mark.parametrize("name", SOURCES)
async def test_sources(name: str) -> None:
    """Iterables, whole responses and raw text go in at the same door, of both functions."""

    def source() -> Any:
        return generator(CHAT) if name == "generator" else SOURCES[name]

    assert is_whole(finalize(source()))
    assert is_whole(await afinalize(source()))


async def test_async_source() -> None:
    """An asynchronous source is read by `afinalize` and refused by `finalize`, which says so."""
    assert is_whole(await afinalize(agenerator(CHAT)))
    source = agenerator(CHAT)
    with pytest.raises(TypeError, match="afinalize"):
        finalize(source)
    await source.aclose()


async def test_source_that_raises() -> None:
    """What a source raises before the finish makes its calls incomplete; after the finish it changes nothing."""
    for cut, code in ((1, "stream_error"), (2, "stream_error"), (3, None)):
        calls = [
            finalize(generator(CHAT[:cut], error=OSError("cut"))),
            await afinalize(agenerator(CHAT[:cut], error=OSError("cut"))),
        ]
        for (call,) in calls:
            assert (call.code, call.executable) == (code, code is None)


async def test_source_that_is_interrupted() -> None:
    """What is no `Exception` is not swallowed."""
    with pytest.raises(KeyboardInterrupt):
        finalize(generator(CHAT, error=KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        await afinalize(agenerator(CHAT, error=KeyboardInterrupt()))


@pytest.mark.parametrize("source", [None, 5, object(), len])
async def test_no_source(source: Any) -> None:
    """What is no source is refused with what was given."""
    with pytest.raises(TypeError, match=type(source).__name__):
        finalize(source)
    with pytest.raises(TypeError, match=type(source).__name__):
        await afinalize(source)


async def test_not_awaited() -> None:
    """A coroutine where its result is meant is refused with the way out."""

    async def create() -> list[Any]:
        return CHAT

    coroutine = create()
    with pytest.raises(TypeError, match="await it first"):
        finalize(coroutine)
    coroutine.close()


async def test_empty_sources() -> None:
    """A source without events has no calls, and needs no wire."""
    for source in ([], (), "", b"", iter(())):
        assert finalize(source) == ()
    assert await afinalize(agenerator([])) == ()
    assert finalize({"choices": []}) == ()


async def test_options_reach_the_finalizer() -> None:
    """`end` and `policy` mean the same everywhere."""
    infer = FinishPolicy(missing_finish="infer")
    for options, executable in (
        ({}, False),
        ({"end": "normal"}, True),
        ({"end": "eof"}, False),
        ({"end": "error"}, False),
        ({"policy": infer}, True),
        ({"policy": infer, "end": "error"}, False),
        ({"wire": "openai-chat", "end": "normal"}, True),
    ):
        cut: dict[str, Any] = dict(options)
        assert [call.executable for call in finalize(CHAT[:2], **cut)] == [executable]
        assert [call.executable for call in await afinalize(CHAT[:2], **cut)] == [executable]
        assert [call.executable for call in await afinalize(agenerator(CHAT[:2]), **cut)] == [executable]


def test_events_are_not_changed() -> None:
    """What is fed is left as it is."""
    for events in (CHAT, MESSAGES, messages(tool_start(0, "t", "f", {"a": [1]}), input_delta(0, ""))):
        before = json.dumps(events)
        finalize(events)
        assert json.dumps(events) == before


def test_results_are_not_shared() -> None:
    """What the finalizer gives does not change when the events are changed afterwards."""
    event = {
        "choices": [{"index": 0, "delta": {"tool_calls": [piece({"a": [1]}, index=0, id="c", name="f", x={"y": [1]})]}}]
    }
    finalizer = StreamFinalizer("openai-chat")
    finalizer.feed(event)
    call = event["choices"][0]["delta"]["tool_calls"][0]
    call["function"]["arguments"]["a"].append(2)
    call["x"]["y"].append(2)
    finalizer.close("normal")
    assert (finalizer.calls[0].arguments, finalizer.calls[0].extra) == ({"a": [1]}, {"x": {"y": [1]}})
