"""Schema dialects: the shape in which each provider's request takes tool definitions, as data."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolrun._core.exceptions import DialectError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolrun._core.calls import ToolDefinition
    from toolrun._core.records import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one provider wants to be told about a tool.

    Attributes:
        name: The dialect's name.
        names: The pattern that the whole of a tool's name must match.
        shape: Puts a definition into the entry of the request's `tools` list.
    """

    name: str
    names: str
    shape: Callable[[ToolDefinition], JsonObject]


def _openai_chat(definition: ToolDefinition) -> JsonObject:
    return {
        "type": "function",
        "function": {
            "name": definition.name,
            "description": definition.description,
            "parameters": definition.input_schema,
        },
    }


def _anthropic(definition: ToolDefinition) -> JsonObject:
    return {
        "name": definition.name,
        "description": definition.description,
        "input_schema": definition.input_schema,
    }


DIALECTS: Final = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="openai-chat", names=r"[a-zA-Z0-9_-]{1,64}", shape=_openai_chat),
        Dialect(name="anthropic", names=r"[a-zA-Z0-9_-]{1,128}", shape=_anthropic),
    )
}


def get_dialect(name: str) -> Dialect:
    """Find a dialect.

    Raises:
        DialectError: There is none of that name.
    """
    try:
        return DIALECTS[name]
    except KeyError:
        raise DialectError(f"no schema dialect named {name!r}; known: {', '.join(sorted(DIALECTS))}") from None


def write_definition(definition: ToolDefinition, dialect: Dialect) -> JsonObject:
    """Write a definition in a dialect; the result is the caller's to change.

    Raises:
        DialectError: The dialect cannot carry the tool's name.
    """
    if not re.fullmatch(dialect.names, definition.name):
        raise DialectError(
            f"tool {definition.name!r}: {dialect.name} takes names that match {dialect.names};"
            " register it under another name with name=…"
        )
    return copy.deepcopy(dialect.shape(definition))
