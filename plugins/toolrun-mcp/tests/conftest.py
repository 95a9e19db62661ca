"""Both event loops, responses with calls in them, and an MCP server in a process of its own."""

from __future__ import annotations

import gc
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters

SERVER = Path(__file__).parent / "server.py"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def response() -> Callable[..., dict[str, Any]]:
    """Make a model's response with one call of each tool that is named, with its arguments."""

    def make(*calls: tuple[str, object]) -> dict[str, Any]:
        entries = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for number, (name, arguments) in enumerate(calls)
        ]
        return {"choices": [{"message": {"tool_calls": entries}, "finish_reason": "tool_calls"}]}

    return make


@pytest.fixture
def stdio_server() -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=[str(SERVER)])


@pytest.fixture
def http_server() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start the server on a free port; give its URL and its process."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, str(SERVER), str(listening.fileno())],
            pass_fds=[listening.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    yield f"http://127.0.0.1:{port}/mcp", process
    process.kill()
    process.wait()
    gc.collect()  # on trio, what httpx2 and the SDK left open is complained about when it is collected: here, please
