"""One value in the place of a list, and a list in the place of one value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolrun.repairs.absent import NULL_TEXTS

if TYPE_CHECKING:
    from toolrun.repairs._nodes import Node
    from toolrun.repairs._places import Schema
    from toolrun.repairs._rules import Proposal

_MAY_BE_SEVERAL: Final = re.compile(r"[,;|\n]")
_IS_JSON: Final = re.compile(r"\s*[\[{]")


def shape(node: Node, schema: Schema) -> list[Proposal]:
    """Read one value as a list of one, a list of one as its item, an object with the keys 0 … n-1 as a list.

    Source: models that leave out the brackets, and stacks that turn lists into objects.

    Refuses a text with a comma, a semicolon, a bar or a line break, which may be several, and one that says that there
    is none (`"null"`); a list of several for one value; an object whose numbers have a gap; a list of values in the place
    of the arguments: their order is a guess.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> from toolrun.repairs import schema_reading
        >>> urls = {"type": "array", "items": {"type": "string"}}
        >>> ask(schema_reading, '{"urls": "https://a.example/"}', fault="schema", urls=urls)
        '{"urls": ["https://a.example/"]}'
        >>> ask(schema_reading, '{"urls": "a,b"}', fault="schema", urls=urls)
    """
    kinds = schema.kinds or frozenset()
    if node.kind == "array":
        return [("shape", node.items[0].text)] if len(node.items) == 1 and node.items[0].kind != "array" else []
    if "array" not in kinds or node.kind == "null":
        return []
    if node.kind == "object" and node.members:
        numbers = [member.key for member in node.members]
        if numbers == [str(number) for number in range(len(numbers))]:
            return [("shape", f"[{','.join(member.value.text for member in node.members)}]")]
        if any(key.isdecimal() for key in numbers):
            return []
    if node.kind == "string" and (_may_be_several(node.value) or node.text in NULL_TEXTS):
        return []
    return [("shape", f"[{node.text}]")]


def _may_be_several(text: str) -> bool:
    return not text.strip() or _MAY_BE_SEVERAL.search(text) is not None or _IS_JSON.match(text) is not None
