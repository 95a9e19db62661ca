"""A call and a block while they grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from toolrun._core.json_text import is_complete_container, join_surrogates
from toolrun._core.response import Part

if TYPE_CHECKING:
    from toolrun._core.calls import CallKind, ToolCall
    from toolrun._core.records import JsonObject
    from toolrun._core.response import BlockKey


Placeholder: TypeAlias = str | Callable[[], str]
"""Argument text for a call without deltas, or what gives it at the end."""


_SHORTEST: Final = len("{}")


class Ending(NamedTuple):
    """How the response that a call belongs to ended, if another one followed it in the same stream."""

    reason: str | None
    terminated: bool


class Slot:
    """A call while it is being assembled."""

    __slots__ = (
        "announced_anew", "choice", "conflict", "cut", "deltas", "dropped", "ending", "extra", "held_half", "index", "kind", "name", "opened_after", "pieces",
        "placeholder", "position", "provider_executed", "readings", "settled", "shown_id", "size", "synthetic_id", "wire_id",
    )  # fmt: skip

    def __init__(self, position: int, choice: int, index: int | None) -> None:
        self.position = position
        self.choice = choice
        self.index = index
        self.wire_id: str | None = None
        self.synthetic_id = False
        self.shown_id = ""
        self.name: str | None = None
        self.readings: tuple[str, ...] = ()
        # A list and a join, not `+=` on an attribute: that copies the text on every delta.
        self.pieces: list[str] = []
        self.size = 0
        self.dropped = 0
        self.held_half = ""
        self.kind: CallKind = "function"
        self.provider_executed = False
        self.placeholder: Placeholder = ""
        self.conflict = False
        self.cut = False
        self.ending: Ending | None = None
        self.settled: ToolCall | None = None
        self.announced_anew = False
        self.opened_after = 0
        self.extra: dict[str, object] = {}

    def text(self) -> str:
        """The argument text so far, surrogate halves joined."""
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return join_surrogates(self.pieces[0]) if self.pieces else ""

    def is_complete(self) -> bool:
        """Tell whether the text is one whole JSON container, so that more text would be another one."""
        if self.size < _SHORTEST or self.kind == "custom":
            return False
        # Nearly all unfinished texts do not end in a bracket: that is seen without reading them again.
        end = self.pieces[-1].rstrip(" \t\r\n")
        return (not end or end[-1] in "}]") and is_complete_container(self.text())

    def is_announced_again(self, name: str | None, placeholder: Placeholder) -> bool:
        """Tell whether a block with this call's id repeats it; with other arguments it is another call."""
        return self.name == name and (not placeholder or self.placeholder in ("", placeholder))

    def hold_surrogate(self, text: str) -> str:
        """Keep back a half of a surrogate pair until the other half comes, so that listeners get whole characters."""
        text = join_surrogates(self.held_half + text)
        self.held_half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.held_half = text[-1]
            return text[:-1]
        return text


class Block:
    """A part of the response that is not a call, while it grows."""

    __slots__ = ("choice", "data", "items", "key", "texts")

    def __init__(self, choice: int, key: BlockKey, data: JsonObject) -> None:
        self.choice = choice
        self.key = key
        self.data = data
        self.texts: dict[str, list[str]] = {}
        self.items: dict[str, list[object]] = {}

    def part(self) -> Part:
        """The block as it has grown."""
        grown = {name: "".join(pieces) for name, pieces in self.texts.items()}
        return Part(self.key, {**self.data, **grown, **self.items})
