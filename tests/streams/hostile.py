"""Values that no provider sends, and that must raise nothing wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def nested(depth: int, *, key: str | None = "a") -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if key is None else {key: value}
    return value


class NoAttributes:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class NoEquality:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("==")

    __hash__ = None


class NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError("repr")


class NoTruth:
    def __bool__(self) -> bool:
        raise RuntimeError("bool")


class AnyAttribute:
    """Has every attribute, like a mock."""

    def __getattr__(self, name: str) -> Any:
        return self


class BadMapping(Mapping):
    """Says that it has fields and gives none."""

    def __getitem__(self, key: object) -> Any:
        raise RuntimeError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(("choices", "type", "delta"))

    def __len__(self) -> int:
        return 3


def cycle() -> dict[str, Any]:
    event: dict[str, Any] = {}
    event["choices"] = [event]
    return event


HOSTILE: dict[str, Callable[[], Any]] = {
    "no attributes": NoAttributes,
    "no equality": NoEquality,
    "no repr": NoRepr,
    "no truth": NoTruth,
    "any attribute": AnyAttribute,
    "bad mapping": BadMapping,
    "cycle": cycle,
    "a class": lambda: NoRepr,
    "a function": lambda: nested,
    "a huge index": lambda: {"choices": [{"index": 10**5000}]},
    "a huge index in digits": lambda: {"choices": [{"index": "9" * 5000}]},
    "a huge number": lambda: 10**5000,
    "an unhashable type": lambda: {"type": []},
    "keys that are no strings": lambda: {1: 2, None: 3, ("a",): 4},
    "thousands deep": lambda: nested(5_000),
    "lists thousands deep": lambda: nested(5_000, key=None),
    "a set": lambda: {1, 2},
    "an exception": lambda: ValueError("x"),
}
