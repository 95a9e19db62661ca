"""Events as the bytes of an HTTP response."""

from __future__ import annotations

import base64
import json
import struct
from typing import TYPE_CHECKING, Final
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolrun._core.records import JsonObject

SSE: Final = "text/event-stream"
NDJSON: Final = "application/x-ndjson"
EVENT_STREAM: Final = "application/vnd.amazon.eventstream"

DONE: Final = b"data: [DONE]\n\n"
_SAY_DONE: Final = frozenset(("openai-chat", "mistral"))


def encode(events: Iterable[JsonObject], wire: str, *, terminated: bool = False) -> list[bytes]:
    """Write the events of a wire down as its provider sends them, one piece an event.

    Args:
        events: Decoded events.
        wire: The name of a built-in wire.
        terminated: Whether the terminator follows, where it is no event.
    """
    frame = _FRAMES[content_type(wire)]
    return [*map(frame, events), *([DONE] if terminated and wire in _SAY_DONE else [])]


def content_type(wire: str) -> str:
    """The media type of a wire's streams."""
    return _TYPES.get(wire, SSE)


def sse(event: JsonObject) -> bytes:
    """A server-sent event, named where the event has a type."""
    kind = event.get("type")
    name = f"event: {kind}\n" if isinstance(kind, str) else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def json_line(event: JsonObject) -> bytes:
    """A line of JSON."""
    return json.dumps(event).encode() + b"\n"


def event_stream(event: JsonObject) -> bytes:
    """A message of Amazon's event stream. The event's only key is its type; bytes are sent as base64."""
    ((name, body),) = event.items()
    kind = "exception" if name.endswith("Exception") else "event"
    headers = {":message-type": kind, f":{kind}-type": name, ":content-type": "application/json"}
    return _message(json.dumps(body, default=lambda value: base64.b64encode(value).decode()).encode(), headers)


def _message(payload: bytes, headers: dict[str, str]) -> bytes:
    """Lengths and their checksum, the headers (7 says that a value is a text), the payload, a checksum of it all."""
    packed = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(packed) + len(payload), len(packed))
    message = prelude + struct.pack("!I", crc32(prelude)) + packed + payload
    return message + struct.pack("!I", crc32(message))


_TYPES: Final = {"ollama": NDJSON, "bedrock-converse": EVENT_STREAM, "bedrock-invoke": EVENT_STREAM}
_FRAMES: Final[dict[str, Callable[[JsonObject], bytes]]] = {SSE: sse, NDJSON: json_line, EVENT_STREAM: event_stream}
