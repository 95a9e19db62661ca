"""Framing: bytes or text in any chunking to decoded events.

Server-sent events (WHATWG HTML, section 9.2), newline-delimited JSON, and one JSON document are
told apart line by line, so a log that mixes them is read too. Nothing here raises.
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
_UNREADABLE: Final = object()

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
        self._data: list[bytes] = []
        self._data_line = 0
        self._event: str | None = None
        self._document: list[tuple[int, bytes]] = []
        self._line = 0
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[object]:
        """Take the next piece, split anywhere: inside a character, a line end or a field."""
        if b"\n" not in chunk and b"\r" not in chunk:
            self._pieces.append(chunk)
            return
        self._pieces.append(chunk)
        data = b"".join(self._pieces)
        held = b""
        if data.endswith(b"\r"):  # the \n of this line end may be in the next piece
            data, held = data[:-1], b"\r"
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        self._pieces = [lines.pop() + held]
        for line in lines:
            # Nearly every event is one line of data and a blank one: not asking for more halves the cost.
            if line[:6] == b"data: " and self._begun:
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
        for line in rest.rstrip(b"\r").split(b"\r") if rest else ():
            yield from self._take(line)
        for payload in self._dispatch():
            yield _as_last(payload, last=True)
        yield from self._end_document()

    def _take(self, line: bytes) -> Iterator[object]:
        self._line += 1
        if not self._begun:
            line = line.removeprefix(_BOM)
            self._begun = bool(line)
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            self._data_line = self._line
        elif not line:
            if self._data or self._event:
                yield from self._dispatch()
            if self._document:
                self._document.append((self._line, line))
        elif self._document:
            self._document.append((self._line, line))
        else:
            yield from self._other(line)

    def _other(self, line: bytes) -> Iterator[object]:
        name, colon, value = line.partition(b":")
        if name in _FIELDS:
            if name == b"event":
                self._event = value.removeprefix(b" ").decode(errors="replace")
            elif name == b"data":
                self._data.append(b"")
                self._data_line = self._line
        elif not name and colon:
            return  # a comment, often a keep-alive
        elif line.lstrip().startswith(_JSON_STARTS):
            payload = _payload(line, self._line, None)
            if _is_unreadable(payload):
                self._document.append((self._line, line))
            else:
                yield payload
        elif stripped := line.strip():
            text = stripped.decode(errors="replace")
            done = text == DONE
            yield Frame(DONE if done else None, self._line, None, None if done else text)

    def _dispatch(self) -> Iterator[object]:
        data, self._data = self._data, []
        event, self._event = self._event, None
        if data:
            yield _payload(b"\n".join(data) if len(data) > 1 else data[0], self._data_line, event)

    def _end_document(self) -> Iterator[object]:
        """Lines that did not parse one by one: one document over several lines, or broken lines."""
        lines, self._document = self._document, []
        if not lines:
            return
        whole = _payload(b"\n".join(line for _, line in lines), self._line, None)
        if not _is_unreadable(whole):
            yield whole
            return
        written = [(number, line) for number, line in lines if line.strip()]
        for number, line in written:
            yield _as_last(_payload(line, number, None), last=number == written[-1][0])


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
