"""From signatures and JSON Schemas to what a model is told and to a strict validator."""

# Tools with annotations of their own: no postponed evaluation here, except where a test compiles its own.
import functools
import json
import math
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict, Field

from toolrun import RegistrationError, Tool, ToolContext

CONTEXT: ToolContext[Any] = ToolContext(deps="deps", call_id="c", tool="t", key="k")


class Color(Enum):
    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Unit(StrEnum):
    C = "c"


@dataclass
class Point:
    x: int
    y: int = 0


class Place(BaseModel):
    city: str
    tags: list[str] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    city: str


class Pair(NamedTuple):
    x: int
    y: int


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


def tool_for(annotation: Any) -> Tool:
    def f(v):
        return v

    f.__annotations__["v"] = annotation
    return Tool.from_function(f)


def check(tool: Tool, text: str) -> object:
    """The value that the parameter gets, or the code of the first issue."""
    found = tool.validator.validate(text, json.loads(text))
    return found[0].code if isinstance(found, tuple) else found["v"]


# -- types ----------------------------------------------------------------------------------

UUID_TEXT = "12345678-1234-5678-1234-567812345678"
REFUSED = object()

TYPES: list[tuple[Any, dict[str, object] | None, dict[str, object]]] = [
    # The annotation, its JSON Schema (None: not looked at), and JSON values with what becomes of them.
    (int, {"type": "integer"}, {"1": 1, "-0": 0, "12345678901234567890123": 12345678901234567890123, "1.0": REFUSED,
        "1e2": REFUSED, '"1"': REFUSED, "true": REFUSED, "null": REFUSED, "[1]": REFUSED}),
    (float, {"type": "number"}, {"1.5": 1.5, "1": 1.0, '"1.5"': REFUSED, "true": REFUSED, '"NaN"': REFUSED,
        '"Infinity"': REFUSED, "null": REFUSED}),
    (str, {"type": "string"}, {'"a"': "a", '""': "", '"1"': "1", "1": REFUSED, "null": REFUSED, "true": REFUSED}),
    (bool, {"type": "boolean"}, {"true": True, "false": False, "1": REFUSED, "0": REFUSED, '"true"': REFUSED}),
    (None, {"type": "null"}, {"null": None, "0": REFUSED, '""': REFUSED}),
    (Any, {}, {"1": 1, "null": None, '{"a": [1]}': {"a": [1]}}),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"1": 1, "null": None, '"1"': REFUSED}),
    (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"1": 1, '"1"': "1", "true": REFUSED,
        "1.5": REFUSED}),
    (Literal["c", "f"], {"enum": ["c", "f"], "type": "string"}, {'"c"': "c", '"k"': REFUSED, "1": REFUSED}),
    (Color, None, {'"red"': Color.RED, '"RED"': REFUSED, '"blue"': REFUSED}),
    (Unit, None, {'"c"': Unit.C, '"C"': REFUSED}),
    (Level, None, {"1": Level.LOW, "3": REFUSED, '"1"': REFUSED}),
    (date, {"type": "string", "format": "date"}, {'"2024-01-02"': date(2024, 1, 2), "1700000000": REFUSED,
        '"1700000000"': REFUSED, '"2024-01-02T03:04:05"': REFUSED, '"tomorrow"': REFUSED}),
    (datetime, {"type": "string", "format": "date-time"}, {
        '"2024-01-02T03:04:05Z"': datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), "1700000000": REFUSED, "1.5": REFUSED,
        '"2024-01-02"': REFUSED}),
    (time, {"type": "string", "format": "time"}, {'"03:04:05"': time(3, 4, 5), '"3600"': REFUSED, "3600": REFUSED}),
    (timedelta, {"type": "string", "format": "duration"}, {'"PT1H"': timedelta(hours=1), "3600": REFUSED,
        '"3600"': REFUSED}),
    (uuid.UUID, {"type": "string", "format": "uuid"}, {f'"{UUID_TEXT}"': uuid.UUID(UUID_TEXT), '"1"': REFUSED,
        "1": REFUSED}),
    (Path, {"type": "string", "format": "path"}, {'"/a/b"': Path("/a/b"), "1": REFUSED}),
    (bytes, {"type": "string", "format": "binary"}, {'"abc"': b"abc", "1": REFUSED}),
    (Decimal, None, {'"1.10"': Decimal("1.10"), "1": Decimal(1), "1.1": Decimal("1.1"), '"NaN"': REFUSED,
        '"Infinity"': REFUSED, "true": REFUSED}),
    (list[int], {"type": "array", "items": {"type": "integer"}}, {"[1, 2]": [1, 2], "[]": [], '["1"]': REFUSED,
        "[true]": REFUSED, '"[1]"': REFUSED, "{}": REFUSED}),
    (Sequence[int], {"type": "array", "items": {"type": "integer"}}, {"[1]": [1], '["a"]': REFUSED, '"ab"': REFUSED}),
    (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, {"[1, 2]": {1, 2},
        '["1"]': REFUSED}),
    (frozenset[str], None, {'["a"]': frozenset({"a"}), "[1]": REFUSED}),
    (tuple[int, str], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2,
        "maxItems": 2}, {'[1, "a"]': (1, "a"), "[1]": REFUSED, '[1, "a", 2]': REFUSED, '["a", 1]': REFUSED}),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, {"[1, 2]": (1, 2), "[]": ()}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {'{"a": 1}': {"a": 1}, "{}": {},
        '{"a": "1"}': REFUSED, "[]": REFUSED}),
    (Mapping[str, int], None, {'{"a": 1}': {"a": 1}}),
    (Point, None, {'{"x": 1}': Point(1), '{"x": 1, "y": 2}': Point(1, 2), '{"x": "1"}': REFUSED,
        '{"x": 1, "z": 2}': REFUSED, "[1]": REFUSED, "{}": REFUSED}),
    (Place, None, {'{"city": "Oslo"}': Place(city="Oslo"), '{"city": 1}': REFUSED, '{"city": "a", "x": 1}': REFUSED}),
    (list[Place], None, {'[{"city": "a", "tags": ["b"]}]': [Place(city="a", tags=["b"])],
        '[{"city": "a", "tags": [1]}]': REFUSED}),
    (Pair, None, {"[1, 2]": Pair(1, 2), "[1]": REFUSED}),
    (Tree, None, {'{"value": 1, "children": [{"value": 2}]}': Tree(value=1, children=[Tree(value=2)]),
        '{"value": 1, "children": [{"value": "2"}]}': REFUSED}),
    (Annotated[int, Field(ge=1, le=5, description="Stars.")], {"type": "integer", "minimum": 1, "maximum": 5,
        "description": "Stars."}, {"5": 5, "6": REFUSED, "0": REFUSED}),
    (Annotated[str, Field(pattern=r"^\d+$", max_length=3)], {"type": "string", "pattern": r"^\d+$", "maxLength": 3},
        {'"12"': "12", '"1a"': REFUSED, '"1234"': REFUSED}),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "schema", "values"), TYPES, ids=[str(row[0]) for row in TYPES])
def test_types(annotation: Any, schema: dict[str, object] | None, values: dict[str, object]):
    """Strict: what is not of the type is refused, never converted."""
    tool = tool_for(annotation)

    if schema is not None:
        assert tool.definition.input_schema == {
            "type": "object",
            "properties": {"v": schema},
            "required": ["v"],
            "additionalProperties": False,
        }
    for value, expected in values.items():
        found = check(tool, f'{{"v": {value}}}')
        if expected is REFUSED:
            assert found in ("type", "value", "missing_key", "unknown_key"), value
        else:
            assert (found, type(found)) == (expected, type(expected)), value


HOLES = [
    (Literal[1], "true"),
    (Literal[1], "1.0"),
    (Literal["a", 1], "true"),
    (Literal[True], "1"),
    (list[Literal[1]], "[true]"),
    (Level, "true"),
    (Level, "1.0"),
    (datetime, '"1700000000"'),
    (datetime, '"1.5"'),
    (Decimal, "0.12345678901234567890123"),
    (Iterable[int], '["a"]'),
]


@pytest.mark.parametrize(("annotation", "value"), HOLES, ids=[f"{row[0]} {row[1]}" for row in HOLES])
def test_holes_of_pydantics_strict_mode(annotation: Any, value: str):
    """True is not 1, digits are no date, digits are not lost, and items are looked at: refused, or not declarable."""
    try:
        tool = tool_for(annotation)
    except RegistrationError:
        return
    text = f'{{"v": {value}}}'
    found = tool.validator.validate(text, json.loads(text))

    assert isinstance(found, tuple), found


def test_what_literals_take_is_what_they_say():
    """Closing the holes must not close the door."""
    assert check(tool_for(Literal[1, "a"]), '{"v": 1}') == 1
    assert check(tool_for(Literal[1, "a"]), '{"v": "a"}') == "a"
    assert check(tool_for(Literal[True]), '{"v": true}') is True
    assert check(tool_for(Literal[2] | None), '{"v": null}') is None


def test_an_open_model_is_open_in_validator_and_export_alike():
    """A model that says `extra="allow"` is told to the model as open: then it has to be."""
    tool = tool_for(Open)
    (told,) = tool.definition.input_schema["$defs"].values()
    found = check(tool, '{"v": {"city": "Oslo", "zip": 1}}')

    assert (found != "unknown_key") == (told.get("additionalProperties") is not False)


def test_issues_have_json_paths():
    """Where in the arguments, and what kind of issue."""

    def f(places: list[Place], n: int) -> None:
        """Do nothing."""

    text = '{"places": [{"city": "a"}, {"city": 1, "tags": ["x", 2], "zip": 3}], "m": 1}'
    issues = Tool.from_function(f).validator.validate(text, json.loads(text))

    assert isinstance(issues, tuple)
    assert sorted((issue.path, issue.code) for issue in issues) == [
        ("$.m", "unknown_key"),
        ("$.n", "missing_key"),
        ("$.places[1].city", "type"),
        ("$.places[1].tags[1]", "type"),
        ("$.places[1].zip", "unknown_key"),
    ]
    assert all(issue.offset is None for issue in issues)


@pytest.mark.parametrize("kind", ["typed", "JSON Schema"])
def test_issues_stop_at_twenty(kind: str):
    """A model cannot use more."""
    if kind == "typed":
        tool = tool_for(list[int])
    else:
        schema = {"type": "object", "properties": {"v": {"type": "array", "items": {"type": "integer"}}}}
        schema["required"] = ["v"]
        tool = Tool.from_json_schema(name="f", input_schema=schema, handler=lambda v: v)
    text = json.dumps({"v": ["x"] * 1000})

    issues = tool.validator.validate(text, json.loads(text))

    assert isinstance(issues, tuple)
    assert len(issues) == 20


def test_issues_do_not_quote_secrets_at_length():
    """What a model is told of a wrong value does not repeat the whole value."""
    schema = {"type": "object", "properties": {"v": {"type": "integer"}}}
    tool = Tool.from_json_schema(name="f", input_schema=schema, handler=lambda v=0: v)
    text = json.dumps({"v": "x" * 100_000})
    from toolrun._core import results

    issues = tool.validator.validate(text, json.loads(text))

    assert isinstance(issues, tuple)
    assert len(results.schema_text(issues)) < 1_000


# -- signatures -----------------------------------------------------------------------------


def call(tool: Tool, text: str) -> object:
    """Validate, bind and call."""
    values = tool.validator.validate(text, json.loads(text))
    assert isinstance(values, Mapping), values
    args, kwargs = tool.bind(values, CONTEXT)
    return tool.function(*args, **kwargs)


def all_kinds(a: int, /, b: int, c: int = 3, *, d: int, e: int = 5) -> tuple[int, ...]:
    return (a, b, c, d, e)


def positional_defaults(a: int = 1, b: int = 2, /, c: int = 3) -> tuple[int, ...]:
    return (a, b, c)


def context_first(ctx: ToolContext[str], n: int) -> object:
    return (ctx.deps, n)


def context_last(n: int, *, ctx: ToolContext[str]) -> object:
    return (ctx.deps, n)


def context_bare(n: int, ctx: ToolContext) -> object:
    return (ctx.deps, n)


def context_annotated(n: int, ctx: Annotated[ToolContext[str], "the context"]) -> object:
    return (ctx.deps, n)


def context_positional(ctx: ToolContext[str], n: int, /) -> object:
    return (ctx.deps, n)


def context_between(n: int, ctx: ToolContext[str], m: int = 2, /) -> object:
    return (ctx.deps, n)


def context_optional(n: int, ctx: ToolContext[str] | None = None) -> object:
    return (ctx.deps if ctx else None, n)


@pytest.mark.parametrize(
    ("function", "text", "expected"),
    [
        (all_kinds, '{"a": 1, "b": 2, "d": 4}', (1, 2, 3, 4, 5)),
        (all_kinds, '{"e": 9, "d": 8, "c": 7, "b": 6, "a": 0}', (0, 6, 7, 8, 9)),
        (positional_defaults, "{}", (1, 2, 3)),
        (positional_defaults, '{"b": 9}', (1, 9, 3)),
        (positional_defaults, '{"a": 9, "c": 8}', (9, 2, 8)),
        (context_first, '{"n": 1}', ("deps", 1)),
        (context_last, '{"n": 1}', ("deps", 1)),
        (context_bare, '{"n": 1}', ("deps", 1)),
        (context_annotated, '{"n": 1}', ("deps", 1)),
        (context_positional, '{"n": 1}', ("deps", 1)),
        (context_between, '{"n": 1}', ("deps", 1)),
        (context_optional, '{"n": 1}', ("deps", 1)),
    ],
)
def test_every_kind_of_parameter(function: Callable[..., object], text: str, expected: object):
    """Positional-only, keyword-only, defaults, and a context wherever it stands."""
    assert call(Tool.from_function(function), text) == expected


@pytest.mark.parametrize(
    "function",
    [context_first, context_last, context_bare, context_annotated, context_positional, context_optional],
)
def test_the_context_is_hidden(function: Callable[..., object]):
    """By type, wherever it stands; a model that sends it has sent an unknown key."""
    tool = Tool.from_function(function)
    sent = tool.validator.validate('{"n": 1, "ctx": null}', {"n": 1, "ctx": None})

    assert tool.definition.input_schema == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    assert isinstance(sent, tuple)
    assert sent[0].code == "unknown_key"


POSTPONED = """
from __future__ import annotations
from typing import Annotated, Literal
from pydantic import BaseModel, Field
from toolrun import ToolContext

class Here(BaseModel):
    x: int

def module_level(ctx: ToolContext[str], here: Here, n: Annotated[int, Field(ge=1)], u: Literal["c"] = "c") -> object:
    return (ctx.deps, here.x, n, u)

def make():
    class Local(BaseModel):
        x: int

    def nested(ctx: ToolContext[str], local: Local) -> object:
        return (ctx.deps, Local(x=local.x).x)

    return nested

class Methods:
    def __init__(self, base: int) -> None:
        self.base = base

    def method(self, n: int, ctx: ToolContext[str]) -> object:
        return (ctx.deps, self.base + n)

    async def __call__(self, n: int) -> int:
        return self.base + n
"""


def test_postponed_annotations():
    """With `from __future__ import annotations` the same: module types, enclosed types, methods, the context."""
    import sys
    import types

    module = types.ModuleType("postponed_annotations")
    sys.modules[module.__name__] = module
    exec(compile(POSTPONED, module.__name__, "exec"), module.__dict__)
    try:
        level = Tool.from_function(module.module_level)
        nested = Tool.from_function(module.make())
        method = Tool.from_function(module.Methods(10).method)
        callable_object = Tool.from_function(module.Methods(10), name="add")
    finally:
        del sys.modules[module.__name__]

    assert set(level.definition.input_schema["properties"]) == {"here", "n", "u"}
    assert level.definition.input_schema["properties"]["n"] == {"type": "integer", "minimum": 1}
    assert call(level, '{"here": {"x": 1}, "n": 2}') == ("deps", 1, 2, "c")
    assert call(nested, '{"local": {"x": 1}}') == ("deps", 1)
    assert call(method, '{"n": 1}') == ("deps", 11)
    assert set(callable_object.definition.input_schema["properties"]) == {"n"}
    assert callable_object.is_async


def test_mutable_defaults_are_not_shared():
    """Each call has its own."""

    def f(xs: list[int] = [], m: dict[str, int] = {}, t: tuple[list[int], ...] = ([],)) -> object:  # noqa: B006
        xs.append(1)
        m["k"] = len(m)
        t[0].append(1)
        return (list(xs), dict(m), list(t[0]))

    tool = Tool.from_function(f)

    assert call(tool, "{}") == ([1], {"k": 0}, [1])
    assert call(tool, "{}") == ([1], {"k": 0}, [1])
    assert f.__defaults__ == ([], {}, ([],))


def test_defaults_that_are_identities():
    """A sentinel is itself inside the function, and what cannot be copied is used as it is."""
    missing: Any = object()
    lock = threading.Lock()

    def f(n: int = missing, guard: Any = lock) -> object:
        return (n is missing, guard is lock)

    assert call(Tool.from_function(f), "{}") == (True, True)


def test_defaults_are_told():
    """What JSON can say of a default is in the schema; the rest is not."""

    def f(a: int = 1, b: str | None = None, c: list[int] = [1], d: Any = print, e: Color = Color.RED) -> None:  # noqa: B006
        """Do nothing."""

    properties = Tool.from_function(f).definition.input_schema["properties"]

    assert {name: told.get("default", "untold") for name, told in properties.items()} == {
        "a": 1,
        "b": None,
        "c": [1],
        "d": "untold",
        "e": "red",
    }


def star(*values: int) -> None:
    """Do nothing."""


def nowhere(n: "Nowhere") -> None:  # noqa: F821  # the point
    """Do nothing."""


def not_a_type(n: 1) -> None:
    """Do nothing."""


def a_thread(n: threading.Thread) -> None:
    """Do nothing."""


def a_function(n: Callable[[], int]) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (star, ["'star'", "*values"]),
        (nowhere, ["'nowhere'", "Nowhere"]),
        (not_a_type, ["'not_a_type'", "'n'", "1"]),
        (a_thread, ["'a_thread'", "'n'", "Thread"]),
        (a_function, ["'a_function'", "'n'", "Callable"]),
        (lambda n: n, ["lambda", "name="]),
        (functools.partial(star), ["*values"]),
        (dict, ["dict"]),
        (5, ["5"]),
    ],
)
def test_what_cannot_be_described(function: Any, named: list[str]):
    """An error where it is declared, that names the tool, the parameter and its annotation."""
    with pytest.raises(RegistrationError) as raised:
        Tool.from_function(function)

    for name in named:
        assert name in str(raised.value)


class Counter:
    """Counts."""

    def __init__(self, base: int) -> None:
        self.base = base

    def add(self, n: int) -> int:
        """Add to the base.

        Args:
            n: How much.
        """
        return self.base + n

    @classmethod
    def of_class(cls, n: int) -> int:
        return n

    @staticmethod
    def static(n: int) -> int:
        return n

    def __call__(self, n: int) -> int:
        """Add when called."""
        return self.base + n


async def scale(factor: int, n: int = 1) -> int:
    """Scale.

    Args:
        factor: By how much.
        n: What.
    """
    return factor * n


def test_methods_partials_and_callable_objects():
    """No `self` in the schema, state per instance, the innermost name and docstring."""
    two, ten = Tool.from_function(Counter(2).add), Tool.from_function(Counter(10).add)
    partial = Tool.from_function(functools.partial(scale, 3))
    renamed = Tool.from_function(functools.partial(scale, factor=3), name="triple")
    called = Tool.from_function(Counter(5), name="count")

    assert two.definition.name == "add"
    assert two.definition.description == "Add to the base."
    assert two.definition.input_schema["properties"] == {"n": {"type": "integer", "description": "How much."}}
    assert (call(two, '{"n": 1}'), call(ten, '{"n": 1}')) == (3, 11)
    assert call(Tool.from_function(Counter.of_class), '{"n": 1}') == 1
    assert call(Tool.from_function(Counter.static), '{"n": 1}') == 1
    assert (partial.definition.name, partial.is_async) == ("scale", True)
    assert partial.definition.input_schema["properties"] == {
        "n": {"type": "integer", "default": 1, "description": "What."}
    }
    assert (renamed.definition.name, renamed.is_async) == ("triple", True)
    assert call(called, '{"n": 1}') == 6
    assert called.definition.description == "Add when called."
    assert not called.is_async


def test_a_class_as_a_tool_keeps_its_types():
    """The types of `__init__` count; a class whose types would be dropped is refused."""

    class Ticket:
        def __init__(self, number: int) -> None:
            self.number = number

    try:
        tool = Tool.from_function(Ticket)
    except RegistrationError:
        return

    assert tool.definition.input_schema["properties"] == {"number": {"type": "integer"}}
    assert isinstance(tool.validator.validate('{"number": "1"}', {"number": "1"}), tuple)


def test_functions_without_hints_take_anything():
    """No parameter is dropped because it has no type."""

    def f(a, b=1):
        return (a, b)

    tool = Tool.from_function(f)

    assert tool.definition.input_schema["properties"] == {"a": {}, "b": {"default": 1}}
    assert call(tool, '{"a": [1]}') == ([1], 1)


def test_aliases():
    """A model is told the alias, the function gets its own name."""

    def f(from_: Annotated[str, Field(alias="from")], to: str) -> str:
        return f"{from_} {to}"

    tool = Tool.from_function(f)

    assert tool.definition.input_schema["required"] == ["from", "to"]
    assert call(tool, '{"from": "a", "to": "b"}') == "a b"


# -- JSON Schemas ---------------------------------------------------------------------------


def schema_tool(schema: dict[str, Any]) -> Tool:
    def handler(**given):
        return given

    return Tool.from_json_schema(name="t", input_schema=schema, handler=handler)


def takes(tool: Tool, arguments: dict[str, Any]) -> bool:
    found = tool.validator.validate(json.dumps(arguments), arguments)
    return not isinstance(found, tuple)


STRING = {"type": "string"}
B = {"type": "object", "properties": {"y": {}}}

CLOSING = [
    # The schema, arguments that fit, arguments that do not.
    ({"properties": {"a": STRING}}, [{}, {"a": "x"}], [{"b": 1}, {"a": 1}, {"a": "x", "b": 1}]),
    ({"type": "object"}, [{}], [{"a": 1}]),
    ({"properties": {"a": STRING}, "additionalProperties": True}, [{"a": "x", "b": 1}], [{"a": 1}]),
    ({"properties": {}, "additionalProperties": STRING}, [{"b": "x"}], [{"b": 1}]),
    ({"properties": {"a": {"type": "object", "properties": {"b": {}}}}}, [{"a": {"b": 1}}], [{"a": {"c": 1}}]),
    ({"properties": {"a": {"type": "object"}}}, [{"a": {"any": 1}}], []),
    ({"properties": {"a": {"type": "array", "items": B}}}, [{"a": [{"y": 1}]}], [{"a": [{"z": 1}]}]),
    ({"properties": {"a": {"prefixItems": [B]}}}, [{"a": [{"y": 1}]}], [{"a": [{"z": 1}]}]),
    ({"properties": {"a": {"additionalProperties": B}}}, [{"a": {"k": {"y": 1}}}], [{"a": {"k": {"z": 1}}}]),
    ({"properties": {"a": {"$ref": "#/$defs/B"}}, "$defs": {"B": B}}, [{"a": {"y": 1}}], [{"a": {"z": 1}}]),
    # Combined: each branch sees only its own keys, the whole is closed.
    ({"properties": {"x": {}}, "anyOf": [B, {"properties": {"z": {}}}]}, [{"x": 1, "y": 1}], [{"x": 1, "q": 1}]),
    ({"properties": {"x": {}}, "allOf": [B, {"properties": {"z": {}}}]}, [{"x": 1, "y": 1, "z": 1}], [{"q": 1}]),
    ({"oneOf": [{"properties": {"k": {"const": 1}, "a": {}}, "required": ["k"]},
        {"properties": {"k": {"const": 2}, "b": {}}, "required": ["k"]}]},
        [{"k": 1, "a": 1}, {"k": 2, "b": 1}], [{"k": 1, "b": 1}, {"k": 3}, {"k": 1, "q": 1}]),
    ({"properties": {"x": {}}, "allOf": [{"$ref": "#/$defs/B"}], "$defs": {"B": B}}, [{"x": 1, "y": 2}], [{"q": 1}]),
    ({"properties": {"x": {}}, "$ref": "#/$defs/B", "$defs": {"B": B}}, [{"x": 1, "y": 2}], [{"q": 1}]),
    ({"properties": {"a": {}}, "if": {"properties": {"a": {"const": 1}}}, "then": {"properties": {"b": {}}}},
        [{"a": 1, "b": 1}], [{"a": 2, "b": 1}, {"q": 1}]),
    ({"properties": {"a": {}}, "dependentSchemas": {"a": {"properties": {"c": {}}}}}, [{"a": 1, "c": 1}], [{"q": 1}]),
    ({"properties": {"p": {"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "null"}]}}},
        [{"p": {"a": 1}}, {"p": None}], [{"p": {"q": 1}}]),
    ({"anyOf": [{"properties": {"p": {"type": "object", "properties": {"a": {}}}}}]}, [{"p": {"a": 1}}],
        [{"p": {"q": 1}}]),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"x": {"$ref": "#/definitions/B"}},
        "definitions": {"B": B}}, [{"x": {"y": 1}}], [{"x": {"z": 1}}, {"q": 1}]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "fit", "unfit"), CLOSING, ids=[json.dumps(row[0])[:60] for row in CLOSING])
def test_objects_are_closed(schema: dict[str, Any], fit: list[dict[str, Any]], unfit: list[dict[str, Any]]):
    """Objects that do not say otherwise are closed, through combinators and references, in the validator…"""
    tool = schema_tool(schema)

    assert [takes(tool, arguments) for arguments in fit] == [True] * len(fit)
    assert [takes(tool, arguments) for arguments in unfit] == [False] * len(unfit)


@pytest.mark.parametrize(("schema", "fit", "unfit"), CLOSING, ids=[json.dumps(row[0])[:60] for row in CLOSING])
def test_the_export_says_the_same(schema: dict[str, Any], fit: list[dict[str, Any]], unfit: list[dict[str, Any]]):
    """… and in what models are told: a validator built from the export decides alike."""
    from jsonschema import Draft202012Validator, validators

    exported = schema_tool(schema).definition.input_schema
    validator = validators.validator_for(exported, default=Draft202012Validator)(exported)

    assert [validator.is_valid(arguments) for arguments in fit] == [True] * len(fit)
    assert [validator.is_valid(arguments) for arguments in unfit] == [False] * len(unfit)


def test_the_users_schema_is_left_alone():
    """Closing works on a copy."""
    schema = {"properties": {"a": {"type": "object", "properties": {}}}}
    before = json.dumps(schema)

    tool = schema_tool(schema)
    schema["properties"]["a"]["type"] = "string"

    assert json.loads(before) == {"properties": {"a": {"type": "object", "properties": {}}}}
    assert takes(tool, {"a": {}})


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "array"}, "'object'"),
        ({"type": ["object", "null"]}, "'object'"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "$.properties.a.type"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "$.properties.a.pattern"),
        ({"type": "object", "required": "a"}, "$.required"),
        ({"properties": {"a": {"$ref": "https://example.com/s.json"}}}, "https://example.com/s.json"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "file:///etc/passwd"),
        ({"properties": {"a": {"$ref": "other.json#/x"}}}, "other.json"),
        ({"properties": {"a": {"$ref": "#/$defs/Nowhere"}}}, "#/$defs/Nowhere"),
        ({"properties": {"a": {"$ref": "#nowhere"}}}, "#nowhere"),
        ({"properties": {"a": {"$dynamicRef": "https://example.com/s.json"}}}, "https://example.com/s.json"),
        ({"$ref": "#"}, "#"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"x": {}}, "allOf": [{"required": ["x"]}]},
         "draft-07"),
        ({"properties": {"a": {"$ref": "#/$defs/A"}},
          "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}, "$ref"),
    ],
)  # fmt: skip
def test_schemas_that_are_refused(schema: dict[str, Any], named: str):
    """Not valid, not for an object, pointing outside, or going round in circles: said where it is declared."""
    with pytest.raises(RegistrationError) as raised:
        schema_tool(schema)

    assert "'t'" in str(raised.value)
    assert named in str(raised.value)


@pytest.mark.parametrize(
    ("schema", "fit"),
    [
        ({"properties": {"a": {"$ref": "#/$defs/A%20B"}}, "$defs": {"A B": {"type": "integer"}}}, {"a": 1}),
        ({"properties": {"a": {"$ref": "#/$defs/A~1B"}}, "$defs": {"A/B": {"type": "integer"}}}, {"a": 1}),
        ({"properties": {"a": {"$ref": "#/allOf/0/properties/b"}}, "allOf": [{"properties": {"b": {}}}]}, {"a": 1}),
        ({"properties": {"a": {"$ref": "#here"}}, "$defs": {"A": {"$anchor": "here", "type": "integer"}}}, {"a": 1}),
        ({"properties": {"next": {"$ref": "#"}}}, {"next": {"next": {}}}),
        ({"properties": {"$ref": {"type": "string"}}}, {"$ref": "x"}),
        ({"properties": {"a": {"enum": [{"$ref": "https://example.com"}]}}}, {"a": {"$ref": "https://example.com"}}),
        ({"properties": {"a": {"default": {"$ref": "x"}}}}, {"a": 1}),
    ],
)
def test_references_that_are_fine(schema: dict[str, Any], fit: dict[str, Any]):
    """Escapes, anchors, array steps, recursion, and data that only looks like a reference."""
    assert takes(schema_tool(schema), fit)


def test_strictness_of_json_schemas():
    """True is not 1, and text is not a number; what the schema itself calls an integer is one."""
    tool = schema_tool({"properties": {"n": {"type": "integer"}, "e": {"enum": [1]}, "c": {"const": 0}}})

    assert takes(tool, {"n": 1, "e": 1, "c": 0})
    assert not takes(tool, {"n": True})
    assert not takes(tool, {"n": "1"})
    assert not takes(tool, {"n": 1.5})
    assert not takes(tool, {"e": True})
    assert not takes(tool, {"c": False})


def test_patterns_from_outside_are_linear():
    """A pattern that backtracks is refused where it is declared, or matched without backtracking."""
    try:
        tool = schema_tool({"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}})
    except RegistrationError:
        return
    durations = []
    for length in (10, 20):
        began = thread_seconds()
        assert not takes(tool, {"a": "a" * length + "b"})
        durations.append(thread_seconds() - began)

    assert durations[1] < 20 * durations[0] + 0.01


def thread_seconds() -> float:
    """CPU seconds of this thread."""
    import time as clock

    return clock.thread_time()


@pytest.mark.parametrize("depth", [10, 500])
def test_deep_schemas(depth: int):
    """However deep the schema is, declaring it is a tool or a clear error."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}

    try:
        tool = schema_tool(schema)
    except RegistrationError:
        return
    assert takes(tool, {"a": {}})


# -- handlers -------------------------------------------------------------------------------

AB = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}


def by_name(a: int, b: int) -> object:
    return ("by name", a, b)


def by_position(a: int, b: int, /) -> object:
    return ("by position", a, b)


def by_keywords(**given: int) -> object:
    return ("keywords", given)


def as_one(arguments: dict[str, int]) -> object:
    return ("one", arguments)


def as_one_by_position(arguments: dict[str, int], /) -> object:
    return ("one", arguments)


def with_context(ctx: ToolContext[str], a: int, b: int) -> object:
    return (ctx.deps, a, b)


def one_with_context(arguments: dict[str, int], ctx: ToolContext[str]) -> object:
    return (ctx.deps, arguments)


def position_with_context(ctx: ToolContext[str], arguments: dict[str, int], /) -> object:
    return (ctx.deps, arguments)


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (by_name, ("by name", 1, 2)),
        (by_position, ("by position", 1, 2)),
        (by_keywords, ("keywords", {"a": 1, "b": 2})),
        (as_one, ("one", {"a": 1, "b": 2})),
        (as_one_by_position, ("one", {"a": 1, "b": 2})),
        (with_context, ("deps", 1, 2)),
        (one_with_context, ("deps", {"a": 1, "b": 2})),
        (position_with_context, ("deps", {"a": 1, "b": 2})),
    ],
)
def test_handlers(handler: Callable[..., object], expected: object):
    """By name, as keywords, as one dict; with a context wherever it stands."""
    tool = Tool.from_json_schema(name="t", input_schema=AB, handler=handler)

    assert call(tool, '{"a": 1, "b": 2}') == expected


def test_keys_that_are_no_python_names():
    """A dict or keywords take them."""
    schema = {"properties": {"from": {}, "x-y": {}}}
    for handler in (by_keywords, as_one):
        tool = Tool.from_json_schema(name="t", input_schema=schema, handler=handler)
        assert call(tool, '{"from": 1, "x-y": 2}')[1] == {"from": 1, "x-y": 2}


@pytest.mark.parametrize("handler", [lambda a: a, lambda a, c: a, lambda: 1, lambda a, b, c: a, lambda *a: a])
def test_handlers_that_do_not_fit(handler: Callable[..., object]):
    """Said where it is declared, not when the model calls."""
    with pytest.raises(RegistrationError, match="handler takes"):
        Tool.from_json_schema(name="t", input_schema=AB, handler=handler)


def test_an_optional_property_that_the_handler_must_have():
    """A key that is not required may be missing: the handler needs a default for it, or is refused where declared."""
    optional = {"properties": AB["properties"], "required": ["a"]}

    with pytest.raises(RegistrationError, match=r"the handler takes \['b'\], which the schema does not require"):
        Tool.from_json_schema(name="t", input_schema=optional, handler=by_name)
    tool = Tool.from_json_schema(name="t", input_schema=optional, handler=lambda a, b=5: (a, b))
    assert call(tool, '{"a": 1}') == (1, 5)


def test_the_text_parameter():
    """The one string parameter that free text goes to."""

    def one(script: str) -> None:
        """Do nothing."""

    def with_ctx(ctx: ToolContext[None], script: str) -> None:
        """Do nothing."""

    def number(n: int) -> None:
        """Do nothing."""

    tools = [Tool.from_function(function) for function in (one, with_ctx, number, by_name)]

    assert [tool.text_parameter for tool in tools] == ["script", "script", None, None]


def test_numbers_that_are_no_numbers():
    """NaN cannot get through a validator of the library's own, wherever it came from."""
    tool = tool_for(float)

    assert isinstance(tool.validator.validate('{"v": NaN}', {"v": math.nan}), tuple)
