"""pydantic's strict JSON mode with its holes closed: the validator takes what the schema says, and nothing else.

pydantic describes a type as a tree of nodes (a "core schema"). The tree is rewritten before the validator is
built, so models, dataclasses and TypedDicts inside it are reached too. What is told to models comes from the
tree as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pydantic_core import SchemaValidator, core_schema, to_json

from toolrun._core.context import ToolContext
from toolrun._core.exceptions import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import CoreSchema

Node: TypeAlias = dict[str, Any]

_OPEN: Final = "allow"
_CLOSABLE: Final = ("model-fields", "typed-dict", "dataclass-args")
_CALLS_PYTHON: Final = ("function-before", "function-wrap", "chain")
_FIT: Final = "fit"


def strict_validator(schema: CoreSchema, *, closed: bool, strict: bool) -> tuple[SchemaValidator, bool]:
    """Build the validator of a tree.

    Args:
        schema: As pydantic made it.
        closed: Whether objects that do not say otherwise refuse keys that they do not know.
        strict: Whether to close the holes; False leaves the types as they are.

    Returns:
        The validator, and whether it has to be told which numbers of the text lost digits (see `digits_lost`).

    Raises:
        RegistrationError: A `Literal` or an `Enum` has a value that JSON cannot say, or a `ToolContext` is inside.
    """
    rewriting = _Rewriting(closed=closed, closers=_CLOSERS if strict else {})
    root = rewriting.node(cast("Node", schema), extra=None, python=False)
    # Validators that classes built for themselves have the holes, and would be put in the place of the new ones.
    return SchemaValidator(cast("CoreSchema", root), _use_prebuilt=False), rewriting.decimals


class _Rewriting:
    """One pass over a tree. `decimals` tells afterwards whether a Decimal was met."""

    def __init__(self, *, closed: bool, closers: Mapping[str, Callable[[Node], Node]]) -> None:
        self._closed = closed
        self._closers = closers
        self.decimals = False

    def node(self, node: Node, *, extra: str | None, python: bool) -> Node:
        """Rewrite a node and what is below it.

        Args:
            node: As pydantic made it.
            extra: What the class around it says of unknown keys; None if nothing.
            python: True below a function that gets, and so passes on, Python values instead of JSON.
        """
        kind = str(node.get("type", ""))
        if isinstance(node.get("cls"), type) and issubclass(node["cls"], ToolContext):
            raise RegistrationError("a ToolContext is given by the runner, and only to a parameter of that very type")
        extra = node.get("config", {}).get("extra_fields_behavior", extra)
        below = python or kind in _CALLS_PYTHON
        # A class says it for itself, and not for the classes of its fields.
        inherited = None if kind in _CLOSABLE else extra
        new = {key: self._child(key, value, inherited, python=below) for key, value in node.items()}
        if kind in _CLOSABLE and self._closed and new.get("extra_behavior", extra) != _OPEN:
            new["extra_behavior"] = "forbid"
        close = self._closers.get(kind)
        if close is None:
            return new
        self.decimals = self.decimals or kind == "decimal"
        reference = new.pop("ref", None)
        tight = _FROM_PYTHON[kind](new) if python and kind in _FROM_PYTHON else close(new)
        return {**tight, "ref": reference} if reference else tight

    def _child(self, key: str, value: Any, extra: str | None, *, python: bool) -> Any:
        def inner(item: Any) -> Any:
            if isinstance(item, tuple):  # a choice with its label
                return (inner(item[0]), *item[1:])
            return self.node(item, extra=extra, python=python) if isinstance(item, dict) else item

        if key in _ONE:
            return [inner(item) for item in value] if isinstance(value, list) else inner(value)
        if key in _MANY:
            named = isinstance(value, dict)
            return {name: inner(item) for name, item in value.items()} if named else [inner(item) for item in value]
        return value


_ONE: Final = frozenset(
    (
        "schema", "items_schema", "keys_schema", "values_schema", "extras_schema", "lax_schema", "strict_schema",
        "json_schema", "python_schema", "arguments_schema", "var_args_schema", "var_kwargs_schema",
    )
)  # fmt: skip
_MANY: Final = frozenset(("choices", "fields", "steps", "definitions"))


# -- guards ---------------------------------------------------------------------------------


def _guarded(schema: Node, admits: Callable[[Any], bool], error: str, **told: Any) -> Node:
    """Let a node see only the inputs that a function admits.

    A choice with one branch: unlike pydantic's other nodes that call functions, it hands the JSON on as it came.
    """
    choose: Callable[[Any], str | None] = lambda value: _FIT if admits(value) else None  # noqa: E731
    return cast(
        "Node",
        core_schema.tagged_union_schema({_FIT: cast("CoreSchema", schema)}, choose, custom_error_type=error, **told),
    )


def _literal(node: Node) -> Node:
    return _one_of(node["expected"], lambda values: {**node, "expected": values})


def _enum(node: Node) -> Node:
    if node.get("missing") is not None:
        return node  # the class decides for itself, in `_missing_`
    return _one_of(node["members"], lambda _: node, members_found=True)


def _one_of(allowed: list[Any], make: Callable[[list[Any]], Node], *, members_found: bool = False) -> Node:
    """Admit a value only as the JSON type that it is written in: true is not 1, and 1.0 is neither.

    Args:
        allowed: The values, enum members among them.
        make: Makes the node for the values as JSON has them.
        members_found: Whether that node finds the members by their values itself.
    """
    plain = [_json_value(item) for item in allowed]
    same = members_found or all(value is item for value, item in zip(plain, allowed, strict=True))
    if same and all(type(value) is str for value in plain):
        return make(plain)  # pydantic takes a string for nothing but itself
    originals = {(type(value), value): item for value, item in zip(plain, allowed, strict=True)}
    floats = {value for value in plain if isinstance(value, float)}

    def admits(value: Any) -> bool:
        try:
            return (type(value), value) in originals or (type(value) is int and value in floats)
        except TypeError:
            return False

    expected = " or ".join(to_json(value).decode() for value in plain)
    guarded = _guarded(make(plain), admits, "literal_error", custom_error_context={"expected": expected})
    if same:
        return guarded
    return cast(
        "Node",
        core_schema.no_info_after_validator_function(
            lambda value: originals.get((type(value), value), value), cast("CoreSchema", guarded)
        ),
    )


def _json_value(allowed: object) -> str | int | float | None:
    value = allowed.value if isinstance(allowed, Enum) else allowed
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return value if type(value) is kind else kind(value)
    if value is None:
        return None
    raise RegistrationError(f"{allowed!r} has no JSON value; a model can be asked for strings, numbers and booleans")


def _datetime(node: Node) -> Node:
    return _guarded(
        node,
        lambda value: not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()),
        "datetime_from_date_parsing",
        custom_error_context={"error": "digits alone do not say a date"},
    )


def _decimal(node: Node) -> Node:
    return _guarded(
        node,
        _keeps_digits,
        "exact_decimal",
        custom_error_message="Input should be a decimal, as a string if it has more than 15 digits",
    )


def _keeps_digits(value: object) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return not isinstance(value, float) or value not in _LOST.get()


def _generator(node: Node) -> Node:
    """Validate the items of an Iterable before the call, not while the tool reads them."""
    return {**node, "type": "list"}


def _named_tuple(node: Node) -> Node:
    """Take what the schema says, an array; pydantic takes an object of the fields too."""
    return _guarded(node, lambda value: isinstance(value, list), "list_type")


_CLOSERS: Final[Mapping[str, Callable[[Node], Node]]] = {
    "literal": _literal,
    "enum": _enum,
    "datetime": _datetime,
    "decimal": _decimal,
    "generator": _generator,
    **dict.fromkeys(("named-tuple", "call"), _named_tuple),  # `call` in earlier versions of pydantic
    "float": lambda node: {**node, "allow_inf_nan": False},
    # Nothing to close, but see `_FROM_PYTHON`.
    **dict.fromkeys(("date", "time", "timedelta", "bytes", "tuple", "set", "frozenset"), lambda node: node),
}


# -- Python values ----------------------------------------------------------------------------


def _reread(node: Node) -> Node:
    """Read a string of Python as the JSON string that it was; a value that is there already passes."""
    validator = SchemaValidator(cast("CoreSchema", _CLOSERS[node["type"]](node)))

    def read(value: Any) -> Any:
        written = isinstance(value, str | int | float)
        return validator.validate_json(to_json(value), strict=True) if written else validator.validate_python(value)

    return cast("Node", core_schema.no_info_plain_validator_function(read))


def _collected(node: Node) -> Node:
    """Make the list of Python that a JSON array became what the node wants."""
    collect: Any = {"tuple": tuple, "set": set, "frozenset": frozenset}[node["type"]]
    return cast(
        "Node",
        core_schema.no_info_before_validator_function(
            lambda value: collect(value) if isinstance(value, list) else value, cast("CoreSchema", node)
        ),
    )


_FROM_PYTHON: Final[Mapping[str, Callable[[Node], Node]]] = {
    **dict.fromkeys(("date", "datetime", "time", "timedelta", "bytes", "decimal", "enum", "literal"), _reread),
    **dict.fromkeys(("tuple", "set", "frozenset"), _collected),
}
"""Types that strict mode takes from JSON only, and so refuses once a validator of the author's was called."""


# -- numbers that lose digits ---------------------------------------------------------------

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_STRING_OR_LONG: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(-?(?:[0-9.]{16,}(?:[eE][+-]?[0-9]+)?|[0-9.]+[eE][+-]?[0-9]+))')
_LOST: Final[ContextVar[frozenset[float]]] = ContextVar("toolrun_digits_lost", default=frozenset())


# Digits and points to 0, exponents to e, so that two substring searches find what may lose digits.
_NUMBER_SHAPE: Final = bytes(
    ord("0") if byte in b"0123456789." else ord("e") if byte in b"eE" else byte for byte in range(256)
)


def may_lose_digits(text: str) -> bool:
    """Tell in no time whether there may be a number that a float does not hold exactly."""
    shape = text.encode().translate(_NUMBER_SHAPE)
    return b"0" * 16 in shape or b"0e" in shape


@contextmanager
def digits_lost(text: str) -> Iterator[None]:
    """Within this block a Decimal refuses the numbers of a JSON text that a float does not hold exactly."""
    lost = frozenset(
        number for literal in _long_numbers(text) if Decimal(repr(number := float(literal))) != Decimal(literal)
    )
    token = _LOST.set(lost)
    try:
        yield
    finally:
        _LOST.reset(token)


def _long_numbers(text: str) -> Iterator[str]:
    for found in _STRING_OR_LONG.finditer(text):
        literal = found.group(1)
        if literal and any(mark in literal for mark in ".eE"):
            yield literal
