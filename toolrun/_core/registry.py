"""`ToolRegistry`: the tools, by name, and the repair hooks that belong to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from toolrun._core.dialects import get_dialect, write_definition
from toolrun._core.exceptions import RegistrationError
from toolrun._core.repair import bind
from toolrun._core.tools import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from typing_extensions import Unpack

    from toolrun._core.calls import ToolDefinition
    from toolrun._core.repair import HookBinding, RepairHook
    from toolrun._core.tools import ToolOptions

P = ParamSpec("P")
R = TypeVar("R")
HookT = TypeVar("HookT", bound="RepairHook")


class ToolRegistry:
    """Tools by name. Declaring one twice is an error; only registered names are names.

    Examples:
        >>> registry = ToolRegistry()
        >>> @registry.tool
        ... def double(n: int) -> int:
        ...     '''Twice the number.'''
        ...     return 2 * n
        >>> double(4), "double" in registry
        (8, True)
        >>> registry.definitions("openai-chat")[0]["function"]["name"]
        'double'
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        """Begin with these tools."""
        self._tools: dict[str, Tool] = {}
        self._hooks: list[HookBinding] = []
        for tool in tools:
            self.add(tool)

    # -- tools ------------------------------------------------------------------------------

    @overload
    def tool(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def tool(
        self, /, *, name: str | None = None, description: str | None = None, **options: Unpack[ToolOptions]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    def tool(
        self,
        function: Callable[P, R] | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[ToolOptions],
    ) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
        """Register a function as a tool, as `@registry.tool` or `@registry.tool(...)`; it stays as it is.

        Args:
            function: Sync or async.
            name: By default the function's own.
            description: By default what the docstring says before its sections.
            **options: See `ToolOptions`.

        Raises:
            RegistrationError: A parameter cannot be described, the name is taken, or options contradict.
        """

        def register(target: Callable[P, R]) -> Callable[P, R]:
            self.add(Tool.from_function(target, name=name, description=description, **options))
            return target

        return register if function is None else register(function)

    def add(self, tool: Tool) -> None:
        """Register a tool.

        Raises:
            RegistrationError: Its name is taken.
        """
        if tool.name in self._tools:
            raise RegistrationError(
                f"a tool named {tool.name!r} is registered already; give one of them another name=…"
            )
        self._tools[tool.name] = tool

    def __getitem__(self, name: str) -> Tool:
        """Get a tool by its registered name.

        Raises:
            KeyError: There is none.
        """
        return self._tools[name]

    def __contains__(self, name: object) -> bool:
        """Tell whether a tool has this name."""
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        """Go through the tools, as registered."""
        return iter(self._tools.values())

    def __len__(self) -> int:
        """Count the tools."""
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        """The registered names, sorted."""
        return tuple(sorted(self._tools))

    def find(self, readings: Iterable[str]) -> Tool | None:
        """Find the tool that exactly one of several readings of a name belongs to.

        Returns:
            The tool; None if no reading is a registered name, or more than one is.
        """
        found = {reading: self._tools[reading] for reading in readings if reading in self._tools}
        return next(iter(found.values())) if len(found) == 1 else None

    def definitions(self, wire: str) -> list[Any]:
        """Write the tools as a provider's request takes them, as registered.

        Args:
            wire: A built-in wire's name, or a dialect's.

        Returns:
            What goes into the request as `tools`; typed as Any, so that it fits the request types of every SDK.

        Raises:
            DialectError: No dialect has that name, or one cannot express a tool; the message says which part.
        """
        dialect = get_dialect(_DIALECT_OF.get(wire, wire))
        return [write_definition(tool.definition, dialect) for tool in self]

    @property
    def tool_definitions(self) -> Sequence[ToolDefinition]:
        """The definitions as they are, in no provider's dialect."""
        return [tool.definition for tool in self]

    # -- repair hooks -----------------------------------------------------------------------

    @overload
    def repair(self, hook: HookT, /) -> HookT: ...
    @overload
    def repair(
        self,
        /,
        *,
        on: str | Iterable[str] | None = None,
        tools: str | Iterable[str] | None = None,
        first: bool = False,
    ) -> Callable[[HookT], HookT]: ...
    def repair(
        self,
        hook: HookT | None = None,
        /,
        *,
        on: str | Iterable[str] | None = None,
        tools: str | Iterable[str] | None = None,
        first: bool = False,
    ) -> HookT | Callable[[HookT], HookT]:
        """Register a repair hook, as `@registry.repair` or `@registry.repair(on="parse")`.

        Args:
            hook: Sync or async; see `toolrun.abc.RepairHook`.
            on: Faults it is asked about: `"parse"`, `"schema"`, `"unknown_tool"`, `"not_object"`,
                `"identity"`, and `"incomplete"`, which must be named to be asked about. By default all
                but that one.
            tools: Names of the tools it is asked about; by default all.
            first: Ask it before the built-in chain.

        Raises:
            RegistrationError: It is not callable, or a fault is unknown.
        """

        def register(target: HookT) -> HookT:
            self._hooks.append(bind(target, on=on, tools=tools, first=first))
            return target

        return register if hook is None else register(hook)

    @property
    def hooks(self) -> tuple[HookBinding, ...]:
        """The hooks, as registered."""
        return tuple(self._hooks)


_DIALECT_OF = {"anthropic-messages": "anthropic"}
"""Dialects whose name is not that of the wire; others are called the same."""
