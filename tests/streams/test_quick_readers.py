"""What a wire's quick reader takes is read exactly as its decoder reads it, and what is more than a piece is left to it."""

from __future__ import annotations

import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types import RawContentBlockDeltaEvent
from openai._models import construct_type
from openai.types.chat import ChatCompletionChunk

from tests.fuzz.vocabulary import ABSENT as MISSING
from tests.fuzz.vocabulary import ENDS, FILLINGS, ODD, SHAPES, Gap
from toolrun import StreamFinalizer, finalize
from toolrun.wires import WIRES

from .events import MESSAGE_STOP, chat, chunk, input_delta, message_start, piece, tool_start
from .reading import diagnostics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolrun import ToolCall
    from toolrun._core.response import Response
    from toolrun._core.seams import Decode, Sink
    from toolrun.abc import Wire

Json = dict[str, Any]


class Patient:
    """A wire without its quick reader."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.name = wire.name
        self.dialect = wire.dialect

    def recognises(self, event: Mapping[str, object]) -> bool:
        return self._wire.recognises(event)

    def decoder(self, sink: Sink) -> Decode:
        decode = self._wire.decoder(sink)
        return lambda event: decode(MappingProxyType(event) if type(event) is dict else event)

    def synthetic_id(self, digest: str) -> str:
        return self._wire.synthetic_id(digest)

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[Json]:
        return self._wire.assistant_messages(response, calls)

    def result_messages(self, results: Sequence[Any]) -> list[Json]:
        return self._wire.result_messages(results)

    def continues(self, finish_reason: str | None) -> bool:
        return self._wire.continues(finish_reason)


def read(wire: Wire, events: Sequence[object]) -> tuple[object, ...]:
    """Everything that comes of a stream."""
    finalizer = StreamFinalizer(wire)
    told = [item for event in events for item in finalizer.feed(event)]
    told += finalizer.close()
    return told, finalizer.calls, finalizer.response, wire.assistant_messages(finalizer.response, finalizer.calls)


def assert_read_alike(wire: str, events: Sequence[object]) -> None:
    assert read(WIRES[wire], events) == read(Patient(WIRES[wire]), events)


PIECES: dict[str, Callable[[int, str], Json]] = {
    "openai-chat": lambda index, text: chunk(piece(text, index=index)),
    "mistral": lambda index, text: chunk(piece(text, index=index)),
    "anthropic-messages": input_delta,
    "openai-responses": lambda index, text: {
        "type": "response.function_call_arguments.delta", "output_index": index, "item_id": f"i{index}", "delta": text,
    },
    "bedrock-converse": lambda index, text: {
        "contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": {"input": text}}}
    },
    "cohere-v2": lambda index, text: {
        "type": "tool-call-delta", "index": index, "delta": {"message": {"tool_calls": {"function": {"arguments": text}}}},
    },
}  # fmt: skip
"""For each wire that reads a bare piece on a way of its own, such a piece."""

VALUES = (*ODD, {"message": "no"}, "x", 0.0, 1.0, False, 2)
KEYS = (
    "error", "usage", "id", "extra", "index", "type", "name", "finish_reason", "content", "reasoning_content", "role", "refusal",
    "item_id", "call_id", "arguments", "input", "function_call", "custom",
)  # fmt: skip


def stream(wire: str, rng: random.Random) -> list[Json]:
    """Calls in pieces, among them what else a server says, each now and then with something odd in it."""
    events: list[Json] = []
    while len(events) < 10:
        if rng.random() < 0.5:
            event = PIECES[wire](rng.choice((0, 0, 1, 2)), rng.choice(FILLINGS[Gap.TEXT]))
        else:
            event = _filled(rng.choice((*SHAPES[wire], *ENDS[wire])), rng)
        if isinstance(event, dict):
            events.append(_odd(event, rng) if rng.random() < 0.4 else event)
    return [event for event in events if event]


def _filled(shape: Any, rng: random.Random) -> Any:
    if isinstance(shape, Gap):
        return rng.choice(FILLINGS[shape])
    if isinstance(shape, dict):
        filled = {key: _filled(value, rng) for key, value in shape.items()}
        return {key: value for key, value in filled.items() if value is not MISSING}
    if isinstance(shape, list):
        return [value for value in (_filled(item, rng) for item in shape) if value is not MISSING]
    return shape


def _odd(event: Json, rng: random.Random) -> Json:
    """The same with one value changed, added or left out, anywhere in it; lists may get longer."""
    found: list[Any] = []
    copied: Json = _copied(event, found)
    place = rng.choice(found)
    if isinstance(place, list):
        place.append(place[0] if place and rng.random() < 0.5 else rng.choice((None, {}, "x", 5)))
    elif place and rng.random() < 0.3:
        del place[rng.choice(list(place))]
    else:
        value = rng.choice(VALUES)
        place[rng.choice((*place, *place, *KEYS))] = None if value is MISSING else value
    return copied


def _copied(value: Any, found: list[Any]) -> Any:
    if isinstance(value, dict):
        copied: Any = {key: _copied(item, found) for key, item in value.items()}
    elif isinstance(value, list):
        copied = [_copied(item, found) for item in value]
    else:
        return value
    found.append(copied)
    return copied


@pytest.mark.parametrize("wire", PIECES)
def test_quick_and_patient(wire: str) -> None:
    """Events, calls, response and history are the same, whichever way an event went."""
    rng = random.Random(f"quick {wire}")
    for _ in range(150):
        events = stream(wire, rng)

        assert_read_alike(wire, events)


@pytest.mark.parametrize(("index", "text"), [(None, ""), (True, ""), (1.0, "{}"), ("1", "{}")])
def test_odd_indexes_of_blocks(index: Any, text: str) -> None:
    """A delta of Anthropic's with an index that is none belongs to block 0, and never to the call before it."""
    delta = {**input_delta(0, "{}"), "index": index}
    events = [message_start(), tool_start(1, "t", "f"), delta, MESSAGE_STOP]

    assert_read_alike("anthropic-messages", events)
    assert finalize(events)[0].raw_arguments == text


@pytest.mark.parametrize("index", [0.0, 1.0])
def test_whole_floats_are_indexes(index: float) -> None:
    """Protobuf's structs have no integers: pieces of two calls in turn go each to its own."""
    events = chat(
        piece("", index=0.0, id="a", name="f"),
        piece("", index=1.0, id="b", name="g"),
        piece('{"n"', index=index),
        piece("{}", index=1 - index),
        piece(":1}", index=index),
    )

    assert sorted(call.raw_arguments for call in finalize(events)) == ['{"n":1}', "{}"]


def test_late_response_id() -> None:
    """The first id of a response counts, also if it comes with a piece of a call."""
    events = [
        chunk(piece("", index=0, id="c", name="f")),
        {"id": "r1", **chunk(piece("{", index=0))},
        {"id": "r1", **chunk(piece("}", index=0))},
    ]
    finalizer = StreamFinalizer("openai-chat")
    for event in events:
        finalizer.feed(event)

    assert finalizer.response.id == "r1"
    assert_read_alike("openai-chat", events)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "content"])
def test_thoughts_beside_a_piece_in_objects(field: str) -> None:
    """What the SDK has as an extra beside a piece of a call is read."""
    start = chunk(piece("", index=0, id="c", name="f"))
    both = chunk(piece("{}", index=0))
    both["choices"][0]["delta"][field] = "hm"
    finalizer = StreamFinalizer("openai-chat")
    for event in (start, both):
        finalizer.feed(construct_type(type_=ChatCompletionChunk, value=event))

    [part] = [part for part in finalizer.response.parts if part.position is None]
    assert part.data == {field: "hm"}


def test_objects_without_an_index() -> None:
    """An SDK's object may have no index, too."""
    delta = construct_type(type_=RawContentBlockDeltaEvent, value={**input_delta(0, "{}"), "index": None})
    events = [message_start(), tool_start(1, "t", "f"), delta, MESSAGE_STOP]

    assert diagnostics(events, "anthropic-messages") == ["orphan_delta"]
    assert_read_alike("anthropic-messages", events)


@pytest.mark.parametrize(
    "told",
    [
        {"tool_calls": [{"index": 0, "id": "", "type": "function", "function": {"name": "", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "id": None, "function": {"name": None, "arguments": None}}]},
        {"tool_calls": [{}]},
        {"function_call": {"name": "", "arguments": ""}},
        {"function_call": {"name": None}},
    ],
)
@pytest.mark.parametrize("as_object", [False, True])
def test_empty_fields_are_no_calls(told: Json, as_object: bool) -> None:
    """Servers that fill the fields of calls in beside texts have called nothing."""
    start = [{"choices": [{"index": 0, "delta": {"content": "Hi", **told}, "finish_reason": None}]}]
    events: list[object] = [*start, chunk(finish="stop")]
    if as_object:
        events = [construct_type(type_=ChatCompletionChunk, value=event) for event in events]

    assert finalize(events) == ()


def test_empty_piece_of_a_custom_call() -> None:
    """An empty piece beside a call leaves that call what it is."""
    events = chat(piece("{}", index=0, id="c", name="f"), {"index": 1, "custom": {"name": "", "input": ""}})

    assert [(call.kind, call.executable) for call in finalize(events)] == [("function", True)]
