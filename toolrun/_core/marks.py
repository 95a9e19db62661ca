"""`@tool`: marks on methods, which become tools once there is an instance to bind them to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar, overload

from toolrun._core.exceptions import RegistrationError
from toolrun._core.tools import Tool

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from toolrun._core.tools import ToolOptions

P = ParamSpec("P")
R = TypeVar("R")

_MARK: Final = "__toolrun_tool__"


class _Mark(NamedTuple):
    """What `@tool` keeps on a function until an instance is registered."""

    name: str | None
    description: str | None
    options: ToolOptions


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Unpack[ToolOptions]
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a method as a tool, as `@tool` or `@tool(...)`; `registry.add_methods(instance)` registers it.

    The function stays as it is, and nothing is registered yet. A method that overrides a marked one is marked too.

    Args:
        function: A method, a static method or a class method.
        name: By default the method's own.
        description: By default what the docstring says before its sections.
        **options: See `ToolOptions`.

    Examples:
        >>> class Account:
        ...     balance = 5
        ...     @tool
        ...     def read_balance(self) -> int:
        ...         return self.balance
        >>> [found.name for found in tools_of(Account())]
        ['read_balance']
    """

    def mark(target: Callable[P, R]) -> Callable[P, R]:
        setattr(target, _MARK, _Mark(name, description, options))
        return target

    return mark if function is None else mark(function)


def tools_of(instance: object, *, prefix: str = "") -> Iterator[Tool]:
    """Make tools of the marked methods of an instance, bound to it, in the order of their definition.

    Raises:
        RegistrationError: It is a class, it has no marked method, or one cannot be described.
    """
    if inspect.isclass(instance):
        raise RegistrationError(f"{instance.__name__} is a class; pass an instance of it")
    marks = _marks(type(instance))
    if not marks:
        raise RegistrationError(f"{type(instance).__name__} has no method that is marked with @tool")
    for attribute, (name, description, options) in marks.items():
        method = getattr(instance, attribute)
        yield Tool.from_function(method, name=prefix + (name or attribute), description=description, **options)


def _marks(cls: type) -> dict[str, _Mark]:
    marks: dict[str, _Mark] = {}
    for base in reversed(cls.__mro__):
        for attribute, value in vars(base).items():
            found = getattr(value, _MARK, None) or getattr(getattr(value, "__func__", None), _MARK, None)
            if isinstance(found, _Mark):
                marks[attribute] = found
    return marks
