"""Arguments inside a copy of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._core.names import fold, resolve_name
from toolrun._core.repair import Declined

if TYPE_CHECKING:
    from toolrun.repairs._nodes import Node
    from toolrun.repairs._places import Schema
    from toolrun.repairs._rules import Proposal

_INSIDE: Final = frozenset(
    (
        "arguments",
        "args",
        "input",
        "kwargs",
        "parameters",
        "params",
        "tool_input",
        "function",
        "function_call",
        "tool_call",
    )
)
_NAMES: Final = frozenset(("name", "tool", "tool_name", "function_name", "function"))
_METADATA: Final = frozenset(("id", "call_id", "tool_call_id", "tool_use_id", "index", "type"))
_TYPES: Final = frozenset(("function", "function_call", "tool_call", "tool_use", "tool"))


def envelope(node: Node, schema: Schema, tool: str) -> list[Proposal]:
    """Take the arguments out of an envelope: `{"name": "get_weather", "arguments": {...}}`.

    Beside the arguments only metadata may stand, and a name must be that of the tool that is called. A key that the
    schema declares is no envelope.

    Source: models that write the whole call into the arguments, and proxies that wrap it.

    Refuses another tool's name, and siblings that could belong inside.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> from toolrun.repairs import schema_reading
        >>> ask(schema_reading, '{"arguments": {"city": "Oslo"}}', fault="schema", city={"type": "string"})
        '{"city": "Oslo"}'
        >>> ask(schema_reading, '{"name": "g", "arguments": {}}', fault="schema", city={"type": "string"}).code
        'envelope_mismatch'
    """
    inside = [
        member
        for member in node.members
        if not schema.knows(member.key)
        and (member.key in _INSIDE or (len(node.members) == 1 and fold(member.key) == fold(tool)))
        and (member.value.kind == "object" or _is_object_text(member.value))
    ]
    if not inside:
        return []
    if len(inside) > 1:
        return [Declined("envelope_mismatch", f"{inside[0].key} and {inside[1].key}")]
    for member in node.members:
        if member is not inside[0] and not _is_metadata(member.key, member.value, schema, tool):
            return [Declined("envelope_mismatch", member.key)]
    return [("envelope", inside[0].value.text)]


def _is_metadata(key: str, value: Node, schema: Schema, tool: str) -> bool:
    if schema.knows(key):
        return False
    if key in _NAMES:
        return value.kind == "string" and resolve_name(value.value, (tool,)) == tool
    if key == "type":
        return value.kind == "string" and value.value in _TYPES
    return key in _METADATA and value.kind in ("string", "integer", "null")


def _is_object_text(value: Node) -> bool:
    return value.kind == "string" and value.value.strip().startswith("{")
