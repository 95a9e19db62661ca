"""What can go wrong between here and a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolrun import ToolError, ToolrunError

if TYPE_CHECKING:
    from mcp.types import CallToolResult


class ConnectFailed(ToolrunError):
    """No connection to the MCP server came about; the error underneath is the `__cause__`."""


class RemoteToolFailed(ToolError):
    """The tool failed at its server, which said so (`isError`); `result` is the whole answer.

    The message is the text of the answer, and goes to the model as it is.
    """

    def __init__(self, message: str, *, result: CallToolResult) -> None:
        """Keep the answer."""
        super().__init__(message)
        self.result = result


class CallRejected(ToolError):
    """The server answered the request with an error of the protocol; `code` is that of JSON-RPC."""

    def __init__(self, message: str, *, code: int) -> None:
        """Keep the code."""
        super().__init__(message)
        self.code = code


class ServerGone(ToolError):
    """The connection to the server was lost, or had been before the call."""
