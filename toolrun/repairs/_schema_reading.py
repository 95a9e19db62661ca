"""Reading arguments by the schema: strict JSON that does not fit, and the only way in which it does.

Each rule proposes what one value could have been meant to be. Whether a reading is the only one can be told only if
the rules are asked together, so they share one hook; the answer counts if exactly one reading passes the tool's own
validator.
"""

from __future__ import annotations

import itertools
import json
import math
from typing import TYPE_CHECKING, Final

from toolrun._core.records import Edit
from toolrun._core.repair import Declined, Reading, Repaired
from toolrun.repairs._nodes import Node, parse, parse_value
from toolrun.repairs._places import Schema
from toolrun.repairs._text import LONGEST, apply_edits
from toolrun.repairs.absent import is_absent, no_arguments
from toolrun.repairs.envelopes import envelope
from toolrun.repairs.names import folded_keys, listed_text
from toolrun.repairs.scalars import scalar
from toolrun.repairs.shapes import shape
from toolrun.repairs.texts import json_text

if TYPE_CHECKING:
    from toolrun._core.repair import RepairRequest
    from toolrun.repairs._rules import Proposal, Rule

_Choice = tuple[Edit, ...]

_RULES: Final[tuple[Rule, ...]] = (json_text, scalar, shape)
_ROOT_RULES: Final[tuple[Rule, ...]] = (no_arguments, json_text, shape)
_MOST_READINGS: Final = 8
_MOST_STEPS: Final = 400_000
_MOST_PROPOSALS: Final = 10_000
_MOST_LAYERS: Final = 4


def schema_reading(request: RepairRequest) -> Repaired | Declined | None:
    """Read arguments as the schema has them: the rules `json_text`, `scalar`, `shape`, `folded_keys`, `listed_text`,
    `is_absent`, `no_arguments` and `envelope`, at every place that does not fit.

    Refuses whatever can be read in two ways that fit, and whatever no rule covers. An unknown key stays an unknown
    key: dropping `dry_run` would turn a rehearsal into the real thing.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(schema_reading, '{"days": "3"}', fault="schema", days={"type": "integer"})
        '{"days": 3}'
        >>> ask(schema_reading, '{"days": "3", "dry_run": true}', fault="schema", days={"type": "integer"}).code
        'unknown_key'
    """  # noqa: D205  # a list of rules does not fit in one line
    text = request.text
    if request.definition is None or not text.strip() or (request.issue and request.issue.code != "not_object"):
        return None
    if len(text) > LONGEST:
        return Declined("limit", f"{len(text)} characters, at most {LONGEST} are repaired")
    reader = _Reader(request.definition.name)
    try:
        choices = reader.root(parse(text), Schema.of(request.definition))
    except _TooManyError as error:
        return error.declined
    if not choices:
        return reader.declined
    if choices == [()]:
        return None
    readings = tuple(Reading(apply_edits(text, edits), edits) for edits in choices)
    return Repaired(text=readings[0].text, edits=readings[0].edits, readings=readings)


class _TooManyError(Exception):
    """There are more readings, or there is more work, than can be compared."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.declined = Declined(code, detail)


class _Reader:
    """Finds the choices for each value: sets of edits that make it fit. No choice: it cannot fit."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._steps = 0
        self._proposals = 0
        self.declined: Declined | None = None

    def root(self, node: Node, schema: Schema, layer: int = 0) -> list[_Choice]:
        """The choices for the arguments as a whole."""
        if node.kind != "object":
            return self._proposed(node, schema, _ROOT_RULES, layer, root=True)
        wrapped = envelope(node, schema, self._tool)
        if wrapped:
            return self._read(node, schema, wrapped, layer, root=True)
        return self._object(node, schema, layer)

    def value(self, node: Node, schema: Schema, layer: int) -> list[_Choice]:
        """The choices for one value."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooManyError("limit", "there is too much in the arguments to be read by the schema")
        kinds = schema.kinds
        if kinds is None:
            return [()]
        if node.kind not in kinds and not (node.kind == "integer" and "number" in kinds):
            return self._proposed(node, schema, _RULES, layer)
        if node.kind == "object":
            return self._object(node, schema, layer)
        if node.kind == "array":
            return self._array(node, schema, layer)
        if node.kind == "string" and schema.texts is not None:
            return (
                self._read(node, schema, listed_text(node, schema), layer) if node.value not in schema.texts else [()]
            )
        return [()]

    def _array(self, node: Node, schema: Schema, layer: int) -> list[_Choice]:
        items = schema.items
        choices = self._all([self.value(item, items, layer) for item in node.items])
        lists = items.kinds is not None and "array" in items.kinds
        if lists and len(node.items) > 1 and all(item.kind not in (items.kinds or ()) for item in node.items):
            # `[1, 2]` where a list of lists belongs: each may be a list of one, or the whole the only one.
            choices = [*choices, *self._read(node, schema, [("shape", f"[{node.text}]")], layer)]
        return choices

    def _object(self, node: Node, schema: Schema, layer: int) -> list[_Choice]:
        renamed = folded_keys(node, schema)
        parts: list[list[_Choice]] = []
        dropped_so_far = True
        for number, member in enumerate(node.members):
            key = renamed.get(member.key, member.key)
            if not schema.knows(key) and not schema.is_open:
                self._decline(Declined("unknown_key", member.key))
                return []
            if is_absent(member.value, key, schema):
                parts.append([(_drop(node, number, first=dropped_so_far),)])
                continue
            dropped_so_far = False
            if key != member.key:
                text = node.text[member.start - node.start : member.end - node.start]
                parts.append([(Edit("key_name", member.start, text, json.dumps(key, ensure_ascii=False)),)])
            parts.append(self.value(member.value, schema.member(key), layer))
        return self._all(parts)

    def _proposed(
        self, node: Node, schema: Schema, rules: tuple[Rule, ...], layer: int, *, root: bool = False
    ) -> list[_Choice]:
        proposals = [proposal for rule in rules for proposal in rule(node, schema)]
        return self._read(node, schema, proposals, layer, root=root)

    def _read(
        self, node: Node, schema: Schema, proposals: list[Proposal], layer: int, *, root: bool = False
    ) -> list[_Choice]:
        """What proposals come to when what they hold is read in turn."""
        self._proposals += len(proposals)
        if self._proposals > _MOST_PROPOSALS:
            raise _TooManyError("limit", "too many values do not fit the schema")
        found: dict[str, _Choice] = {}
        for proposal in proposals:
            if isinstance(proposal, Declined):
                self._decline(proposal)
                continue
            code, text = proposal
            inner = parse_value(text) if layer < _MOST_LAYERS else None
            if inner is None:
                continue
            choices = self.root(inner, schema, layer + 1) if root else self.value(inner, schema, layer + 1)
            for choice in choices:
                read = apply_edits(text, choice)
                found.setdefault(read, (Edit(code, node.start, node.text, read),))
        return list(found.values())

    def _all(self, parts: list[list[_Choice]]) -> list[_Choice]:
        """Every combination of the choices for the parts of a value."""
        if math.prod(map(len, parts)) > _MOST_READINGS:
            raise _TooManyError("ambiguous", "there are too many ways to read the arguments")
        if all(len(part) == 1 for part in parts):
            return [tuple(edit for part in parts for edit in part[0])]
        return [tuple(itertools.chain(*chosen)) for chosen in itertools.product(*parts)]

    def _decline(self, declined: Declined) -> None:
        if self.declined is None:
            self.declined = declined


def _drop(node: Node, number: int, *, first: bool) -> Edit:
    """Take out a member and the comma that belongs to it."""
    member = node.members[number]
    start, end = member.start, member.value.end
    if not first:
        start = node.members[number - 1].value.end
    elif number + 1 < len(node.members):
        end = node.members[number + 1].start
    return Edit("absent", start, node.text[start - node.start : end - node.start], "")
