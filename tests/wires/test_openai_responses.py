"""The `openai-responses` wire: the cases, its rules one by one, and whatever else may come."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrun import (
    ArgumentsReplaced,
    CallStarted,
    CallStatus,
    Diagnostic,
    FinishPolicy,
    Runner,
    TextDelta,
    Tool,
    ToolRegistry,
)
from toolrun._core.assembler import Assembler
from toolrun._core.seams import ToolResult

from .responses import (
    PATCH,
    SEARCH,
    SHELL,
    WHOLE,
    WIRE,
    added,
    arguments_done,
    brief,
    call_item,
    calls_of,
    created,
    custom_item,
    delta,
    ended,
    fed,
    history,
    item_done,
    message_item,
    reasoning_item,
    runs,
    text_delta,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .responses import Json

# -- joining --------------------------------------------------------------------------------


def test_index_before_item_id() -> None:
    """An output index that is known decides, whatever the item id says."""
    calls = calls_of(
        added(call_item(1, "f"), 0),
        added(call_item(2, "g"), 1),
        delta('{"a":1}', 0, "fc_2"),
        delta('{"b":2}', 1, "fc_1"),
        ended(),
    )
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok"), ("call_2", "g", '{"b":2}', "ok")]


@pytest.mark.parametrize("ids", [{"item_id": "fc_2"}, {"call_id": "call_2"}, {"item_id": "x", "call_id": "call_2"}])
def test_ids_without_index(ids: Json) -> None:
    """Without an index the item id joins, then the call id."""
    calls = calls_of(
        added(call_item(1, "f", "{}"), 0), added(call_item(2, "g"), 1), delta('{"b":2}', None, **ids), ended()
    )
    assert brief(calls) == [("call_1", "f", "{}", "ok"), ("call_2", "g", '{"b":2}', "ok")]


def test_no_index_anywhere() -> None:
    """Items without any output index stay apart by their ids."""
    calls = calls_of(
        added(call_item(1, "f"), None),
        added(call_item(2, "g"), None),
        delta('{"a":', None, "fc_1"),
        delta('{"b":', None, "fc_2"),
        delta("1}", None, "fc_1"),
        delta("2}", None, "fc_2"),
        item_done(call_item(2, "g", '{"b":2}'), None),
        ended(),
    )
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok"), ("call_2", "g", '{"b":2}', "ok")]


def test_index_used_twice() -> None:
    """A server that gives every item index 0 is read by its ids."""
    calls = calls_of(
        added(call_item(1, "f"), 0),
        added(call_item(2, "f"), 0),
        delta('{"a":1}', 0, "fc_1"),
        delta('{"a":2}', 0, "fc_2"),
        item_done(call_item(1, "f", '{"a":1}'), 0),
        item_done(call_item(2, "f", '{"a":2}'), 0),
        ended(call_item(1, "f", '{"a":1}'), call_item(2, "f", '{"a":2}')),
    )
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok"), ("call_2", "f", '{"a":2}', "ok")]


def test_index_used_twice_without_copies() -> None:
    """Ids tell two growing calls apart at one index, delta by delta."""
    calls = calls_of(
        added(call_item(1, "f"), 0),
        added(call_item(2, "g"), 0),
        delta('{"a":', 0, "fc_1"),
        delta('{"b":', 0, "fc_2"),
        delta("1}", 0, "fc_1"),
        delta("2}", 0, "fc_2"),
        ended(),
    )
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok"), ("call_2", "g", '{"b":2}', "ok")]


def test_one_item_id_for_all() -> None:
    """One item id for all items joins nothing that index and call id keep apart."""
    first, second = call_item(1, "f", '{"a":1}', id="fc"), call_item(2, "f", '{"a":2}', id="fc")
    calls = calls_of(
        added({**first, "arguments": ""}, 0),
        added({**second, "arguments": ""}, 1),
        delta('{"a":1}', 0, "fc"),
        delta('{"a":2}', 1, "fc"),
        item_done(first, 0),
        item_done(second, 1),
        ended(first, second),
    )
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok"), ("call_2", "f", '{"a":2}', "ok")]


def test_done_without_added() -> None:
    """Items that are only ever finished are calls all the same, also when all have one index."""
    calls = calls_of(item_done(call_item(1, "f", '{"a":1}'), 0), item_done(call_item(2, "f", '{"a":2}'), 0), ended())
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok"), ("call_2", "f", '{"a":2}', "ok")]


def test_done_without_added_or_own_ids() -> None:
    """Finished items with one item id for all are as many as there are call ids, or places."""
    first, second = call_item(1, arguments='{"a":1}', id="fc"), call_item(2, arguments='{"a":2}', id="fc")
    calls = calls_of(item_done(first, 0), item_done(second, 0), ended())
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok"), ("call_2", "f", '{"a":2}', "ok")]
    finalizer, _ = fed(item_done(message_item("a"), 0), item_done(message_item("b"), 1), ended())
    assert finalizer.response.text == "ab"


def test_announced_twice_without_call_id() -> None:
    """An item id, in the same place or without one, says that an announcement is a repetition."""
    bare = call_item(1, call_id=...)
    for index in (0, None):
        events = (added(bare, index), added(bare, index), item_done({**bare, "arguments": "{}"}, index), ended())
        assert brief(calls_of(*events)) == [(None, "f", "{}", "ok")]


def test_announced_twice() -> None:
    """A call id that is known goes to its call, whatever its index and item id say."""
    calls = calls_of(
        added(call_item(1)),
        added(call_item(1, id="fc_9"), 3),
        delta('{"a":', 0, "fc_1"),
        delta("1}", 3, "fc_9"),
        item_done(call_item(1, arguments='{"a":1}', id="fc_9"), 3),
        ended(),
    )
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok")]


def test_call_id_of_two_tools() -> None:
    """One call id for two tools makes two calls; the second gets an id of its own."""
    calls = calls_of(
        added(call_item(1, "f"), 0),
        added(call_item(2, "g", call_id="call_1"), 1),
        delta('{"a":1}', 0),
        delta('{"b":2}', 1),
        ended(),
    )
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok"), (None, "g", '{"b":2}', "ok")]


def test_call_id_of_two_tools_in_the_list() -> None:
    """In the terminal list, the name and the item id tell two tools with one call id apart."""
    first, second = call_item(1, "f", '{"a":1}'), call_item(2, "g", '{"b":2}', call_id="call_1")
    calls = calls_of(item_done(first, 0), item_done(second, 1), ended(second, first))
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok"), (None, "g", '{"b":2}', "ok")]


def test_call_id_of_two_whole_calls() -> None:
    """Two finished items with one call id and other arguments are two calls; an identical one is a repetition."""
    first, second = call_item(1, arguments='{"a":1}'), call_item(2, arguments='{"a":2}', call_id="call_1")
    for events in (
        (item_done(first, 0), item_done(second, 1), item_done(second, 1), ended()),
        (ended(first, second),),
        (item_done(first, 0), ended(first, second)),
    ):
        assert brief(calls_of(*events)) == [("call_1", "f", '{"a":1}', "ok"), (None, "f", '{"a":2}', "ok")]
    again = {**first, "id": "fc_9"}
    for events in ((item_done(first, 0), item_done(again, 1), ended(first, again)), (ended(first, again),)):
        assert brief(calls_of(*events)) == [("call_1", "f", '{"a":1}', "ok")]


def test_terminal_list_at_other_places() -> None:
    """The terminal list has its own positions: there the call id joins, then the item id."""
    first, second = call_item(1, "f", '{"a":1}'), call_item(2, "g", '{"b":2}')
    calls = calls_of(
        added(call_item(1, "f"), 4), added(call_item(2, "g"), 7), ended({**second, "id": "x"}, {**first, "call_id": ""})
    )
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok"), ("call_2", "g", '{"b":2}', "ok")]
    assert [call.index for call in calls] == [4, 7]


def test_terminal_list_with_new_ids() -> None:
    """Where the terminal list knows no id, what says the same in the same place is the same call, and runs once."""
    calls = calls_of(
        added(call_item(1)),
        item_done(call_item(1, arguments='{"a":1}')),
        ended(call_item(8, arguments='{"a":1}')),
    )
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok")]


def test_terminal_list_with_another_call() -> None:
    """A call that only the terminal list has is opened there, also in the place of another."""
    calls = calls_of(
        added(call_item(1)),
        item_done(call_item(1, arguments='{"a":1}')),
        ended(call_item(8, arguments='{"a":2}'), call_item(1, arguments='{"a":1}'), call_item(9, "g", "{}")),
    )
    assert brief(calls) == [
        ("call_1", "f", '{"a":1}', "ok"),
        ("call_8", "f", '{"a":2}', "ok"),
        ("call_9", "g", "{}", "ok"),
    ]


def test_terminal_list_with_nothing_known() -> None:
    """Another whole call in the place of one that the terminal list leaves out is another call."""
    calls = calls_of(item_done(call_item(1, arguments='{"a":1}')), ended(call_item(8, arguments='{"a":2}')))
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok"), ("call_8", "f", '{"a":2}', "ok")]


def test_terminal_list_with_another_name() -> None:
    """A known call under another name is no second call, but a conflict."""
    calls = calls_of(added(call_item(1)), delta('{"a":1}'), ended(call_item(9, "g", '{"a":1}', call_id="call_1")))
    assert [(call.id, call.code, call.executable) for call in calls] == [("call_1", "identity_conflict", False)]


def test_output_before_its_call() -> None:
    """An output does not take the call id away from its call."""
    output = {"type": "function_call_output", "id": "fco_1", "call_id": "call_1", "output": "x"}
    (call,) = calls_of(added(output), item_done(call_item(1, arguments="{}"), 1), ended())
    assert (call.id, call.synthetic_id) == ("call_1", False)


def test_call_id_changes() -> None:
    """A function's call id that changes for one item id is that of the start, which listeners have already."""
    calls = calls_of(added(call_item(1)), item_done(call_item(1, arguments="{}", call_id="call_9")), ended())
    assert brief(calls) == [("call_1", "f", "{}", "ok")]


def test_provisional_call_id() -> None:
    """A client's tool search gets its id with its final copy; if none comes, the id is a synthetic one."""
    search = {"type": "tool_search_call", "id": "tsc_1", "execution": "client", "call_id": "call_a", "arguments": {}}
    final = {**search, "call_id": "call_b", "arguments": {"goal": "x"}}
    assert brief(calls_of(added(search), item_done(final), ended(final))) == [
        ("call_b", "tool_search_call", '{"goal": "x"}', "ok")
    ]
    assert brief(calls_of(added(search), ended(final))) == [("call_b", "tool_search_call", '{"goal": "x"}', "ok")]
    assert brief(calls_of(added(search))) == [(None, "tool_search_call", "", "incomplete")]


def test_late_name_and_id() -> None:
    """Name and call id may come with the final copy."""
    bare = {"type": "function_call", "id": "fc_1", "arguments": ""}
    calls = calls_of(added(bare), delta('{"a":1}'), item_done(call_item(1, arguments='{"a":1}')), ended())
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok")]


def test_no_call_id() -> None:
    """A client call without a call id gets a synthetic one; its item id is not taken for it."""
    (call,) = calls_of(ended(call_item(1, arguments="{}", call_id=...)))
    assert call.synthetic_id
    assert call.id.startswith("call_")
    assert len(call.id) == len("call_") + 24


@pytest.mark.parametrize("blank", ["", " ", "null", "None", None])
def test_blank_call_ids(blank: str | None) -> None:
    """Words for nothing are no ids: two such calls stay two."""
    first, second = call_item(1, "f", '{"a":1}', call_id=blank), call_item(2, "f", '{"a":2}', call_id=blank)
    calls = calls_of(added({**first, "arguments": ""}), item_done(first), item_done(second, 1), ended(first, second))
    assert brief(calls) == [(None, "f", '{"a":1}', "ok"), (None, "f", '{"a":2}', "ok")]
    assert calls[0].id != calls[1].id
    without_index = calls_of(item_done({**first, "id": blank}, None), item_done({**second, "id": blank}, None), ended())
    assert brief(without_index) == brief(calls)


def test_name_changes() -> None:
    """Another name in the final copy, after arguments came, is a conflict."""
    calls = calls_of(added(call_item(1, "f")), delta('{"a":1}'), item_done(call_item(1, "g", '{"a":1}')), ended())
    assert [(call.status.value, call.code) for call in calls] == [("parse_error", "identity_conflict")]


def test_name_changes_without_id() -> None:
    """Without an id to hold on to, a call that changes its name is not run under either."""
    bare = call_item(1, "f", call_id=...)
    calls = calls_of(added(bare), delta('{"a":1}'), item_done({**bare, "name": "g", "arguments": '{"a":1}'}), ended())
    assert brief(calls) == [(None, "f", '{"a":1}', "incomplete")]


def test_deltas_of_no_call() -> None:
    """Argument text for a call that never began is reported, and a blank call beside it is not trusted."""
    finalizer, told = fed(delta('{"a":1}', 5, "fc_5"), item_done(call_item(1), 0), ended())
    assert [item.code for item in told if isinstance(item, Diagnostic)] == ["orphan_delta"]
    assert [(call.status.value, call.code) for call in finalizer.calls] == [("incomplete", "beside_nameless")]


def test_second_response() -> None:
    """Another response in the same stream cuts what the first left unfinished; its indexes are its own."""
    calls = calls_of(
        created("resp_1"),
        added(call_item(1, "f"), 1),
        delta('{"a":1}', 1),
        created("resp_2"),
        added(call_item(2, "f"), 1),
        delta('{"a":2}', 1),
        ended(call_item(2, "f", '{"a":2}'), id="resp_2"),
    )
    assert brief(calls) == [("call_1", "f", '{"a":1}', "incomplete"), ("call_2", "f", '{"a":2}', "ok")]
    assert [call.index for call in calls] == [1, 1]


# -- final copies ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "final",
    [
        arguments_done('{"a":2}'),
        item_done(call_item(1, arguments='{"a":2}')),
        ended(call_item(1, arguments='{"a":2}')),
    ],
    ids=lambda event: event["type"],
)
def test_copy_wins(final: Json) -> None:
    """Each kind of final copy wins over the deltas, and listeners are told."""
    finalizer, told = fed(added(call_item(1)), delta('{"a":1}'), final, *([] if "response" in final else [ended()]))
    assert brief(finalizer.calls) == [("call_1", "f", '{"a":2}', "ok")]
    assert [item for item in told if isinstance(item, ArgumentsReplaced)] == [
        ArgumentsReplaced(0, '{"a":1}', '{"a":2}')
    ]


@pytest.mark.parametrize("blank", ["", " ", None])
def test_blank_copy_takes_nothing(blank: str | None) -> None:
    """A blank copy does not turn what the model wrote into a call without arguments."""
    for events in (
        (delta('{"a":1}'), item_done(call_item(1, arguments=blank)), ended(call_item(1, arguments=blank))),
        (arguments_done('{"a":1}'), item_done(call_item(1, arguments=blank)), ended(call_item(1, arguments=blank))),
        (item_done(call_item(1, arguments='{"a":1}')), ended(call_item(1, arguments=blank))),
    ):
        assert brief(calls_of(added(call_item(1)), *events)) == [("call_1", "f", '{"a":1}', "ok")]


def test_deltas_after_the_copy() -> None:
    """Deltas that come after a final copy add nothing to it."""
    calls = calls_of(added(call_item(1)), delta('{"a"'), arguments_done('{"a":1}'), delta(":1}"), ended())
    assert brief(calls) == [("call_1", "f", '{"a":1}', "ok")]


def test_arguments_in_the_start() -> None:
    """Arguments in the start count if no delta follows, and not if one does."""
    whole = call_item(1, arguments='{"a":1}')
    assert brief(calls_of(added(whole), ended())) == [("call_1", "f", '{"a":1}', "ok")]
    assert brief(calls_of(added(whole), delta('{"a":1}'), ended())) == [("call_1", "f", '{"a":1}', "ok")]


def test_arguments_as_object() -> None:
    """Arguments that come as an object are written down once."""
    assert brief(calls_of(ended(call_item(1, arguments={"a": 1})))) == [("call_1", "f", '{"a": 1}', "ok")]


@pytest.mark.parametrize("odd", [object(), {1, 2}, 5, True, ["a"]], ids=lambda odd: type(odd).__name__)
def test_arguments_as_nothing_known(odd: object) -> None:
    """Whatever else comes as arguments is not taken for an empty object."""
    (call,) = calls_of(ended(call_item(1, arguments=odd)))
    assert (call.status, call.executable) == (CallStatus.PARSE_ERROR, False)


def test_arguments_as_bytes() -> None:
    """Bytes are read as text."""
    assert brief(calls_of(ended(call_item(1, arguments=b'{"a":1}')))) == [("call_1", "f", '{"a":1}', "ok")]


STARTS = [
    call_item(1),
    custom_item(),
    {"type": "tool_search_call", "id": "t", "call_id": "call_1", "execution": "client", "arguments": {}},
    {"type": "local_shell_call", "id": "l", "call_id": "call_1", "action": {"type": "exec", "command": [], "env": {}}},
    {"type": "shell_call", "id": "s", "call_id": "call_1", "action": {"commands": []}},
    {"type": "apply_patch_call", "id": "a", "call_id": "call_1", "operation": {"type": "update_file", "path": "x"}},
    {"type": "computer_call", "id": "c", "call_id": "call_1", "action": {"type": "screenshot"}},
]


@pytest.mark.parametrize("end", [ended(), "[DONE]"], ids=["completed", "DONE"])
@pytest.mark.parametrize("start", STARTS, ids=lambda item: item["type"])
def test_only_announced(start: Json, end: Any) -> None:
    """A call of which nothing came but its start is not run without arguments, whatever the finish says."""
    (call,) = calls_of(created(), added({**start, "status": "in_progress"}), end)
    assert (call.status, call.executable) == (CallStatus.INCOMPLETE, False)
    assert not call.provider_executed


@pytest.mark.parametrize("end", [ended(), "[DONE]"], ids=["completed", "DONE"])
def test_no_arguments(end: Any) -> None:
    """A blank final copy says that there are no arguments."""
    (call,) = calls_of(added(call_item(1)), arguments_done(""), end)
    assert (call.raw_arguments, call.arguments, call.executable) == ("", {}, True)


@pytest.mark.parametrize(
    "item", [call_item(1, arguments='{"a":1}'), custom_item("text")], ids=lambda item: item["type"]
)
def test_incomplete_item(item: Json) -> None:
    """An item that its own status calls incomplete is, even if its text parses and the response is completed."""
    cut = {**item, "status": "incomplete"}
    for events in ((added(item), item_done(cut), ended()), (ended(cut),), (item_done(item), ended(cut))):
        (call,) = calls_of(*events)
        assert (call.status, call.executable) == (CallStatus.INCOMPLETE, False)


def test_item_in_progress() -> None:
    """A call that a program makes stays in progress until it is answered: it is whole."""
    item = call_item(1, arguments="{}", status="in_progress", caller={"type": "program", "caller_id": "call_0"})
    (call,) = calls_of(item_done(item), ended(item))
    assert call.executable
    assert call.extra["caller"] == {"type": "program", "caller_id": "call_0"}


# -- finishing ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "reason", "status", "code", "executable"),
    [
        (ended(), "completed", "ok", None, True),
        (ended(kind="incomplete", incomplete_details={"reason": "max_output_tokens"}), "max_output_tokens", "ok", "held", False),
        (ended(kind="incomplete", incomplete_details={"reason": "content_filter"}), "content_filter", "ok", "held", False),
        (ended(kind="incomplete", incomplete_details=None), "incomplete", "ok", "held", False),
        (ended(kind="failed", error={"code": "x", "message": "no"}), "failed", "incomplete", "stream_error", False),
        (ended(kind="cancelled"), "cancelled", "incomplete", "broken_finish", False),
        # The event and the response in it disagree: the worst counts.
        ({**ended(kind="failed"), "type": "response.completed"}, "failed", "incomplete", "broken_finish", False),
        ({**ended(), "type": "response.incomplete"}, "incomplete", "ok", "held", False),
        (ended(incomplete_details={"reason": "max_output_tokens"}), "max_output_tokens", "ok", "held", False),
        # The event alone, or the status alone.
        ({"type": "response.completed"}, "completed", "ok", None, True),
        ({"type": "response.completed", "response": {"status": "in_progress"}}, "completed", "ok", None, True),
        ({"type": "response.done", "response": {"status": "completed"}}, "completed", "ok", None, True),
        ({"type": "response.done", "response": {}}, None, "incomplete", "no_finish", False),
        ({"type": "response.done", "response": {"status": ["completed"]}}, None, "incomplete", "no_finish", False),
    ],
)  # fmt: skip
def test_finish(event: Json, reason: str | None, status: str, code: str | None, executable: bool) -> None:
    """The terminal event decides, with the details of an incomplete response."""
    (call,) = calls_of(item_done(WHOLE), event)
    assert (call.finish_reason, call.status.value, call.code, call.executable) == (reason, status, code, executable)


def test_no_finish() -> None:
    """A finished item at a bare end of the stream proves nothing about the response."""
    (call,) = calls_of(item_done(WHOLE))
    assert (call.status.value, call.code) == ("incomplete", "no_finish")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"type": "error", "code": "server_error", "message": "overloaded"}, "overloaded"),
        ({"type": "error", "error": {"type": "x", "message": "no quota"}}, "no quota"),
        ({"type": "error", "code": "server_error"}, "server_error"),
        ({"type": "error"}, "error"),
        ({"error": {"message": "bad request"}}, "bad request"),
        (ended(kind="failed", error={"code": "server_error", "message": "broke"}), "broke"),
    ],
)
def test_error(event: Json, message: str) -> None:
    """An error in the stream is reported, and nothing that came before it runs."""
    finalizer, told = fed(item_done(WHOLE), event)
    assert [(item.code, item.message) for item in told if isinstance(item, Diagnostic)] == [("stream_error", message)]
    assert runs(finalizer.calls) == []


def test_usage() -> None:
    """The usage of the terminal response is kept."""
    finalizer, _ = fed(ended(usage={"input_tokens": 3, "output_tokens": 4}))
    assert finalizer.response.usage == {"input_tokens": 3, "output_tokens": 4}


def test_type_on_the_event_line() -> None:
    """Where the type is only the name of the SSE event, the response stands for the event."""
    data = f"event: response.completed\ndata: {json.dumps(ended(WHOLE)['response'])}\n\n"
    assert brief(calls_of(data)) == [("call_1", "f", '{"a":1}', "ok")]


# -- whole responses ------------------------------------------------------------------------


def test_whole_response() -> None:
    """A whole response goes in at the same door; calls have their places as indexes."""
    response = ended(reasoning_item(), message_item("Hello"), WHOLE)["response"]
    finalizer, _ = fed(response)
    assert brief(finalizer.calls) == [("call_1", "f", '{"a":1}', "ok")]
    assert finalizer.calls[0].index == 2
    assert finalizer.response.text == "Hello"
    assert finalizer.response.id == "resp_1"


@pytest.mark.parametrize("status", ["in_progress", "queued", None, "odd"])
def test_whole_response_that_is_not_over(status: str | None) -> None:
    """A background response that is still being written runs nothing."""
    (call,) = calls_of({**ended(WHOLE)["response"], "status": status})
    assert (call.status.value, call.executable) == ("incomplete", False)


@pytest.mark.parametrize(
    ("event", "known"),
    [
        ({"type": "response.created"}, True),
        ({"type": "response.some_day"}, True),
        ({"object": "response", "output": []}, True),
        ({"type": "error"}, False),
        ({"type": "message"}, False),
        ({"type": ["response."]}, False),
        ({"object": "chat.completion"}, False),
        ({}, False),
    ],
)
def test_recognises(event: Json, known: bool) -> None:
    """Events of this protocol are told from others."""
    assert WIRE.recognises(event) is known


def test_events_are_not_touched() -> None:
    """What the user passes in is not changed, and not shared with the response."""
    events = [added(message_item()), item_done(message_item()), added(call_item(1), 1), ended(message_item(), WHOLE)]
    before = copy.deepcopy(events)
    items = history(*events)
    items[0]["content"][0]["text"] = "changed"
    items[1]["id"] = "changed"
    assert events == before


# -- who executes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "name", "raw", "id"),
    [
        (
            {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "x"}},
            "web_search_call", '{"type": "search", "query": "x"}', "ws_1",
        ),
        (
            {"type": "web_search_call", "id": "ws_1", "call_id": "", "name": "web_search", "arguments": '{"query":"x"}'},
            "web_search", '{"query":"x"}', "ws_1",
        ),
        ({"type": "file_search_call", "id": "fs_1", "queries": ["x"]}, "file_search_call", "", "fs_1"),
        ({"type": "image_generation_call", "id": "ig_1", "result": "iVBO"}, "image_generation_call", "", "ig_1"),
        ({"type": "code_interpreter_call", "id": "ci_1", "code": "1 + 1"}, "code_interpreter_call", "1 + 1", "ci_1"),
        (
            {"type": "program", "id": "cm_1", "call_id": "call_1", "code": "text(1)", "fingerprint": "x"},
            "program", "text(1)", "call_1",
        ),
        (
            {"type": "mcp_call", "id": "mcp_1", "name": "search", "server_label": "s", "arguments": "{}", "output": "x"},
            "search", "{}", "mcp_1",
        ),
        (
            {"type": "mcp_approval_request", "id": "mcpr_1", "name": "pay", "server_label": "s", "arguments": '{"a":1}'},
            "pay", '{"a":1}', "mcpr_1",
        ),
        ({**SEARCH, "execution": "server", "call_id": None}, "tool_search_call", '{"paths": ["f"]}', "tsc_1"),
        (SEARCH, "tool_search_call", '{"paths": ["f"]}', "call_1"),
        (
            {**SHELL, "environment": {"type": "container_reference", "container_id": "cntr_1"}},
            "shell_call", '{"commands": ["ls"], "timeout_ms": null}', "call_1",
        ),
        (custom_item('{"query":"x"}', name="x_keyword_search", call_id="xs_call_1"), "x_keyword_search", '{"query":"x"}', "xs_call_1"),
        ({"type": "new_call", "id": "n_1", "action": {"a": 1}}, "new_call", '{"a": 1}', "n_1"),
    ],
)  # fmt: skip
async def test_hosted(item: Json, name: str, raw: str, id: str) -> None:
    """What the provider executes is reported, never runs, and goes back as it is without a result."""
    ran = []
    schema = {"type": "object", "additionalProperties": True}
    registry = ToolRegistry([Tool.from_json_schema(name=name, input_schema=schema, handler=ran.append)])
    async with Runner(registry) as runner:
        for events in ([added(item), item_done(item), ended(item)], [item_done(item), ended()], [ended(item)]):
            turn = await runner.run(events, wire=WIRE)
            assert brief(turn.calls) == [(id, name, raw, "ok")]
            assert turn.calls[0].provider_executed
            assert (turn.outcomes, turn.needs_reply, turn.messages()) == ((), False, [item])
    assert ran == []


@pytest.mark.parametrize(
    ("item", "name", "raw"),
    [
        ({**SEARCH, "execution": "client"}, "tool_search_call", '{"paths": ["f"]}'),
        (
            {"type": "local_shell_call", "id": "l", "call_id": "call_1", "action": {"type": "exec", "command": ["ls"]}},
            "local_shell_call", '{"type": "exec", "command": ["ls"]}',
        ),
        (SHELL, "shell_call", '{"commands": ["ls"], "timeout_ms": null}'),
        ({**SHELL, "environment": {"type": "local"}}, "shell_call", '{"commands": ["ls"], "timeout_ms": null}'),
        ({**SHELL, "environment": None}, "shell_call", '{"commands": ["ls"], "timeout_ms": null}'),
        (
            {"type": "apply_patch_call", "id": "apc_1", "call_id": "call_1", "operation": PATCH},
            "apply_patch_call", json.dumps(PATCH),
        ),
        (
            {"type": "computer_call", "id": "cu_1", "call_id": "call_1", "action": {"type": "wait"}},
            "computer_call", '{"type": "wait"}',
        ),
        (
            {"type": "computer_call", "id": "cu_1", "call_id": "call_1", "actions": [{"type": "wait"}]},
            "computer_call", '{"actions": [{"type": "wait"}]}',
        ),
    ],
)  # fmt: skip
def test_client_items(item: Json, name: str, raw: str) -> None:
    """What a client must execute is a call named after its type; what it is to do are its arguments."""
    for events in ((added({**item, "status": "in_progress"}), item_done(item), ended(item)), (ended(item),)):
        (call,) = calls_of(*events)
        assert (call.id, call.name, call.raw_arguments) == ("call_1", name, raw)
        assert (call.arguments, call.kind, call.executable) == (json.loads(raw), "function", True)


def test_hosted_with_one_id() -> None:
    """Hosted calls that share an item id stay apart by their places."""
    search = {"type": "web_search_call", "id": "ws", "action": {"query": "x"}}
    other = {**search, "action": {"query": "y"}}
    calls = calls_of(added(search, 0), added(other, 1), item_done(search, 0), item_done(other, 1), ended())
    assert brief(calls) == [
        ("ws", "web_search_call", '{"query": "x"}', "ok"),
        (None, "web_search_call", '{"query": "y"}', "ok"),
    ]


def test_custom_tool() -> None:
    """A custom tool's call is free text, valid JSON or not; half of it is incomplete."""
    text = '*** Begin Patch {"'
    event = {"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": text}
    final = {"type": "response.custom_tool_call_input.done", "output_index": 0, "input": text}
    (call,) = calls_of(added(custom_item()), event, final, item_done(custom_item(text)), ended(custom_item(text)))
    assert (call.kind, call.text, call.arguments, call.status.value) == ("custom", text, None, "ok")
    assert call.executable
    (cut,) = calls_of(added(custom_item()), event, ended(kind="incomplete"))
    assert (cut.status.value, cut.executable) == ("incomplete", False)


def test_executed_after_all() -> None:
    """A call whose output is in the same response has run already: it does not run here, and is not answered twice."""
    output = {"type": "shell_call_output", "id": "sho_1", "call_id": "call_1", "output": []}
    for events in (
        (added(SHELL), item_done(SHELL), item_done(output, 1), ended(SHELL, output)),
        (item_done(SHELL), item_done(output, 1), ended(SHELL)),
        (ended(SHELL, output),),
    ):
        assert runs(calls_of(*events)) == []
        assert [item["type"] for item in history(*events)] == ["shell_call", "shell_call_output"]


def test_executed_elsewhere_after_all() -> None:
    """A container that only the final copy names means that the provider runs the command."""
    final = {**SHELL, "environment": {"type": "container_reference", "container_id": "cntr_1"}}
    assert runs(calls_of(added(SHELL), item_done(final), ended(final))) == []


def test_tool_search_output_in_the_response() -> None:
    """What a response lists as found by the client's search does not stop the search, and gives way to its result."""
    search = {**SEARCH, "execution": "client", "status": "completed"}
    output = {"type": "tool_search_output", "id": "tso_1", "execution": "client", "call_id": "call_1", "tools": [{}]}
    events = (item_done(search), item_done(output, 1), ended(search, output))
    assert runs(calls_of(*events)) == ["tool_search_call"]
    assert history(*events, results=["[]"]) == [
        search,
        {"type": "tool_search_output", "call_id": "call_1", "execution": "client", "status": "completed", "tools": []},
    ]


# -- texts ----------------------------------------------------------------------------------


def texts(told: Iterable[Any]) -> list[tuple[str, str]]:
    return [(item.kind, item.text) for item in told if isinstance(item, TextDelta)]


def test_text() -> None:
    """Deltas are told as they come; their final copies are not told again."""
    finalizer, told = fed(
        added(message_item("", content=[])),
        text_delta("He", content_index=0),
        text_delta("llo", content_index=0),
        {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hello"},
        item_done(message_item("Hello")),
        ended(message_item("Hello")),
    )
    assert texts(told) == [("text", "He"), ("text", "llo")]
    assert finalizer.response.text == "Hello"


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "response.output_text.done", "output_index": 0, "text": "Hello"}, item_done(message_item("Hello"))],
        [item_done(message_item("Hello")), ended(message_item("Hello"))],
        [ended(message_item("Hello"))],
    ],
)
def test_text_without_deltas(events: list[Json]) -> None:
    """Text that only a final copy has is told once."""
    finalizer, told = fed(*events)
    assert texts(told) == [("text", "Hello")]
    assert finalizer.response.text == "Hello"


def test_kinds_of_text() -> None:
    """Reasoning and refusals are told as such, and are not the answer's text."""
    reasoning = reasoning_item(content=[{"type": "reasoning_text", "text": "hm"}])
    refusal = message_item(content=[{"type": "refusal", "refusal": "no"}])
    finalizer, told = fed(
        added(reasoning_item()),
        text_delta("so", "reasoning_summary_text", summary_index=0),
        item_done(reasoning),
        added(refusal, 1),
        text_delta("no", "refusal", 1, content_index=0),
        ended(reasoning, refusal),
    )
    assert texts(told) == [("reasoning", "so"), ("reasoning", "hm"), ("refusal", "no")]
    assert finalizer.response.text == ""


@pytest.mark.parametrize(
    "later",
    [
        [added(message_item("", content=[])), item_done(message_item("Hello"))],
        [item_done(message_item("Hello"))],
        [],
    ],
)
def test_text_before_its_item(later: list[Json]) -> None:
    """Text that comes before its item, without any id, is the item's: it is told once, and goes back once."""
    events = [text_delta("Hel", index=None), text_delta("lo", index=None), *later, ended(message_item("Hello"))]
    _, told = fed(*events)
    assert texts(told) == [("text", "Hel"), ("text", "lo")]
    assert history(*events) == [message_item("Hello")]


def test_text_of_no_item() -> None:
    """Text whose item never began is a message of its own, and so is text that points at a call."""
    items = history(
        added(call_item(1)), text_delta("He"), text_delta("llo", index=None, item_id="msg_9"), item_done(WHOLE), ended()
    )
    assert [item.get("content") for item in items if item["type"] == "message"] == ["Hello"]


# -- whatever comes -------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.floats(), st.sampled_from(["", "a", "0", "null", "{}", "\ud83d"])
)
JSONS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "id", "a"]), inner, max_size=3)
    ),
    max_leaves=5,
)
KINDS = st.sampled_from([
    "function_call", "custom_tool_call", "tool_search_call", "shell_call", "web_search_call", "mcp_call", "program",
    "message", "reasoning", "shell_call_output", "odd",
])  # fmt: skip
ID = st.sampled_from(["call_1", "call_2", "fc_1", "", "null"])
TEXT = st.sampled_from(["", "{", "}", "{}", '{"a":1}', '{"a":2}', '"', "x", "\ud83d", "\ude00"])


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Any of the fields, each with a value of its own kind or with anything."""
    return st.fixed_dictionaries({}, optional={name: st.one_of(kind, kind, JSONS) for name, kind in fields.items()})


PART = some(type=st.sampled_from(["output_text", "refusal", "summary_text", "reasoning_text"]), text=TEXT, refusal=TEXT)
ITEM = st.one_of(
    some(
        type=KINDS, id=ID, call_id=ID, name=st.sampled_from(["f", "g"]), arguments=TEXT, input=TEXT, code=TEXT,
        action=JSONS, status=st.sampled_from(["completed", "incomplete", "in_progress"]), content=st.lists(PART, max_size=2),
        summary=st.lists(PART, max_size=2), execution=st.sampled_from(["client", "server"]), environment=JSONS,
    ),
    JSONS,
)  # fmt: skip
RESPONSE = st.one_of(
    some(
        id=st.sampled_from(["r1", "r2"]), status=st.sampled_from(["completed", "incomplete", "failed", "in_progress"]),
        output=st.lists(ITEM, max_size=3), incomplete_details=JSONS, error=JSONS, usage=JSONS, store=st.booleans(),
    ),
    JSONS,
)  # fmt: skip
TYPES = st.sampled_from([
    "response.created", "response.output_item.added", "response.output_item.done", "response.completed",
    "response.incomplete", "response.failed", "response.done", "response.function_call_arguments.delta",
    "response.function_call_arguments.done", "response.custom_tool_call_input.delta", "response.mcp_call_arguments.done",
    "response.output_text.delta", "response.output_text.done", "response.reasoning_summary_text.delta", "error",
])  # fmt: skip
EVENT = st.one_of(
    st.builds(
        lambda kind, rest: {**rest, "type": kind},
        TYPES,
        some(
            item=ITEM, response=RESPONSE, output_index=st.integers(-1, 2), item_id=ID, call_id=ID, delta=TEXT, text=TEXT,
            arguments=TEXT, input=TEXT, content_index=st.integers(0, 2), error=JSONS, message=JSONS,
        ),
    ),
    JSONS,
)  # fmt: skip


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(EVENT, max_size=12))
def test_anything(events: list[Any]) -> None:
    """Nothing raises, every call begins and ends once, and each client call is in the history with one result."""
    assembler = Assembler(lambda position: f"synthetic_{position}")
    decode = WIRE.decoder(assembler)
    for event in events:
        decode(event)
    calls = assembler.close(FinishPolicy())
    response = assembler.response(WIRE.name)
    assert Counter(item.position for item in assembler.events if isinstance(item, CallStarted)) == Counter(
        range(len(calls))
    )
    assert len({call.id for call in calls if not call.provider_executed}) == sum(
        not call.provider_executed for call in calls
    )
    client = [call for call in calls if not call.provider_executed]
    written = WIRE.assistant_messages(response, calls)
    results = WIRE.result_messages([ToolResult(call, "ok", is_error=False) for call in client])
    json.dumps([*written, *results])
    assert all(isinstance(item.get("type"), str) for item in written)
    answered = Counter(item["call_id"] for item in results)
    assert set(answered.values()) <= {1}
    assert all(call.id in answered or "answered_in_response" in call.extra for call in client)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.lists(EVENT, max_size=8), st.sampled_from(["auto", "normal", "eof", "error"]))
def test_anything_fed(events: list[Any], end: Any) -> None:
    """Nothing raises out of `feed` and `close`, and no event is lost to an exception inside."""
    finalizer, told = fed(*events, end=end)
    assert not [item for item in told if isinstance(item, Diagnostic) and "Error" in item.message.partition(":")[0]]
    assert all(call.finish_reason or end == "normal" for call in finalizer.calls if call.executable)


TOOLS = st.sampled_from(["f", "g"])
ARGUMENTS = st.sampled_from(['{"a":1}', '{"a": [1, 2]}', "{}", '{"text":"\\ud83d\\ude00 é"}', '{"a":', "x"])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data(), st.lists(st.tuples(TOOLS, ARGUMENTS), min_size=1, max_size=4))
def test_however_it_is_told(data: st.DataObject, calls: list[tuple[str, str]]) -> None:
    """The same calls come of any interleaving, with any of the ids, and from the deltas or any of the copies."""
    told = data.draw(st.sets(st.sampled_from(["delta", "done", "item", "list"]), min_size=1), label="told by")
    joined = data.draw(st.sets(st.sampled_from(["index", "item_id", "call_id"]), min_size=1), label="joined by")
    rotating = "item_id" not in joined and data.draw(st.booleans(), label="rotating")
    queues: list[list[Json]] = []
    for number, (name, text) in enumerate(calls):
        whole = call_item(number, name, text)
        place = {"output_index": number} if "index" in joined else {}
        ids = {"item_id": f"fc_{number}"} if "item_id" in joined else {"item_id": f"odd_{number}"} if rotating else {}
        ids |= {"call_id": f"call_{number}"} if "call_id" in joined else {}
        cut = data.draw(st.integers(0, len(text)))
        queue = [{"type": "response.output_item.added", **place, "item": {**whole, "arguments": ""}}]
        if "delta" in told:
            queue += [{**delta(piece, None), **place, **ids} for piece in (text[:cut], text[cut:])]
        if "done" in told:
            queue.append({**arguments_done(text, None), **place, **ids})
        if "item" in told:
            queue.append({"type": "response.output_item.done", **place, "item": whole})
        queues.append(queue)
    begun = [queue[0] for queue in queues]
    order = data.draw(st.permutations([number for number, queue in enumerate(queues) for _ in queue[1:]]))
    rest = [iter(queue[1:]) for queue in queues]
    listed = [call_item(number, name, text) for number, (name, text) in enumerate(calls)] if "list" in told else []

    events = [*begun, *(next(rest[number]) for number in order), ended(*data.draw(st.permutations(listed)))]

    expected = [
        (f"call_{number}", name, text, "ok" if text.endswith("}") else "parse_error")
        for number, (name, text) in enumerate(calls)
    ]
    assert brief(calls_of(*events)) == expected
