"""What the tests of the `openai-responses` wire share: short ways to write events down, and the recordings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tests.streams import corpus
from toolrun import FinishPolicy, StreamFinalizer, ToolCall, finalize
from toolrun._core.seams import ToolResult
from toolrun.wires.openai_responses import OpenAIResponses

Json = dict[str, Any]

WIRE: Final = OpenAIResponses()


# -- short ways to write events down --------------------------------------------------------


def call_item(number: int = 1, name: str | None = "f", arguments: Any = "", **rest: Any) -> Json:
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
    return {key: value for key, value in {**item, "arguments": arguments, **rest}.items() if value is not ...}


def custom_item(input: str = "", **rest: Any) -> Json:
    return {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "f", "input": input, **rest}


def message_item(text: str = "Hi", number: int = 1, **rest: Any) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}
    return {**item, **rest}


def reasoning_item(number: int = 1, **rest: Any) -> Json:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], **rest}


def added(item: Json, index: int | None = 0) -> Json:
    return without_none({"type": "response.output_item.added", "output_index": index, "item": item})


def item_done(item: Json, index: int | None = 0) -> Json:
    return without_none({"type": "response.output_item.done", "output_index": index, "item": item})


def delta(text: Any, index: int | None = 0, item_id: str | None = None, call_id: str | None = None) -> Json:
    event = {"type": "response.function_call_arguments.delta", "output_index": index, "item_id": item_id}
    return without_none({**event, "call_id": call_id, "delta": text})


def arguments_done(text: str, index: int | None = 0, item_id: str | None = None) -> Json:
    event = {"type": "response.function_call_arguments.done", "output_index": index, "item_id": item_id}
    return without_none({**event, "arguments": text})


def ended(*output: Json, kind: str = "completed", **response: Any) -> Json:
    told = {"id": "resp_1", "object": "response", "status": kind, "output": list(output), **response}
    return {"type": f"response.{kind}", "response": told}


def created(id: str = "resp_1") -> Json:
    return {"type": "response.created", "response": {"id": id, "status": "in_progress", "output": []}}


def without_none(event: Json) -> Json:
    return {key: value for key, value in event.items() if value is not None}


def calls_of(*events: Any, end: Any = "auto", policy: FinishPolicy | None = None) -> tuple[ToolCall, ...]:
    return finalize(list(events), wire=WIRE, end=end, policy=policy)


def brief(calls: Iterable[ToolCall]) -> list[tuple[Any, ...]]:
    """Id (None if synthetic), name, raw text and status."""
    return [
        (None if call.synthetic_id else call.id, call.name, call.raw_arguments, call.status.value) for call in calls
    ]


def runs(calls: Iterable[ToolCall]) -> list[str | None]:
    return [call.name for call in calls if call.executable]


def fed(*events: Any, end: Any = "auto") -> tuple[StreamFinalizer, list[Any]]:
    """A closed finalizer, and the events that it gave."""
    finalizer = StreamFinalizer(WIRE)
    told = [item for event in events for item in finalizer.feed(event)]
    return finalizer, [*told, *finalizer.close(end)]


def history(*events: Any, results: Sequence[str] = (), is_error: bool = False) -> list[Json]:
    """What goes back for a stream: the items of the response, and one result each for the client's calls."""
    finalizer, _ = fed(*events)
    client = [call for call in finalizer.calls if not call.provider_executed]
    texts = [*results, *["done"] * (len(client) - len(results))]
    written = WIRE.assistant_messages(finalizer.response, finalizer.calls)
    answers = [ToolResult(call, text, is_error) for call, text in zip(client, texts, strict=True)]
    items = [*written, *WIRE.result_messages(answers)]
    assert json.loads(json.dumps(items)) == items
    return items


def text_delta(text: str, kind: str = "output_text", index: int | None = 0, **rest: Any) -> Json:
    return without_none({"type": f"response.{kind}.delta", "output_index": index, "delta": text, **rest})


WHOLE = call_item(1, arguments='{"a":1}')
SEARCH = {"type": "tool_search_call", "id": "tsc_1", "call_id": "call_1", "arguments": {"paths": ["f"]}}
SHELL = {"type": "shell_call", "id": "sh_1", "call_id": "call_1", "action": {"commands": ["ls"], "timeout_ms": None}}
PATCH = {"type": "update_file", "path": "a.py", "diff": "@@\n-1\n+2"}


# -- the recordings -------------------------------------------------------------------------

RECORDINGS = corpus.recordings("openai-responses")


def kind_of(event: Json) -> str:
    data = event["data"]
    return str(data.get("type")) if isinstance(data, dict) else str(data)
