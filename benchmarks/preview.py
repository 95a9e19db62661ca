"""What it costs to show arguments while they grow: a fresh view after every delta, and none at all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from benchmarks import streams
from benchmarks.harness import Effort, Measured, Row, exponent, ratio, repeated, seconds
from toolrun import StreamFinalizer
from toolrun._core.preview_parser import PreviewParser

_SIZES = (1_000, 10_000, 100_000)


@cache
def _pieces(size: int) -> list[str]:
    return streams.pieces(streams.arguments(size))


@cache
def _events(size: int) -> list[streams.Event]:
    return streams.chat([_pieces(size)])


def viewed(pieces: Sequence[str], *, changes: bool = False) -> object:
    """A view after every piece."""
    parser = PreviewParser(changes=changes)
    feed, snapshot, take = parser.feed, parser.snapshot, parser.take_changes
    view = snapshot()
    for piece in pieces:
        feed(piece)
        view = snapshot()
        if changes:
            take()
    return view


def assembled(events: Sequence[streams.Event], *, ready: bool) -> object:
    """A whole stream; `ready` asks for one view, at the first delta."""
    finalizer = StreamFinalizer("openai-chat", deltas=False)
    for place, event in enumerate(events):
        finalizer.feed(event)
        if ready and place == 2:  # noqa: PLR2004  # the call has begun
            finalizer.preview(0)
    return finalizer.close()


def per_delta(effort: Effort, *, size: int, changes: bool = False) -> Measured:
    """Microseconds a delta."""
    pieces = _pieces(size)
    taken = seconds(repeated(partial(viewed, pieces, changes=changes)), effort)
    return Measured(taken / len(pieces) * 1e6, f"{len(pieces)} deltas")


def growth(effort: Effort) -> Measured:
    """How the time for a view after every delta grows with the size."""
    return exponent({size: repeated(partial(viewed, _pieces(size))) for size in _SIZES}, effort)


def unread(effort: Effort) -> Measured:
    """A stream of which one view was read early, against one that nobody looked at."""
    events = _events(100_000)
    ours = repeated(partial(assembled, events, ready=True))
    return ratio(ours, repeated(partial(assembled, events, ready=False)), effort, per=len(events))


ROWS = (
    Row("preview-1k", "a view after every delta, 1 KB", "µs", 2.0, partial(per_delta, size=1_000)),
    Row("preview-100k", "a view after every delta, 100 KB", "µs", 2.0, partial(per_delta, size=100_000)),
    Row(
        "preview-changes",
        "the same with its changes, 100 KB",
        "µs",
        3.0,
        partial(per_delta, size=100_000, changes=True),
    ),
    Row("preview-growth", "growth of that, 1 to 100 KB", "exponent", 1.2, growth),
    Row("preview-unread", "views that nobody asks for, 100 KB", "x", 1.05, unread),
)
