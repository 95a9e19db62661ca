"""Noise around the arguments: invisible characters, and one Markdown fence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolrun._core.records import Edit
from toolrun._core.repair import Repaired

if TYPE_CHECKING:
    from toolrun._core.repair import RepairRequest

CODE: Final = "outer_noise"

# What JSON does not count as white space although it looks like it, or like nothing: the byte order
# mark, no-break spaces, zero-width characters. Only at the ends of the text.
_BLANK: Final = r"[\s\u00a0\u200b-\u200d\u2060\ufeff]*"
_FENCED: Final = re.compile(rf"({_BLANK}```[\w+-]*{_BLANK})(\{{.*\}})({_BLANK}```{_BLANK})", re.DOTALL)
_BARE: Final = re.compile(rf"({_BLANK})(\{{.*\}})({_BLANK})", re.DOTALL)


def outer_noise(request: RepairRequest) -> Repaired | None:
    r"""Take off invisible characters and one code fence around one object.

    Refuses a text with a second fence: which of two blocks was meant is a guess.

    Examples:
        >>> from toolrun._core.calls import CallStatus, ToolCall
        >>> from toolrun._core.repair import Fault, RepairRequest
        >>> def ask(raw: str) -> str | None:
        ...     call = ToolCall(
        ...         id="c", name="f", raw_arguments=raw, arguments=None, status=CallStatus.PARSE_ERROR, executable=False
        ...     )
        ...     answer = outer_noise(RepairRequest(call=call, fault=Fault.PARSE, text=raw))
        ...     return answer and answer.text
        >>> fence = "`" * 3
        >>> ask(f'{fence}json\n{{"a": 1}}\n{fence}')
        '{"a": 1}'
        >>> ask(f'{fence}json\n{{"a": 1}}\n{fence}\n{fence}json\n{{"a": 2}}\n{fence}')
    """
    text = request.text
    found = _FENCED.fullmatch(text) or _BARE.fullmatch(text)
    if found is None or "\n```" in found[2]:
        return None
    before, body, after = found.groups()
    edits = [Edit(CODE, place, piece, "") for place, piece in ((0, before), (found.start(3), after)) if piece]
    return Repaired(text=body, edits=tuple(edits)) if edits else None
