"""From an outcome to what the model is told of it: written down, and no longer than it may be."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import anyio.to_thread

from toolrun._core import results
from toolrun._core.outcomes import Failed, Succeeded, completed
from toolrun.executors._attempt import ending, propagate

if TYPE_CHECKING:
    from toolrun._core.calls import ValidatedCall
    from toolrun._core.outcomes import Outcome

ResultStore: TypeAlias = Callable[["Outcome", str], "str | Awaitable[str | None] | None"]
"""Keeps a whole result that is too long to be told, and returns how it can be found again, or None."""

STORE_SECONDS: Final = 30.0


async def written_down(
    outcome: Outcome, validated: ValidatedCall, *, limit: int | None, store: ResultStore | None
) -> Outcome:
    """Write a result as what the model gets; one that cannot be written is a failure that ran.

    Args:
        outcome: As the executor gave it. What it says itself is taken as it is: in another process the value was
            more than what came back of it.
        validated: The call that was run.
        limit: How many characters of text the model gets; None for no limit.
        store: Asked to keep a whole text that is longer.
    """
    if not isinstance(outcome, Succeeded):
        return completed(outcome, validated, None if limit is None else results.cut(outcome.message, limit))
    try:
        parts = outcome.parts if outcome.message else results.value_parts(outcome.value)
        text = outcome.message or (results.parts_text(parts) if parts else results.value_text(outcome.value))
    except ValueError as error:
        return completed(_not_written(outcome, error), validated)
    if limit is None or len(text) <= limit:
        return completed(outcome, validated, text, parts)
    reference = await _stored(outcome, text, store) if store is not None else None
    if not parts:
        return completed(outcome, validated, results.cut(text, limit, reference))
    share = limit // sum(isinstance(part, str) for part in parts or ("",))
    shown = tuple(results.cut(part, share, reference) if isinstance(part, str) else part for part in parts)
    return completed(outcome, validated, results.parts_text(shown), shown)


async def _stored(outcome: Succeeded, text: str, store: ResultStore) -> str | None:
    """Ask the user's own code. What goes wrong there costs the reference, and nothing else."""
    try:
        with anyio.move_on_after(STORE_SECONDS):
            if inspect.iscoroutinefunction(store) or inspect.iscoroutinefunction(getattr(store, "__call__", None)):  # noqa: B004
                answer: object = store(outcome, text)
            else:
                answer = (await anyio.to_thread.run_sync(ending, store, outcome, text, abandon_on_cancel=True)).result()
            answer = await answer if inspect.isawaitable(answer) else answer
            return answer if isinstance(answer, str) else None
    except BaseException as error:  # noqa: BLE001  # a store cannot break a run
        propagate(error)
    return None


def _not_written(outcome: Succeeded, error: ValueError) -> Failed:
    return Failed(
        call=outcome.call,
        value=outcome.value,
        error=error,
        code="unserialisable",
        message="The tool ran, but its result cannot be written down as JSON.",
        attempts=outcome.attempts,
        started=True,
        key=outcome.key,
    )
