"""A tool that leaves cancel scopes open harms nobody: not its siblings, not the task that runs it, not the next turn."""

import anyio
import pytest

from toolrun import Runner, ToolRegistry

from .responses import response


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool(timeout=None)
    async def sibling(n: int) -> int:
        await anyio.sleep(0.02)
        return n

    return registry


async def leaves_one():
    anyio.CancelScope().__enter__()
    return "left"


async def leaves_a_cancelled_one():
    scope = anyio.CancelScope()
    scope.__enter__()
    scope.cancel()
    return "left"


async def leaves_one_that_will_fire():
    anyio.move_on_after(0.001).__enter__()
    return "left"


async def leaves_several():
    for seconds in (0.001, 5, 0):
        anyio.move_on_after(seconds).__enter__()
    return "left"


async def leaves_one_and_fails():
    anyio.move_on_after(0.001).__enter__()
    raise ValueError


async def leaves_one_and_dies_of_it():
    scope = anyio.CancelScope()
    scope.__enter__()
    scope.cancel()
    await anyio.sleep_forever()


async def leaves_them_out_of_order():
    outer, inner = anyio.CancelScope(), anyio.CancelScope()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)


SUCCEED = [leaves_one, leaves_a_cancelled_one, leaves_one_that_will_fire, leaves_several]
FAIL = [leaves_one_and_fails, leaves_one_and_dies_of_it, leaves_them_out_of_order]


@pytest.mark.parametrize("seconds", [None, 5.0])
@pytest.mark.parametrize("tool", [*SUCCEED, *FAIL], ids=lambda tool: tool.__name__)
async def test_siblings_and_the_task_itself_are_unharmed(registry: ToolRegistry, tool: object, seconds: float | None):
    """One worker for all calls, then the caller's own task: both can wait afterwards, and nothing is cancelled."""
    registry.tool(timeout=seconds)(tool)
    name = tool.__name__
    expected = ("succeeded", "left") if tool in SUCCEED else ("failed", None)

    many = await Runner(registry, max_concurrency=1).run(
        response((name, "{}"), ("sibling", '{"n": 1}'), (name, "{}"), ("sibling", '{"n": 2}'))
    )
    alone = await Runner(registry).run(response((name, "{}")))
    await anyio.sleep(0.005)

    ended = [(outcome.status, outcome.value) for outcome in (*many.outcomes, *alone.outcomes)]
    assert ended == [expected, ("succeeded", 1), expected, ("succeeded", 2), expected]
    assert anyio.current_effective_deadline() == float("inf")
