"""Limits: how many calls run at once, and guard rails for loops that do not come to an end."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import anyio
from anyio.lowlevel import RunVar

from toolrun._core import results
from toolrun._core.exceptions import RegistrationError
from toolrun._core.outcomes import NotExecuted, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.outcomes import Outcome
    from toolrun._core.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a runner keeps its calls within, over all its turns. None is no limit.

    `repeats` and `invalid_turns` are counted over the turns of a runner: use one runner a conversation with them.

    Args:
        running: Calls that run at once, in one event loop.
        groups: Calls of the tools of a group that run at once, by the group's name, in one event loop.
        calls: Calls of one response that are run; further ones are not executed, with the code `call_limit`.
        repeats: Turns in a row in which the same call, by name and arguments, is run; from then on it is not
            executed, with the code `repeated`.
        invalid_turns: Turns in a row with unfit calls; the last of them raises `TooManyInvalidTurns`.

    Raises:
        RegistrationError: A number is less than 1.
    """

    running: int | None = None
    groups: Mapping[str, int] = field(default_factory=dict)
    calls: int | None = None
    repeats: int | None = None
    invalid_turns: int | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        numbers = (self.running, self.calls, self.repeats, self.invalid_turns, *self.groups.values())
        if any(number is not None and not number >= 1 for number in numbers):
            raise RegistrationError(f"Limits needs numbers >= 1 or None, not {self!r}")


_GATES: RunVar[WeakKeyDictionary[Gates, dict[object, anyio.Semaphore]]] = RunVar("toolrun gates")


class Gates:
    """Where calls wait for their turn: one gate for all, one a group, one a tool; each event loop has its own."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def of(self, tool: Tool) -> list[anyio.Semaphore]:
        """The gates that a call of this tool has to pass, always in the same order."""
        if tool.max_concurrency is None and tool.group is None and self._limits.running is None:
            return []
        group = None if tool.group is None else self._limits.groups.get(tool.group)
        sizes = (
            (("tool", tool.name), tool.max_concurrency),
            (("group", tool.group), group),
            ("", self._limits.running),
        )
        if not any(size for _, size in sizes):
            return []
        runners = _GATES.get(None)
        if runners is None:
            _GATES.set(runners := WeakKeyDictionary())
        made = runners.setdefault(self, {})
        return [
            made.setdefault(name, anyio.Semaphore(size, fast_acquire=True)) for name, size in sizes if size is not None
        ]


async def passed(stack: AsyncExitStack, gates: Sequence[anyio.Semaphore]) -> None:
    """Wait for a place at every gate; the stack gives them back, on whatever way out."""
    for gate in gates:
        await stack.enter_async_context(gate)


class LoopGuard:
    """What the turns of a runner had in common, as far as it is the sign of a loop that does not come to an end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._seen: dict[tuple[str | None, str], int] = {}
        self._counts: list[int] = []
        self._invalid = 0

    @property
    def is_stuck(self) -> bool:
        """True if the limit of turns with unfit calls is reached."""
        return self._limits.invalid_turns is not None and self._invalid >= self._limits.invalid_turns

    def repetitions(self, calls: Sequence[ToolCall]) -> list[tuple[ToolCall, int]]:
        """Begin a turn: the calls that came before, and in how many turns in a row; only the last one is remembered."""
        before = self._seen
        same = [(call.name, call.raw_arguments) for call in calls]
        self._seen = {key: before.get(key, 0) + 1 for key in same}
        self._counts = [self._seen[key] for key in same]
        return [(call, count) for call, count in zip(calls, self._counts, strict=True) if count > 1] if before else []

    def over_limit(self, calls: Sequence[ToolCall]) -> dict[int, NotExecuted]:
        """The outcomes of the calls of this turn that a limit keeps from being run, by their place."""
        repeats, most = self._limits.repeats, self._limits.calls
        over: dict[int, NotExecuted] = {}
        if repeats is None and most is None:
            return over
        for place, (call, count) in enumerate(zip(calls, self._counts, strict=True)):
            if repeats is not None and count > repeats:
                message = results.over_limit_text("repeated", count)
                over[place] = NotExecuted(call=call, code="repeated", message=message)
            elif most is not None and place >= most:
                message = results.over_limit_text("call_limit", most)
                over[place] = NotExecuted(call=call, code="call_limit", message=message)
        return over

    def end_turn(self, outcomes: Iterable[Outcome]) -> int:
        """How many turns in a row had unfit calls, this one included."""
        self._invalid = self._invalid + 1 if any(isinstance(item, Refused) for item in outcomes) else 0
        return self._invalid
