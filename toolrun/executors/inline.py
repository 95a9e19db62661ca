"""In the event loop: for async functions, and for sync ones that are too quick for a thread."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from toolrun._core.seams import Executor
from toolrun.executors._attempt import attempt, in_own_context, invocation_of

if TYPE_CHECKING:
    from toolrun._core.outcomes import Outcome
    from toolrun._core.seams import Job


class InlineExecutor(Executor):
    """Calls the function where it is, in a context of its own.

    A sync function blocks the loop, and no deadline stops it.
    """

    async def execute(self, job: Job) -> Outcome:
        """See `Executor`."""
        function, args, kwargs, _ = invocation_of(job)

        async def run() -> object:
            value = function(*args, **kwargs)
            return await value if inspect.isawaitable(value) else value

        async def apart() -> object:
            return await in_own_context(run())

        return await attempt(job, apart)
