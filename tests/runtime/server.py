"""A provider on the loopback interface: it replays scripted responses and keeps the requests."""

from __future__ import annotations

import json
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from socket import SHUT_RDWR
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

_PATIENCE = 10.0
"""Seconds after which a held response gives up, so that a broken test ends."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One response: pieces of a body, and what goes wrong on the way.

    Attributes:
        pieces: Sent one by one, each as a chunk of its own.
        content_type: The header.
        drop_after: Break the connection after that many pieces, without an end.
        hold_before: Wait for the server's `release` before that piece, counted from 0.
    """

    pieces: Sequence[bytes]
    content_type: str = "text/event-stream"
    drop_after: int | None = None
    hold_before: int | None = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a client sent."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, object]


def openai_sse(chunks: Iterable[object], **how: int | None) -> Reply:
    """Chunks as an OpenAI stream, with its terminator."""
    pieces = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    return Reply(pieces=[*pieces, b"data: [DONE]\n\n"], **how)


def anthropic_sse(events: Iterable[Mapping[str, object]], **how: int | None) -> Reply:
    """Events as an Anthropic stream."""
    return Reply(pieces=[f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events], **how)


def whole(response: object) -> Reply:
    """One response that is not streamed."""
    return Reply(pieces=[json.dumps(response).encode()], content_type="application/json")


class ReplayServer(ThreadingMixIn, TCPServer):
    """Answers each POST with the next reply, whatever its path.

    Attributes:
        requests: What was asked, in order.
        held: Set when a response has come to the place where it is held.
        release: Set it to let held responses go on.
        gone: Set when a client was gone before its response was over.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Request] = []
        self.replies: deque[Reply] = deque()
        self.held = threading.Event()
        self.release = threading.Event()
        self.gone = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def will_answer(self, *replies: Reply) -> None:
        self.replies.extend(replies)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release.set()
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: ReplayServer
    protocol_version = "HTTP/1.1"
    timeout: ClassVar[float] = _PATIENCE

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append(Request(path=self.path, headers=dict(self.headers), body=json.loads(body)))
        self._send(self.server.replies.popleft())

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""

    def _send(self, reply: Reply) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", reply.content_type)
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for number, piece in enumerate(reply.pieces):
                if number == reply.drop_after:
                    break
                if number == reply.hold_before:
                    self.server.held.set()
                    self.server.release.wait(_PATIENCE)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            else:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.server.gone.set()
        with suppress(OSError):
            self.connection.shutdown(SHUT_RDWR)
