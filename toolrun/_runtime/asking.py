"""Calling what a user registered to decide: a hook, an approver."""

from __future__ import annotations

import inspect
import time
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from toolrun._core.steps import HookAnswer
from toolrun.executors._attempt import ending, propagate

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolrun._core.repair import HookBinding, RepairDecision, RepairRequest


async def ask(function: Callable[[Any], object], request: object, *, in_place: bool = False) -> Any:
    """Call it with the request: async ones and those that are quick in place, any other in a worker thread.

    Raises:
        BaseException: What it raises.
    """
    answer: Any
    if in_place or _is_async(function):
        answer = function(request)
    else:
        answer = (await anyio.to_thread.run_sync(ending, function, request, abandon_on_cancel=True)).result()
    return await answer if inspect.isawaitable(answer) else answer


async def ask_hook(binding: HookBinding, request: RepairRequest) -> HookAnswer:
    """Ask a hook. One that raises or takes too long is an answer too."""
    began = time.monotonic()
    decision: RepairDecision | None = None
    failure: str | None = None
    scope = anyio.move_on_after(request.seconds_left)
    try:
        with scope:
            decision = await ask(binding.hook, request, in_place=binding.builtin)
    except BaseException as error:  # noqa: BLE001  # a hook cannot break a run
        propagate(error)
        failure = f"the hook raised {type(error).__name__}: {error}"
    if scope.cancelled_caught or (scope.cancel_called and failure is not None):
        failure = f"the hook did not answer within {request.seconds_left:g} s"
    return HookAnswer(decision, failure, time.monotonic() - began)


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
