"""A provider on the loopback interface, so that examples run with the SDKs as they are written."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

CALL = ("get_weather", ['{"city": "Os', "lo, Norw", 'ay"}'])
ANSWER = "The tool says: "


def chat_events(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The Chat Completions stream: a call of the weather tool, then an answer that repeats its result."""
    results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    if results:
        deltas = [{"role": "assistant", "content": ANSWER}, {"content": results[-1]}, {}]
    else:
        name, pieces = CALL
        first = {"index": 0, "id": "call_9f", "type": "function", "function": {"name": name, "arguments": ""}}
        deltas = [
            {"role": "assistant", "content": None, "tool_calls": [first]},
            *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces),
            {},
        ]
    finishes: list[str | None] = [None] * (len(deltas) - 1)
    finishes.append("stop" if results else "tool_calls")
    return [
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": request["model"],
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        for delta, finish in zip(deltas, finishes, strict=True)
    ]


def messages_events(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The same conversation as an Anthropic Messages stream."""
    last = request["messages"][-1]["content"]
    results = [block["content"] for block in last if block["type"] == "tool_result"] if isinstance(last, list) else []
    if results:
        block: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": ANSWER}, {"type": "text_delta", "text": results[-1]}]
    else:
        block = {"type": "tool_use", "id": "toolu_9f", "name": CALL[0], "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in CALL[1]]
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn" if results else "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 20},
        },
        {"type": "message_stop"},
    ]


class _Provider(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.endswith("/chat/completions"):
            lines = [f"data: {json.dumps(event)}\n\n" for event in chat_events(request)] + ["data: [DONE]\n\n"]
        else:
            lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in messages_events(request)]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for line in lines:
            self.wfile.write(line.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


@pytest.fixture(scope="session")
def provider_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Provider) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def provider(provider_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point both SDKs at the local provider, the way their users would: by environment variables."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider_url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "no-key-needed")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider_url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "no-key-needed")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
