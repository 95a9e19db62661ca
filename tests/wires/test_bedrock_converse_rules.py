"""Bedrock Converse, rule by rule: pieces and blocks, how a stream ends, the provider's own tools, history."""

from __future__ import annotations

from typing import Any

import pytest

from toolrun import Runner, finalize
from toolrun.wires.bedrock_converse import BedrockConverse

from .bedrock import (
    START,
    Bedrock,
    a_call,
    call_start,
    codes,
    delta,
    diagnostics,
    feed,
    noting,
    piece,
    read,
    said,
    stop,
    whole_response,
)

Json = dict[str, Any]

WIRE = BedrockConverse()


@pytest.fixture(scope="module")
def server():
    with Bedrock() as running:
        yield running


# -- pieces and blocks ----------------------------------------------------------------------


def test_interleaved_blocks() -> None:
    """Pieces of several blocks, mixed, go to the block of their index."""
    calls = read(
        START,
        call_start(0, "a", "left"),
        call_start(1, "b", "right"),
        piece(1, '{"y"'),
        delta(2, text="And "),
        piece(0, '{"x"'),
        piece(1, ":2}"),
        piece(0, ":1}"),
        delta(2, text="so on."),
        stop(),
    )

    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("a", "left", {"x": 1}),
        ("b", "right", {"y": 2}),
    ]


@pytest.mark.parametrize(
    ("decoded", "text"),
    [(104857600, "104857600"), (True, "true"), (False, "false"), (1.5, "1.5"), (None, "null"), ([1, "a"], '[1, "a"]')],
)
def test_decoded_piece(decoded: Any, text: str) -> None:
    """A piece that came decoded is its JSON text."""
    (call,) = read(START, *a_call(0, "t", "f", '{"v": ', decoded, "}"), stop())

    assert call.raw_arguments == f'{{"v": {text}}}'
    assert call.arguments == {"v": decoded}
    assert call.executable


@pytest.mark.parametrize("decoded", [104857600, True, False, 1.5])
def test_decoded_piece_through_boto3(decoded: Any, server: Bedrock) -> None:
    """boto3 passes such a piece on as it is."""
    stream = server.converse_stream([START, *a_call(0, "t", "f", '{"v": ', decoded, "}"), stop()])
    (call,) = finalize(stream, wire=WIRE)

    assert call.arguments == {"v": decoded}


def test_null_piece_through_boto3(server: Bedrock) -> None:
    """boto3 drops a piece that is null: what is left is no JSON, and does not run."""
    stream = server.converse_stream([START, *a_call(0, "t", "f", '{"v": ', None, "}"), stop()])
    (call,) = finalize(stream, wire=WIRE)

    assert (call.raw_arguments, call.status.value, call.executable) == ('{"v": }', "parse_error", False)


@pytest.mark.parametrize("inputs", [(), ("",), ("", "")])
def test_no_arguments(inputs: tuple[str, ...]) -> None:
    """A call without any text has no arguments if the response finished, and is cut if it was cut."""
    (call,) = read(START, *a_call(0, "t", "f", *inputs), stop())
    (cut,) = read(START, *a_call(0, "t", "f", *inputs), stop("max_tokens"))

    assert (call.raw_arguments, call.arguments, call.executable) == ("", {}, True)
    assert (cut.status.value, cut.executable) == ("incomplete", False)


def test_no_arguments_in_whole_response() -> None:
    """The empty input of a response that was cut may be all that the model came to: it is not a call without any."""
    content = [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]
    (call,) = finalize(whole_response(content, "tool_use"), wire=WIRE)
    (cut,) = finalize(whole_response(content, "max_tokens"), wire=WIRE)

    assert (call.arguments, call.executable) == ({}, True)
    assert (cut.status.value, cut.executable) == ("incomplete", False)


def test_text_then_call_at_one_index() -> None:
    """A call may start at the index of a text, and text may follow there: nothing is mixed, and order is kept."""
    events = [
        START,
        delta(0, text="Before. "),
        call_start(0, "t", "f"),
        piece(0, '{"a"'),
        delta(0, text="Between."),
        piece(0, ":1}"),
        stop(),
    ]
    (call,) = read(*events)

    assert call.raw_arguments == '{"a":1}'
    assert said(*events) == [
        {"text": "Before. "},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}}},
        {"text": "Between."},
    ]


def test_two_calls_at_one_index() -> None:
    """A start with another id is another call, also at a used index."""
    calls = read(START, *a_call(0, "a", "f", '{"x":1}'), *a_call(0, "b", "f", '{"x":2}'), stop())

    assert [(call.id, call.arguments) for call in calls] == [("a", {"x": 1}), ("b", {"x": 2})]


@pytest.mark.parametrize("index", [None, "x", [], {}, -1.5])
def test_unreadable_index(index: Any) -> None:
    """A piece without an index that can be read continues the block before it."""
    body: Json = {"delta": {"toolUse": {"input": '{"b":2}'}}}
    if index is not None:
        body["contentBlockIndex"] = index

    calls = read(START, *a_call(0, "a", "f", '{"a":1}'), call_start(1, "b", "g"), {"contentBlockDelta": body}, stop())

    assert [call.arguments for call in calls] == [{"a": 1}, {"b": 2}]


def test_missing_index_continues_the_last_piece() -> None:
    """The block before is that of the last piece, not of the last start."""
    calls = read(
        START,
        call_start(1, "b", "g"),
        call_start(0, "a", "f"),
        piece(0, "{}"),
        piece(1, '{"b"'),
        piece(None, ":2}"),
        stop(),
    )

    assert [(call.id, call.arguments) for call in calls] == [("b", {"b": 2}), ("a", {})]


def test_indexes_never_sent() -> None:
    """A server that sends no index at all has its calls told apart by their starts."""
    calls = read(
        START,
        call_start(None, "a", "f"),
        piece(None, '{"a":1}'),
        call_start(None, "b", "g"),
        piece(None, '{"b":2}'),
        stop(),
    )

    assert [(call.id, call.arguments) for call in calls] == [("a", {"a": 1}), ("b", {"b": 2})]


def test_index_as_text() -> None:
    """An index that is a string of digits is that number."""
    (call,) = read(START, call_start(3, "a", "f"), delta(3, toolUse={"input": '{"a"'}), piece("3", ":1}"), stop())  # type: ignore[arg-type]

    assert call.arguments == {"a": 1}


def test_piece_without_start() -> None:
    """A piece of a call that never began is reported, and a blank call beside it does not run."""
    events = [START, call_start(0, "a", "f"), piece(1, '{"lost":1}'), stop()]
    (call,) = read(*events)

    assert (call.code, call.executable) == ("beside_nameless", False)
    assert codes(*events) == ["orphan_delta"]


def test_piece_that_names_its_call() -> None:
    """A server that sends no starts, but id and name with the pieces, is understood."""
    first = delta(0, toolUse={"toolUseId": "a", "name": "f", "input": '{"a"'})
    (call,) = read(START, first, delta(0, toolUse={"toolUseId": "a", "input": ":1}"}), stop())

    assert (call.id, call.name, call.arguments, call.executable) == ("a", "f", {"a": 1}, True)


def test_piece_that_names_a_call_of_the_provider() -> None:
    """Such a piece also tells whose call it is."""
    told = {"toolUseId": "s", "name": "f", "type": "server_tool_use", "input": "{}"}
    (call,) = read(START, delta(0, toolUse=told), stop())

    assert (call.provider_executed, call.executable) == (True, False)


@pytest.mark.parametrize("broken", [None, "text", 5, []])
def test_piece_without_delta(broken: Any) -> None:
    """A piece that cannot be read is lost: its call does not run though what is left is JSON; the other one does."""
    events = [
        START,
        *a_call(0, "a", "f", '{"n": 1'),
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": broken}},
        piece(0, "}"),
        *a_call(1, "b", "g", '{"m": 2}'),
        stop(),
    ]
    first, second = read(*events)

    assert (first.raw_arguments, first.status.value, first.executable) == ('{"n": 1}', "incomplete", False)
    assert second.executable
    assert codes(*events) == ["lost_event"]


def test_wrong_input_is_not_dropped() -> None:
    """A piece that is no object is taken for the text itself, so that the rest is not mistaken for the whole."""
    (call,) = read(START, call_start(0, "a", "f"), piece(0, '{"n": 1'), delta(0, toolUse="0"), piece(0, "}"), stop())

    assert call.arguments == {"n": 10}


def test_members_that_are_null() -> None:
    """Servers that write all members of a union, the others as null, say no more than with one member."""
    nothing = {"messageStart": None, "messageStop": None, "metadata": None, "throttlingException": None}
    start = {**nothing, **call_start(0, "a", "f")}
    start["contentBlockStart"]["start"] |= {"text": None, "toolResult": None}
    events = [
        {**nothing, **START},
        start,
        {**nothing, **delta(0, toolUse={"input": '{"a":1}'}, text=None, reasoningContent=None)},
        {**nothing, **delta(1, toolUse=None, text="Done.")},
        {**nothing, **stop()},
    ]
    (call,) = read(*events)

    assert (call.arguments, call.executable) == ({"a": 1}, True)
    assert codes(*events) == []
    assert said(*events)[1:] == [{"text": "Done."}]


def test_second_message_start() -> None:
    """A message that begins anew cuts what the first one left, however whole it looks."""
    events = [START, *a_call(0, "a", "f", '{"n":1}'), START, *a_call(0, "b", "f", '{"n":1}'), stop()]
    first, second = read(*events)

    assert (first.id, first.status.value, first.executable) == ("a", "incomplete", False)
    assert (second.id, second.arguments, second.executable) == ("b", {"n": 1}, True)


def test_message_after_message() -> None:
    """A message that begins after the last one stopped cuts nothing."""
    first, second = read(START, *a_call(0, "a", "f", "{}"), stop(), START, *a_call(0, "b", "f", "{}"), stop())

    assert (first.executable, second.executable) == (True, True)


# -- how it ends ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "runs"),
    [
        ("tool_use", True),
        ("end_turn", True),
        ("stop_sequence", True),
        ("TOOL_USE", True),
        ("max_tokens", False),
        ("model_context_window_exceeded", False),
        ("guardrail_intervened", False),
        ("content_filtered", False),
        ("malformed_tool_use", False),
        ("malformed_model_output", False),
        ("something_new", False),
    ],
)
def test_stop_reason(reason: str, runs: bool) -> None:
    """Every stop reason of the API, in a stream and in a whole response, lets a whole call run or does not."""
    (streamed,) = read(START, *a_call(0, "t", "f", '{"a":1}'), stop(reason))
    whole = whole_response([{"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}}}], reason)
    (given,) = finalize(whole, wire=WIRE)

    assert (streamed.finish_reason, given.finish_reason) == (reason, reason)
    assert (streamed.executable, given.executable) == (runs, runs)


def test_every_stop_reason_of_boto3_is_tested(server: Bedrock) -> None:
    """The list above has every value that boto3's model of the service has."""
    (mark,) = test_stop_reason.pytestmark
    known = set(server.client.meta.service_model.shape_for("StopReason").enum)

    assert known <= {reason for reason, _ in mark.args[1]}


def test_no_stop_reason() -> None:
    """A stop without a reason is the terminator alone; a whole response without one is not finished."""
    (streamed,) = read(START, *a_call(0, "t", "f", '{"a":1}'), stop(None))
    whole = whole_response([{"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}}}], "")
    (given,) = finalize(whole, wire=WIRE)
    (garbled,) = read(START, *a_call(0, "t", "f", '{"a":1}'), {"messageStop": "tool_use"})

    assert (streamed.code, streamed.executable) == ("finish_inferred", True)
    assert (given.code, given.executable) == ("no_finish", False)
    assert (garbled.code, garbled.executable) == ("no_finish", False)


EXCEPTIONS = (
    "internalServerException",
    "modelStreamErrorException",
    "modelTimeoutException",
    "serviceUnavailableException",
    "throttlingException",
    "validationException",
)


@pytest.mark.parametrize("name", EXCEPTIONS)
@pytest.mark.parametrize("form", ["wrapped", "lines", "typed"])
def test_exception(name: str, form: str) -> None:
    """An exception in the stream ends it: nothing runs, not even what looks whole."""
    body = {"message": "no more"}
    event = {
        "wrapped": {name: body},
        "lines": {"event": name, "data": body},
        "typed": {"type": name, **body},
    }[form]
    events = [START, *a_call(0, "t", "f", '{"a":1}'), event]
    (call,) = read(*events)

    assert (call.code, call.executable) == ("stream_error", False)
    assert [diagnostic.message for diagnostic in diagnostics(WIRE, events)] == [f"{name}: no more"]


@pytest.mark.parametrize("name", [name for name in EXCEPTIONS if name != "modelTimeoutException"])
async def test_exception_through_boto3(name: str, server: Bedrock) -> None:
    """boto3 raises it; the runner runs nothing and gives the turn."""
    events = [START, *a_call(0, "t", "f", '{"a":1}'), {name: {"message": "no more"}}]
    ran: list[Any] = []

    async with Runner(noting(ran, "f"), on_stream_error="return") as runner:
        turn = await runner.run(server.converse_stream(events), wire=WIRE)

    assert ran == []
    assert [(outcome.status, outcome.call.status.value) for outcome in turn.outcomes] == [("refused", "incomplete")]
    assert server.send_converse(turn.messages()) == turn.messages()


def test_exception_after_stop() -> None:
    """After the stop reason an exception is only reported."""
    events = [START, *a_call(0, "t", "f", '{"a":1}'), stop(), {"throttlingException": {"message": "slow down"}}]
    (call,) = read(*events)

    assert call.executable
    assert codes(*events) == ["error_after_finish"]


def test_gateway_error() -> None:
    """An error object, as gateways write them, ends the stream like an exception."""
    (call,) = read(START, *a_call(0, "t", "f", '{"a":1}'), {"error": {"message": "upstream"}})

    assert (call.code, call.executable) == ("stream_error", False)


async def test_connection_breaks(server: Bedrock) -> None:
    """boto3 ends without an error when the connection breaks; without a stop reason nothing runs."""
    events = [START, *a_call(0, "t", "f", '{"a":1}'), stop()]
    ran: list[Any] = []

    async with Runner(noting(ran, "f"), on_stream_error="return") as runner:
        turn = await runner.run(server.converse_stream(events, missing=1), wire=WIRE)

    assert ran == []
    assert [(call.raw_arguments, call.executable) for call in turn.calls] == [('{"a":1}', False)]


def test_usage() -> None:
    """Token counts are those of the metadata, wherever it stands."""
    metadata = {"metadata": {"usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12}, "metrics": {}}}

    for events in ([START, metadata, stop("end_turn")], [START, stop("end_turn"), metadata]):
        assert feed(WIRE, events).response.usage == {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12}
