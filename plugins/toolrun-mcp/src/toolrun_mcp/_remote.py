"""One tool of a server: its definition as a `Tool`, and the calls that go to the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import anyio.lowlevel
from mcp import MCPError, types

from toolrun import DialectError, RegistrationError, Tool, ToolContext
from toolrun_mcp._content import error_text
from toolrun_mcp._errors import CallRejected, RemoteToolFailed, ServerGone
from toolrun_mcp._progress import Progress

if TYPE_CHECKING:
    from toolrun_mcp._link import Link

Effect: TypeAlias = Literal["once", "idempotent", "pure"]
ReadResult: TypeAlias = Callable[[types.CallToolResult], object]
MakeOptions: TypeAlias = Callable[[types.Tool], Mapping[str, Any]]

_LOST: Final = "The connection to the tool's server was lost. Whether the call had its effect is not known."
_GONE: Final = "The connection to the tool's server was lost. The call was not sent."
_LATE: Final = "The tool's server did not answer in time. The call may still have an effect."


class RemoteTool:
    """The function of a tool that runs at a server."""

    def __init__(self, link: Link, name: str, read: ReadResult) -> None:
        """Remember the event loop that the connection belongs to.

        Args:
            link: To the server.
            name: As the server has it.
            read: Makes a value of an answer.
        """
        self.name = name
        self._link = link
        self._read = read
        self._loop = anyio.lowlevel.current_token()

    # Names that no schema has: a parameter that is called like a property would take that property alone.
    async def __call__(self, _toolrun_arguments: dict[str, Any], _toolrun_context: ToolContext[Any]) -> object:
        """Call the tool at its server. Cancelling it cancels the request there.

        Raises:
            RemoteToolFailed: The server says that the tool failed.
            CallRejected: The server answered with an error of the protocol, or not in the time that the client waits.
            ServerGone: There is no connection any more.
            RuntimeError: It is called in another event loop than the connection's, or the answer does not fit the
                schema that the server declared for it.
        """
        if anyio.lowlevel.current_token() != self._loop:
            raise RuntimeError(
                f"{self.name!r}: the connection to its server belongs to another event loop; run its calls there, with"
                " `await runner.run(...)` and not with `run_sync`"
            )

        client = self._link.client
        if client is None:
            raise ServerGone(_GONE) from self._link.lost

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            _toolrun_context.progress(Progress(progress, total, message))

        try:
            result = await client.call_tool(self.name, _toolrun_arguments, progress_callback=on_progress)
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                self._link.lose(client, error)
            raise _failure(error) from error
        if result.is_error:
            raise RemoteToolFailed(error_text(result), result=result)
        return self._read(result)


def tool_from(
    told: types.Tool, function: RemoteTool, *, name: str, trust_hints: bool, options: MakeOptions | None
) -> Tool:
    """Make a tool of what a server tells of one.

    Raises:
        RegistrationError: The options do not fit the tool, or each other.
        Unusable: Whatever the options, it cannot be registered.
    """
    entry = {**told.model_dump(mode="json", by_alias=True, exclude_none=True), "name": name}
    given = hinted(told, trusted=trust_hints) | dict(options(told) if options is not None else {})
    try:
        return Tool.from_definition(entry, handler=function, dialect="mcp", **given)
    except (RegistrationError, DialectError) as error:
        try:
            Tool.from_definition(entry, handler=function, dialect="mcp")
        except (RegistrationError, DialectError) as fault:
            raise Unusable(fault) from fault
        raise error from None  # it is the options


class Unusable(Exception):
    """A tool as its server describes it cannot be registered; `fault` says why."""

    def __init__(self, fault: RegistrationError | DialectError) -> None:
        """Keep the fault."""
        super().__init__(str(fault))
        self.fault = fault


def hinted(told: types.Tool, *, trusted: bool) -> dict[str, Any]:
    """The options that a server's hints come to.

    What makes toolrun more careful is believed of anybody; what makes it run something twice only of who is trusted.
    """
    hints = told.annotations or types.ToolAnnotations()
    options: dict[str, Any] = {"destructive": hints.destructive_hint is True}
    if trusted:
        options["effect"] = _effect(hints)
    return options


def _effect(hints: types.ToolAnnotations) -> Effect:
    if hints.read_only_hint:
        return "pure"
    return "idempotent" if hints.idempotent_hint else "once"


def _failure(error: MCPError) -> CallRejected | ServerGone:
    match error.code:
        case types.CONNECTION_CLOSED:
            return ServerGone(_LOST)
        case types.REQUEST_TIMEOUT:
            return CallRejected(_LATE, code=error.code)
        case code:
            return CallRejected(f"The tool's server rejected the call: {error.message}", code=code)
