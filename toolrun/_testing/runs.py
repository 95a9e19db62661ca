"""`record_runs`: an account of what ran, kept by the functions themselves."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator

    from toolrun._core.registry import ToolRegistry
    from toolrun._core.signatures import Signature
    from toolrun._core.tools import Tool


class RecordedRun(NamedTuple):
    """A tool's function was called.

    Attributes:
        tool: The registered name.
        arguments: What it was called with, by the names of its parameters, without its context.
    """

    tool: str
    arguments: dict[str, object]


@contextmanager
def record_runs(registry: ToolRegistry) -> Generator[list[RecordedRun]]:
    """Record every call of the registry's functions, in the order in which they began.

    The functions run as always. A retry is a run of its own. Tools that run in another process write nothing down here:
    let those append to a `Ledger`.

    Args:
        registry: Its tools are recorded until the block is left, also in runners that were made before. Tools that are
            added later are not.

    Yields:
        The list that grows.

    Examples:
        >>> from toolrun import Runner, ToolRegistry
        >>> from toolrun.testing import ScriptedCall, ScriptedResponse, record_runs
        >>> registry = ToolRegistry()
        >>> @registry.tool
        ... def pay(amount: int) -> str:
        ...     return "paid"
        >>> calls = [ScriptedCall("pay", {"amount": 20}), ScriptedCall("pay", {"amount": "twenty"})]
        >>> with record_runs(registry) as runs, Runner(registry) as runner:
        ...     _ = runner.run_sync(ScriptedResponse(calls=calls).events("openai-chat"))
        >>> runs
        [RecordedRun(tool='pay', arguments={'amount': 20})]
    """
    runs: list[RecordedRun] = []
    tools = registry._tools  # noqa: SLF001  # in place: agents hold their registries where no test can exchange them
    before = dict(tools)
    tools.update({name: _recording(tool, runs) for name, tool in before.items() if tool.function})
    try:
        yield runs
    finally:
        tools.update(before)


def _recording(tool: Tool, runs: list[RecordedRun]) -> Tool:
    function = tool.function
    assert function is not None, "only tools with a function are recorded"

    @functools.wraps(function)
    def recorded(*args: object, **kwargs: object) -> object:
        runs.append(RecordedRun(tool.name, _arguments(tool.signature, args, kwargs)))
        return function(*args, **kwargs)

    return replace(tool, function=recorded)


def _arguments(signature: Signature, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
    named = {**dict(zip(signature.positional, args, strict=False)), **kwargs}
    if signature.context is not None:
        named.pop(signature.context, None)
    whole = named.get(signature.whole) if signature.whole is not None else None
    return whole if isinstance(whole, dict) else named
