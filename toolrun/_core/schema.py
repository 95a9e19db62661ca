"""From a signature or a model to what a model is told and to a strict validator.

Strict: `"5"` is not an int, `true` is not 1, an unknown key is an error. Coercion belongs to repair,
where it is recorded.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, cast, get_args, get_origin, get_type_hints

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError, SchemaError, to_jsonable_python
from typing_extensions import TypedDict, Unpack, is_typeddict  # typing's own have no fields that pydantic can read

from toolrun._core.exceptions import RegistrationError
from toolrun._core.issues import issue, typed_issues
from toolrun._core.json_schema import Validator, close_objects
from toolrun._core.signatures import (
    Signature,
    context_of,
    function_signature,
    hints_of,
    model_signature,
    parameters_of,
)
from toolrun._core.strict import digits_lost, may_lose_digits, strict_validator

if TYPE_CHECKING:
    import inspect

    from pydantic import ConfigDict
    from pydantic.json_schema import GenerateJsonSchema

    from toolrun._core.records import ArgumentIssue, JsonObject
    from toolrun._core.signatures import ToolFunction

_UNION: Final = "a signature needs types that a JSON Schema can describe"
_SCHEMA_ERRORS: Final = (
    PydanticUserError,
    PydanticSchemaGenerationError,
    PydanticInvalidForJsonSchema,
    SchemaError,
    NameError,
    RegistrationError,
)


class TypedValidator:
    """Validates by types, with pydantic, in strict JSON mode unless the tool says otherwise."""

    def __init__(
        self,
        adapter: TypeAdapter[Any],
        *,
        strict: bool,
        closed: bool,
        parameter: str | None = None,
        reserved: str | None = None,
    ) -> None:
        """Build the validator.

        Args:
            adapter: The types.
            strict: False brings pydantic's lax mode back.
            closed: Whether objects that do not say otherwise refuse unknown keys.
            parameter: The parameter that takes the whole value; None if the value is a mapping of parameters.
            reserved: A parameter that no argument may fill: the one that takes the context.
        """
        validator, self._counts_digits = strict_validator(adapter.core_schema, closed=closed, strict=strict)
        self._validate = functools.partial(validator.validate_json, strict=strict)
        self._parameter = parameter
        self._reserved = reserved

    def validate(self, text: str, arguments: JsonObject) -> Mapping[str, object] | tuple[ArgumentIssue, ...]:
        """See `Validator`."""
        if self._reserved in arguments:
            return (issue("unknown_key", [self._reserved], "Extra inputs are not permitted"),)
        try:
            value = self._validated(text) if self._counts_digits else self._validate(text)
        except ValidationError as error:
            return typed_issues(error, arguments)
        except Exception as error:  # noqa: BLE001  # a validator of the author's own may raise anything
            return (issue("value", [], f"a validator raised {type(error).__name__}"),)
        return value if self._parameter is None else {self._parameter: value}

    def _validated(self, text: str) -> Any:
        if not may_lose_digits(text):
            return self._validate(text)
        with digits_lost(text):
            return self._validate(text)


# -- functions ------------------------------------------------------------------------------


def from_function(
    function: ToolFunction, described: Mapping[str, str], name: str, *, strict: bool = True, closed: bool = True
) -> tuple[JsonObject, Validator, Signature]:
    """Describe a function's parameters.

    Args:
        function: Its type hints make the schema; the `ToolContext` parameter is left out of it.
        described: Descriptions of parameters, from the docstring.
        name: The tool's name, for errors.
        strict: See `ToolOptions`.
        closed: The opposite of `open` there.

    Raises:
        RegistrationError: A parameter cannot be described; the message names it and its annotation.
    """
    parameters = parameters_of(function, name)
    hints = hints_of(function, name)
    context = context_of(parameters, hints, name)
    fields: dict[str, Any] = {}
    rest: Any = None
    for parameter in parameters:
        annotation = hints.get(parameter.name, Any)
        if parameter.name == context:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise RegistrationError(
                f"tool {name!r}: parameter {parameter} cannot be described to a model;"
                " name the parameters, or use Tool.from_json_schema"
            )
        if parameter.kind is not parameter.VAR_KEYWORD:
            fields[parameter.name] = _field(annotation, parameter, described.get(parameter.name))
        elif get_origin(annotation) is Unpack and is_typeddict(get_args(annotation)[0]):
            fields |= _keys(get_args(annotation)[0])
        else:
            rest = annotation
    adapter, schema = _adapter(_arguments(fields, rest, closed=closed), fields, name)
    schema.pop("title", None)
    schema.setdefault("properties", {})
    validator = TypedValidator(adapter, strict=strict, closed=closed, reserved=context)
    named = [item for item in parameters if item.kind is not item.VAR_KEYWORD]
    return close_objects(schema) if closed else schema, validator, function_signature(named, context)


def _field(annotation: Any, parameter: inspect.Parameter, description: str | None) -> Any:
    optional = parameter.default is not parameter.empty
    extra = _told_default(parameter.default) if optional else {}
    described = annotation
    if description is not None or extra:
        from pydantic import Field  # noqa: PLC0415  # its module is a third of the import of this package

        # First, so that what the author wrote with Field(...) comes later and wins.
        own = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        ours = Field(description=description, json_schema_extra=cast("Any", extra) or None)
        described = Annotated[(own[0], ours, *own[1:])]
    return NotRequired[described] if optional else described


def _told_default(default: object) -> dict[str, object]:
    """A default as models are told it; nothing where JSON cannot say it."""
    try:
        told = to_jsonable_python(default)
        json.dumps(told, allow_nan=False)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return {}
    return {"default": told}


def _keys(options: Any) -> dict[str, Any]:
    """The keys of the TypedDict in `**options: Unpack[Options]`."""
    hints = get_type_hints(options, include_extras=True)
    return {key: hint if key in options.__required_keys__ else NotRequired[hint] for key, hint in hints.items()}


def _arguments(fields: dict[str, Any], rest: Any, *, closed: bool) -> Any:
    """A TypedDict of the parameters, made at run time, which type checkers do not follow."""
    make = cast("Callable[..., Any]", TypedDict)
    config: ConfigDict = {"strict": True, "allow_inf_nan": False}
    if rest is not None:
        shape = make("Arguments", fields, extra_items=rest)
    else:
        shape = make("Arguments", fields)
        config["extra"] = "forbid" if closed else "ignore"
    shape.__pydantic_config__ = config
    return shape


def _adapter(shape: Any, fields: Mapping[str, Any], name: str) -> tuple[TypeAdapter[Any], JsonObject]:
    try:
        return _described(shape)
    except _SCHEMA_ERRORS as error:
        raise RegistrationError(f"tool {name!r}: {_culprit(fields)}: {_UNION} ({_first_line(error)})") from error


def _described(shape: Any) -> tuple[TypeAdapter[Any], JsonObject]:
    adapter: TypeAdapter[Any] = TypeAdapter(shape)
    strict_validator(adapter.core_schema, closed=True, strict=True)
    return adapter, adapter.json_schema(schema_generator=_schema_generator())


def _culprit(fields: Mapping[str, Any]) -> str:
    for name, annotation in fields.items():
        bare = get_args(annotation)[0] if get_origin(annotation) is NotRequired else annotation
        try:
            _described(bare)
        except _SCHEMA_ERRORS:
            return f"parameter {name!r} has the type {bare!r}"
    return "the parameters cannot be described"


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]


@functools.cache
def _schema_generator() -> type[GenerateJsonSchema]:
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415  # dear to import; needed to declare tools

    class WithoutTitles(GenerateJsonSchema):
        """Titles repeat the names in other words; models do without."""

        def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  # pydantic's signature
            return False

    return WithoutTitles


# -- models ---------------------------------------------------------------------------------


def from_model(
    model: type[Any], handler: ToolFunction | None, name: str, *, strict: bool = True, closed: bool = True
) -> tuple[JsonObject, Validator, Signature]:
    """Describe the fields of a pydantic model, a dataclass or a TypedDict.

    Args:
        model: The class.
        handler: What gets the object, as its one parameter beside a `ToolContext`; None if nothing does.
        name: The tool's name, for errors.
        strict: See `ToolOptions`.
        closed: The opposite of `open` there.

    Raises:
        RegistrationError: It is not described as an object, or the handler does not take one.
    """
    adapter, schema = _adapter(model, {"of the model": model}, name)
    schema = _at_root(schema)
    if schema.get("type") != "object":
        raise RegistrationError(f"tool {name!r}: {model!r} is not an object with fields, as arguments have to be")
    schema.pop("title", None)
    schema.setdefault("properties", {})
    signature, parameter = (Signature(defaults={}), "arguments") if handler is None else model_signature(handler, name)
    validator = TypedValidator(adapter, strict=strict, closed=closed, parameter=parameter)
    return close_objects(schema) if closed else schema, validator, signature


def _at_root(schema: JsonObject) -> JsonObject:
    """The schema of a recursive model is a reference; providers want the object itself at the root."""
    reference, definitions = schema.get("$ref"), schema.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, dict):
        return schema
    found = definitions[reference.rpartition("/")[2]]
    return {**found, "$defs": definitions} if isinstance(found, dict) else schema
