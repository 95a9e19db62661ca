"""A Temporal server for all tests, and a worker for those that hurt none. On asyncio, where Temporal's client is."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from temporal_processes import Process, Server, start_worker  # beside this file


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture(scope="session")
def task_queue(server: Server) -> Iterator[str]:
    """The queue of a worker that runs as long as the tests do."""
    name = f"shared-{uuid.uuid4().hex}"
    worker = start_worker(server.address, name)
    worker.wait_for("takes calls")
    yield name
    worker.close()


@pytest.fixture
def started() -> Iterator[list[Process]]:
    """Processes that a test has started; they are ended after it, whatever happens."""
    processes: list[Process] = []
    yield processes
    for process in processes:
        process.close()
