"""What both of Amazon Bedrock's wires need: binary data in either of its forms, and exceptions in the stream."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final

from toolrun.wires._reading import error_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun._core.seams import Sink

_EXCEPTION: Final = "Exception"


def is_exception(name: object) -> bool:
    """Tell whether an event with this name is an exception: `throttlingException` and its kind."""
    return isinstance(name, str) and name.endswith(_EXCEPTION)


def report_exception(sink: Sink, name: object, body: object) -> bool:
    """Tell the sink of an exception in the stream; False if the event is none."""
    if is_exception(name):
        sink.error(f"{name}: {error_message(body)}")
        return True
    return False


def blob(value: object) -> bytes | None:
    """Read binary data: bytes from boto3, base64 text from a recording; None if it is neither."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    try:
        return b64decode(value, validate=True) if isinstance(value, str) else None
    except ValueError:
        return None


def join_blobs(pieces: Sequence[object]) -> object:
    """Join binary data that came in pieces, in the form in which it came."""
    if len(pieces) == 1:
        return pieces[0]
    whole = b"".join(blob(piece) or b"" for piece in pieces)
    return b64encode(whole).decode() if isinstance(pieces[0], str) else whole
