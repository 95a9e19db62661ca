"""What a writer is given, and what it gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject


class Written(NamedTuple):
    """A call as it is sent: an id or none, a name or none, the pieces of its arguments."""

    id: str | None
    name: str | None
    pieces: list[str]

    @property
    def text(self) -> str:
        """The arguments."""
        return "".join(self.pieces)

    @property
    def given(self) -> object:
        """The arguments where they are an object; a text that is none stays one."""
        try:
            return json.loads(self.text or "{}")
        except ValueError:
            return self.text


class Lines(NamedTuple):
    """What is said, in pieces, and the wire's own word for how it ends."""

    number: int
    text: list[str]
    thinking: list[str]
    calls: list[Written]
    finish: str | None
    terminated: bool
    usage: tuple[int, int] | None
    error: str | None


class Stream(NamedTuple):
    """Events: what comes before the calls, those of each call, and the end."""

    begin: list[JsonObject]
    calls: list[list[JsonObject]]
    end: list[JsonObject]


class Writer(NamedTuple):
    """Writes one protocol.

    Attributes:
        stream: The events of a stream.
        whole: The response without streaming.
        finishes: Its words for ways to end.
        indexed: True if each event says whose it is.
        keeps_ids: False if its own clients lose the ids of calls, so that none can be asked for.
        numbered: True if each event has its number in it.
    """

    stream: Callable[[Lines], Stream]
    whole: Callable[[Lines], JsonObject]
    finishes: Mapping[str, str]
    indexed: bool = True
    keeps_ids: bool = True
    numbered: bool = False


def present(**fields: object) -> JsonObject:
    """The fields that are not None."""
    return {key: value for key, value in fields.items() if value is not None}
