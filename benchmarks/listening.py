"""What a listener costs a call: spans and metrics against the same ones written by hand around the function."""

from __future__ import annotations

import time

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.harness import AsyncJob, Effort, Measured, Row, in_turns
from benchmarks.running import execution, noop
from toolrun import Tool
from toolrun_opentelemetry import OpenTelemetryListener


def telemetry(effort: Effort) -> Measured:
    """What the listener adds to a call, in turns with the same by hand; nothing is exported on either side."""
    traces = TracerProvider(shutdown_on_exit=False)
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    listener = OpenTelemetryListener(tracer_provider=traces, meter_provider=meters)
    tool = Tool.from_function(noop)
    sides = [
        execution(tool, 1, timeout=None, listeners=[listener]),
        execution(tool, 1, timeout=None),
        _by_hand(traces, meters),
    ]

    listened, bare, by_hand = (taken * 1e6 for taken in in_turns(sides, effort))
    return Measured((listened - bare) / by_hand, f"{listened - bare:.3g} against {by_hand:.3g} µs")


def _by_hand(traces: TracerProvider, meters: MeterProvider) -> AsyncJob:
    """The function in a span with the same attributes and events, and the same measurements."""
    tracer, meter = traces.get_tracer("by-hand"), meters.get_meter("by-hand")
    calls, attempts = meter.create_counter("calls"), meter.create_counter("attempts")
    duration = meter.create_histogram("duration", unit="s")

    async def job() -> None:
        began = time.perf_counter()
        with tracer.start_as_current_span(
            "execute_tool noop",
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.type": "function",
                "gen_ai.tool.name": "noop",
                "gen_ai.tool.description": "Do nothing.",
                "gen_ai.tool.call.id": "c0",
                "call.key": "r:t:0",
            },
        ) as span:
            span.add_event("attempt.started", {"attempt.number": 1})
            await noop(1, "x")
            span.add_event("attempt.ended", {"attempt.number": 1, "attempt.status": "succeeded"})
            span.set_attributes({"outcome.status": "succeeded", "call.attempts": 1, "call.grade": "exact"})
            attempts.add(1, {"gen_ai.tool.name": "noop", "attempt.status": "succeeded"})
            calls.add(1, {"gen_ai.tool.name": "noop", "outcome.status": "succeeded"})
            duration.record(time.perf_counter() - began, {"gen_ai.tool.name": "noop", "gen_ai.tool.type": "function"})

    return job


ROWS = (Row("telemetry", "a span and metrics for a call against the same by hand", "x", 2.0, telemetry),)
