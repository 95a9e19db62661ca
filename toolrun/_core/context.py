"""What a tool may ask for besides its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from typing_extensions import TypeVar

DepsT = TypeVar("DepsT", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(Generic[DepsT]):
    """Give a parameter this type and it gets the context of the call; the model never sees it.

    Attributes:
        deps: What the caller passed as `deps=`.
        call_id: The call's id, as the provider knows it.
        tool: The registered name that the call runs under.
        key: The idempotency key: the same on every attempt of this call, another for any other call.
        attempt: Which attempt this is, from 1.

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
