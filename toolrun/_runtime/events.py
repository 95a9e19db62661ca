"""`RunStream`: a run whose events can be followed while it goes on."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Self, TypeAlias

import anyio

from toolrun._core.exceptions import RunnerClosed
from toolrun._core.preview_parser import Previews
from toolrun._runtime.pool import raise_plainest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from toolrun._core.events import Event
    from toolrun._runtime.attempt import Emit
    from toolrun._runtime.session import TurnSession
    from toolrun._runtime.turn import Turn
    from toolrun._stream import EndOfStream


_Streams: TypeAlias = "tuple[MemoryObjectSendStream[Event], MemoryObjectReceiveStream[Event]]"


class RunStream:
    """The events of one run, as an async context manager to iterate over.

    Leaving the block before the end cancels the run and waits for its tools to stop; `turn` stays readable.
    Get one from `Runner.stream`.
    """

    def __init__(
        self,
        make_session: Callable[[Emit], TurnSession],
        source: object,
        end: EndOfStream,
        *,
        previews: bool = False,
    ) -> None:
        """See `Runner.stream`."""
        self._streams: _Streams | None = None
        self._session = make_session(self._emit)
        self._source = source
        self._end: EndOfStream = end
        self._previews = Previews() if previews else None
        self._group: anyio.abc.TaskGroup | None = None
        self._error: Exception | KeyboardInterrupt | None = None
        self._ended = False

    @property
    def turn(self) -> Turn:
        """The turn, as far as it has come; after the last event, or after leaving the block, it is final."""
        return self._session.turn()

    async def __aenter__(self) -> Self:
        """Begin to read the source and to run its calls."""
        if self._group is not None:
            raise RunnerClosed("a run can be entered once; call runner.stream(...) again for another source")
        self._streams = anyio.create_memory_object_stream["Event"](math.inf)
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
            raise_plainest(raised)
        finally:
            self._session.abandon()
            self._close(*self._streams or ())

    def __aiter__(self) -> Self:
        """Iterate over the events; once."""
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event.

        Raises:
            StreamInterrupted: The source raised before its finish; raised after the last event.
        """
        if self._streams is None:
            raise RunnerClosed("enter the run first: async with runner.stream(...) as run")
        try:
            return await self._streams[1].receive()
        except anyio.EndOfStream:
            if self._error is not None:
                error, self._error = self._error, None
                raise error from error.__cause__
            raise StopAsyncIteration from None

    async def _run(self) -> None:
        try:
            await self._session.consume(self._source, end=self._end)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # handed to the one who iterates
            self._error = error
        finally:
            self._ended = True
            self._close(*(self._streams or ())[:1])

    def _emit(self, event: Event) -> None:
        # After the block was left nobody listens; what is told then is told to nobody.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            if self._streams is not None:
                # Here, in the loop, and not where the source is read: a view must not be read while it is written.
                for each in (event,) if self._previews is None else self._previews.follow((event,)):
                    self._streams[0].send_nowait(each)

    @staticmethod
    def _close(*streams: MemoryObjectSendStream[Event] | MemoryObjectReceiveStream[Event]) -> None:
        for stream in streams:
            stream.close()
