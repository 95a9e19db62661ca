"""Every recorded stream goes through `finalize` and a `Runner`, whole, re-framed, re-chunked and cut at every event."""

from __future__ import annotations

import functools
import itertools
import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from toolrun import Runner, StreamFinalizer, Tool, ToolRegistry, finalize

from . import corpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolrun import ToolCall

    from .corpus import Expected, Recording

RECORDINGS = corpus.recordings()

pytestmark = pytest.mark.skipif(not RECORDINGS, reason=corpus.ABSENT)
each = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.id)


def check(calls: Sequence[ToolCall], expected: Sequence[Expected]) -> None:
    """Hold calls against the index, field by field."""
    assert [call.name for call in calls] == [want.name for want in expected]
    assert [call.raw_arguments for call in calls] == [
        call.raw_arguments if want.raw is None else want.raw for call, want in zip(calls, expected, strict=True)
    ]
    assert [call.arguments for call in calls] == [want.arguments for want in expected]
    assert [call.provider_executed for call in calls] == [want.provider_executed for want in expected]
    assert [(call.status.value, call.code) for call in calls] == [(want.status, want.code) for want in expected]
    assert [call.executable for call in calls] == [want.runs for want in expected]
    assert [call.choice for call in calls] == [want.choice for want in expected]
    assert [call.position for call in calls] == list(range(len(expected)))
    assert [call.index for call in calls if not call.provider_executed] == [
        want.index for want in expected if not want.provider_executed
    ]
    assert [None if call.synthetic_id else call.id for call in calls] == [want.id for want in expected]
    ids = [call.id for call in calls if call.choice == 0]
    assert len(set(ids)) == len(ids)


def is_end(event: Any) -> bool:
    """Tell whether an event says that choice 0 is over, read without the library."""
    event = event.get("data", event) if isinstance(event, dict) else event
    if event == "[DONE]":
        return True
    if not isinstance(event, dict):
        return False
    choices = [choice for choice in event.get("choices") or () if choice.get("index", 0) == 0]
    told = event.get("delta") if event.get("type") == "message_delta" else event.get("message")
    return (
        event.get("type") == "message_stop"
        or any(choice.get("finish_reason") for choice in choices)
        or bool(isinstance(told, dict) and told.get("stop_reason"))
    )


def raising(events: Iterable[object]) -> Iterable[object]:
    """A source that breaks after its last event."""
    yield from events
    raise ConnectionResetError("cut")


def cuts(length: int, proven: int) -> Iterable[int]:
    """Every place to cut a stream at; of the few very long ones every fifth, and all those near its finish and its end."""
    if length <= 400:
        return range(length)
    return sorted({*range(0, length, 5), *range(proven - 25, min(proven + 25, length)), *range(length - 25, length)})


# -- whole ----------------------------------------------------------------------------------


@each
def test_as_recorded(recording: Recording) -> None:
    """Decoded events give the calls of the index, whether the wire is named or recognised."""
    check(finalize(recording.events), recording.calls)
    check(finalize(recording.events, wire=recording.wire), recording.calls)


@each
def test_bytes(recording: Recording) -> None:
    """The recording's own lines, and the same events as SSE, give the same calls however the bytes are cut."""
    for data in (recording.data, recording.sse):
        check(finalize(data), recording.calls)
        for most in (1 if len(data) < 20_000 else 61, 4096):
            check(finalize(corpus.chunks(data, recording.id, most=most)), recording.calls)


@each
def test_lifecycle(recording: Recording) -> None:
    """Each call has one start, deltas that make its raw text, and one end, in that order."""
    finalizer = StreamFinalizer()
    told = [item for event in recording.events for item in finalizer.feed(event)]
    told += finalizer.close()
    for call in finalizer.calls:
        mine = [item for item in told if getattr(item, "position", None) == call.position]
        kinds = [type(item).__name__ for item in mine]
        assert kinds[0] == "CallStarted"
        assert kinds[-1] == "CallFinalized"
        assert set(kinds[1:-1]) <= {"CallDelta", "ArgumentsReplaced"}
        replaced = [item.after for item in mine if type(item).__name__ == "ArgumentsReplaced"]
        deltas = "".join(item.text for item in mine if type(item).__name__ == "CallDelta")
        assert call.raw_arguments == (replaced[-1] if replaced else deltas)


# -- cut ------------------------------------------------------------------------------------


@each
def test_cut_at_every_event(recording: Recording) -> None:
    """A prefix without a finish or a terminator runs nothing; one with it runs nothing but what the whole runs."""
    allowed = [(want.name, want.arguments) for want in recording.runnable]
    events = recording.events
    proven = next((place for place, event in enumerate(events) if is_end(event)), len(events))
    for length, end in itertools.product(cuts(len(events), proven), ("auto", "error")):
        finalizer = StreamFinalizer(recording.wire, deltas=False)
        for event in events[:length]:
            finalizer.feed(event)
        finalizer.close(end)
        runs = [(call.name, call.arguments) for call in finalizer.calls if call.executable]
        if length <= proven:
            assert not runs, length
            assert {call.status.value for call in finalizer.calls} <= {"incomplete"}, length
        assert all(call in allowed for call in runs), length
        assert len(runs) <= len(allowed), length


@each
def test_source_that_raises(recording: Recording) -> None:
    """A source that raises in the middle, or before its first event, runs nothing and raises nothing here."""
    events = recording.events
    proven = next((place for place, event in enumerate(events) if is_end(event)), len(events))
    for length in {0, proven // 2, proven}:
        calls = finalize(raising(events[:length]), wire=recording.wire)
        assert not [call for call in calls if call.executable]
        assert {call.status.value for call in calls} <= {"incomplete"}


@each
def test_cut_at_bytes(recording: Recording) -> None:
    """Bytes that stop anywhere, inside an event too, run nothing that the whole does not run."""
    allowed = [(want.name, want.arguments) for want in recording.runnable]
    random_ = random.Random(recording.id)
    for data in (recording.sse, recording.data):
        for cut in random_.sample(range(len(data)), k=min(8, len(data))):
            finalizer = StreamFinalizer(recording.wire, deltas=False)
            finalizer.feed(data[:cut])
            finalizer.close()
            runs = [(call.name, call.arguments) for call in finalizer.calls if call.executable]
            assert all(call in allowed for call in runs), cut


def argument_lines(recording: Recording) -> list[int]:
    """The lines that hold argument text."""
    lines = recording.data.split(b"\n")
    return [place for place, line in enumerate(lines) if b"partial_json" in line or b'"arguments"' in line]


WITH_ARGUMENTS = [recording for recording in RECORDINGS if argument_lines(recording)]


@pytest.mark.parametrize("recording", WITH_ARGUMENTS, ids=lambda recording: recording.id)
def test_lost_line(recording: Recording) -> None:
    """One line garbled in the middle of the argument text runs no client call, whatever the finish says."""
    lines = recording.data.rstrip(b"\n").split(b"\n")
    held = argument_lines(recording)
    place = held[len(held) // 2]
    garbled = [*lines[:place], lines[place][: len(lines[place]) // 2], *lines[place + 1 :]]
    sse = b"".join(b"data: " + line + b"\n\n" for line in garbled)
    for data in (b"\n".join(garbled) + b"\n", sse):
        assert not [call for call in finalize(data, wire=recording.wire) if call.executable]


# -- SDK objects ----------------------------------------------------------------------------


@each
def test_sdk_objects(recording: Recording) -> None:
    """The provider's own SDK, over the same bytes, gives objects that finalize to the same calls."""
    calls = finalize(sdk_stream(recording))

    if recording.id in corpus.INFERRED:
        # The SDK swallows the terminator: without a finish reason nothing tells that the stream was not cut.
        assert {call.code for call in calls} == {"no_finish"}
    else:
        check(calls, recording.calls)


def sdk_stream(recording: Recording) -> Any:
    client = sdk_client(recording.wire)
    if recording.wire == "openai-chat":
        return client.chat.completions.create(model=recording.id, messages=[], stream=True)
    return client.messages.create(model=recording.id, messages=[], max_tokens=1, stream=True)


@functools.cache
def sdk_client(wire: str) -> Any:
    """A real client whose transport answers with the recording that is named as the model."""
    import anthropic  # the SDKs take seconds to import
    import httpx2
    import openai

    by_id = {recording.id: recording.sse for recording in RECORDINGS}

    def answer(request):
        data = by_id[json.loads(request.content)["model"]]
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=data)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    make = openai.OpenAI if wire == "openai-chat" else anthropic.Anthropic
    return make(api_key="none", base_url="http://127.0.0.1", http_client=http, max_retries=0)


# -- run ------------------------------------------------------------------------------------


def recorder(ran: list[tuple[str, dict[str, Any]]], names: Iterable[str]) -> ToolRegistry:
    """A registry that takes any arguments for each name and notes what ran with what."""

    async def note(name: str, /, **arguments: Any) -> str:
        ran.append((name, arguments))
        return "done"

    return ToolRegistry(
        Tool.from_json_schema(
            name=name,
            input_schema={"type": "object", "additionalProperties": True},
            handler=functools.partial(note, name),
        )
        for name in names
    )


def results_in(messages: list[dict[str, Any]]) -> list[str]:
    """The call ids that have a result, in order."""
    found: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            found.append(message["tool_call_id"])
        elif message["role"] == "user":
            found += [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
    return found


def calls_in(messages: list[dict[str, Any]]) -> list[str]:
    """The ids of the client calls that the assistant message repeats, in order."""
    found: list[str] = []
    for message in messages:
        if message["role"] == "assistant":
            found += [call["id"] for call in message.get("tool_calls") or ()]
            content = message["content"] if isinstance(message["content"], list) else []
            found += [block["id"] for block in content if block["type"] == "tool_use"]
    return found


@each
async def test_run(recording: Recording) -> None:
    """Each executable call runs once with the recorded arguments, nothing else does, and each client call is answered."""
    ran: list[tuple[str, dict[str, Any]]] = []
    registry = recorder(ran, sorted({call.name for call in recording.calls if call.name}))

    async with Runner(registry) as runner:
        turn = await runner.run(recording.events)

    assert Counter((name, repr(arguments)) for name, arguments in ran) == Counter(
        (want.name, repr(want.arguments)) for want in recording.runnable
    )
    assert [outcome.call.position for outcome in turn.outcomes] == [
        place
        for place, want in enumerate(call for call in recording.calls if call.choice == 0)
        if not want.provider_executed
    ]
    assert [outcome.status for outcome in turn.outcomes] == [
        "succeeded" if want.runs else "refused" for want in recording.answered
    ]
    messages = turn.messages()
    assert results_in(messages) == [outcome.call.id for outcome in turn.outcomes]
    assert calls_in(messages) == [outcome.call.id for outcome in turn.outcomes]


@each
async def test_run_cut(recording: Recording) -> None:
    """A stream that stops before its finish runs nothing, and every call that had begun is answered as refused."""
    ran: list[tuple[str, dict[str, Any]]] = []
    registry = recorder(ran, sorted({call.name for call in recording.calls if call.name}))
    events = recording.events
    proven = next((place for place, event in enumerate(events) if is_end(event)), len(events))

    async with Runner(registry, on_stream_error="return") as runner:
        turns = [
            await runner.run(events[:proven], wire=recording.wire),
            await runner.run(raising(events[:proven]), wire=recording.wire),
        ]

    assert ran == []
    for turn in turns:
        assert {outcome.status for outcome in turn.outcomes} <= {"refused", "not_executed"}
        assert results_in(turn.messages()) == [outcome.call.id for outcome in turn.outcomes]


# -- the data of this test ------------------------------------------------------------------


def test_differences_are_of_recordings() -> None:
    """Every difference that is written down belongs to a recording that is there."""
    known = {recording.id for recording in RECORDINGS}
    places = corpus.INPUT_IN_START | corpus.NEVER_A_STRING | corpus.REUSED_ID
    assert {name for name, _ in places} | set(corpus.UNFIT) | corpus.INFERRED <= known


def test_numbers() -> None:
    """The corpus is the one that these tests were written against, or a larger one."""
    counted = Counter(recording.wire for recording in RECORDINGS)
    assert counted["openai-chat"] >= 198
    assert counted["anthropic-messages"] >= 99
    assert sum(len(recording.calls) for recording in RECORDINGS) >= 377
