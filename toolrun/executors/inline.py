"""In the event loop: for async functions, and for sync ones that are too quick for a thread."""

from __future__ import annotations

import contextvars
import inspect
import types
from typing import TYPE_CHECKING, Any, cast

from toolrun._core.seams import Executor
from toolrun.executors._attempt import attempt, invocation_of, raised_by_tool
from toolrun.executors._scopes import close_left_open, innermost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from toolrun._core.outcomes import Outcome
    from toolrun._core.seams import Invocation, Job


class InlineExecutor(Executor):
    """Calls the function where it is, in a context of its own.

    A sync function blocks the loop, and no deadline stops it.
    """

    async def execute(self, job: Job) -> Outcome:
        """See `Executor`."""
        return await attempt(job, _apart(_call(invocation_of(job))))


@types.coroutine
def _apart(coroutine: Coroutine[Any, Any, object]) -> Generator[Any, Any, object]:
    """Await a coroutine without a task of its own: what it sets in its context, and the scopes that it leaves open, are nobody else's."""
    context, before = contextvars.copy_context(), innermost()
    step: Callable[[Any], Any] = coroutine.send
    given: object = None
    try:
        while True:
            try:
                waited_for = context.run(step, given)
            except StopIteration as ended:
                return ended.value
            except GeneratorExit as error:
                if error is given:  # this is being closed
                    raise
                raise raised_by_tool(error) from error
            try:
                given = yield waited_for
                step = coroutine.send
            except BaseException as error:  # noqa: BLE001  # thrown on into the coroutine
                given = error
                step = coroutine.throw
    finally:
        close_left_open(before)


async def _call(invocation: Invocation) -> object:
    function, args, kwargs, is_async = invocation
    value = function(*args, **kwargs)
    if is_async:
        return await cast("Awaitable[object]", value)
    return await value if inspect.isawaitable(value) else value
