"""Calls that are finalized on proof, before the end of the stream."""

from __future__ import annotations

from typing import Any

import pytest

from toolrun import CallDelta, CallFinalized, CallStarted, Diagnostic, StreamFinalizer

from .events import MESSAGE_STOP, block_start, block_stop, input_delta, message_delta, message_start, tool_block

Json = dict[str, Any]


def always(name: str) -> bool:
    """Every tool may start early."""
    return True


def added(index: int, call_id: str) -> Json:
    """A Responses call begins."""
    item = {"type": "function_call", "id": f"fc_{index}", "call_id": call_id, "name": "f", "arguments": ""}
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def grows(index: int, text: str) -> Json:
    """A piece of its arguments."""
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": text}


def done(index: int, call_id: str, text: str, status: str | None = "completed") -> Json:
    """Its own end."""
    item = {"type": "function_call", "id": f"fc_{index}", "call_id": call_id, "name": "f", "arguments": text}
    return {"type": "response.output_item.done", "output_index": index, "item": {**item, "status": status}}


def finalized(events: list[Any]) -> list[tuple[str, str]]:
    """Id and arguments of the calls that were finalized."""
    return [(event.call.id, event.call.raw_arguments) for event in events if isinstance(event, CallFinalized)]


def feed(finalizer: StreamFinalizer, *events: Json) -> list[Any]:
    """Everything that comes of some events."""
    return [told for event in events for told in finalizer.feed(event)]


def test_a_responses_item_that_is_done_is_proof() -> None:
    """It stays ok although the stream breaks, and a sibling that was not done is cut."""
    finalizer = StreamFinalizer("openai-responses", eager=always)
    assert finalized(feed(finalizer, added(0, "a"), grows(0, '{"x": 1}'))) == []
    assert finalized(feed(finalizer, done(0, "a", '{"x": 1}'))) == [("a", '{"x": 1}')]
    feed(finalizer, added(1, "b"), grows(1, '{"x": 2}'))
    assert finalized(list(finalizer.close("error"))) == [("b", '{"x": 2}')]
    assert [(call.status.value, call.executable) for call in finalizer.calls] == [("ok", True), ("incomplete", False)]


def test_an_anthropic_block_is_proven_by_the_next_one_and_not_by_its_own_stop() -> None:
    """A call that was cut stops too."""
    finalizer = StreamFinalizer("anthropic-messages", eager=always)
    assert finalized(feed(finalizer, message_start(), *tool_block(0, "a", "f", '{"x": ', "1}"))) == []
    assert finalized(feed(finalizer, block_start(1, "text", text=""))) == [("a", '{"x": 1}')]
    assert finalized(list(finalizer.close("error"))) == []
    assert [call.executable for call in finalizer.calls] == [True]


@pytest.mark.parametrize(("reason", "early"), [("tool_use", True), ("end_turn", True), ("max_tokens", False)])
def test_an_anthropic_block_is_proven_by_a_stop_reason_that_says_whole(reason: str, *, early: bool) -> None:
    """One that cuts proves nothing."""
    finalizer = StreamFinalizer("anthropic-messages", eager=always)
    feed(finalizer, message_start(), *tool_block(0, "a", "f", '{"x": 1}'))
    assert bool(finalized(feed(finalizer, message_delta(reason)))) is early
    feed(finalizer, MESSAGE_STOP)
    finalizer.close()
    assert [call.executable for call in finalizer.calls] == [early]


def test_the_placeholder_of_a_block_without_deltas_is_proven_with_it() -> None:
    """Listeners get it as a delta, once."""
    finalizer = StreamFinalizer("anthropic-messages", eager=always)
    start = {"type": "content_block_start", "index": 0}
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
    events = feed(finalizer, message_start(), {**start, "content_block": block}, block_stop(0), block_start(1, "text"))
    assert [type(event) for event in events] == [CallStarted, CallDelta, CallFinalized]
    assert list(finalizer.close()) == []


@pytest.mark.parametrize(
    "text",
    ["", "  ", '{"x": ', '{"x": 1,}', "[1]", '{"x": 1, "x": 2}'],
    ids=["blank", "white", "cut", "malformed", "array", "duplicate"],
)
def test_what_is_not_plainly_an_object_waits_for_the_end(text: str) -> None:
    """Only the finish tells a cut call from a malformed one, and nothing to fill in from nothing said."""
    finalizer = StreamFinalizer("openai-responses", eager=always)
    assert finalized(feed(finalizer, added(0, "a"), grows(0, text), done(0, "a", text))) == []
    assert len(finalized(list(finalizer.close()))) == 1


def test_an_item_that_is_done_but_incomplete_is_no_proof() -> None:
    """The provider says itself that it was cut."""
    finalizer = StreamFinalizer("openai-responses", eager=always)
    assert finalized(feed(finalizer, added(0, "a"), done(0, "a", '{"x": 1}', "incomplete"))) == []


def test_a_call_is_asked_for_by_its_name() -> None:
    """Other tools wait."""
    asked: list[str] = []

    def only(name: str) -> bool:
        asked.append(name)
        return False

    finalizer = StreamFinalizer("openai-responses", eager=only)
    assert finalized(feed(finalizer, added(0, "a"), done(0, "a", '{"x": 1}'))) == []
    assert asked == ["f"]


def test_a_lost_event_ends_all_proofs() -> None:
    """A piece of any call may be missing."""
    finalizer = StreamFinalizer("openai-responses", eager=always)
    feed(finalizer, added(0, "a"))
    finalizer.feed(b'data: {"type": "response.function_call_arguments.delta", "delta\n\n')
    finalizer.feed(b": keep-alive\n\n")
    assert finalized(feed(finalizer, done(0, "a", '{"x": 1}'))) == []


def test_the_final_copies_that_repeat_a_proven_call_change_nothing() -> None:
    """The response at the end has every item again."""
    finalizer = StreamFinalizer("openai-responses", eager=always)
    last = done(0, "a", '{"x": 1}')
    feed(finalizer, added(0, "a"), grows(0, '{"x": 1}'), last)
    response = {"id": "r", "status": "completed", "output": [last["item"]]}
    assert feed(finalizer, last, {"type": "response.completed", "response": response}) == []
    assert list(finalizer.close()) == []
    assert [call.raw_arguments for call in finalizer.calls] == ['{"x": 1}']


def test_text_after_the_proof_is_dropped_and_told() -> None:
    """The call may run already; what it was finalized with stays."""
    finalizer = StreamFinalizer("anthropic-messages", eager=always)
    feed(finalizer, message_start(), *tool_block(0, "a", "f", '{"x": 1}'), block_start(1, "text", text=""))
    [odd] = feed(finalizer, input_delta(0, '{"x": 2}'))
    assert isinstance(odd, Diagnostic)
    assert (odd.code, odd.position) == ("late_arguments", 0)
    finalizer.close()
    assert [call.raw_arguments for call in finalizer.calls] == ['{"x": 1}']


def test_without_asking_every_call_waits_for_the_end() -> None:
    """The default."""
    finalizer = StreamFinalizer("openai-responses")
    assert finalized(feed(finalizer, added(0, "a"), done(0, "a", '{"x": 1}'))) == []
    assert len(finalized(list(finalizer.close("normal")))) == 1


@pytest.mark.parametrize("texts", [('{"x": 2}',), ('{"x":', " 2}"), ('{"x":', " 1}")])
def test_another_call_with_the_id_of_a_proven_one_has_its_own_outcome_and_never_runs(texts: tuple[str, ...]) -> None:
    """Nothing tells which of the two the id means."""
    finalizer = StreamFinalizer("anthropic-messages", eager=always)
    first, again = tool_block(0, "a", "f", '{"x": 1}'), tool_block(1, "a", "f", *texts)
    feed(finalizer, message_start(), *first, *again, message_delta("tool_use"), MESSAGE_STOP)
    finalizer.close()
    one, other = finalizer.calls
    assert (one.id, one.raw_arguments, one.executable) == ("a", '{"x": 1}', True)
    assert (other.code, other.raw_arguments, other.executable) == ("identity_conflict", "".join(texts), False)
    assert other.id != "a"


def test_a_proven_call_that_is_sent_again_is_one_call() -> None:
    """An identical resend of complete arguments is dropped, as ever."""
    finalizer = StreamFinalizer("anthropic-messages", eager=always)
    first, again = tool_block(0, "a", "f", '{"x": 1}'), tool_block(1, "a", "f", '{"x": 1}')
    feed(finalizer, message_start(), *first, *again, message_delta("tool_use"), MESSAGE_STOP)
    finalizer.close()
    assert [(call.id, call.executable) for call in finalizer.calls] == [("a", True)]
