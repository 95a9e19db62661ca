"""For any signature: what its schema allows validates, reaches the function as its types, and near misses do not."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal, NamedTuple
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel
from pydantic_core import to_json

from toolrun import Tool, ToolContext
from toolrun._core.json_text import parse_object

CONTEXT: ToolContext[Any] = ToolContext(deps=None, call_id="c", tool="t")


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Place(BaseModel):
    city: str
    level: Level = Level.LOW


class Kind(NamedTuple):
    """A type: its annotation, values of it as Python has them, and JSON texts that nearly are of it."""

    annotation: Any
    values: st.SearchStrategy[Any]
    misses: tuple[str, ...]


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
DATES = st.dates(min_value=date(1, 1, 1))
MOMENTS = st.datetimes(timezones=st.just(UTC))

KINDS = st.sampled_from(
    [
        Kind(int, st.integers(), ("true", "1.0", '"1"', "null", "1.5")),
        Kind(float, st.floats(allow_nan=False, allow_infinity=False), ("true", '"1.5"', '"NaN"', "null")),
        Kind(bool, st.booleans(), ("0", "1", '"true"', "null")),
        Kind(str, TEXT, ("1", "true", "null", '["a"]')),
        Kind(date, DATES, ('"1700000000"', "1700000000", '"2024-13-01"', '"2024-01-02T03:04:05"')),
        Kind(datetime, MOMENTS, ('"1700000000"', "1700000000", '"1.5"', '"2024-01-02"')),
        Kind(timedelta, st.timedeltas(timedelta(0), timedelta(days=99)), ("3600", '"3600"', "true")),
        Kind(UUID, st.uuids(), ("1", '"1"', "null")),
        Kind(Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=9),
            ('"NaN"', "true", "0.12345678901234567890123", '"1_0"', "null")),
        Kind(Color, st.sampled_from(Color), ('"RED"', "1", "true", "null")),
        Kind(Level, st.sampled_from(Level), ("true", "1.0", '"1"', "3")),
        Kind(Literal[1, "a"], st.sampled_from([1, "a"]), ("true", "1.0", '"1"', '"b"')),
        Kind(Literal[True], st.sampled_from([True]), ("1", "1.0", '"true"', "false")),
        Kind(Place, st.builds(Place, city=TEXT, level=st.sampled_from(Level)),
            ('{"city": 1}', '{"city": "a", "zip": 1}', "{}", '{"city": "a", "level": true}', "[]")),
    ]
)  # fmt: skip


def listed(kind: Kind) -> Kind:
    return Kind(
        list[kind.annotation], st.lists(kind.values, max_size=3), (*(f"[{miss}]" for miss in kind.misses), "{}")
    )


def mapped(kind: Kind) -> Kind:
    misses = (*(f'{{"k": {miss}}}' for miss in kind.misses), "[]")
    return Kind(dict[str, kind.annotation], st.dictionaries(TEXT, kind.values, max_size=3), misses)


def paired(kind: Kind) -> Kind:
    misses = (*(f"[{miss}, 1]" for miss in kind.misses), "[]", "[1, 2, 3]")
    return Kind(tuple[kind.annotation, int], st.tuples(kind.values, st.integers()), misses)


def optional(kind: Kind) -> Kind:
    misses = tuple(miss for miss in kind.misses if miss != "null")
    return Kind(kind.annotation | None, st.none() | kind.values, misses)


ANY_KIND = KINDS | KINDS.map(listed) | KINDS.map(mapped) | KINDS.map(paired) | KINDS.map(optional)
PLACES = st.sampled_from(
    [
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    ]
)


class Case(NamedTuple):
    """A tool, the values to call it with, and for one of its parameters a text that nearly fits."""

    tool: Tool
    values: dict[str, Any]
    missed: str
    miss: str


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A function whose parameters have any types, stand in any order that Python allows, and may be left out."""
    kinds = draw(st.lists(ANY_KIND, min_size=1, max_size=4))
    places = sorted(draw(st.lists(PLACES, min_size=len(kinds), max_size=len(kinds))))
    defaulted = sorted(draw(st.lists(st.booleans(), min_size=len(kinds), max_size=len(kinds))))
    parameters, values = [], {}
    for number, (kind, place, has_default) in enumerate(zip(kinds, places, defaulted, strict=True)):
        name = f"p{number}"
        default = draw(kind.values) if has_default else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, place, default=default, annotation=kind.annotation))
        if not has_default or draw(st.booleans()):
            values[name] = draw(kind.values)
    missed = draw(st.integers(0, len(kinds) - 1))
    return Case(tool_of(parameters), values, f"p{missed}", draw(st.sampled_from(kinds[missed].misses)))


def tool_of(parameters: list[inspect.Parameter]) -> Tool:
    signature = inspect.Signature(parameters)

    def function(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    function.__signature__ = signature
    function.__annotations__ = {item.name: item.annotation for item in parameters}
    return Tool.from_function(function, name="f")


def written(values: dict[str, Any]) -> str:
    """The arguments as a model would write them."""
    return to_json(values).decode()


@settings(max_examples=150, deadline=None)
@given(cases())
def test_what_the_schema_allows_reaches_the_function(case: Case):
    """The arguments fit the exported schema and the validator, and arrive equal, of the same types, or by default."""
    text = written(case.values)
    arguments = parse_object(text)
    assert isinstance(arguments, dict)
    schema = case.tool.definition.input_schema
    Draft202012Validator.check_schema(schema)

    assert list(Draft202012Validator(schema).iter_errors(arguments)) == []
    found = case.tool.validator.validate(text, arguments)
    assert isinstance(found, dict), found
    args, kwargs = case.tool.bind(found, CONTEXT)
    received = case.tool.function(*args, **kwargs)
    for name, value in case.values.items():
        assert (received[name], type(received[name])) == (value, type(value))
    assert set(received) == set(schema["properties"])


@settings(max_examples=150, deadline=None)
@given(cases())
def test_near_misses_are_refused(case: Case):
    """A bool for an int, digits for a date, a lost digit, an extra key: each is an issue at its path, and no other is."""
    text = json.dumps({**json.loads(written(case.values)), case.missed: 0})
    nearly = text.replace(f'"{case.missed}": 0', f'"{case.missed}": {case.miss}')
    for wrong, path in ((nearly, f"$.{case.missed}"), (text[:-1] + ', "extra": 1}', "$.extra")):
        found = case.tool.validator.validate(wrong, json.loads(wrong))

        assert isinstance(found, tuple), wrong
        assert any(issue.path.startswith(path) for issue in found), found


@settings(max_examples=100, deadline=None)
@given(cases())
def test_a_tool_comes_back_from_its_schema(case: Case):
    """A tool made of the exported schema is told the same, and takes the same arguments."""
    schema = case.tool.definition.input_schema
    again = Tool.from_json_schema(name="f", input_schema=schema)
    text = written(case.values)

    assert again.definition.input_schema == schema
    assert again.validator.validate(text, json.loads(text)) == json.loads(text)
