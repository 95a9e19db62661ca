"""Which delta belongs to which call: indexes, ids, names and resends. One small stream a rule."""

from __future__ import annotations

import pytest

from toolrun import StreamFinalizer, finalize

from .events import (
    chat,
    chunk,
    piece,
)
from .reading import ANY, calls_of, runs, verdicts

# -- indexes are keys -----------------------------------------------------------------------


def test_holes_in_indexes() -> None:
    """Indexes may start anywhere and leave holes; calls come in order of arrival."""
    calls = finalize(
        chat(
            piece('{"a":', index=7, id="c7", name="f"),
            piece('{"b":', index=3, id="c3", name="g"),
            piece("7}", index=7),
            piece("3}", index=3),
        )
    )
    assert [(call.id, call.index, call.position, call.arguments) for call in calls] == [
        ("c7", 7, 0, {"a": 7}),
        ("c3", 3, 1, {"b": 3}),
    ]


def test_index_of_a_string() -> None:
    """`"1"` and 1 are one index."""
    events = chat(piece("{", index="1", id="c", name="f"), piece("}", index=1), piece(" ", index=" 1 "))
    assert calls_of(events) == [("c", "f", "{} ")]


def test_index_that_is_no_index() -> None:
    """An index that is neither a number nor digits is absent; what two calls wrote is never run as one."""
    for first, second in ((0.5, 1.5), (True, False), ("x", "y"), ([], {})):
        events = chat(
            piece('{"a":', index=first, id="c0", name="f"),
            piece('{"b":', index=second, id="c1", name="g"),
            piece("1}", index=first),
            piece("2}", index=second),
        )
        assert runs(events) == []


def test_choices_do_not_mix() -> None:
    """The same index and id in another choice is another call, and only choice 0 may run."""
    events = [
        chunk(piece('{"a":', index=0, id="c", name="f")),
        chunk(piece('{"a":', index=0, id="c", name="f"), choice=1),
        chunk(piece("1}", index=0)),
        chunk(piece("2}", index=0), choice=1),
        chunk(finish="tool_calls"),
        chunk(finish="tool_calls", choice=1),
    ]
    calls = finalize(events)
    assert [(call.choice, call.arguments, call.executable) for call in calls] == [
        (0, {"a": 1}, True),
        (1, {"a": 2}, False),
    ]


def test_finish_of_another_choice() -> None:
    """A finish reason is for its own choice."""
    events = [chunk(piece("{}", index=0, id="c", name="f")), chunk(finish="tool_calls", choice=1)]
    assert verdicts(events) == [("incomplete", "no_finish")]


def test_choices_without_an_index() -> None:
    """Choices of one response that have no index are told apart by their place: only the first runs."""
    response = {
        "choices": [
            {"message": {"tool_calls": [piece("{}", id="c0", name="f")]}, "finish_reason": "tool_calls"},
            {"message": {"tool_calls": [piece("{}", id="c1", name="f")]}, "finish_reason": "tool_calls"},
        ]
    }
    assert [(call.id, call.executable) for call in finalize(response)] == [("c0", True), ("c1", False)]


# -- no index -------------------------------------------------------------------------------


def test_no_index_new_id() -> None:
    """Without an index a new id starts a call; the rest continues the most recent one."""
    events = chat(
        piece('{"a":', id="c1", name="f"), piece("1}"), piece('{"b":', id="c2", name="g"), piece("2"), piece("}")
    )
    assert calls_of(events) == [("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')]


def test_no_index_new_name() -> None:
    """Without index and id a name starts a call."""
    events = chat(piece('{"a":1}', name="f"), piece('{"b":', name="g"), piece("2}"))
    assert calls_of(events) == [(ANY, "f", '{"a":1}'), (ANY, "g", '{"b":2}')]


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        ('{"a":1}', '{"a":2}', ['{"a":1}', '{"a":2}']),
        ('{"a":1}', ' {"a"', ['{"a":1}', ' {"a"']),
        ('{"a":1}', '{"a":1}', ['{"a":1}']),
        ('{"a":1', "}", ['{"a":1}']),
        ('{"a":', '{"b":1}}', ['{"a":{"b":1}}']),
        ("", '{"a":1}', ['{"a":1}']),
        ('{"a":1}', " ", ['{"a":1} ']),
        ('{"a":1}', "[1]", ['{"a":1}[1]']),
    ],
)
def test_repeated_name(before: str, text: str, expected: list[str]) -> None:
    """A repeated name splits off a call only if the last one is complete and a different object begins."""
    events = chat(piece(before, name="f"), piece(text, name="f"))
    assert [raw for _, _, raw in calls_of(events)] == expected
    indexed = chat(piece(before, index=0, name="f"), piece(text, index=0, name="f"))
    assert [raw for _, _, raw in calls_of(indexed)] == expected


def test_most_recent_is_the_one_written_to() -> None:
    """What has nothing but text continues the call that was written to last, not the one that was opened last."""
    events = chat(
        piece('{"a":3', index=0, id="c0", name="f"),
        piece('{"b":2', index=1, id="c1", name="g"),
        piece("0", index=0),
        piece("0}"),
    )
    assert runs(events) == [("f", {"a": 300})]


def test_legacy_function_call() -> None:
    """The old `function_call` is a call without index and id."""
    deltas = [{"name": "f", "arguments": ""}, {"arguments": '{"a":'}, {"arguments": "1}"}]
    events = [{"choices": [{"index": 0, "delta": {"function_call": delta}}]} for delta in deltas]
    assert calls_of([*events, chunk(finish="function_call")]) == [(ANY, "f", '{"a":1}')]


def test_legacy_function_call_beside_tool_calls() -> None:
    """A server that says the same call in the old way and in the new says one call."""
    delta = {"function_call": {"name": "f", "arguments": "{}"}, "tool_calls": [piece("{}", index=0, id="c", name="f")]}
    assert runs([{"choices": [{"index": 0, "delta": delta}]}, chunk(finish="tool_calls")]) == [("f", {})]


# -- an index that comes late ---------------------------------------------------------------


def test_late_index() -> None:
    """The first delta at a new index binds to the index-less call that it continues."""
    events = chat(piece('{"a":', id="c", name="f"), piece("1", index=0), piece("}", index=0))
    calls = finalize(events)
    assert [(call.id, call.raw_arguments, call.index) for call in calls] == [("c", '{"a":1}', 0)]


def test_late_index_of_another_call() -> None:
    """A delta at a new index that has an id of its own does not bind."""
    events = chat(piece('{"a":1}', id="c1", name="f"), piece('{"b":2}', index=1, id="c2", name="g"))
    assert calls_of(events) == [("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')]


def test_late_index_of_the_same_name() -> None:
    """A complete call is not continued by another that has the same name and an index."""
    events = chat(piece('{"a":1}', name="f"), piece('{"a":2}', index=0, name="f"))
    assert calls_of(events) == [(ANY, "f", '{"a":1}'), (ANY, "f", '{"a":2}')]


# -- another id at a used index -------------------------------------------------------------


def test_another_id_and_a_name() -> None:
    """Another id with a name starts a call, also while the arguments before it are unfinished."""
    events = chat(
        piece('{"a":', index=0, id="c1", name="f"), piece('{"b":', index=0, id="c2", name="g"), piece("2}", index=0)
    )
    assert calls_of(events) == [("c1", "f", '{"a":'), ("c2", "g", '{"b":2}')]
    assert runs(events) == [("g", {"b": 2})]


def test_minted_ids() -> None:
    """Another id without a name continues unfinished arguments, and the first id is kept."""
    events = chat(
        piece("", index=0, id="c1", name="f"), piece('{"a":', index=0, id="c2"), piece("1}", index=0, id="c3", name="")
    )
    assert calls_of(events) == [("c1", "f", '{"a":1}')]


def test_another_id_after_complete_arguments() -> None:
    """Another id without a name after complete arguments is a nameless call, which never runs."""
    events = chat(piece('{"a":1}', index=0, id="c1", name="f"), piece('{"b":2}', index=0, id="c2"))
    assert calls_of(events) == [("c1", "f", '{"a":1}'), ("c2", None, '{"b":2}')]
    assert verdicts(events) == [("ok", None), ("parse_error", "nameless")]


def test_first_id_after_a_call_without_one() -> None:
    """An id and a name at the index of a complete call that never had an id: two calls, or nothing that runs."""
    events = chat(piece('{"a":1}', index=0, name="f"), piece('{"b":2}', index=0, id="c2", name="g"))
    assert runs(events) in ([], [("f", {"a": 1}), ("g", {"b": 2})])


# -- a known id -----------------------------------------------------------------------------


def test_known_id_at_another_index() -> None:
    """A known id goes to its call, whatever its index says."""
    events = chat(
        piece('{"a":1}', index=0, id="c0", name="f"),
        piece('{"b":', index=1, id="c1", name="g"),
        piece("2}", index=0, id="c1"),
    )
    assert runs(events) == [("f", {"a": 1}), ("g", {"b": 2})]


def test_known_id_takes_its_new_index() -> None:
    """Deltas at that index that carry no id follow it."""
    events = chat(
        piece('{"a":1}', index=0, id="c0", name="f"),
        piece('{"b":', index=1, id="c1", name="g"),
        piece("2", index=0, id="c1"),
        piece("}", index=0),
    )
    assert runs(events) == [("f", {"a": 1}), ("g", {"b": 2})]


def test_same_id_other_name() -> None:
    """A known id with another name after complete arguments is a new call with an id of its own."""
    events = chat(piece('{"a":1}', index=0, id="c", name="f"), piece('{"b":2}', index=0, id="c", name="g"))
    assert calls_of(events) == [("c", "f", '{"a":1}'), (ANY, "g", '{"b":2}')]


def test_same_id_other_index_other_arguments() -> None:
    """A known id at a new index with other complete arguments is a second call; its own id is synthetic and stable."""
    events = chat(piece('{"a":1}', index=0, id="c", name="f"), piece('{"a":2}', index=1, id="c", name="f"))
    assert calls_of(events) == [("c", "f", '{"a":1}'), (ANY, "f", '{"a":2}')]
    assert finalize(events) == finalize(events)
    assert finalize(events)[1].id.startswith("call_")


def test_same_id_other_index_in_pieces() -> None:
    """The same, with the second call's arguments in pieces: the second call begins with a name at a new index."""
    events = chat(
        piece("", index=0, id="c", name="f"),
        piece('{"a":1}', index=0),
        piece("", index=1, id="c", name="g"),
        piece('{"b":', index=1),
        piece("2}", index=1),
    )
    assert calls_of(events) == [("c", "f", '{"a":1}'), (ANY, "g", '{"b":2}')]


def test_same_id_other_index_same_arguments() -> None:
    """A call that is announced again at another index is one call."""
    events = chat(piece('{"a":1}', index=0, id="c", name="f"), piece('{"a":1}', index=1, id="c", name="f"))
    assert calls_of(events) == [("c", "f", '{"a":1}')]


def test_same_id_same_index() -> None:
    """Two objects under one id and index are one malformed call: nothing tells that there were two."""
    events = chat(piece('{"a":1}', index=0, id="c", name="f"), piece('{"a":2}', index=0, id="c"))
    assert calls_of(events) == [("c", "f", '{"a":1}{"a":2}')]
    assert runs(events) == []


# -- resends --------------------------------------------------------------------------------


def test_identical_resend() -> None:
    """Complete arguments that come again, byte for byte, are dropped, as often as they come."""
    again = piece('{"a": 1}', index=0, id="c", name="f")
    assert calls_of(chat(again, again, again)) == [("c", "f", '{"a": 1}')]


def test_resend_gives_no_delta() -> None:
    """What is dropped is not told to listeners either."""
    finalizer = StreamFinalizer("openai-chat")
    finalizer.feed(chunk(piece("{}", index=0, id="c", name="f")))
    assert list(finalizer.feed(chunk(piece("{}", index=0)))) == []


def test_resend_in_other_bytes() -> None:
    """The same value in other bytes is no resend."""
    events = chat(piece('{"a":1}', index=0, id="c", name="f"), piece('{"a": 1}', index=0))
    assert calls_of(events) == [("c", "f", '{"a":1}{"a": 1}')]


def test_fragment_equal_to_the_buffer() -> None:
    """A fragment that equals unfinished arguments is data."""
    events = chat(piece("[", index=0, id="c", name="f"), piece("[", index=0), piece("1]]", index=0))
    assert calls_of(events) == [("c", "f", "[[1]]")]
    events = chat(piece("1", index=0, id="c", name="f"), piece("1", index=0))
    assert calls_of(events) == [("c", "f", "11")]


def test_resend_of_free_text() -> None:
    """Free text has no complete form: what looks like a resend is the next piece of it."""
    events = chat(piece("[]", index=0, id="c", name="f", custom=True), piece("[]", index=0, custom=True))
    assert runs(events) == [("f", "[][]")]
