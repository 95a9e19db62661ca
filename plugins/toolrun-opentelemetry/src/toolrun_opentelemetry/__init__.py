"""A span for every tool call, and metrics of them all, by OpenTelemetry's conventions for generative AI.

`Runner(registry, listeners=[OpenTelemetryListener()])` is all: where turns are run, nothing changes. No arguments,
results and error texts are recorded unless you ask for them.
"""

from toolrun_opentelemetry._listener import OpenTelemetryListener

__all__ = ["OpenTelemetryListener"]
