"""A tool's name in another spelling: a ladder of rungs, and exactly one hit or nothing.

No rung measures distance: `delete_files` is not `delete_file`, and `read` is neither `read_file` nor `read_dir`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LONGEST: Final = 512
_TOKEN: Final = re.compile(r"<\|.*|<[/A-Za-z_][^<>]*>", re.DOTALL)
_COUNTER: Final = re.compile(r":[0-9]{1,4}$")
_PREFIX: Final = re.compile(
    r"(?:functions?|tools?|default_api|namespace|mcp__[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*?_)[._:/]"
)
_SUFFIX: Final = re.compile(r"(?:_tool|-tool|Tool)$")
_CALLED: Final = re.compile(r"\(\s*\)$")
_SEPARATORS: Final = re.compile(r"[\W_]+")


def resolve_name(name: str, known: Iterable[str]) -> str | None:
    """Find the registered name that a name means.

    The rungs, in order: the name itself; without template tokens (`<|call|>`), blanks, and the counter of call ids
    (`:0`); without a known prefix (`functions.`, `tools.`, `default_api.`, `mcp__server__`) or the suffix `_tool`;
    and each of these without regard to letter case and separators. The first rung that hits decides.

    Args:
        name: As the model wrote it.
        known: The registered names.

    Returns:
        The one registered name, or None if a rung hits several, or none does.

    Examples:
        >>> resolve_name("functions.get_weather:0", ["get_weather", "read_file"])
        'get_weather'
        >>> resolve_name("delete_files", ["delete_file"])
        >>> resolve_name("getweather", ["get_weather", "getWeather"])
    """
    if len(name) > _LONGEST:
        return None
    names = list(dict.fromkeys(known))
    spellings = list(_spellings(name))
    for spelling in spellings:
        if spelling in names:
            return spelling
    folded: dict[str, list[str]] = {}
    for candidate in names:
        folded.setdefault(fold(candidate), []).append(candidate)
    for spelling in spellings:
        if hits := folded.get(fold(spelling)):
            return hits[0] if len(hits) == 1 and fold(spelling) else None
    return None


def fold(name: str) -> str:
    """A name without letter case and separators: two spellings of one name fold to the same."""
    return _SEPARATORS.sub("", name).casefold()


def _spellings(name: str) -> Iterator[str]:
    """The name, and what is left of it on each rung."""
    yield name
    bare = _CALLED.sub("", _TOKEN.sub("", name).strip().strip("\"'`").strip())
    yield bare
    bare = _COUNTER.sub("", bare)
    yield bare
    while (found := _PREFIX.match(bare)) is not None:
        bare = bare[found.end() :]
        yield bare
    if shorter := _SUFFIX.sub("", bare):
        yield shorter
