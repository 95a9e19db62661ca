"""`OpenTelemetryListener`: one span a call, and metrics of them all."""

from __future__ import annotations

import os
import threading
import traceback
from collections import OrderedDict
from contextlib import AbstractContextManager, ExitStack, nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from opentelemetry.context import Context, attach, detach
from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TracerProvider,
    get_tracer,
    set_span_in_context,
)

from toolrun import AttemptEnded, AttemptStarted, CallCompleted, Event, RepairAnswered, ToolRegistry, ValidatedCall
from toolrun.abc import Listener, Outcome
from toolrun_opentelemetry._metrics import Instruments
from toolrun_opentelemetry._turns import TracedCall, TracedTurn
from toolrun_opentelemetry._words import (
    AGENT,
    ARGUMENTS,
    ATTEMPTS,
    CALL_ID,
    CODE,
    DESCRIPTION,
    ERROR,
    EXECUTE,
    FUNCTION,
    GRADE,
    KEY,
    NAME,
    OPERATION,
    RESULT,
    STATUS,
    TOOL,
    TOOL_TYPE,
    UNKNOWN,
    Attributes,
    Noted,
    class_name,
    error_type,
    exportable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextvars import Token

CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS: Final = ("SPAN_ONLY", "SPAN_AND_EVENT")
_REMEMBERED: Final = 1_024
"""Deferred calls whose span is remembered, so that the span of the resumed call can be linked to it."""


class OpenTelemetryListener(Listener):
    """Give every call a span, and count calls, attempts, repairs and durations.

    The tool runs with the span as the current one, also in a worker thread: what it does nests under it. A call that
    never ran has a span without length, at the time of its outcome. One listener may serve any number of runners and
    event loops. It keeps nothing of a turn that has ended, except the span contexts of the last 1,024 deferred calls.

    Args:
        tracer_provider: Makes the spans; by default the global one, also if it is set later.
        meter_provider: Makes the instruments; by default the global one, also if it is set later.
        content: True records arguments, results, error texts, and names that no tool has. They are the data of others:
            by default none of it is recorded, unless the environment variable
            `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is `SPAN_ONLY` or `SPAN_AND_EVENT` by now.
        agent_name: The value of `gen_ai.agent.name` on spans and durations; None leaves it out.

    Examples:
        >>> from toolrun import Runner, ToolRegistry
        >>> registry = ToolRegistry()
        >>> runner = Runner(registry, listeners=[OpenTelemetryListener()])
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        content: bool | None = None,
        agent_name: str | None = None,
    ) -> None:
        """See the class."""
        release = version("toolrun-opentelemetry")
        self._tracer = get_tracer("toolrun_opentelemetry", release, tracer_provider)
        self._instruments = Instruments(get_meter("toolrun_opentelemetry", release, meter_provider), agent_name)
        self._content = os.environ.get(CAPTURE, "").strip().upper() in _ON_SPANS if content is None else content
        self._constant: Attributes = {OPERATION: EXECUTE, TOOL_TYPE: FUNCTION}
        if agent_name is not None:
            self._constant[AGENT] = agent_name
        self._turns: dict[str, TracedTurn] = {}
        self._deferred: OrderedDict[str, SpanContext] = OrderedDict()
        self._lock = threading.Lock()

    # -- what a runner tells ----------------------------------------------------------------

    def on_begin(self, turn: str, registry: ToolRegistry, outcomes: Sequence[Outcome]) -> None:
        """Remember the turn until it ends."""
        with self._lock:
            traced = self._turns.setdefault(turn, TracedTurn(registry))
            traced.runs += 1
        traced.known.update(outcome.call.position for outcome in outcomes)

    def on_event(self, event: Event, turn: str) -> None:
        """Put an event on its call's span; the outcome ends it."""
        traced = self._turns.get(turn)
        if traced is None:
            return
        if isinstance(event, CallCompleted):
            self._complete(traced, turn, event.outcome)
            return
        if not isinstance(event, Noted):
            return
        call = traced.at(event.position)
        call.note(event)
        if isinstance(event, RepairAnswered):
            call.repairs.append(event.record)
        elif isinstance(event, AttemptStarted):
            call.attempt_runs = True
        elif isinstance(event, AttemptEnded):
            call.attempt_runs = False
            self._instruments.attempted(event.tool, event.status)

    def around(self, call: ValidatedCall, key: str) -> AbstractContextManager[object]:
        """Start the call's span, and make it the current one while the call runs."""
        turn, _, _ = key.rpartition(":")
        traced = self._turns.get(turn)
        if traced is None:
            return nullcontext()
        running = traced.begin(call.call.position)
        attributes = self._attributes(traced.registry, call.tool, call.call.id, key)
        if self._content:
            attributes[ARGUMENTS] = exportable(call.text)
        span = self._start_span(call.tool, attributes, key, running.start())
        running.open(span)
        return _Current(running, span)

    def on_end(self, turn: str, outcomes: Sequence[Outcome]) -> None:
        """End the spans of calls that were cancelled, and forget the turn."""
        with self._lock:
            traced = self._turns.get(turn)
            if traced is None:
                return
            traced.runs -= 1
            if traced.runs:
                return
            del self._turns[turn]
        with ExitStack() as stack:  # whatever one of them raises, the others are ended
            stack.callback(traced.end_the_rest)
            for outcome in reversed(outcomes):
                # One that waits still, because the turn could not be resumed, was told of when it was deferred.
                if outcome.call.position not in traced.known and outcome.status != "deferred":
                    stack.callback(self._complete, traced, turn, outcome)

    # -- spans ------------------------------------------------------------------------------

    def _complete(self, traced: TracedTurn, turn: str, outcome: Outcome) -> None:
        """End the span of a call that has its outcome, and count it."""
        call = traced.end(outcome.call.position)
        tool = traced.tool_of(outcome)
        executed = call.span is not None
        try:
            key = outcome.key or f"{turn}:{outcome.call.position}"
            span = call.span or self._open_short(call, traced.registry, tool, outcome, key)
            if outcome.status == "deferred":
                self._remember(key, span)
            try:
                self._describe(span, outcome)
            finally:
                span.end(call.ended_at)
        finally:
            self._count(call, tool or UNKNOWN, outcome, executed=executed)

    def _open_short(
        self, call: TracedCall, registry: ToolRegistry, tool: str | None, outcome: Outcome, key: str
    ) -> Span:
        """Start the span of a call that never ran; it ends when it starts."""
        attributes = self._attributes(registry, tool, outcome.call.id, key)
        if self._content:
            attributes[ARGUMENTS] = exportable(outcome.call.raw_arguments)
            if tool is None and outcome.call.name is not None:
                attributes[NAME] = exportable(outcome.call.name)
        span = self._start_span(tool, attributes, key, call.start())
        call.open(span)
        return span

    def _start_span(self, tool: str | None, attributes: Attributes, key: str, at: int) -> Span:
        with self._lock:
            deferred = self._deferred.pop(key, None)
        return self._tracer.start_span(
            EXECUTE if tool is None else f"{EXECUTE} {tool}",
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            links=() if deferred is None else (Link(deferred),),
            start_time=at,
        )

    def _attributes(self, registry: ToolRegistry, tool: str | None, call_id: str, key: str) -> Attributes:
        """What is known of a call when its span starts, for samplers too."""
        attributes: Attributes = {
            **self._constant,
            TOOL: tool or UNKNOWN,
            CALL_ID: exportable(call_id),
            KEY: exportable(key),
        }
        if tool is not None and tool in registry and registry[tool].definition.description:
            attributes[DESCRIPTION] = exportable(registry[tool].definition.description)
        return attributes

    def _describe(self, span: Span, outcome: Outcome) -> None:
        """Say on a span what came of its call."""
        if not span.is_recording():
            return
        attributes: Attributes = {STATUS: outcome.status, ATTEMPTS: outcome.attempts}
        if outcome.code is not None:
            attributes[CODE] = outcome.code
        if outcome.grade is not None:
            attributes[GRADE] = outcome.grade.value
        error = error_type(outcome)
        if error is not None:
            attributes[ERROR] = error
            span.set_status(StatusCode.ERROR)
        span.set_attributes(attributes)
        if self._content:
            _show(span, outcome)

    def _remember(self, key: str, span: Span) -> None:
        """Remember the span of a deferred call, for the one of the call that is resumed."""
        with self._lock:
            self._deferred[key] = span.get_span_context()
            if len(self._deferred) > _REMEMBERED:
                self._deferred.popitem(last=False)

    # -- metrics ----------------------------------------------------------------------------

    def _count(self, call: TracedCall, tool: str, outcome: Outcome, *, executed: bool) -> None:
        self._instruments.completed(tool, outcome)
        for record in call.repairs:
            self._instruments.repaired(tool, record)
        if call.attempt_runs:  # it was cancelled, and nobody told of its end
            self._instruments.attempted(tool, outcome.status)
        if executed and call.span is not None:
            self._instruments.executed(tool, outcome, call.seconds, set_span_in_context(call.span))


class _Current:
    """Makes a call's span the current one while the call runs."""

    def __init__(self, call: TracedCall, span: Span) -> None:
        self._call = call
        self._context = set_span_in_context(span)
        self._token: Token[Context] | None = None

    def __enter__(self) -> None:
        self._token = attach(self._context)

    def __exit__(self, *_: object) -> None:
        self._call.stop()
        if self._token is not None:
            detach(self._token)


def _show(span: Span, outcome: Outcome) -> None:
    """Put on a span what was asked for: the data of others."""
    if outcome.status == "succeeded":
        span.set_attribute(RESULT, exportable(outcome.message))
    elif outcome.error is not None:  # not with `record_exception`: its texts may be such that no exporter takes them
        span.add_event(
            "exception",
            {
                "exception.type": class_name(outcome.error),
                "exception.message": exportable(str(outcome.error)),
                "exception.stacktrace": exportable("".join(traceback.format_exception(outcome.error))),
            },
        )
