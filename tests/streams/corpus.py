"""The recordings of all wires: where they are, what their index says, and where `finalize` rightly says something else."""

from __future__ import annotations

import base64
import json
import os
import random
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toolrun.testing import chunked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolrun import ToolCall

Json = dict[str, Any]

ROOT: Final = Path(os.environ.get("TOOLRUN_CORPUS") or Path(__file__).resolve().parents[2].parent / "shared" / "corpus")
INDEX: Final = ROOT / "index.jsonl"
ABSENT: Final = f"the recordings are not in {ROOT}; set TOOLRUN_CORPUS to the folder that has their index.jsonl"

# -- where the index says something else ----------------------------------------------------

INPUT_IN_START: Final = frozenset(
    (
        ("vercel-anthropic-programmatic-tool-calling-1-0.2", 0),
        ("vercel-anthropic-programmatic-tool-calling-1-0.3", 0),
        ("vercel-anthropic-programmatic-tool-calling-1-0.4", 0),
        ("vercel-anthropic-web-fetch-tool-20260209-1", 1),
        ("vercel-should-use-non-empty-input-from-content-block-start-for-defe-25", 0),
    )
)
"""The input came as an object in the block start and no delta followed: its JSON text is the raw text here, `""` there."""

NEVER_A_STRING: Final = frozenset(
    (
        ("llm-test-tools-streaming-variant-d", 0),
        ("pydanticai-test-google-model-file-search-grounding-gemini-3-true-3", 0),
    )
)
"""There were no arguments at all, or null from beginning to end: the raw text is `""` here, None there."""

APPROVAL: Final = frozenset((("vercel-openai-mcp-tool-approval-1", 0),))
"""A person approves it and the provider runs it: no tool of ours is meant, whatever its name."""

RENUMBERED: Final = {
    ("vercel-should-send-streaming-tool-calls-5", 0): "call_6KxSghkb4MVnunFH2TxPErLP",
    ("vercel-should-send-streaming-tool-calls-5", 1): "call_Dg6WUmFHNeR5JxX1s53s1G4b",
}
"""Written by hand: one call has another call id in each event. The first stays, as listeners have it already."""

REUSED_ID: Final = frozenset((("openroutersdk-should-generate-unique-toolcallids-when-streaming-provider-r-40", 1),))
"""The provider gave two calls one id: the second gets an id of its own, or results could not be told apart."""

UNFIT: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    # The argument text is cut or malformed although the finish reason says that it is whole.
    "openroutersdk-should-emit-tool-input-end-in-flush-path-when-tool-call-was-2": (("parse_error", "truncated"),),
    "openroutersdk-should-emit-full-lifecycle-for-multiple-unsent-tool-calls-in-29": (
        ("parse_error", "truncated"),
        ("parse_error", "truncated"),
    ),
    "openroutersdk-should-handle-mixed-paths-one-tool-completes-during-stream-a-30": (
        ("ok", ""),
        ("parse_error", "truncated"),
    ),
    "vercel-should-not-finalize-tool-call-early-when-partial-json-is-coi-5": (("parse_error", "syntax"),),
    # Nobody knows what the finish reason "other" promises, and the text is cut.
    "openroutersdk-should-trigger-flush-path-when-finish-reason-is-other-with-u-39": (("incomplete", "truncated"),),
    # No name ever came.
    "vercel-should-error-when-streamed-tool-call-never-receives-a-functi-6": (("parse_error", "nameless"),),
    # A second message_start cut the first call.
    "vercel-spliced-message-start": (("incomplete", "no_finish"), ("ok", "")),
    # The provider runs these itself and paused: they have no outcome, whatever their status.
    "pydanticai-test-pause-turn-web-search-streaming-vcr": (("incomplete", "broken_finish"),) * 11,
    # Two of its payloads are not JSON, the terminal one among them: a piece of any call may be missing.
    "vercel-parallel-tool-call-wrapper-1": (("incomplete", "stream_error"),),
}
"""Status and code of every call of the recordings in which not every call is ok."""

INFERRED: Final = frozenset(
    (
        "llm-test-tools-streaming-variant-a",
        "llm-test-tools-streaming-variant-b",
        "openroutersdk-should-infer-tool-calls-finishreason-when-finish-reason-is-m-5",
    )
)
"""No finish reason came, only the protocol's terminator: ok, and marked `finish_inferred`."""

AS_OBJECTS: Final = frozenset(("gemini", "ollama"))
"""Wires whose arguments are objects: their text is written down here, and compared as JSON."""

AS_TEXT: Final = frozenset(
    ("function_call", "custom_tool_call", "mcp_call", "mcp_approval_request", "code_interpreter_call", "program")
)
"""The types of calls in `openai-responses` whose arguments are text; those of all others are objects."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What must become of one recorded call."""

    name: str | None
    raw: str | None
    as_object: bool
    arguments: Json | None
    id: str | None
    index: int | None
    choice: int
    provider_executed: bool
    status: str
    code: str | None

    @property
    def runs(self) -> bool:
        return self.status == "ok" and not self.provider_executed and self.choice == 0


@dataclass(frozen=True)
class Recording:
    """One recorded stream, what its index says of it, and what a real client sent next."""

    id: str
    wire: str
    provider: str
    data: bytes
    named_events: bool
    calls: tuple[Expected, ...]

    @cached_property
    def events(self) -> tuple[Any, ...]:
        return tuple(json.loads(line) for line in self.data.split(b"\n") if line)

    @cached_property
    def payloads(self) -> tuple[Any, ...]:
        """The events out of the envelopes that they are recorded in, terminators too."""
        return tuple(event["data"] if self.named_events else event for event in self.events)

    @property
    def objects(self) -> tuple[Json, ...]:
        """The payloads that are objects: neither terminators nor what is not JSON."""
        return tuple(payload for payload in self.payloads if isinstance(payload, dict))

    @cached_property
    def frames(self) -> tuple[bytes, ...]:
        """The same events as a server sends them."""
        if self.wire == "ollama":
            return tuple(line + b"\n" for line in self.data.split(b"\n") if line)
        return tuple(map(self._frame, self.events))

    @property
    def stream(self) -> bytes:
        return b"".join(self.frames)

    @cached_property
    def proven(self) -> int:
        """How many events come before the first that says that choice 0 is over."""
        says = ENDS[self.wire]
        return next((place for place, event in enumerate(self.events) if says(event)), len(self.events))

    @cached_property
    def echo(self) -> Json | None:
        path = ROOT / "echo" / self.wire / f"{self.id}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    @property
    def runnable(self) -> tuple[Expected, ...]:
        return tuple(call for call in self.calls if call.runs)

    @property
    def answered(self) -> tuple[Expected, ...]:
        """The calls that must have exactly one result."""
        return tuple(call for call in self.calls if not call.provider_executed and call.choice == 0)

    def _frame(self, event: Any) -> bytes:
        name, payload = (event["event"], event["data"]) if self.named_events else (None, event)
        text = payload if isinstance(payload, str) else json.dumps(payload)
        return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


# -- ends, read without the library ---------------------------------------------------------


def _payload(event: Any) -> Any:
    return event["data"] if isinstance(event, dict) and event.keys() == {"event", "data"} else event


def _chat_ends(event: Any) -> bool:
    told = _payload(event)
    if not isinstance(told, dict):
        return bool(told == "[DONE]")
    choices = [choice for choice in told.get("choices") or () if choice.get("index", 0) == 0]
    return any(choice.get("finish_reason") for choice in choices)


def _messages_end(event: Any) -> bool:
    told = _payload(event)
    kind = told.get("type")
    holder = told.get("delta") if kind == "message_delta" else told.get("message")
    return kind == "message_stop" or bool(isinstance(holder, dict) and holder.get("stop_reason"))


def _responses_end(event: Any) -> bool:
    told = _payload(event)
    ends = ("response.completed", "response.incomplete", "response.failed")
    return told.get("type") in ends if isinstance(told, dict) else told == "[DONE]"


def _invoke_ends(event: Any) -> bool:
    inner = base64.b64decode(event["data"]["bytes"])
    return b"message_delta" in inner or b"messageStop" in inner


ENDS: Final[dict[str, Callable[[Any], bool]]] = {
    "openai-chat": _chat_ends,
    "mistral": _chat_ends,
    "anthropic-messages": _messages_end,
    "openai-responses": _responses_end,
    "gemini": lambda event: any("finishReason" in candidate for candidate in event.get("candidates", ())),
    "bedrock-converse": lambda event: "messageStop" in (event.get("event"), *event),
    "bedrock-invoke": _invoke_ends,
    "cohere-v2": lambda event: _payload(event) == "[DONE]" or _payload(event).get("type") == "message-end",
    "ollama": lambda event: event.get("done") is True,
    "openai-realtime": lambda event: event["type"] == "response.done",
}
"""Tells of each wire whether an event says that choice 0 is over."""


# -- reading and comparing ------------------------------------------------------------------


def recordings(*wires: str) -> tuple[Recording, ...]:
    """Every recording of some wires; none where the corpus is absent."""
    return tuple(_recording(entry) for entry in _index() if entry["wire"] in wires)


def recordings_of_others(wire: str) -> Iterator[Recording]:
    """Every recording of every other wire."""
    return (_recording(entry) for entry in _index() if entry["wire"] != wire)


def chunks(data: bytes, seed: str, *, most: int) -> Iterator[bytes]:
    """Cut bytes at random places into pieces of 1 to `most` bytes; the same seed gives the same pieces."""
    return iter(chunked(data, random.Random(seed), most=most))


def raising(events: Iterable[object]) -> Iterator[object]:
    """A source that breaks after its last event."""
    yield from events
    raise ConnectionResetError("cut")


def same_text(got: str, want: str) -> bool:
    """Compare argument texts; what came as an object is written down anew, so as JSON."""
    if got == want:
        return True
    try:
        return bool(json.loads(got) == json.loads(want))
    except ValueError:
        return False


def check(calls: Sequence[ToolCall], expected: Sequence[Expected]) -> None:
    """Hold calls against the index, field by field."""
    assert [call.name for call in calls] == [want.name for want in expected]
    for call, want in zip(calls, expected, strict=True):
        assert (
            want.raw is None
            or call.raw_arguments == want.raw
            or (want.as_object and same_text(call.raw_arguments, want.raw))
        )
    assert [call.arguments for call in calls] == [want.arguments for want in expected]
    assert [call.provider_executed for call in calls] == [want.provider_executed for want in expected]
    assert [(call.status.value, call.code) for call in calls] == [(want.status, want.code) for want in expected]
    assert [call.executable for call in calls] == [want.runs for want in expected]
    assert [call.choice for call in calls] == [want.choice for want in expected]
    assert [call.position for call in calls] == list(range(len(expected)))
    assert [call.index for call in calls] == [want.index for want in expected]
    assert [None if call.synthetic_id else call.id for call in calls] == [want.id for want in expected]
    ids = [call.id for call in calls if call.choice == 0]
    assert len(set(ids)) == len(ids)


def _index() -> list[Json]:
    if not INDEX.is_file():
        return []
    return [json.loads(line) for line in INDEX.read_text(encoding="utf-8").split("\n") if line]


def _recording(entry: Json) -> Recording:
    name, wire = entry["id"], entry["wire"]
    given = UNFIT.get(name)
    return Recording(
        id=name,
        wire=wire,
        provider=entry["provider"],
        data=(ROOT / entry["file"]).read_bytes(),
        named_events=entry["format"] == "event+data",
        calls=tuple(
            _expected(name, wire, position, call, given[position] if given else None)
            for position, call in enumerate(entry["expected"]["calls"])
        ),
    )


def _expected(recording: str, wire: str, position: int, call: Json, given: tuple[str, str] | None) -> Expected:
    place = (recording, position)
    raw = call["arguments_raw"]
    # Hosted calls of Responses without arguments in the recording: blank text is an empty object.
    blank = place in NEVER_A_STRING or (wire == "openai-responses" and raw is None)
    if place in INPUT_IN_START:
        raw = None
    elif blank:
        raw = ""
    status, code = given or ("ok", "finish_inferred" if recording in INFERRED else "")
    arguments = {} if blank and call["arguments"] is None else call["arguments"]
    return Expected(
        name=call["name"],
        raw=raw,
        as_object=wire in AS_OBJECTS or (wire == "openai-responses" and call["type"] not in AS_TEXT),
        arguments=arguments if status == "ok" else None,
        id=None if place in REUSED_ID else RENUMBERED.get(place, call["id"]),
        index=call["index"],
        choice=call.get("choice", 0),
        provider_executed=call["provider_executed"] or place in APPROVAL,
        status=status,
        code=code or None,
    )
