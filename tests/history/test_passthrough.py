"""What an agent wants to know of a response beside its calls: the same from every wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from toolrun import (
    CitationAdded,
    Runner,
    StreamFinalizer,
    TextDelta,
    ToolRegistry,
    UsageReported,
)
from toolrun.testing import ScriptedCall, ScriptedResponse
from toolrun.wires import WIRES

if TYPE_CHECKING:
    from toolrun import Turn

Json = dict[str, Any]

CALL = ScriptedCall("add", '{"a": 1}', "call00001")
each_wire = pytest.mark.parametrize("wire", sorted(WIRES))


async def turn_of(wire: str, events: list[Json]) -> Turn:
    registry = ToolRegistry()

    @registry.tool
    def add(a: int) -> int:
        return a

    async with Runner(registry) as runner:
        return await runner.run(events, wire=wire)


NEEDS_REPLY = [
    # calls, finish, needs a reply
    ([CALL], "tool_calls", True),
    ([CALL], "length", True),  # held, and answered with why
    ([CALL], None, True),  # cut, and answered with why
    ([], "stop", False),
    ([], "length", False),
    ([], None, False),
]


FINISHED = ("tool_calls", "stop", "length")
FINISHES = {
    "openai-chat": ("tool_calls", "stop", "length"),
    "mistral": ("tool_calls", "stop", "length"),
    "cohere-v2": ("TOOL_CALL", "COMPLETE", "MAX_TOKENS"),
    "openai-responses": ("completed", "completed", "max_output_tokens"),
    "anthropic-messages": ("tool_use", "end_turn", "max_tokens"),
    "bedrock-invoke": ("tool_use", "end_turn", "max_tokens"),
    "bedrock-converse": ("tool_use", "end_turn", "max_tokens"),
    "gemini": ("STOP", "STOP", "MAX_TOKENS"),
    "ollama": ("stop", "stop", "length"),
}
"""How each wire says it, as a turn passes it on."""


@pytest.mark.parametrize(("calls", "finish", "needs_reply"), NEEDS_REPLY)
@each_wire
async def test_turn(wire: str, calls: list[ScriptedCall], finish: str | None, needs_reply: bool) -> None:
    turn = await turn_of(wire, ScriptedResponse(calls=calls, text="Hello.", finish=finish).events(wire))

    assert turn.text == "Hello."
    assert turn.finish_reason == (FINISHES[wire][FINISHED.index(finish)] if finish else None)
    assert turn.needs_reply is needs_reply
    assert bool(turn.usage) is (finish is not None or wire in ("anthropic-messages", "bedrock-invoke", "gemini"))


@each_wire
def test_counts_are_told_once(wire: str) -> None:
    finalizer = StreamFinalizer(wire)
    events = [event for each in ScriptedResponse(text="Hi.").events(wire) for event in finalizer.feed(each)]
    events += finalizer.close()

    reports = [event.usage for event in events if isinstance(event, UsageReported)]
    assert len(reports) == (2 if wire in ("anthropic-messages", "bedrock-invoke") else 1)  # at the start and at the end
    assert {key: count for report in reports for key, count in report.items()} == finalizer.response.usage
    assert 7 in _numbers(finalizer.response.usage)


def _numbers(value: Any) -> set[Any]:
    return set().union(*map(_numbers, value.values())) if isinstance(value, dict) else {value}


def test_counts_that_grow() -> None:
    finalizer = StreamFinalizer("openai-chat")
    told = []
    for usage in ({"a": 1, "b": None}, {"a": 1}, {"a": 2, "c": {"d": 1}}, {"c": {"d": 1}}, None):
        told += finalizer.feed({"choices": [], "usage": usage})

    assert told == [UsageReported({"a": 1}), UsageReported({"a": 2, "c": {"d": 1}})]
    assert finalizer.response.usage == {"a": 2, "c": {"d": 1}}


# -- pauses, refusals, the provider's own tools -----------------------------------------------

SEARCH: list[Json] = [
    {"type": "message_start", "message": {"id": "msg_1", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {
        "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}},
    {"type": "content_block_stop", "index": 0},
]  # fmt: skip
FOUND: Json = {
    "type": "content_block_start",
    "index": 1,
    "content_block": {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
}


def ends(reason: str) -> list[Json]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]


@pytest.mark.parametrize(
    ("events", "needs_reply", "blocks"),
    [
        ([*SEARCH, *ends("pause_turn")], True, ["server_tool_use"]),
        ([*SEARCH, FOUND, *ends("pause_turn")], True, ["server_tool_use", "web_search_tool_result"]),
        ([*SEARCH, FOUND, *ends("end_turn")], False, ["server_tool_use", "web_search_tool_result"]),
        ([*SEARCH, *ends("max_tokens")], False, []),
        ([*SEARCH, *ends("refusal")], False, []),
    ],
)
async def test_tools_of_the_provider(events: list[Json], needs_reply: bool, blocks: list[str]) -> None:
    """They have no outcome and no result; a paused turn is sent back as it is, and nothing after it."""
    turn = await turn_of("anthropic-messages", events)

    assert turn.needs_reply is needs_reply
    assert turn.outcomes == ()
    assert [[block["type"] for block in message["content"]] for message in turn.messages()] == (
        [blocks] if blocks else []
    )


async def test_a_thought_that_was_cut_is_left_out() -> None:
    """Its signature never came; one of a server that signs nothing stays."""

    def thought(**start: str) -> list[Json]:
        block = {"type": "thinking", "thinking": "", **start}
        delta = {"type": "thinking_delta", "thinking": "Hm"}
        return [
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
        ]

    cut = await turn_of("anthropic-messages", [SEARCH[0], *thought(signature="")])
    unsigned = await turn_of("anthropic-messages", [SEARCH[0], *thought(), *ends("end_turn")])

    assert cut.messages() == []
    assert unsigned.messages() == [{"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"}]}]


async def test_a_call_that_the_response_answers_needs_no_reply() -> None:
    item = {"type": "tool_search_call", "id": "ts_1", "call_id": "c", "execution": "client", "arguments": {}}
    shell = {"type": "shell_call", "id": "sh_1", "call_id": "call_1", "action": {"commands": ["ls"]}}
    output = {"type": "shell_call_output", "id": "sho_1", "call_id": "call_1", "output": []}

    def response(*output: Json) -> list[Json]:
        return [{"type": "response.completed", "response": {"status": "completed", "output": list(output)}}]

    assert (await turn_of("openai-responses", response(item))).needs_reply
    answered = await turn_of("openai-responses", response(shell, output))
    assert [outcome.status for outcome in answered.outcomes] == ["refused"]
    assert not answered.needs_reply


REFUSALS: dict[str, list[Json]] = {
    "openai-chat": [{"choices": [{"index": 0, "delta": {"refusal": "No."}, "finish_reason": "stop"}]}],
    "openai-responses": [
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m", "content": []}},
        {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "No."},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("wire", REFUSALS)
async def test_refusals(wire: str) -> None:
    """Told apart from the answer; nothing is to be replied."""
    finalizer = StreamFinalizer(wire)
    events = [event for each in REFUSALS[wire] for event in finalizer.feed(each)]
    turn = await turn_of(wire, REFUSALS[wire])

    assert [event for event in events if isinstance(event, TextDelta)] == [TextDelta("No.", "refusal")]
    assert (turn.text, turn.needs_reply) == ("", False)


# -- citations --------------------------------------------------------------------------------

SOURCE = {"type": "url_citation", "url": "http://127.0.0.1/", "title": "T"}
MESSAGE = {"type": "message", "id": "m", "role": "assistant", "content": []}
CITATIONS: dict[str, tuple[list[Json], Json]] = {
    "openai-chat": ([{"choices": [{"index": 0, "delta": {"annotations": [SOURCE]}}]}], SOURCE),
    "mistral": (
        [{"choices": [{"index": 0, "delta": {"content": [{"type": "reference", "reference_ids": [1]}]}}]}],
        {"type": "reference", "reference_ids": [1]},
    ),
    "openai-responses": (
        [
            {"type": "response.output_item.added", "output_index": 0, "item": MESSAGE},
            {"type": "response.output_text.annotation.added", "output_index": 0, "item_id": "m", "content_index": 0,
             "annotation_index": 0, "annotation": SOURCE},
            {"type": "response.output_item.done", "output_index": 0, "item": {
                **MESSAGE, "content": [{"type": "output_text", "text": "Hi.", "annotations": [SOURCE]}]}},
        ],
        SOURCE,
    ),
    "anthropic-messages": (
        [
            SEARCH[0],
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": []}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": SOURCE}},
        ],
        SOURCE,
    ),
    "bedrock-converse": (
        [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"citation": {"title": "T"}}}}],
        {"title": "T"},
    ),
    "gemini": (
        [{"candidates": [{"index": 0, "groundingMetadata": {"webSearchQueries": ["x"]}}]}] * 2,
        {"groundingMetadata": {"webSearchQueries": ["x"]}},
    ),
    "cohere-v2": (
        [{"type": "citation-start", "index": 0, "delta": {"message": {"citations": {"start": 0, "text": "T"}}}}],
        {"start": 0, "text": "T"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("wire", CITATIONS)
def test_citations(wire: str) -> None:
    """Each source once, however often the wire says it."""
    events, source = CITATIONS[wire]
    finalizer = StreamFinalizer(wire)
    seen = [event for each in events for event in finalizer.feed(each)] + list(finalizer.close())

    assert [event for event in seen if isinstance(event, CitationAdded)] == [CitationAdded(source)]


def test_citations_of_a_whole_response() -> None:
    finalizer = StreamFinalizer("openai-responses")
    content = [{"type": "output_text", "text": "Hi.", "annotations": [SOURCE, SOURCE]}]
    output = [{**MESSAGE, "content": content}]
    seen = finalizer.feed({"object": "response", "status": "completed", "output": output})

    assert [event.data for event in seen if isinstance(event, CitationAdded)] == [SOURCE, SOURCE]


def test_nothing_is_told_that_nobody_wants() -> None:
    finalizer = StreamFinalizer("openai-chat", deltas=False)

    assert list(finalizer.feed({**CITATIONS["openai-chat"][0][0], "usage": {"a": 1}})) == []


async def test_thoughts_in_a_list_go_back_as_a_list() -> None:
    """As Mistral's models have them, named or behind a gateway that speaks `openai-chat`."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    deltas = [{"content": [thought]}, {"content": [thought]}, {"content": "Hi."}]
    events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    turn = await turn_of("openai-chat", events)
    [message] = turn.messages()

    assert turn.text == "Hi."
    assert message["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "HmHm"}]},
        {"type": "text", "text": "Hi."},
    ]


async def test_pieces_of_reasoning_details_are_one() -> None:
    """By index and type; a signature comes with the last piece, and what has no index stands for itself."""
    pieces = [
        {"type": "reasoning.text", "text": "A", "index": 0, "format": "x"},
        {"type": "reasoning.text", "text": "B", "index": 0, "signature": None},
        {"type": "reasoning.text", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "d", "index": 0},
        {"type": "reasoning.summary", "summary": "S", "index": 1},
        {"type": "reasoning.text", "text": "C"},
        {"type": "reasoning.text", "text": "D"},
    ]
    events = [{"choices": [{"index": 0, "delta": {"reasoning_details": [piece]}}]} for piece in pieces]
    turn = await turn_of("openai-chat", [*events, *ScriptedResponse(calls=[CALL]).events("openai-chat")])

    assert turn.messages()[0]["reasoning_details"] == [
        {"type": "reasoning.text", "text": "AB", "index": 0, "format": "x", "signature": "s"},
        {"type": "reasoning.encrypted", "data": "d", "index": 0},
        {"type": "reasoning.summary", "summary": "S", "index": 1},
        {"type": "reasoning.text", "text": "C"},
        {"type": "reasoning.text", "text": "D"},
    ]


async def test_nulls_of_an_sdks_object_stay_if_they_were_sent() -> None:
    """What the provider sent as null goes back as null; what the SDK has as a default does not."""
    from anthropic.types import RawContentBlockStartEvent

    found = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e", "page_age": None}
    block = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]}
    event = RawContentBlockStartEvent.model_validate(
        {"type": "content_block_start", "index": 1, "content_block": block}
    )
    turn = await turn_of("anthropic-messages", [*SEARCH, event, *ends("end_turn")])  # type: ignore[list-item]

    assert turn.messages()[0]["content"][1] == block
