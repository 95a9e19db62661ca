"""What holds for every wire, one that is not built in among them: in any chunks, damaged, and fed with anything."""

from __future__ import annotations

import copy
import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

from tests.wires import chat_kit
from tests.wires.openai_realtime import OpenAIRealtime
from toolrun import FinishPolicy, StreamFinalizer, finalize
from toolrun.wires import WIRES as BUILT_IN

from . import cases
from .corpus import chunks
from .hostile import HOSTILE
from .reading import assert_lifecycle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolrun import ToolCall
    from toolrun.abc import Wire

Json = dict[str, Any]

WIRES: dict[str, Wire] = {**BUILT_IN, "openai-realtime": OpenAIRealtime(replay=True)}


def in_chunks(events: Sequence[Json]) -> list[Json]:
    """Events of Claude, or of Nova, as InvokeModel sends them."""
    return [{"chunk": {"bytes": json.dumps(event).encode()}} for event in events]


def as_realtime(events: Sequence[Json]) -> list[Json]:
    """Events of Responses as Realtime has them: alike, but for the end."""
    ends = {"response.completed", "response.incomplete", "response.failed"}
    return [{**event, "type": "response.done"} if event["type"] in ends else event for event in events]


STREAMS: dict[str, list[list[Json]]] = {
    **{wire: [case["events"] for case in cases.of(wire)] for wire in WIRES},
    "bedrock-invoke": [
        in_chunks(case["events"]) for wire in ("anthropic-messages", "bedrock-converse") for case in cases.of(wire)
    ],
    "openai-realtime": [as_realtime(case["events"]) for case in cases.of("openai-responses")],
}

each = pytest.mark.parametrize("wire", WIRES)


def follow(wire: str, events: Sequence[object], end: str = "auto") -> tuple[list[Any], tuple[ToolCall, ...]]:
    finalizer = StreamFinalizer(WIRES[wire])
    told = [item for event in events for item in finalizer.feed(event)]
    told += finalizer.close(end)
    return told, finalizer.calls


@each
@pytest.mark.parametrize("end", ["auto", "normal", "eof", "error"])
def test_lifecycle(wire: str, end: str) -> None:
    """Dropped, cut and nameless calls too have one start, their deltas and one end, whatever the end of the stream."""
    for events in STREAMS[wire]:
        assert_lifecycle(*follow(wire, events, end))


@each
def test_any_chunking(wire: str) -> None:
    """Server-sent events and JSON lines, split anywhere, give what the decoded events give."""
    for number, events in enumerate(STREAMS[wire]):
        texts = [json.dumps(event, default=bytes.decode) for event in events]
        decoded = [json.loads(text) for text in texts]
        sse = "".join(
            f": comment\r\nevent: {name_of(event)}\r\ndata: {text}\r\n\r\n"
            for event, text in zip(events, texts, strict=True)
        )
        lines = "\n".join(texts)
        want = finalize(decoded, wire=WIRES[wire])
        for data, most in ((sse, 1), (sse, 40), (lines, 3), (lines, 4096)):
            assert finalize(chunks(data.encode(), f"{wire}-{number}", most=most), wire=WIRES[wire]) == want


def name_of(event: Json) -> str:
    return str(event.get("type") or next(iter(event)))


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every holder in a value with every key or index of it."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places_in(value[key])


@each
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_values(wire: str, name: str) -> None:
    """A value that raises, is endless or is huge, where the protocol has a field, raises nothing out of the finalizer."""
    random_ = random.Random(f"{wire}-{name}")
    for events in random_.sample(STREAMS[wire], k=3):
        for _ in range(3):
            damaged = copy.deepcopy(events)
            holder, key = random_.choice([*places_in(damaged)])
            holder[key] = HOSTILE[name]()
            assert_lifecycle(*follow(wire, damaged))
            assert_lifecycle(*follow(wire, [*events, HOSTILE[name]()]))


@each
def test_cut_or_broken_runs_nothing(wire: str) -> None:
    """Under the widest policy, no stream that raised before its end runs anything."""
    policy = FinishPolicy(missing_finish="infer", run_held={"length", "content_filter", "refusal"})
    for events in STREAMS[wire]:
        for length in range(len(events) + 1):
            finalizer = StreamFinalizer(WIRES[wire], policy=policy)
            for event in events[:length]:
                finalizer.feed(event)
            if not finalizer.ended:
                finalizer.close("error")
                assert not [call for call in finalizer.calls if call.executable]


def words_of(wire: str) -> list[str]:
    """The protocol's own words: its keys, and its short texts."""
    found = {key for events in STREAMS[wire] for holder, key in places_in(events) if isinstance(holder, dict)}
    values = (holder[key] for events in STREAMS[wire] for holder, key in places_in(events))
    return sorted(found | {value for value in values if isinstance(value, str) and len(value) < 40})


@each
def test_damage(wire: str) -> None:
    """Whatever stands where in the events, nothing raises, even in the decoder, and the history is plain data."""
    streams = [json.loads(json.dumps(events, default=bytes.decode)) for events in STREAMS[wire]]

    @settings(chat_kit.UNHURRIED, max_examples=40, derandomize=True)
    @given(chat_kit.soup(streams, words_of(wire)))
    def check(events: list[Any]) -> None:
        chat_kit.check_survives(WIRES[wire], events)

    check()
