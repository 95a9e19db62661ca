"""Every way to declare a tool: what it is called with, what models are told, and what is refused."""

# Tools with annotations of their own: no postponed evaluation here, except where a test compiles its own.
import functools
import json
import sys
import types
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NotRequired

import pytest
from pydantic import BaseModel, RootModel
from typing_extensions import TypedDict, Unpack

import toolrun
from toolrun import RegistrationError, Runner, Tool, ToolContext, ToolRegistry

CONTEXT: ToolContext[Any] = ToolContext(deps="deps", call_id="c", tool="t", key="k")


def call(tool: Tool, text: str) -> object:
    """Validate, bind and call."""
    values = tool.validator.validate(text, json.loads(text))
    assert isinstance(values, Mapping), values
    args, kwargs = tool.bind(values, CONTEXT)
    return tool.runnable()(*args, **kwargs)


def codes(tool: Tool, text: str) -> list[tuple[str, str]]:
    """The paths and codes of the issues; none if the arguments fit."""
    found = tool.validator.validate(text, json.loads(text))
    return [(issue.path, issue.code) for issue in found] if isinstance(found, tuple) else []


def properties(tool: Tool) -> dict[str, Any]:
    return tool.definition.input_schema["properties"]


def response(*calls: tuple[str, str]) -> dict[str, Any]:
    entries = [
        {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(calls)
    ]
    return {"choices": [{"message": {"tool_calls": entries}, "finish_reason": "tool_calls"}]}


# -- kinds of functions -----------------------------------------------------------------------


def plain(n: int) -> int:
    return n


async def awaited(n: int) -> int:
    return n


def counted(n: int) -> Iterator[int]:
    yield from range(n + 1)


async def counted_async(n: int) -> AsyncIterator[int]:
    for item in range(n + 1):
        yield item


class Object:
    def __call__(self, n: int) -> int:
        return n


class AsyncObject:
    async def __call__(self, n: int) -> int:
        return n


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Holder:
    @staticmethod
    def static(n: int) -> int:
        return n

    def method(self, n: int) -> int:
        return n


KINDS = [
    (plain, "function"),
    (awaited, "coroutine"),
    (counted, "generator"),
    (counted_async, "async_generator"),
    (Object(), "function"),
    (AsyncObject(), "coroutine"),
    (functools.partial(plain), "function"),
    (functools.partial(awaited), "coroutine"),
    (functools.partial(functools.partial(counted)), "generator"),
    (functools.partial(AsyncObject()), "coroutine"),
    (wrapped(plain), "function"),
    (wrapped(awaited), "function"),  # nothing tells before it is called; the runner awaits what it returns
    (Holder.static, "function"),
    (vars(Holder)["static"], "function"),
    (Holder().method, "function"),
]


@pytest.mark.parametrize(("function", "kind"), KINDS, ids=[f"{row[1]}-{place}" for place, row in enumerate(KINDS)])
async def test_kinds_of_functions(function: Callable[..., Any], kind: str):
    """The kind is known, the schema is the same, and the runner gives the same value for each."""
    registry = ToolRegistry([Tool.from_function(function, name="f")])

    assert registry["f"].kind == kind
    assert properties(registry["f"]) == {"n": {"type": "integer"}}
    async with Runner(registry) as runner:
        (outcome,) = (await runner.run(response(("f", '{"n": 3}')))).outcomes
    assert (outcome.status, outcome.value) == ("succeeded", 3)


async def test_a_generator_that_yields_nothing():
    """Its result is None."""

    def nothing() -> Iterator[int]:
        yield from ()

    async def nothing_async() -> AsyncIterator[int]:
        for item in ():
            yield item

    async with Runner(ToolRegistry([Tool.from_function(nothing), Tool.from_function(nothing_async)])) as runner:
        turn = await runner.run(response(("nothing", "{}"), ("nothing_async", "{}")))

    assert [outcome.value for outcome in turn.outcomes] == [None, None]
    assert [outcome.status for outcome in turn.outcomes] == ["succeeded", "succeeded"]


# -- parameters -------------------------------------------------------------------------------


def test_what_a_partial_has_bound_is_hidden():
    """A bound argument may be a secret: neither told to models nor theirs to change."""

    def ask(key: str, question: str, *, region: str = "eu") -> tuple[str, str, str]:
        return (key, question, region)

    tool = Tool.from_function(functools.partial(functools.partial(ask, key="s3cret"), region="us"))

    assert properties(tool) == {"question": {"type": "string"}}
    assert codes(tool, '{"question": "?", "key": "mine"}') == [("$.key", "unknown_key")]
    assert call(tool, '{"question": "?"}') == ("s3cret", "?", "us")


def rest(n: int, **others: date) -> object:
    return (n, others)


def anything(**others) -> object:
    return others


class Options(TypedDict):
    limit: int
    since: NotRequired[date]


def options(query: str, **given: Unpack[Options]) -> object:
    return (query, given)


def test_keyword_arguments():
    """`**kwargs` admits further keys of its type, as the schema says; those of a TypedDict are parameters."""
    typed, untyped, unpacked = (Tool.from_function(function) for function in (rest, anything, options))

    assert typed.definition.input_schema["additionalProperties"] == {"type": "string", "format": "date"}
    assert untyped.definition.input_schema["additionalProperties"] is True
    assert unpacked.definition.input_schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
            "since": {"type": "string", "format": "date"},
        },
        "required": ["query", "limit"],
        "additionalProperties": False,
    }
    assert call(typed, '{"n": 1, "a": "2024-01-02"}') == (1, {"a": date(2024, 1, 2)})
    assert codes(typed, '{"n": 1, "a": "soon"}') == [("$.a", "value")]
    assert call(untyped, '{"a": [1], "b": null}') == {"a": [1], "b": None}
    assert call(unpacked, '{"query": "q", "limit": 3}') == ("q", {"limit": 3})
    assert codes(unpacked, '{"query": "q"}') == [("$.limit", "missing_key")]


def test_keyword_arguments_do_not_reach_the_context():
    """A model that sends the context's name has sent an unknown key, not a context."""

    def act(ctx: ToolContext[str], **others: str) -> object:
        return (ctx.deps, others)

    tool = Tool.from_function(act)

    assert call(tool, '{"a": "b"}') == ("deps", {"a": "b"})
    assert codes(tool, '{"ctx": "mine"}') == [("$.ctx", "unknown_key")]


def two_contexts(a: ToolContext[str], b: ToolContext[str]) -> None:
    """Do nothing."""


def nested_context(many: list[ToolContext[str]]) -> None:
    """Do nothing."""


class OwnContext(ToolContext[str]):
    """A context of somebody's own, which no runner makes."""


def own_context(ctx: OwnContext) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (two_contexts, ["'two_contexts'", "a and b"]),
        (nested_context, ["'nested_context'", "'many'", "list[toolrun"]),
        (own_context, ["'own_context'", "'ctx'", "OwnContext"]),
        (Holder.method, ["'method'", "Holder.method", "add_methods"]),
        (Holder, ["'Holder'"]),
    ],
)
def test_what_is_refused(function: Any, named: list[str]):
    """A context that nobody could give, and a method without its instance: clear errors, nothing leaks to models."""
    with pytest.raises(RegistrationError) as raised:
        Tool.from_function(function)

    assert all(name in str(raised.value) for name in named), str(raised.value)


POSTPONED = """
from __future__ import annotations
from dataclasses import dataclass
from pydantic import BaseModel
from toolrun import Tool

def make():
    class Local(BaseModel):
        x: int

    @dataclass
    class Part:
        y: int

    def f(local: Local, parts: list[Part]) -> object:
        return (type(local).__name__, local.x, parts[0].y)

    return Tool.from_function(f)

def missing(a: int, n: Nowhere) -> None: ...
"""

GENERIC = """
from toolrun import Tool
from pydantic import BaseModel

type Size = int | None

class Box[T](BaseModel):
    content: T

def first[T: int](items: list[T], size: Size = None) -> T:
    return items[0]

def unbox(box: Box[int]) -> int:
    return box.content
"""


def module(source: str) -> types.ModuleType:
    made = types.ModuleType("made_for_a_test")
    sys.modules[made.__name__] = made
    exec(compile(source, made.__name__, "exec"), made.__dict__)
    return made


@pytest.fixture(autouse=True)
def _no_module_left():
    yield
    sys.modules.pop("made_for_a_test", None)


def test_local_types_under_postponed_annotations():
    """Names of the function around the tool are found, though nothing in the tool's body uses them."""
    assert call(module(POSTPONED).make(), '{"local": {"x": 1}, "parts": [{"y": 2}]}') == ("Local", 1, 2)


def test_an_annotation_that_cannot_be_resolved():
    """The error names the parameter and the annotation."""
    with pytest.raises(RegistrationError, match="tool 'missing': parameter 'n' has the annotation 'Nowhere'"):
        Tool.from_function(module(POSTPONED).missing)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax came with Python 3.12")
@pytest.mark.parametrize("postponed", [False, True])
def test_type_parameters(postponed: bool):
    """PEP 695: bounds, aliases and generic models, as types and as text."""
    made = module("from __future__ import annotations\n" * postponed + GENERIC)
    first, unbox = Tool.from_function(made.first), Tool.from_function(made.unbox)

    assert properties(first)["items"] == {"type": "array", "items": {"type": "integer"}}
    assert call(first, '{"items": [3]}') == 3
    assert codes(first, '{"items": ["3"]}') == [("$.items[0]", "type")]
    assert codes(first, '{"items": [3], "size": true}') != []
    assert call(unbox, '{"box": {"content": 3}}') == 3


# -- methods ----------------------------------------------------------------------------------


class Account:
    def __init__(self, balance: int) -> None:
        self.balance = balance

    @toolrun.tool
    def read_balance(self) -> int:
        """What is there."""
        return self.balance

    @toolrun.tool(name="deposit", effect="idempotent", tags=["money"])
    async def add(self, amount: int) -> int:
        self.balance += amount
        return self.balance

    @staticmethod
    @toolrun.tool
    def currency(country: str) -> str:
        return country[:2]

    @toolrun.tool
    @staticmethod
    def rate(n: float) -> float:
        return n

    @classmethod
    @toolrun.tool
    def kind(cls) -> str:
        return cls.__name__

    def untold(self) -> None:
        """Do nothing."""


class Savings(Account):
    def read_balance(self) -> int:
        """What is saved."""
        return 2 * self.balance


def test_methods():
    """Those that are marked, bound to their instance, in order; the class and its functions stay what they are."""
    registry = ToolRegistry()
    registry.add_methods(Account(5))

    assert [tool.name for tool in registry] == ["read_balance", "deposit", "currency", "rate", "kind"]
    assert properties(registry["deposit"]) == {"amount": {"type": "integer"}}
    assert (registry["deposit"].effect, registry["deposit"].tags) == ("idempotent", {"money"})
    assert registry["read_balance"].definition.description == "What is there."
    assert call(registry["read_balance"], "{}") == 5
    assert call(registry["currency"], '{"country": "Norway"}') == "No"
    assert call(registry["rate"], '{"n": 1.5}') == 1.5
    assert call(registry["kind"], "{}") == "Account"
    assert Account(7).read_balance() == 7


def test_methods_of_two_instances():
    """Each has its own state; a prefix keeps their names apart, and without one nothing of the second is added."""
    registry = ToolRegistry()
    registry.add_methods(Account(1))
    with pytest.raises(RegistrationError, match="'read_balance' is registered already"):
        registry.add_methods(Account(2))
    assert len(registry) == 5
    registry.add_methods(Account(2), prefix="other_")

    assert call(registry["read_balance"], "{}") == 1
    assert call(registry["other_read_balance"], "{}") == 2


def test_overridden_methods():
    """A method that overrides a marked one is the tool."""
    registry = ToolRegistry()
    registry.add_methods(Savings(5))

    assert call(registry["read_balance"], "{}") == 10
    assert registry["read_balance"].definition.description == "What is saved."


@pytest.mark.parametrize(("instance", "said"), [(Account, "Account is a class"), (Holder(), "has no method")])
def test_instances_that_have_no_tools(instance: object, said: str):
    """Said where it is registered."""
    with pytest.raises(RegistrationError, match=said):
        ToolRegistry().add_methods(instance)


# -- models -----------------------------------------------------------------------------------


class Order(BaseModel):
    """An order for the kitchen."""

    dish: str
    count: int = 1


@dataclass
class Point:
    x: int
    y: int = 0


class Shape(TypedDict):
    sides: int
    name: NotRequired[str]


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


def cook(order: Order) -> object:
    """Cook it."""
    return order


def cook_in_context(ctx: ToolContext[str], order: Order, /) -> object:
    return (ctx.deps, order)


MODELS = [
    (Order, cook, '{"dish": "soup"}', Order(dish="soup")),
    (Order, cook_in_context, '{"dish": "soup"}', ("deps", Order(dish="soup"))),
    (Order, lambda order, heat=3: (order, heat), '{"dish": "soup"}', (Order(dish="soup"), 3)),
    (Point, lambda point: point, '{"x": 1}', Point(1, 0)),
    (Shape, lambda shape: shape, '{"sides": 3}', {"sides": 3}),
    (Tree, lambda tree: tree, '{"value": 1, "children": [{"value": 2}]}', Tree(value=1, children=[Tree(value=2)])),
]


@pytest.mark.parametrize(("model", "handler", "text", "expected"), MODELS)
def test_models(model: type[Any], handler: Callable[..., Any], text: str, expected: object):
    """The fields are the arguments, the handler gets the object, and what is no field is refused."""
    tool = Tool.from_model(model, handler, name="t")

    assert tool.definition.input_schema["type"] == "object"
    assert tool.definition.input_schema["additionalProperties"] is False
    assert call(tool, text) == expected
    assert codes(tool, text[:-1] + ', "zip": 1}') == [("$.zip", "unknown_key")]
    assert codes(tool, "{}")[0][1] == "missing_key"


def test_names_and_descriptions_of_models():
    """The handler's, else the class's; what is said in the declaration wins."""
    told = [
        Tool.from_model(Order, cook).definition,
        Tool.from_model(Order, None).definition,
        Tool.from_model(Order, lambda order: order, name="o").definition,
        Tool.from_model(Order, cook, name="o", description="").definition,
    ]

    assert [(item.name, item.description) for item in told] == [
        ("cook", "Cook it."),
        ("Order", "An order for the kitchen."),
        ("o", "An order for the kitchen."),
        ("o", ""),
    ]
    assert "description" not in told[1].input_schema


@pytest.mark.parametrize(
    ("model", "handler", "said"),
    [
        (RootModel[list[int]], cook, "is not an object with fields"),
        (int, cook, "is not an object with fields"),
        (Order, lambda: None, "needs one parameter"),
        (Order, lambda a, b: None, "needs one parameter"),
        (Order, lambda *orders: None, "needs one parameter"),
    ],
)
def test_models_that_do_not_fit(model: Any, handler: Any, said: str):
    """Said where it is declared."""
    with pytest.raises(RegistrationError, match=said):
        Tool.from_model(model, handler, name="t")


# -- declared only ----------------------------------------------------------------------------


async def test_tools_that_are_only_declared():
    """Their calls are validated like any other, and then wait for an answer from elsewhere."""
    schema = {"properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    pay = Tool.from_json_schema(name="pay", input_schema=schema)
    registry = ToolRegistry([pay, Tool.from_model(Order, None)])

    async with Runner(registry) as runner:
        turn = await runner.run(
            response(("pay", '{"amount": 5}'), ("pay", '{"amount": "five"}'), ("Order", '{"dish": "soup"}'))
        )

    assert [(outcome.status, outcome.code) for outcome in turn.outcomes] == [
        ("deferred", "declared_only"),
        ("refused", "schema"),
        ("deferred", "declared_only"),
    ]
    assert turn.outcomes[0].arguments == {"amount": 5}
    assert not turn.needs_reply
    assert [outcome.call.id for outcome in turn.pending] == ["call_0", "call_2"]
    with pytest.raises(toolrun.TurnPending, match="call_0, call_2"):
        turn.messages()


# -- options of validation --------------------------------------------------------------------


def test_lax_tools():
    """`strict=False` takes what pydantic's lax mode takes; a JSON Schema has no such mode."""

    def f(n: int, when: date) -> object:
        return (n, when)

    tool = Tool.from_function(f, strict=False)

    assert call(tool, '{"n": "5", "when": 0}') == (5, date(1970, 1, 1))
    assert codes(tool, '{"n": "five", "when": "2024-01-02", "zip": 1}') == [("$.n", "value"), ("$.zip", "unknown_key")]
    assert codes(Tool.from_function(f), '{"n": "5", "when": "2024-01-02"}') == [("$.n", "type")]
    with pytest.raises(RegistrationError, match="a JSON Schema has no lax mode"):
        Tool.from_json_schema(name="t", input_schema={}, strict=False)


def test_open_tools():
    """`open=True` admits keys that the schema does not have, at every level and for every source."""

    def f(order: Order) -> object:
        return order

    schema = {"properties": {"order": {"type": "object", "properties": {"dish": {"type": "string"}}}}}
    text = '{"order": {"dish": "soup", "zip": 1}, "zip": 2}'
    tools = [
        Tool.from_function(f, open=True),
        Tool.from_json_schema(name="t", input_schema=schema, handler=lambda arguments: arguments, open=True),
    ]

    assert call(tools[0], text) == Order(dish="soup")
    assert call(tools[1], text) == json.loads(text)
    assert call(Tool.from_model(Order, cook, open=True), '{"dish": "soup", "zip": 1}') == Order(dish="soup")
    assert [tool.definition.input_schema.get("additionalProperties", True) for tool in tools] == [True, True]
    assert codes(Tool.from_function(f), text) == [("$.order.zip", "unknown_key"), ("$.zip", "unknown_key")]
