"""What tests ask of finalized calls, in a few words each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolrun import Diagnostic, StreamFinalizer, finalize

if TYPE_CHECKING:
    from collections.abc import Iterable

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
