"""A server on the loopback interface: it answers each POST with what a function says, and keeps what was asked."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socket import SHUT_RDWR
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, ClassVar, Final, Self, cast

from toolrun._testing.framing import SSE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from toolrun._core.records import JsonObject

JSON: Final = "application/json"

_PATIENCE: Final = 10.0
"""Seconds after which a held response gives up, so that a broken test ends."""

_POLL: Final = 0.01
"""Seconds within which the server notices that it is to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """One response: pieces of a body, and what goes wrong on the way.

    Attributes:
        pieces: Sent one by one.
        content_type: The header.
        status: The HTTP status.
        headers: More headers.
        drop_after: Break the connection after that many pieces, without an end.
        hold_before: Wait for the server's `release` before that piece, counted from 0.
    """

    pieces: Sequence[bytes]
    content_type: str = SSE
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drop_after: int | None = None
    hold_before: int | None = None


def json_reply(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpReply:
    """One JSON document."""
    return HttpReply(pieces=[json.dumps(body).encode()], content_type=JSON, status=status, headers=headers or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """What a client sent."""

    path: str
    headers: Mapping[str, str]
    body: JsonObject


class LoopbackServer(ThreadingMixIn, TCPServer):
    """Answers each POST, whatever its path, in a thread of its own. Enter it to start it, leave it to stop it.

    Args:
        answer: Says what a request is answered with.

    Attributes:
        requests: What was asked, in order.
        held: Set when a response has come to the place where it is held.
        release: Set it to let held responses go on.
        gone: Set when a client was gone before its response was over.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, answer: Callable[[HttpRequest], HttpReply]) -> None:
        """See the class."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.requests: list[HttpRequest] = []
        self.held = threading.Event()
        self.release = threading.Event()
        self.gone = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(_POLL,), daemon=True)

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        """Start it."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop it."""
        self.release.set()
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout: ClassVar[float | None] = _PATIENCE

    def do_POST(self) -> None:  # the base class looks for this name
        server = cast("LoopbackServer", self.server)
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        request = HttpRequest(path=self.path, headers=dict(self.headers), body=body)
        server.requests.append(request)
        self._send(server, server.answer(request))

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""

    def _send(self, server: LoopbackServer, reply: HttpReply) -> None:
        self.close_connection = True
        self.send_response(reply.status)
        # With a length, no client waits for an end that a broken connection never sends, nor leaves a socket behind.
        headers = {"content-type": reply.content_type, "content-length": f"{sum(map(len, reply.pieces))}"}
        for name, value in (*headers.items(), *reply.headers.items(), ("connection", "close")):
            self.send_header(name, value)
        self.end_headers()
        try:
            for number, piece in enumerate(reply.pieces):
                if number == reply.drop_after:
                    break
                if number == reply.hold_before:
                    server.held.set()
                    server.release.wait(_PATIENCE)
                self.wfile.write(piece)
        except OSError:
            server.gone.set()
        with suppress(OSError):
            self.connection.shutdown(SHUT_RDWR)
