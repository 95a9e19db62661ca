"""Tools for workers, judged by a ledger that only they write: `FILE.py` of the worker command, and of the agents."""

from __future__ import annotations

import asyncio
import time

from toolrun import Retry, ToolContext, ToolRegistry, TryAgain
from toolrun.testing import Ledger, sample_tools

registry = sample_tools()


@registry.tool
async def charge(ledger: str, order: int, seconds: float = 0.0) -> str:
    """Charge a card, which must not happen twice."""
    Ledger(ledger).append(f"charge begun {order}")
    await asyncio.sleep(seconds)
    Ledger(ledger).append(f"charged {order}")
    return f"receipt {order}"


@registry.tool(effect="idempotent")
def put(ledger: str, order: int, context: ToolContext[None], seconds: float = 0.0) -> str:
    """Upload a file, as often as need be; in a thread."""
    Ledger(ledger).append(f"put begun {order} {context.attempt}")
    time.sleep(seconds)
    Ledger(ledger).append(f"put {order}")
    return f"{context.key} {context.attempt}"


@registry.tool(effect="pure", retry=Retry(on=ConnectionError, attempts=4, wait=0))
async def flaky(context: ToolContext[None]) -> int:
    """Fail twice."""
    if context.attempt < 3:
        raise ConnectionError("reset")
    return context.attempt


@registry.tool
async def busy() -> None:
    """Ask to be run again, without end."""
    raise TryAgain("busy", after=0)


@registry.tool
async def watched(ledger: str) -> None:
    """Wait, and write down how that ends."""
    Ledger(ledger).append("begun")
    try:
        await asyncio.sleep(3600)
    finally:
        Ledger(ledger).append("cancelled")


@registry.tool
def letters(count: int) -> str:
    """Write a long text."""
    return "x" * count


empty = ToolRegistry()
