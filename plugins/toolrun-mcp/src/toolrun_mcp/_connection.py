"""`connect`: a server's tools as a registry, for as long as a block lasts."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
from mcp import MCPError, types

from toolrun import DialectError, RegistrationError, Tool, ToolRegistry
from toolrun_mcp._content import read_result
from toolrun_mcp._errors import ConnectFailed
from toolrun_mcp._link import Link
from toolrun_mcp._remote import MakeOptions, ReadResult, RemoteTool, Unusable, tool_from

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from mcp import Client

    from toolrun_mcp._link import Target

_MOST_PAGES: Final = 1_000
"""A list of tools that goes on longer has no end."""


class Changes(NamedTuple):
    """What a refresh found: names as registered, sorted.

    Attributes:
        added: Tools that were not there before.
        removed: Tools that are gone.
        changed: Tools that are told differently: another schema, description or hint.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class _Tool(NamedTuple):
    """A tool as registered, and as its server tells it."""

    tool: Tool
    told: types.Tool


class _Taking(NamedTuple):
    """How tools are taken over; see `connect`."""

    prefix: str
    only: frozenset[str] | None
    trust_hints: bool
    options: MakeOptions | None
    read: ReadResult


class McpConnection:
    """A connection to an MCP server, and the tools that are there. Get one from `connect`.

    Attributes:
        registry: The tools. It follows `refresh`, also inside a registry that it was combined into with `|`: a runner
            prepares it for each turn, and `registry.prepared(deps).definitions(wire)` does for a request. New tools
            come in only where all those are that the connection began with, under their names: not where `filtered`
            left some out, or after `renamed` or `prefixed`.
        skipped: Tools that cannot be registered, by the server's name for them, and why.
        stale: True once the tools may have changed or the connection was lost; `refresh` mends both.
    """

    def __init__(self, server: Target, taking: _Taking, group: TaskGroup, seconds: float | None) -> None:
        """See `connect`."""
        self.registry = ToolRegistry()
        self.skipped: dict[str, RegistrationError | DialectError] = {}
        self.stale = False
        self._link = Link(server, on_change=self._became_stale)
        self._taking = taking
        self._group = group
        self._seconds = seconds
        self._tools: dict[str, _Tool] = {}
        self._refreshing = anyio.Lock()

    @property
    def client(self) -> Client:
        """The SDK's client, connected: for prompts, resources and whatever else the server has.

        Raises:
            ConnectFailed: The connection was lost; `refresh` makes another one.
        """
        if self._link.client is None:
            raise ConnectFailed("the connection to the MCP server was lost") from self._link.lost
        return self._link.client

    async def refresh(self) -> Changes:
        """Read the server's tools again, over another connection if this one was lost; the registry follows.

        Call it between turns, where `stale` is True: what a request offers and what the run of its answer checks
        against has to be the same. If it raises, the tools stay as they were.

        Returns:
            What is different now.

        Raises:
            ConnectFailed: There is no connection to be had, or the server cannot tell its tools.
            RegistrationError: The options that `connect` was given do not fit a tool.
        """
        async with self._refreshing:
            self.stale = False  # before the list is read: what changes from here on is news
            try:
                client = self._link.client or await self._link.open(self._group, self._seconds)
                with anyio.fail_after(self._seconds):
                    await self._link.subscribe()
                    tools, skipped = self._made_of(await _list(client))
            except (MCPError, TimeoutError) as error:
                self.stale = True
                raise ConnectFailed(f"the MCP server did not tell its tools: {str(error) or 'it is late'}") from error
            except BaseException:
                self.stale = True
                raise
            before, self._tools, self.skipped = self._tools, tools, skipped
        return _compare(before, tools)

    async def open(self) -> None:
        """Read the tools for the first time; `connect` does it.

        Raises:
            ConnectFailed: As for `refresh`.
            RegistrationError: As for `refresh`.
        """
        await self.refresh()
        for item in self._tools.values():
            self.registry.add(item.tool)
        self.registry.prepare(self._prepare)

    def close(self) -> None:
        """Let go of the server; `connect` does it."""
        self._link.close()

    def _became_stale(self) -> None:
        self.stale = True

    def _made_of(
        self, told: Sequence[types.Tool]
    ) -> tuple[dict[str, _Tool], dict[str, RegistrationError | DialectError]]:
        tools: dict[str, _Tool] = {}
        skipped: dict[str, RegistrationError | DialectError] = {}
        taking = self._taking
        for each in told:
            if taking.only is not None and each.name not in taking.only:
                continue
            function = RemoteTool(self._link, each.name, taking.read)
            name = taking.prefix + each.name
            try:
                tool = tool_from(each, function, name=name, trust_hints=taking.trust_hints, options=taking.options)
            except Unusable as error:  # one tool that cannot be described costs no other
                skipped[each.name] = error.fault
            else:
                tools[each.name] = _Tool(tool, each)
        return tools, skipped

    def _prepare(self, deps: object, tools: Sequence[Tool]) -> list[Tool]:  # noqa: ARG002  # the same for everybody
        """The tools of a turn: those that are asked about as they are now, and the new ones."""
        turn: list[Tool] = []
        for tool in tools:
            if not isinstance(tool.function, RemoteTool):
                turn.append(tool)
            elif (now := self._tools.get(tool.function.name)) is not None:
                turn.append(_brought_up_to(now.tool, tool))
        if {tool.name for tool in tools} == set(self.registry.names):
            known = {tool.function.name for tool in tools if isinstance(tool.function, RemoteTool)}
            turn += [item.tool for name, item in self._tools.items() if name not in known]
        return turn


@asynccontextmanager
async def connect(
    server: Target,
    *,
    prefix: str = "",
    only: Iterable[str] | None = None,
    trust_hints: bool = False,
    options: MakeOptions | None = None,
    read: ReadResult = read_result,
    timeout: float | None = 30.0,  # noqa: ASYNC109  # for the way to the server, not for what is in the block
) -> AsyncIterator[McpConnection]:
    """Connect to an MCP server as long as the block lasts, and have its tools in a registry.

    Tools run in the event loop in which the block was entered. Their arguments are checked against the server's own
    schemas before anything is sent.

    Args:
        server: A URL (streamable HTTP), `mcp.StdioServerParameters` (a command to start), a transport of the SDK, a
            server object in this process, or an `mcp.Client` that was not entered, with callbacks of your own.
        prefix: Goes before the names of the tools.
        only: The tools to take, by the server's names; those that come later too. None takes all.
        trust_hints: True believes the server that a tool only reads (effect `pure`) or may be repeated (`idempotent`).
            Else every tool is `once`. That a tool is destructive is believed in any case.
        options: Called with each tool as the server tells it; returns options of `Tool.from_definition`, which win
            over what the hints say.
        read: Makes what a tool returns of what the server answered.
        timeout: Seconds within which the server has to be connected, and its tools to be read; None for no limit.

    Yields:
        The connection.

    Raises:
        ConnectFailed: There is no such server, it did not answer in time, or it does not speak the protocol.
        RegistrationError: The options do not fit a tool, or each other.

    Examples:
        >>> import anyio, mcp.server
        >>> from toolrun import Runner
        >>> server = mcp.server.MCPServer("calculator")
        >>> @server.tool()
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> call = {"id": "c1", "type": "function", "function": {"name": "calc_add", "arguments": '{"a": 1, "b": 2}'}}
        >>> response = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
        >>> async def main():
        ...     async with connect(server, prefix="calc_") as calculator, Runner(calculator.registry) as runner:
        ...         (outcome,) = (await runner.run(response)).outcomes
        ...         return outcome.value
        >>> anyio.run(main)
        '3'
    """
    taking = _Taking(prefix, None if only is None else frozenset(only), trust_hints, options, read)
    left_by: BaseException | None = None
    async with anyio.create_task_group() as group:
        connection = McpConnection(server, taking, group, timeout)
        try:
            await connection.open()
            yield connection
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001  # raised below
            left_by = error  # as it is: the group would wrap it
        connection.close()
    if left_by is not None:
        raise left_by


async def _list(client: Client) -> list[types.Tool]:
    told: dict[str, types.Tool] = {}
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        for tool in page.tools:
            told.setdefault(tool.name, tool)
        cursor = page.next_cursor
        if cursor is None:
            return list(told.values())
    raise MCPError(types.INTERNAL_ERROR, f"the list has no end; {_MOST_PAGES:,} pages were read")


def _brought_up_to(now: Tool, tool: Tool) -> Tool:
    """The tool as it is registered, with its name and options, described as the server does now."""
    if tool.definition.origin == now.definition.origin:
        return tool
    renamed = now.renamed(tool.name)
    return dataclasses.replace(
        tool,
        definition=renamed.definition,
        validator=renamed.validator,
        signature=renamed.signature,
        function=renamed.function,
        destructive=tool.destructive or renamed.destructive,
    )


def _compare(before: dict[str, _Tool], after: dict[str, _Tool]) -> Changes:
    kept = before.keys() & after.keys()
    return Changes(
        added=_names(after, after.keys() - before.keys()),
        removed=_names(before, before.keys() - after.keys()),
        changed=_names(after, {name for name in kept if before[name].told != after[name].told}),
    )


def _names(tools: dict[str, _Tool], keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(tools[key].tool.name for key in keys))
