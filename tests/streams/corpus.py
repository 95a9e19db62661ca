"""The recordings: where they are, what their index says, and where `finalize` rightly says something else."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(os.environ.get("TOOLRUN_CORPUS") or Path(__file__).resolve().parents[2].parent / "shared" / "corpus")
INDEX: Final = ROOT / "index.jsonl"
ABSENT: Final = f"the recordings are not in {ROOT}; set TOOLRUN_CORPUS to the folder that has their index.jsonl"
WIRES: Final = ("openai-chat", "anthropic-messages")

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

NEVER_A_STRING: Final = frozenset((("llm-test-tools-streaming-variant-d", 0),))
"""`arguments` was null from beginning to end: the raw text is `""` here, None there."""

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


@dataclass(frozen=True, slots=True)
class Expected:
    """What must become of one recorded call."""

    name: str | None
    raw: str | None
    arguments: dict[str, Any] | None
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
    """One recorded stream and what its index says of it."""

    id: str
    wire: str
    data: bytes
    named_events: bool
    calls: tuple[Expected, ...]

    @cached_property
    def events(self) -> tuple[Any, ...]:
        return tuple(json.loads(line) for line in self.data.split(b"\n") if line)

    @cached_property
    def sse(self) -> bytes:
        """The same events as a server would send them."""
        return b"".join(self._frames())

    @property
    def runnable(self) -> tuple[Expected, ...]:
        return tuple(call for call in self.calls if call.runs)

    @property
    def answered(self) -> tuple[Expected, ...]:
        """The calls that must have exactly one result."""
        return tuple(call for call in self.calls if not call.provider_executed and call.choice == 0)

    def _frames(self) -> Iterator[bytes]:
        for event in self.events:
            name, payload = (event["event"], event["data"]) if self.named_events else (None, event)
            text = payload if isinstance(payload, str) else json.dumps(payload)
            yield (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def recordings() -> tuple[Recording, ...]:
    """Every recording of the two wires; none where the corpus is absent."""
    if not INDEX.is_file():
        return ()
    listed = [json.loads(line) for line in INDEX.read_text(encoding="utf-8").split("\n") if line]
    return tuple(_recording(entry) for entry in listed if entry["wire"] in WIRES)


def chunks(data: bytes, seed: str, *, most: int) -> Iterator[bytes]:
    """Cut bytes at random places into pieces of 1 to `most` bytes; the same seed gives the same pieces."""
    random_ = random.Random(seed)
    start = 0
    while start < len(data):
        end = start + random_.randint(1, most)
        yield data[start:end]
        start = end


def _recording(entry: dict[str, Any]) -> Recording:
    name = entry["id"]
    given = UNFIT.get(name)
    return Recording(
        id=name,
        wire=entry["wire"],
        data=(ROOT / entry["file"]).read_bytes(),
        named_events=entry["format"] == "event+data",
        calls=tuple(
            _expected(name, position, call, given[position] if given else None)
            for position, call in enumerate(entry["expected"]["calls"])
        ),
    )


def _expected(recording: str, position: int, call: dict[str, Any], given: tuple[str, str] | None) -> Expected:
    place = (recording, position)
    raw = call["arguments_raw"]
    if place in INPUT_IN_START:
        raw = None
    elif place in NEVER_A_STRING:
        raw = ""
    status, code = given or ("ok", "finish_inferred" if recording in INFERRED else "")
    return Expected(
        name=call["name"],
        raw=raw,
        arguments=call["arguments"] if status == "ok" else None,
        id=None if place in REUSED_ID else call["id"],
        index=call["index"],
        choice=call.get("choice", 0),
        provider_executed=call["provider_executed"],
        status=status,
        code=code or None,
    )
