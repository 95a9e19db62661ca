"""Servers that are not there, go away in the middle of a call, and come back: real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from toolrun import ProgressReported, Runner
from toolrun_mcp import ConnectFailed, ServerGone, connect

MakeResponse = Callable[..., dict[str, Any]]

PATIENCE = 120
"""Seconds that a busy machine may take to start a process."""
HttpServer = tuple[str, "subprocess.Popen[bytes]"]

LOST = "The connection to the tool's server was lost. Whether the call had its effect is not known."
NOT_SENT = "The connection to the tool's server was lost. The call was not sent."
ADD = ("add", {"a": 1, "b": 2})


async def give_up(runner: Runner, response: dict[str, Any]) -> str:
    """Leave a run once its call is under way."""
    async with runner.stream(response) as run:
        async for event in run:
            if isinstance(event, ProgressReported):
                break
    (outcome,) = run.turn.outcomes
    return outcome.status


async def written(note: Path) -> str:
    """Wait for what another process writes."""
    there = anyio.Path(note)
    with anyio.fail_after(30):
        while not (await there.exists() and await there.read_text("utf-8")):
            pass
    return await there.read_text("utf-8")


async def test_stdio(stdio_server: StdioServerParameters, response: MakeResponse, tmp_path: Path) -> None:
    """Leaving a run cancels the request in the server's process. When that dies, its call fails, the next is not sent, and a
    refresh starts it anew.
    """
    note = tmp_path / "note"
    async with (
        connect(stdio_server, timeout=PATIENCE) as connection,
        Runner(connection.registry, max_concurrency=1) as runner,
    ):
        assert await give_up(runner, response(("hang", {"note": str(note)}))) == "cancelled"
        assert await written(note) == "cancelled"
        fine, lost, late = (await runner.run(response(ADD, ("die", {}), ADD))).outcomes
        assert connection.stale
        await connection.refresh()
        (again,) = (await runner.run(response(ADD))).outcomes

    assert (fine.value, again.value) == ("3", "3")
    assert [(outcome.status, outcome.message) for outcome in (lost, late)] == [("failed", LOST), ("failed", NOT_SENT)]
    assert isinstance(late.error, ServerGone)


@pytest.mark.filterwarnings(
    "ignore:Async generator 'httpx2:ResourceWarning", "ignore:Async generator 'httpcore2:ResourceWarning"
)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_http(mode: str, http_server: HttpServer, response: MakeResponse, tmp_path: Path) -> None:
    """The same over HTTP: a server that goes away costs the calls, and not the block."""
    url, _ = http_server
    note = tmp_path / "note"
    async with (
        connect(Client(url, mode=mode), timeout=PATIENCE) as connection,
        Runner(connection.registry, max_concurrency=1) as runner,
    ):
        assert await give_up(runner, response(("hang", {"note": str(note)}))) == "cancelled"
        assert await written(note) == "cancelled"
        fine, lost, late = (await runner.run(response(ADD, ("die", {}), ADD))).outcomes
        with pytest.raises(ConnectFailed, match=rf"^the MCP server '{url}': ConnectError: "):
            await connection.refresh()

    assert fine.value == "3"
    assert [(outcome.status, outcome.message) for outcome in (lost, late)] == [("failed", LOST), ("failed", NOT_SENT)]


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("http://127.0.0.1:9/mcp", r"^the MCP server 'http://127.0.0.1:9/mcp': ConnectError: "),
        (StdioServerParameters(command="/no/such"), r"^the MCP server '/no/such': FileNotFoundError: .*'/no/such'$"),
        (
            StdioServerParameters(command=sys.executable, args=["-c", ""]),
            r"^the MCP server '.*python.* -c ': MCPError: Connection closed$",
        ),
        (
            StdioServerParameters(command=sys.executable, args=["-c", "import sys; sys.stdin.read()"]),
            r"^the MCP server '.*sys.stdin.read\(\)' did not answer within 0.5 seconds$",
        ),
    ],
    ids=["nobody", "no program", "ends", "silent"],
)
async def test_no_server(server: str | StdioServerParameters, message: str) -> None:
    """Without a server there is one plain error that names it, soon."""
    with pytest.raises(ConnectFailed, match=message):
        async with connect(server, timeout=0.5 if "0.5 seconds" in message else PATIENCE):
            pass
