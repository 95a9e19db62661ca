"""`Tool`: a definition, a strict validator, a function, and what may be done with it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from typing_extensions import TypedDict, Unpack

from toolrun._core import json_schema, schema
from toolrun._core.calls import ToolDefinition
from toolrun._core.exceptions import RegistrationError

if TYPE_CHECKING:
    from toolrun._core.calls import Effect
    from toolrun._core.context import ToolContext
    from toolrun._core.json_schema import Validator
    from toolrun._core.records import JsonObject, RepairFloor
    from toolrun._core.retry import Retry
    from toolrun._core.schema import Signature

ToolFunction: TypeAlias = Callable[..., object]
Timeout: TypeAlias = float | Literal["default"] | None

_EFFECTS: Final = ("once", "idempotent", "pure")
_FLOORS: Final = ("never", "lossless", "schema_unique", "lossy")


class ToolOptions(TypedDict, total=False):
    """The options of a tool, the same wherever one is declared.

    Keys:
        timeout: Seconds for one attempt. `"default"` takes the runner's; None is no limit.
        retry: When to run a failed call again; needs `effect="idempotent"` or `"pure"`.
        effect: What running it twice would do: `"once"` (default), `"idempotent"`, `"pure"`.
        destructive: True: only exact or lossless arguments, or a person's hook, ever run it.
        repair: The worst repair that may run it: `"never"`, `"lossless"`, `"schema_unique"` (default), `"lossy"`.
        metadata: Anything of your own.
    """

    timeout: Timeout
    retry: Retry | None
    effect: Effect
    destructive: bool
    repair: RepairFloor
    metadata: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that a model may call. Make one with `from_function` or `from_json_schema`.

    Attributes:
        definition: What models are told.
        validator: Checks arguments.
        signature: How the function takes them.
        function: The function, as the author wrote it.
        is_async: True if calling it gives an awaitable.
        timeout: See `ToolOptions`, as for the fields after it.

    Raises:
        RegistrationError: The options contradict each other.
    """

    definition: ToolDefinition
    validator: Validator
    signature: Signature
    function: ToolFunction
    is_async: bool
    timeout: Timeout = "default"
    retry: Retry | None = None
    effect: Effect = "once"
    destructive: bool = False
    repair: RepairFloor = "schema_unique"
    metadata: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        if self.effect not in _EFFECTS:
            raise RegistrationError(f"tool {self.name!r}: effect must be one of {_EFFECTS}, not {self.effect!r}")
        if self.repair not in _FLOORS:
            raise RegistrationError(f"tool {self.name!r}: repair must be one of {_FLOORS}, not {self.repair!r}")
        if self.retry is not None and self.effect == "once":
            raise RegistrationError(
                f"tool {self.name!r}: retry runs it again, and effect='once' says that it must not be;"
                " declare effect='idempotent' or 'pure' if that is so"
            )
        if isinstance(self.timeout, int | float) and not self.timeout > 0:
            raise RegistrationError(f"tool {self.name!r}: timeout must be more than 0 seconds or None")

    @property
    def name(self) -> str:
        """The registered name."""
        return self.definition.name

    @property
    def text_parameter(self) -> str | None:
        """The one string parameter that takes the free text of a custom call; None if there is no such one."""
        properties = self.definition.input_schema.get("properties")
        if not isinstance(properties, dict) or len(properties) != 1:
            return None
        ((name, described),) = properties.items()
        return name if isinstance(described, dict) and described.get("type") == "string" else None

    def bind(
        self, values: Mapping[str, object], context: ToolContext[Any]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Put validated values into the function's positions and keywords."""
        return self.signature.bind(values, context)

    @classmethod
    def from_function(
        cls,
        function: ToolFunction,
        *,
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """Make a tool of a function: schema from its type hints, descriptions from its docstring.

        Args:
            function: Sync or async; also a bound method, a partial or a callable object.
            name: By default the function's own.
            description: By default what the docstring says before its sections.
            **options: See `ToolOptions`.

        Raises:
            RegistrationError: A parameter cannot be described, it has no name, or options contradict.

        Examples:
            >>> def add(a: int, b: int = 1) -> int:
            ...     '''Add two numbers.'''
            ...     return a + b
            >>> tool = Tool.from_function(add)
            >>> tool.definition.description, tool.definition.input_schema["required"]
            ('Add two numbers.', ['a'])
        """
        if not callable(function):
            raise RegistrationError(f"a tool needs a function, not {function!r}")
        own = _innermost(function)
        if inspect.isclass(own):
            raise RegistrationError(f"{own.__name__!r} is a class; wrap it in a function with type hints")
        if inspect.isgeneratorfunction(own) or inspect.isasyncgenfunction(own):
            raise RegistrationError(f"{function!r} is a generator; a tool returns its result, so collect it first")
        summary, described = _read_docstring(inspect.getdoc(own))
        input_schema, validator, signature = schema.from_function(function, described)
        definition = ToolDefinition(
            name=_checked_name(name or _own_name(function), function),
            description=summary if description is None else description,
            input_schema=input_schema,
        )
        return cls(
            definition=definition,
            validator=validator,
            signature=signature,
            function=function,
            is_async=_is_async(own),
            **options,
        )

    @classmethod
    def from_json_schema(
        cls,
        *,
        name: str,
        input_schema: Mapping[str, object],
        handler: ToolFunction,
        description: str = "",
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """Make a tool of a JSON Schema and a handler.

        Args:
            name: What the model calls it.
            input_schema: For an object; objects that do not say otherwise are closed.
            handler: Sync or async. It gets the arguments as keywords if it has `**kwargs` or names each
                property; a handler with one other parameter gets them there as one dict.
                A `ToolContext` parameter gets the context.
            description: What the model is told.
            **options: See `ToolOptions`.

        Raises:
            RegistrationError: The schema is not valid, refers to a place outside itself, or does not
                fit the handler.
        """
        checked = _checked_name(name, handler)
        closed, validator = json_schema.from_json_schema(input_schema, checked)
        return cls(
            definition=ToolDefinition(name=checked, description=description, input_schema=closed),
            validator=validator,
            signature=_handler_signature(handler, closed, checked),
            function=handler,
            is_async=_is_async(_innermost(handler)),
            **options,
        )


def _handler_signature(handler: ToolFunction, input_schema: JsonObject, name: str) -> Signature:
    properties = input_schema["properties"]
    names = set(properties) if isinstance(properties, dict) else set()
    parameters = list(inspect.signature(handler).parameters.values())
    context = next((item.name for item in parameters if schema.is_context_parameter(handler, item)), None)
    takes = [item for item in parameters if item.name != context]
    if any(item.kind is item.VAR_KEYWORD for item in takes) or names == {item.name for item in takes}:
        positional = tuple(item.name for item in parameters if item.kind is item.POSITIONAL_ONLY)
        return schema.Signature(positional=positional, context=context, defaults={})
    if len(takes) == 1 and takes[0].name not in names and takes[0].kind is not takes[0].VAR_POSITIONAL:
        whole = takes[0].name
        positional = tuple(item.name for item in parameters if item.kind is item.POSITIONAL_ONLY)
        return schema.Signature(positional=positional, context=context, defaults={}, whole=whole)
    raise RegistrationError(
        f"tool {name!r}: the handler takes {[item.name for item in takes]}, the schema has {sorted(names)};"
        " name the parameters after the properties, take **kwargs, or take one dict"
    )


def _checked_name(name: str, function: ToolFunction) -> str:
    if not name or name == "<lambda>":
        raise RegistrationError(f"{function!r} has no name of its own; pass name=…")
    return name


def _own_name(function: ToolFunction) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", ""))


def _innermost(function: ToolFunction) -> ToolFunction:
    """What a partial or a callable object calls in the end; its name and docstring are the tool's."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return type(function).__call__ if not hasattr(function, "__name__") else function


def _is_async(function: ToolFunction) -> bool:
    return inspect.iscoroutinefunction(function)


def _read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Take the description and the parameters' descriptions; whatever the text is, nothing is raised."""
    if not text:
        return "", {}
    import docstring_parser  # noqa: PLC0415  # needed only where tools are declared

    try:
        parsed = docstring_parser.parse(text)
    except Exception:  # noqa: BLE001  # a docstring is prose; no parser is sure of it
        return text.strip(), {}
    described = {item.arg_name: item.description for item in parsed.params if item.description}
    return (parsed.description or "").strip(), described
