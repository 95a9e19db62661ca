"""Responses with calls written as `(name, arguments)`; their ids are c0, c1 …."""

from __future__ import annotations

from typing import Any


def response(*calls: tuple[str | None, str], finish: str = "tool_calls") -> dict[str, Any]:
    """A whole chat completion."""
    entries = [
        {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(calls)
    ]
    return {"choices": [{"message": {"tool_calls": entries}, "finish_reason": finish}]}


def blocks(*calls: tuple[str, str]) -> list[dict[str, Any]]:
    """The events of a streamed message, in which each call but the last is proven whole by the next."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"role": "assistant", "content": []}}]
    for index, (name, arguments) in enumerate(calls):
        block = {"type": "tool_use", "id": f"c{index}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": arguments}
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    return [*events, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
