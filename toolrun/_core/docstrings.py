"""What a docstring says of a function and of its parameters, in Google, NumPy or reST style."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SECTION: Final = re.compile(
    r"\n[ \t]*(?:(?:Args|Arguments|Parameters|Params|Returns?|Raises|Yields?|Examples?|Notes?|Warns?|(?:Keyword|Other) Arg(?:ument)?s)[ \t]*:[ \t]*(?:\n|$)"
    r"|(?:Parameters|Returns|Raises|Yields|Examples|Notes)[ \t]*\n[ \t]*-{3,}"
    r"|:(?:param|type|returns?|rtype|raises?)\b)"
)


class Docstring(NamedTuple):
    """What is told of a function: `summary` is all before the sections, `parameters` is by name."""

    summary: str
    parameters: dict[str, str]


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring. It is prose: whatever it says, nothing is raised."""
    if not text or not text.strip():
        return Docstring("", {})
    import docstring_parser  # noqa: PLC0415  # needed only where tools are declared

    try:
        parsed = docstring_parser.parse(f"\n{text}")  # cleaned again, the first line would not count as indented
        described = {item.arg_name.lstrip("*"): item.description.strip() for item in parsed.params if item.description}
        summary = parsed.description or ""
    except Exception:  # noqa: BLE001  # no parser is sure of prose
        summary, described = text, {}
    # A section that the parser gave up on is not for the model either.
    return Docstring(_SECTION.split(f"\n{summary}", maxsplit=1)[0].strip(), described)
