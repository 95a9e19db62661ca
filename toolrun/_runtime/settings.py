"""What a runner is set to; the same object for every turn of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from toolrun._core.exceptions import PluginError
from toolrun._core.repair import ordered
from toolrun._core.seams import Executor
from toolrun._plugins import EXECUTORS, load
from toolrun._runtime.limits import Gates, Limits, LoopGuard
from toolrun.executors import InlineExecutor, ProcessExecutor, ThreadExecutor

if TYPE_CHECKING:
    from toolrun._core.approval import Approver
    from toolrun._core.listener import Listener
    from toolrun._core.policy import FinishPolicy
    from toolrun._core.registry import ToolRegistry
    from toolrun._core.repair import HookBinding, RepairBudget
    from toolrun._core.seams import Journal
    from toolrun._core.tools import Tool
    from toolrun._runtime.recovery import Verify
    from toolrun._runtime.writing import ResultStore

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
    result_limit: int | None = None
    result_store: ResultStore | None = None
    approver: Approver | None = None
    approval_timeout: float | None = None
    limits: Limits = field(default_factory=Limits)
    journal: Journal | None = None
    verify: Verify | None = None
    listeners: tuple[Listener, ...] = ()
    running: Counter[str] = field(default_factory=Counter)
    signing_key: bytes | None = field(default=None, repr=False)
    gates: Gates = field(init=False)
    guard: LoopGuard = field(init=False)
    named: dict[str, Executor] = field(default_factory=lambda: {"inline": InlineExecutor(), "thread": ThreadExecutor()})

    def __post_init__(self) -> None:
        """Make what holds the limits."""
        object.__setattr__(self, "gates", Gates(self.limits))
        object.__setattr__(self, "guard", LoopGuard(self.limits))

    @property
    def chain(self) -> tuple[HookBinding, ...]:
        """The hooks in the order of asking; those of the registry may have grown since the last turn."""
        return ordered(self.repairs, self.registry.hooks)

    def starts_early(self, registry: ToolRegistry) -> bool:
        """Tell whether any call of a turn may start before the end of its stream."""
        if registry.orders_calls or self.limits.calls is not None or self.limits.repeats is not None:
            return False  # what a call has to wait for, or whether it is one too many, is known when all have come
        if self.journal is not None:
            return False  # the turn is recorded before its first start, and so has to be whole
        return self.start == "eager" or any(tool.eager for tool in registry)

    @property
    def abandoned(self) -> int:
        """How much still runs for calls that were given up, in every executor."""
        executors = [*self.named.values(), *([self.executor] if self.executor else [])]
        return sum(executor.abandoned for executor in executors)

    def executor_for(self, tool: Tool) -> Executor:
        """The tool's own, else the runner's, else the loop for async tools and a thread for sync ones.

        Raises:
            PluginError: The tool names an executor that is not installed.
        """
        chosen = tool.executor or self.executor or ("inline" if tool.is_async else "thread")
        if not isinstance(chosen, str):
            return chosen
        return self.named.get(chosen) or self.named.setdefault(chosen, _make(chosen))

    def own_processes(self) -> list[ProcessExecutor]:
        """What was started for tools that name it, and ends with the runner."""
        return [executor for executor in self.named.values() if isinstance(executor, ProcessExecutor)]


def _make(name: str) -> Executor:
    if name == "process":
        return ProcessExecutor()
    found = load(EXECUTORS, name)
    made = found() if callable(found) else found
    if not isinstance(made, Executor):
        raise PluginError(f"{name!r} in {EXECUTORS} is {found!r}, which gives no Executor")
    return made
