"""Stream files and standard input, and when one of them is no usable input at all."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from toolrun.cli._exits import InputError, os_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import BufferedReader

    from toolrun import Diagnostic, ToolCall
    from toolrun.abc import Response, Wire

BLOCK_BYTES: Final = 64 * 1024
STDIN: Final = "-"

_HEAD_BYTES: Final = 1024 * 1024
_UNKNOWN: Final = ("lost_event", "undecodable_event", "unknown_wire", "stream_error")
_OWN: Final = ("orphan_delta", "failed_generation")


class Source:
    """One stream, read in blocks as they come; iterate over it once.

    Attributes:
        name: For messages.
        error: What reading it raised.
        last_line: The number of the last line that is not blank; 0 as long as there is none.
    """

    def __init__(self, path: str) -> None:
        """Take a path, or `-` for standard input."""
        self.path = path
        self.name = "standard input" if path == STDIN else path
        self.error: OSError | None = None
        self.last_line = 0
        self._lines = 0
        self._ends_in_return = False
        self._head = bytearray()
        self._bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        """Give the blocks; never more than what has come, so that a slow producer is followed live.

        Raises:
            OSError: It cannot be read; kept as `error`.
        """
        try:
            if self.path == STDIN:
                yield from self._read(_standard_input())
            else:
                with open(self.path, "rb", buffering=0) as file:  # noqa: PTH123  # Path.open is the same
                    yield from self._read(file.read)
        except OSError as error:
            self.error = error
            raise

    def _read(self, read: Callable[[int], bytes | None]) -> Iterator[bytes]:
        while block := read(BLOCK_BYTES):
            self._count(block)
            yield block

    def _count(self, block: bytes) -> None:
        """Count lines as the framing does: a line feed, a carriage return or both in this order end one."""
        if len(self._head) < _HEAD_BYTES:
            self._head += block
        self._bytes += len(block)
        split = self._ends_in_return and block.startswith(b"\n")
        if written := len(block.rstrip()):
            self.last_line = self._lines + _line_ends(block[:written]) - split + 1
        self._lines += _line_ends(block) - split
        self._ends_in_return = block.endswith(b"\r")

    def check(self, *, recognised: bool, diagnostics: Sequence[Diagnostic]) -> None:
        """Decide, after the last block, whether this was a stream.

        A last line that is cut is no bad input: the stream was cut, and its calls are incomplete. Lines that are
        no events and do not begin like one (of a log, say) are none either.

        Args:
            recognised: Something in it was of the wire; see `recognised`.
            diagnostics: What the finalizer found odd.

        Raises:
            InputError: It cannot be read, is empty, holds no event of the wire, or a line before the last one is
                a broken event.
        """
        if self.error is not None:
            raise InputError(os_reason(self.error), place=self.name)
        if self.last_line == 0:
            raise InputError("no events: it is empty", place=self.name)
        if not recognised:
            raise self._unknown(diagnostics)
        for odd in diagnostics:
            if odd.code == "lost_event" and odd.line is not None:
                raise InputError(odd.message, place=self.name, line=odd.line)

    def _unknown(self, diagnostics: Sequence[Diagnostic]) -> InputError:
        if place := self._break_in_document():
            line, reason = place
            return InputError(f"no events: not JSON: {reason}", place=self.name, line=line)
        odd = next((odd for odd in diagnostics if odd.code in _UNKNOWN), None)
        if odd is None:
            return InputError("no events of a provider that is known", place=self.name)
        return InputError(f"no events: {odd.message}", place=self.name, line=odd.line)

    def _break_in_document(self) -> tuple[int, str] | None:
        """Where one JSON document over several lines breaks; line by line, it would break in the first."""
        text = self._head.decode(errors="replace").lstrip("\ufeff")
        if self._bytes > len(self._head) or not text.lstrip().startswith(("{", "[")):
            return None
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            return None if error.msg == "Extra data" else (error.lineno, error.msg)
        except RecursionError:
            return 1, "too deep"
        return None


def open_sources(paths: Sequence[str]) -> list[Source]:
    """Make the sources, and see to it before anything runs that each of them is there.

    Raises:
        InputError: One is missing, a directory or not readable, or standard input is named twice.
    """
    if paths.count(STDIN) > 1:
        raise InputError("standard input (-) can be read once only")
    for path in paths:
        if path != STDIN:
            _check_readable(path)
    return [Source(path) for path in paths]


def size_of(path: str) -> int | None:
    """The size of a file in bytes; None if nobody knows it before it is read: standard input, or a pipe."""
    try:
        found = os.stat(path)  # noqa: PTH116  # as below
    except (OSError, ValueError):
        return None
    return found.st_size if path != STDIN and stat.S_ISREG(found.st_mode) else None


def _check_readable(path: str) -> None:
    # Asked for, not opened: a pipe that is opened twice has lost its writer.
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  # a path with a NUL in it must not raise elsewhere
    except OSError as error:
        raise InputError(os_reason(error), place=path) from None
    except ValueError as error:
        raise InputError(str(error), place=path) from None
    if stat.S_ISDIR(mode):
        raise InputError("is a directory; name the files in it", place=path)
    if not os.access(path, os.R_OK):
        raise InputError("permission denied", place=path)


def _standard_input() -> Callable[[int], bytes]:
    if sys.stdin is None:  # closed by the shell: `<&-`
        raise OSError(0, "it is closed")
    return cast("BufferedReader", sys.stdin.buffer).read1  # gives what there is, and does not wait for more


def _line_ends(data: bytes) -> int:
    ends = data.count(b"\n")
    return ends + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else ends


def recognised(
    *, wire: Wire | None, named: bool, calls: Sequence[ToolCall], response: Response, diagnostics: Sequence[Diagnostic]
) -> bool:
    """Tell whether anything in a stream was of its wire.

    A wire that was found has been recognised; one that was named reads whatever it is given, so what came of it is
    looked at.
    """
    if wire is None or not named:
        return wire is not None
    told = calls or response.parts or response.ended or response.usage or response.id
    return bool(told) or any(odd.code in _OWN for odd in diagnostics)


def read_file(path: str) -> bytes:
    """A whole file.

    Raises:
        InputError: It cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(os_reason(error), place=path) from None
    except ValueError as error:  # a NUL in the path
        raise InputError(str(error), place=path) from None
