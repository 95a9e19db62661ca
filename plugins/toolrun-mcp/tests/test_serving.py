"""A registry as a server, asked by the SDK's own client, over both eras of the protocol."""

from __future__ import annotations

import base64
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, types

from toolrun import Approve, File, Image, Runner, Tool, ToolContext, ToolError, ToolRegistry
from toolrun_mcp import Progress, connect, make_server, serve

PNG = b"\x89PNG\r\n\x1a\n..."

UNFIT = """\
Not run: the arguments do not fit the tool's schema. Correct them and send the call again.
- $.a: Field required
- $.b: Input should be a valid integer, got true"""

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(params=["auto", "legacy"])
def ask(request: pytest.FixtureRequest) -> Connect:
    @asynccontextmanager
    async def ask(registry: ToolRegistry, **how: Any) -> AsyncIterator[Client]:
        async with Client(make_server(registry, **how), mode=request.param) as client:
            yield client

    return ask


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool(effect="pure")
    def add(a: int, b: int = 1) -> int:
        """Add two numbers.

        Args:
            a: One of them.
        """
        return a + b

    @registry.tool(destructive=True)
    def delete(name: str) -> None:
        if name == "home":
            raise ToolError("Not that one.")
        raise ValueError("secret: admin@10.0.0.1")

    return registry


def said(result: types.CallToolResult) -> tuple[bool, str]:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return result.is_error, block.text


async def test_list(registry: ToolRegistry, ask: Connect) -> None:
    """Clients are told the schemas, and what is known of the effects."""
    async with ask(registry, instructions="Calculate.", name="calculator", version="7") as client:
        add, delete = (await client.list_tools()).tools
        assert client.instructions == "Calculate."
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("calculator", "7")

    assert (add.name, add.description) == ("add", "Add two numbers.")
    assert add.input_schema["properties"]["a"]["description"] == "One of them."
    assert add.input_schema["additionalProperties"] is False
    assert add.annotations == types.ToolAnnotations(read_only_hint=True)
    assert delete.annotations == types.ToolAnnotations(destructive_hint=True)


@pytest.mark.parametrize(
    ("name", "arguments", "is_error", "text"),
    [
        ("add", {"a": 1, "b": 2}, False, "3"),
        ("add", {"a": 1}, False, "2"),
        ("add", {"a": "1"}, False, "2"),
        ("functions.add", {"a": 1}, False, "2"),
        (
            "add",
            {"b": True},
            True,
            UNFIT,
        ),
        ("add", None, True, None),
        ("nothing", {}, True, "Not run: there is no tool named 'nothing'. Available tools: add, delete."),
        ("delete", {"name": ["attic"]}, True, None),
        ("delete", {"name": "home"}, True, "Not that one."),
        (
            "delete",
            {"name": "attic"},
            True,
            "The tool failed with an internal error (ValueError). It may have had an effect before it failed.",
        ),
    ],
)
async def test_calls(
    name: str, arguments: dict[str, Any] | None, is_error: bool, text: str | None, registry: ToolRegistry, ask: Connect
) -> None:
    """A call goes the way of every call: checked, repaired where that is allowed, refused in the model's words."""
    async with ask(registry) as client:
        told = said(await client.call_tool(name, arguments))

    assert told[0] is is_error
    if text is not None:
        assert told[1] == text


@pytest.mark.parametrize(
    ("value", "content", "structured"),
    [
        ("fog", [("text", "fog")], None),
        ('{"a": 1}', [("text", '{"a": 1}')], None),
        ({"degrees": 7}, [("text", '{"degrees":7}')], {"degrees": 7}),
        ([1, 2], [("text", "[1,2]")], None),
        (None, [("text", "null")], None),
        (["here:", Image(data=PNG)], [("text", "here:"), ("image", PNG)], None),
        (File(data=b"RIFF....WAVE", media_type="audio/wav"), [("audio", b"RIFF....WAVE")], None),
        (File(data=b"%PDF-", name="bill.pdf"), [("resource", b"%PDF-")], None),
        (Image(url="https://example.com/cat.png"), [("resource_link", "https://example.com/cat.png")], None),
    ],
)
async def test_values(value: object, content: list[tuple[str, object]], structured: object, ask: Connect) -> None:
    """Every kind of result has its block, and an object is structured content, too."""
    registry = ToolRegistry([Tool.from_function(lambda: value, name="f")])

    async with ask(registry) as client:
        result = await client.call_tool("f", {})

    assert [(block.type, _payload(block)) for block in result.content] == content
    assert result.structured_content == structured


def _payload(block: types.ContentBlock) -> object:
    match block:
        case types.TextContent():
            return block.text
        case types.ResourceLink():
            return block.uri
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            assert (resource.uri, resource.mime_type) == ("file:///bill.pdf", "application/pdf")
            return base64.b64decode(resource.blob)
        case types.ImageContent() | types.AudioContent():
            return base64.b64decode(block.data)
        case _:
            raise AssertionError(block)


async def test_long_result(ask: Connect) -> None:
    """What was cut for the model is not sent whole beside it."""
    registry = ToolRegistry([Tool.from_function(lambda: {"text": "x" * 1000}, name="f", result_limit=200)])

    async with ask(registry) as client:
        result = await client.call_tool("f", {})

    assert result.structured_content is None
    assert len(said(result)[1]) == 200


async def test_progress(ask: Connect) -> None:
    """What a tool tells of itself goes to the client, in the words of the protocol."""
    registry = ToolRegistry()
    told: list[tuple[float, float | None, str | None]] = []
    seen = anyio.Event()

    @registry.tool
    async def work(ctx: ToolContext) -> str:
        ctx.progress(0.5)
        ctx.progress("reading")
        ctx.progress(Progress(3, 4, "writing"))
        await seen.wait()
        return "done"

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))
        if len(told) == 3:
            seen.set()

    async with ask(registry) as client:
        with anyio.fail_after(30):
            result = await client.call_tool("work", {}, progress_callback=on_progress)

    assert said(result) == (False, "done")
    assert sorted(told) == [(0.5, None, None), (2, None, "reading"), (3, 4, "writing")]


async def test_cancelled(ask: Connect) -> None:
    """A request that the client gives up is cancelled in the tool, and the next one is answered."""
    registry = ToolRegistry()
    begun, cancelled = anyio.Event(), anyio.Event()

    @registry.tool
    async def hang() -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    registry.add(Tool.from_function(lambda: "here", name="echo"))

    async with ask(registry) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "hang", {})
            await begun.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(30):
            await cancelled.wait()
        assert said(await client.call_tool("echo", {})) == (False, "here")


async def test_runner_options(ask: Connect) -> None:
    """The runner is made as the caller says, once."""
    registry = ToolRegistry()
    made: list[Runner] = []

    @registry.tool
    async def hang() -> None:
        await anyio.sleep_forever()

    @registry.tool(approval=True)
    def pay(amount: int) -> int:
        return amount

    def make(registry: ToolRegistry, **options: Any) -> Runner:
        made.append(Runner(registry, timeout=0.05, **options))
        return made[-1]

    async with ask(registry, runner=make) as client:
        late = said(await client.call_tool("hang", {}))
        unapproved = said(await client.call_tool("pay", {"amount": 5}))
    assert late[0]
    assert late[1].startswith("The tool did not finish within its time limit of 0.05 seconds.")
    assert unapproved == (True, "Not run: the call needs an approval, and there is nobody here to ask.")
    assert len(made) == 1

    async with ask(registry, runner=partial(make, approver=lambda request: Approve())) as client:
        assert said(await client.call_tool("pay", {"amount": 5})) == (False, "5")


async def test_deps(ask: Connect) -> None:
    """Each request has deps of its own: for what prepares the registry, and for the tools."""
    registry = ToolRegistry()
    users = ["guest"]

    @registry.tool(tags=["admin"])
    def whoami(ctx: ToolContext[str]) -> str:
        return ctx.deps

    @registry.prepare
    def visible(deps: str, tools: list[Tool]) -> list[Tool]:
        return [tool for tool in tools if deps == "admin"]

    async with ask(registry, deps=lambda context: users[-1]) as client:
        assert (await client.list_tools(cache_mode="bypass")).tools == []
        assert said(await client.call_tool("whoami", {}))[0]
        users.append("admin")
        assert [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools] == ["whoami"]
        assert said(await client.call_tool("whoami", {})) == (False, "admin")


async def test_round_trip(registry: ToolRegistry) -> None:
    """Served and connected to, tools are what they were; a gateway tells them on as they came."""
    async with connect(make_server(registry), trust_hints=True) as connection:
        remote = connection.registry
        async with connect(make_server(remote), trust_hints=True) as gateway:
            for original, first, second in zip(registry, remote, gateway.registry, strict=True):
                assert first.definition.input_schema == original.definition.input_schema
                assert (first.effect, first.destructive) == (original.effect, original.destructive)
                assert second.definition.origin == first.definition.origin
            call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
            response = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
            async with Runner(gateway.registry) as runner:
                (outcome,) = (await runner.run(response)).outcomes

    assert outcome.value == "3"


# -- over HTTP, in this process ---------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_http(mode: str, registry: ToolRegistry, anyio_backend_name: str) -> None:
    """It serves until it is cancelled; the address is free again then."""
    async with anyio.create_task_group() as group:
        serving = partial(serve, registry, http=("127.0.0.1", 0))
        if anyio_backend_name == "trio":
            with pytest.raises(RuntimeError, match="no running event loop"):
                await group.start(serving)
            return
        url = await group.start(serving)
        async with Client(url, mode=mode) as client:
            assert said(await client.call_tool("add", {"a": 1, "b": "2"})) == (False, "3")
        group.cancel_scope.cancel()

    with socket.create_server(("127.0.0.1", httpx2.URL(url).port or 0)):
        pass
