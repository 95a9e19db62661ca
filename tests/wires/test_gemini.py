"""The `gemini` wire: its cases, the recordings, its rules one by one, the real SDK, hostile input, and history."""

from __future__ import annotations

import base64
import copy
import dataclasses
import itertools
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.streams import cases, corpus
from toolrun import FinishPolicy, Runner, StreamFinalizer, Tool, ToolRegistry, afinalize, finalize
from toolrun._core.assembler import Assembler
from toolrun._core.seams import ToolResult
from toolrun._testing.loopback import HttpReply, HttpRequest, LoopbackServer, json_reply
from toolrun.wires.gemini import Gemini

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.streams.corpus import Recording
    from toolrun import ToolCall

Json = dict[str, Any]

GEMINI = Gemini()


# -- writing events down --------------------------------------------------------------------


def chunk(*parts: Any, finish: str | None = None, **rest: Any) -> Json:
    """A chunk with one candidate; `rest` stands beside its content."""
    candidate: Json = {"content": {"role": "model", "parts": list(parts)}, **rest}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "responseId": "r"}


def call(name: str | None = None, args: Any = None, *, signature: str | None = None, **rest: Any) -> Json:
    """A `functionCall` part; what is None is left out."""
    told = {"name": name, "args": args, **rest}
    part: Json = {"functionCall": {key: value for key, value in told.items() if value is not None}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def pieces(*given: Json, more: bool = True, **rest: Any) -> Json:
    """A `functionCall` part with partial arguments."""
    return call(partialArgs=list(given), **({"willContinue": True} if more else {}), **rest)


def text_piece(path: str, text: str, *, more: bool = False) -> Json:
    return {"jsonPath": path, "stringValue": text, **({"willContinue": True} if more else {})}


def number(path: str, value: float) -> Json:
    return {"jsonPath": path, "numberValue": value}


STOP = chunk(finish="STOP")
END = call()
BEGIN = call("f", willContinue=True)


def done(*parts: Json) -> list[Json]:
    """Each part in a chunk of its own, then the finish."""
    return [*(chunk(part) for part in parts), STOP]


def run(events: Sequence[Any], **options: Any) -> tuple[ToolCall, ...]:
    return finalize(list(events), wire=GEMINI, **options)


def seen(calls: Sequence[ToolCall]) -> list[tuple[str | None, Any, str]]:
    """Name, raw text as JSON where it is JSON, and status with its code."""
    return [(call.name, _json(call.raw_arguments), " ".join(filter(None, (call.status, call.code)))) for call in calls]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def fed(events: Sequence[Any]) -> tuple[StreamFinalizer, list[Any]]:
    finalizer = StreamFinalizer(GEMINI)
    told = [item for event in events for item in finalizer.feed(event)]
    return finalizer, [*told, *finalizer.close()]


def diagnostics(events: Sequence[Any]) -> list[tuple[str, str]]:
    return [(item.code, item.message) for item in fed(events)[1] if type(item).__name__ == "Diagnostic"]


def messages(events: Sequence[Any], results: Sequence[str] = (), *, failed: bool = False) -> list[Json]:
    """The history of a response, with one result for each client call."""
    finalizer, _ = fed(events)
    calls = [call for call in finalizer.calls if call.choice == 0]
    client = [call for call in calls if not call.provider_executed]
    answers = [
        ToolResult(call, text, is_error=failed)
        for call, text in itertools.zip_longest(client, results, fillvalue="done")
        if call != "done"
    ]
    return [*GEMINI.assistant_messages(finalizer.response, calls), *GEMINI.result_messages(answers)]


# -- cases ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["ge-006-malformed-empty", "ge-018-unexpected-tool-call"])
def test_case_without_calls_is_diagnosed(case: str) -> None:
    assert [code for code, _ in diagnostics(cases.BY_ID[case]["events"])] == ["finish_without_calls"]


# -- recordings -----------------------------------------------------------------------------

RECORDINGS = corpus.recordings("gemini")
recorded = pytest.mark.skipif(not RECORDINGS, reason=corpus.ABSENT)
each = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.id)
on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the client's own waiting is asyncio's


def sse(events: Sequence[Json]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\r\n\r\n" for event in events)


@recorded
@each
def test_recording_as_an_array(recording: Recording) -> None:
    """The JSON array that comes without `alt=sse` is read too, cut anywhere."""
    data = json.dumps(recording.events).encode()
    for most in (len(data), 4096, 61):
        corpus.check(run([*corpus.chunks(data, recording.id, most=most)]), recording.calls)


@recorded
@each
def test_recording_keeps_text_and_usage(recording: Recording) -> None:
    events = recording.events
    finalizer, told = fed(events)
    parts = [
        part for event in events for one in event["candidates"] for part in one.get("content", {}).get("parts", ())
    ]
    assert finalizer.response.text == "".join(part.get("text", "") for part in parts if not part.get("thought"))
    assert "".join(item.text for item in told if type(item).__name__ == "TextDelta" and item.kind == "reasoning") == (
        "".join(part.get("text", "") for part in parts if part.get("thought"))
    )
    assert finalizer.response.usage["totalTokenCount"] == events[-1]["usageMetadata"]["totalTokenCount"]
    assert finalizer.response.id == events[0]["responseId"]


# -- whole calls ----------------------------------------------------------------------------


def test_equal_calls_without_ids_are_two() -> None:
    calls = run([chunk(call("f", {"x": 1}), call("f", {"x": 1}), finish="STOP")])
    assert seen(calls) == [("f", {"x": 1}, "ok"), ("f", {"x": 1}, "ok")]
    assert [call.synthetic_id for call in calls] == [True, True]
    assert calls[0].id != calls[1].id


def test_same_id_with_same_arguments_is_one_call() -> None:
    calls = run(done(call("f", {"x": 1}, id="a"), call("f", {"x": 1}, id="a")))
    assert [(call.id, call.raw_arguments) for call in calls] == [("a", '{"x": 1}')]


def test_same_id_with_other_arguments_is_another_call() -> None:
    calls = run(done(call("f", {"x": 1}, id="a"), call("f", {"x": 2}, id="a")))
    assert seen(calls) == [("f", {"x": 1}, "ok"), ("f", {"x": 2}, "ok")]
    assert [call.synthetic_id for call in calls] == [False, True]


@pytest.mark.parametrize("absent", ["", " ", "null", "None"])
def test_absent_ids(absent: str) -> None:
    calls = run(done(call("f", {"x": 1}, id=absent), call("f", {"x": 1}, id=absent)))
    assert [call.synthetic_id for call in calls] == [True, True]


def test_zero_is_an_id() -> None:
    [one] = run(done(call("f", {}, id="0")))
    assert (one.id, one.synthetic_id) == ("0", False)


@pytest.mark.parametrize(
    ("args", "raw", "status"),
    [
        (None, "{}", "ok"),
        ({}, "{}", "ok"),
        ({"t": "größe", "n": None}, '{"t": "größe", "n": null}', "ok"),
        ('{"x": 1}', '{"x": 1}', "ok"),
        ([1], "[1]", "parse_error"),
        (7, "7", "parse_error"),
        ({"x": float("inf")}, '{"x": Infinity}', "parse_error"),
        ({"x": 10**5000}, "", "incomplete"),
    ],
)
def test_arguments(args: Any, raw: str, status: str) -> None:
    """Objects are written down once; no arguments at all are none; what is no object is malformed."""
    [one] = run([chunk(call("f", args), finish="STOP")])
    assert (one.raw_arguments, one.status) == (raw, status)


def test_arguments_too_deep_are_malformed() -> None:
    args: Any = {}
    for _ in range(20_000):
        args = {"a": args}
    [one, other] = run([chunk(call("f", args), call("g", {}), finish="STOP")])
    assert (one.status, one.code) == ("parse_error", "too_deep")
    assert other.executable


def test_only_the_first_candidate_runs() -> None:
    event = {
        "candidates": [
            {"content": {"parts": [call("f", {"x": 1})]}, "finishReason": "STOP"},
            {"content": {"parts": [call("f", {"x": 2})]}, "finishReason": "STOP", "index": 1},
        ]
    }
    calls = run([event])
    assert [(call.choice, call.index, call.arguments, call.executable) for call in calls] == [
        (0, 0, {"x": 1}, True),
        (1, 0, {"x": 2}, False),
    ]


def test_another_response_cuts_the_first() -> None:
    calls = run([chunk(call("f", {})), {**chunk(call("g", {}), finish="STOP"), "responseId": "other"}])
    assert seen(calls) == [("f", {}, "incomplete no_finish"), ("g", {}, "ok")]


def test_another_response_goes_on_with_nothing_of_the_first() -> None:
    first = [chunk(call("f", id="a", willContinue=True)), chunk(pieces(number("$.x", 1)))]
    second = [chunk(END), chunk(call(id="a")), chunk(call("g", {}), finish="STOP")]
    events = [*first, *({**event, "responseId": "other"} for event in second)]
    calls = run(events)
    assert [(call.name, call.executable) for call in calls if call.name] == [("f", False), ("g", True)]
    assert not [call for call in calls if call.executable and call.name != "g"]


def test_recognised_without_a_name() -> None:
    from toolrun.wires import WIRES

    event = chunk(call("f", {}), finish="STOP")
    assert [wire.name for wire in (*WIRES.values(), GEMINI) if wire.recognises(event)] in (["gemini"], ["gemini"] * 2)
    assert GEMINI.recognises({"promptFeedback": {"blockReason": "SAFETY"}})
    assert not GEMINI.recognises({"choices": []})


# -- arguments in pieces --------------------------------------------------------------------


def test_pieces_of_strings_are_joined() -> None:
    events = done(
        call("f", willContinue=True, signature="AAEC"),
        pieces(text_piece("$.city", "Bos", more=True)),
        pieces(text_piece("$.city", "ton \U0001f600", more=True)),
        pieces(text_piece("$.city", "")),
        call(willContinue=True),
        END,
    )
    [one] = run(events)
    assert seen([one]) == [("f", {"city": "Boston \U0001f600"}, "ok")]
    assert one.executable
    assert dict(one.extra) == {"thoughtSignature": "AAEC"}


def test_every_kind_of_value() -> None:
    events = done(
        BEGIN,
        pieces(
            text_piece("$.a.b[0]", "x"),
            number("$.a.b[1]", 1.0),
            number("$.a.b[2]", 0.5),
            {"jsonPath": "$.a.yes", "boolValue": True},
            {"jsonPath": "$.a.no", "boolValue": False},
            {"jsonPath": "$.none", "nullValue": "NULL_VALUE"},
            {"jsonPath": "$.bare", "nullValue": None},
            text_piece("$.empty", ""),
            number("$['it\\'s']", 2),
            number('$["a.\\u0062"][0][0]', 3),
            number("$.grö-ße", 4),
            more=False,
        ),
    )
    [one] = run(events)
    assert one.arguments == {
        "a": {"b": ["x", 1, 0.5], "yes": True, "no": False},
        "none": None,
        "bare": None,
        "empty": "",
        "it's": 2,
        "a.b": [[3]],
        "grö-ße": 4,
    }
    assert type(one.arguments["a"]["b"][1]) is int


def test_indexes_may_come_in_any_order() -> None:
    [one] = run(done(BEGIN, pieces(number("$.l[1]", 2), number("$.l[0]", 1), more=False)))
    assert one.arguments == {"l": [1, 2]}


def test_surrogate_halves_in_two_pieces_are_joined() -> None:
    [one] = run(
        done(BEGIN, pieces(text_piece("$.t", "\ud83d", more=True)), pieces(text_piece("$.t", "\ude00"), more=False))
    )
    assert one.arguments == {"t": "\U0001f600"}


def test_no_pieces_at_all() -> None:
    assert seen(run(done(BEGIN, END))) == [("f", {}, "ok")]


def test_whole_and_partial_calls_follow_each_other() -> None:
    events = done(
        call("theme"),
        BEGIN,
        pieces(text_piece("$.id", "A"), more=False),
        BEGIN,
        pieces(text_piece("$.id", "B"), more=False),
        END,
        call("g", {"x": 1}),
    )
    assert seen(run(events)) == [
        ("theme", {}, "ok"),
        ("f", {"id": "A"}, "ok"),
        ("f", {"id": "B"}, "ok"),
        ("g", {"x": 1}, "ok"),
    ]


def test_valid_is_not_whole() -> None:
    """What came so far is a valid object, and the finish says stop; but the call was to go on."""
    [one] = run(done(BEGIN, pieces(number("$.x", 1))))
    assert seen([one]) == [("f", {"x": 1}, "incomplete no_finish")]
    assert not one.executable


def test_begun_and_cut_has_no_text() -> None:
    [one] = run(done(BEGIN))
    assert (one.raw_arguments, one.status) == ("", "incomplete")


def test_string_that_was_to_go_on_is_not_whole() -> None:
    """The call says that it ends, its string that it does not: a piece may be missing."""
    [one] = run(done(BEGIN, pieces(text_piece("$.x", "rm -rf /tmp", more=True)), END))
    assert seen([one]) == [("f", {"x": "rm -rf /tmp"}, "incomplete no_finish")]


@pytest.mark.parametrize("name", ["f", "g"])
def test_second_call_leaves_the_first_incomplete(name: str) -> None:
    events = done(BEGIN, pieces(number("$.x", 1)), call(name, willContinue=True), pieces(number("$.y", 2)), END)
    assert seen(run(events)) == [("f", {"x": 1}, "incomplete no_finish"), (name, {"y": 2}, "ok")]


def test_whole_call_leaves_an_open_one_incomplete() -> None:
    events = done(BEGIN, pieces(number("$.x", 1)), call("f", {"y": 2}), END)
    assert seen(run(events)) == [("f", {"x": 1}, "incomplete no_finish"), ("f", {"y": 2}, "ok")]


def test_ids_tell_interleaved_calls_apart() -> None:
    events = done(
        call("f", id="a", willContinue=True),
        call("f", id="b", willContinue=True),
        pieces(number("$.x", 1), id="a"),
        pieces(number("$.x", 2), id="b"),
        call(id="a"),
        call(id="b"),
    )
    calls = run(events)
    assert [(call.id, call.arguments, call.executable) for call in calls] == [
        ("a", {"x": 1}, True),
        ("b", {"x": 2}, True),
    ]


def test_an_unknown_id_does_not_go_on_with_another_call() -> None:
    events = done(call("f", id="a", willContinue=True), pieces(number("$.x", 1), id="b", more=False), call(id="a"))
    assert seen(run(events)) == [("f", {}, "ok"), (None, {"x": 1}, "parse_error nameless")]


def test_id_of_a_call_in_pieces_with_other_arguments_is_another_call() -> None:
    events = done(pieces(number("$.x", 1), name="f", id="a", more=False), call("f", {"x": 2}, id="a"))
    calls = run(events)
    assert [(call.arguments, call.synthetic_id) for call in calls] == [({"x": 1}, False), ({"x": 2}, True)]


def test_id_and_name_may_repeat_on_every_part() -> None:
    events = done(
        pieces(text_piece("$.city", "San "), name="f", id="a"),
        pieces(text_piece("$.city", "Francisco"), name="f", id="a", more=False),
        call("f", {"city": "San Francisco"}, id="a"),
    )
    [one] = run(events)
    assert (one.id, one.arguments) == ("a", {"city": "San Francisco"})


def test_name_may_repeat_without_ids() -> None:
    events = done(
        pieces(text_piece("$.city", "San "), name="f"), pieces(text_piece("$.city", "Francisco"), name="f", more=False)
    )
    assert seen(run(events)) == [("f", {"city": "San Francisco"}, "ok")]


def test_id_and_name_may_come_late() -> None:
    [one] = run(done(call(id="a", willContinue=True), pieces(number("$.x", 1), name="f", more=False)))
    assert (one.id, one.name, one.arguments, one.executable) == ("a", "f", {"x": 1}, True)
    [other] = run(done(BEGIN, pieces(number("$.x", 1), id="b", more=False)))
    assert (other.id, other.name, other.executable) == ("b", "f", True)


def test_name_that_changes_after_pieces_never_runs() -> None:
    [one] = run(done(call("f", id="a", willContinue=True), pieces(number("$.x", 1), id="a"), call("g", id="a")))
    assert not one.executable
    assert one.status == "incomplete"


def test_nameless_never_runs() -> None:
    [one] = run(done(call(id="a", willContinue=True), pieces(number("$.x", 1), more=False)))
    assert seen([one]) == [(None, {"x": 1}, "parse_error nameless")]


def test_pieces_after_the_end_are_too_late() -> None:
    events = done(call("f", id="a", willContinue=True), call(id="a"), pieces(number("$.x", 1), id="a", more=False))
    assert seen(run(events)) == [("f", {}, "incomplete no_finish")]


def test_pieces_of_no_call_are_orphans() -> None:
    events = done(pieces(number("$.x", 1)))
    assert run(events) == ()
    assert [code for code, _ in diagnostics(events)] == ["orphan_delta"]


def test_empty_parts_without_a_call_are_nothing() -> None:
    events = done(END, call(willContinue=True), call("f", {}), END)
    assert seen(run(events)) == [("f", {}, "ok")]
    assert diagnostics(events) == []


def test_an_object_may_take_the_place_of_pieces() -> None:
    """Some gateways send the arguments so far with every part; the last one is the call's."""
    events = done(
        call("f", {"t": "a"}, id="a", willContinue=True),
        call("f", {"t": "ab"}, id="a", willContinue=True),
        call("f", {"t": "abc"}, id="a"),
    )
    assert seen(run(events)) == [("f", {"t": "abc"}, "ok")]
    same = done(BEGIN, pieces(number("$.x", 1)), call(args={"x": 1}))
    assert seen(run(same)) == [("f", {"x": 1}, "ok")]


def test_an_object_that_contradicts_the_pieces_is_malformed() -> None:
    events = done(BEGIN, pieces(number("$.x", 1)), call(args={"x": 2}))
    assert seen(run(events)) == [("f", [["$.x", 1], ["$", '{"x": 2}']], "parse_error not_object")]


def test_signature_on_a_later_part_is_kept() -> None:
    events = done(
        BEGIN,
        pieces(number("$.x", 1)),
        {"executableCode": {"code": "1"}},
        {**END, "thoughtSignature": "AAEC"},
    )
    [one, other] = run(events)
    assert dict(one.extra) == {"thoughtSignature": "AAEC"}
    assert dict(other.extra) == {"executableCode": {"code": "1"}}


def test_the_first_signature_of_a_call_counts() -> None:
    [one] = run(done(call("f", willContinue=True, signature="AAEC"), {**END, "thoughtSignature": "AAED"}))
    assert dict(one.extra) == {"thoughtSignature": "AAEC"}


CONTRADICTIONS: dict[str, tuple[list[Json], Any]] = {
    "a gap": ([number("$.l[0]", 1), number("$.l[2]", 1)], [["$.l[0]", 1], ["$.l[2]", 1]]),
    "a huge index": ([number("$.l[999999999]", 1)], [["$.l[999999999]", 1]]),
    "an index of 5,000 digits": ([number(f"$.l[{'9' * 5000}]", 1)], [[f"$.l[{'9' * 5000}]", 1]]),
    "a negative index": ([number("$.l[-1]", 1)], [["$.l[-1]", 1]]),
    "a wildcard": ([number("$.*", 1)], [["$.*", 1]]),
    "a descendant": ([number("$..a", 1)], [["$..a", 1]]),
    "a filter": ([number("$[?@.a]", 1)], [["$[?@.a]", 1]]),
    "no root": ([number("a", 1)], [["a", 1]]),
    "the root": ([number("$", 1)], [["$", 1]]),
    "an endless path": ([number("$" + ".a" * 4000, 1)], [["$" + ".a" * 4000, 1]]),
    "an open bracket": ([number("$['a", 1)], [["$['a", 1]]),
    "a wrong escape": ([number(r"$['\x']", 1)], [[r"$['\x']", 1]]),
    "a name in an array": ([number("$.a[0]", 1), number("$.a.b", 1)], [["$.a[0]", 1], ["$.a.b", 1]]),
    "an index in an object": ([number("$.a.b", 1), number("$.a[0]", 1)], [["$.a.b", 1], ["$.a[0]", 1]]),
    "a value and a container": ([number("$.a", 1), number("$.a.b", 1)], [["$.a", 1], ["$.a.b", 1]]),
    "a container and a value": ([number("$.a.b", 1), text_piece("$.a", "x")], [["$.a.b", 1], ["$.a", "x"]]),
    "a number and text": ([number("$.a", 1), text_piece("$.a", "x")], [["$.a", 1], ["$.a", "x"]]),
    "two numbers": ([number("$.a", 1), number("$.a", 2)], [["$.a", 1], ["$.a", 2]]),
    "true and 1": ([number("$.a", 1), {"jsonPath": "$.a", "boolValue": True}], [["$.a", 1], ["$.a", True]]),
    "text after its end": (
        [text_piece("$.a", "x", more=True), text_piece("$.a", "y"), text_piece("$.a", "z")],
        [["$.a", "xyz"]],
    ),
    "no value": ([{"jsonPath": "$.a"}], [["$.a", None]]),
    "two values": (
        [{"jsonPath": "$.a", "numberValue": 1, "boolValue": True}],
        [["$.a", '{"jsonPath": "$.a", "numberValue": 1, "boolValue": true}']],
    ),
    "a value of another kind": (
        [{"jsonPath": "$.a", "stringValue": 1}],
        [["$.a", '{"jsonPath": "$.a", "stringValue": 1}']],
    ),
    "a number that is true": (
        [{"jsonPath": "$.a", "numberValue": True}],
        [["$.a", '{"jsonPath": "$.a", "numberValue": true}']],
    ),
    "text in turns": (
        [text_piece("$.a", "x"), number("$.b", 1), text_piece("$.a", "y"), number("$.b", 2)],
        [["$.a", "x"], ["$.b", 1], ["$.a", "y"], ["$.b", 2]],
    ),
    "no path": ([{"stringValue": "x"}], [["", '{"stringValue": "x"}']]),
    "a path that is no text": ([{"jsonPath": 1, "stringValue": "x"}], [["", '{"jsonPath": 1, "stringValue": "x"}']]),
    "a number that JSON cannot say": ([{"jsonPath": "$.a", "numberValue": 10**5000}], [["$.a", None]]),
}


@pytest.mark.parametrize(("given", "raw"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_contradictions_are_malformed(given: list[Json], raw: Any) -> None:
    """The call never runs and keeps every piece; a sibling is not disturbed."""
    began = time.process_time()
    bad, good = run(done(call("g", id="g", willContinue=True), pieces(*given, more=False), call("f", {})))
    assert seen([bad]) == [("g", raw, "parse_error not_object")]
    assert good.executable
    assert time.process_time() - began < 1


def test_a_list_at_the_root_is_no_object() -> None:
    assert seen(run(done(BEGIN, pieces(number("$[0]", 1), more=False)))) == [("f", [1], "parse_error not_object")]


def test_a_number_too_large_is_malformed() -> None:
    [one] = run(done(BEGIN, pieces(number("$.x", float("inf")), more=False)))
    assert (one.status, one.code) == ("parse_error", "non_finite")


def test_names_of_other_languages_insides_are_names() -> None:
    [one] = run(done(BEGIN, pieces(number("$.__proto__.__class__", 1), more=False)))
    assert one.arguments == {"__proto__": {"__class__": 1}}


@pytest.mark.parametrize("given", ["x", 5, True, {"jsonPath": 1}])
def test_pieces_that_are_no_list(given: Any) -> None:
    [one] = run(done(BEGIN, call(partialArgs=given)))
    assert (one.status, one.code) == ("parse_error", "not_object")


def test_an_equal_value_again_is_a_resend() -> None:
    [one] = run(done(BEGIN, pieces(number("$.x", 1)), pieces(number("$.x", 1), more=False)))
    assert one.arguments == {"x": 1}


def test_empty_text_ends_any_path() -> None:
    parts = pieces({**number("$.x", 1), "willContinue": True}), pieces(text_piece("$.x", ""), more=False)
    assert seen(run(done(BEGIN, *parts))) == [("f", {"x": 1}, "ok")]


def test_an_empty_object_beside_pieces_is_nothing() -> None:
    events = done(call("f", {}, willContinue=True), pieces(number("$.x", 1), args={}), call(args={}))
    assert seen(run(events)) == [("f", {"x": 1}, "ok")]


def test_a_piece_without_value_ends_its_path() -> None:
    [one] = run(done(BEGIN, pieces(text_piece("$.x", "a", more=True)), pieces({"jsonPath": "$.x"}, more=False)))
    assert (one.arguments, one.executable) == ({"x": "a"}, True)


def test_more_than_a_call_may_have_is_not_kept() -> None:
    part = pieces(text_piece("$.x", "a" * 4_000_000))
    finalizer, _ = fed(done(BEGIN, part, part, part, part, part, part, END))
    [one] = finalizer.calls
    assert one.status == "incomplete"
    assert len(one.raw_arguments) < 21_000_000


def test_long_strings_take_linear_time() -> None:
    """Ten times the pieces take about ten times as long."""

    def took(count: int) -> float:
        events = done(BEGIN, *[pieces(text_piece("$.x", "abcdefghij"))] * count, END)
        began = time.process_time()
        [one] = run(events)
        assert one.arguments == {"x": "abcdefghij" * count}
        return time.process_time() - began

    took(100)
    assert took(30_000) < 25 * took(3_000)


# -- finishes and errors --------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_the_provider_rejects_is_shown(reason: str) -> None:
    said = "Malformed function call: print(default_api.f(x=1))"
    events = [{"candidates": [{"finishReason": reason, "finishMessage": said}]}]
    assert diagnostics(events) == [
        ("failed_generation", said),
        ("finish_without_calls", f"finish reason {reason!r}, but no call came"),
    ]
    [one] = run([chunk(call("f", {"x": 1})), *events])
    assert seen([one]) == [("f", {"x": 1}, "incomplete broken_finish")]


def test_what_a_good_finish_says_is_no_failure() -> None:
    assert diagnostics([chunk(call("f", {}), finish="STOP", finishMessage="Model generated function call(s).")]) == []


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "OTHER", "BLOCKLIST", "MAX_TOKENS", "LANGUAGE", "NEW_ONE"])
def test_calls_under_a_doubtful_finish_are_held(reason: str) -> None:
    [one] = run([chunk(call("f", {}), finish=reason)])
    assert (one.status, one.code, one.executable) == ("ok", "held", False)


def test_blocked_prompt() -> None:
    events = [
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "no"}, "usageMetadata": {}}
    ]
    assert diagnostics(events) == [("stream_error", "the prompt was blocked: PROHIBITED_CONTENT: no")]


def test_error_in_the_stream() -> None:
    events = [chunk(call("f", {})), {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}]
    assert seen(run(events)) == [("f", {}, "incomplete stream_error")]
    assert diagnostics(events) == [("stream_error", "overloaded")]


def test_events_of_another_protocol_are_reported() -> None:
    [(code, message)] = diagnostics([{"toolCall": {"functionCalls": [{"name": "f"}]}}])
    assert code == "undecodable_event"
    assert message.startswith("not a response: ")


def test_an_unreadable_call_spoils_the_open_one() -> None:
    events = [chunk(BEGIN), chunk(pieces(number("$.x", 1))), chunk({"functionCall": "x"}), chunk(END, finish="STOP")]
    assert seen(run(events)) == [("f", {"x": 1}, "incomplete no_finish")]
    assert [code for code, _ in diagnostics(events)] == ["orphan_delta"]


# -- the provider's own tools ---------------------------------------------------------------


def test_server_calls_are_reported_and_never_run() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "print(1)", "id": "c"}, "thoughtSignature": "AAEC"}
    search = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}, "id": "s"}}
    calls = run([chunk(code, search, call("f", {}), finish="STOP")])
    assert [
        (call.id, call.name, call.raw_arguments, call.text, call.provider_executed, call.executable) for call in calls
    ] == [
        ("c", "code_execution", "print(1)", "print(1)", True, False),
        ("s", "GOOGLE_SEARCH_WEB", '{"queries": ["x"]}', None, True, False),
        (calls[2].id, "f", "{}", None, False, True),
    ]


def test_server_calls_go_back_as_they_came() -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "print(1)", "id": "c"}, "thoughtSignature": "AAEC"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n", "id": "c"}},
        {"toolCall": {"toolType": "FILE_SEARCH", "id": "s"}, "thoughtSignature": "AAED"},
        {"toolResponse": {"toolType": "FILE_SEARCH", "id": "s", "response": {"a": [1]}}, "thoughtSignature": "AAEE"},
        {"inlineData": {"mimeType": "image/png", "data": "AAEF"}},
    ]
    assert messages([chunk(*parts, finish="STOP")]) == [{"role": "model", "parts": parts}]


# -- the SDK --------------------------------------------------------------------------------


class Server(LoopbackServer):
    """Answers a model's name with the events that are stored under it."""

    def __init__(self) -> None:
        super().__init__(self.reply)
        self.answers: dict[str, Sequence[Json]] = {recording.id: recording.events for recording in RECORDINGS}

    @property
    def asked(self) -> Json:
        return self.requests[-1].body

    def reply(self, request: HttpRequest) -> HttpReply:
        model, _, method = request.path.rpartition("/")[2].partition(":")
        events = self.answers[model]
        streamed = method.startswith("streamGenerateContent")
        return HttpReply(pieces=[sse(events)]) if streamed else json_reply(events[0])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as serving:
        yield serving


@pytest.fixture(scope="module")
def sdks(server: Server) -> Iterator[dict[str, Any]]:
    """A real client for each of the two services, which have requests and objects of their own."""
    from google import genai  # takes seconds to import

    options = {"api_key": "none", "http_options": {"base_url": server.url}}
    with genai.Client(**options) as google, genai.Client(**options, vertexai=True) as vertexai:
        yield {"google": google, "mirascope-router": google, "vertexai": vertexai}


DROPPED_BY_THE_SDK = {"serviceTier"}
"""A field that the SDK's model of the usage does not have, and leaves out."""


@recorded
@each
def test_sdk_stream(recording: Recording, sdks: dict[str, Any]) -> None:
    """The SDK's own objects, streamed over HTTP, give the same calls, text and history as the JSON."""
    models = sdks[recording.provider].models
    finalizer, _ = fed(list(models.generate_content_stream(model=recording.id, contents="x")))
    corpus.check(finalizer.calls, recording.calls)
    plain, _ = fed(recording.events)
    assert [dict(call.extra) for call in finalizer.calls] == [dict(call.extra) for call in plain.calls]
    usage = {key: value for key, value in plain.response.usage.items() if key not in DROPPED_BY_THE_SDK}
    assert finalizer.response == dataclasses.replace(plain.response, usage=usage)


@recorded
@on_asyncio
async def test_sdk_async_stream(sdks: dict[str, Any]) -> None:
    """The async client's objects give the same calls."""
    for recording in RECORDINGS:
        stream = await sdks[recording.provider].aio.models.generate_content_stream(model=recording.id, contents="x")
        corpus.check(await afinalize(stream, wire=GEMINI), recording.calls)


PIECES = [
    chunk(call("f", willContinue=True, signature="AAECAw==")),
    chunk(
        pieces(
            text_piece("$.a[0]", "x", more=True),
            number("$.n", 1),
            number("$.d", 0.5),
            {"jsonPath": "$.yes", "boolValue": False},
            {"jsonPath": "$.none", "nullValue": "NULL_VALUE"},
            {"jsonPath": "$.bare", "nullValue": None},
        )
    ),
    chunk(pieces(text_piece("$.a[0]", "y", more=True))),
    chunk(pieces(text_piece("$.a[0]", ""))),
    chunk(call(willContinue=True)),
    chunk(END),
    chunk(call("now"), finish="STOP"),
]


@pytest.mark.parametrize("service", ["google", "vertexai"])
def test_sdk_pieces(server: Server, sdks: dict[str, Any], service: str) -> None:
    server.answers["pieces"] = PIECES
    calls = run(list(sdks[service].models.generate_content_stream(model="pieces", contents="x")))
    assert [call.raw_arguments for call in calls] == [call.raw_arguments for call in run(PIECES)]
    assert [(call.name, call.arguments, dict(call.extra)) for call in calls] == [
        (
            "f",
            {"a": ["xy"], "n": 1, "d": 0.5, "yes": False, "none": None, "bare": None},
            {"thoughtSignature": "AAECAw=="},
        ),
        ("now", {}, {}),
    ]


async def test_sdk_whole_response_in_a_runner(server: Server, sdks: dict[str, Any]) -> None:
    """A response that was not streamed, run, and its history sent through the SDK's own request types."""

    async def weather(city: str) -> str:
        return f"sunny in {city}"

    first = chunk({"text": "Looking."}, call("weather", {"city": "Rome"}, id="a", signature="AAECAw=="), finish="STOP")
    server.answers |= {"whole": [first], "next": [chunk({"text": "Sunny."}, finish="STOP")]}
    models = sdks["google"].models
    asked: Json = {"role": "user", "parts": [{"text": "x"}]}
    response = models.generate_content(model="whole", contents=[asked])
    async with Runner(ToolRegistry([Tool.from_function(weather)])) as runner:
        turn = await runner.run(response, wire=GEMINI)
    models.generate_content(model="next", contents=[asked, *turn.messages()])
    assert server.asked["contents"][1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "Looking."},
                {
                    "functionCall": {"id": "a", "name": "weather", "args": {"city": "Rome"}},
                    "thoughtSignature": "AAECAw==",
                },
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "a", "name": "weather", "response": {"result": "sunny in Rome"}}},
            ],
        },
    ]


def test_dumped_sdk_objects(server: Server, sdks: dict[str, Any]) -> None:
    """What `model_dump` makes of the SDK's objects is read too: snake_case, with every absent field as None."""
    server.answers["pieces"] = PIECES
    streamed = sdks["vertexai"].models.generate_content_stream(model="pieces", contents="x")
    dumped = [one.model_dump() for one in streamed]
    # A bare null is the one thing that a dump cannot tell from an absent value: such a call is malformed.
    assert [call.status.value for call in run(dumped)] == ["parse_error", "ok"]
    dumped[1]["candidates"][0]["content"]["parts"][0]["function_call"]["partial_args"].pop()
    assert [call.arguments for call in run(dumped)] == [
        {"a": ["xy"], "n": 1, "d": 0.5, "yes": False, "none": None},
        {},
    ]


# -- hostile input --------------------------------------------------------------------------

WORDS = [
    "candidates", "content", "parts", "functionCall", "function_call", "name",
    "args", "id", "partialArgs", "partial_args", "willContinue", "jsonPath",
    "stringValue", "numberValue", "boolValue", "nullValue", "text", "thought",
    "thoughtSignature", "executableCode", "code", "toolCall", "toolType", "finishReason",
    "finishMessage", "index", "promptFeedback", "blockReason", "error", "usageMetadata",
    "responseId", "$.a", "$.a[0]", "$.a.b", "f", "STOP",
    "MALFORMED_FUNCTION_CALL",
]  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=12,
)
functions = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["f", "g", "", None]) | values,
        "id": st.sampled_from(["a", "b", ""]) | values,
        "args": st.dictionaries(st.text(max_size=2), values, max_size=2) | values,
        "willContinue": st.booleans() | values,
        "partialArgs": st.lists(
            st.fixed_dictionaries(
                {"jsonPath": st.sampled_from(["$.a", "$.a[0]", "$.b.c", "$", "x"])},
                optional={
                    "stringValue": st.text(max_size=2) | values,
                    "numberValue": st.integers() | values,
                    "willContinue": st.booleans(),
                },
            )
            | values,
            max_size=3,
        )
        | values,
    },
)
parts_ = st.fixed_dictionaries({"functionCall": functions | values}, optional={"thoughtSignature": values}) | values
events_ = (
    st.builds(
        lambda parts, finish, index: {
            "candidates": [{"content": {"parts": parts}, "finishReason": finish, "index": index}]
        },
        st.lists(parts_, max_size=4) | values,
        st.sampled_from([None, "STOP"]) | values,
        st.sampled_from([None, 0, 1]) | values,
    )
    | st.dictionaries(st.sampled_from(WORDS), values, max_size=5)
    | values
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(events_, max_size=6))
def test_soup(events: list[Any]) -> None:
    """The decoder raises on nothing, leaves what it is given as it is, and what comes of it can be sent back."""
    before = copy.deepcopy(events)
    assembler = Assembler(lambda position: f"call_{position}")
    decode = GEMINI.decoder(assembler)
    for event in events:
        decode(event)
    calls = assembler.close(FinishPolicy())
    assert repr(events) == repr(before)
    for one in calls:
        assert not (one.executable and (one.arguments is None or one.name is None or one.provider_executed))
    mine = [one for one in calls if one.choice == 0]
    history = GEMINI.assistant_messages(assembler.response("gemini"), mine)
    results = GEMINI.result_messages(
        [ToolResult(one, "x", is_error=False) for one in mine if not one.provider_executed]
    )
    json.dumps([*history, *results])
    finalizer, told = fed(events)
    assert len([item for item in told if type(item).__name__ == "CallFinalized"]) == len(finalizer.calls)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=4),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(min_size=1, max_size=6),
            lambda inner: (
                st.lists(inner, min_size=1, max_size=3)
                | st.dictionaries(st.text(min_size=1, max_size=4), inner, min_size=1, max_size=3)
            ),
            max_leaves=6,
        ),
        max_size=4,
    ),
    st.randoms(use_true_random=False),
)
def test_any_object_comes_out_of_its_pieces(wanted: Json, random: Any) -> None:
    """Whatever the keys and however strings are cut, the pieces make the object that they were made from."""
    given = list(_pieces_of("$", wanted, random))
    parts = [pieces(*given[start : start + 2]) for start in range(0, len(given), 2)]
    [one] = run(done(BEGIN, *parts, END))
    assert json.loads(one.raw_arguments) == wanted


def _pieces_of(path: str, value: Any, random: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _pieces_of(f"{path}[{json.dumps(key)}]", inner, random)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _pieces_of(f"{path}[{index}]", inner, random)
    elif isinstance(value, str):
        cut = random.randint(0, len(value))
        yield text_piece(path, value[:cut], more=True)
        yield text_piece(path, value[cut:], more=True)
        yield text_piece(path, "")
    elif value is None:
        yield {"jsonPath": path, "nullValue": None}
    else:
        yield {"jsonPath": path, "boolValue" if isinstance(value, bool) else "numberValue": value}


# -- history --------------------------------------------------------------------------------


def test_parts_go_back_in_order_with_their_signatures() -> None:
    events = [
        chunk({"text": "I ", "thought": True}),
        chunk({"text": "think.", "thought": True}),
        chunk({"text": "Let"}),
        chunk({"text": " me."}, {"text": ""}),
        chunk(call("f", {"x": 1}, signature="AAEC"), call("g", {})),
        chunk({"text": "", "thoughtSignature": "AAED"}),
        chunk({"text": "More"}),
        chunk({"text": "!", "thoughtSignature": "AAEE"}, {"thoughtSignature": "AAEF", "thought": True}, finish="STOP"),
    ]
    assert messages(events, ["1", "2"]) == [
        {
            "role": "model",
            "parts": [
                {"thought": True, "text": "I think."},
                {"text": "Let me."},
                {"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "AAEC"},
                {"functionCall": {"name": "g", "args": {}}},
                {"thoughtSignature": "AAED", "text": ""},
                {"text": "More"},
                {"thoughtSignature": "AAEE", "text": "!"},
                {"thoughtSignature": "AAEF", "thought": True},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "f", "response": {"result": "1"}}},
                {"functionResponse": {"name": "g", "response": {"result": "2"}}},
            ],
        },
    ]


def test_empty_text_is_not_sent_back() -> None:
    [model, _] = messages([chunk(call("f", {}), {"text": ""}), chunk({"text": "", "thought": True}, finish="STOP")])
    assert model["parts"] == [{"functionCall": {"name": "f", "args": {}}}]


def test_errors_are_told_as_errors() -> None:
    [_, results] = messages([chunk(call("f", {}), finish="STOP")], ["no such file"], failed=True)
    assert results["parts"] == [{"functionResponse": {"name": "f", "response": {"error": "no such file"}}}]


def test_ids_go_back_on_all_calls_or_none() -> None:
    """Two calls with one id: the second has an id of its own, or the results could not be told apart."""
    model, user = messages(done(call("f", {"x": 1}, id="a"), call("f", {"x": 2}, id="a")))
    ids = [part["functionCall"].get("id") for part in model["parts"]]
    assert ids[0] == "a"
    assert ids[1].startswith("call_")
    assert [part["functionResponse"]["id"] for part in user["parts"]] == ids
    server_call = {"toolCall": {"toolType": "FILE_SEARCH", "id": "s"}}
    model, user = messages(done(call("f", {"x": 1}), call("f", {"x": 2}), server_call))
    assert model["parts"].pop() == server_call
    assert [part["functionCall"].keys() for part in model["parts"]] == [{"name", "args"}] * 2
    assert [part["functionResponse"].keys() for part in user["parts"]] == [{"name", "response"}] * 2


STATUSES: dict[str, tuple[list[Json], Json]] = {
    "ok": ([chunk(call("ns:f.x", {"x": 1}), finish="STOP")], {"name": "ns:f.x", "args": {"x": 1}}),
    "parse_error": (
        [chunk(call("f", "{'x': 1}"), finish="STOP")],
        {"name": "f", "args": {"invalid_arguments": "{'x': 1}"}},
    ),
    "contradicted": (
        done(BEGIN, pieces(number("$.x", 1), number("$.x", 2), more=False)),
        {"name": "f", "args": {"invalid_arguments": '[["$.x", 1], ["$.x", 2]]'}},
    ),
    "incomplete": (done(BEGIN), {"name": "f", "args": {"invalid_arguments": ""}}),
    "nameless": ([chunk(call(None, {"x": 1}), finish="STOP")], {"name": "unnamed_tool", "args": {"x": 1}}),
    "odd name": ([chunk(call("a b\n", {}), finish="STOP")], {"name": "a_b_", "args": {}}),
}


@pytest.mark.parametrize(("events", "told"), STATUSES.values(), ids=STATUSES)
def test_every_status_can_be_sent_back(events: list[Json], told: Json, server: Server, sdks: dict[str, Any]) -> None:
    """The SDK's request types take it, and send it as it is."""
    history = messages(events, ["x"], failed=True)
    server.answers["next"] = [STOP]
    sdks["google"].models.generate_content(model="next", contents=history)
    assert server.asked["contents"] == [
        {"role": "model", "parts": [{"functionCall": told}]},
        {"role": "user", "parts": [{"functionResponse": {"name": told["name"], "response": {"error": "x"}}}]},
    ]


def test_nothing_to_send_back() -> None:
    assert messages([chunk(finish="STOP")]) == []
    assert not GEMINI.continues("STOP")


ECHOES = [recording for recording in RECORDINGS if recording.echo]


@recorded
def test_all_echoes_are_here() -> None:
    assert len(ECHOES) == 36


@recorded
@pytest.mark.parametrize("recording", ECHOES, ids=lambda recording: recording.id)
def test_history_means_what_was_accepted(recording: Recording, server: Server, sdks: dict[str, Any]) -> None:
    """What a client sent next and was answered, and what is sent here, tell the model the same."""
    echo = recording.echo
    assert echo is not None
    texts = [_content(part["functionResponse"]["response"]) for part in _parts(echo["results"])]
    history = messages(recording.events, texts)
    had_ids = any(want.id for want in recording.calls)

    assert [one["role"] for one in history] == ["model", "user"]
    assert _meaning(history[:1], had_ids) == _meaning(echo["assistant"], had_ids)
    assert _meaning(history[1:], had_ids) == _meaning(echo["results"], had_ids)
    server.answers["next"] = [STOP]
    sdks["google"].models.generate_content(model="next", contents=history)
    assert _meaning(server.asked["contents"], had_ids) == _meaning(history, had_ids)


def _parts(contents: list[Json]) -> list[Json]:
    """The parts of contents under the names that this library writes."""
    names = {"function_call": "functionCall", "function_response": "functionResponse"}
    return [{names.get(key, key): value for key, value in part.items()} for one in contents for part in one["parts"]]


def _meaning(contents: list[Json], had_ids: bool) -> list[Json]:
    """Parts without what clients leave out (thoughts, empty text), made-up ids and spellings of base64 and results."""
    meant = []
    for part in _parts(contents):
        if part.get("thought") or ("text" in part and not part["text"] and "thoughtSignature" not in part):
            continue
        if signature := part.get("thoughtSignature"):
            part["thoughtSignature"] = base64.urlsafe_b64decode(signature.replace("+", "-").replace("/", "_"))
        for kind in ("functionCall", "functionResponse"):
            if kind in part:
                part[kind] = {key: value for key, value in part[kind].items() if key != "id" or had_ids}
        if response := part.get("functionResponse"):
            response["response"] = _content(response["response"])
        meant.append(part)
    return meant


def _content(response: Json) -> str:
    """The text of a result, under whatever key a client put it."""
    if "content" in response:
        return "".join(block["text"] for block in response["content"])
    [text] = response.values()
    return str(text)
