"""Bedrock Converse: the provider's own tools, and the history that the next request repeats."""

from __future__ import annotations

import re
from typing import Any

import pytest

from toolrun import Runner, finalize
from toolrun.abc import ToolResult
from toolrun.wires.bedrock_converse import BedrockConverse

from .bedrock import (
    START,
    Bedrock,
    a_call,
    call_start,
    collect,
    delta,
    feed,
    noting,
    piece,
    read,
    results_in,
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


# -- the provider's own tools ---------------------------------------------------------------

SEARCH = [
    call_start(0, "s", "nova_grounding", type="server_tool_use"),
    piece(0, '{"query":"x"}'),
]
FOUND = [
    {
        "contentBlockStart": {
            "contentBlockIndex": 1,
            "start": {"toolResult": {"toolUseId": "s", "type": "nova_grounding_result", "status": "success"}},
        }
    },
    delta(1, toolResult=[{"text": "Rub"}]),
    delta(1, toolResult=[{"text": "y 4"}, {"json": {"n": 4}}]),
]


async def test_provider_executed() -> None:
    """A call that the provider ran never runs here, though a tool has its name, and has no outcome."""
    ran: list[Any] = []

    async with Runner(noting(ran, ["nova_grounding"])) as runner:
        turn = await runner.run([START, *SEARCH, *FOUND, stop("tool_use")], wire=WIRE)

    assert (ran, turn.outcomes, turn.needs_reply) == ([], (), False)
    assert [(call.name, call.provider_executed, call.arguments) for call in turn.calls] == [
        ("nova_grounding", True, {"query": "x"})
    ]
    assert turn.messages() == [
        {
            "role": "assistant",
            "content": [
                {
                    "toolUse": {
                        "toolUseId": "s",
                        "name": "nova_grounding",
                        "input": {"query": "x"},
                        "type": "server_tool_use",
                    }
                },
                {
                    "toolResult": {
                        "toolUseId": "s",
                        "type": "nova_grounding_result",
                        "status": "success",
                        "content": [{"text": "Ruby 4"}, {"json": {"n": 4}}],
                    }
                },
            ],
        }
    ]


def test_provider_call_and_result_go_together() -> None:
    """Of a provider's call and its result, one without the other is not sent back: nobody could answer it."""
    assert said(START, *SEARCH, delta(2, text="Hm."), stop("max_tokens")) == [{"text": "Hm."}]
    assert said(START, *FOUND, delta(2, text="Hm."), stop("max_tokens")) == [{"text": "Hm."}]


def test_unknown_type_is_not_run() -> None:
    """A call of a type that nobody knows is taken for the provider's; `tool_use` is the client's."""
    events = [
        START,
        call_start(0, "a", "f", type="remote_tool_use"),
        call_start(1, "b", "f", type="tool_use"),
        stop(),
    ]
    typed, plain = read(*events)

    assert (typed.provider_executed, typed.executable) == (True, False)
    assert (plain.provider_executed, plain.executable) == (False, True)
    assert said(*events) == [{"toolUse": {"toolUseId": "b", "name": "f", "input": {}}}]


# -- history --------------------------------------------------------------------------------


def test_reasoning_goes_back() -> None:
    """Reasoning goes back with its signature, before the call that it led to."""
    events = [
        START,
        delta(0, reasoningContent={"text": "Let me "}),
        delta(0, reasoningContent={"text": "think."}),
        delta(0, reasoningContent={"signature": "c2ln"}),
        *a_call(1, "t", "f", "{}"),
        stop(),
    ]

    assert said(*events) == [
        {"reasoningContent": {"reasoningText": {"text": "Let me think.", "signature": "c2ln"}}},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}},
    ]
    assert feed(WIRE, events).response.text == ""


@pytest.mark.parametrize(
    ("pieces", "joined"),
    [
        ([b"\x00\x01"], b"\x00\x01"),
        ([b"\x00", b"\x01"], b"\x00\x01"),
        (["AAE="], "AAE="),
        (["not base64"], "not base64"),
        (["AA==", "AQ=="], "AAE="),
    ],
)
def test_redacted_reasoning_goes_back(pieces: list[Any], joined: Any) -> None:
    """Redacted reasoning goes back as it came, bytes as bytes and base64 as base64, also from pieces."""
    events = [START, *(delta(0, reasoningContent={"redactedContent": each}) for each in pieces), stop("end_turn")]

    assert said(*events) == [{"reasoningContent": {"redactedContent": joined}}]


def test_redacted_reasoning_through_boto3(server: Bedrock) -> None:
    """boto3 takes back the bytes that it gave, and sends what it had received."""
    events = [START, delta(0, reasoningContent={"redactedContent": "AAEC"}), stop("end_turn")]
    finalizer = feed(WIRE, collect(server.converse_stream(events)))

    messages = WIRE.assistant_messages(finalizer.response, finalizer.calls)

    assert messages[0]["content"] == [{"reasoningContent": {"redactedContent": b"\x00\x01\x02"}}]
    assert server.send_converse(messages)[0]["content"] == [{"reasoningContent": {"redactedContent": "AAEC"}}]


def test_citations_go_back() -> None:
    """A text with citations goes back as one block; citations may have a block of their own."""
    source = {"title": "Grass", "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 20}}}
    events = [
        START,
        delta(0, text="Grass is "),
        delta(0, citation=source),
        delta(0, text="green."),
        delta(1, text="Yes. "),
        delta(2, citation=source),
        stop("end_turn"),
    ]

    assert said(*events) == [
        {"citationsContent": {"content": [{"text": "Grass is green."}], "citations": [source]}},
        {"text": "Yes. "},
        {"citationsContent": {"citations": [source]}},
    ]
    assert feed(WIRE, events).response.text == "Grass is green.Yes. "


def test_image_goes_back(server: Bedrock) -> None:
    """An image goes back whole; one that never came is left out."""
    start = {"contentBlockStart": {"contentBlockIndex": 0, "start": {"image": {"format": "png"}}}}
    pieces = [delta(0, image={"source": {"bytes": "AAE="}}), delta(0, image={"source": {"bytes": "Ag=="}})]
    events = collect(server.converse_stream([START, start, *pieces, stop("end_turn")]))

    assert said(*events) == [{"image": {"format": "png", "source": {"bytes": b"\x00\x01\x02"}}}]
    assert said(START, start, delta(0, image={"error": {"message": "no"}}), stop("end_turn")) == []


def test_whole_blocks_go_back(server: Bedrock) -> None:
    """The blocks of a whole response go back with the meaning that they came with, and boto3 takes them."""
    content: list[Json] = [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "AAEC"}},
        {"citationsContent": {"content": [{"text": "Green."}], "citations": [{"title": "Grass"}]}},
        {"image": {"format": "png", "source": {"bytes": "AAEC"}}},
        {"toolUse": {"toolUseId": "s", "name": "nova_grounding", "input": {"query": "x"}, "type": "server_tool_use"}},
        {"toolResult": {"toolUseId": "s", "content": [{"text": "found"}], "type": "nova_grounding_result"}},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}}},
        {"brandNew": {"x": 1}},
    ]
    server.serve_whole("whole", whole_response(content, "tool_use"))
    finalizer = feed(WIRE, [server.client.converse(modelId="whole", messages=[])])

    (message,) = server.send_converse(WIRE.assistant_messages(finalizer.response, finalizer.calls))

    assert message == {"role": "assistant", "content": content[:-1]}  # boto3 hides what it does not know
    assert finalizer.response.text == "Green."
    assert finalizer.response.id == "req-1"


def test_blank_texts_stay_out() -> None:
    """The API refuses blank texts: neighbours are joined first, and what is blank then is left out."""
    assert said(START, delta(0, text="A"), delta(1, text=" "), delta(2, text="B"), stop("end_turn")) == [
        {"text": "A B"}
    ]
    assert said(START, delta(0, text="\n\n"), *a_call(1, "t", "f", "{}"), stop()) == [
        {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}
    ]
    assert said(START, delta(0, text=" "), stop("end_turn")) == []


def test_results() -> None:
    """All results are one user message, in call order; errors are marked, and blank texts replaced."""
    calls = read(START, *a_call(0, "a", "f", "{}"), *a_call(1, "b", "f", "{}"), *a_call(2, "c", "f", "{}"), stop())
    texts = [("sunny", False), ("no such city", True), (" \n", False)]

    messages = WIRE.result_messages([ToolResult(call, *text) for call, text in zip(calls, texts, strict=True)])

    assert messages == [
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"text": "sunny"}]}},
                {"toolResult": {"toolUseId": "b", "content": [{"text": "no such city"}], "status": "error"}},
                {"toolResult": {"toolUseId": "c", "content": [{"text": "(no output)"}]}},
            ],
        }
    ]
    assert WIRE.result_messages([]) == []


async def test_every_status_goes_back(server: Bedrock) -> None:
    """Calls that are ok, malformed, cut, nameless or of a strange name go back in a form that boto3 takes."""
    ran: list[Any] = []
    events = [
        START,
        *a_call(0, "a", "f", '{"n": 1.5, "m": null, "l": [true, "x"]}'),
        *a_call(1, "b", "f", '{"n": 1'),
        call_start(2, "c", None),
        piece(2, '{"n": 2}'),
        *a_call(3, "d", "f g.h", "{}"),
        call_start(4, None, "f"),
        piece(4, "{}"),
        stop(),
    ]

    async with Runner(noting(ran, "f"), repairs=(), max_concurrency=1) as runner:
        turn = await runner.run(events, wire=WIRE)
        cut = await runner.run(events[:-1], wire=WIRE)

    assert ran == [("f", {"n": 1.5, "m": None, "l": [True, "x"]}), ("f", {})]
    for each in (turn, cut):
        messages = each.messages()
        assert server.send_converse(messages) == messages
        assert results_in(messages) == [outcome.call.id for outcome in each.outcomes]
    inputs = [block["toolUse"]["input"] for block in turn.messages()[0]["content"]]
    assert inputs == [
        {"n": 1.5, "m": None, "l": [True, "x"]},
        {"invalid_arguments": '{"n": 1'},
        {"n": 2},
        {},
        {},
    ]
    names = [block["toolUse"]["name"] for block in turn.messages()[0]["content"]]
    assert names == ["f", "f", "unnamed_tool", "f_g_h", "f"]


def test_whole_calls_without_ids() -> None:
    """Two equal calls without ids are two calls; their ids are of the form that the API takes."""
    content = [{"toolUse": {"name": "f", "input": {"a": 1}}}] * 2
    first, second = finalize(whole_response(content, "tool_use"), wire=WIRE)

    assert first.arguments == second.arguments == {"a": 1}
    assert first.id != second.id
    for call in (first, second):
        assert call.synthetic_id
        assert re.fullmatch(r"[a-zA-Z0-9_.:-]{1,64}", call.id)
        assert call.id.startswith("tooluse_")
