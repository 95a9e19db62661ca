"""What the history of every wire needs: arguments and names in a form that providers accept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolrun._core.calls import CallStatus
from toolrun._core.json_text import dump_once, parse_object

if TYPE_CHECKING:
    from toolrun._core.calls import ToolCall
    from toolrun._core.records import JsonObject

INVALID_ARGUMENTS: Final = "invalid_arguments"
"""The one key under which arguments that are not a JSON object are shown to the model, whole."""

UNNAMED: Final = "unnamed_tool"

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")


def history_name(call: ToolCall) -> str:
    """The call's name, with what no provider accepts in a name replaced; the raw name is in the turn."""
    return _NOT_IN_NAMES.sub("_", call.name)[:64] if call.name else UNNAMED


def history_arguments(call: ToolCall) -> JsonObject:
    """The arguments as an object: what the model wrote, or that text under `invalid_arguments`."""
    parsed = call.arguments if call.status is CallStatus.OK else parse_object(call.raw_arguments)
    return parsed if isinstance(parsed, dict) else {INVALID_ARGUMENTS: call.raw_arguments}


def history_text(call: ToolCall) -> str:
    """The arguments as JSON text: valid ones byte for byte; blank ones of a finished call as `{}`."""
    if call.status is CallStatus.OK:
        return call.raw_arguments if call.raw_arguments.strip() else "{}"
    if isinstance(parse_object(call.raw_arguments), dict):
        return call.raw_arguments
    return dump_once({INVALID_ARGUMENTS: call.raw_arguments})
