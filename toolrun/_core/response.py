"""What a response consisted of, in order, as plain data: enough to send it back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject

BlockKey: TypeAlias = int | str
"""Where a wire keeps a block: the provider's block index, or a name of the wire's own."""

CALL: Final = "call"


class Part(NamedTuple):
    """One part of a response: a block of the provider's own data, or the place of a call.

    `position` is None for a block; for a call, `data` is empty and the call stands in the turn.
    """

    key: BlockKey
    data: JsonObject
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One model response, calls aside.

    Attributes:
        wire: The name of its provider protocol; `""` if nothing told.
        id: The provider's id of the response, or None.
        text: The answer's text; reasoning and refusals are in the parts.
        parts: Blocks and calls of choice 0, in order of arrival.
        finish_reason: As sent; of several, the one that lets least run; None if none came.
        usage: The provider's token counts, later ones over earlier ones; empty if none came.
        ended: True if a finish reason or the protocol's terminator was seen.
    """

    wire: str = ""
    id: str | None = None
    text: str = ""
    parts: tuple[Part, ...] = ()
    finish_reason: str | None = None
    usage: JsonObject = field(default_factory=dict)
    ended: bool = False
