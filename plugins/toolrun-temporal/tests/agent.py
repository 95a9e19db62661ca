"""An agent as a process: it runs turns of calls on Temporal, and prints what came of each call."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

from temporal_calls import response  # beside this file
from temporal_tools import registry

from toolrun import Runner
from toolrun.journals import SqliteJournal
from toolrun_temporal import TemporalExecutor


async def main(
    *,
    address: str,
    task_queue: str,
    run_id: str,
    ledger: str,
    turns: list[list[tuple[str, int]]],
    seconds: float = 0.1,
    journal: str | None = None,
    heartbeat_timeout: float = 30.0,
) -> list[list[dict[str, Any]]]:
    executor = TemporalExecutor(address, task_queue=task_queue, heartbeat_timeout=heartbeat_timeout)
    async with AsyncExitStack() as stack:
        kept = None if journal is None else await stack.enter_async_context(SqliteJournal(journal))
        runner = Runner(registry, executor=executor, journal=kept, run_id=run_id, max_concurrency=100)
        await stack.enter_async_context(runner)
        recovered = {} if kept is None else {turn.turn_id: turn async for turn in runner.recover()}
        done = []
        for number, calls in enumerate(turns):
            wanted = [(tool, {"ledger": ledger, "order": order, "seconds": seconds}) for tool, order in calls]
            turn_id = f"turn-{number}"
            turn = recovered.get(turn_id) or await runner.run(response(*wanted), turn_id=turn_id)
            done.append([described(outcome) for outcome in turn.outcomes])
    return done


def described(outcome: Any) -> dict[str, Any]:
    return {
        "tool": outcome.call.name,
        "order": json.loads(outcome.call.raw_arguments)["order"],
        "status": outcome.status,
        "code": outcome.code,
        "value": outcome.value,
        "error": type(outcome.error).__name__,
    }


if __name__ == "__main__":
    outcomes = asyncio.run(main(**json.loads(sys.argv[1])))
    print(json.dumps(outcomes), flush=True)  # noqa: T201  # what it is for
    os._exit(0)  # what happens to Python's threads after this is not what is tested
