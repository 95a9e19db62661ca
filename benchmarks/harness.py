"""Measuring: rows, and races between two pieces of code in one process.

Times are CPU time of the process, so that a busy machine does not disturb them. The two sides of a
ratio take turns, the garbage collector is off while one runs, and the median round counts.
"""

from __future__ import annotations

import asyncio
import gc
import math
import statistics
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

Job: TypeAlias = Callable[[], object]
"""What is measured. It is called many times."""

AsyncJob: TypeAlias = Callable[[], Awaitable[object]]
"""The same in an event loop."""

Work: TypeAlias = Callable[[int], None]
"""A job done so many times."""


class Effort(NamedTuple):
    """How long to measure: so many rounds, each side at least so many seconds of CPU time a round."""

    rounds: int
    seconds: float


FULL = Effort(rounds=11, seconds=0.05)
QUICK = Effort(rounds=3, seconds=0.005)


class Measured(NamedTuple):
    """What a row came to; `detail` says what stands behind the number."""

    value: float
    detail: str = ""


class Row(NamedTuple):
    """One line of the table.

    `name` is what the command takes, `what` what a reader sees, `unit` one of those in `report`, `target` the
    most that `measure` may come to.
    """

    name: str
    what: str
    unit: str
    target: float
    measure: Callable[[Effort], Measured]


def repeated(job: Job) -> Work:
    """A job done many times."""

    def work(times: int) -> None:
        for _ in range(times):
            job()

    return work


def awaited(runner: asyncio.Runner, job: AsyncJob) -> Work:
    """A job done many times in one event loop, by one task."""

    async def many(times: int) -> None:
        for _ in range(times):
            await job()

    def work(times: int) -> None:
        runner.run(many(times))

    return work


def race(sides: Sequence[Work], effort: Effort) -> list[list[float]]:
    """Let the sides take turns; give the seconds that one job took, a list a side, a number a round."""
    times = [_enough(side, effort.seconds) for side in sides]
    rounds = [[_timed(side, count) for side, count in zip(sides, times, strict=True)] for _ in range(effort.rounds)]
    return [list(taken) for taken in zip(*rounds, strict=True)]


def ratio(ours: Work, floor: Work, effort: Effort, *, per: int = 1) -> Measured:
    """How many times the floor's time ours takes; `per` is how many units of work are in one job."""
    mine, theirs = race([ours, floor], effort)
    value = statistics.median(a / b for a, b in zip(mine, theirs, strict=True))
    micro = [statistics.median(taken) / per * 1e6 for taken in (mine, theirs)]
    return Measured(value, f"{micro[0]:.3g} against {micro[1]:.3g} µs")


def seconds(work: Work, effort: Effort) -> float:
    """The seconds that one job takes."""
    [taken] = race([work], effort)
    return statistics.median(taken)


def in_turns(jobs: Sequence[AsyncJob], effort: Effort) -> list[float]:
    """The seconds that each job takes. A small difference drowns in rounds of many: here single ones take turns."""

    async def alternate() -> list[float]:
        costs = []
        for job in jobs:
            start = time.process_time()
            await job()
            costs.append(time.process_time() - start)
        return costs

    async def many() -> list[list[float]]:
        return [await alternate() for _ in range(effort.rounds * 300)]

    with asyncio.Runner() as loop:
        return [statistics.median(taken) for taken in zip(*loop.run(many()), strict=True)]


def exponent(works: Mapping[int, Work], effort: Effort) -> Measured:
    """The slope of log(time) over log(size): 1 is linear, 2 is quadratic."""
    taken = [statistics.median(times) for times in race(list(works.values()), effort)]
    slope = statistics.linear_regression([math.log(size) for size in works], [math.log(time) for time in taken]).slope
    return Measured(slope, ", ".join(f"{time * 1e3:.3g}" for time in taken) + " ms")


def peak(job: Job) -> int:
    """The most bytes that Python held at once for a job."""
    gc.collect()
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _timed(work: Work, times: int) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        work(times)
        return (time.process_time() - start) / times
    finally:
        gc.enable()


def _enough(work: Work, least: float) -> int:
    """How many times fill a sample; the first run is a warm-up."""
    work(1)
    return max(1, math.ceil(least / max(_timed(work, 1), 1e-7)))
