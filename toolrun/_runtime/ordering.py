"""Order within a turn: calls that must not run beside each other run in call order."""

from __future__ import annotations

import copy
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

import anyio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun._core.calls import ToolCall, ValidatedCall
    from toolrun._core.registry import ToolRegistry
    from toolrun._core.tools import Tool


class _Claim(Enum):
    PLAIN = auto()
    """Only barriers mind it."""
    BARRIER = auto()
    """Nothing runs beside it."""
    UNDECIDED = auto()
    """It will have a key, once its arguments are known."""


_Claimed: TypeAlias = _Claim | tuple[object]
"""What a call keeps from others as long as it has not ended: a key alone, in a tuple, or one of these."""


class Ordering:
    """The claims of the calls of a turn that have not ended, by position.

    A call waits only for earlier ones, and those have begun before it: nobody waits for ever.
    """

    def __init__(self, calls: Sequence[ToolCall], registry: ToolRegistry) -> None:
        self._claims: dict[int, _Claimed] = {}
        self._changed = anyio.Event()
        for call in calls:
            self._claims[call.position] = _claim_of(registry.find(call.name_readings or (call.name or "",)))

    def doubt(self, position: int) -> None:
        """Let later calls wait: a hook is asked what this one means, and may make it a call of any tool."""
        self._claims[position] = _Claim.BARRIER

    def claim(self, validated: ValidatedCall, tool: Tool) -> _Claimed:
        """Keep from others what a call needs that is fit.

        Raises:
            Exception: What the tool's `conflict_key` raises.
        """
        mine = self._claims[validated.call.position] = _claim_of(tool, validated)
        self._tell()
        return mine

    async def wait(self, validated: ValidatedCall, tool: Tool) -> None:
        """Wait until no earlier call is in the way.

        Raises:
            Exception: What the tool's `conflict_key` raises.
        """
        position, mine = validated.call.position, self.claim(validated, tool)
        while any(place < position and _exclude(mine, other) for place, other in self._claims.items()):
            await self._changed.wait()

    def end(self, position: int) -> None:
        """Give up what a call had claimed."""
        self._claims.pop(position, None)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _claim_of(tool: Tool | None, validated: ValidatedCall | None = None) -> _Claimed:
    if tool is None or not (tool.barrier or tool.conflict_key is not None):
        return _Claim.PLAIN
    if tool.barrier:
        return _Claim.BARRIER
    if not callable(tool.conflict_key):
        return (tool.conflict_key,)
    # A copy: what the function does to it changes neither the call nor its record.
    return _Claim.UNDECIDED if validated is None else (tool.conflict_key(copy.deepcopy(validated.arguments)),)


def _exclude(mine: _Claimed, other: _Claimed) -> bool:
    if _Claim.BARRIER in (mine, other):
        return True
    if _Claim.PLAIN in (mine, other):
        return False
    try:
        return other is _Claim.UNDECIDED or bool(mine == other)
    except Exception:  # noqa: BLE001  # keys that cannot be told apart, which costs neither call more than a wait
        return True
