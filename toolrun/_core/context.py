"""What a tool may ask for besides its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeAlias

from typing_extensions import TypeVar

DepsT = TypeVar("DepsT", default=None)
Report: TypeAlias = Callable[[object], None]
"""Takes what a tool tells before it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(Generic[DepsT]):
    """Give a parameter this type and it gets the context of the call; the model never sees it.

    Attributes:
        deps: What the caller passed as `deps=`.
        call_id: The call's id, as the provider knows it.
        tool: The registered name that the call runs under.
        key: The idempotency key: the same on every attempt of this call, another for any other call.
        attempt: Which attempt this is, from 1.
        report: What `progress` calls; None if nobody follows the run.

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

    def progress(self, value: object) -> None:
        """Tell whoever follows the run how far the call is; a `ProgressReported` event has the value.

        It may be called from any thread, and does nothing where nobody follows, or after the attempt has ended.

        Args:
            value: Anything: a text, a number, a preliminary result. The model does not see it.
        """
        if self.report is not None:
            self.report(value)
