"""Bytes as a series of decisions.

A fuzzer changes bytes; what they decide must stay what it is when other bytes change, and must be
readable without the fuzzer, because its finds are ordinary tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Reader:
    """Reads decisions until the bytes end; after that, each is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def number(self, below: int) -> int:
        """A number from 0."""
        if not self:
            return 0
        self._at += 1
        return self._data[self._at - 1] % below

    def pick(self, values: Sequence[T]) -> T:
        """One of several values."""
        return values[self.number(len(values))]

    def rest(self) -> bytes:
        """Everything that is left."""
        data, self._at = self._data[self._at :], len(self._data)
        return data
