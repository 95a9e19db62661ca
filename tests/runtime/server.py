"""A provider on the loopback interface that replays what a test gives it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from toolrun._testing.framing import encode
from toolrun._testing.loopback import HttpReply, LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolrun._core.records import JsonObject


def openai_sse(chunks: Iterable[JsonObject], **how: int | None) -> HttpReply:
    """Chunks as an OpenAI stream, with its terminator."""
    return HttpReply(pieces=encode(chunks, "openai-chat", terminated=True), **how)


def anthropic_sse(events: Iterable[JsonObject], **how: int | None) -> HttpReply:
    """Events as an Anthropic stream."""
    return HttpReply(pieces=encode(events, "anthropic-messages"), **how)


class ReplayServer(LoopbackServer):
    """Answers each POST with the next reply."""

    def __init__(self) -> None:
        self.replies: deque[HttpReply] = deque()
        super().__init__(lambda request: self.replies.popleft())

    def will_answer(self, *replies: HttpReply) -> None:
        self.replies.extend(replies)
