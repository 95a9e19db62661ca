"""What a result may have besides text: images and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image for the model: return it from a tool, alone or in a list with texts.

    Wires without images in results tell the model in words that there is one.

    Args:
        data: The bytes of a PNG, JPEG, GIF or WebP file.
        url: Where it is, instead of `data`; for wires that take URLs.
        media_type: By default read from the first bytes of `data`.

    Raises:
        ValueError: Not exactly one of `data` and `url`, or bytes of no known kind without a `media_type`.

    Examples:
        >>> Image(url="https://example.com/cat.png")
        Image(url='https://example.com/cat.png', media_type='')
    """

    data: bytes = field(default=b"", repr=False)
    url: str = ""
    media_type: str = ""

    def __post_init__(self) -> None:
        """Find the media type."""
        object.__setattr__(self, "media_type", _checked(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file for the model, such as a PDF: return it from a tool, alone or in a list with texts.

    Wires without files in results tell the model in words that there is one.

    Args:
        data: Its bytes.
        url: Where it is, instead of `data`; for wires that take URLs.
        media_type: By default read from the first bytes of `data`.
        name: What the model is told it is called.

    Raises:
        ValueError: Not exactly one of `data` and `url`, or bytes of no known kind without a `media_type`.

    Examples:
        >>> File(data=b"%PDF-1.7", name="bill.pdf").media_type
        'application/pdf'
    """

    data: bytes = field(default=b"", repr=False)
    url: str = ""
    media_type: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        """Find the media type."""
        object.__setattr__(self, "media_type", _checked(self))


ContentPart: TypeAlias = str | Image | File
"""One piece of what a model is shown of a result."""


def media_type_of(data: bytes) -> str:
    """Read the kind of file off its first bytes; `""` for one that is not known."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _MAGIC if data.startswith(magic)), "")


def content_of(data: bytes) -> Image | File | None:
    """What bytes are to a model: an image or a PDF by their first bytes, else nothing."""
    media_type = media_type_of(data)
    if not media_type:
        return None
    return (Image if media_type.startswith("image/") else File)(data=data, media_type=media_type)


def describe(part: Image | File) -> str:
    """Say in words what cannot be shown."""
    what = "image" if isinstance(part, Image) else "file"
    name = f" {part.name!r}" if isinstance(part, File) and part.name else ""
    where = f"at {part.url}" if part.url else f"{len(part.data):,} bytes"
    kind = f"{part.media_type}, " if part.media_type else ""
    return f"[{what}{name}: {kind}{where}; it cannot be shown here]"


def _checked(part: Image | File) -> str:
    if bool(part.data) == bool(part.url):
        raise ValueError(f"{type(part).__name__} needs data or url, and not both")
    media_type = part.media_type or media_type_of(part.data)
    if part.data and not media_type:
        raise ValueError(f"{type(part).__name__}: its first bytes tell no media type; pass media_type=")
    return media_type
