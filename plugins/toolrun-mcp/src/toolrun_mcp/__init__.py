"""The tools of MCP servers in a toolrun registry, and a toolrun registry as an MCP server.

`connect(server)` gives a registry with the tools of a server; `serve(registry)` is one. Both speak stdio and streamable
HTTP, through the official SDK.
"""

from toolrun_mcp._connection import Changes, McpConnection, connect
from toolrun_mcp._content import read_result
from toolrun_mcp._errors import CallRejected, ConnectFailed, RemoteToolFailed, ServerGone
from toolrun_mcp._progress import Progress
from toolrun_mcp._server import make_server, serve

__all__ = [
    "CallRejected",
    "Changes",
    "ConnectFailed",
    "McpConnection",
    "Progress",
    "RemoteToolFailed",
    "ServerGone",
    "connect",
    "make_server",
    "read_result",
    "serve",
]
