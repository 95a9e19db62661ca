"""What the history of every wire needs: arguments and names in a form that providers accept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolrun._core.calls import CallStatus
from toolrun._core.json_text import dump_once, parse_object
from toolrun.wires._reading import fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolrun._core.calls import ToolCall
    from toolrun._core.records import JsonObject

INVALID_ARGUMENTS: Final = "invalid_arguments"
"""The one key under which arguments that are not a JSON object are shown to the model, whole."""

_GROWING_DETAILS: Final = frozenset(("text", "summary", "data"))

UNNAMED: Final = "unnamed_tool"

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")


def history_name(call: ToolCall) -> str:
    """The call's name, with what no provider accepts in a name replaced; the raw name is in the turn.

    Args:
        call: A call of the response, as `assistant_messages` is given it.
    """
    return _NOT_IN_NAMES.sub("_", call.name)[:64] if call.name else UNNAMED


def history_arguments(call: ToolCall) -> JsonObject:
    """The arguments as an object: what the model wrote, or that text under `invalid_arguments`.

    Arguments that were not finished stand there too, even if what came of them happens to be an object.

    Args:
        call: A call of the response, as `assistant_messages` is given it.
    """
    if call.status is CallStatus.OK and call.arguments is not None:
        return call.arguments
    written = _written(call)
    return {INVALID_ARGUMENTS: call.raw_arguments} if written is None else written


def history_text(call: ToolCall) -> str:
    """The arguments as JSON text: valid ones byte for byte; blank ones of a finished call as `{}`.

    Args:
        call: A call of the response, as `assistant_messages` is given it.
    """
    if call.status is CallStatus.OK:
        return call.raw_arguments if call.raw_arguments.strip() else "{}"
    if _written(call) is not None:
        return call.raw_arguments
    return dump_once({INVALID_ARGUMENTS: call.raw_arguments})


def _written(call: ToolCall) -> JsonObject | None:
    """The object that a call without valid arguments has all the same: no name, or a provider's call in a paused turn."""
    if call.status is CallStatus.INCOMPLETE and not call.provider_executed:
        return None
    parsed = parse_object(call.raw_arguments)
    return parsed if isinstance(parsed, dict) else None


def joined_details(details: Iterable[object]) -> list[JsonObject]:
    """The entries of `reasoning_details`, of which a stream sends many pieces: one for each index, as clients send them.

    Texts grow; of anything else the last value counts, because a signature comes with the last piece.
    """
    joined: dict[object, JsonObject] = {}
    for number, detail in enumerate(details):
        told = fields(detail)
        place = number if told.get("index") is None else (told["index"], told.get("type"))
        entry = joined.setdefault(place, {})
        for key, value in told.items():
            if key in _GROWING_DETAILS and isinstance(value, str):
                entry[key] = f"{entry.get(key) or ''}{value}"
            elif value is not None or key not in entry:
                entry[key] = value
    return list(joined.values())
