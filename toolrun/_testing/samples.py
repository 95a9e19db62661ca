"""The tools that the suite of executors calls. Worker processes import them, so pytest stays out of here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from toolrun._core.exceptions import ToolError
from toolrun._core.registry import ToolRegistry
from toolrun._testing.ledger import Ledger

SECRET: Final = "the password is swordfish"  # noqa: S105  # it is none


async def echo(value: object) -> object:
    """Return what was given."""
    return value


async def fail(message: str) -> None:
    """Fail in its own words."""
    raise ToolError(message)


async def crash() -> None:
    """Fail with something that is not for the model."""
    raise RuntimeError(SECRET)


async def wait(seconds: float) -> None:
    """Wait."""
    await anyio.sleep(seconds)


async def note(path: str, line: str, seconds: float = 0.0) -> str:
    """Write a line into a ledger, and wait after that."""
    Ledger(path).append(line)
    await anyio.sleep(seconds)
    return line


SAMPLES: Final[dict[str, Callable[..., Awaitable[object]]]] = {
    function.__name__: function for function in (echo, fail, crash, wait, note)
}


def sample_tools() -> ToolRegistry:
    """The tools that `ExecutorSuite` calls, for workers of executors that run tools elsewhere."""
    registry = ToolRegistry()
    for function in SAMPLES.values():
        registry.tool(function)
    return registry
