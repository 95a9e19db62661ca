"""What is remembered of a turn while it runs: for each call what happened so far, and its span once it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from toolrun_opentelemetry._words import note_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from toolrun import RepairRecord, ToolRegistry
    from toolrun.abc import Outcome
    from toolrun_opentelemetry._words import Noted


class TracedCall:
    """A call that has no outcome yet.

    Attributes:
        span: None until the call runs.
        attempt_runs: True between the start and the end of an attempt.
        repairs: The answers of repair hooks.
    """

    def __init__(self) -> None:
        self.span: Span | None = None
        self.attempt_runs = False
        self.repairs: list[RepairRecord] = []
        self._notes: list[tuple[Noted, int]] = []
        self._started_at = 0
        self._clock = 0
        self._duration: int | None = None

    def note(self, event: Noted) -> None:
        """Put an event on the span, or keep it until there is one."""
        if self.span is None:
            self._notes.append((event, time.time_ns()))
        elif self.span.is_recording():
            self.span.add_event(*note_of(event))

    def start(self) -> int:
        """The call begins to run: the time of that, in nanoseconds since the epoch."""
        self._started_at, self._clock = time.time_ns(), time.perf_counter_ns()
        return self._started_at

    def stop(self) -> None:
        """The call has run. The clock on the wall may have been set meanwhile; this one was not."""
        self._duration = time.perf_counter_ns() - self._clock

    @property
    def has_stopped(self) -> bool:
        """True once the call has run."""
        return self._duration is not None

    @property
    def seconds(self) -> float:
        """How long it ran."""
        return (self._duration or 0) / 1e9

    @property
    def ended_at(self) -> int:
        """When the span ends, in nanoseconds since the epoch."""
        return self._started_at + (self._duration or 0)

    def open(self, span: Span) -> None:
        """Take the span, and put on it what happened before."""
        self.span = span
        if span.is_recording():
            for event, at in self._notes:
                span.add_event(*note_of(event), timestamp=at)
        self._notes.clear()


class TracedTurn:
    """A turn that has not ended.

    Where a journal joins two runs under one key, the listener is told of both at once, under that key: two calls can
    be open at one position, and come to the same outcome.

    Args:
        registry: The tools of the turn.
    """

    def __init__(self, registry: ToolRegistry) -> None:
        self.registry = registry
        self.runs = 0
        self.known: set[int] = set()
        self._open: dict[int, list[TracedCall]] = {}

    def at(self, position: int) -> TracedCall:
        """The call at a position, the latest if there are several."""
        calls = self._open.setdefault(position, [])
        if not calls:
            calls.append(TracedCall())
        return calls[-1]

    def begin(self, position: int) -> TracedCall:
        """The call at a position that begins to run."""
        call = self.at(position)
        if call.span is not None:
            call = TracedCall()
            self._open[position].append(call)
        return call

    def end(self, position: int) -> TracedCall:
        """The call at a position that has its outcome; the one that has stopped if there are several."""
        self.known.add(position)
        calls = self._open.get(position) or [TracedCall()]
        ended = next((call for call in calls if call.has_stopped), calls[0])
        calls.remove(ended)
        return ended

    def end_the_rest(self) -> None:
        """End the spans of calls of which no outcome was told."""
        for calls in self._open.values():
            for call in calls:
                if call.span is not None:
                    call.span.end()

    def tool_of(self, outcome: Outcome) -> str | None:
        """The registered name that an outcome belongs to, also where the call never got that far; None if there is none."""
        written = outcome.call.name
        name = outcome.tool or (None if written is None else self.registry.resolve_name(written))
        return name if name in self.registry else None
