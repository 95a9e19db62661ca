"""Numbers, booleans and texts in each other's place."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from toolrun._core.repair import Declined
from toolrun.repairs.words import JSON_NUMBER

if TYPE_CHECKING:
    from toolrun.repairs._nodes import Node
    from toolrun.repairs._places import Schema
    from toolrun.repairs._rules import Proposal

_WHOLE: Final = re.compile(r"(-?(?:0|[1-9][0-9]*+))(?:\.0+)?")
_NUMBER_LIKE: Final = re.compile(r"[-+]?[0-9][0-9.,_eE+-]*")
_BOOLEANS: Final = {"true": "true", "false": "false"}
_ONE_OR_ZERO: Final = {"1": "true", "0": "false"}


def scalar(node: Node, schema: Schema) -> list[Proposal]:
    """Read a number, a boolean or a text as the kind that the schema asks for, where nothing is lost.

    `"3"` and `"3.0"` are the integer 3; a text that is a JSON number is that number; `"True"` is true; 0 and 1 are
    booleans where nothing else may stand; a number for a text keeps its digits as they were written (`1.10`).

    Refuses leading zeros and a plus sign (they show an identifier, or a telephone number), separators, units and
    rounding; and every word but true and false: `"if needed"` is not true.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> from toolrun.repairs import schema_reading
        >>> ask(schema_reading, '{"version": 1.10}', fault="schema", version={"type": "string"})
        '{"version": "1.10"}'
        >>> ask(schema_reading, '{"zip": "00713"}', fault="schema", zip={"type": "integer"}).code
        'lossy_number'
    """
    kinds = schema.kinds or frozenset()
    if node.kind == "string":
        return _from_text(node.value, kinds)
    found: list[Proposal] = []
    if node.kind in ("integer", "number"):
        if "string" in kinds:
            found.append(("scalar", json.dumps(node.text)))
        if "boolean" in kinds and node.text in _ONE_OR_ZERO:
            found.append(("scalar", _ONE_OR_ZERO[node.text]))
        if "integer" in kinds:
            whole = _WHOLE.fullmatch(node.text)
            found.append(("scalar", whole[1]) if whole else Declined("lossy_number", node.text))
    return found


def _from_text(text: str, kinds: frozenset[str]) -> list[Proposal]:
    found: list[Proposal] = []
    if "boolean" in kinds and text.lower() in _BOOLEANS:
        found.append(("scalar", text.lower()))
    if "number" in kinds and JSON_NUMBER.fullmatch(text):
        found.append(("scalar", text))
    elif "integer" in kinds:
        if whole := _WHOLE.fullmatch(text):
            found.append(("scalar", whole[1]))
        elif _NUMBER_LIKE.fullmatch(text):
            found.append(Declined("lossy_number", text))
    return found
