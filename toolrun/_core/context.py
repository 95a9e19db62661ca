"""What a tool may ask for besides its arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Protocol

from typing_extensions import TypeVar

DepsT = TypeVar("DepsT", default=None)


class Report(Protocol):
    """Takes what a tool tells before it ends; `closed` once the attempt has ended."""

    @property
    def closed(self) -> bool:
        """True if nobody waits for the tool any more."""
        ...

    def __call__(self, value: object, /) -> None:
        """Tell of it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(Generic[DepsT]):
    """Give a parameter this type and it gets the context of the call; the model never sees it.

    Attributes:
        deps: What the caller passed as `deps=`.
        call_id: The call's id, as the provider knows it.
        tool: The registered name that the call runs under.
        key: The idempotency key: the same on every attempt of this call, another for any other call.
        attempt: Which attempt this is, from 1.
        report: What `progress` calls; None outside a runner.

    Examples:
        >>> def who(ctx: ToolContext[str], greeting: str) -> str:
        ...     return f"{greeting}, {ctx.deps}"
        >>> from toolrun import Tool
        >>> sorted(Tool.from_function(who).definition.input_schema["properties"])
        ['greeting']
    """

    deps: DepsT
    call_id: str
    tool: str
    key: str = ""
    attempt: int = 1
    report: Report | None = field(default=None, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for the tool any more: its time is over, or the run was cancelled.

        For sync tools, which nothing can stop: look at it now and then, and return.
        """
        return self.report is not None and self.report.closed

    def progress(self, value: object) -> None:
        """Tell whoever follows the run how far the call is; a `ProgressReported` event has the value.

        It may be called from any thread, and does nothing where nobody follows, or after the attempt has ended.

        Args:
            value: Anything: a text, a number, a preliminary result. The model does not see it.
        """
        if self.report is not None:
            self.report(value)
