"""Recorded streams, served again to the official clients, give the calls that the raw recording gives."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolrun import Runner, ToolRegistry, finalize

from .server import HttpReply

if TYPE_CHECKING:
    from collections.abc import Sequence

    import anthropic
    import openai

    from toolrun import ToolCall, Turn
    from toolrun._stream import EndOfStream

    from .server import ReplayServer

CORPUS = Path(os.environ.get("TOOLRUN_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")


def recordings(wire: str) -> list[str]:
    return [path.stem for path in sorted((CORPUS / "streams" / wire).glob("*.jsonl"))]


def frames(wire: str, name: str) -> list[bytes]:
    """The recording as the bytes of server-sent events; lines end in LF only."""
    text = (CORPUS / "streams" / wire / f"{name}.jsonl").read_text(encoding="utf-8")
    pieces: list[bytes] = []
    for line in text.rstrip("\n").split("\n"):
        event = json.loads(line)
        named = isinstance(event, dict) and set(event) <= {"event", "data"} and "data" in event
        data = event["data"] if named else event
        payload = data if isinstance(data, str) else json.dumps(data)
        head = f"event: {event['event']}\n" if named and event.get("event") else ""
        pieces.append(f"{head}data: {payload}\n\n".encode())
    return pieces


needs_recordings = pytest.mark.skipif(
    not recordings("openai-chat"), reason=f"no recordings at {CORPUS}; set TOOLRUN_CORPUS"
)


def facts(calls: tuple[ToolCall, ...]) -> list[tuple[object, ...]]:
    return [
        (call.name, call.raw_arguments, call.arguments, call.status, call.code, call.provider_executed)
        for call in calls
    ]


def end_of(expected: tuple[ToolCall, ...]) -> EndOfStream:
    """The OpenAI SDK hides the terminator, so where there was no finish reason the user has to tell."""
    return "normal" if any(call.code == "finish_inferred" for call in expected) else "auto"


@needs_recordings
def test_sync_openai_client(server: ReplayServer, openai_client: openai.OpenAI):
    """Every recording of the wire, through the SDK's own decoding."""
    different = []
    for name in recordings("openai-chat"):
        pieces = frames("openai-chat", name)
        expected = finalize(pieces)
        server.will_answer(HttpReply(pieces=pieces))
        stream = openai_client.chat.completions.create(model="m", messages=[], stream=True)
        if facts(finalize(stream, end=end_of(expected))) != facts(expected):
            different.append(name)

    assert different == []


@needs_recordings
def test_sync_anthropic_client(server: ReplayServer, anthropic_client: anthropic.Anthropic):
    """Every recording of the wire, through the SDK's own decoding."""
    different = []
    for name in recordings("anthropic-messages"):
        pieces = frames("anthropic-messages", name)
        server.will_answer(HttpReply(pieces=pieces))
        stream = anthropic_client.messages.create(model="m", messages=[], max_tokens=9, stream=True)
        if facts(finalize(stream)) != facts(finalize(pieces)):
            different.append(name)

    assert different == []


def answers(turn: Turn, expected: Sequence[ToolCall]) -> bool:
    """Tell whether the turn has these calls, those of other choices aside, and one outcome for each of the client's."""
    mine = tuple(call for call in expected if call.choice == 0)
    clients = [call for call in mine if not call.provider_executed]
    return facts(turn.calls) == facts(mine) and [outcome.call.position for outcome in turn.outcomes] == [
        call.position for call in clients
    ]


@needs_recordings
async def test_runner_with_async_openai_client(server: ReplayServer, openai_async: openai.AsyncOpenAI):
    """The runner sees the same calls, and gives each client call its outcome."""
    different = []
    for name in recordings("openai-chat")[::8]:
        pieces = frames("openai-chat", name)
        expected = finalize(pieces)
        server.will_answer(HttpReply(pieces=pieces))
        stream = await openai_async.chat.completions.create(model="m", messages=[], stream=True)
        turn = await Runner(ToolRegistry(), on_stream_error="return").run(stream, end=end_of(expected))
        if not answers(turn, expected):
            different.append(name)

    assert different == []


@needs_recordings
async def test_runner_with_async_anthropic_client(server: ReplayServer, anthropic_async: anthropic.AsyncAnthropic):
    """The runner sees the same calls, and gives each client call its outcome."""
    different = []
    for name in recordings("anthropic-messages")[::4]:
        pieces = frames("anthropic-messages", name)
        expected = finalize(pieces)
        server.will_answer(HttpReply(pieces=pieces))
        stream = await anthropic_async.messages.create(model="m", messages=[], max_tokens=9, stream=True)
        turn = await Runner(ToolRegistry(), on_stream_error="return").run(stream)
        if not answers(turn, expected):
            different.append(name)

    assert different == []
