"""From a signature or a JSON Schema to what a model is told and to a strict validator.

Strict: `"5"` is not an int, `true` is not 1, an unknown key is an error. Coercion belongs to repair,
where it is recorded.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    NotRequired,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict  # typing's own has no fields that pydantic can read before 3.12

from toolrun._core.context import ToolContext
from toolrun._core.exceptions import RegistrationError
from toolrun._core.json_schema import ISSUE_CODES, MAX_ISSUES, Validator, close_objects, json_path
from toolrun._core.records import ArgumentIssue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic.json_schema import GenerateJsonSchema

    from toolrun._core.records import JsonObject

_UNION: Final = "a signature needs types that a JSON Schema can describe"
_SCHEMA_ERRORS: Final = (PydanticUserError, PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, NameError)


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
        self, values: Mapping[str, object], context: ToolContext[Any]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Put values into positions and keywords."""
        if self.whole is not None:
            keywords: dict[str, object] = {self.whole: dict(values)}
        else:
            missing = {name: _fresh(value) for name, value in self.defaults.items() if name not in values}
            keywords = {**missing, **values}
        if self.context is not None:
            keywords[self.context] = context
        return tuple(keywords.pop(name) for name in self.positional if name in keywords), keywords


@functools.cache
def _schema_generator() -> type[GenerateJsonSchema]:
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415  # dear to import; needed to declare tools

    class WithoutTitles(GenerateJsonSchema):
        """Titles repeat the names in other words; models do without."""

        def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  # pydantic's signature
            return False

    return WithoutTitles


class TypedValidator:
    """Validates by the types of a signature, with pydantic, in strict JSON mode."""

    def __init__(self, adapter: TypeAdapter[dict[str, object]]) -> None:
        self._validate = adapter.validator.validate_json

    def validate(self, text: str, arguments: JsonObject) -> Mapping[str, object] | tuple[ArgumentIssue, ...]:  # noqa: ARG002
        """See `Validator`."""
        try:
            return cast("dict[str, object]", self._validate(text, strict=True, extra="forbid"))
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            return tuple(
                ArgumentIssue(ISSUE_CODES.get(item["type"], "value"), item["msg"], json_path(item["loc"]))
                for item in found[:MAX_ISSUES]
            )
        except Exception as error:  # noqa: BLE001  # a validator of the author's own may raise anything
            return (ArgumentIssue("value", f"a validator raised {type(error).__name__}", "$"),)


# -- functions ------------------------------------------------------------------------------


def from_function(
    function: Callable[..., object], described: Mapping[str, str]
) -> tuple[JsonObject, Validator, Signature]:
    """Describe a function's parameters.

    Args:
        function: Its type hints make the schema; `ToolContext` parameters are left out of it.
        described: Descriptions of parameters, from the docstring.

    Raises:
        RegistrationError: A parameter cannot be described; the message names it and its annotation.
    """
    name = getattr(function, "__name__", type(function).__name__)
    hints = _hints(function, name)
    fields: dict[str, Any] = {}
    defaults: dict[str, object] = {}
    positional: list[str] = []
    context: str | None = None
    for parameter in _parameters(function, name):
        annotation = hints.get(parameter.name, Any)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(parameter.name)
        if _is_context(annotation):
            context = parameter.name
            continue
        optional = parameter.default is not parameter.empty
        if optional and (parameter.kind is parameter.POSITIONAL_ONLY or _is_mutable(parameter.default)):
            defaults[parameter.name] = parameter.default
        fields[parameter.name] = _field(annotation, parameter, described.get(parameter.name), optional=optional)
    schema, adapter = _adapter(fields, name)
    signature = Signature(positional=tuple(positional), context=context, defaults=defaults)
    return schema, TypedValidator(adapter), signature


def _parameters(function: Callable[..., object], name: str) -> Sequence[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise RegistrationError(f"tool {name!r}: {error}; wrap it in a function with type hints") from error
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise RegistrationError(
                f"tool {name!r}: parameter {parameter} cannot be described to a model;"
                " name the parameters, or use Tool.from_json_schema"
            )
    return parameters


def _hints(function: Callable[..., object], name: str) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    target = function if inspect.isroutine(function) else type(function).__call__
    plain = inspect.unwrap(target)
    try:
        return get_type_hints(plain, localns=_enclosed(plain), include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise RegistrationError(
            f"tool {name!r}: an annotation cannot be resolved ({error}); {_UNION},"
            " and their names must be importable from the function's module or enclosed by it"
        ) from error


def _enclosed(function: Callable[..., object]) -> dict[str, object]:
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or not cells:
        return {}
    return {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True) if _is_set(cell)}


def _is_set(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # an unset cell raises
    except ValueError:
        return False
    return True


def is_context_parameter(function: Callable[..., object], parameter: inspect.Parameter) -> bool:
    """Tell whether a parameter takes the `ToolContext`; annotations that cannot be resolved do not."""
    try:
        hints = _hints(function, "")
    except RegistrationError:
        return False
    return _is_context(hints.get(parameter.name))


def _is_context(annotation: object) -> bool:
    bare = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if get_origin(bare) in (Union, types.UnionType):
        return any(_is_context(arm) for arm in get_args(bare))
    return bare is ToolContext or get_origin(bare) is ToolContext


def _is_mutable(default: object) -> bool:
    if isinstance(default, tuple):
        return any(_is_mutable(item) for item in default)
    return isinstance(default, list | dict | set | bytearray)


def _fresh(default: object) -> object:
    try:
        return copy.deepcopy(default)
    except Exception:  # noqa: BLE001  # it holds a lock, a client …: such a default is shared, as in Python
        return default


def _field(annotation: Any, parameter: inspect.Parameter, description: str | None, *, optional: bool) -> Any:
    extra: dict[str, Any] = {}
    if optional:
        try:
            extra["default"] = to_jsonable_python(parameter.default)
        except PydanticSerializationError:
            extra = {}
    described = annotation
    if description is not None or extra:
        # First, so that what the author wrote with Field(...) comes later and wins.
        own = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        ours = Field(description=description, json_schema_extra=extra or None)
        described = Annotated[(own[0], ours, *own[1:])]
    return NotRequired[described] if optional else described


def _adapter(fields: dict[str, Any], name: str) -> tuple[JsonObject, TypeAdapter[dict[str, object]]]:
    make = cast("Callable[..., Any]", TypedDict)  # made at run time, which type checkers do not follow
    shape = make("Arguments", fields)
    shape.__pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    try:
        adapter = cast("TypeAdapter[dict[str, object]]", TypeAdapter(shape))
        schema = adapter.json_schema(schema_generator=_schema_generator())
    except _SCHEMA_ERRORS as error:
        raise RegistrationError(f"tool {name!r}: {_culprit(fields)}: {_UNION} ({_first_line(error)})") from error
    schema.pop("title", None)
    schema.setdefault("properties", {})
    return close_objects(schema), adapter


def _culprit(fields: dict[str, Any]) -> str:
    for name, annotation in fields.items():
        try:
            TypeAdapter(annotation.__args__[0] if get_origin(annotation) is NotRequired else annotation).json_schema()
        except _SCHEMA_ERRORS:
            return f"parameter {name!r} has the type {annotation!r}"
    return "the parameters cannot be described"


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]
