"""Cancel scopes that a tool has entered and not left: they would cancel whatever its task does next."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

_MOST: int = 64
"""Scopes inside each other that are closed; who leaves more open is not helped."""


def innermost() -> Any:
    """The innermost cancel scope of this task; None if there is none.

    No public call tells. Where a later release keeps it elsewhere, nothing is found, and nothing is closed.
    """
    asyncio = sys.modules.get("asyncio")
    try:
        task = None if asyncio is None else asyncio.current_task()
    except RuntimeError:  # another event loop than asyncio's
        task = None
    if task is None:
        trio = sys.modules.get("trio")
        status = getattr(trio.lowlevel.current_task(), "_cancel_status", None) if trio else None
        return getattr(status, "_scope", None)
    states = getattr(sys.modules.get("anyio._backends._asyncio"), "_task_states", {})
    return getattr(states.get(task), "cancel_scope", None)


def close_left_open(before: object) -> None:
    """Leave the scopes that were entered since; what still runs in them is cancelled."""
    for _ in range(_MOST):
        scope = innermost()
        if scope is before or scope is None:
            return
        scope.cancel()
        with suppress(RuntimeError):
            scope.__exit__(None, None, None)
        if innermost() is scope:
            return
