"""A finished call's text to checked arguments: strict parse and validation against pydantic alone."""

from __future__ import annotations

from typing import cast

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from benchmarks.harness import Effort, Measured, Row, ratio, repeated
from toolrun import Tool
from toolrun._core.json_text import parse_object


class Place(TypedDict):
    """Where."""

    city: str
    country: str


class Stay(TypedDict):
    """What the model writes."""

    place: Place
    nights: int
    guests: list[str]
    budget: float
    breakfast: bool


def book(place: Place, nights: int, guests: list[str], budget: float, breakfast: bool) -> None:
    """Book a stay."""


_TEXT = (
    '{"place": {"city": "Oslo", "country": "NO"}, "nights": 3, "guests": ["Ada Lovelace", "Grace Hopper"],'
    ' "budget": 420.5, "breakfast": true}'
)


def strict(effort: Effort) -> Measured:
    """Both keep duplicate keys, overflow and unknown keys out only in ours: that is what the difference buys."""
    validator = Tool.from_function(book).validator
    validate_json = TypeAdapter(Stay).validator.validate_json

    def ours() -> object:
        return validator.validate(_TEXT, cast("dict[str, object]", parse_object(_TEXT)))

    def floor() -> object:
        return validate_json(_TEXT)

    if ours() != floor():
        raise AssertionError("the two sides of this row give different arguments")
    return ratio(repeated(ours), repeated(floor), effort)


ROWS = (Row("validation", "strict parse and validation against validate_json", "x", 2.0, strict),)
