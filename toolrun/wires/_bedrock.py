"""What both of Amazon Bedrock's wires need: binary data in either of its forms, and exceptions in the stream."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final

from toolrun._core.content import Image
from toolrun.wires._reading import error_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun._core.content import File
    from toolrun._core.records import JsonObject
    from toolrun._core.seams import Sink

_EXCEPTION: Final = "Exception"
_FORMATS: Final = {
    "image": {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"},
    "document": {
        "application/pdf": "pdf",
        "text/csv": "csv",
        "application/msword": "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
        "application/vnd.ms-excel": "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
        "text/html": "html",
        "text/plain": "txt",
        "text/markdown": "md",
    },
}
_NOT_IN_DOCUMENT_NAMES: Final = re.compile(r"[^a-zA-Z0-9()\[\]-]+")


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


def media_block(part: Image | File) -> JsonObject | None:
    """Write an image or a document; its bytes as they are, or where it is in S3."""
    kind = "image" if isinstance(part, Image) else "document"
    form = _FORMATS[kind].get(part.media_type)
    if form is None or not (part.data or part.url.startswith("s3://")):
        return None
    source: JsonObject = {"bytes": part.data} if part.data else {"s3Location": {"uri": part.url}}
    if isinstance(part, Image):
        return {kind: {"format": form, "source": source}}
    name = _NOT_IN_DOCUMENT_NAMES.sub(" ", part.name).strip()[:200] or "document"
    return {kind: {"format": form, "name": name, "source": source}}


def without_bytes(value: object) -> object:
    """The same with base64 text for bytes, as a request body in JSON wants it."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {key: without_bytes(item) for key, item in value.items()}
    return [without_bytes(item) for item in value] if isinstance(value, list) else value
