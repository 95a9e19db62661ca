"""A registry as an MCP server. Every call goes through a runner: parsed, validated, repaired and run like any other."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import uvicorn
from mcp import stdio_server, types
from mcp.server import Server, ServerRequestContext

from toolrun import ProgressReported, Runner, Tool, ToolRegistry
from toolrun_mcp._content import result_of
from toolrun_mcp._progress import next_progress

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

Context: TypeAlias = ServerRequestContext[Runner, Any]
MakeDeps: TypeAlias = Callable[[Context], object]
MakeRunner: TypeAlias = Callable[[ToolRegistry], Runner]

STDIO: Final = "stdio"
_WIRE: Final = "openai-chat"
_PATIENCE: Final = 2
"""Whole seconds for which open connections are waited for at the end."""


def make_server(
    registry: ToolRegistry,
    *,
    name: str = "toolrun",
    version: str = "",
    instructions: str | None = None,
    deps: MakeDeps | None = None,
    runner: MakeRunner = Runner,
) -> Server[Runner]:
    """Make an MCP server of a registry: the SDK's, to be mounted or run as its documentation says.

    A call that is unfit, fails, or may not run is answered with `isError` and the text that a model would be told. What
    `ctx.progress` is given goes to the client, and a request that the client cancels is cancelled. The list is made anew
    for each request; that it changed is not announced.

    Args:
        registry: The tools, as it is prepared for the deps of a request.
        name: What the server is called.
        version: Its version.
        instructions: What clients are told about the tools as a whole.
        deps: Called with the context of each request; what it returns is given to the tools and to what prepares the
            registry. By default None is.
        runner: Makes the runner, once for the lifetime of the server: `functools.partial(Runner, timeout=5)`.

    Examples:
        >>> import anyio, mcp
        >>> registry = ToolRegistry()
        >>> @registry.tool
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> async def main():
        ...     async with mcp.Client(make_server(registry)) as client:
        ...         result = await client.call_tool("add", {"a": 1, "b": "2"})
        ...         return result.content[0].text
        >>> anyio.run(main)
        '3'
    """

    @asynccontextmanager
    async def lifespan(_: Server[Runner]) -> AsyncIterator[Runner]:
        async with runner(registry) as running:
            yield running

    async def list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        prepared = registry.prepared(None if deps is None else deps(context))
        told = prepared.definitions("mcp")
        return types.ListToolsResult(tools=[_told(tool, entry) for tool, entry in zip(prepared, told, strict=True)])

    async def call_tool(context: Context, called: types.CallToolRequestParams) -> types.CallToolResult:
        return await _run(context, called, None if deps is None else deps(context))

    return Server(
        name,
        version=version or version_of("toolrun-mcp"),
        instructions=instructions,
        lifespan=lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve(
    registry: ToolRegistry,
    *,
    http: tuple[str, int] | None = None,
    name: str = "toolrun",
    version: str = "",
    instructions: str | None = None,
    deps: MakeDeps | None = None,
    runner: MakeRunner = Runner,
    task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve a registry as an MCP server, until the client has gone (stdio) or the task is cancelled.

    Over stdio the process's own standard input and output are the connection; what tools print goes to standard error.
    Over HTTP there is no authentication: the SDK's own protection against DNS rebinding is on for loopback addresses,
    and whoever reaches another address may call every tool. For anything else, mount
    `make_server(...).streamable_http_app(...)`.

    Args:
        registry: The tools.
        http: A host and a port (0 for any) to serve on with streamable HTTP, at the path `/mcp`; needs asyncio. None
            is stdio.
        name: As for `make_server`, as are the others.
        version: As for `make_server`.
        instructions: As for `make_server`.
        deps: As for `make_server`.
        runner: As for `make_server`.
        task_status: Told the URL, or `"stdio"`, when clients can connect: `await group.start(partial(serve, ...))`.

    Raises:
        OSError: The address cannot be had.
        RuntimeError: HTTP was asked for on trio.
    """
    server = make_server(registry, name=name, version=version, instructions=instructions, deps=deps, runner=runner)
    if http is None:
        async with stdio_server() as (incoming, outgoing):
            task_status.started(STDIO)
            await server.run(incoming, outgoing, server.create_initialization_options())
    else:
        await _serve_http(server, *http, task_status)


async def _serve_http(server: Server[Runner], host: str, port: int, task_status: TaskStatus[str]) -> None:
    asyncio.get_running_loop()  # uvicorn has no other
    app = server.streamable_http_app(host=host)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=_PATIENCE)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        serving = uvicorn.Server(config)
        task_status.started(f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/mcp")
        async with anyio.create_task_group() as group:
            group.start_soon(_stop_when_cancelled, serving)
            with anyio.CancelScope(shield=True):  # it ends by itself, in order
                await serving.serve(sockets=[listening])
            group.cancel_scope.cancel()


async def _stop_when_cancelled(serving: uvicorn.Server) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        serving.should_exit = True


async def _run(context: Context, called: types.CallToolRequestParams, deps: object) -> types.CallToolResult:
    run = context.lifespan_context.stream(_as_response(called), deps=deps, wire=_WIRE)
    reported = 0
    async with run:
        async for event in run:
            if isinstance(event, ProgressReported):
                await context.session.report_progress(*next_progress(event.value, reported))
                reported += 1
    (outcome,) = run.turn.outcomes
    return result_of(outcome)


def _as_response(called: types.CallToolRequestParams) -> dict[str, Any]:
    """The call as a model's whole response: so it goes the way that every call goes."""
    function = {"name": called.name, "arguments": json.dumps(called.arguments or {})}
    call = {"id": "call", "type": "function", "function": function}
    return {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}


def _told(tool: Tool, entry: dict[str, Any]) -> types.Tool:
    """A definition with what else is known of the tool; one that came from a server says what that said."""
    hints = {
        "readOnlyHint": True if tool.effect == "pure" else None,
        "idempotentHint": True if tool.effect == "idempotent" else None,
        "destructiveHint": True if tool.destructive else None,
    }
    if any(hints.values()):
        entry = {"annotations": hints, **entry}
    return types.Tool.model_validate(entry)
