"""A provider on the loopback interface: it answers each request with the next reply, and keeps what was asked."""

from __future__ import annotations

import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from tests.streams.corpus import Recording

Json = dict[str, Any]


class Reply(NamedTuple):
    """One response: its body in pieces, each sent as a chunk of its own; `cut` leaves the end of the body out."""

    pieces: Sequence[bytes]
    content_type: str = "text/event-stream"
    cut: bool = False


def sse(*events: Json, done: bool = False) -> Reply:
    """A stream of server-sent events, named where they have a type."""
    pieces = []
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        pieces.append(f"{name}data: {json.dumps(event)}\n\n".encode())
    return Reply([*pieces, *([b"data: [DONE]\n\n"] if done else [])])


def ndjson(*events: Json) -> Reply:
    """A stream of JSON lines."""
    return Reply([json.dumps(event).encode() + b"\n" for event in events], "application/x-ndjson")


def whole(response: Json) -> Reply:
    """A response that is not streamed."""
    return Reply([json.dumps(response).encode()], "application/json")


def reply_of(recording: Recording) -> Reply:
    """What the provider sent when the stream was recorded."""
    kind = "application/x-ndjson" if recording.wire == "ollama" else "text/event-stream"
    return Reply(recording.frames, kind)


class Provider(ThreadingHTTPServer):
    """Answers each POST with the next reply, whatever its path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Json] = []
        self._replies: deque[Reply] = deque()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def will_answer(self, *replies: Reply) -> None:
        self._replies.extend(replies)

    def answer(self, request: Json) -> Reply:
        self.requests.append(request)
        return self._replies.popleft()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Provider
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = self.server.answer(request)
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", reply.content_type)
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        for piece in reply.pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if not reply.cut:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""
