"""`RunStream`: a run whose events can be followed while it goes on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import anyio

from toolrun._core.exceptions import RunnerClosed
from toolrun._runtime.pool import plainest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from toolrun._core.events import Event
    from toolrun._runtime.attempt import Listener
    from toolrun._runtime.session import TurnSession
    from toolrun._runtime.turn import Turn
    from toolrun._stream import EndOfStream


class RunStream:
    """The events of one run, as an async context manager to iterate over.

    Leaving the block before the end cancels the run and waits for its tools to stop; `turn` stays readable.
    Get one from `Runner.stream`.
    """

    def __init__(self, make_session: Callable[[Listener], TurnSession], source: object, end: EndOfStream) -> None:
        """See `Runner.stream`."""
        self._send, self._receive = anyio.create_memory_object_stream["Event"](math.inf)
        self._session = make_session(self._emit)
        self._source = source
        self._end: EndOfStream = end
        self._group: anyio.abc.TaskGroup | None = None
        self._error: Exception | None = None
        self._ended = False

    @property
    def turn(self) -> Turn:
        """The turn, as far as it has come; after the last event, or after leaving the block, it is final."""
        return self._session.turn()

    async def __aenter__(self) -> Self:
        """Begin to read the source and to run its calls."""
        if self._group is not None:
            raise RunnerClosed("a run can be entered once; call runner.stream(...) again for another source")
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._run)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Cancel what still runs and wait for it."""
        if self._group is None:
            return None
        if not self._ended:
            self._group.cancel_scope.cancel()
        try:
            return await self._group.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as raised:
            raise plainest(raised) from raised
        finally:
            self._session.abandon()
            self._send.close()
            self._receive.close()

    def __aiter__(self) -> Self:
        """Iterate over the events; once."""
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event.

        Raises:
            StreamInterrupted: The source raised before its finish; raised after the last event.
        """
        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            if self._error is not None:
                error, self._error = self._error, None
                raise error from error.__cause__
            raise StopAsyncIteration from None

    async def _run(self) -> None:
        try:
            await self._session.consume(self._source, end=self._end)
        except Exception as error:  # noqa: BLE001  # handed to the one who iterates
            self._error = error
        finally:
            self._ended = True
            self._send.close()

    def _emit(self, event: Event) -> None:
        try:
            self._send.send_nowait(event)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # nobody listens any more; the run goes on being cancelled
