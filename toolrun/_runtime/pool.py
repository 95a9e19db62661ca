"""A pool of workers that share one queue: a limit costs nothing, and a single call costs no task."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

T = TypeVar("T")


async def run_pool(items: Sequence[T], work: Callable[[T], Awaitable[None]], *, workers: int) -> None:
    """Do the work for every item, at most so many at once; items begin in order.

    Raises:
        BaseException: What `work` raises; the others are cancelled and awaited.
    """
    if len(items) <= 1:
        for item in items:
            await work(item)
        return
    queue = iter(items)
    interrupts: list[KeyboardInterrupt] = []

    async def worker() -> None:
        try:
            for item in queue:
                await work(item)
        except KeyboardInterrupt as interrupt:
            # Raised in a child, it would end the event loop before the siblings are awaited.
            interrupts.append(interrupt)
            group.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as group:
            for _ in range(min(workers, len(items))):
                group.start_soon(worker)
    except BaseExceptionGroup as raised:
        raise_plainest(raised)
    if interrupts:
        raise interrupts[0]


def raise_plainest(raised: BaseExceptionGroup) -> NoReturn:
    """Raise what a task group's error comes down to: Ctrl-C is Ctrl-C, and a group of one is the one.

    Raises:
        BaseException: Always.
    """
    if raised.subgroup(KeyboardInterrupt) is not None:
        raise KeyboardInterrupt from raised
    if len(raised.exceptions) == 1:
        raise raised.exceptions[0] from raised.exceptions[0].__cause__
    raise raised
