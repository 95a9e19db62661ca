"""From values and errors to what a model is told."""

from __future__ import annotations

import json
import math
from collections import OrderedDict, UserDict, deque
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import BaseModel

from toolrun import ArgumentIssue, ToolError, TryAgain
from toolrun._core import results


class Color(Enum):
    RED = "red"


class Unit(StrEnum):
    C = "c"


class StrColor(str, Enum):  # noqa: UP042  # the old way, which is not a StrEnum
    RED = "red"


@dataclass
class Weather:
    degrees: float
    when: datetime
    tags: set[str] = field(default_factory=set)


class Place(BaseModel):
    city: str
    inner: list[Weather] = []


NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        ("", ""),
        ('{"a": 1}', '{"a": 1}'),
        ("Zürich 🌍", "Zürich 🌍"),
        (None, "null"),
        (False, "false"),
        (True, "true"),
        (0, "0"),
        (0.0, "0.0"),
        (1.5, "1.5"),
        (10**30, "1" + "0" * 30),
        ([], "[]"),
        ({}, "{}"),
        ((1, "a"), '[1,"a"]'),
        ({1}, "[1]"),
        (frozenset(["a"]), '["a"]'),
        (deque([1, 2]), "[1,2]"),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (math.nan, "null"),
        ({"x": math.inf, "y": [-math.inf, 1.0]}, '{"x":null,"y":[null,1.0]}'),
        (NOON, '"2024-01-02T12:00:00Z"'),
        (date(2024, 1, 2), '"2024-01-02"'),
        (timedelta(hours=1), '"PT1H"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Decimal("1.10"), '"1.10"'),
        (Color.RED, '"red"'),
        (Path("a"), '"a"'),
        (b"\x00\xff", '"AP8="'),
        (Weather(1.5, NOON), '{"degrees":1.5,"when":"2024-01-02T12:00:00Z","tags":[]}'),
        (Place(city="Oslo"), '{"city":"Oslo","inner":[]}'),
        ([Place(city="Oslo")], '[{"city":"Oslo","inner":[]}]'),
        ({1: "a", None: "b"}, '{"1":"a","None":"b"}'),
        ({(1, 2): "a"}, '{"1,2":"a"}'),
        ("\x00\u2028</script>", "\x00\u2028</script>"),
    ],
    ids=repr,
)
def test_values(value: object, text: str):
    """A str as it is, anything else as JSON; nothing is lost because it is falsy."""
    told = results.value_text(value)

    assert told == text
    if not isinstance(value, str):
        json.loads(told, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    told.encode()


def test_a_string_enum_is_a_plain_text():
    """The text of the member, of type `str` exactly: nothing that prints otherwise later."""
    for member in (Unit.C, StrColor.RED):
        told = results.value_text(member)

        assert type(told) is str
        assert f"{told}" == member.value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\ud83db", "a\ufffdb"),
        ("\ude00", "\ufffd"),
        (["\ud83d"], '["\ufffd"]'),
        ({"k": {"\ud83d": "\ude00"}}, '{"k":{"\ufffd":"\ufffd"}}'),
        (Place(city="\ud83d"), '{"city":"\ufffd","inner":[]}'),
    ],
)
def test_lone_surrogates_become_the_replacement_character(value: object, text: str):
    """Wherever they are in the value: else the next request cannot be encoded."""
    told = results.value_text(value)

    told.encode()
    assert told == text


def circular() -> object:
    value: list[object] = []
    value.append(value)
    return value


def circular_dict() -> object:
    value: dict[str, object] = {}
    value["a"] = {"b": value}
    return value


def deep() -> object:
    value: list[object] = []
    for _ in range(10_000):
        value = [value]
    return value


class Thing:
    """Nothing that JSON knows."""


class Raising(UserDict[str, object]):
    """Not a dict, and it cannot be gone through."""

    def __iter__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "value",
    [circular(), circular_dict(), deep(), Thing(), {"a": [Thing()]}, Thing, len, Raising()],
    ids=[
        "circular list", "circular dict", "deep list", "object", "object inside", "class", "function",
        "raising mapping",
    ],
)  # fmt: skip
def test_what_cannot_be_written(value: object):
    """A ValueError that names the type; never a hang, a crash or a repr."""
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        results.value_text(value)


# -- refusals and errors --------------------------------------------------------------------

CODES = (
    "truncated", "no_finish", "stream_error", "broken_finish", "beside_nameless", "limit", "nameless",
    "identity_conflict", "held",
)  # fmt: skip


def test_every_refusal_says_that_nothing_ran():
    """Each code has words of its own, and all begin alike."""
    texts = [results.refusal_text(code) for code in CODES]

    assert len(set(texts)) == len(CODES)
    assert all(text.startswith("Not run: ") for text in texts)
    assert results.refusal_text("a code of the future").startswith("Not run: ")


def test_a_syntax_error_says_where():
    """What, line, column, character, and a short piece of the text."""
    issue = ArgumentIssue("syntax", "expected `:`", "", 7, 2, 3, '{"a" 1}')

    assert results.syntax_text(issue) == (
        "Not run: the arguments are not one valid JSON object: expected `:` (line 2, column 3, character 7, "
        "near '{\"a\" 1}'). Send the call again."
    )


def test_schema_issues_are_listed():
    """One line each, with its path."""
    issues = [ArgumentIssue("type", "should be an int", "$.a"), ArgumentIssue("unknown_key", "not permitted", "$.b")]

    assert results.schema_text(issues) == (
        "Not run: the arguments do not fit the tool's schema. Correct them and send the call again.\n"
        "- $.a: should be an int\n"
        "- $.b: not permitted"
    )


def test_what_is_quoted_is_capped():
    """A hostile name or value does not fill the model's context."""
    long = "x" * 100_000

    assert len(results.unknown_tool_text(long, ["f"])) < 400
    assert len(results.schema_text([ArgumentIssue("type", long, "$.a")])) < 400
    assert len(results.syntax_text(ArgumentIssue("syntax", long, "", 0, 1, 1, long))) < 400


DOUBT = "The tool failed with an internal error (ValueError). It may have had an effect before it failed."


def test_an_unknown_tool_lists_the_known_ones():
    """Or says that there is none."""
    assert results.unknown_tool_text("x", ["a", "b"]) == ("Not run: there is no tool named 'x'. Available tools: a, b.")
    assert results.unknown_tool_text(None, []) == "Not run: there is no tool named ''. Available tools: none."


@pytest.mark.parametrize(
    ("error", "may_have_run", "text"),
    [
        (ToolError("No such city."), True, "No such city."),
        (ToolError(), True, "ToolError"),
        (TryAgain("Busy."), True, "Busy."),
        (ValueError("secret"), True, DOUBT),
        (ValueError(), False, "The tool failed with an internal error (ValueError)."),
        (KeyError("secret"), False, "The tool failed with an internal error (KeyError)."),
    ],
    ids=repr,
)  # fmt: skip
def test_errors(error: BaseException, may_have_run: bool, text: str):
    """A tool's own words only if it means them for the model."""
    assert results.error_text(error, may_have_run=may_have_run) == text


def test_timeouts():
    """With the limit, and the doubt if there is one."""
    assert results.timeout_text(2.5, may_have_run=False) == (
        "The tool did not finish within its time limit of 2.5 seconds."
    )
    assert results.timeout_text(None, may_have_run=True) == (
        "The tool did not finish within its time limit. It may still have an effect."
    )


def test_a_tools_own_words_can_be_sent():
    """A lone surrogate in an error's text would end the next request."""
    results.error_text(ToolError("bad \ud83d"), may_have_run=True).encode()
