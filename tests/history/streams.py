"""One response, written in the protocol of each wire."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Json = dict[str, Any]


class Call(NamedTuple):
    """A call as the model writes it; the text of its arguments may be anything."""

    id: str | None
    name: str | None
    text: str

    def given(self) -> Any:
        """For wires whose arguments are objects: the object, or the text if it is none."""
        try:
            return json.loads(self.text)
        except ValueError:
            return self.text


class Finish(NamedTuple):
    """How a response ends, in the words of a wire: `calls`, `stop`, `length`; None is a stream that is cut."""

    calls: str
    stop: str
    length: str


FINISHES = {
    "openai-chat": Finish("tool_calls", "stop", "length"),
    "mistral": Finish("tool_calls", "stop", "length"),
    "cohere-v2": Finish("TOOL_CALL", "COMPLETE", "MAX_TOKENS"),
    "openai-responses": Finish("completed", "completed", "max_output_tokens"),
    "anthropic-messages": Finish("tool_use", "end_turn", "max_tokens"),
    "bedrock-invoke": Finish("tool_use", "end_turn", "max_tokens"),
    "bedrock-converse": Finish("tool_use", "end_turn", "max_tokens"),
    "gemini": Finish("STOP", "STOP", "MAX_TOKENS"),
    "ollama": Finish("stop", "stop", "length"),
}


def stream(wire: str, calls: Sequence[Call] = (), *, text: str = "", finish: str | None = "calls") -> list[Json]:
    """The events of a response with a text and calls; `finish` is a field of `Finish`, the wire's own word, or None."""
    word = getattr(FINISHES[wire], finish, finish) if finish else None
    return _WRITERS[wire](calls, text, word)


def _present(**told: Any) -> Json:
    return {key: value for key, value in told.items() if value is not None}


def _chat(calls: Sequence[Call], text: str, finish: str | None) -> list[Json]:
    deltas: list[Json] = [{"role": "assistant", "content": text or None}]
    for index, (own, name, arguments) in enumerate(calls):
        body = _present(name=name, arguments=arguments)
        deltas.append({"tool_calls": [_present(index=index, id=own, type="function", function=body)]})
    events = [{"id": "chat_1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    end = {
        "id": "chat_1",
        "choices": [{"index": 0, "delta": {}, "finish_reason": finish}],
        "usage": {"total_tokens": 7},
    }
    return [*events, end] if finish else events


def _cohere(calls: Sequence[Call], text: str, finish: str | None) -> list[Json]:
    events: list[Json] = [{"type": "message-start", "id": "m", "delta": {"message": {"role": "assistant"}}}]
    if text:
        content = {"message": {"content": {"type": "text", "text": text}}}
        events.append({"type": "content-start", "index": 0, "delta": content})
    for index, (own, name, arguments) in enumerate(calls):
        call = _present(id=own, type="function", function=_present(name=name, arguments=arguments))
        events.append({"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": call}}})
    usage = {"tokens": {"input_tokens": 7}}
    end = {"type": "message-end", "delta": {"finish_reason": finish, "usage": usage}}
    return [*events, end] if finish else events


def _responses(calls: Sequence[Call], text: str, finish: str | None) -> list[Json]:
    output: list[Json] = []
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        output.append(
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
        )
    for number, (own, name, arguments) in enumerate(calls):
        told = _present(id=f"fc_{number}", call_id=own, name=name, arguments=arguments)
        output.append({"type": "function_call", "status": "completed", **told})
    events: list[Json] = [{"type": "response.created", "response": {"id": "resp_1"}}]
    for index, item in enumerate(output):
        empty = {**item, "status": "in_progress"} | ({"arguments": ""} if "arguments" in item else {"content": []})
        events.append({"type": "response.output_item.added", "output_index": index, "item": empty})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    if finish is None:
        return events
    ended = {"id": "resp_1", "status": "completed", "output": output, "usage": {"total_tokens": 7}}
    if finish != "completed":
        ended |= {"status": "incomplete", "incomplete_details": {"reason": finish}}
    return [*events, {"type": f"response.{ended['status']}", "response": ended}]


def _anthropic(calls: Sequence[Call], text: str, finish: str | None) -> list[Json]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 7}}
    events: list[Json] = [{"type": "message_start", "message": message}]
    blocks: list[tuple[Json, Json]] = []
    if text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": text}))
    for own, name, arguments in calls:
        block = _present(type="tool_use", id=own, name=name, input={})
        blocks.append((block, {"type": "input_json_delta", "partial_json": arguments}))
    for index, (block, delta) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    end = [{"type": "message_delta", "delta": {"stop_reason": finish}}, {"type": "message_stop"}]
    return [*events, *end] if finish else events


def _invoke(calls: Sequence[Call], text: str, finish: str | None) -> list[Json]:
    events = _anthropic(calls, text, finish)
    return [{"bytes": base64.b64encode(json.dumps(event).encode()).decode()} for event in events]


def _converse(calls: Sequence[Call], text: str, finish: str | None) -> list[Json]:
    events: list[Json] = [{"messageStart": {"role": "assistant"}}]
    first = 0
    if text:
        events.append({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": text}}})
        first = 1
    for index, (own, name, arguments) in enumerate(calls, first):
        start = {"toolUse": _present(toolUseId=own, name=name)}
        events.append({"contentBlockStart": {"contentBlockIndex": index, "start": start}})
        delta = {"toolUse": {"input": arguments}}
        events.append({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}})
    end = [{"messageStop": {"stopReason": finish}}, {"metadata": {"usage": {"inputTokens": 7}}}]
    return [*events, *end] if finish else events


def _gemini(calls: Sequence[Call], text: str, finish: str | None) -> list[Json]:
    parts: list[Json] = [{"text": text}] if text else []
    parts += [{"functionCall": _present(id=call.id, name=call.name, args=call.given())} for call in calls]
    candidate = _present(content={"role": "model", "parts": parts}, finishReason=finish, index=0)
    return [{"candidates": [candidate], "responseId": "r", "usageMetadata": {"totalTokenCount": 7}}]


def _ollama(calls: Sequence[Call], text: str, finish: str | None) -> list[Json]:
    written = [_present(id=call.id, function=_present(name=call.name, arguments=call.given())) for call in calls]
    message = {"role": "assistant", "content": text, "tool_calls": written}
    end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": finish, "eval_count": 7}
    return [{"message": message, "done": False}, *([end] if finish else [])]


_WRITERS: dict[str, Callable[[Sequence[Call], str, str | None], list[Json]]] = {
    "openai-chat": _chat,
    "mistral": _chat,
    "cohere-v2": _cohere,
    "openai-responses": _responses,
    "anthropic-messages": _anthropic,
    "bedrock-invoke": _invoke,
    "bedrock-converse": _converse,
    "gemini": _gemini,
    "ollama": _ollama,
}
