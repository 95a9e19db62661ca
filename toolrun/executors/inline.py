"""In the event loop: for async functions, and for sync ones that are too quick for a thread."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, cast

from toolrun._core.seams import Executor
from toolrun.executors._attempt import attempt, in_own_context, invocation_of
from toolrun.executors._scopes import close_left_open, innermost

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from toolrun._core.outcomes import Outcome
    from toolrun._core.seams import Invocation, Job


class InlineExecutor(Executor):
    """Calls the function where it is, in a context of its own.

    A sync function blocks the loop, and no deadline stops it.
    """

    async def execute(self, job: Job) -> Outcome:
        """See `Executor`."""
        invocation = invocation_of(job)
        return await attempt(job, lambda: _call_apart(invocation))


async def _call_apart(invocation: Invocation) -> object:
    """What the tool sets in its context, and the scopes that it leaves open, are nobody else's."""
    before = innermost()
    try:
        return await in_own_context(_call(invocation))
    finally:
        close_left_open(before)


async def _call(invocation: Invocation) -> object:
    function, args, kwargs, is_async = invocation
    value = function(*args, **kwargs)
    if is_async:
        return await cast("Awaitable[object]", value)
    return await value if inspect.isawaitable(value) else value
