"""`ToolRegistry`: the tools, by name, and the repair hooks that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeAlias, TypeVar, overload

from toolrun._core.exceptions import RegistrationError
from toolrun._core.marks import tools_of
from toolrun._core.names import resolve_name
from toolrun._core.repair import bind
from toolrun._core.tools import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from typing_extensions import Unpack

    from toolrun._core.calls import ToolDefinition
    from toolrun._core.repair import HookBinding, RepairHook
    from toolrun._core.seams import Wire
    from toolrun._core.tools import ToolOptions

P = ParamSpec("P")
R = TypeVar("R")
HookT = TypeVar("HookT", bound="RepairHook")
Prepare: TypeAlias = Callable[[Any, Sequence[Tool]], Iterable[Tool]]
"""Gets the deps of a turn and the tools, and returns the tools of the turn."""

PrepareT = TypeVar("PrepareT", bound=Prepare)


class _Preparation(NamedTuple):
    """What prepares a turn, and the names of the tools that it is asked about; None for all."""

    prepare: Prepare
    scope: frozenset[str] | None


def _renamed_hook(hook: HookBinding, names: Mapping[str, str]) -> HookBinding:
    if hook.tools is None:
        return hook
    return replace(hook, tools=frozenset(names[name] for name in hook.tools if name in names))


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

    def __init__(self, tools: Iterable[Tool] = (), *, reserved: Iterable[str] = (), strict: bool = False) -> None:
        """Begin with these tools.

        Args:
            tools: Tools to register.
            reserved: Names that no tool may have: those of the tools that the provider itself runs in the same
                requests, `"web_search"` say.
            strict: Definitions are strict if not asked for otherwise. Some providers' strict schemas require every
                parameter, and a model writes null for what it leaves out; calls are read accordingly: a null for a
                parameter that may be left out, and takes no null itself, leaves it out. Each is recorded.

        Raises:
            RegistrationError: Two tools have the same name, or one has a reserved one.
        """
        self.strict = strict
        self._reserved = frozenset(reserved)
        self._tools: dict[str, Tool] = {}
        self.orders_calls: bool = False
        """True if a tool has a conflict key or is a barrier: calls of a turn may have to wait for each other."""
        self._hooks: list[HookBinding] = []
        self._preparations: list[_Preparation] = []
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
            RegistrationError: Its name is taken or reserved.
        """
        if tool.name in self._reserved:
            raise RegistrationError(f"{tool.name!r} is reserved for a tool that the provider runs; pass another name=…")
        if tool.name in self._tools:
            raise RegistrationError(
                f"a tool named {tool.name!r} is registered already; give one of them another name=…"
            )
        self._tools[tool.name] = tool
        self.orders_calls |= tool.barrier or tool.conflict_key is not None

    def add_methods(self, instance: object, *, prefix: str = "") -> None:
        """Register the methods of an instance that are marked with `@tool`, bound to it.

        Args:
            instance: Of a class with marked methods.
            prefix: Goes before their names, to register several instances of a class.

        Raises:
            RegistrationError: No method is marked, one cannot be described, or a name is taken.
        """
        tools = list(tools_of(instance, prefix=prefix))
        ToolRegistry((*self, *tools), reserved=self._reserved)  # all of them, or none
        for found in tools:
            self.add(found)

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

    # -- registries of registries -----------------------------------------------------------

    def __or__(self, other: ToolRegistry) -> ToolRegistry:
        """Combine two registries: the tools, hooks, preparations and reserved names of both, in this order.

        The result is a registry of its own; what is registered in the parts later is not in it. A hook that is
        bound to no tools is asked about all of them. It is strict if one of them is.

        Raises:
            RegistrationError: A name is in both, or in one and reserved in the other.
        """
        combined = ToolRegistry(
            (*self, *other), reserved=self._reserved | other._reserved, strict=self.strict or other.strict
        )
        combined._hooks = list(dict.fromkeys((*self._hooks, *other._hooks)))
        combined._preparations = [*self._scoped_preparations(), *other._scoped_preparations()]
        return combined

    def filtered(
        self, keep: Callable[[Tool], bool] | None = None, *, tags: str | Iterable[str] | None = None
    ) -> ToolRegistry:
        """The tools for which a function says True, and that have at least one of the tags."""
        wanted = None if tags is None else {tags} if isinstance(tags, str) else set(tags)
        return self._derived(
            {
                tool.name: tool.name
                for tool in self
                if (keep is None or keep(tool)) and (wanted is None or not wanted.isdisjoint(tool.tags))
            }
        )

    def prefixed(self, prefix: str) -> ToolRegistry:
        """The same tools, each name with a prefix."""
        return self._derived({name: prefix + name for name in self._tools})

    def renamed(self, names: Mapping[str, str]) -> ToolRegistry:
        """The same tools, some under new names; hooks that are bound to them follow.

        Args:
            names: From registered names to new ones.

        Raises:
            RegistrationError: There is no tool of an old name, or a new one is taken or reserved.
        """
        missing = sorted(names.keys() - self._tools.keys())
        if missing:
            raise RegistrationError(
                f"no tools named {', '.join(map(repr, missing))}; registered: {', '.join(self.names)}"
            )
        return self._derived({name: names.get(name, name) for name in self._tools})

    def _derived(self, names: Mapping[str, str]) -> ToolRegistry:
        """The tools of some names under others."""
        derived = ToolRegistry(
            (
                tool if names[tool.name] == tool.name else tool.renamed(names[tool.name])
                for tool in self
                if tool.name in names
            ),
            reserved=self._reserved,
            strict=self.strict,
        )
        derived._hooks = [_renamed_hook(hook, names) for hook in self._hooks]
        derived._preparations = [
            _Preparation(item.prepare, frozenset(names[name] for name in item.scope or () if name in names))
            for item in self._scoped_preparations()
        ]
        return derived

    # -- one turn ---------------------------------------------------------------------------

    def prepare(self, function: PrepareT, /) -> PrepareT:
        """Register what decides which tools there are in a turn, as `@registry.prepare`; it stays as it is.

        Args:
            function: Gets `deps` and the tools, and returns those for the turn: some of them, others, or changed ones.
                The same deps have to give the same tools, since the request and the run both ask.

        Examples:
            >>> registry = ToolRegistry()
            >>> @registry.tool(tags=["admin"])
            ... def delete(user: str) -> None:
            ...     '''Delete a user.'''
            >>> @registry.prepare
            ... def visible(deps, tools):
            ...     return [tool for tool in tools if deps == "admin" or "admin" not in tool.tags]
            >>> len(registry.prepared("guest")), len(registry.prepared("admin"))
            (0, 1)
        """
        self._preparations.append(_Preparation(function, None))
        return function

    def prepared(self, deps: object = None) -> ToolRegistry:
        """The registry for one turn: what the `@registry.prepare` functions make of the tools.

        A runner asks it with the `deps` of the turn. Ask it with the same ones for the request:
        `registry.prepared(deps).definitions(wire)`.

        Raises:
            RegistrationError: What a function returned are not tools, or their names clash.
        """
        if not self._preparations:
            return self
        tools = list(self)
        for prepare, scope in self._preparations:
            mine = [tool for tool in tools if scope is None or tool.name in scope]
            found = list(prepare(deps, tuple(mine)))
            if not all(isinstance(tool, Tool) for tool in found):
                raise RegistrationError(f"{prepare!r} prepared {found!r}; it has to return tools")
            asked = {tool.name for tool in mine}
            place = next((place for place, tool in enumerate(tools) if tool.name in asked), 0)
            after = [tool for tool in tools[place:] if tool.name not in asked]
            tools = [*tools[:place], *found, *after]
        turn = ToolRegistry(tools, reserved=self._reserved, strict=self.strict)
        turn._hooks = self._hooks
        return turn

    def _scoped_preparations(self) -> list[_Preparation]:
        """The preparations, each bound to the tools that it is asked about now."""
        everything = frozenset(self._tools)
        return [
            _Preparation(item.prepare, everything if item.scope is None else item.scope) for item in self._preparations
        ]

    def find(self, readings: Sequence[str]) -> Tool | None:
        """Find the tool that exactly one of several readings of a name belongs to.

        Returns:
            The tool; None if no reading is a registered name, or more than one is.
        """
        if len(readings) == 1:
            return self._tools.get(readings[0])
        found = {reading: self._tools[reading] for reading in readings if reading in self._tools}
        return next(iter(found.values())) if len(found) == 1 else None

    def resolve_name(self, raw_name: str) -> str | None:
        """Find the registered name that a name in another spelling means: `functions.get-weather` is `get_weather`.

        Args:
            raw_name: As the model wrote it.

        Returns:
            The registered name; None if none is meant, or more than one could be. Nothing is matched by distance.
        """
        return resolve_name(raw_name, self._tools)

    def definitions(self, wire: str | Wire, *, strict: bool | None = None) -> list[Any]:
        """Write the tools as a provider's request takes them, as registered.

        Args:
            wire: A built-in wire's name, a dialect's name, or a wire itself.
            strict: Ask the provider to guarantee that calls follow the schemas. By default what the registry says.

        Returns:
            What goes into the request as `tools`; typed as Any, so that it fits the request types of every SDK.

        Raises:
            DialectError: No dialect has that name, it has no strict definitions, or it cannot express a tool; the
                message names the tool, the JSON path and the part, and says what to do.
        """
        from toolrun._core.dialects import get_dialect, write_definitions  # noqa: PLC0415  # reading streams needs none

        dialect = get_dialect(wire if isinstance(wire, str) else wire.dialect)
        return write_definitions(self.tool_definitions, dialect, strict=self.strict if strict is None else strict)

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
