"""Validation by types and by JSON Schema: the same verdicts, and issues that a model can correct itself by."""

# Tools with annotations of their own: no postponed evaluation here.
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from toolrun import ArgumentIssue, RegistrationError, Tool


class Color(Enum):
    RED = "red"
    ONE = 1


class Level(IntEnum):
    LOW = 1


class Ratio(Enum):
    HALF = 0.5
    WHOLE = 1.0


class Odd(Enum):
    PAIR = (1, 2)


class Pair(NamedTuple):
    x: int
    y: int


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Node(BaseModel):
    level: Level
    when: datetime | None = None
    items: Iterable[int] = ()
    kids: list["Node"] = []


def tool_for(annotation: Any, **options: Any) -> Tool:
    def f(v):
        return v

    f.__annotations__["v"] = annotation
    return Tool.from_function(f, **options)


def issues(tool: Tool, text: str) -> list[ArgumentIssue]:
    found = tool.validator.validate(text, json.loads(text))
    return list(found) if isinstance(found, tuple) else []


def value(tool: Tool, text: str) -> Any:
    found = tool.validator.validate(f'{{"v": {text}}}', json.loads(f'{{"v": {text}}}'))
    assert not isinstance(found, tuple), found
    return found["v"]


# -- holes ------------------------------------------------------------------------------------

INSIDE = [
    '{"level": true}',
    '{"level": 1.0}',
    '{"level": 1, "when": "1700000000"}',
    '{"level": 1, "items": ["a"]}',
    '{"level": 1, "zip": 1}',
    '{"level": 1, "kids": [{"level": true}]}',
    '{"level": 1, "kids": [{"level": 1, "kids": [{"level": 1, "when": "-1.5"}]}]}',
]


@pytest.mark.parametrize("text", INSIDE)
@pytest.mark.parametrize("annotation", [Node, list[Node], dict[str, Node] | Node])
def test_holes_inside_models(annotation: Any, text: str):
    """Closed below models too, which otherwise bring validators of their own; recursion included."""
    wrapped = f"[{text}]" if annotation == list[Node] else text

    assert issues(tool_for(annotation), f'{{"v": {wrapped}}}')


MIXED = Literal[Color.RED, None, 2]  # noqa: PYI061  # the point

FIT = [
    (MIXED, "red", '"red"', Color.RED),
    (MIXED, "two", "2", 2),
    (MIXED, "null", "null", None),
    (Literal[1] | bool, "true", "true", True),
    (Literal[True, 1], "one", "1", 1),
    (Color, "one", "1", Color.ONE),
    (Ratio, "half", "0.5", Ratio.HALF),
    (Ratio, "whole", "1.0", Ratio.WHOLE),
    (datetime | str, "digits", '"1700000000"', "1700000000"),
    (datetime | str, "a date", '"2024-01-02T03:04:05Z"', datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
    (Iterable[int], "items", "[1, 2]", [1, 2]),
    (Decimal, "exact", '"0.12345678901234567890123"', Decimal("0.12345678901234567890123")),
    (Decimal, "short", "0.1", Decimal("0.1")),
    (Decimal, "integer", "123456789012345678901234567890", Decimal(123456789012345678901234567890)),
    (Decimal, "exponent", "1.5e3", Decimal(1500)),
    (Decimal | None, "null", "null", None),
    (Annotated[Decimal, Field(gt=1)], "bounded", "1.5", Decimal("1.5")),
]


@pytest.mark.parametrize(("annotation", "name", "text", "expected"), FIT, ids=[f"{row[0]} {row[1]}" for row in FIT])
def test_what_fits(annotation: Any, name: str, text: str, expected: object):
    """Closing the holes does not close the door: values become the members and types that they say."""
    found = value(tool_for(annotation), text)

    assert (found, type(found)) == (expected, type(expected))


UNFIT = [
    (Literal[Color.RED, 2], '"RED"'),
    (Literal[Color.RED, 2], "2.0"),
    (Literal[True], "1"),
    (Literal[1], '"1"'),
    (Color, "true"),
    (Color, "1.0"),
    (Ratio, "true"),
    (datetime, '"+5"'),
    (datetime, '"1700000000.5"'),
    (Decimal, "0.12345678901234567890123"),
    (Decimal, "1e-400"),
    (Decimal, '"1_000"'),
    (Decimal, '" 1 "'),
    (Decimal, '"\\u0661"'),
    (Decimal, '"Infinity"'),
    (Annotated[Decimal, Field(gt=1)], "0.5"),
    (Pair, '{"x": 1, "y": 2}'),
    (Pair, "[true, 2]"),
    (list[Decimal], '[1.5, 9007199254740993.5, "x"]'),
]


@pytest.mark.parametrize(("annotation", "text"), UNFIT, ids=[f"{row[0]} {row[1]}" for row in UNFIT])
def test_what_does_not_fit(annotation: Any, text: str):
    """Near misses are refused, not converted."""
    assert issues(tool_for(annotation), f'{{"v": {text}}}')


def test_digits_are_counted_only_where_a_decimal_stands():
    """A float takes what a double takes, and a number inside a string is text."""

    def f(a: float, b: Decimal, c: str) -> None:
        """Do nothing."""

    tool = Tool.from_function(f)

    assert issues(tool, '{"a": 0.12345678901234567890123, "b": 0.5, "c": "\\"0.12345678901234567890123, 1e9"}') == []
    assert [issue.path for issue in issues(tool, '{"a": 0.5, "b": 0.12345678901234567890123, "c": ""}')] == ["$.b"]


@pytest.mark.parametrize(("annotation", "named"), [(Odd, "Odd.PAIR"), (Literal[b"x"], "b'x'"), (list[Odd], "Odd.PAIR")])
def test_values_that_json_cannot_say(annotation: Any, named: str):
    """An enum of tuples cannot be asked for: said where it is declared."""
    with pytest.raises(RegistrationError, match="parameter 'v' has the type") as raised:
        tool_for(annotation)

    assert named in str(raised.value)


class Early(BaseModel):
    """A model whose own validators see every value before pydantic does."""

    day: date
    at: datetime | None = None
    pair: tuple[int, int] = (0, 0)
    words: set[str] = set()
    price: Decimal = Decimal(0)
    color: Color = Color.RED
    raw: bytes = b""

    @model_validator(mode="before")
    @classmethod
    def look(cls, given: Any) -> Any:
        return given

    @field_validator("*", mode="before")
    @classmethod
    def pass_on(cls, given: Any) -> Any:
        return given


def test_validators_of_the_authors():
    """A validator that runs before pydantic's does not turn JSON into Python values that strict mode refuses."""
    text = '{"day": "2024-01-02", "pair": [1, 2], "words": ["a"], "price": "1.5", "color": "red", "raw": "ab"}'
    early = value(tool_for(Early), text)

    assert (early.day, early.pair, early.words, early.price) == (date(2024, 1, 2), (1, 2), {"a"}, Decimal("1.5"))
    assert (early.color, early.raw) == (Color.RED, b"ab")
    assert value(tool_for(Annotated[date, BeforeValidator(lambda given: given)]), '"2024-01-02"') == date(2024, 1, 2)
    for wrong in ('{"day": 5}', '{"day": "2024-01-02", "color": true}', '{"day": "2024-01-02", "at": "17"}'):
        assert issues(tool_for(Early), f'{{"v": {wrong}}}')


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    city: str
    inner: Cat | None = None


class Ignoring(BaseModel):
    model_config = ConfigDict(extra="ignore")
    city: str


def test_models_that_say_whether_they_are_open():
    """`allow` is told and heeded, for the model that says it alone; `ignore` would drop keys, and is not heeded."""
    tool = tool_for(Open)

    assert value(tool, '{"city": "Oslo", "zip": 1}').model_extra == {"zip": 1}
    assert tool.definition.input_schema["$defs"]["Open"]["additionalProperties"] is True
    assert [
        issue.path for issue in issues(tool, '{"v": {"city": "", "inner": {"kind": "cat", "lives": 9, "x": 1}}}')
    ] == ["$.v.inner.x"]
    assert [issue.code for issue in issues(tool_for(Ignoring), '{"v": {"city": "Oslo", "zip": 1}}')] == ["unknown_key"]


# -- issues -----------------------------------------------------------------------------------


@dataclass
class Point:
    x: int


def everything(
    n: int,
    level: Literal["low", "high"],
    pet: Annotated[Cat | Dog, Field(discriminator="kind")],
    either: int | list[int] = 0,
    point: Point | None = None,
    few: Annotated[list[int], Field(max_length=2)] = [],  # noqa: B006  # as users write it
    **others: bool,
) -> None:
    """Do nothing."""


GOOD = {"n": 1, "level": "low", "pet": {"kind": "cat", "lives": 9}}

ISSUES = [
    ({"n": "5"}, '$.n: Input should be a valid integer, got "5"', '$.n: Input should be of type integer, got "5"'),
    ({"n": None}, "$.n: Input should be a valid integer, got null", "$.n: Input should be of type integer, got null"),
    ({"level": "mid"}, "$.level: Input should be 'low' or 'high', got \"mid\"",
        '$.level: Input should be "low" or "high", got "mid"'),
    ({"few": [1, 2, 3]}, "$.few: List should have at most 2 items after validation, not 3, got an array of 3",
        "$.few: Input should be an array of at most 2, got an array of 3"),
    ({"point": {}}, "$.point.x: Field required", None),
    ({"point": {"x": 1, "y": 2}}, "$.point.y: Unexpected keyword argument", None),
    ({"pet": {"kind": "cat", "lives": "9"}}, '$.pet.lives: Input should be a valid integer, got "9"', None),
    ({"a b": 1}, '$["a b"]: Input should be a valid boolean, got 1', '$["a b"]: Input should be of type boolean, got 1'),
]  # fmt: skip


@pytest.mark.parametrize(("change", "typed", "schema"), ISSUES, ids=[str(row[0]) for row in ISSUES])
def test_issues_read_the_same(change: dict[str, Any], typed: str, schema: str | None):
    """A JSON path, what was expected, what came; by types and by the very schema that these types are told as."""
    by_types = Tool.from_function(everything)
    by_schema = Tool.from_json_schema(name="t", input_schema=by_types.definition.input_schema)
    text = json.dumps({**GOOD, **change})

    assert [issue.describe() for issue in issues(by_types, text)] == [typed]
    found = issues(by_schema, text)
    assert found != []
    if schema is not None:
        assert [issue.describe() for issue in found] == [schema]


def test_issues_in_fields():
    """The parts are there for a program."""
    (issue,) = issues(Tool.from_function(everything), json.dumps({**GOOD, "n": "5"}))

    assert (issue.code, issue.path, issue.expected, issue.came) == ("type", "$.n", "a valid integer", '"5"')


def test_paths_lead_through_the_arguments_alone():
    """The arms of a union are not steps."""
    found = issues(Tool.from_function(everything), json.dumps({**GOOD, "either": [1, "2"], "pet": {"kind": "cow"}}))

    assert [issue.path for issue in found] == ["$.pet", "$.either", "$.either[1]"]


def test_missing_and_unknown_keys():
    """By both validators: the path is that of the key."""

    def f(a: int, b: int) -> None:
        """Do nothing."""

    typed = Tool.from_function(f)
    for tool in (typed, Tool.from_json_schema(name="t", input_schema=typed.definition.input_schema)):
        found = {(issue.path, issue.code, issue.message) for issue in issues(tool, '{"c": 1, "d": 2}')}
        assert found == {
            ("$.a", "missing_key", "Field required"),
            ("$.b", "missing_key", "Field required"),
            ("$.c", "unknown_key", "Extra inputs are not permitted"),
            ("$.d", "unknown_key", "Extra inputs are not permitted"),
        }


def test_the_nearest_alternative():
    """Of alternatives that all fail, the one that failed latest says what it would need."""
    schema = {"properties": {"v": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}}}
    (issue,) = issues(Tool.from_json_schema(name="t", input_schema=schema), '{"v": [1, "2"]}')

    assert issue.describe() == (
        "$.v: Input should be one of 2 alternatives; the nearest needs:"
        ' $.v[1]: Input should be of type integer, got "2"'
    )
