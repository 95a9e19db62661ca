"""Progress: what a tool tells before it ends, from whatever thread it runs in."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio.lowlevel

from toolrun._core.events import ProgressReported

if TYPE_CHECKING:
    from toolrun._runtime.attempt import Emit


class Reporter:
    """Tells the listener how far an attempt has come, until the attempt has ended.

    In another process nobody listens: pickled, it does nothing.
    """

    def __init__(self, emit: Emit | None, position: int, tool: str, attempt: int) -> None:
        self._emit = emit
        self._place = (position, tool, attempt)
        self._open = True
        self._thread = threading.get_ident()
        self._loop = anyio.lowlevel.current_token()

    def __call__(self, value: object) -> None:
        """Tell of it; after the end, or of the loop itself, nothing is told."""
        if not self._open or self._emit is None:
            return
        if threading.get_ident() == self._thread:
            self._tell(value)
            return
        import anyio.from_thread  # noqa: PLC0415  # it imports asyncio, which a program on trio may never need

        with suppress(RuntimeError):  # the loop is gone, and who listened with it
            anyio.from_thread.run_sync(self._tell, value, token=self._loop)

    @property
    def closed(self) -> bool:
        """True once the attempt has ended."""
        return not self._open

    def close(self) -> None:
        """What comes from now on is late, and told to nobody."""
        self._open = False

    def __reduce__(self) -> tuple[object, ...]:
        """Leave the loop behind."""
        return _Nobody, ()

    def _tell(self, value: object) -> None:
        if self._open and self._emit is not None:
            self._emit(ProgressReported(*self._place, value))


class _Nobody:
    """Stands in for a reporter where there is nobody to report to."""

    closed = False

    def __call__(self, value: object) -> None:
        """Do nothing."""
