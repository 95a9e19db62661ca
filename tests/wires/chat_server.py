"""A provider on the loopback interface: it answers each request with the next reply, and keeps what was asked."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from toolrun._testing.framing import DONE, NDJSON, SSE, json_line
from toolrun._testing.framing import sse as sse_piece
from toolrun._testing.loopback import HttpReply, LoopbackServer, json_reply

if TYPE_CHECKING:
    from tests.streams.corpus import Recording

Json = dict[str, Any]

whole = json_reply


def sse(*events: Json, done: bool = False) -> HttpReply:
    """A stream of server-sent events, named where they have a type."""
    return HttpReply(pieces=[*map(sse_piece, events), *([DONE] if done else [])])


def ndjson(*events: Json) -> HttpReply:
    """A stream of JSON lines."""
    return HttpReply(pieces=[*map(json_line, events)], content_type=NDJSON)


def reply_of(recording: Recording) -> HttpReply:
    """What the provider sent when the stream was recorded."""
    return HttpReply(pieces=recording.frames, content_type=NDJSON if recording.wire == "ollama" else SSE)


class Provider(LoopbackServer):
    """Answers each POST with the next reply, whatever its path."""

    def __init__(self) -> None:
        super().__init__(lambda _request: self._replies.popleft())
        self._replies: deque[HttpReply] = deque()

    def will_answer(self, *replies: HttpReply) -> None:
        self._replies.extend(replies)
