"""Content, both ways: what a server answered as a result, and an outcome as what a server answers."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from toolrun import File, Image, Outcome, Succeeded

if TYPE_CHECKING:
    from collections.abc import Sequence

Part: TypeAlias = str | Image | File

_UNKNOWN_TYPE: Final = "application/octet-stream"

_UNSAID: Final = {
    "approval": "Not run: the call needs an approval, and there is nobody here to ask.",
    "declared_only": "Not run: the tool is executed elsewhere.",
}
"""What deferred calls are answered with: their answer would come later, which the protocol has no place for."""


def read_result(result: CallToolResult) -> object:
    """What a remote tool returns, from what its server answered.

    Args:
        result: The answer; one that is no error.

    Returns:
        The structured content, if the text says the same in JSON or nothing else was said. Otherwise what was said: one
        text, or a list of texts, `Image`s and `File`s. None if there is nothing.
    """
    structured = result.structured_content
    if structured is not None and (not result.content or _says_the_same(result.content, structured)):
        return structured
    parts = [part_of(block) for block in result.content]
    if all(isinstance(part, str) for part in parts):
        return "\n".join(map(str, parts)) if parts else None
    return parts


def error_text(result: CallToolResult) -> str:
    """What a server says of a failure, as text."""
    parts = map(part_of, result.content)
    said = "\n".join(part if isinstance(part, str) else f"[{part.media_type}]" for part in parts)
    return said or "The tool failed, and its server did not say why."


def part_of(block: ContentBlock) -> Part:
    """One block as a piece of a result. What cannot be read is described."""
    match block:
        case TextContent():
            return block.text
        case ImageContent():
            return _media(Image, block.data, block.mime_type)
        case AudioContent():
            return _media(File, block.data, block.mime_type)
        case ResourceLink():
            return _describe_link(block)
        case EmbeddedResource(resource=resource):
            return _embedded(resource)
        case _:
            assert_never(block)


def result_of(outcome: Outcome) -> CallToolResult:
    """What the client of a served tool is answered."""
    if not isinstance(outcome, Succeeded):
        said = outcome.message or _UNSAID.get(outcome.code or "", f"The call has no result ({outcome.status}).")
        return CallToolResult(content=[TextContent(text=said)], is_error=True)
    if outcome.parts:
        return CallToolResult(content=[block_of(part, number) for number, part in enumerate(outcome.parts, 1)])
    return CallToolResult(content=[TextContent(text=outcome.message)], structured_content=_structured(outcome))


def block_of(part: Part, number: int) -> ContentBlock:
    """A piece of a result as a block; `number` names a file that has no name."""
    if isinstance(part, str):
        return TextContent(text=part)
    name = (part.name if isinstance(part, File) else "") or f"{type(part).__name__.lower()}-{number}"
    if part.url:
        return ResourceLink(name=name, uri=part.url, mime_type=part.media_type or None)
    data = base64.b64encode(part.data).decode()
    if isinstance(part, Image):
        return ImageContent(data=data, mime_type=part.media_type)
    if part.media_type.startswith("audio/"):
        return AudioContent(data=data, mime_type=part.media_type)
    uri = name if "://" in name else f"file:///{name}"
    return EmbeddedResource(resource=BlobResourceContents(uri=uri, mime_type=part.media_type, blob=data))


def _says_the_same(content: Sequence[ContentBlock], structured: object) -> bool:
    if len(content) != 1 or not isinstance(content[0], TextContent):
        return False
    try:
        return bool(json.loads(content[0].text) == structured)
    except (ValueError, RecursionError):
        return False


def _structured(outcome: Outcome) -> dict[str, object] | None:
    """The result as an object, if it is one and the model is shown all of it."""
    if isinstance(outcome.value, str):
        return None
    try:
        value = json.loads(outcome.message)
    except ValueError:  # it was cut
        return None
    return value if isinstance(value, dict) else None


def _media(kind: type[Image | File], encoded: str, media_type: str, *, name: str = "") -> Part:
    named = {"name": name} if name and kind is File else {}
    try:
        return kind(data=base64.b64decode(encoded, validate=True), media_type=media_type, **named)
    except (binascii.Error, ValueError):  # not base64, or nothing
        return f"[{media_type}: the server sent no data that can be read]"


def _embedded(resource: TextResourceContents | BlobResourceContents) -> Part:
    if isinstance(resource, TextResourceContents):
        return f"{resource.uri}:\n{resource.text}"
    media_type = resource.mime_type or _UNKNOWN_TYPE
    kind = Image if media_type.startswith("image/") else File
    return _media(kind, resource.blob, media_type, name=resource.uri)


def _describe_link(link: ResourceLink) -> str:
    # In words, not as a `File` with a URL: providers would fetch whatever address a server names.
    about = ", ".join(filter(None, (link.mime_type, link.description)))
    return f"[resource {link.name!r}: {link.uri}{f' ({about})' if about else ''}]"
