"""`Link`: the SDK's client, in a task of its own. What ends a connection does not end the block that uses it."""

from __future__ import annotations

import dataclasses
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeAlias

import anyio
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client.subscriptions import SubscriptionLost
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from toolrun_mcp._errors import ConnectFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from anyio.abc import TaskGroup, TaskStatus
    from mcp.client import IncomingMessage, Transport
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    Target: TypeAlias = str | StdioServerParameters | Transport | Server[Any] | MCPServer | Client


class Link:
    """One server, and the connection to it while there is one."""

    def __init__(self, server: Target, *, on_change: Callable[[], None]) -> None:
        """Connect to nothing yet.

        Args:
            server: See `connect`.
            on_change: Called when the server's tools may have changed.
        """
        self._server = server
        self._changed = on_change
        self._client: Client | None = None
        self._lost: Exception | None = None
        self._over = anyio.Event()
        self._subscriptions: TaskGroup | None = None
        self._subscribed = False

    @property
    def client(self) -> Client | None:
        """The client, connected; None if there is no connection."""
        return self._client

    @property
    def lost(self) -> Exception | None:
        """What ended the connection."""
        return self._lost

    async def open(self, group: TaskGroup, seconds: float | None) -> Client:
        """Connect, and stay so until `close`, or until the connection is lost.

        Args:
            group: Where the task runs that holds the connection.
            seconds: How long to wait for the server; None for no limit.

        Raises:
            ConnectFailed: There is no such server, it is late, or it does not speak the protocol.
        """
        self._over = anyio.Event()
        try:
            with anyio.fail_after(seconds):
                client: Client = await group.start(self._hold, self._over)
        except TimeoutError as error:
            raise ConnectFailed(f"{_named(self._server)} did not answer within {seconds:g} seconds") from error
        except Exception as error:
            cause = _plainest(error)
            raise ConnectFailed(f"{_named(self._server)}: {type(cause).__name__}: {cause}") from error
        return client

    def close(self) -> None:
        """Let go of the connection; the task ends in its own time, the process of a stdio server with it."""
        self._over.set()

    def lose(self, client: Client, error: Exception) -> None:
        """Take note that a client's connection is gone; it may have been replaced by now."""
        if client is self._client:
            self._client = None
            self._lost = error
            self._over.set()
            self._changed()

    async def subscribe(self) -> None:
        """Ask to be told of changes, where the protocol wants that; before 2026-07-28 servers tell without."""
        if self._client is None or self._subscriptions is None or self._subscribed:
            return
        tools = self._client.server_capabilities.tools
        if tools is not None and tools.list_changed and self._client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await self._subscriptions.start(self._follow, self._client)

    async def _hold(self, over: anyio.Event, *, task_status: TaskStatus[Client]) -> None:
        client = self._make_client()
        entered = False
        try:
            async with client, anyio.create_task_group() as group:
                self._client, self._lost, self._subscriptions, self._subscribed = client, None, group, False
                entered = True
                task_status.started(client)
                await over.wait()
                group.cancel_scope.cancel()
        except Exception as error:
            if not entered:
                raise
            self.lose(client, _plainest(error))
        finally:
            if client is self._client:
                self._client = None

    async def _follow(self, client: Client, *, task_status: TaskStatus[None]) -> None:
        try:
            async with client.listen(tools_list_changed=True) as changes:
                self._subscribed = True
                task_status.started()
                async for _ in changes:
                    self._changed()
        except (MCPError, SubscriptionLost, TimeoutError):
            pass  # without news, as with a server that has none
        if not self._subscribed:
            task_status.started()
        elif client is self._client:
            self._subscribed = False
            self._changed()  # what has changed since is not known

    def _make_client(self) -> Client:
        if not isinstance(self._server, Client):
            about = types.Implementation(name="toolrun-mcp", version=version("toolrun-mcp"))
            return Client(self._server, message_handler=self._notice, client_info=about, cache=None)
        own = self._server.message_handler

        async def notice(message: IncomingMessage) -> None:
            await self._notice(message)
            if own is not None:
                await own(message)

        return dataclasses.replace(self._server, message_handler=notice)

    async def _notice(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed()


def _plainest(error: Exception) -> Exception:
    """The one thing that went wrong, out of the groups that it came in."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _named(server: Target) -> str:
    if isinstance(server, Client):
        return _named(server.server)
    if isinstance(server, StdioServerParameters):
        return f"the MCP server {' '.join([server.command, *server.args])!r}"
    return f"the MCP server {server!r}" if isinstance(server, str) else "the MCP server"
