"""Both event loops, and a provider on the loopback interface."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


class Reply(NamedTuple):
    """A whole body."""

    body: bytes
    content_type: str


class Provider(ThreadingHTTPServer):
    """Answers each POST with the next reply, whatever its path, and keeps what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self.replies: deque[Reply] = deque()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def will_answer(self, *responses: object) -> None:
        """Answer with JSON documents."""
        self.replies.extend(Reply(json.dumps(response).encode(), "application/json") for response in responses)

    def will_stream(self, *events: object) -> None:
        """Answer with server-sent events."""
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.replies.append(Reply(lines.encode(), "text/event-stream"))


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        self.server.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        reply = self.server.replies.popleft()
        self.send_response(200)
        self.send_header("content-type", reply.content_type)
        self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
