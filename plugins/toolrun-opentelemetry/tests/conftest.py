"""Both event loops, and what the SDK has collected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolrun_opentelemetry import OpenTelemetryListener


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


class OpenSpans(SpanProcessor):
    """Knows the spans that have begun and not ended."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}

    def on_start(self, span: Span, parent_context: object = None) -> None:
        self.names[span.context.span_id] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        del self.names[span.context.span_id]


class Telemetry:
    """The SDK, with its exporter and its reader in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.open = OpenSpans()
        self.traces = TracerProvider(shutdown_on_exit=False)
        self.traces.add_span_processor(self.open)
        self.traces.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.tracer = self.traces.get_tracer("tests")

    def listener(self, **options: Any) -> OpenTelemetryListener:
        return OpenTelemetryListener(tracer_provider=self.traces, meter_provider=self.meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The finished spans, in the order in which they ended."""
        return list(self.exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        """The one span with this name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def points(self, metric: str) -> list[Any]:
        """The data points of a metric."""
        collected = json.loads(self.collected())
        metrics = [
            one for of in collected["resource_metrics"] for scope in of["scope_metrics"] for one in scope["metrics"]
        ]
        return [point for one in metrics if one["name"] == metric for point in one["data"]["data_points"]]

    def counts(self, metric: str) -> dict[tuple[object, ...], int]:
        """The values of a counter by those of its attributes, in the order of their names."""
        return {
            tuple(value for _, value in sorted(point["attributes"].items())): point["value"]
            for point in self.points(metric)
        }

    def collected(self) -> str:
        """All metrics, as JSON; `{"resource_metrics": []}` if there are none."""
        data = self.reader.get_metrics_data()
        return '{"resource_metrics": []}' if data is None else data.to_json()

    def exported(self) -> str:
        """Whatever left the process, as JSON."""
        return self.collected() + "".join(span.to_json() for span in self.spans)


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    """Whatever a test does, every span that it began ends."""
    telemetry = Telemetry()
    yield telemetry
    assert telemetry.open.names == {}
    telemetry.traces.shutdown()
    telemetry.meters.shutdown()
