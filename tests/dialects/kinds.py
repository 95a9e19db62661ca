"""One tool for each kind of type that a signature can have."""

# Annotations are what is under test: no postponed evaluation here.
import dataclasses
import enum
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from toolrun import Tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    depth: int
    label: str


class Pair(NamedTuple):
    name: str
    size: int


class Guest(BaseModel):
    """Somebody who comes."""

    name: str = Field(description="In full.")
    age: int | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


class Node(BaseModel):
    value: int
    children: list["Node"] = []


class Link(BaseModel):
    """Its next one is required: no value is finite but by null."""

    value: int
    after: "Link | None"


def no_parameters() -> None: ...
def scalars(text: str, whole: int, real: float, yes: bool) -> None: ...
def literal(unit: Literal["c", "f"]) -> None: ...
def literal_of_numbers(size: Literal[1, 2, 3]) -> None: ...
def literal_with_null(unit: Literal["c", "f", None] = "c") -> None: ...  # noqa: PYI061  # another schema than `| None`
def one_literal(kind: Literal["only"]) -> None: ...
def both_booleans(yes: Literal[True, False]) -> None: ...
def enumeration(colour: Colour, level: Level = Level.LOW) -> None: ...
def optional(city: str | None = None) -> None: ...
def defaults(city: str, days: int = 3, tags: list[str] = []) -> None: ...  # noqa: B006  # declared, never called
def scalar_union(key: int | str) -> None: ...
def model_union(thing: Guest | Point) -> None: ...
def discriminated(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> None: ...
def dataclass(point: Point, other: Point | None = None) -> None: ...
def typed_dict(options: Options) -> None: ...
def named_tuple(pair: Pair) -> None: ...
def model(guest: Guest) -> None: ...
def models(guests: list[Guest]) -> None: ...
def same_model_twice(x: Guest, y: Guest, z: Guest) -> None: ...
def described_model(guest: Annotated[Guest, Field(description="Who.")]) -> None: ...
def recursive(tree: Node) -> None: ...
def recursive_required(chain: Link) -> None: ...
def dates(day: date, moment: datetime, hour: time, span: timedelta) -> None: ...
def uuid(key: UUID) -> None: ...
def decimal(amount: Decimal) -> None: ...
def binary(data: bytes) -> None: ...
def path(file: Path) -> None: ...
def sets(tags: set[str], more: frozenset[int] = frozenset()) -> None: ...
def equal_tuple(corner: tuple[int, int]) -> None: ...
def mixed_tuple(row: tuple[int, str]) -> None: ...
def open_tuple(row: tuple[int, ...]) -> None: ...
def mapping(counts: dict[str, int]) -> None: ...
def anything(value: Any) -> None: ...
def bounded(
    count: Annotated[int, Field(ge=1, le=9)], name: Annotated[str, Field(min_length=2, max_length=4)]
) -> None: ...
def pattern(code: Annotated[str, Field(pattern="^[A-Z]{2}[0-9]$")]) -> None: ...
def few_items(tags: Annotated[list[str], Field(min_length=1, max_length=3)]) -> None: ...


FUNCTIONS: tuple[Callable[..., None], ...] = (
    no_parameters, scalars, literal, literal_of_numbers, literal_with_null, one_literal, both_booleans, enumeration,
    optional, defaults, scalar_union, model_union, discriminated, dataclass, typed_dict, named_tuple, model, models,
    same_model_twice, described_model, recursive, recursive_required, dates, uuid, decimal, binary, path, sets,
    equal_tuple, mixed_tuple, open_tuple, mapping, anything, bounded, pattern, few_items,
)  # fmt: skip

TOOLS = {function.__name__: Tool.from_function(function) for function in FUNCTIONS}
