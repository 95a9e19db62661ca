"""Short ways to write provider events down."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

DONE = "[DONE]"
MESSAGE_STOP: Json = {"type": "message_stop"}


def chunk(*calls: Json, finish: str | None = None, choice: int = 0, **rest: Any) -> Json:
    """A `chat.completion.chunk` with pieces of tool calls, a finish reason, or both."""
    delta: Json = {"tool_calls": list(calls)} if calls else {}
    return {"choices": [{"index": choice, "delta": delta, "finish_reason": finish}], **rest}


def piece(
    arguments: Any = None, *, index: Any = None, id: Any = None, name: Any = None, custom: bool = False, **rest: Any
) -> Json:
    """A piece of a tool call; what is None is left out."""
    body = {"name": name, "input" if custom else "arguments": arguments}
    told = {"index": index, "id": id, "custom" if custom else "function": _present(body), **rest}
    return _present(told)


def chat(*calls: Json, finish: str | None = "tool_calls") -> list[Json]:
    """A stream with each piece in a chunk of its own, then a finish reason if there is one."""
    return [*(chunk(call) for call in calls), *([chunk(finish=finish)] if finish else [])]


def message_start(id: str | None = "msg_1", **rest: Any) -> Json:
    message = _present({"id": id, "type": "message", "role": "assistant", "content": [], **rest})
    return {"type": "message_start", "message": message}


def block_start(index: int | None, kind: str = "tool_use", **block: Any) -> Json:
    return _present({"type": "content_block_start", "index": index, "content_block": {"type": kind, **block}})


def tool_start(index: int | None, id: str | None, name: str | None, input: Any = None, **rest: Any) -> Json:
    block = _present({"id": id, "name": name})
    return block_start(index, **block, input={} if input is None else input, **rest)


def input_delta(index: int | None, text: Any) -> Json:
    delta = {"type": "input_json_delta", "partial_json": text}
    return _present({"type": "content_block_delta", "index": index, "delta": delta})


def block_stop(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def message_delta(reason: str | None) -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}}


def tool_block(index: int, id: str, name: str, *texts: str) -> list[Json]:
    """A whole block: start, deltas, stop."""
    return [tool_start(index, id, name), *(input_delta(index, text) for text in texts), block_stop(index)]


def messages(*events: Json | list[Json], reason: str | None = "tool_use") -> list[Json]:
    """A whole stream around events or lists of them; with `reason` None there is no end."""
    flat = [item for event in events for item in (event if isinstance(event, list) else [event])]
    return [message_start(), *flat, *([message_delta(reason), MESSAGE_STOP] if reason else [])]


def sse(events: Iterable[Json | str], *, line_end: str = "\n", space: str = " ") -> bytes:
    """Events as a server sends them."""
    texts = (event if isinstance(event, str) else json.dumps(event) for event in events)
    return "".join(f"data:{space}{text}{line_end}{line_end}" for text in texts).encode()


def _present(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value is not None}
