"""Texts and bytes in pieces."""

from __future__ import annotations

from random import Random
from typing import TypeVar

_T = TypeVar("_T", str, bytes)

_LONGEST = 12
"""The longest random piece of a text, in characters; models write tokens."""


def split_text(text: str, split: int | Random | None) -> list[str]:
    """The pieces of a text: of that many characters, of random lengths, or the whole; none of an empty one."""
    if split is None:
        return [text] if text else []
    return _cut(text, split, _LONGEST)


def chunked(data: bytes, size: int | Random, *, most: int = 64) -> list[bytes]:
    r"""Cut the bytes of a stream where the network might: anywhere, in the middle of a character too.

    Args:
        data: The body of a response.
        size: How long the pieces are, in bytes; or what decides on it, piece by piece.
        most: The longest piece that a `Random` may choose.

    Returns:
        The pieces, in order; none is empty.

    Raises:
        ValueError: `size` is not positive.

    Examples:
        >>> from toolrun.testing import chunked
        >>> chunked("Zoë".encode(), 3)
        [b'Zo\xc3', b'\xab']
    """
    return _cut(data, size, most)


def _cut(whole: _T, size: int | Random, most: int) -> list[_T]:
    if isinstance(size, int) and size < 1:
        raise ValueError(f"pieces have at least one character or byte, not {size}")
    pieces: list[_T] = []
    start = 0
    while start < len(whole):
        end = start + (size if isinstance(size, int) else size.randint(1, most))
        pieces.append(whole[start:end])
        start = end
    return pieces
