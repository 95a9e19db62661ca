"""The lossless strategies one after the other, for JSON text inside of a string."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._core.calls import CallStatus, ToolCall
from toolrun._core.conservation import conserves
from toolrun._core.repair import Fault, Repaired, RepairRequest
from toolrun.repairs._brackets import tuples
from toolrun.repairs._nodes import parse_value
from toolrun.repairs.commas import missing_comma, trailing_comma
from toolrun.repairs.margins import comments, odd_space, wide_punctuation
from toolrun.repairs.strings import control_characters, escapes, quotes
from toolrun.repairs.words import bare_keys, literals, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolrun._core.repair import Declined

_STRATEGIES: Final[tuple[Callable[[RepairRequest], Repaired | Declined | None], ...]] = (
    odd_space, wide_punctuation, comments, quotes, bare_keys, literals, numbers, control_characters, escapes, tuples, trailing_comma,
    missing_comma,
)  # fmt: skip


def relaxed(text: str) -> str | None:
    """Make strict JSON of a text in another notation, losing nothing; None if that is not possible."""
    call = ToolCall(
        id="", name=None, raw_arguments=text, arguments=None, status=CallStatus.PARSE_ERROR, executable=False
    )
    memo: dict[str, object] = {}
    for strategy in _STRATEGIES:
        answer = strategy(RepairRequest(call=call, fault=Fault.PARSE, text=text, memo=memo))
        if not isinstance(answer, Repaired) or answer.text is None:
            continue
        if not conserves(text, answer.text, answer.edits):
            return None
        text = answer.text
        if parse_value(text) is not None:
            return text
    return None
