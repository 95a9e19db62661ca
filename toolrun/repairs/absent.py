"""Values that stand for no value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from toolrun.repairs._nodes import Node
    from toolrun.repairs._places import Schema
    from toolrun.repairs._rules import Proposal

NULL_TEXTS: Final = frozenset(('"null"', '"None"', '"undefined"'))
"""Texts, as JSON writes them, that say that there is no value."""


def is_absent(value: Node, key: str, schema: Schema) -> bool:
    """Take `null` (or the text `"null"`) for an optional parameter that cannot be null as not given.

    Refuses a required parameter: what it was meant to be is not known. A parameter that may be text keeps the text:
    `"Null"` is a name.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> from toolrun.repairs import schema_reading
        >>> limit = {"type": "integer", "optional": True}
        >>> ask(schema_reading, '{"q": "x", "limit": null}', fault="schema", q={"type": "string"}, limit=limit)
        '{"q": "x"}'
        >>> ask(schema_reading, '{"q": null}', fault="schema", q={"type": "string"})
    """
    kinds = schema.member(key).kinds
    if kinds is None or "null" in kinds or key in schema.required or not schema.knows(key):
        return False
    return value.kind == "null" or (value.text in NULL_TEXTS and "string" not in kinds)


def no_arguments(node: Node, schema: Schema) -> list[Proposal]:
    """Take `null`, `""` or `[]` in the place of the arguments for no arguments.

    Source: PHP and Lua, where an empty object and an empty list are one thing; SDKs that send null.

    Refuses it for a tool that requires any. It is no fallback for text that cannot be read.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> from toolrun.repairs import schema_reading
        >>> ask(schema_reading, "null", fault="not_object")
        '{}'
        >>> ask(schema_reading, "null", fault="not_object", path={"type": "string"})
    """
    blank = node.kind == "null" or (node.kind == "string" and not node.value.strip())
    blank = blank or (node.kind == "array" and not node.items)
    return [("no_arguments", "{}")] if blank and not schema.required else []
