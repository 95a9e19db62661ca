"""`--batch`: many cases in one file, a line of JSON for each of them and a line for what comes of it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, get_args

from toolrun import Diagnostic, StreamFinalizer
from toolrun._stream import EndOfStream
from toolrun.cli._exits import BAD_INPUT, SUCCEEDED, InputError, complain
from toolrun.cli._progress import ProgressBar, output_goes_elsewhere
from toolrun.cli._records import call_record
from toolrun.cli._sources import open_sources, size_of
from toolrun.cli._text import json_line
from toolrun.cli._wire import wire_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolrun._core.records import JsonObject

_ENDS: Final = get_args(EndOfStream)


def run_batch(path: str, answer: Callable[[JsonObject], JsonObject]) -> int:
    """Answer every case of a file, in order; each answer is printed before the next case is read.

    Args:
        path: JSON objects, one a line; `-` for standard input. Blank lines are passed over.
        answer: Gives the answer to a case; the `id` of the case, or the number of its line, is put before it.

    Returns:
        The exit code: bad input if any line could not be answered. The others are answered all the same.

    Raises:
        InputError: The file cannot be read.
    """
    [source] = open_sources([path])
    code = SUCCEEDED
    with ProgressBar(source.name, size_of(source.path), shown=output_goes_elsewhere()) as bar:
        for number, text in _lines(bar.follow(source)):
            try:
                case = _read(text)
                answered = answer(case)
            except InputError as error:
                complain(InputError(str(error.args[0]), place=source.name, line=number))
                code = BAD_INPUT
                continue
            print(json_line({"id": case.get("id", number), **answered}), flush=True)
    if source.error is not None:
        source.check(recognised=True, diagnostics=())
    return code


def finalize_case(case: JsonObject, wire: str = "auto", end: str = "auto") -> JsonObject:
    """The calls of a case: `events` (decoded events, or the raw text of a stream), `wire` and `end`.

    Raises:
        InputError: A field is missing or no use, or there is no such wire.
    """
    events = case.get("events")
    if not isinstance(events, list | str):
        raise InputError("`events` must be a list of events, or the text of a stream")
    told: Any = case.get("end", end)
    if told not in _ENDS:
        raise InputError(f"`end` must be one of {', '.join(_ENDS)}, not {told!r}")
    name: Any = case.get("wire", wire)
    finalizer = StreamFinalizer(wire_named(name) if isinstance(name, str) else _no_wire(name), deltas=False)
    seen = [event for item in ([events] if isinstance(events, str) else events) for event in finalizer.feed(item)]
    seen += finalizer.close(told)
    return {
        "wire": finalizer.wire and finalizer.wire.name,
        "calls": [call_record(call) for call in finalizer.calls],
        "executable": [call.name for call in finalizer.calls if call.executable],
        "diagnostics": [
            {"code": event.code, "message": event.message, "position": event.position}
            for event in seen
            if isinstance(event, Diagnostic)
        ],
    }


def _no_wire(name: object) -> str:
    raise InputError(f"`wire` must be a name, not {name!r}")


def _lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    pieces: list[bytes] = []
    number = 0
    with suppress(OSError):  # the source keeps it
        for block in blocks:
            pieces.append(block)
            if b"\n" not in block:
                continue
            *lines, rest = b"".join(pieces).split(b"\n")
            pieces = [rest]
            for line in lines:
                number += 1
                if line.strip():
                    yield number, line
    if (rest := b"".join(pieces)).strip():
        yield number + 1, rest


def _read(text: bytes) -> JsonObject:
    try:
        case: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from None
    if not isinstance(case, dict):
        raise InputError(f"a case is an object, not {type(case).__name__}")
    return case
