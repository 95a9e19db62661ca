"""Assertions about what became of calls, with texts that say what happened instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, TypeAlias

from toolrun._core.exceptions import TurnPending
from toolrun._runtime.turn import Turn
from toolrun._testing.answers import unanswered
from toolrun._testing.runs import RecordedRun

if TYPE_CHECKING:
    from toolrun._core.outcomes import Outcome, OutcomeStatus
    from toolrun._core.records import Grade

Runs: TypeAlias = "Turn | Sequence[RecordedRun]"
"""What says what ran: a turn, or the list of `record_runs`, which is an account of its own."""

_SHOWN = 400
"""How much of a text is shown, in characters."""


def assert_outcome(
    turn: Turn,
    call: str | int,
    *,
    status: OutcomeStatus | EllipsisType = ...,
    value: object = ...,
    arguments: dict[str, object] | EllipsisType | None = ...,
    code: str | EllipsisType | None = ...,
    grade: Grade | str | EllipsisType | None = ...,
    tool: str | EllipsisType | None = ...,
    attempts: int | EllipsisType = ...,
) -> Outcome:
    """See to it that one call of a turn came to what it should have.

    Args:
        turn: What a runner gave.
        call: The id of the call, or its place among the outcomes, from 0.
        status: Its status, if that is asked for; so with everything below.
        value: What the tool returned.
        arguments: What the tool got.
        code: Why it did not run or failed.
        grade: How the arguments relate to what the model wrote.
        tool: The tool that it ran as.
        attempts: How often the tool was started.

    Returns:
        The outcome.

    Raises:
        AssertionError: There is no such call, or it came to something else; the text says what, and why.

    Examples:
        >>> from toolrun import Runner, ToolRegistry
        >>> from toolrun.testing import ScriptedCall, ScriptedResponse, assert_outcome
        >>> registry = ToolRegistry()
        >>> @registry.tool
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> response = ScriptedResponse(calls=[ScriptedCall("add", '{"a": 1, "b": ', id="call_1")])
        >>> with Runner(registry) as runner:
        ...     turn = runner.run_sync(response.events("openai-chat"))
        >>> assert_outcome(turn, "call_1", status="succeeded", value=3)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: call_1 (add): expected status 'succeeded', got 'refused'
        call_1 (add): expected value 3, got None
          code: truncated
        ...
    """
    __tracebackhide__ = True
    outcome = _find(turn, call)
    wanted = {
        "status": status,
        "value": value,
        "arguments": arguments,
        "code": code,
        "grade": grade,
        "tool": tool,
        "attempts": attempts,
    }
    other = {name: want for name, want in wanted.items() if want is not ... and getattr(outcome, name) != want}
    if other:
        lines = [
            f"{_called(outcome)}: expected {name} {want!r}, got {_short(_shown(getattr(outcome, name)))}"
            for name, want in other.items()
        ]
        raise AssertionError("\n".join([*lines, *_account(outcome)]))
    return outcome


def assert_ran_once(runs: Runs, tool: str, **arguments: object) -> None:
    """See to it that a tool ran exactly once.

    Args:
        runs: A turn, or what `record_runs` recorded; a retry is a run of its own.
        tool: The tool's name.
        **arguments: What it must have been called with; others are not looked at.

    Raises:
        AssertionError: It never ran, ran several times, or with something else.
    """
    __tracebackhide__ = True
    found = _runs(runs)
    same = [run for run in found if run.tool == tool]
    if len(same) != 1:
        raise AssertionError(f"{tool} {_times(len(same))}; {_listed(found)}")
    other = {name: want for name, want in arguments.items() if same[0].arguments.get(name, ...) != want}
    if other:
        raise AssertionError(f"{tool} ran, but not with {other!r}; {_listed(found)}")


def assert_nothing_ran(runs: Runs) -> None:
    """See to it that no tool ran.

    Args:
        runs: A turn, or what `record_runs` recorded.

    Raises:
        AssertionError: Something ran; the text says what.
    """
    __tracebackhide__ = True
    if found := _runs(runs):
        raise AssertionError(f"nothing should have run; {_listed(found)}")


def assert_answered(messages: Turn | Iterable[object], wire: str | None = None) -> None:
    """See to it that messages can be sent: each call in them has exactly one result, where it belongs.

    Args:
        messages: A turn, whose calls must be in its own messages; or messages that you hold.
        wire: The name of the built-in wire that they are written for; of a turn, its own if None.

    Raises:
        AssertionError: A provider would refuse them; the text says for what.
        UnknownWire: It is none of the built-in wires.

    Examples:
        >>> from toolrun.testing import assert_answered
        >>> call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
        >>> assert_answered([{"role": "assistant", "tool_calls": [call]}], "openai-chat")
        Traceback (most recent call last):
        AssertionError: these messages would be refused:
        - message 0: add has no result (missing_result, call_1)
    """
    __tracebackhide__ = True
    asked: list[str | None] = []
    if isinstance(messages, Turn):
        turn = messages
        wire = wire or (turn.wire.name if turn.wire else "")
        asked = [None if outcome.call.synthetic_id else outcome.call.id for outcome in turn.outcomes]
        try:
            messages = turn.messages()
        except TurnPending as error:
            raise AssertionError(f"the turn waits: {error}") from error
    sent = list(messages)
    if faults := unanswered(sent, wire or "", asked):
        raise AssertionError("\n".join(["these messages would be refused:", *faults]))


# -- what is found --------------------------------------------------------------------------


def _find(turn: Turn, call: str | int) -> Outcome:
    __tracebackhide__ = True
    for place, outcome in enumerate(turn.outcomes):
        if call in (place, outcome.call.id):
            return outcome
    known = "\n".join(f"  {outcome.call.id} ({outcome.call.name}): {outcome.status}" for outcome in turn.outcomes)
    raise AssertionError(f"the turn has no call {call!r}; " + (f"it has\n{known}" if known else "it has none"))


def _runs(runs: Runs) -> Sequence[RecordedRun]:
    if not isinstance(runs, Turn):
        return runs
    return [
        RecordedRun(outcome.tool or outcome.call.name or "", outcome.arguments or {})
        for outcome in runs.outcomes
        for _ in range(outcome.attempts)
    ]


# -- what is said ---------------------------------------------------------------------------


def _called(outcome: Outcome) -> str:
    return f"{outcome.call.id} ({outcome.call.name or 'without a name'})"


def _account(outcome: Outcome) -> list[str]:
    """What a developer looks for first: why, what the model wrote, what became of it."""
    error = f"{type(outcome.error).__name__}: {outcome.error}" if outcome.error else None
    repairs = [f"{record.hook}: {record.refusal or record.grade}" for record in outcome.repairs]
    told = {
        "code": outcome.code,
        "error": error,
        "the model wrote": repr(outcome.call.raw_arguments),
        "the tool got": None if outcome.arguments is None else repr(outcome.arguments),
        "repairs": "; ".join(repairs) or None,
        "the model is told": outcome.message or None,
    }
    return [f"  {label}: {_short(text)}" for label, text in told.items() if text is not None]


def _shown(value: object) -> str:
    """A status and a grade are words, and read better as such."""
    return repr(str(value)) if isinstance(value, str) else repr(value)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _times(number: int) -> str:
    return {0: "did not run", 2: "ran twice, not once"}.get(number, f"ran {number} times, not once")


def _listed(runs: Sequence[RecordedRun]) -> str:
    if not runs:
        return "nothing ran"
    return "\n".join(["what ran:", *(f"  {run.tool}({_short(_keywords(run.arguments))})" for run in runs)])


def _keywords(arguments: dict[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
