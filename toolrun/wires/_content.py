"""Results with images and files, for wires that have blocks for them."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, TypeAlias

from toolrun._core.content import File, Image, describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolrun._core.records import JsonObject
    from toolrun._core.seams import ToolResult

Encode: TypeAlias = "Callable[[Image | File], JsonObject | None]"
"""Writes one image or file as the wire's block; None if the wire has none for it."""


def content_blocks(result: ToolResult, text_block: Callable[[str], JsonObject], encode: Encode) -> list[JsonObject]:
    """Write every piece of a result as a block, in order; what has no block is described in one of text."""
    return [
        text_block(part) if isinstance(part, str) else encode(part) or text_block(describe(part))
        for part in result.parts or (result.text,)
        if part or not result.parts
    ]


def beside(result: ToolResult, encode: Encode) -> tuple[str, list[JsonObject]]:
    """Write the text of a result, and beside it the blocks of what is not text and has one."""
    if not result.parts:
        return result.text, []
    written = [(part, None if isinstance(part, str) else encode(part)) for part in result.parts]
    texts = [part if isinstance(part, str) else describe(part) for part, block in written if block is None]
    return "\n".join(texts), [block for _, block in written if block is not None]


def base64_of(part: Image | File) -> str:
    """The bytes as base64 text."""
    return b64encode(part.data).decode()


def url_of(part: Image | File) -> str:
    """Where it is, or all of it as a data URL."""
    return part.url or f"data:{part.media_type};base64,{base64_of(part)}"
