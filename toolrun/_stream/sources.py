"""What a source is, and how it is closed."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Iterable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class SourceKind(Enum):
    """How a source is read."""

    WHOLE = auto()
    """One response or one raw text: fed once."""
    MEMORY = auto()
    """A list or tuple of events: nothing to wait for."""
    SYNC = auto()
    """An iterator that may block."""
    ASYNC = auto()
    """An asynchronous iterator."""


def kind_of(source: object) -> SourceKind:
    """Tell how to read a source.

    Pydantic models are iterable, over their fields: an SDK's whole response is one, so it is
    asked for first.

    Raises:
        TypeError: It is none of these; the message says what to pass.
    """
    if isinstance(source, AsyncIterable):
        return SourceKind.ASYNC
    if isinstance(source, Mapping | str | bytes | bytearray | memoryview) or hasattr(source, "model_fields_set"):
        return SourceKind.WHOLE
    if isinstance(source, list | tuple):
        return SourceKind.MEMORY
    if isinstance(source, Iterable):
        return SourceKind.SYNC
    hint = "; await it first" if inspect.isawaitable(source) else ""
    raise TypeError(
        f"a stream (iterator or async iterator of events, bytes or text) or a whole response is needed,"
        f" not {type(source).__name__}{hint}"
    )


def closer_of(source: object) -> Callable[[], Awaitable[object] | object] | None:
    """The source's own way to be closed, asynchronous first; None if it has none."""
    for name in ("aclose", "close"):
        method = getattr(source, name, None)
        if callable(method):
            return cast("Callable[[], Awaitable[object] | object]", method)
    return None
