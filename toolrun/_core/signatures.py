"""How a function takes its arguments: its parameters with their types, and how values get into them."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from toolrun._core.context import ToolContext
from toolrun._core.exceptions import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolrun._core.calls import FunctionKind

ToolFunction: TypeAlias = Callable[..., object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """How a function takes its arguments.

    Attributes:
        positional: Names of positional-only parameters, in order.
        context: Name of the `ToolContext` parameter; None if it has none.
        defaults: Defaults that must be given explicitly: those of positional-only parameters, and
            mutable ones, which are copied for each call.
        whole: Name of the one parameter that takes all arguments as a mapping; None normally.
    """

    positional: tuple[str, ...] = ()
    context: str | None = None
    defaults: Mapping[str, object]
    whole: str | None = None

    def bind(
        self, values: Mapping[str, object], context: ToolContext[Any] | None
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Put values into positions and keywords."""
        if not (self.positional or self.context or self.defaults or self.whole):
            return (), dict(values)
        if self.whole is not None:
            keywords: dict[str, object] = {self.whole: dict(values)}
        else:
            missing = {name: _fresh(value) for name, value in self.defaults.items() if name not in values}
            keywords = {**missing, **values}
        if self.context is not None:
            keywords[self.context] = context
        return tuple(keywords.pop(name) for name in self.positional if name in keywords), keywords


def _fresh(default: object) -> object:
    try:
        return copy.deepcopy(default)
    except Exception:  # noqa: BLE001  # it holds a lock, a client …: such a default is shared, as in Python
        return default


# -- what a callable is ---------------------------------------------------------------------


def innermost(function: ToolFunction) -> ToolFunction:
    """What a partial or a callable object calls in the end; its name and docstring are the tool's."""
    while isinstance(function, functools.partial | staticmethod):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return type(function).__call__ if not hasattr(function, "__name__") else function


def own_name(function: ToolFunction) -> str:
    """The name that the author gave the function; `""` for an object that has none."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", ""))


def kind_of(function: ToolFunction) -> FunctionKind:
    """Tell what calling it gives."""
    own = innermost(function)
    if inspect.iscoroutinefunction(own):
        return "coroutine"
    if inspect.isasyncgenfunction(own):
        return "async_generator"
    return "generator" if inspect.isgeneratorfunction(own) else "function"


# -- parameters -----------------------------------------------------------------------------


def parameters_of(function: ToolFunction, name: str) -> list[inspect.Parameter]:
    """The parameters that a call has to fill; what a partial has bound by name is not among them.

    Raises:
        RegistrationError: There is an unbound `self`, or no signature at all.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise RegistrationError(f"tool {name!r}: {error}; wrap it in a function with type hints") from error
    bound = _bound_names(function)
    parameters = [parameter for parameter in parameters if parameter.name not in bound]
    if parameters and _is_unbound_method(function, parameters[0]):
        raise RegistrationError(
            f"tool {name!r}: {function.__qualname__} is a method of a class and needs its {parameters[0].name};"
            " mark it with @toolrun.tool and register an instance with registry.add_methods(instance)"
        )
    return parameters


def _bound_names(function: ToolFunction) -> set[str]:
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names |= function.keywords.keys()
        function = function.func
    return names


def _is_unbound_method(function: ToolFunction, first: inspect.Parameter) -> bool:
    if not inspect.isfunction(function) or first.name not in ("self", "cls") or first.annotation is not first.empty:
        return False
    around, _, _ = function.__qualname__.rpartition(".")
    return bool(around) and not around.endswith("<locals>")


def hints_of(function: ToolFunction, name: str) -> dict[str, Any]:
    """The types of the parameters, whether they are written as types or as text.

    Raises:
        RegistrationError: A name in an annotation cannot be found.
    """
    plain = inspect.unwrap(innermost(function))
    try:
        return get_type_hints(plain, localns=dict(_scope(plain)), include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise RegistrationError(
            f"tool {name!r}: {_culprit(plain)} cannot be resolved ({error}); a signature needs types that a JSON Schema"
            " can describe, and their names must be importable from the function's module or enclosed by it"
        ) from error


def _scope(function: ToolFunction) -> Iterator[tuple[str, object]]:
    """The names that annotations may use besides the module's: those of the function around it, type parameters."""
    around, nested, _ = getattr(function, "__qualname__", "").rpartition(".<locals>.")
    frame = sys._getframe() if nested else None  # noqa: SLF001  # the documented way to the callers
    while frame is not None:
        code = frame.f_code
        if code.co_qualname == around and frame.f_globals is getattr(function, "__globals__", None):
            yield from frame.f_locals.items()
            break
        frame = frame.f_back
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        if _is_set(cell):
            yield name, cell.cell_contents
    for parameter in getattr(function, "__type_params__", ()):
        yield parameter.__name__, parameter


def _is_set(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # an unset cell raises
    except ValueError:
        return False
    return True


def _culprit(function: ToolFunction) -> str:
    """The first parameter whose annotation cannot be resolved alone, by name."""
    for name, annotation in getattr(function, "__annotations__", {}).items():
        probe = types.FunctionType((lambda: None).__code__, getattr(function, "__globals__", {}))
        probe.__annotations__ = {name: annotation}
        try:
            get_type_hints(probe, localns=dict(_scope(function)))
        except Exception:  # noqa: BLE001  # whatever it was, this is where
            return f"parameter {name!r} has the annotation {annotation!r}, which"
    return "an annotation"


# -- the context ----------------------------------------------------------------------------


def context_of(parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any], name: str) -> str | None:
    """The name of the parameter that takes the `ToolContext`; None if there is none.

    Raises:
        RegistrationError: There are several.
    """
    found = [parameter.name for parameter in parameters if is_context(hints.get(parameter.name))]
    if len(found) > 1:
        raise RegistrationError(f"tool {name!r}: {' and '.join(found)} are ToolContexts; there is one for a call")
    return found[0] if found else None


def is_context(annotation: object) -> bool:
    """Tell whether an annotation asks for the `ToolContext`."""
    bare = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if get_origin(bare) in (Union, types.UnionType):
        return any(is_context(arm) for arm in get_args(bare))
    return bare is ToolContext or get_origin(bare) is ToolContext


_STARRED: Final = frozenset((inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD))

# -- handlers -------------------------------------------------------------------------------


def handler_signature(handler: ToolFunction, names: set[str], required: set[str], tool: str) -> Signature:
    """How a handler takes the properties of a schema: by name, as keywords, or as one dict.

    Raises:
        RegistrationError: It takes other names, or needs one that a call may leave out.
    """
    parameters = parameters_of(handler, tool)
    try:
        context = context_of(parameters, hints_of(handler, tool), tool)
    except RegistrationError:
        context = None  # the schema says what the types are; annotations need not be resolvable
    takes = [item for item in parameters if item.name != context]
    named = [item for item in takes if item.kind not in _STARRED]
    starred = {item.kind for item in takes} & _STARRED
    if starred == {inspect.Parameter.VAR_KEYWORD} or (not starred and names == {item.name for item in named}):
        needed = {item.name for item in named if item.default is item.empty}
        if needed - required:
            raise RegistrationError(
                f"tool {tool!r}: the handler takes {sorted(needed - required)}, which the schema does not require;"
                " give them defaults, or require them"
            )
        return function_signature(parameters, context)
    if len(takes) == len(named) == 1 and takes[0].name not in names:
        positional = tuple(item.name for item in parameters if item.kind is item.POSITIONAL_ONLY)
        return Signature(positional=positional, context=context, defaults={}, whole=takes[0].name)
    raise RegistrationError(
        f"tool {tool!r}: the handler takes {list(map(str, takes))}, the schema has {sorted(names)};"
        " name the parameters after the properties, take **kwargs, or take one dict"
    )


def function_signature(parameters: Sequence[inspect.Parameter], context: str | None) -> Signature:
    """How a function takes the parameters that it names."""
    positional = tuple(item.name for item in parameters if item.kind is item.POSITIONAL_ONLY)
    explicit = {
        item.name: item.default
        for item in parameters
        if item.name != context
        and item.default is not item.empty
        and (item.kind is item.POSITIONAL_ONLY or _is_mutable(item.default))
    }
    return Signature(positional=positional, context=context, defaults=explicit)


def model_signature(handler: ToolFunction, tool: str) -> tuple[Signature, str]:
    """How a handler takes one object, and the name of the parameter for it.

    Raises:
        RegistrationError: It has more or fewer parameters than one beside a `ToolContext`.
    """
    parameters = parameters_of(handler, tool)
    try:
        context = context_of(parameters, hints_of(handler, tool), tool)
    except RegistrationError:
        context = None
    takes = [item for item in parameters if item.name != context]
    named = [item for item in takes if item.kind not in _STARRED]
    needed = [item for item in named if item.default is item.empty] or named[:1]
    if len(needed) != 1:
        raise RegistrationError(
            f"tool {tool!r}: the handler takes {list(map(str, takes))}; it needs one parameter, for the model"
        )
    used = [item for item in parameters if item in needed or item.name == context]
    return function_signature(used, context), needed[0].name


def _is_mutable(default: object) -> bool:
    if isinstance(default, tuple):
        return any(_is_mutable(item) for item in default)
    return isinstance(default, list | dict | set | bytearray)
