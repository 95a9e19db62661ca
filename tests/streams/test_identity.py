"""Ids, names, and arguments that are no text: what a call is called and what it says."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
from types import SimpleNamespace
from typing import Any

import pytest

from toolrun import StreamFinalizer, finalize

from .events import (
    chat,
    chunk,
    message_start,
    messages,
    piece,
    sse,
    tool_start,
)
from .reading import ANY, calls_of, runs, verdicts

# -- ids ------------------------------------------------------------------------------------


@pytest.mark.parametrize("absent", ["", " ", "\t", "null", "None", " null "])
def test_absent_ids(absent: str) -> None:
    """Empty, blank, `"null"` and `"None"` ids count as absent."""
    assert calls_of(chat(piece("{", index=0, id=absent, name="f"), piece("}", index=0, id=absent, name=""))) == [
        (ANY, "f", "{}")
    ]
    assert calls_of(chat(piece("{", index=0, id="c", name="f"), piece("}", index=0, id=absent))) == [("c", "f", "{}")]


@pytest.mark.parametrize("id", ["0", " c ", "NULL", "functions.f:0", "é", "c" * 300, "none"])
def test_present_ids(id: str) -> None:
    """Any other id is the provider's, byte for byte."""
    assert calls_of(chat(piece("{}", index=0, id=id, name="f"))) == [(id, "f", "{}")]


def test_late_id() -> None:
    """An id that comes after the first fragment is the call's id."""
    events = chat(piece('{"a":', index=0, name="f"), piece("1}", index=0, id="c"))
    assert calls_of(events) == [("c", "f", '{"a":1}')]


def test_synthetic_ids() -> None:
    """A synthetic id has the provider's form, and is derived from run, turn and place."""
    event = chunk(piece("{}", index=0, name="f"), piece("{}", index=1, name="g"), finish="stop")

    def ids(**options: str) -> list[str]:
        finalizer = StreamFinalizer("openai-chat", **options)
        finalizer.feed(event)
        finalizer.close()
        return [call.id for call in finalizer.calls]

    first = ids(run_id="r", turn_id="t")
    assert [(len(made), made[:5]) for made in first] == [(29, "call_"), (29, "call_")]
    assert first == ids(run_id="r", turn_id="t")
    assert len({*first, *ids(run_id="r", turn_id="u"), *ids(run_id="s", turn_id="t")}) == 6
    (call,) = finalize(messages(tool_start(0, None, "f")))
    assert (call.id[:6], len(call.id)) == ("toolu_", 30)


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
def test_synthetic_ids_of_two_responses(wire: str) -> None:
    """Without a turn id, the provider's id of the response keeps the ids of two turns apart."""

    def id_in(response: str) -> str:
        events: list[Any] = [chunk(piece("{}", index=0, name="f"), id=response), chunk(finish="stop", id=response)]
        if wire == "anthropic-messages":
            events = [message_start(response), *messages(tool_start(0, None, "f"))[1:]]
        (call,) = finalize(events, wire=wire)
        return call.id

    assert id_in("response-1") != id_in("response-2")
    assert id_in("response-1") == id_in("response-1")


def test_synthetic_ids_after_an_empty_response_id() -> None:
    """A first event whose response id is empty does not hide the one that follows."""

    def id_in(response: str) -> str:
        events = [{"choices": [], "id": ""}, chunk(piece("{}", index=0, name="f"), id=response, finish="stop")]
        (call,) = finalize(events)
        return call.id

    assert id_in("response-1") != id_in("response-2")


# -- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "expected", "readings"),
    [
        (["f", "f"], "f", ("f",)),
        (["get_", "get_weather"], "get_weather", ("get_weather",)),
        (["get_", "weather"], "get_weather", ("get_weather", "weather")),
        (["get", "_", "time"], "get_time", ("get_time", "time")),
        (["", "f"], "f", ("f",)),
        (["f", ""], "f", ("f",)),
    ],
)
def test_name_pieces(names: list[str], expected: str, readings: tuple[str, ...]) -> None:
    """A name is set; pieces before any arguments are joined, and both readings are kept."""
    pieces = [piece(index=0, id="c" if not place else None, name=name) for place, name in enumerate(names)]
    (call,) = finalize(chat(*pieces, piece("{}", index=0)))
    assert (call.name, call.name_readings, call.executable) == (expected, readings, True)


def test_name_after_arguments() -> None:
    """A name may come after the arguments began."""
    assert runs(chat(piece('{"a":', index=0, id="c"), piece("1}", index=0, name="f"))) == [("f", {"a": 1})]


@pytest.mark.parametrize("later", ["read_file", "delete_files", "delete"])
def test_name_that_changes(later: str) -> None:
    """A name that changes after the arguments began is a conflict; the call runs under neither."""
    events = chat(piece('{"p":', index=0, id="c", name="delete_file"), piece("1}", index=0, id="c", name=later))
    assert calls_of(events) == [("c", "delete_file", '{"p":1}')]
    assert verdicts(events) == [("parse_error", "identity_conflict")]
    again = chat(
        *(chunk_["choices"][0]["delta"]["tool_calls"][0] for chunk_ in events[:2]), piece(index=0, name="delete_file")
    )
    assert verdicts(again) == [("parse_error", "identity_conflict")]


# -- arguments that are no text -------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "raw"),
    [
        ({"a": [1, "é"]}, '{"a": [1, "é"]}'),
        ({}, "{}"),
        ([1], "[1]"),
        (5, "5"),
        (1.5, "1.5"),
        (True, "true"),
        (float("inf"), "Infinity"),
        ({"a": float("nan")}, '{"a": NaN}'),
        (SimpleNamespace(a=1, b=[SimpleNamespace(c=2)]), '{"a": 1, "b": [{"c": 2}]}'),
    ],
)
def test_arguments_as_values(arguments: object, raw: str) -> None:
    """An object is written down once, a scalar is its JSON text; only an object may run."""
    events = chat(piece(arguments, index=0, id="c", name="f"))
    assert calls_of(events) == [("c", "f", raw)]
    allowed = raw.startswith("{") and "NaN" not in raw
    assert len(runs(events)) == allowed


def test_fragments_of_scalars() -> None:
    """A fragment that some server sent as a number is its text."""
    assert runs(chat(piece('{"a":', index=0, id="c", name="f"), piece(12, index=0), piece("}", index=0))) == [
        ("f", {"a": 12})
    ]


@dataclasses.dataclass(slots=True)
class Slotted:
    a: int = 1


@pytest.mark.parametrize(
    "arguments",
    [b'{"a": 1}', Slotted(), {1, 2}, object(), decimal.Decimal("1.5"), memoryview(b"{}")],
    ids=lambda value: type(value).__name__,
)
def test_arguments_that_cannot_be_read(arguments: object) -> None:
    """What is neither text nor JSON never turns into `{}`: the call runs with what was meant, or not at all."""
    for events in (chat(piece(arguments, index=0, id="c", name="f")), messages(tool_start(0, "t", "f", arguments))):
        assert [item for item in runs(events) if item[1] != {"a": 1}] == []


def test_bytes_that_are_no_text() -> None:
    """Bytes that are not UTF-8 are not mended on the way."""
    for raw in (b'{"a": "\xff"}', b'{"a": "\xed\xa0\x80"}'):
        assert runs(chat(piece(raw, index=0, id="c", name="f"))) == []


@pytest.mark.parametrize(
    "value",
    [decimal.Decimal("1.5"), dt.date(2030, 1, 2), b"x", {1}, Slotted()],
    ids=lambda value: type(value).__name__,
)
def test_values_that_cannot_be_read(value: object) -> None:
    """Inside decoded arguments too, what is no JSON value never turns into an empty object."""
    for events in (
        chat(piece({"a": value}, index=0, id="c", name="f")),
        messages(tool_start(0, "t", "f", {"a": value})),
    ):
        assert [arguments for _, arguments in runs(events) if arguments == {"a": {}}] == []


@pytest.mark.parametrize("escaped", [True, False])
def test_surrogate_halves(escaped: bool) -> None:
    """Halves of a surrogate pair in two fragments make one character, as escapes or as they are."""
    high, low = ("\\ud83d", "\\ude00") if escaped else ("\ud83d", "\ude00")
    events = chat(piece(f'{{"t": "{high}', index=0, id="c", name="f"), piece(f'{low}"}}', index=0))
    assert runs(events) == [("f", {"t": "😀"})]
    assert runs(sse(events)) == [("f", {"t": "😀"})]


def test_shapes_of_tool_calls() -> None:
    """`tool_calls` may be null, absent, a list or one object; `function` may be null."""
    deltas: list[Any] = [
        {"tool_calls": None, "content": "x"},
        {"tool_calls": []},
        {"content": None},
        {"tool_calls": piece("{", index=0, id="c", name="f")},
        {"tool_calls": [{"index": 0, "function": None}]},
        {"tool_calls": (piece("}", index=0),)},
        None,
    ]
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    assert calls_of([*events, chunk(finish="stop")]) == [("c", "f", "{}")]
