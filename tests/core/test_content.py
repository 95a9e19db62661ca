"""Images and files of a result, and what a model is shown of a long one."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from toolrun import File, Image
from toolrun._core import results

if TYPE_CHECKING:
    from toolrun._core.content import ContentPart

PNG = b"\x89PNG\r\n\x1a\nrest"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"GIF87a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"%PDF-1.7", "application/pdf"),
    ],
)
def test_the_first_bytes_tell_the_kind(data: bytes, media_type: str):
    """Unless the tool says otherwise."""
    assert File(data=data).media_type == media_type
    assert File(data=data, media_type="application/x-own").media_type == "application/x-own"


@pytest.mark.parametrize(
    "fields", [{}, {"data": PNG, "url": "https://example.com"}, {"data": b"RIFF\x00\x00\x00\x00WAVE"}], ids=repr
)
@pytest.mark.parametrize("kind", [Image, File])
def test_what_is_no_content(kind: type, fields: dict[str, object]):
    """Nothing, two things, or bytes that say nothing of themselves."""
    with pytest.raises(ValueError, match=f"^{kind.__name__}"):
        kind(**fields)


def test_a_repr_does_not_show_the_bytes():
    """It would fill a log."""
    image = Image(data=PNG * 1000)

    assert repr(image) == "Image(url='', media_type='image/png')"
    assert pickle.loads(pickle.dumps(image)) == image


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (Image(data=PNG), (Image(data=PNG),)),
        (PNG, (Image(data=PNG),)),
        (b"%PDF-1.7", (File(data=b"%PDF-1.7"),)),
        ([{"n": 1}, Image(data=PNG), "ok"], ('{"n":1}', Image(data=PNG), "ok")),
        ((File(url="https://example.com/a.pdf"),), (File(url="https://example.com/a.pdf"),)),
        (b"\x00\xff", ()),
        ("text", ()),
        ([1, "a"], ()),
        ([], ()),
    ],
    ids=repr,
)
def test_parts(value: object, parts: tuple[ContentPart, ...]):
    """An image or a file alone, or in a list; any other value is text."""
    assert results.value_parts(value) == parts


def test_a_piece_that_cannot_be_written():
    """As for any result."""
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        results.value_parts([Image(data=PNG), object()])


# -- long texts -----------------------------------------------------------------------------


def test_a_cut_text():
    """Head and tail, and between them what is missing; as long as the limit."""
    text = "".join(f"line {n}\n" for n in range(10_000))

    told = results.cut(text, 300)

    assert len(told) == 300
    head, notice, tail = told.partition("\n[… cut: the result has 98,890 characters, and at most 300 are shown. …]\n")
    assert notice
    assert text.startswith(head)
    assert text.endswith(tail)
    assert 0 <= len(head) - len(tail) <= 1


@pytest.mark.parametrize("size", [999, 1000, 1001])
def test_the_limit_is_what_is_still_told_whole(size: int):
    """Not one character earlier or later."""
    told = results.cut("x" * size, 1000)

    assert (told == "x" * size) is (size <= 1000)
    assert len(told) == min(size, 1000)


def test_a_reference():
    """The notice says where the whole is, and shortens what is shown."""
    told = results.cut("x" * 5000, 400, "/results/1.txt")

    assert "The whole is kept: /results/1.txt" in told
    assert len(told) == 400


@pytest.mark.parametrize("limit", range(200, 216))
def test_no_character_is_cut_in_two(limit: int):
    """Emoji and CJK count as the characters that they are."""
    told = results.cut("🌍漢" * 500, limit)

    told.encode()
    assert set(told) >= {"🌍", "漢"}
    assert "\ufffd" not in told
