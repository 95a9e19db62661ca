"""Schema dialects: the shape in which each provider's request takes tool definitions, as data.

`rules` says what a dialect is, and the files named after providers hold them. All else is pure functions: `express`
writes a schema in a dialect, with exact rewrites only; `checks` tells what a provider would not take; `nulls` reads
what a model wrote under a strict schema; `origin` reads definitions that exist already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from toolrun._core.dialects import anthropic, openai, others
from toolrun._core.dialects.express import express
from toolrun._core.dialects.nulls import leave_out_nulls
from toolrun._core.dialects.origin import DefinitionRead, as_it_came, read_entry
from toolrun._core.dialects.walk import walk
from toolrun._core.exceptions import DialectError

if TYPE_CHECKING:
    from toolrun._core.calls import ToolDefinition
    from toolrun._core.dialects.rules import Dialect, SchemaRules
    from toolrun._core.records import JsonObject

DIALECTS: Final = {
    dialect.name: dialect
    for dialect in (
        openai.CHAT,
        openai.RESPONSES,
        anthropic.MESSAGES,
        anthropic.CONVERSE,
        others.GEMINI,
        others.MISTRAL,
        others.COHERE,
        others.OLLAMA,
        others.MCP,
    )
}

_DIALECT_OF: Final = {"anthropic-messages": "anthropic", "bedrock-invoke": "anthropic"}
"""Dialects whose name is not that of the wire; others are called the same."""

__all__ = ["DIALECTS", "get_dialect", "leave_out_nulls", "read_definition", "write_definitions"]


def get_dialect(name: str) -> Dialect:
    """Find a dialect by its own name or that of a built-in wire.

    Raises:
        DialectError: There is none of that name.
    """
    try:
        return DIALECTS[_DIALECT_OF.get(name, name)]
    except KeyError:
        known = ", ".join(sorted({*DIALECTS, *_DIALECT_OF}))
        raise DialectError(f"no schema dialect named {name!r}; known: {known}") from None


def write_definitions(
    definitions: Iterable[ToolDefinition], dialect: Dialect, *, strict: bool = False
) -> list[JsonObject]:
    """Write definitions as the `tools` of a provider's request; the result is the caller's to change.

    Args:
        definitions: In the order of the result.
        dialect: The provider's.
        strict: Ask the provider to guarantee that calls follow the schemas.

    Raises:
        DialectError: The dialect cannot carry a tool's name or express its schema, or has no strict definitions; the
            message names the tool, the JSON path and the part, and says what to do.
    """
    rules = dialect.strict if strict else dialect.rules
    if rules is None:
        raise DialectError(f"{dialect.name} has no strict definitions: {dialect.no_strict}")
    schemas: list[JsonObject] = []
    entries: list[JsonObject] = []
    for definition in definitions:
        _check_name(definition, dialect)
        entry = as_it_came(definition, dialect, strict=strict)
        if entry is None:
            schemas.append(_expressed(definition, dialect, rules, strict=strict))
            entry = dialect.shape(definition, schemas[-1], strict)
        entries.append(entry)
    _check_request(schemas, len(entries), dialect, rules)
    return dialect.gather(entries)


def read_definition(entry: Mapping[str, object], dialect: str | None = None) -> DefinitionRead:
    """Read a definition that exists already, as a provider's request or an MCP server has it.

    Args:
        entry: One tool; it is copied.
        dialect: The dialect, or the wire, that it is written for. None: its shape tells.

    Raises:
        RegistrationError: It is no definition of a function.
        DialectError: There is no such dialect.
    """
    return read_entry(entry, DIALECTS.values() if dialect is None else [get_dialect(dialect)])


def _check_name(definition: ToolDefinition, dialect: Dialect) -> None:
    if dialect.names is not None and not re.fullmatch(dialect.names[0], definition.name):
        raise DialectError(
            f"tool {definition.name!r}: {dialect.name} takes names that match {dialect.names[0]};"
            " register it under another name with name=…"
        )


def _expressed(definition: ToolDefinition, dialect: Dialect, rules: SchemaRules, *, strict: bool) -> JsonObject:
    try:
        return express(definition.input_schema, rules)
    except DialectError as error:
        mode, otherwise = (" (strict)", ", or leave strict out") if strict else ("", "")
        raise DialectError(
            f"tool {definition.name!r} cannot be written for {dialect.name}{mode}: {error}{otherwise}"
        ) from None


def _check_request(schemas: Sequence[JsonObject], tools: int, dialect: Dialect, rules: SchemaRules) -> None:
    """Count what a provider counts over all tools of a request."""
    limits = rules.limits
    objects = [item for schema in schemas for _, item in walk(schema) if isinstance(item.get("properties"), dict)]
    properties = [
        (name in cast("list[object]", item.get("required") or []), described)
        for item in objects
        for name, described in cast("JsonObject", item["properties"]).items()
    ]
    unions = sum(
        isinstance(described, dict) and ("anyOf" in described or isinstance(described.get("type"), list))
        for _, described in properties
    )
    counted = (
        ("tools", tools, limits.tools),
        ("parameters", len(properties), limits.request_properties),
        ("optional parameters", sum(not required for required, _ in properties), limits.request_optional),
        ("parameters with several types", unions, limits.request_unions),
    )
    for what, number, most in counted:
        if most is not None and number > most:
            raise DialectError(
                f"{dialect.name} (strict) takes {most} {what} in one request, and these are {number};"
                " send fewer tools, or leave strict out"
            )
