"""An MCP server, made with the SDK alone: over stdio, or over HTTP on the listening socket whose number it is given."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context  # noqa: TC002  # the server reads the annotations

server = MCPServer("tests")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def die() -> str:
    """End the process in the middle of a call."""
    os._exit(1)


def write(note: str) -> None:
    Path(note).write_text("cancelled", "utf-8")


@server.tool()
async def hang(note: str, context: Context) -> str:
    """Wait for ever, and write a file when cancelled."""
    await context.report_progress(1, 2, "begun")
    try:
        await anyio.sleep_forever()
    finally:
        write(note)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
    else:
        server.run()
