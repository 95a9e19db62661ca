"""What holds for any stream, however wild: found by Hypothesis, not written down case by case."""

from __future__ import annotations

import itertools
import json
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrun import (
    CallDelta,
    CallFinalized,
    CallStatus,
    FinishPolicy,
    StreamFinalizer,
    ToolCall,
    finalize,
)

from .events import (
    DONE,
    MESSAGE_STOP,
    block_start,
    block_stop,
    chunk,
    input_delta,
    message_delta,
    message_start,
    piece,
    sse,
    tool_start,
)
from .hostile import HOSTILE, nested
from .reading import assert_lifecycle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


bounded = settings(max_examples=200, deadline=None, derandomize=True)

# -- streams that could come from a server --------------------------------------------------

TEXTS = st.sampled_from(
    ["", " ", "{", "}", '{"a"', ":1}", '{"a":1}', '{"b":2}', "[1]", "{}", '"', "\\u00e9", "é", "\n", "null", "NaN",
     '{"t":"\ud83d', '\ude00"}', "\ud83d", "\ude00", "😀", "1", '{"a":1e999}', '{"a":1,"a":2}'],
)  # fmt: skip
ARGUMENTS = st.one_of(TEXTS, st.sampled_from([None, 7, True, 1.5, {"a": 1}, {}, [1]]))
INDEXES = st.sampled_from([None, 0, 0, 1, 1, 2, "0", 7, -1, True, "x"])
IDS = st.sampled_from([None, None, "", "null", "a", "b", "0", 5, " "])
NAMES = st.sampled_from([None, None, "", "f", "g", "get_", "weather", "get_weather"])
REASONS = st.sampled_from(["stop", "tool_calls", "length", "content_filter", "error", "odd", "", " ", "TOOL-CALLS"])

chat_calls = st.one_of(
    st.builds(piece, ARGUMENTS, index=INDEXES, id=IDS, name=NAMES),
    st.builds(partial(piece, custom=True), TEXTS, index=INDEXES, id=IDS, name=NAMES),
)
chat_events = st.one_of(
    st.builds(
        lambda calls, choice: chunk(*calls, choice=choice), st.lists(chat_calls, max_size=3), st.sampled_from([0, 0, 1])
    ),
    st.builds(lambda calls: chunk(*calls), st.lists(chat_calls, min_size=1, max_size=2)),
    st.builds(lambda reason, choice: chunk(finish=reason, choice=choice), REASONS, st.sampled_from([0, 0, 1])),
    st.builds(lambda call, reason: chunk(call, finish=reason), chat_calls, REASONS),
    st.builds(
        lambda name, text: {"choices": [{"index": 0, "delta": {"function_call": {"name": name, "arguments": text}}}]},
        NAMES,
        TEXTS,
    ),
    st.just({"choices": [{"index": 0, "delta": {"content": "text", "tool_calls": None}}]}),
    st.just({"choices": [], "usage": {"total_tokens": 3}}),
    st.just({"error": {"message": "overloaded"}}),
    st.just(
        {"choices": [{"index": 0, "delta": {"executed_tools": [{"index": 0, "name": "search", "arguments": "{}"}]}}]}
    ),
    st.just(DONE),
)
message_events = st.one_of(
    st.builds(message_start, st.sampled_from(["m1", "m2", None])),
    st.builds(
        tool_start,
        INDEXES,
        IDS,
        NAMES,
        st.sampled_from([None, {}, {"a": 1}, '{"a":1}', [1]]),
        kind=st.sampled_from(["tool_use", "tool_use", "server_tool_use", "mcp_tool_use"]),
    ),
    st.builds(input_delta, INDEXES, ARGUMENTS),
    st.builds(input_delta, st.sampled_from([0, 1]), TEXTS),
    st.builds(block_stop, st.sampled_from([0, 1])),
    st.builds(block_start, INDEXES, st.just("text"), text=st.just("hello")),
    st.builds(message_delta, st.sampled_from(["tool_use", "end_turn", "max_tokens", "refusal", "pause_turn", None])),
    st.just({"type": "ping"}),
    st.just({"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}}),
    st.just(MESSAGE_STOP),
)
streams = st.one_of(
    st.tuples(st.just("openai-chat"), st.lists(chat_events, max_size=12)),
    st.tuples(st.just("anthropic-messages"), st.lists(message_events, max_size=14)),
)
ENDS = st.sampled_from(["auto", "normal", "eof", "error"])


def follow(
    wire: str, events: Sequence[object], end: str = "auto", **options: Any
) -> tuple[list[Any], tuple[ToolCall, ...]]:
    """Feed one by one; give every event that came of it, and the calls."""
    finalizer = StreamFinalizer(wire, **options)
    told = [item for event in events for item in finalizer.feed(event)]
    told += finalizer.close(end)
    return told, finalizer.calls


@bounded
@given(streams, ENDS)
def test_lifecycle(stream: tuple[str, list[object]], end: str) -> None:
    """Each call has one start, then deltas that make its raw text, then one end."""
    told, calls = follow(*stream, end)
    assert [call.position for call in calls] == list(range(len(calls)))
    assert_lifecycle(told, calls)


@bounded
@given(st.lists(st.text(st.sampled_from('x"é\ud83d\ude00'), max_size=3), max_size=8), ENDS)
def test_deltas_are_whole_characters(texts: list[str], end: str) -> None:
    """A delta ends with half of a surrogate pair only if the other half never comes."""
    events = [chunk(piece(text, index=0, id="c", name="f")) for text in texts]
    told, calls = follow("openai-chat", events, end)
    for call in calls:
        texts = [item.text for item in told if isinstance(item, CallDelta) and item.position == call.position]
        assert all(texts)
        for text, following in itertools.pairwise(texts):
            split = "\ud800" <= text[-1] <= "\udbff" and "\udc00" <= following[0] <= "\udfff"
            assert not split


@bounded
@given(streams, ENDS)
def test_what_may_run(stream: tuple[str, list[object]], end: str) -> None:
    """Only a finished, named call of choice 0 whose raw text is one strict JSON object may run."""
    _, calls = follow(*stream, end)
    for call in calls:
        assert (call.status is CallStatus.OK) or not call.executable
        assert (call.arguments is not None) == (call.status is CallStatus.OK and call.kind == "function")
        if call.executable:
            assert call.choice == 0
            assert call.name
            assert not call.provider_executed
            assert call.code != "held"
        if call.arguments is not None:
            text = call.raw_arguments
            assert call.arguments == (json.loads(text) if text.strip() else {})
    ids = [call.id for call in calls if call.choice == 0]
    assert all(ids)
    assert len(set(ids)) == len(ids)


@bounded
@given(streams, st.sampled_from(["auto", "eof", "error"]))
def test_no_end_no_run(stream: tuple[str, list[object]], end: str) -> None:
    """Without a finish or a terminator nothing runs, and no call is ok."""
    wire, events = stream
    unfinished = [event for event in events if not says_end(event)]
    _, calls = follow(wire, unfinished, end)
    assert {call.status for call in calls} <= {CallStatus.INCOMPLETE}
    assert not [call for call in calls if call.executable]


@bounded
@given(streams)
def test_error_and_no_end_never_run(stream: tuple[str, list[object]]) -> None:
    """A stream that raised before its end runs nothing under any policy."""
    wire, events = stream
    unfinished = [event for event in events if not says_end(event)]
    policy = FinishPolicy(missing_finish="infer", run_held={"length", "content_filter", "refusal", "odd"})
    _, calls = follow(wire, unfinished, "error", policy=policy)
    assert not [call for call in calls if call.executable]


@bounded
@given(streams, ENDS, st.randoms(use_true_random=False))
def test_chunking(stream: tuple[str, list[object]], end: str, random_: Any) -> None:
    """SSE bytes give the same calls and events as decoded events, and the same diagnostics however they are cut."""
    wire, events = stream
    data = sse(events)
    parts = []
    start = 0
    while start < len(data):
        size = random_.choice([1, 2, 5, 30, 200])
        parts.append(data[start : start + size])
        start += size

    whole = follow(wire, [data], end)

    assert follow(wire, parts, end) == whole
    assert whole[1] == follow(wire, events, end)[1]


@bounded
@given(streams, ENDS)
def test_without_deltas(stream: tuple[str, list[object]], end: str) -> None:
    """Leaving the deltas out changes no call, and `finalize` gives the same."""
    told, calls = follow(*stream, end)
    silent, same = follow(*stream, end, deltas=False)
    assert same == calls
    shown = ("CallDelta", "TextDelta", "CitationAdded", "UsageReported")
    assert [item for item in told if type(item).__name__ not in shown] == silent
    wire, events = stream
    assert finalize(events, wire=wire, end=end) == calls


@bounded
@given(streams, ENDS)
def test_feeding_is_repeatable(stream: tuple[str, list[object]], end: str) -> None:
    """The same events give the same calls, synthetic ids included, and are not changed."""
    wire, events = stream
    before = json.dumps(events)
    assert follow(wire, events, end) == follow(wire, events, end)
    assert json.dumps(events) == before


@bounded
@given(streams, ENDS)
def test_objects(stream: tuple[str, list[object]], end: str) -> None:
    """Objects with attributes, as SDKs give them, mean the same as dicts."""
    wire, events = stream
    _, calls = follow(wire, [as_object(event) for event in events], end)
    assert calls == follow(wire, events, end)[1]


def as_object(value: Any) -> Any:
    """Dicts as objects, all the way down but for arguments, which SDKs leave as they are."""
    if isinstance(value, dict):
        fields = {key: item if key in ("arguments", "input") else as_object(item) for key, item in value.items()}
        return SimpleNamespace(**fields)
    return [as_object(item) for item in value] if isinstance(value, list) else value


def says_end(event: Any) -> bool:
    """Tell whether an event says that anything is finished."""
    if event == DONE:
        return True
    delta = event.get("delta") or {}
    return (
        event.get("type") == "message_stop"
        or (event.get("type") == "message_delta" and bool(delta.get("stop_reason")))
        or any((choice.get("finish_reason") or "").strip() for choice in event.get("choices") or ())
    )


# -- anything at all ------------------------------------------------------------------------

KEYS = st.sampled_from(
    ["type", "choices", "index", "delta", "message", "tool_calls", "function", "function_call", "custom", "id", "name",
     "arguments", "input", "finish_reason", "content", "content_block", "partial_json", "stop_reason", "error",
     "usage", "executed_tools", "reasoning_details", "event", "data", "chunk", "object", "text", "citations"],
)  # fmt: skip
TYPES = st.sampled_from(
    ["message_start", "message_delta", "message_stop", "message", "content_block_start", "content_block_delta",
     "content_block_stop", "tool_use", "server_tool_use", "input_json_delta", "text_delta", "citations_delta", "error",
     "chat.completion.chunk", "chunk", "[DONE]"],
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), TYPES, TEXTS,
    st.sampled_from([10**40, -1, "9" * 50, "\ud800", "\x00"]),
)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=20,
)
EVENTS = st.one_of(st.dictionaries(KEYS, JSON, max_size=6), JSON)


@settings(bounded, max_examples=250)
@given(st.sampled_from(["auto", "openai-chat", "anthropic-messages"]), st.lists(EVENTS, max_size=5), ENDS)
def test_nothing_raises(wire: str, events: list[object], end: str) -> None:
    """Values of the wrong type everywhere raise nothing, whether they come decoded, as objects or as bytes."""
    told, calls = follow(wire, events, end)
    assert [item.call for item in told if isinstance(item, CallFinalized)] == list(calls)
    follow(wire, [as_object(event) for event in events], end)
    follow(wire, [json.dumps(events, default=str).encode()], end)


@settings(bounded, max_examples=250)
@given(st.sampled_from(["auto", "openai-chat", "anthropic-messages"]), st.binary(max_size=200), ENDS)
def test_no_bytes_raise(wire: str, data: bytes, end: str) -> None:
    """No bytes raise anything, and their chunking makes no difference."""
    assert follow(wire, [data], end) == follow(wire, [data[place : place + 1] for place in range(len(data))], end)


LINES = st.one_of(
    st.sampled_from(
        [b"", b"data:", b"data: ", b"data", b"event: error", b"event:", b": x", b"{", b"}", b"[", b"]", b",", b"[DONE]",
         b"data: [DONE]", b"data: {", b"data: }", b'data: {"choices":[]}', b'{"choices":[]}', b"\xef\xbb\xbf", b"id: 1",
         b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}',
         b'{"choices":[{"finish_reason":"stop"}]}', b'data: {"type":"message_stop"}', b"data: 5", b"data: \xff", b'"', b'"x"'],
    ),
    st.binary(max_size=6),
)  # fmt: skip


@settings(bounded, max_examples=250)
@given(st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n"])), max_size=10))
def test_lines_in_any_chunking(lines: list[tuple[bytes, bytes]]) -> None:
    """Lines of every kind, with line ends of every kind, give the same events in any chunking."""
    data = b"".join(line + end for line, end in lines)
    whole = follow("openai-chat", [data])
    assert follow("openai-chat", [data[place : place + 1] for place in range(len(data))]) == whole
    assert follow("openai-chat", [data[place : place + 3] for place in range(0, len(data), 3)]) == whole


DEEP = {
    "event of objects": nested(5_000),
    "event of lists": nested(5_000, key=None),
    "known keys": nested(5_000, key="choices"),
    "arguments": chunk(piece(nested(5_000), index=0, id="c", name="f")),
    "reasoning": {"choices": [{"index": 0, "delta": {"reasoning_details": [nested(5_000)]}}]},
    "usage": {"choices": [], "usage": nested(5_000)},
    "error": {"error": nested(5_000)},
    "input": tool_start(0, "t", "f", nested(5_000)),
    "block": block_start(0, "text", text="x", citations=[nested(5_000)]),
    "envelope": {"event": "x", "data": nested(5_000)},
}


@pytest.mark.parametrize("wire", ["auto", "openai-chat", "anthropic-messages"])
@pytest.mark.parametrize("event", DEEP.values(), ids=DEEP.keys())
def test_deep_events(event: object, wire: str) -> None:
    """An event that is nested thousands deep raises nothing and spoils nothing that is finished."""
    told, _ = follow(wire, [event, as_namespace(event)])
    assert len(told) < 20


def as_namespace(event: object) -> object:
    return SimpleNamespace(**event) if isinstance(event, dict) else event


PLACES: dict[str, Callable[[Any], Any]] = {
    "alone": lambda value: value,
    "in choices": lambda value: {"choices": [value, {"index": 0, "delta": value}]},
    "in type": lambda value: {"type": value, "choices": value},
    "in a call": lambda value: chunk(piece(value, index=0, id=value, name=value)),
    "in a delta": lambda value: {"type": "content_block_delta", "index": value, "delta": {"type": value}},
    "in a block": lambda value: tool_start(0, value, value, value),
    "in an error": lambda value: {"error": value, "type": "error"},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_objects(name: str, place: str) -> None:
    """No object raises out of `feed` or `close`, whatever it does when it is looked at."""
    for wire in ("auto", "openai-chat", "anthropic-messages"):
        _, calls = follow(wire, [PLACES[place](HOSTILE[name]())])
        assert not [call for call in calls if call.executable]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
def test_hostile_objects_beside_a_call(name: str, wire: str) -> None:
    """What cannot be read at all costs the calls before it nothing but, at most, their run."""
    before = [chunk(piece('{"a": 1}', index=0, id="c", name="f"))]
    after = [chunk(finish="stop")]
    if wire == "anthropic-messages":
        before = [message_start(), tool_start(0, "c", "f"), input_delta(0, '{"a": 1}')]
        after = [message_delta("tool_use"), MESSAGE_STOP]
    _, calls = follow(wire, [*before, HOSTILE[name](), *after])
    assert [(call.id, call.name, call.raw_arguments) for call in calls] == [("c", "f", '{"a": 1}')]
