"""The instruments. Their attributes have few values: registered names, and words of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun_opentelemetry._words import (
    AGENT,
    ATTEMPT_STATUS,
    CODE,
    ERROR,
    FUNCTION,
    STATUS,
    TOOL,
    TOOL_TYPE,
    Attributes,
    error_type,
    said_of,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Meter

    from toolrun import RepairRecord
    from toolrun.abc import Outcome

# As the conventions ask for this metric.
_BUCKETS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)


class Instruments:
    """Counts calls, attempts and repairs, and how long tools took.

    Args:
        meter: Makes the instruments.
        agent: The value of `gen_ai.agent.name` for durations; None leaves it out.
    """

    def __init__(self, meter: Meter, agent: str | None) -> None:
        self._of_agent: Attributes = {} if agent is None else {AGENT: agent}
        self._duration = meter.create_histogram(
            "gen_ai.execute_tool.duration",
            unit="s",
            description="The duration of a single tool execution.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self._calls = meter.create_counter("toolrun.calls", unit="{call}", description="Calls that have an outcome.")
        self._attempts = meter.create_counter(
            "toolrun.attempts", unit="{attempt}", description="Attempts to run a tool that are over."
        )
        self._repairs = meter.create_counter(
            "toolrun.repairs", unit="{repair}", description="Answers of repair hooks, accepted or not."
        )

    def completed(self, tool: str, outcome: Outcome) -> None:
        """Count a call that has its outcome."""
        attributes = {TOOL: tool, STATUS: outcome.status}
        self._calls.add(1, attributes if outcome.code is None else {**attributes, CODE: outcome.code})

    def executed(self, tool: str, outcome: Outcome, seconds: float, context: Context) -> None:
        """Record how long an execution took, all attempts and the waits between them.

        Args:
            tool: The registered name.
            outcome: What came of it.
            seconds: As long as its span.
            context: Has its span, for exemplars.
        """
        attributes: Attributes = {TOOL: tool, TOOL_TYPE: FUNCTION, **self._of_agent}
        error = error_type(outcome)
        if error is not None:
            attributes[ERROR] = error
        self._duration.record(seconds, attributes, context)

    def attempted(self, tool: str, status: str) -> None:
        """Count an attempt that is over."""
        self._attempts.add(1, {TOOL: tool, ATTEMPT_STATUS: status})

    def repaired(self, tool: str, record: RepairRecord) -> None:
        """Count an answer of a repair hook."""
        self._repairs.add(1, {TOOL: tool, **said_of(record)})
