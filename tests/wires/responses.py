"""What the tests of the `openai-responses` wire share: short ways to write events down, and the recordings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from toolrun import CallStatus, FinishPolicy, StreamFinalizer, ToolCall, finalize
from toolrun._core.seams import ToolResult
from toolrun.wires.openai_responses import OpenAIResponses

Json = dict[str, Any]

WIRE: Final = OpenAIResponses()
TESTS: Final = Path(__file__).resolve().parents[1]
CORPUS: Final = Path(os.environ.get("TOOLRUN_CORPUS") or TESTS.parents[1] / "shared" / "corpus")
ABSENT: Final = f"the recordings are not in {CORPUS}; set TOOLRUN_CORPUS to the folder that has their index.jsonl"


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


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
APPROVAL = {("vercel-openai-mcp-tool-approval-1", 0)}
"""A person approves it and the provider runs it: no tool of ours is meant, whatever its name."""

RENUMBERED = {
    ("vercel-should-send-streaming-tool-calls-5", 0): "call_6KxSghkb4MVnunFH2TxPErLP",
    ("vercel-should-send-streaming-tool-calls-5", 1): "call_Dg6WUmFHNeR5JxX1s53s1G4b",
}
"""Written by hand: one call has another call id in each event. The first stays, as listeners have it already."""

UNREADABLE = {"vercel-parallel-tool-call-wrapper-1"}
"""Two of its payloads are not JSON, the terminal one among them: a piece of any call may be missing."""

BY_TEXT = {
    "function_call", "custom_tool_call", "mcp_call", "mcp_approval_request", "code_interpreter_call", "program",
}  # fmt: skip
"""Arguments that come as text, and are kept byte for byte; the others come as objects."""


class Expected(NamedTuple):
    """What must become of one recorded call."""

    id: str
    name: str
    raw: str
    arguments: Json | None
    index: int
    provider_executed: bool
    ok: bool
    by_text: bool


class Recording(NamedTuple):
    """One recorded stream and what its index says of it."""

    id: str
    file: Path
    expected: tuple[Expected, ...]

    @property
    def data(self) -> bytes:
        return self.file.read_bytes()

    @property
    def events(self) -> list[Json]:
        return [json.loads(line) for line in self.data.split(b"\n") if line]

    @property
    def sse(self) -> bytes:
        frames = []
        for event in self.events:
            payload = event["data"] if isinstance(event["data"], str) else json.dumps(event["data"])
            frames.append((f"event: {event['event']}\n" if event["event"] else "") + f"data: {payload}\n\n")
        return "".join(frames).encode()

    @property
    def end(self) -> int:
        """The number of events before the one that says that the response is over."""
        terminal = ("response.completed", "response.incomplete", "response.failed")
        return next((place for place, event in enumerate(self.events) if kind_of(event) in terminal), len(self.events))


def kind_of(event: Json) -> str:
    data = event["data"]
    return str(data.get("type")) if isinstance(data, dict) else str(data)


def _expected(recording: str, position: int, call: Json) -> Expected:
    place = (recording, position)
    ok = recording not in UNREADABLE
    raw = call["arguments_raw"]
    return Expected(
        id=RENUMBERED.get(place, call["id"]),
        name=call["name"],
        # Some hosted calls have no arguments in the recording: that is a blank text, and an empty object.
        raw=raw or "",
        arguments=(call["arguments"] if raw is not None else {}) if ok else None,
        index=call["index"],
        provider_executed=call["provider_executed"] or place in APPROVAL,
        ok=ok,
        by_text=call["type"] in BY_TEXT,
    )


def recordings() -> list[Recording]:
    index = CORPUS / "index.jsonl"
    return [
        Recording(
            entry["id"],
            CORPUS / entry["file"],
            tuple(_expected(entry["id"], place, call) for place, call in enumerate(entry["expected"]["calls"])),
        )
        for entry in (lines_of(index) if index.is_file() else ())
        if entry["wire"] == "openai-responses"
    ]


RECORDINGS = recordings()


def same_text(got: str, want: str) -> bool:
    if got == want:
        return True
    try:
        return bool(json.loads(got) == json.loads(want))
    except ValueError:
        return False


def check(calls: Sequence[ToolCall], expected: Sequence[Expected]) -> None:
    assert [call.name for call in calls] == [want.name for want in expected]
    for call, want in zip(calls, expected, strict=True):
        assert call.raw_arguments == want.raw or (not want.by_text and same_text(call.raw_arguments, want.raw))
    assert [call.arguments for call in calls] == [want.arguments for want in expected]
    assert [(call.id, call.synthetic_id) for call in calls] == [(want.id, False) for want in expected]
    assert [call.index for call in calls] == [want.index for want in expected]
    assert [call.provider_executed for call in calls] == [want.provider_executed for want in expected]
    assert [call.status is CallStatus.OK for call in calls] == [want.ok for want in expected]
    assert [call.executable for call in calls] == [want.ok and not want.provider_executed for want in expected]
