"""Calls that start before the end of the stream, each in a task of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import anyio

from toolrun._runtime.pool import raise_plainest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from toolrun._core.calls import ToolCall


class EarlyStarts:
    """Runs calls as they come; on leaving the block they are awaited, and cancelled if it is left with an error.

    Args:
        work: Runs a call to its outcome.
        limit: How many calls of the turn run at once, those that start later with `in_slots` among them.
    """

    def __init__(self, work: Callable[[ToolCall], Awaitable[None]], limit: int) -> None:
        self._slots = anyio.Semaphore(limit)
        self._work = self.in_slots(work)
        self._group = anyio.create_task_group()
        self._interrupt: KeyboardInterrupt | None = None
        self.positions: set[int] = set()

    def in_slots(self, work: Callable[[ToolCall], Awaitable[None]]) -> Callable[[ToolCall], Awaitable[None]]:
        """The same work, which waits for its place among those that run at once."""

        async def limited(call: ToolCall) -> None:
            async with self._slots:
                await work(call)

        return limited

    def start(self, call: ToolCall) -> None:
        """Start a call; it begins when the caller next waits."""
        self.positions.add(call.position)
        self._group.start_soon(self._run, call)

    async def _run(self, call: ToolCall) -> None:
        try:
            await self._work(call)
        except KeyboardInterrupt as interrupt:
            # Raised in a child, it would end the event loop before the siblings are awaited.
            self._interrupt = interrupt
            self._group.cancel_scope.cancel()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        try:
            suppressed = await self._group.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as raised:
            raise_plainest(raised)
        if self._interrupt is not None:
            raise self._interrupt
        return suppressed
