"""Responses and jobs for the tests."""

from __future__ import annotations

import json
import uuid
from typing import Any

from toolrun import CallStatus, ToolCall
from toolrun.abc import Job


def response(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A whole Chat Completions response with these calls."""
    written = [
        {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for place, (name, arguments) in enumerate(calls)
    ]
    return {"choices": [{"message": {"tool_calls": written}, "finish_reason": "tool_calls"}]}


def make_job(tool: str, arguments: dict[str, Any], **fields: Any) -> Job:
    """A job with a key of its own."""
    text = json.dumps(arguments)
    call = ToolCall(id="c1", name=tool, raw_arguments=text, arguments=arguments, status=CallStatus.OK, executable=True)
    return Job(**{"key": uuid.uuid4().hex, "tool": tool, "call": call, "arguments": text, **fields})
