"""`python -m benchmarks.temporal`: what a call over Temporal's development server costs, serially and 64 at once.

The server, with its state in memory and in a file, and the worker are processes of their own on this machine. Times are
those of the clock: most of a call is the server's work, and its waits for the disk.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from temporalio.testing import WorkflowEnvironment

from toolrun import CallStatus, ToolCall
from toolrun.abc import Job
from toolrun_temporal import TemporalExecutor

_SERIAL: Final = 100
_AT_ONCE: Final = 64
_EACH: Final = 5
_TOOLS: Final = """\
from toolrun import ToolRegistry

registry = ToolRegistry()


@registry.tool
async def noop() -> None:
    \"\"\"Do nothing.\"\"\"
"""

_keys: Final = itertools.count()


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".temporal-") as directory:
        tools = Path(directory) / "tools.py"
        tools.write_text(_TOOLS)
        for where, file in (("in memory", None), ("in a file", str(Path(directory) / "temporal.db"))):
            asyncio.run(_measure(where, file, tools))


async def _measure(where: str, file: str | None, tools: Path) -> None:
    server = await WorkflowEnvironment.start_local(
        dev_server_existing_path=_program("temporal"), dev_server_database_filename=file, dev_server_log_level="never"
    )
    async with server:
        with _worker(server.client.service_client.config.target_host, tools):
            executor = TemporalExecutor(server.client)
            await _calls(executor, 10)
            serial = statistics.median(await _calls(executor, _SERIAL))
            began = time.perf_counter()
            await asyncio.gather(*(_calls(executor, _EACH) for _ in range(_AT_ONCE)))
            rate = _AT_ONCE * _EACH / (time.perf_counter() - began)
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(
        f"{where}: {serial * 1e3:.0f} ms a call serially; {rate:.0f} calls/s with {_AT_ONCE} at once; {load}",
        flush=True,
    )


async def _calls(executor: TemporalExecutor, count: int) -> list[float]:
    """The seconds that each of some calls takes, one after the other."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        outcome = await executor.execute(_job())
        times.append(time.perf_counter() - began)
        assert outcome.status == "succeeded", outcome
    return times


def _job() -> Job:
    call = ToolCall(id="c", name="noop", raw_arguments="{}", arguments={}, status=CallStatus.OK, executable=True)
    return Job(key=f"benchmark:{next(_keys)}:0", tool="noop", call=call, arguments="{}")


@contextmanager
def _worker(address: str, tools: Path) -> Iterator[None]:
    command = [_program("toolrun-temporal"), "worker", "--tools", str(tools), "--address", address]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as worker:
        assert worker.stderr is not None
        worker.stderr.readline()  # it takes calls
        try:
            yield
        finally:
            worker.terminate()


def _program(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found is not None, f"{name} is not installed beside {sys.executable}"
    return found


if __name__ == "__main__":
    main()
