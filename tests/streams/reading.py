"""What tests ask of finalized calls, in a few words each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolrun import (
    ArgumentsReplaced,
    CallDelta,
    CallFinalized,
    CallStarted,
    Diagnostic,
    StreamFinalizer,
    finalize,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolrun import ToolCall

ANY = object()
"""An id that the library made."""


def calls_of(events: object, **options: Any) -> list[tuple[object, str | None, str]]:
    """Id, name and raw text of each call; `ANY` for a synthetic id."""
    calls = finalize(events, **options)
    assert len({call.id for call in calls if call.choice == 0}) == len([call for call in calls if call.choice == 0])
    return [(ANY if call.synthetic_id else call.id, call.name, call.raw_arguments) for call in calls]


def runs(events: object, **options: Any) -> list[tuple[str | None, object]]:
    """Name and arguments (or text) of each call that may run."""
    calls = finalize(events, **options)
    return [(call.name, call.text if call.kind == "custom" else call.arguments) for call in calls if call.executable]


def verdicts(events: object, **options: Any) -> list[tuple[str, str | None]]:
    """Status and code of each call."""
    return [(call.status.value, call.code) for call in finalize(events, **options)]


def diagnostics(events: Iterable[object], wire: str) -> list[str]:
    finalizer = StreamFinalizer(wire)
    told = [item for event in events for item in finalizer.feed(event)]
    told += finalizer.close()
    return [item.code for item in told if isinstance(item, Diagnostic)]


def assert_lifecycle(told: Sequence[Any], calls: Sequence[ToolCall]) -> None:
    """Hold that each call has one start, deltas that make its raw text, and one end; starts and ends in call order."""
    assert [item.position for item in told if isinstance(item, CallStarted)] == list(range(len(calls)))
    assert [item.call for item in told if isinstance(item, CallFinalized)] == list(calls)
    for call in calls:
        mine = [
            item
            for item in told
            if isinstance(item, CallStarted | CallDelta | ArgumentsReplaced | CallFinalized)
            and item.position == call.position
        ]
        assert isinstance(mine[0], CallStarted)
        assert isinstance(mine[-1], CallFinalized)
        assert all(isinstance(item, CallDelta | ArgumentsReplaced) for item in mine[1:-1])
        replaced = [item.after for item in mine if isinstance(item, ArgumentsReplaced)]
        deltas = "".join(item.text for item in mine if isinstance(item, CallDelta))
        assert call.raw_arguments == (replaced[-1] if replaced else joined(deltas))


def joined(text: str) -> str:
    """Halves of surrogate pairs put together, as they are in the arguments."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
