"""Finishing: every cell of the table of evidence and argument text, on both wires, and what a policy changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from toolrun import FinishPolicy, StreamFinalizer, finalize

from .events import DONE, MESSAGE_STOP, chat, chunk, input_delta, message_delta, messages, piece, tool_start

if TYPE_CHECKING:
    from collections.abc import Callable

BLANK = "   "
OBJECT = '{"a": 1}'
CUT = '{"a": 1'
BAD = "{a: 1}"
LIST = "[1]"
NULL = "null"

Cell = tuple[str, str | None, bool]

OK: Cell = ("ok", None, True)
INFERRED: Cell = ("ok", "finish_inferred", True)
HELD: Cell = ("ok", "held", False)
TRUNCATED: Cell = ("incomplete", "truncated", False)
BROKEN: Cell = ("incomplete", "broken_finish", False)
STREAM_ERROR: Cell = ("incomplete", "stream_error", False)
NO_FINISH: Cell = ("incomplete", "no_finish", False)


def malformed(code: str) -> Cell:
    return ("parse_error", code, False)


TEXTS = ("", BLANK, OBJECT, CUT, BAD, LIST, NULL)
FINISHED = (OK, OK, OK, malformed("truncated"), malformed("syntax"), malformed("not_object"), malformed("not_object"))
TERMINATED = (INFERRED, INFERRED, INFERRED, *FINISHED[3:])
KEPT_BACK = (TRUNCATED, TRUNCATED, HELD, TRUNCATED, TRUNCATED, TRUNCATED, TRUNCATED)

FINISHED_REASONS = (
    "tool_calls", "tool_call", "tool_use", "stop", "end_turn", "function_call", "stop_sequence", "eos_token", "STOP",
    "Tool-Calls", "tool-calls", " stop ", "COMPLETE", "tool calls",
)  # fmt: skip
HELD_REASONS = (
    "length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "content_filter", "content-filter", "SAFETY", "refusal",
    "model_context_window_exceeded", "other", "who_knows", "42",
)  # fmt: skip
BROKEN_REASONS = (
    "error", "ERROR", "failed", "pause_turn", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "cancelled",
    "network_error",
)  # fmt: skip

ROWS = [
    *((reason, FINISHED) for reason in FINISHED_REASONS),
    *((reason, KEPT_BACK) for reason in HELD_REASONS),
    *((reason, (BROKEN,) * 7) for reason in BROKEN_REASONS),
]
TABLE = [(reason, text, cell) for reason, cells in ROWS for text, cell in zip(TEXTS, cells, strict=True)]


def verdict(events: list[object], *, policy: FinishPolicy | None = None, **options: str) -> Cell:
    """Status, code and whether the one call may run."""
    (call,) = finalize(events, policy=policy, **options)
    return call.status.value, call.code, call.executable


def begun(wire: str, text: str) -> list[object]:
    """One call with this argument text, and no end."""
    if wire == "openai-chat":
        return [*chat(piece(text, index=0, id="c", name="f"), finish=None)]
    return [*messages(tool_start(0, "t", "f"), input_delta(0, text), reason=None)]


def finish(wire: str, reason: str) -> object:
    return chunk(finish=reason) if wire == "openai-chat" else message_delta(reason)


def error(wire: str) -> object:
    return {"error": {"message": "x"}} if wire == "openai-chat" else {"type": "error", "error": {"message": "x"}}


TERMINATOR = {"openai-chat": DONE, "anthropic-messages": MESSAGE_STOP}

wires = pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])


@wires
@pytest.mark.parametrize(("reason", "text", "cell"), TABLE)
def test_finish_reasons(wire: str, reason: str, text: str, cell: Cell) -> None:
    """A finish reason, whoever spells it how, and what it makes of each kind of argument text."""
    events = [*begun(wire, text), finish(wire, reason)]
    assert verdict(events) == cell
    assert verdict([*events, TERMINATOR[wire]]) == cell
    for end in ("normal", "eof", "error"):
        assert verdict(events, end=end) == cell


@wires
@pytest.mark.parametrize(("text", "cell"), list(zip(TEXTS, TERMINATED, strict=True)))
def test_terminator_alone(wire: str, text: str, cell: Cell) -> None:
    """The terminator, or the word of the user, shows that the stream was not cut."""
    events = begun(wire, text)
    assert verdict([*events, TERMINATOR[wire]]) == cell
    assert verdict([*events, TERMINATOR[wire]], end="eof") == cell
    assert verdict(events, end="normal") == cell


@wires
@pytest.mark.parametrize("text", TEXTS)
def test_no_end(wire: str, text: str) -> None:
    """A stream that just ends, raises, or tells an error has finished nothing, whatever the text looks like."""
    events = begun(wire, text)
    assert verdict(events) == NO_FINISH
    assert verdict(events, end="eof") == NO_FINISH
    assert verdict(events, end="error") == STREAM_ERROR
    assert verdict([*events, error(wire)]) == STREAM_ERROR
    assert verdict([*events, error(wire)], end="normal") == STREAM_ERROR
    assert verdict([*events, error(wire), TERMINATOR[wire]]) == STREAM_ERROR


@wires
def test_a_raise_after_the_end(wire: str) -> None:
    """What had finished stays finished if the source raises afterwards."""
    assert verdict([*begun(wire, OBJECT), TERMINATOR[wire]], end="error") == INFERRED
    finalizer = StreamFinalizer(wire)
    for event in [*begun(wire, OBJECT), finish(wire, "stop")]:
        finalizer.feed(event)
    assert [getattr(item, "code", "") for item in finalizer.close("error")] == ["error_after_finish", ""]
    assert finalizer.calls[0].executable


@wires
def test_nothing_began(wire: str) -> None:
    """A stream without calls has none, however it ends."""
    for end in ("auto", "normal", "eof", "error"):
        assert finalize([], wire=wire, end=end) == ()
        assert finalize([finish(wire, "stop"), TERMINATOR[wire]], wire=wire, end=end) == ()


# -- policies -------------------------------------------------------------------------------


@wires
@pytest.mark.parametrize(
    ("family", "reasons"),
    [
        ("length", ["length", "max_tokens", "MAX_TOKENS", "model_context_window_exceeded"]),
        ("content_filter", ["content_filter", "content-filter", "SAFETY"]),
        ("refusal", ["refusal", "REFUSAL"]),
        ("odd", ["odd", "ODD"]),
        ("soft_stop", ["soft_stop", "SOFT_STOP"]),
        ("soft-stop", ["soft-stop", "Soft-Stop"]),
    ],
)
def test_run_held(wire: str, family: str, reasons: list[str]) -> None:
    """`run_held` runs the whole calls of one family of finishes, and nothing that is cut."""
    policy = FinishPolicy(run_held={family})
    for reason in reasons:
        assert verdict([*begun(wire, OBJECT), finish(wire, reason)], policy=policy) == ("ok", "held", True)
        for text in ("", BLANK, CUT, BAD, LIST):
            assert verdict([*begun(wire, text), finish(wire, reason)], policy=policy) == TRUNCATED
    other = FinishPolicy(run_held={"length", "refusal"} - {family} | {"none"})
    for reason in reasons:
        assert verdict([*begun(wire, OBJECT), finish(wire, reason)], policy=other) == HELD


@wires
def test_run_held_is_not_for_the_broken(wire: str) -> None:
    """No policy runs a call of a finish that says that the response is broken."""
    policy = FinishPolicy(run_held={"error", "pause_turn", "length"}, missing_finish="infer")
    for reason in BROKEN_REASONS:
        assert verdict([*begun(wire, OBJECT), finish(wire, reason)], policy=policy) == BROKEN


@wires
@pytest.mark.parametrize(("text", "cell"), list(zip(TEXTS, TERMINATED, strict=True)))
def test_missing_finish(wire: str, text: str, cell: Cell) -> None:
    """`missing_finish="infer"` takes a bare end and an unknown reason for a terminator, and an error for an error."""
    policy = FinishPolicy(missing_finish="infer")
    events = begun(wire, text)
    assert verdict(events, policy=policy) == cell
    assert verdict([*events, finish(wire, "who_knows")], policy=policy) == cell
    assert verdict([*events, TERMINATOR[wire]], policy=policy) == cell
    assert verdict(events, policy=policy, end="error") == STREAM_ERROR
    assert verdict([*events, error(wire)], policy=policy) == STREAM_ERROR


@wires
@pytest.mark.parametrize(("text", "cell"), list(zip(TEXTS, KEPT_BACK, strict=True)))
def test_missing_finish_is_not_for_the_held(wire: str, text: str, cell: Cell) -> None:
    """A finish that is known keeps its meaning."""
    policy = FinishPolicy(missing_finish="infer")
    assert verdict([*begun(wire, text), finish(wire, "length")], policy=policy) == cell


def test_missing_finish_and_a_second_message() -> None:
    """A message that was cut by the next one stays cut."""
    events = [*begun("anthropic-messages", OBJECT), *messages(tool_start(0, "t2", "g"))]
    policy = FinishPolicy(missing_finish="infer")
    assert [call.executable for call in finalize(events, policy=policy)] == [False, True]


def _objects(events: list[Any]) -> list[Any]:
    """The events as the objects of the provider's SDK."""
    from openai._models import construct_type
    from openai.types.chat import ChatCompletionChunk

    return [construct_type(type_=ChatCompletionChunk, value=event) for event in events]


@pytest.mark.parametrize("read", [list, _objects], ids=["dicts", "objects"])
@pytest.mark.parametrize("place", ["chunk", "choice"])
def test_an_error_beside_a_piece_is_not_passed_over(place: str, read: Callable[[list[Any]], list[Any]]) -> None:
    """The call had no finish by then, and none that comes later heals it."""
    broken = chunk(piece('": 1}', index=0))
    (broken if place == "chunk" else broken["choices"][0])["error"] = {"message": "overloaded"}
    events = [chunk(piece('{"a', index=0, id="c", name="f")), broken, chunk(finish="stop")]
    [call] = finalize(read(events), wire="openai-chat")
    assert (call.status.value, call.code, call.executable) == ("incomplete", "stream_error", False)


@pytest.mark.parametrize("read", [list, _objects], ids=["dicts", "objects"])
def test_token_counts_beside_a_piece_are_kept(read: Callable[[list[Any]], list[Any]]) -> None:
    """Some servers count in every chunk."""
    finalizer = StreamFinalizer("openai-chat")
    counted = chunk(piece("}", index=0), usage={"completion_tokens": 7})
    for event in read([chunk(piece("{", index=0, id="c", name="f")), counted, chunk(finish="stop")]):
        finalizer.feed(event)
    assert finalizer.response.usage["completion_tokens"] == 7
