"""Servers that others wrote, as processes of their own: from PyPI, and the reference server for every feature from npm."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import StdioServerParameters

from toolrun import File, Image, Outcome, ProgressReported, Runner
from toolrun_mcp import McpConnection, Progress, connect

MakeResponse = Callable[..., dict[str, Any]]

PATIENCE = 120
"""Seconds that a busy machine may take to start a process."""


async def outcomes(connection: McpConnection, response: dict[str, Any]) -> list[Outcome]:
    async with Runner(connection.registry, max_concurrency=1) as runner:
        return list((await runner.run(response)).outcomes)


# -- mcp-server-time, mcp-server-git (PyPI) ---------------------------------------------------


async def test_time(response: MakeResponse) -> None:
    """The time server: its schemas are taken over, its errors are told, and what does not fit is not sent."""
    calls = [
        ("convert_time", {"source_timezone": "Asia/Tokyo", "time": "16:30", "target_timezone": "UTC"}),
        ("convert_time", {"source_timezone": "Asia/Tokyo", "time": "25:99", "target_timezone": "UTC"}),
        ("get_current_time", {"zone": "UTC"}),
    ]
    server = StdioServerParameters(command=sys.executable, args=["-m", "mcp_server_time"])

    async with connect(server, timeout=PATIENCE) as connection:
        assert connection.registry.names == ("convert_time", "get_current_time")
        converted, failed, refused = await outcomes(connection, response(*calls))

    assert isinstance(converted.value, dict)
    assert converted.value["time_difference"] == "-9.0h"
    assert failed.status == "failed"
    assert "Invalid time format. Expected HH:MM [24-hour format]" in failed.message
    assert (refused.status, refused.attempts) == ("refused", 0)
    assert "timezone" in refused.message


async def test_git(response: MakeResponse, tmp_path: Path) -> None:
    """The git server: its hints become effects, once it is trusted."""
    await anyio.run_process(["git", "init", "--quiet", "--initial-branch=main", str(tmp_path)])
    (tmp_path / "note.txt").write_text("milk\n", "utf-8")
    repository = {"repo_path": str(tmp_path)}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "mcp_server_git", "--repository", str(tmp_path)], env=dict(os.environ)
    )

    async with connect(server, prefix="g_", trust_hints=True, timeout=PATIENCE) as connection:
        assert not connection.skipped
        registry = connection.registry
        assert (registry["g_git_status"].effect, registry["g_git_add"].effect) == ("pure", "idempotent")
        assert registry["g_git_reset"].destructive
        added, status = await outcomes(
            connection, response(("g_git_add", {**repository, "files": ["note.txt"]}), ("g_git_status", repository))
        )

    assert added.message == "Files staged successfully"
    assert "new file:   note.txt" in status.message


# -- @modelcontextprotocol/server-everything (npm) --------------------------------------------


@asynccontextmanager
async def everything() -> AsyncIterator[McpConnection]:
    script = os.environ.get("TOOLRUN_MCP_EVERYTHING")
    if script is None:
        pytest.skip("TOOLRUN_MCP_EVERYTHING does not name dist/index.js of @modelcontextprotocol/server-everything")
    async with connect(StdioServerParameters(command="node", args=[script]), timeout=PATIENCE) as connection:
        yield connection


async def test_everything(response: MakeResponse) -> None:
    """The older protocol: every kind of content, progress, and a slow call that is given up and costs no other."""
    calls = [
        ("echo", {"message": "fog"}),
        ("get-tiny-image", {}),
        ("get-structured-content", {"location": "New York"}),
        ("get-resource-reference", {"resourceType": "Blob", "resourceId": 1}),
        ("get-resource-links", {"count": 1}),
        ("get-sum", {"a": 1, "b": "two"}),
    ]
    slow = ("trigger-long-running-operation", {"duration": 60, "steps": 600})
    values: list[object] = []

    async with everything() as connection, Runner(connection.registry) as runner:
        assert connection.client.protocol_version == "2025-11-25"
        async with runner.stream(response(slow)) as run:
            async for event in run:
                values += [event.value] if isinstance(event, ProgressReported) else []
                if len(values) == 2:
                    break
        turn = await runner.run(response(*calls))

    assert (run.turn.outcomes[0].status, values) == ("cancelled", [Progress(1.0, 600.0), Progress(2.0, 600.0)])
    echo, image, structured, resource, link, refused = turn.outcomes
    assert echo.value == "Echo: fog"
    assert [type(part) for part in image.parts] == [str, Image, str]
    assert image.parts[1].media_type == "image/png"
    assert structured.value == {"temperature": 33, "conditions": "Cloudy", "humidity": 82}
    assert isinstance(resource.parts[1], File)
    assert resource.parts[1].data.startswith(b"Resource 1: This is a base64 blob")
    assert "demo://resource/dynamic/" in link.message
    assert (refused.status, refused.started) == ("refused", False)
