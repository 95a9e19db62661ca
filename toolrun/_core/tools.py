"""`Tool`: a definition, a strict validator, a function, and what may be done with it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from typing_extensions import TypedDict, Unpack

from toolrun._core import json_schema, schema
from toolrun._core.calls import DefinitionOrigin, ToolDefinition
from toolrun._core.docstrings import read_docstring
from toolrun._core.exceptions import RegistrationError
from toolrun._core.seams import Executor
from toolrun._core.signatures import Signature, ToolFunction, handler_signature, innermost, kind_of, own_name

if TYPE_CHECKING:
    from toolrun._core.approval import Approver
    from toolrun._core.calls import Effect, FunctionKind
    from toolrun._core.context import Report, ToolContext
    from toolrun._core.json_schema import Validator
    from toolrun._core.records import RepairFloor
    from toolrun._core.retry import Retry

Timeout: TypeAlias = float | Literal["default"] | None
ResultLimit: TypeAlias = int | Literal["default"] | None

ConflictKey: TypeAlias = str | Callable[[Mapping[str, object]], object] | None

_EFFECTS: Final = ("once", "idempotent", "pure")
_FLOORS: Final = ("never", "lossless", "schema_unique", "lossy")
_LEAST_RESULT_LIMIT: Final = 200  # room for the notice that something is missing, and for something else


class ToolOptions(TypedDict, total=False):
    """The options of a tool, the same wherever one is declared.

    Keys:
        timeout: Seconds for one attempt. `"default"` takes the runner's; None is no limit.
        retry: When to run a failed call again; needs `effect="idempotent"` or `"pure"`.
        effect: What running it twice would do: `"once"` (default), `"idempotent"`, `"pure"`.
        destructive: True: only exact or lossless arguments, or a person's hook, ever run it.
        repair: The worst repair that may run it: `"never"`, `"lossless"`, `"schema_unique"` (default), `"lossy"`.
        executor: Where it runs: `"inline"` (in the event loop), `"thread"`, `"process"`, the name of a plugin, or an
            `Executor`. None takes the runner's.
        approval: Whether somebody has to approve a call before it runs: True asks the runner's approver, an `Approver`
            is asked itself. Without a runner's approver the call is deferred.
        max_concurrency: Calls of it that run at once, over all turns of a runner in one event loop; None for no limit.
        group: The name of a group that shares a limit, which the runner's `Limits` sets.
        conflict_key: Calls of a turn with the same key run one after the other, in call order: a key, or a function that
            gets the arguments and returns one.
        barrier: True: in a turn, it waits for all calls before it, and those after it wait for it.
        tags: Words to filter tools by.
        result_limit: Characters of its results that the model is told. `"default"` takes the runner's; None is no limit.
        metadata: Anything of your own.
        strict: False takes what pydantic's lax mode takes (`"5"` for an int); for tools with Python types.
        open: True admits keys that the schema does not have. They reach `**kwargs`, or nothing.
        eager: True starts a call before the end of the stream, as soon as the wire proves it whole.
    """

    timeout: Timeout
    retry: Retry | None
    effect: Effect
    destructive: bool
    repair: RepairFloor
    executor: Executor | str | None
    approval: bool | Approver
    max_concurrency: int | None
    group: str | None
    conflict_key: ConflictKey
    barrier: bool
    tags: Iterable[str]
    result_limit: ResultLimit
    metadata: Mapping[str, object]
    strict: bool
    open: bool
    eager: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a model may call. Make one with `from_function`, `from_model`, `from_json_schema` or `from_definition`.

    Attributes:
        definition: What models are told.
        validator: Checks arguments.
        signature: How the function takes them.
        function: The function, as the author wrote it; None for a tool that is only declared.
        kind: What calling the function gives.
        timeout: See `ToolOptions`, as for the fields after it.

    Raises:
        RegistrationError: The options contradict each other.
    """

    definition: ToolDefinition
    validator: Validator
    signature: Signature
    function: ToolFunction | None
    kind: FunctionKind = "function"
    timeout: Timeout = "default"
    retry: Retry | None = None
    effect: Effect = "once"
    destructive: bool = False
    repair: RepairFloor = "schema_unique"
    executor: Executor | str | None = None
    approval: bool | Approver = False
    max_concurrency: int | None = None
    group: str | None = None
    conflict_key: ConflictKey = None
    barrier: bool = False
    tags: frozenset[str] = frozenset()
    result_limit: ResultLimit = "default"
    metadata: Mapping[str, object] = field(default_factory=dict)
    strict: bool = True
    open: bool = False
    eager: bool = False

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
        if self.max_concurrency is not None and not self.max_concurrency >= 1:
            raise RegistrationError(f"tool {self.name!r}: max_concurrency must be at least 1 or None")
        if not isinstance(self.approval, bool) and not callable(self.approval):
            raise RegistrationError(f"tool {self.name!r}: approval must be True, False or an approver")
        if not isinstance(self.executor, Executor | str | None):
            raise RegistrationError(
                f"tool {self.name!r}: executor must be a name or an Executor, not {self.executor!r}"
            )
        if self.result_limit != "default":
            check_result_limit(f"tool {self.name!r}", self.result_limit)
        if isinstance(self.timeout, int | float) and not self.timeout > 0:
            raise RegistrationError(f"tool {self.name!r}: timeout must be more than 0 seconds or None")

    @property
    def name(self) -> str:
        """The registered name."""
        return self.definition.name

    @property
    def is_async(self) -> bool:
        """True if the function runs in an event loop."""
        return self.kind in ("coroutine", "async_generator")

    def runnable(self, report: Report | None = None) -> ToolFunction:
        """What an executor calls: the function, or for a generator one that returns its last item.

        Args:
            report: Told of every item of a generator.

        Raises:
            RegistrationError: The tool is only declared.
        """
        if self.function is None:
            raise RegistrationError(f"tool {self.name!r} is only declared: there is no function to run here")
        if self.kind == "generator":
            return functools.partial(_last_item, report, cast("Callable[..., Iterator[object]]", self.function))
        if self.kind == "async_generator":
            return functools.partial(
                _last_item_async, report, cast("Callable[..., AsyncGenerator[object]]", self.function)
            )
        return self.function

    @property
    def text_parameter(self) -> str | None:
        """The one string parameter that takes the free text of a custom call; None if there is no such one."""
        properties = self.definition.input_schema.get("properties")
        if not isinstance(properties, dict) or len(properties) != 1:
            return None
        ((name, described),) = properties.items()
        return name if isinstance(described, dict) and described.get("type") == "string" else None

    def bind(
        self, values: Mapping[str, object], context: ToolContext[Any] | None
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Put validated values into the function's positions and keywords."""
        return self.signature.bind(values, context)

    def renamed(self, name: str) -> Tool:
        """The same tool under another name.

        Raises:
            RegistrationError: The name is empty.
        """
        return replace(self, definition=replace(self.definition, name=_checked_name(name, self.function)))

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
            function: Sync or async; also a bound method, a partial, a callable object or a generator, whose
                last item is the result. `**kwargs` admits further arguments of its type.
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
        own = innermost(function)
        if inspect.isclass(own):
            raise RegistrationError(f"{own.__name__!r} is a class; wrap it in a function with type hints")
        called = _checked_name(name or own_name(function), function)
        docstring = read_docstring(inspect.getdoc(own))
        input_schema, validator, signature = schema.from_function(
            function, docstring.parameters, called, **_validation(options)
        )
        return cls(
            definition=ToolDefinition(
                name=called,
                description=docstring.summary if description is None else description,
                input_schema=input_schema,
            ),
            validator=validator,
            signature=signature,
            function=function,
            kind=kind_of(function),
            **_fields(options),
        )

    @classmethod
    def from_model(
        cls,
        model: type[Any],
        handler: ToolFunction | None,
        *,
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """Make a tool of a class with fields and a handler for its objects.

        Args:
            model: A pydantic model, a dataclass or a TypedDict; recursive ones too.
            handler: Gets the object as its one parameter, beside a `ToolContext` if it wants one; None declares
                the tool only, for calls that are executed elsewhere.
            name: By default the handler's own, or without a handler the class's.
            description: By default what the handler's docstring says before its sections, else the class's.
            **options: See `ToolOptions`.

        Raises:
            RegistrationError: The class is not described as an object, or the handler does not take one.

        Examples:
            >>> import pydantic
            >>> class Order(pydantic.BaseModel):
            ...     '''An order for the kitchen.'''
            ...     dish: str
            >>> tool = Tool.from_model(Order, lambda order: order.dish, name="order")
            >>> tool.definition.description, list(tool.definition.input_schema["properties"])
            ('An order for the kitchen.', ['dish'])
        """
        called = _checked_name(name or (model.__name__ if handler is None else own_name(handler)), handler)
        input_schema, validator, signature = schema.from_model(model, handler, called, **_validation(options))
        of_class = read_docstring(str(input_schema.pop("description", ""))).summary
        of_handler = "" if handler is None else read_docstring(inspect.getdoc(innermost(handler))).summary
        return cls(
            definition=ToolDefinition(
                name=called,
                description=(of_handler or of_class) if description is None else description,
                input_schema=input_schema,
            ),
            validator=validator,
            signature=signature,
            function=handler,
            kind="function" if handler is None else kind_of(handler),
            **_fields(options),
        )

    @classmethod
    def from_json_schema(
        cls,
        *,
        name: str,
        input_schema: Mapping[str, object],
        handler: ToolFunction | None = None,
        description: str = "",
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """Make a tool of a JSON Schema and a handler.

        Args:
            name: What the model calls it.
            input_schema: For an object; objects that do not say otherwise are closed.
            handler: Sync or async. It gets the arguments as keywords if it has `**kwargs` or names each
                property; a handler with one other parameter gets them there as one dict.
                A `ToolContext` parameter gets the context. None declares the tool only: its calls are
                validated, and executed elsewhere.
            description: What the model is told.
            **options: See `ToolOptions`.

        Raises:
            RegistrationError: The schema is not valid, refers to a place outside itself, or does not
                fit the handler.
        """
        checked = _checked_name(name, handler)
        if not options.get("strict", True):
            raise RegistrationError(f"tool {name!r}: strict=False is for Python types; a JSON Schema has no lax mode")
        told, validator = json_schema.from_json_schema(input_schema, checked, closed=not options.get("open", False))
        properties, required = told["properties"], told.get("required")
        names = set(properties) if isinstance(properties, dict) else set()
        needed = {item for item in required if isinstance(item, str)} if isinstance(required, list) else set()
        return cls(
            definition=ToolDefinition(name=checked, description=description, input_schema=told),
            validator=validator,
            signature=Signature(defaults={}) if handler is None else handler_signature(handler, names, needed, checked),
            function=handler,
            kind="function" if handler is None else kind_of(handler),
            **_fields(options),
        )

    @classmethod
    def from_definition(
        cls,
        definition: Mapping[str, object],
        *,
        handler: ToolFunction | None = None,
        dialect: str | None = None,
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """Make a tool of a definition that exists already, as a provider's request or an MCP server has it.

        `definitions` of the same dialect writes it back as it came, whatever else is in it.

        Args:
            definition: An entry of `tools` as OpenAI, Anthropic, Bedrock, Mistral, Cohere or Ollama take it, one
                function declaration of Gemini, or a tool of an MCP server; as a dict.
            handler: As for `from_json_schema`; None declares a tool that is executed elsewhere.
            dialect: The name of the dialect or wire that it is written for. By default its shape tells; that of
                `openai-chat` is also used by others.
            **options: See `ToolOptions`.

        Raises:
            RegistrationError: It is no definition of a function, the schema is not valid or refers to a place outside
                itself, or it does not fit the handler.
            DialectError: There is no such dialect.

        Examples:
            >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            >>> tool = Tool.from_definition({"name": "double", "input_schema": schema}, handler=lambda n: 2 * n)
            >>> tool.name, tool.definition.origin.dialect
            ('double', 'anthropic')
        """
        from toolrun._core.dialects import read_definition  # noqa: PLC0415  # few tools come from definitions

        read = read_definition(definition, dialect)
        tool = cls.from_json_schema(
            name=read.name, input_schema=read.schema, handler=handler, description=read.description, **options
        )
        origin = DefinitionOrigin(
            dialect=read.dialect,
            entry=read.entry,
            description=read.description,
            input_schema=tool.definition.input_schema,
        )
        return replace(tool, definition=replace(tool.definition, origin=origin))


def check_result_limit(owner: str, limit: int | None) -> None:
    """Refuse a limit that leaves no room.

    Raises:
        RegistrationError: It is no number, or too small.
    """
    told: object = limit
    if told is not None and not (isinstance(told, int) and told >= _LEAST_RESULT_LIMIT):
        raise RegistrationError(f"{owner}: result_limit must be at least {_LEAST_RESULT_LIMIT} characters or None")


def _last_item(
    report: Report | None, function: Callable[..., Iterator[object]], /, *args: object, **kwargs: object
) -> object:
    item: object = None
    for item in function(*args, **kwargs):
        if report is not None:
            report(item)
    return item


async def _last_item_async(
    report: Report | None, function: Callable[..., AsyncGenerator[object]], /, *args: object, **kwargs: object
) -> object:
    item: object = None
    async with aclosing(function(*args, **kwargs)) as items:
        async for item in items:
            if report is not None:
                report(item)
    return item


class _Validation(TypedDict):
    strict: bool
    closed: bool


def _validation(options: ToolOptions) -> _Validation:
    return {"strict": options.get("strict", True), "closed": not options.get("open", False)}


def _fields(options: ToolOptions) -> dict[str, Any]:
    tags = options.get("tags", ())
    return {**options, "tags": frozenset([tags] if isinstance(tags, str) else tags)}


def _checked_name(name: object, function: ToolFunction | None) -> str:
    if not isinstance(name, str) or not name or name == "<lambda>":
        raise RegistrationError(f"{function!r} has no name of its own; pass name=…")
    return name
