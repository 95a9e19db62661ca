"""Reading a source to its end, wherever it has to be read, and closing it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import anyio
import anyio.to_thread

from toolrun._stream import SourceKind, kind_of
from toolrun._stream.sources import closer_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun._core.events import Event
    from toolrun._runtime.attempt import Emit

Feed: TypeAlias = Callable[[object], "Sequence[Event]"]

_CLOSE_SECONDS: Final = 5.0


async def read(source: object, feed: Feed, emit: Emit | None, *, close: bool) -> None:
    """Feed everything that a source gives.

    An iterator that may block is read in one worker thread. The source is closed on every way out if
    `close` says so.

    Raises:
        TypeError: It is not a source.
        Exception: What the source raises.
    """
    kind = kind_of(source)
    try:
        match kind:
            case SourceKind.WHOLE:
                _tell(emit, feed(source))
            case SourceKind.MEMORY:
                for event in cast("Iterable[object]", source):
                    _tell(emit, feed(event))
            case SourceKind.ASYNC:
                async for event in cast("AsyncIterable[object]", source):
                    _tell(emit, feed(event))
            case SourceKind.SYNC:
                await anyio.to_thread.run_sync(
                    _pump, cast("Iterable[object]", source), feed, emit, abandon_on_cancel=True
                )
    finally:
        if close and kind in (SourceKind.SYNC, SourceKind.ASYNC):
            await _close(source)


def _pump(source: Iterable[object], feed: Feed, emit: Emit | None) -> None:
    import anyio.from_thread  # noqa: PLC0415  # it imports asyncio, which a program on trio may never need

    for event in source:
        events = feed(event)
        anyio.from_thread.check_cancelled()
        if emit is not None and events:
            anyio.from_thread.run_sync(_tell, emit, events)


def _tell(emit: Emit | None, events: Sequence[Event]) -> None:
    if emit is not None:
        for event in events:
            emit(event)


async def _close(source: object) -> None:
    closer = closer_of(source)
    if closer is None:
        return
    with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
        try:
            if inspect.iscoroutinefunction(closer) or inspect.isasyncgen(source):
                closed = closer()
            else:  # a sync close may wait for the network
                closed = await anyio.to_thread.run_sync(closer, abandon_on_cancel=True)
            if inspect.isawaitable(closed):
                await closed
        except Exception:  # noqa: BLE001, S110  # the source is not needed any more; what it was for is done
            pass
