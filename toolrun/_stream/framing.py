"""Framing: bytes or text in any chunking to decoded events.

Server-sent events (WHATWG HTML, section 9.2), newline-delimited JSON, and one JSON document are
told apart line by line, so a log that mixes them is read too. Lines may lack their ends, as some clients give
them. Nothing here raises.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

import jiter

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOM: Final = b"\xef\xbb\xbf"
_FIELDS: Final = frozenset((b"data", b"event", b"id", b"retry"))
_JSON_STARTS: Final = (b"{", b"[", b'"')
_LINE_STARTS: Final = (b"data:", b"event:", b"id:", b":", *_JSON_STARTS)
_NO_PAYLOAD: Final = (b"event:", b"id:", b"retry:", b":")
_UNREADABLE: Final = object()

MAX_PAYLOAD_BYTES: Final = 64_000_000
"""One event. The longest text of a call that is read is 16 million characters, of up to four bytes each."""

_HEAD_BYTES: Final = 200

DONE: Final = "[DONE]"
"""The terminator of OpenAI-style streams; it is not JSON."""


class Frame(NamedTuple):
    """A payload about which more is to be said than its value; or what could not be decoded.

    `line` counts from 1 and is where the payload ends. `event` is the name on an SSE `event:` line.
    `unreadable` holds the payload's text if it is not JSON; `value` is None then. `last` is True for a payload
    at the very end, which may have been cut.
    """

    value: object
    line: int
    event: str | None = None
    unreadable: str | None = None
    last: bool = False


class Framer:
    """Fed with pieces of a byte stream; gives the payloads that are complete.

    A payload without a name is given as its decoded value; anything else as a `Frame`.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held = 0
        self._lines_may_lack_ends = True
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._data_line = 0
        self._event: str | None = None
        self._document: list[tuple[int, bytes]] = []
        self._document_bytes = 0
        self._line = 0
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[object]:
        """Take the next piece, split anywhere: inside a character, a line end or a field."""
        if b"\n" not in chunk and b"\r" not in chunk:
            if self._held and self._is_next_line(chunk):
                yield from self._end_line()
            self._hold(chunk)
            return
        if self._held > MAX_PAYLOAD_BYTES:
            chunk = _from_line_end(chunk)
            self._line += 1
            yield _overlong(b"".join(self._pieces), self._line)
            self._pieces = []
        self._held = 0
        self._lines_may_lack_ends = True
        self._pieces.append(chunk)
        data = b"".join(self._pieces)
        held = b""
        if data.endswith(b"\r"):  # the \n of this line end may be in the next piece
            data, held = data[:-1], b"\r"
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        self._hold(lines.pop() + held, anew=True)
        for line in lines:
            # Nearly every event is one line of data and a blank one: not asking for more halves the cost.
            if line[:6] == b"data: " and self._begun and not self._data:
                self._line += 1
                self._data.append(line[6:])
                self._data_line = self._line
            elif line or self._event or len(self._data) != 1:
                yield from self._take(line)
            else:
                self._line += 1
                yield _payload(self._data.pop(), self._data_line, None)

    def close(self) -> Iterator[object]:
        """Take what is left, as if a line end and a blank line followed."""
        rest = b"".join(self._pieces)
        self._pieces = []
        if self._held > MAX_PAYLOAD_BYTES:
            yield _overlong(rest, self._line + 1)
            rest = b""
        for line in rest.rstrip(b"\r").split(b"\r") if rest else ():
            yield from self._take(line)
        for payload in self._dispatch():
            yield _as_last(payload, last=True)
        yield from self._end_document()

    def _is_next_line(self, chunk: bytes) -> bool:
        """Tell whether a piece without a line end begins another line than what is held.

        HTTP clients give lines without their ends, too (`iter_lines`). A whole JSON value takes no more text, so
        what follows it is another line; a cut one goes on, whatever the piece begins with.
        """
        if not self._lines_may_lack_ends or not (chunk.startswith(_LINE_STARTS) or not chunk):
            return False
        held = b"".join(self._pieces)
        if held.endswith(b"\r"):
            return False  # it has its end
        if held.startswith(_NO_PAYLOAD):
            return chunk.startswith(b"data:")
        payload = held.removeprefix(_BOM).removeprefix(b"data:").strip()
        whole = payload == b"[DONE]" or (payload.endswith((b"}", b"]")) and _parse(payload) is not _UNREADABLE)
        # Asked in vain once, it is not asked again before a line end: hostile pieces must not make it slow.
        self._lines_may_lack_ends = whole or not chunk
        return whole

    def _end_line(self) -> Iterator[object]:
        line = b"".join(self._pieces)
        self._pieces, self._held = [], 0
        yield from self._take(line)
        if self._data:
            yield from self._dispatch()

    def _hold(self, piece: bytes, *, anew: bool = False) -> None:
        """Keep a piece of a line. Of a line that is too long only the head is kept, to be shown."""
        if anew:
            self._pieces.clear()
        self._held += len(piece)
        if self._held <= MAX_PAYLOAD_BYTES:
            self._pieces.append(piece)
        else:
            self._pieces = [(self._pieces or [piece])[0][:_HEAD_BYTES]]

    def _take(self, line: bytes) -> Iterator[object]:
        self._line += 1
        if not self._begun:
            line = line.removeprefix(_BOM)
            self._begun = bool(line)
        if line.startswith(b"data:"):
            self._add_data(line[6:] if line[5:6] == b" " else line[5:])
        elif not line:
            if self._data or self._event:
                yield from self._dispatch()
            if self._document:
                self._add_to_document(line)
        elif self._document:
            self._add_to_document(line)
        else:
            yield from self._other(line)

    def _other(self, line: bytes) -> Iterator[object]:
        name, colon, value = line.partition(b":")
        if name in _FIELDS:
            if name == b"event":
                self._event = value.removeprefix(b" ").decode(errors="replace")
            elif name == b"data":
                self._add_data(b"")
        elif not name and colon:
            return  # a comment, often a keep-alive
        elif line.lstrip().startswith(_JSON_STARTS):
            payload = _payload(line, self._line, None)
            if _is_unreadable(payload):
                self._add_to_document(line)
            else:
                yield payload
        elif stripped := line.strip():
            text = stripped.decode(errors="replace")
            done = text == DONE
            yield Frame(DONE if done else None, self._line, None, None if done else text)

    def _add_data(self, text: bytes) -> None:
        self._data_line = self._line
        self._data_bytes += len(text)
        if self._data_bytes <= MAX_PAYLOAD_BYTES or not self._data:
            self._data.append(text)

    def _add_to_document(self, line: bytes) -> None:
        self._document_bytes += len(line)
        if self._document_bytes <= MAX_PAYLOAD_BYTES or not self._document:
            self._document.append((self._line, line))

    def _dispatch(self) -> Iterator[object]:
        data, self._data = self._data, []
        event, self._event = self._event, None
        size, self._data_bytes = self._data_bytes, 0
        if size > MAX_PAYLOAD_BYTES:
            yield _overlong(data[0], self._data_line)
        elif data:
            yield _payload(b"\n".join(data) if len(data) > 1 else data[0], self._data_line, event)

    def _end_document(self) -> Iterator[object]:
        """Lines that did not parse one by one: one document over several lines, or broken lines."""
        lines, self._document = self._document, []
        if not lines:
            return
        if self._document_bytes > MAX_PAYLOAD_BYTES:
            yield _overlong(lines[0][1], lines[0][0])
            return
        whole = _payload(b"\n".join(line for _, line in lines), self._line, None)
        if not _is_unreadable(whole):
            yield whole
            return
        written = [(number, line) for number, line in lines if line.strip()]
        for number, line in written:
            yield _as_last(_payload(line, number, None), last=number == written[-1][0])


def _overlong(head: bytes, line: int) -> Frame:
    text = head.removeprefix(b"data:").lstrip()[:_HEAD_BYTES].decode(errors="replace")
    return Frame(None, line, None, f"{text}… (an event of more than {MAX_PAYLOAD_BYTES} bytes)")


def _from_line_end(chunk: bytes) -> bytes:
    """What is left of a piece after its first line end; a line feed that belongs to it goes too."""
    first = min(place for end in (b"\n", b"\r") if (place := chunk.find(end)) >= 0)
    return chunk[first + (2 if chunk[first : first + 2] == b"\r\n" else 1) :]


def decode_payload(text: str | bytes) -> object | None:
    """Decode one JSON payload; None if it is not JSON (a payload `null` says nothing either)."""
    value = _parse(text.encode(errors="surrogatepass") if isinstance(text, str) else text)
    return None if value is _UNREADABLE else value


def _payload(data: bytes, line: int, event: str | None) -> object:
    try:
        value = jiter.from_json(data)
    except ValueError:
        return _odd_payload(data, line, event)
    return value if event is None and type(value) is dict else Frame(value, line, event)


def _odd_payload(data: bytes, line: int, event: str | None) -> Frame:
    if data.strip() == b"[DONE]":
        return Frame(DONE, line, event)
    value = _parse(data)
    if value is _UNREADABLE:
        return Frame(None, line, event, data.decode(errors="replace"))
    return Frame(value, line, event)


def _is_unreadable(payload: object) -> bool:
    return isinstance(payload, Frame) and payload.unreadable is not None


def _as_last(payload: object, *, last: bool) -> object:
    return payload._replace(last=last) if isinstance(payload, Frame) else payload


def _parse(payload: bytes) -> object:
    try:
        return jiter.from_json(payload)
    except ValueError:
        pass
    # jiter refuses halves of surrogate pairs; providers split text between them, and the assembler joins them.
    try:
        return json.loads(payload.decode(errors="surrogatepass"))
    except (ValueError, RecursionError):
        return _UNREADABLE
