"""Generated Chat Completions streams, the same on every run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]

_SEED = 20261130
_WORDS = ("alpha", "bravo", "index", "path", "value", "token", "café", "naïve", "数据", "error", "merge", "query", "limit", "offset", "price", "street")  # fmt: skip
_BLOCK = 4096


def arguments(size: int, seed: int = 0) -> str:
    """A JSON object of about so many characters: half one long text, half small records."""
    rng = random.Random(_SEED + seed)
    content = " ".join(rng.choice(_WORDS) for _ in range(size // 12))
    rows: list[object] = []
    left = size - len(content) - 60
    while left > 0:
        rows.append({"id": len(rows), "name": rng.choice(_WORDS), "score": round(rng.random(), 4), "note": None})
        left -= len(json.dumps(rows[-1], ensure_ascii=False)) + 2
    return json.dumps({"path": "src/main.py", "content": content, "rows": rows}, ensure_ascii=False)


def pieces(text: str, seed: int = 0) -> list[str]:
    """A text cut as models send it: 1 to 7 characters, 4 on average."""
    rng = random.Random(_SEED + seed)
    cut: list[str] = []
    at = 0
    while at < len(text):
        step = rng.randint(1, 7)
        cut.append(text[at : at + step])
        at += step
    return cut


def chat(calls: Iterable[list[str]], *, name: str = "write") -> list[Event]:
    """The chunks of parallel calls, given as their deltas; the calls take turns."""
    calls = list(calls)
    openings = [
        {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": ""}}
        for index in range(len(calls))
    ]
    deltas = [{"index": index, "function": {"arguments": piece}} for index, piece in _in_turns(calls)]
    return [
        _chunk({"role": "assistant", "content": None}),
        *(_chunk({"tool_calls": [call]}) for call in openings + deltas),
        _chunk({}, "tool_calls"),
    ]


def answer(*texts: str) -> list[Event]:
    """The chunks of a text."""
    return [
        _chunk({"role": "assistant", "content": ""}),
        *(_chunk({"content": text}) for text in texts),
        _chunk({}, "stop"),
    ]


def sse(events: Iterable[Event]) -> bytes:
    """The events as a server sends them."""
    lines = (f"data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n" for event in events)
    return ("".join(lines) + "data: [DONE]\n\n").encode()


def blocks(data: bytes) -> list[bytes]:
    """The bytes as a socket hands them over."""
    return [data[at : at + _BLOCK] for at in range(0, len(data), _BLOCK)]


def _in_turns(calls: list[list[str]]) -> Iterator[tuple[int, str]]:
    for turn in zip_longest(*calls):
        yield from ((index, piece) for index, piece in enumerate(turn) if piece is not None)


def _chunk(delta: Event, finish: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
