"""Every recorded stream of every wire, one that is not built in among them: whole, re-framed, re-chunked, cut at every event, garbled, and run."""

from __future__ import annotations

import functools
import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.wires.openai_realtime import OpenAIRealtime
from toolrun import (
    CallStatus,
    FinishPolicy,
    Runner,
    StreamFinalizer,
    Tool,
    ToolRegistry,
    finalize,
)
from toolrun.wires import WIRES as BUILT_IN

from . import corpus
from .corpus import check, raising
from .reading import assert_lifecycle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolrun import ToolCall, Turn
    from toolrun.abc import Wire

    from .corpus import Recording

WIRES: dict[str, Wire] = {**BUILT_IN, "openai-realtime": OpenAIRealtime(replay=True)}
RECORDINGS = corpus.recordings(*WIRES)

pytestmark = pytest.mark.skipif(not RECORDINGS, reason=corpus.ABSENT)
each = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: f"{recording.wire}-{recording.id}")


# -- whole ----------------------------------------------------------------------------------


@each
def test_as_recorded(recording: Recording) -> None:
    """Decoded events give the calls of the index, whether the wire is named or recognised, in an envelope or without."""
    if recording.wire in BUILT_IN:
        check(finalize(recording.events), recording.calls)
    check(finalize(bare(recording), wire=WIRES[recording.wire]), recording.calls)


def bare(recording: Recording) -> Sequence[Any]:
    """The events as the provider's SDK has them: those of Converse have their names as their only keys."""
    if recording.wire == "bedrock-converse":
        return [{event["event"]: event["data"]} for event in recording.events]
    return [
        event if isinstance(told, str) else told
        for event, told in zip(recording.events, recording.payloads, strict=True)
    ]


@each
def test_bytes(recording: Recording) -> None:
    """The recording's own lines, and the same events as the provider frames them, give the same calls in any chunks."""
    for data in (recording.data, recording.stream):
        if recording.wire in BUILT_IN:
            check(finalize(data), recording.calls)
        for most in (len(data), 4096, 61):
            check(finalize(corpus.chunks(data, recording.id, most=most), wire=WIRES[recording.wire]), recording.calls)


ONE_OF_EACH = {
    wire: max(
        (recording for recording in RECORDINGS if recording.wire == wire and len(recording.data) < 20_000),
        key=lambda recording: (len(recording.calls), len(recording.data)),
    )
    for wire in WIRES
    if RECORDINGS
}


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("wire", ONE_OF_EACH)
def test_byte_by_byte(wire: str, line_end: bytes) -> None:
    """One byte at a time, with any line end, with a byte order mark and comments: the same calls."""
    recording = ONE_OF_EACH[wire]
    data = b"\xef\xbb\xbf: a comment\n\n" + recording.stream
    if wire == "ollama":
        data = recording.stream
    data = data.replace(b"\n", line_end)

    check(finalize([data[place : place + 1] for place in range(len(data))], wire=WIRES[wire]), recording.calls)


@each
def test_lifecycle(recording: Recording) -> None:
    """Each call has one start, deltas that make its raw text, and one end, in that order; starts and ends in call order."""
    finalizer = StreamFinalizer(WIRES[recording.wire])
    told = [item for event in recording.events for item in finalizer.feed(event)]
    told += finalizer.close()
    assert_lifecycle(told, finalizer.calls)


# -- cut ------------------------------------------------------------------------------------


def prefixes(recording: Recording) -> Iterator[tuple[int, tuple[ToolCall, ...]]]:
    """The calls of every prefix, in the time of one stream: the assembler is asked, after each event, as if for the last.

    Asking changes nothing: what the last prefix gives is held against the index, and some prefixes against real ends.
    """
    finalizer = StreamFinalizer(WIRES[recording.wire], deltas=False)
    for length, event in enumerate((None, *recording.events)):
        if length:
            finalizer.feed(event)
        yield length, finalizer._assembler.close(FinishPolicy())


@each
def test_cut_at_every_event(recording: Recording) -> None:
    """A prefix without a finish or a terminator runs nothing; one with it runs nothing but what the whole runs."""
    allowed = [(want.name, want.arguments) for want in recording.runnable]
    calls: tuple[ToolCall, ...] = ()
    for length, calls in prefixes(recording):
        if length <= recording.proven:
            assert {call.status for call in calls} <= {CallStatus.INCOMPLETE}, length
        runs = [(call.name, call.arguments) for call in calls if call.executable]
        assert all(call in allowed for call in runs), length
        assert len(runs) <= len(allowed), length
    check(calls, recording.calls)


@each
def test_cut_for_real(recording: Recording) -> None:
    """A stream that stops or raises runs nothing: at its first event, at its finish, and at places between."""
    random_ = random.Random(recording.id)
    lengths = {0, recording.proven, *random_.choices(range(recording.proven + 1), k=2)}
    for length, asked in prefixes(recording):
        if length not in lengths:
            continue
        stopped = finalize(recording.events[:length], wire=WIRES[recording.wire])
        raised = finalize(raising(recording.events[:length]), wire=WIRES[recording.wire])
        assert stopped == asked
        assert {call.status for call in (*stopped, *raised)} <= {CallStatus.INCOMPLETE}
        assert not [call for call in (*stopped, *raised) if call.executable]
        assert [call.raw_arguments for call in raised] == [call.raw_arguments for call in stopped]


@each
def test_cut_at_bytes(recording: Recording) -> None:
    """Bytes that stop anywhere, inside an event too, run nothing that the whole does not run."""
    allowed = [(want.name, want.arguments) for want in recording.runnable]
    random_ = random.Random(recording.id)
    for data in (recording.stream, recording.data):
        for cut in random_.sample(range(len(data)), k=min(4, len(data))):
            calls = finalize(data[:cut], wire=WIRES[recording.wire])
            assert all((call.name, call.arguments) in allowed for call in calls if call.executable), cut


HOLD_ARGUMENTS = (b"partial_json", b'"arguments"', b'"functionCall"', b'"input"', b".delta", b'"bytes"')


@each
def test_lost_line(recording: Recording) -> None:
    """One line garbled in the middle of what makes the calls runs no client call, whatever the finish says."""
    lines = recording.data.rstrip(b"\n").split(b"\n")
    held = [place for place, line in enumerate(lines[:-1]) if any(mark in line for mark in HOLD_ARGUMENTS)]
    place = held[len(held) // 2] if held else (len(lines) - 1) // 2
    garbled = [*lines[:place], lines[place][: len(lines[place]) // 2], *lines[place + 1 :]]
    sse = b"".join(b"data: " + line + b"\n\n" for line in garbled)
    for data in (b"\n".join(garbled) + b"\n", sse):
        assert not [call for call in finalize(data, wire=WIRES[recording.wire]) if call.executable]


# -- SDK objects ----------------------------------------------------------------------------


WITH_SDK = [recording for recording in RECORDINGS if recording.wire in ("openai-chat", "anthropic-messages")]


@pytest.mark.parametrize("recording", WITH_SDK, ids=lambda recording: recording.id)
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

    by_id = {recording.id: recording.stream for recording in WITH_SDK}

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


def ids_in(messages: Any, ids: Sequence[str]) -> list[str]:
    """Every value that is one of some ids, in the order of the messages; OpenRouter repeats one beside its reasoning."""
    if isinstance(messages, dict | list):
        inner = messages if isinstance(messages, list) else [messages[key] for key in messages if key != REASONING]
        return [found for value in inner for found in ids_in(value, ids)]
    return [messages] if messages in ids else []


def assert_answered(turn: Turn) -> None:
    """Each client call is in the history once, and answered once, in order."""
    ids = [outcome.call.id for outcome in turn.outcomes]
    told = ids_in(turn.messages(), ids)
    assert told in ([*ids, *ids], []), told
    assert told or turn.wire.name in WITHOUT_IDS or not ids


REASONING = "reasoning_details"

WITHOUT_IDS = ("gemini", "ollama")
"""Wires that match results to calls by their order, where the provider gave no ids."""


@pytest.mark.parametrize("wire", WIRES)
async def test_run(wire: str) -> None:
    """Each executable call runs once with the recorded arguments, nothing else does, and each client call is answered."""
    recordings = [recording for recording in RECORDINGS if recording.wire == wire]
    ran: list[tuple[str, dict[str, Any]]] = []

    async with Runner(recorder(ran, names_in(recordings))) as runner:
        for recording in recordings:
            ran.clear()
            turn = await runner.run(recording.events, wire=WIRES[wire])

            assert Counter((name, repr(arguments)) for name, arguments in ran) == Counter(
                (want.name, repr(want.arguments)) for want in recording.runnable
            ), recording.id
            assert [outcome.call.position for outcome in turn.outcomes] == [
                place
                for place, want in enumerate(call for call in recording.calls if call.choice == 0)
                if not want.provider_executed
            ], recording.id
            assert [outcome.status for outcome in turn.outcomes] == [
                "succeeded" if want.runs else "refused" for want in recording.answered
            ], recording.id
            assert_answered(turn)


@pytest.mark.parametrize("wire", WIRES)
async def test_run_cut(wire: str) -> None:
    """A stream that stops before its finish runs nothing, and every call that had begun is answered as refused."""
    recordings = [recording for recording in RECORDINGS if recording.wire == wire]
    ran: list[tuple[str, dict[str, Any]]] = []

    async with Runner(recorder(ran, names_in(recordings)), on_stream_error="return") as runner:
        for recording in recordings:
            cut = recording.events[: recording.proven]
            for source in (cut, raising(cut)):
                turn = await runner.run(source, wire=WIRES[wire])

                assert ran == [], recording.id
                assert {outcome.status for outcome in turn.outcomes} <= {"refused", "not_executed"}, recording.id
                assert_answered(turn)


def names_in(recordings: Iterable[Recording]) -> list[str]:
    return sorted({call.name for recording in recordings for call in recording.calls if call.name})


# -- the data of this test ------------------------------------------------------------------


def test_differences_are_of_recordings() -> None:
    """Every difference that is written down belongs to a recording that is there."""
    known = {recording.id for recording in RECORDINGS}
    places = (
        corpus.INPUT_IN_START | corpus.NEVER_A_STRING | corpus.REUSED_ID | corpus.APPROVAL | corpus.RENUMBERED.keys()
    )
    assert {name for name, _ in places} | set(corpus.UNFIT) | corpus.INFERRED <= known


LEAST = {
    "openai-chat": (198, 227),
    "anthropic-messages": (99, 150),
    "openai-responses": (94, 116),
    "gemini": (48, 52),
    "bedrock-converse": (20, 22),
    "bedrock-invoke": (10, 12),
    "mistral": (17, 15),
    "cohere-v2": (9, 10),
    "ollama": (2, 1),
    "openai-realtime": (3, 3),
}
"""How many recordings and calls of each wire these tests were written against."""


def test_numbers() -> None:
    """The corpus is the one that these tests were written against, or a larger one, and its streams have an end."""
    for wire, (streams, calls) in LEAST.items():
        own = [recording for recording in RECORDINGS if recording.wire == wire]
        assert len(own) >= streams
        assert sum(len(recording.calls) for recording in own) >= calls
    endless = [recording.id for recording in RECORDINGS if recording.proven == len(recording.events)]
    assert len(endless) == 3
    assert LEAST.keys() == WIRES.keys()
