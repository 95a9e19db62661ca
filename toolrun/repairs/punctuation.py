"""Punctuation that JSON does not have and other notations do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolrun._core.records import Edit
from toolrun._core.repair import Repaired

if TYPE_CHECKING:
    from toolrun._core.repair import RepairRequest

CODE: Final = "trailing_comma"

# A whole string (or one that never ends, taken to the end, so that the search stays linear), or a
# comma that stands right behind a value and right before a closing bracket.
_STRING_OR_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|(,)(?=[ \t\r\n]*[}\]])', re.DOTALL)
_AFTER_A_VALUE: Final = frozenset('"}]0123456789el')  # the last letters of true, false and null
_LOOK_BACK: Final = 1_000


def trailing_comma(request: RepairRequest) -> Repaired | None:
    """Take out commas before a closing bracket.

    Refuses a comma with no value before it (`[1,,]`, `{,}`): something may be missing there. Refuses a
    text whose last string does not end.

    Examples:
        >>> from toolrun._core.calls import CallStatus, ToolCall
        >>> from toolrun._core.repair import Fault, RepairRequest
        >>> def ask(raw: str) -> str | None:
        ...     call = ToolCall(
        ...         id="c", name="f", raw_arguments=raw, arguments=None, status=CallStatus.PARSE_ERROR, executable=False
        ...     )
        ...     answer = trailing_comma(RepairRequest(call=call, fault=Fault.PARSE, text=raw))
        ...     return answer and answer.text
        >>> ask('{"a": [1, 2,], "b": "x,}",}')
        '{"a": [1, 2], "b": "x,}"}'
        >>> ask('{"a": [1,,]}')
    """
    text = request.text
    edits: list[Edit] = []
    for found in _STRING_OR_COMMA.finditer(text):
        if found[1] is not None:
            if text[max(0, found.start() - _LOOK_BACK) : found.start()].rstrip()[-1:] not in _AFTER_A_VALUE:
                return None
            edits.append(Edit(CODE, found.start(), ",", ""))
        elif not found[0].endswith('"') or found[0] == '"':
            return None
    if not edits:
        return None
    return Repaired(text=_apply(text, edits), edits=tuple(edits))


def _apply(text: str, edits: list[Edit]) -> str:
    pieces: list[str] = []
    place = 0
    for edit in edits:
        pieces += (text[place : edit.offset], edit.after)
        place = edit.offset + len(edit.before)
    return "".join((*pieces, text[place:]))
