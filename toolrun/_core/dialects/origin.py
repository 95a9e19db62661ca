"""Reading tool definitions that exist already, and writing them back as they came."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple, cast

from toolrun._core.exceptions import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolrun._core.calls import ToolDefinition
    from toolrun._core.dialects.rules import Dialect
    from toolrun._core.records import JsonObject


class DefinitionRead(NamedTuple):
    """What an entry says, and the name of the dialect that it is written in."""

    name: str
    description: str
    schema: JsonObject
    dialect: str
    entry: JsonObject


_NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}


def read_entry(entry: Mapping[str, object], dialects: Iterable[Dialect]) -> DefinitionRead:
    """Read an entry of a request's `tools`, or of an MCP server's list.

    Args:
        entry: For instance `{"type": "function", "function": {...}}`; it is copied.
        dialects: Those that it may be written in; where several have the same shape, the first counts.

    Raises:
        RegistrationError: It is no definition of a function in any of them.
    """
    own = copy.deepcopy(dict(entry))
    for dialect in dialects:
        holder = _down(own, dialect.parts[0])
        described, *path = dialect.parts[1]
        if holder is None or own.get("type") not in dialect.kinds or not isinstance(holder.get("name"), str):
            continue
        if not dialect.parts[0] and path[0] not in holder:  # nothing else tells these shapes apart
            continue
        description = holder.get(described)
        return DefinitionRead(
            name=str(holder["name"]),
            description=description if isinstance(description, str) else "",
            schema=_down(holder, tuple(path)) or _NO_PARAMETERS,
            dialect=dialect.name,
            entry=own,
        )
    raise RegistrationError(
        f"no tool definition: {_outline(own)}; expected an object with a name and a schema, as OpenAI, Anthropic,"
        " Bedrock, Gemini (one functionDeclaration, with parametersJsonSchema) or MCP write it;"
        " tools that the provider runs itself are none"
    )


def _outline(entry: JsonObject) -> str:
    keys = ", ".join(repr(key) for key in entry) or "nothing in it"
    return f"an object with {keys}" + (f" of type {entry['type']!r}" if "type" in entry else "")


def _down(holder: JsonObject, path: tuple[str, ...]) -> JsonObject | None:
    for key in path:
        found = holder.get(key)
        if not isinstance(found, dict):
            return None
        holder = cast("JsonObject", found)
    return holder


def as_it_came(definition: ToolDefinition, dialect: Dialect, *, strict: bool) -> JsonObject | None:
    """The entry that a definition was read from, under the name that it has now.

    None if it was not read from an entry of this dialect, if it says something else by now, or if it shall be strict
    and the entry is not.
    """
    origin = definition.origin
    if origin is None or origin.dialect != dialect.name:
        return None
    if (origin.description, origin.input_schema) != (definition.description, definition.input_schema):
        return None
    entry = copy.deepcopy(dict(origin.entry))
    holder = _down(entry, dialect.parts[0])
    if holder is None or (strict and holder.get("strict") is not True):
        return None
    holder["name"] = definition.name
    return entry
