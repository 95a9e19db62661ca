"""Names in another spelling: of a tool, of a key, of a listed value."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from toolrun._core.names import fold, resolve_name
from toolrun._core.repair import Renamed

if TYPE_CHECKING:
    from toolrun._core.repair import RepairRequest
    from toolrun.repairs._nodes import Node
    from toolrun.repairs._places import Schema
    from toolrun.repairs._rules import Proposal


def tool_name(request: RepairRequest) -> Renamed | None:
    """Find the tool that a name in another spelling belongs to: the ladder of `toolrun._core.names`.

    Refuses a name with two targets, and every name that is only near one: `delete_files` is not `delete_file`.
    """
    readings = request.call.name_readings or ((request.call.name,) if request.call.name else ())
    found = {meant for reading in readings if (meant := resolve_name(reading, request.known)) is not None}
    return Renamed(found.pop()) if len(found) == 1 else None


def folded_keys(node: Node, schema: Schema) -> dict[str, str]:
    """Find keys in another spelling: letter case, separators, blanks. Gives the declared key for each.

    Refuses a key with two targets, two keys with one target, and a target that is there already. A synonym, a
    misspelling or a part of a name is no spelling.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> from toolrun.repairs import schema_reading
        >>> ask(schema_reading, '{"old_text": "a"}', fault="schema", oldText={"type": "string"})
        '{"oldText": "a"}'
        >>> ask(schema_reading, '{"file_path": "a", "filePath": "b"}', fault="schema", file_path={"type": "string"}).code
        'unknown_key'
    """
    own = {member.key for member in node.members}
    unknown = [key for key in own if not schema.knows(key)]
    if not unknown:
        return {}
    targets: dict[str, list[str]] = {}
    for key in schema.properties:
        if key not in own:
            targets.setdefault(fold(key), []).append(key)
    folded = Counter(map(fold, unknown))
    return {
        key: targets[fold(key)][0]
        for key in unknown
        if fold(key) and folded[fold(key)] == 1 and len(targets.get(fold(key), ())) == 1
    }


def listed_text(node: Node, schema: Schema) -> list[Proposal]:
    """Find the one listed value that a text spells differently: letter case, separators, blanks.

    Refuses synonyms and parts: `open` is not `active`, `prod` is not `production`.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> from toolrun.repairs import schema_reading
        >>> status = {"enum": ["in_progress", "done"]}
        >>> ask(schema_reading, '{"status": "In Progress"}', fault="schema", status=status)
        '{"status": "in_progress"}'
        >>> ask(schema_reading, '{"status": "open"}', fault="schema", status=status)
    """
    wanted = fold(node.value)
    found = [text for text in schema.texts or () if wanted and fold(text) == wanted]
    return [("listed_text", json.dumps(found[0], ensure_ascii=False))] if len(found) == 1 else []
