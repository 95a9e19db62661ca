"""Schema dialects: the shape in which each provider's request takes tool definitions, as data."""

from __future__ import annotations

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


def write_definition(definition: ToolDefinition, dialect: str) -> JsonObject:
    """Write a definition in a dialect.

    Raises:
        DialectError: The dialect is unknown, or cannot carry the tool's name.
    """
    found = DIALECTS.get(dialect)
    if found is None:
        raise DialectError(f"no schema dialect named {dialect!r}; known: {', '.join(sorted(DIALECTS))}")
    if not re.fullmatch(found.names, definition.name):
        raise DialectError(
            f"tool {definition.name!r}: {dialect} takes names that match {found.names};"
            " register it under another name with name=…"
        )
    return found.shape(definition)
