"""Calls that a process left behind when it ended: what is known of them, and what may be done about them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from toolrun._core import results
from toolrun._core.flow import restarted_flow
from toolrun._core.outcomes import Interrupted, Succeeded, completed
from toolrun._core.retry import starts
from toolrun._runtime.asking import ask
from toolrun._runtime.packing import read_audit, read_outcome, read_turn
from toolrun.executors._attempt import propagate

if TYPE_CHECKING:
    from toolrun._core.calls import ToolCall, ValidatedCall
    from toolrun._core.outcomes import Outcome
    from toolrun._core.records import JsonObject
    from toolrun._core.registry import ToolRegistry
    from toolrun._core.seams import CallEntry, TurnEntry
    from toolrun._core.steps import Flow
    from toolrun._core.tools import Tool
    from toolrun._runtime.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """A call with an effect that was begun by a process which has ended since, with nothing known of its end.

    Attributes:
        call: The call as the model wrote it.
        tool: The registered name that it ran under.
        arguments: The arguments that it got.
        key: The idempotency key that it was given.
        attempt: Which attempt it was.
        deps: What the caller passed as `deps=`.
    """

    call: ToolCall
    tool: str
    arguments: JsonObject
    key: str
    attempt: int
    deps: object = None


class Happened(NamedTuple):
    """The effect is there, and the call succeeded.

    Args:
        value: What the tool would have returned.
    """

    value: object = None


class NotHappened(NamedTuple):
    """The effect is not there, and will not come: the call is run again."""


Verdict: TypeAlias = Happened | NotHappened | None
"""What a `Verify` may answer; None if it cannot tell."""

Verify: TypeAlias = Callable[[Interruption], "Verdict | Awaitable[Verdict]"]
"""Asks the outside world what became of an interrupted call. Sync ones run in a worker thread."""


class Left(NamedTuple):
    """What a process left of a turn.

    Attributes:
        turn: The turn, with the outcomes that it was kept with.
        outcomes: What is known by now, by position; deferred calls are in here.
        recorded: The positions whose outcome stands in an entry of its own.
        begun: The calls that began, and have no outcome, by position.
    """

    turn: Turn
    outcomes: dict[int, Outcome]
    recorded: frozenset[int]
    begun: dict[int, CallEntry]


def read_left(entry: TurnEntry) -> Left:
    """Read what a journal has of a turn.

    Raises:
        UnknownWire: It came over a wire that is not there.
    """
    turn = read_turn(entry.data)
    outcomes = {outcome.call.position: outcome for outcome in turn.outcomes}
    recorded: set[int] = set()
    begun: dict[int, CallEntry] = {}
    for call in turn.calls:
        known = entry.calls.get(f"{entry.key}:{call.position}")
        if known is None:
            continue
        if known.outcome is not None:
            outcomes[call.position] = read_outcome(known.outcome, call)
            recorded.add(call.position)
        else:
            outcomes.pop(call.position, None)  # it was deferred, and has begun since
            begun[call.position] = known
    return Left(turn, outcomes, frozenset(recorded), begun)


def begun_again(call: ToolCall, entry: CallEntry, registry: ToolRegistry) -> Flow:
    """The flow of a call that began before: with what is recorded of its start."""
    grade, repairs = read_audit(entry.audit)
    return restarted_flow(call, tool=entry.tool, text=entry.arguments, grade=grade, repairs=repairs, registry=registry)


async def decide(
    entry: CallEntry, validated: ValidatedCall, tool: Tool, verify: Verify | None, deps: object
) -> Outcome | None:
    """Decide on a call that was begun by an owner that is gone: its outcome, or None if it may run again."""
    if "once" not in (entry.effect, tool.effect):  # as it was declared then, and as it is now
        limit = starts(entry.effect, tool.retry.attempts if tool.retry else 1)
        return None if entry.attempt < limit else interrupted(entry, validated, code="attempts")
    if verify is None:
        return interrupted(entry, validated)
    try:
        verdict: object = await ask(
            verify,
            Interruption(
                call=validated.call,
                tool=entry.tool,
                arguments=dict(validated.arguments),
                key=entry.key,
                attempt=entry.attempt,
                deps=deps,
            ),
        )
    except BaseException as error:  # noqa: BLE001  # one that fails cannot tell
        propagate(error)
        return interrupted(entry, validated, error=error)
    if isinstance(verdict, NotHappened):
        return None
    if isinstance(verdict, Happened):
        return Succeeded(call=validated.call, value=verdict.value, attempts=entry.attempt, started=True, key=entry.key)
    return interrupted(entry, validated)


def interrupted(
    entry: CallEntry, validated: ValidatedCall, *, code: str = "interrupted", error: BaseException | None = None
) -> Outcome:
    """The outcome of a call of which nobody knows the end."""
    outcome = Interrupted(
        call=validated.call,
        code=code,
        error=error,
        message=results.INTERRUPTED,
        attempts=entry.attempt,
        started=True,
        key=entry.key,
    )
    return completed(outcome, validated)
