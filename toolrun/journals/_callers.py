"""Waking tasks of any event loop from any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

import anyio
from anyio.lowlevel import current_token

Soon: TypeAlias = Callable[[Callable[[], object]], object]
"""Has something called in an event loop, from another thread."""


def soon_here() -> Soon:
    """How another thread has something called in the event loop that runs here."""
    native: Any = current_token().native_token
    soon: Soon = getattr(native, "call_soon_threadsafe", None) or native.run_sync_soon
    return soon


class Waiter:
    """One task that waits. Make it in that task."""

    __slots__ = ("_event", "soon")

    def __init__(self) -> None:
        """Note which loop it runs in."""
        self._event = anyio.Event()
        self.soon = soon_here()

    async def wait(self) -> None:
        """Wait to be woken."""
        await self._event.wait()

    def set(self) -> None:
        """Wake it; in its own loop."""
        self._event.set()


def wake(waiters: Iterable[Waiter]) -> None:
    """Wake tasks; a loop is asked once for all of its tasks. One that has ended has nobody left to wake."""
    loops: dict[Soon, list[Waiter]] = {}
    for waiter in waiters:
        loops.setdefault(waiter.soon, []).append(waiter)
    for soon, mine in loops.items():

        def wake_all(mine: list[Waiter] = mine) -> None:
            for waiter in mine:
                waiter.set()

        with suppress(RuntimeError):
            soon(wake_all)
