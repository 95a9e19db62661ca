"""Objects and lists that came as JSON text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolrun.repairs._nodes import parse_value
from toolrun.repairs._relaxed import relaxed

if TYPE_CHECKING:
    from toolrun.repairs._nodes import Node
    from toolrun.repairs._places import Schema
    from toolrun.repairs._rules import Proposal


def json_text(node: Node, schema: Schema) -> list[Proposal]:
    r"""Read a text that is JSON where the schema has an object or a list: `{"dest": "{\"zone\": 4}"}`.

    The text may have what the lossless strategies mend. What it holds is read by the schema in turn.

    Source: SDKs that serialise twice, and models that saw them do it.

    Refuses a text of another kind than the schema has, and never reads one where a text may stand. A list is not
    made by splitting at commas: `"a1,b2"` may be one id.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> from toolrun.repairs import schema_reading
        >>> dest = {"type": "object", "properties": {"zone": {"type": "integer"}}}
        >>> ask(schema_reading, '{"dest": "{\\"zone\\": 4}"}', fault="schema", dest=dest)
        '{"dest": {"zone": 4}}'
        >>> ask(schema_reading, '{"dest": "zone 4"}', fault="schema", dest=dest)
    """
    kinds = schema.kinds or frozenset()
    wanted = kinds & {"object", "array"}
    if node.kind != "string" or "string" in kinds or not wanted:
        return []
    text = node.value.strip()
    if not text.startswith(("{", "[", '"')):
        return []
    if parse_value(text) is None:
        mended = relaxed(text)
        if mended is None:
            return []
        text = mended
    found = parse_value(text)
    fits = found is not None and (found.kind in wanted or (found.kind == "string" and found.value.strip() != ""))
    return [("json_text", text)] if fits else []
