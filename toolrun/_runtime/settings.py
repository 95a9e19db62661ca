"""What a runner is set to; the same object for every turn of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from toolrun._core.repair import ordered
from toolrun.executors import InlineExecutor, ThreadExecutor

if TYPE_CHECKING:
    from toolrun._core.policy import FinishPolicy
    from toolrun._core.registry import ToolRegistry
    from toolrun._core.repair import HookBinding, RepairBudget
    from toolrun._core.seams import Executor
    from toolrun._core.tools import Tool

OnStreamError: TypeAlias = Literal["raise", "return"]

Start: TypeAlias = Literal["end", "eager"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """See `Runner`, whose arguments these are."""

    registry: ToolRegistry
    run_id: str
    policy: FinishPolicy
    repairs: tuple[HookBinding, ...]
    budget: RepairBudget
    max_concurrency: int
    timeout: float | None
    on_stream_error: OnStreamError
    close_stream: bool
    start: Start
    executor: Executor | None
    inline: Executor = field(default_factory=InlineExecutor)
    thread: Executor = field(default_factory=ThreadExecutor)

    @property
    def chain(self) -> tuple[HookBinding, ...]:
        """The hooks in the order of asking; those of the registry may have grown since the last turn."""
        return ordered(self.repairs, self.registry.hooks)

    def starts_early(self, registry: ToolRegistry) -> bool:
        """Tell whether any call of a turn may start before the end of its stream."""
        return self.start == "eager" or any(tool.eager for tool in registry)

    def executor_for(self, tool: Tool) -> Executor:
        """The runner's own executor if it was given one; else the loop for async tools, a thread for sync ones."""
        if self.executor is not None:
            return self.executor
        return self.inline if tool.is_async else self.thread
