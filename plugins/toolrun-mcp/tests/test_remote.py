"""The tools of a server, over both eras of the protocol: taken over, run, cancelled, changed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, types
from mcp.server import MCPServer, Server
from mcp.server.mcpserver import Context  # noqa: TC002  # the server reads the annotations
from mcp.server.mcpserver.exceptions import ToolError as SdkToolError

from toolrun import Outcome, ProgressReported, RegistrationError, Retry, Runner, ToolRegistry
from toolrun_mcp import CallRejected, Changes, ConnectFailed, Progress, RemoteToolFailed, connect

Json = dict[str, Any]
MakeResponse = Callable[..., Json]


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    """Which era of the protocol: 2026-07-28, or the handshake before it."""
    return request.param


@pytest.fixture
def server() -> MCPServer:
    server = MCPServer("tests")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def fail(text: str) -> str:
        raise SdkToolError(text)

    return server


def hinted(**hints: bool) -> types.Tool:
    return types.Tool(name="f", input_schema={"type": "object"}, annotations=types.ToolAnnotations(**hints))


def listing(*tools: types.Tool, answer: Callable[[types.CallToolRequestParams], Any] | None = None) -> Server[Any]:
    """A server on the SDK's lower level, which tells whatever it is given."""

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(tools))

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
        assert answer is not None
        return answer(params)

    return Server("tests", on_list_tools=list_tools, on_call_tool=call_tool)


async def run(registry: ToolRegistry, response: Json) -> tuple[Outcome, ...]:
    async with Runner(registry) as runner:
        return (await runner.run(response)).outcomes


# -- calls ------------------------------------------------------------------------------------


async def test_call(server: MCPServer, mode: str, response: MakeResponse) -> None:
    """Calls go to the server with the validated arguments; a failure has the server's own text."""
    calls = [("add", {"a": 1, "b": 2}), ("add", {"a": 1, "b": "2"}), ("fail", {"text": "No such city."})]

    async with connect(Client(server, mode=mode)) as connection:
        outcomes = await run(connection.registry, response(*calls))

    assert [(outcome.status, outcome.message, outcome.grade) for outcome in outcomes] == [
        ("succeeded", "3", "exact"),
        ("succeeded", "3", "schema_unique"),
        ("failed", "Error executing tool fail: No such city.", "exact"),
    ]
    error = outcomes[2].error
    assert isinstance(error, RemoteToolFailed)
    assert error.result.is_error
    assert pickle.loads(pickle.dumps(error)).result == error.result


@pytest.mark.parametrize(
    ("arguments", "code"),
    [({"a": 1}, "schema"), ({"a": 1, "b": "two"}, "schema"), ({"a": 1, "b": 2, "c": 3}, "unknown_key")],
)
async def test_unfit_calls_are_not_sent(arguments: Json, code: str, response: MakeResponse) -> None:
    """What does not fit the server's schema is refused here; its objects are closed."""
    sent: list[str] = []
    tool = types.Tool(
        name="add",
        input_schema={
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    )

    async with connect(listing(tool, answer=lambda params: sent.append(params.name))) as connection:
        (outcome,) = await run(connection.registry, response(("add", arguments)))

    assert (outcome.status, outcome.code, sent) == ("refused", code, [])


@pytest.mark.parametrize("name", ["arguments", "context", "self", "name", "_toolrun"])
async def test_any_parameter_name(name: str, response: MakeResponse) -> None:
    """What a parameter is called makes no difference to how it gets there."""
    tool = types.Tool(name="f", input_schema={"type": "object", "properties": {name: {"type": "array"}}})

    def answer(params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[], structured_content=params.arguments)

    async with connect(listing(tool, answer=answer)) as connection:
        (outcome,) = await run(connection.registry, response(("f", {name: [1]})))

    assert outcome.value == {name: [1]}


async def test_rejected(mode: str, response: MakeResponse) -> None:
    """An error of the protocol is the call's failure, and keeps its code."""

    def answer(params: types.CallToolRequestParams) -> None:
        raise MCPError(types.INVALID_PARAMS, "not today")

    async with connect(Client(listing(hinted(), answer=answer), mode=mode)) as connection:
        (outcome,) = await run(connection.registry, response(("f", {})))

    assert (outcome.status, outcome.message) == ("failed", "The tool's server rejected the call: not today")
    assert isinstance(outcome.error, CallRejected)
    assert outcome.error.code == -32602


async def test_progress(mode: str, response: MakeResponse) -> None:
    """What the server tells of a call is told to whoever follows the run."""
    server = MCPServer("tests")
    told = anyio.Event()

    @server.tool()
    async def work(context: Context) -> str:
        await context.report_progress(1, 4, "begun")
        await told.wait()
        return "done"

    async with (
        connect(Client(server, mode=mode)) as connection,
        Runner(connection.registry) as runner,
        runner.stream(response(("work", {}))) as run,
    ):
        values = []
        async for event in run:
            if isinstance(event, ProgressReported):
                values.append(event.value)
                told.set()

    assert values == [Progress(1.0, 4.0, "begun")]


@pytest.mark.parametrize("how", ["deadline", "left"])
async def test_cancelled(how: str, mode: str, response: MakeResponse) -> None:
    """A call that nobody waits for any more is cancelled at its server, and only that call."""
    server = MCPServer("tests")
    begun, cancelled = anyio.Event(), anyio.Event()

    @server.tool()
    async def hang() -> str:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    async with connect(Client(server, mode=mode), options=lambda told: {"timeout": 0.5}) as connection:
        if how == "deadline":
            (outcome,) = await run(connection.registry, response(("hang", {})))
            assert (outcome.status, outcome.code) == ("timed_out", "deadline")
        else:
            async with Runner(connection.registry, timeout=None) as runner, runner.stream(response(("hang", {}))):
                await begun.wait()
        with anyio.fail_after(30):
            await cancelled.wait()
        (outcome,) = await run(connection.registry, response(("add", {"a": 1, "b": 2})))

    assert outcome.value == "3"


async def test_another_loop(server: MCPServer, response: MakeResponse) -> None:
    """A tool that is run in another event loop than its connection's says so, and does not hang."""
    async with connect(server) as connection:
        with Runner(connection.registry) as runner:
            turn = await anyio.to_thread.run_sync(runner.run_sync, response(("add", {"a": 1, "b": 2})))

    (outcome,) = turn.outcomes
    assert outcome.status == "failed"
    assert str(outcome.error).startswith("'add': the connection to its server belongs to another event loop")


# -- definitions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hints", "trusted", "effect", "destructive"),
    [
        ({}, True, "once", False),
        ({"read_only_hint": True}, False, "once", False),
        ({"read_only_hint": True}, True, "pure", False),
        ({"idempotent_hint": True}, False, "once", False),
        ({"idempotent_hint": True}, True, "idempotent", False),
        ({"destructive_hint": True}, False, "once", True),
        ({"destructive_hint": False}, False, "once", False),
        ({"destructive_hint": True, "idempotent_hint": True}, True, "idempotent", True),
    ],
)
async def test_hints(hints: dict[str, bool], trusted: bool, effect: str, destructive: bool) -> None:
    """Hints that ask for care are believed of anybody, the others only of servers that are trusted."""
    async with connect(listing(hinted(**hints)), trust_hints=trusted) as connection:
        tool = connection.registry["f"]

    assert (tool.effect, tool.destructive) == (effect, destructive)


async def test_names(server: MCPServer, response: MakeResponse) -> None:
    """Tools are taken by the server's names, and called by those with the prefix."""
    async with connect(server, prefix="calc_", only=["add"]) as connection:
        assert connection.registry.names == ("calc_add",)
        (outcome,) = await run(connection.registry, response(("calc_add", {"a": 1, "b": 2})))

    assert outcome.value == "3"


async def test_options(server: MCPServer) -> None:
    """Options are one's own business, and win over hints."""

    def options(told: types.Tool) -> Json:
        return {"effect": "idempotent", "retry": Retry(on=ConnectionError)} if told.name == "add" else {"tags": "mcp"}

    async with connect(server, options=options) as connection:
        add, fail = connection.registry["add"], connection.registry["fail"]

    assert (add.effect, add.retry, fail.effect, fail.tags) == (
        "idempotent",
        Retry(on=ConnectionError),
        "once",
        frozenset(["mcp"]),
    )


async def test_bad_options(server: MCPServer) -> None:
    """Options that contradict each other are the caller's fault, and told as it is."""
    with pytest.raises(RegistrationError, match=r"tool 'add': retry runs it again, and effect='once' says"):
        async with connect(server, options=lambda told: {"retry": Retry(on=ConnectionError)}):
            pass


async def test_unusable_tool() -> None:
    """A tool that cannot be described costs no other, and is not lost without a word."""
    bad = types.Tool(name="bad", input_schema={"type": "object", "properties": {"a": {"$ref": "http://10.0.0.1/a"}}})

    async with connect(listing(bad, hinted())) as connection:
        assert connection.registry.names == ("f",)
        assert list(connection.skipped) == ["bad"]
        assert "http://10.0.0.1/a" in str(connection.skipped["bad"])


async def test_definition_is_kept() -> None:
    """What a server tells of a tool goes back to MCP as it came, under the name that it has here."""
    tool = types.Tool(
        name="f",
        title="F",
        input_schema={"type": "object", "properties": {}},
        output_schema={"type": "object"},
        annotations=types.ToolAnnotations(read_only_hint=True),
    )

    async with connect(listing(tool), prefix="x.") as connection:
        assert connection.registry.definitions("mcp") == [
            {
                "name": "x.f",
                "title": "F",
                "inputSchema": {"type": "object", "properties": {}},
                "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": True},
            }
        ]


async def test_pages() -> None:
    """A long list comes in pages; one without an end is an error."""
    pages = {None: "1", "1": "2", "2": None}
    asked: list[str | None] = []

    async def list_tools(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        cursor = params.cursor if params is not None else None
        asked.append(cursor)
        tool = types.Tool(name=f"f{cursor}", input_schema={"type": "object"})
        return types.ListToolsResult(tools=[tool], next_cursor=pages.get(cursor, "again"))

    async with connect(Server("tests", on_list_tools=list_tools)) as connection:
        assert connection.registry.names == ("f1", "f2", "fNone")
        assert asked == [None, "1", "2"]
        pages["2"] = "3"
        with pytest.raises(ConnectFailed, match="the list has no end; 1,000 pages were read"):
            await connection.refresh()
        assert (connection.registry.names, connection.stale) == (("f1", "f2", "fNone"), True)


# -- changes ----------------------------------------------------------------------------------


async def test_changes(mode: str, response: MakeResponse) -> None:
    """The server tells that its tools changed; a refresh brings them into every registry that has them."""
    server = MCPServer("tests")

    @server.tool()
    async def grow(context: Context) -> str:
        server.remove_tool("old")
        server.add_tool(lambda: "new", name="new", description="New.")
        server.add_tool(lambda a: a, name="kept", description="Kept.")
        await context.notify_tools_changed()
        await context.session.send_tool_list_changed()
        return "grown"

    server.add_tool(lambda: "old", name="old")
    server.add_tool(lambda: "kept", name="kept")
    mine = ToolRegistry()

    @mine.tool
    def own() -> str:
        return "own"

    async with connect(Client(server, mode=mode), prefix="x_") as connection:
        both = mine | connection.registry
        part = connection.registry.filtered(lambda tool: tool.name != "x_grow")
        async with Runner(both) as runner:
            await runner.run(response(("x_grow", {})))
            with anyio.fail_after(30):
                while not connection.stale:
                    await anyio.lowlevel.checkpoint()
            assert both.prepared().names == ("own", "x_grow", "x_kept", "x_old")

            changes = await connection.refresh()
            outcomes = (await runner.run(response(("x_new", {}), ("x_old", {}), ("own", {})))).outcomes

        assert changes == Changes(added=("x_new",), removed=("x_old",), changed=())
        assert [outcome.message for outcome in outcomes] == [
            "new",
            "Not run: there is no tool named 'x_old'. Available tools: own, x_grow, x_kept, x_new.",
            "own",
        ]
        assert part.prepared().names == ("x_kept",)
        assert not connection.stale


async def test_changed_schema(response: MakeResponse) -> None:
    """A tool that is told differently is checked against what it is now; the options stay."""
    told = [types.Tool(name="f", input_schema={"type": "object", "properties": {"a": {"type": "integer"}}})]

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=told)

    async with connect(
        Server("tests", on_list_tools=list_tools), options=lambda tool: {"tags": ["remote"]}
    ) as connection:
        renamed = connection.registry.renamed({"f": "g"})
        told[0] = types.Tool(name="f", input_schema={"type": "object", "properties": {"b": {"type": "string"}}})
        assert await connection.refresh() == Changes(changed=("f",))
        tool = renamed.prepared()["g"]

    assert tool.definition.input_schema["properties"] == {"b": {"type": "string"}}
    assert (tool.name, tool.tags) == ("g", frozenset(["remote"]))


# -- the block --------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
async def test_errors_of_the_block(error: BaseException, server: MCPServer) -> None:
    """What is raised in the block comes out of it as it is, and not in a group."""
    with pytest.raises(type(error)) as raised:
        async with connect(server):
            raise error

    assert raised.value is error


async def test_cancelling_the_block(server: MCPServer) -> None:
    """A cancellation from outside ends the block and the connection."""
    with anyio.CancelScope() as scope:
        async with connect(server) as connection:
            scope.cancel()
            await anyio.sleep_forever()

    assert scope.cancelled_caught
    with pytest.raises(ConnectFailed, match="the connection to the MCP server was lost"):
        _ = connection.client


async def test_own_client(server: MCPServer) -> None:
    """Callbacks of one's own client are called, and the client itself stays as it is."""
    seen: list[str] = []

    async def handler(message: object) -> None:
        seen.append(type(message).__name__)

    @server.tool()
    async def tell(context: Context) -> str:
        await context.session.send_tool_list_changed()
        return ""

    client = Client(server, mode="legacy", message_handler=handler)
    async with connect(client) as connection:
        await connection.client.call_tool("tell", {})
        with anyio.fail_after(30):
            while not seen:
                await anyio.lowlevel.checkpoint()

    assert (seen, client.message_handler, connection.stale) == (["ToolListChangedNotification"], handler, True)
