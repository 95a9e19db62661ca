"""Ask one hook about one text, as the docstrings of the hooks do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolrun._core.calls import CallStatus, ToolCall, ToolDefinition
from toolrun._core.repair import Declined, Fault, Renamed, Repaired, RepairRequest

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject
    from toolrun._core.repair import RepairHook


def ask(
    hook: RepairHook,
    raw: str,
    *,
    fault: Fault = Fault.PARSE,
    finish_reason: str | None = "tool_calls",
    **properties: JsonObject,
) -> object:
    """What a hook makes of a text: the new text, the readings, the refusal, or None.

    Args:
        hook: The hook.
        raw: The argument text.
        fault: What is wrong with it.
        finish_reason: How the model stopped.
        **properties: The schemas of the tool's parameters; those with `"optional": True` are not required.
    """
    required = [name for name, schema in properties.items() if not schema.get("optional")]
    schema: JsonObject = {
        "type": "object",
        "properties": {
            name: {key: item for key, item in own.items() if key != "optional"} for name, own in properties.items()
        },
        "required": required,
        "additionalProperties": False,
    }
    call = ToolCall(
        id="c", name="f", raw_arguments=raw, arguments=None, status=CallStatus.PARSE_ERROR, executable=False
    )
    definition = ToolDefinition(name="f", description="", input_schema=schema)
    request = RepairRequest(call=call, fault=fault, text=raw, definition=definition, finish_reason=finish_reason)
    answer = hook(request)
    if isinstance(answer, Repaired):
        return [reading.text for reading in answer.readings] if len(answer.readings) > 1 else answer.text
    if isinstance(answer, Renamed):
        return answer.tool
    assert answer is None or isinstance(answer, Declined)
    return answer
