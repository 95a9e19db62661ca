"""Whatever became of a call, its messages belong together, say what happened, and are of the SDKs' request types."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import anyio
import pytest

from toolrun import Deferred, FinishPolicy, Outcome, Runner, Succeeded, ToolRegistry, Turn, TurnPending
from toolrun.history import check
from toolrun.testing import ScriptedCall, ScriptedResponse
from toolrun.wires import WIRES

from .recordings import ABSENT, recordings
from .sdk_types import accept

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

each_wire = pytest.mark.parametrize("wire", sorted(WIRES))

CALLS = {
    "succeeded": ScriptedCall("ok", '{"a": 1}', "call00001"),
    "failed": ScriptedCall("fail", "{}", "call00002"),
    "refused parse": ScriptedCall("ok", '{"a": ', "call00003"),
    "refused not an object": ScriptedCall("ok", "[1]", "call00004"),
    "refused schema": ScriptedCall("ok", '{"a": "x", "b": null}', "call00005"),
    "refused unknown": ScriptedCall("no.such tool", "{}", "call00006"),
    "refused nameless": ScriptedCall(None, '{"a": 1}', "call00007"),
    "timed_out": ScriptedCall("slow", "{}", "call00008"),
    "without an id": ScriptedCall("ok", '{"a": 2}', None),
    "blank": ScriptedCall("fail", "", "call00010"),
    "hostile": ScriptedCall("ok", '{"a": "\ud83d"}', "call00011"),
}


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    def ok(a: int) -> list[int]:
        return [a, a]

    @registry.tool
    def fail() -> None:
        raise ValueError("secret")

    @registry.tool(timeout=0.01)
    async def slow() -> None:
        await anyio.sleep_forever()

    return registry


def judge(turn: Turn, wire: str) -> list[Json]:
    """What goes back, after everything that can be held against it."""
    messages = turn.messages()
    assert check(messages, wire) == ()
    accept(wire, messages)
    text = json.dumps(messages)
    assert "secret" not in text
    assert messages == json.loads(text)
    text.encode()
    return messages


@each_wire
async def test_calls_of_a_response(wire: str, registry: ToolRegistry) -> None:
    """All of them side by side; the text beside them, and every id, come back."""
    async with Runner(registry) as runner:
        turn = await runner.run(
            ScriptedResponse(calls=list(CALLS.values()), text="Let me see.").events(wire), wire=wire
        )
    messages = judge(turn, wire)
    written = json.dumps(messages)

    statuses = [outcome.status for outcome in turn.outcomes]
    assert statuses[:2] == ["succeeded", "failed"]
    assert statuses[2:7] == ["refused"] * 5
    assert statuses[7:9] == ["timed_out", "succeeded"]
    assert "Let me see." in written
    assert "invalid_arguments" in written
    assert written.count("Not run: ") >= 5
    if wire == "openai-responses":
        return
    for call in CALLS.values():
        assert call.id is None or written.count(call.id) == 2


@pytest.mark.parametrize("finish", ["length", None, "unheard_of"])
@each_wire
async def test_responses_that_did_not_end_well(wire: str, finish: str | None, registry: ToolRegistry) -> None:
    """Held, cut, or ended for a reason that nobody knows: each call is answered, and none has run."""
    calls = [CALLS["succeeded"], CALLS["refused parse"], CALLS["refused nameless"]]
    async with Runner(registry) as runner:
        turn = await runner.run(ScriptedResponse(calls=calls, finish=finish).events(wire), wire=wire)
    written = json.dumps(judge(turn, wire))

    assert {outcome.status for outcome in turn.outcomes} <= {"not_executed", "refused"}
    assert not any(outcome.started for outcome in turn.outcomes)
    assert written.count("Not run: ") == 3
    # What was not finished is not shown as if it had been.
    assert ("invalid_arguments" in written) is True


@each_wire
async def test_a_stream_that_raises(wire: str, registry: ToolRegistry) -> None:
    def source() -> Iterator[Json]:
        yield from ScriptedResponse(calls=[CALLS["succeeded"]], finish=None).events(wire)
        raise ConnectionError

    async with Runner(registry, on_stream_error="return") as runner:
        turn = await runner.run(source(), wire=wire)
    [outcome] = turn.outcomes

    assert (outcome.status, outcome.code) == ("refused", "stream_error")
    assert "invalid_arguments" in json.dumps(judge(turn, wire))


@pytest.mark.parametrize("kind", get_args(Outcome), ids=lambda kind: kind.status)
@each_wire
async def test_every_outcome(wire: str, kind: Any, registry: ToolRegistry) -> None:
    """Those that this version does not produce, too; one that is still to come is not written."""
    async with Runner(registry) as runner:
        turn = await runner.run(
            ScriptedResponse(calls=[CALLS["succeeded"], CALLS["without an id"]]).events(wire), wire=wire
        )
    given = {"message": f"It was {kind.status}."}
    outcomes = tuple(kind(call=outcome.call, tool="ok", **given) for outcome in turn.outcomes)
    turn = replace(turn, outcomes=outcomes)
    if kind is Deferred:
        with pytest.raises(TurnPending):
            turn.messages()
        assert turn.pending == outcomes
        assert not turn.needs_reply
        return
    messages = judge(turn, wire)

    assert json.dumps(messages).count(f"It was {kind.status}.") == 2
    assert turn.needs_reply
    marked = [mark in json.dumps(messages) for mark in ('"is_error": true', '"status": "error"', '"error":')]
    has_mark = wire in ("anthropic-messages", "bedrock-invoke", "bedrock-converse", "gemini")
    assert any(marked) == (has_mark and kind is not Succeeded)


@each_wire
async def test_held_calls_that_run(wire: str, registry: ToolRegistry) -> None:
    async with Runner(registry, policy=FinishPolicy(run_held={"length"})) as runner:
        turn = await runner.run(ScriptedResponse(calls=[CALLS["succeeded"]], finish="length").events(wire), wire=wire)
    judge(turn, wire)

    assert [outcome.status for outcome in turn.outcomes] == ["succeeded"]


@pytest.mark.parametrize("name", ["ok", "fail"])
async def test_a_name_that_changes(name: str, registry: ToolRegistry) -> None:
    """Two names for one call, which only deltas can have."""
    events = ScriptedResponse(calls=[ScriptedCall("ok", '{"a"', "call00001")], finish=None).events("openai-chat")
    piece = {"index": 0, "function": {"name": f"{name}_too", "arguments": ": 1}"}}
    events.append({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}, "finish_reason": "tool_calls"}]})
    async with Runner(registry) as runner:
        turn = await runner.run(events, wire="openai-chat")
    judge(turn, "openai-chat")

    assert turn.outcomes[0].code == "identity_conflict"


# -- recordings -------------------------------------------------------------------------------

RECORDINGS = recordings()


@pytest.mark.skipif(not RECORDINGS, reason=ABSENT)
@pytest.mark.parametrize("share", [1.0, 0.5], ids=["whole", "cut in the middle"])
@each_wire
async def test_recordings(wire: str, share: float) -> None:
    """Every recorded response goes back, with a result for each of its calls, whole and cut."""
    async with Runner(ToolRegistry()) as runner:
        for recording in (each for each in RECORDINGS if each.wire == wire):
            events = recording.events()
            turn = await runner.run(events[: max(1, int(len(events) * share))], wire=wire)
            messages = turn.messages()
            assert check(messages, wire) == (), recording.id
            accept(wire, messages)
            json.dumps(messages)
