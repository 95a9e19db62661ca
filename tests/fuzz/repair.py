"""The target `repair`: an argument text made of a fuzzer's bytes, and what the built-in chain promises of any text."""

from __future__ import annotations

from typing import Final

from toolrun import Grade, Tool, repair_arguments
from toolrun._core.conservation import same
from toolrun._core.json_text import parse_object
from toolrun._core.lexemes import meanings

from .reader import Reader

_PIECES: Final = (
    "{", "}", "[", "]", ",", ":", '"', "'", "\\", " ", "\n", '"text"', '"tags"', '"limit"', '"open"', '"item"', '"x"', "1",
    "0", "-", ".", "e9", "+", "0x1f", "007", "1.50", "true", "True", "None", "null", "undefined", "NaN", "text", "limit",
    "low", "LOW", "//", "/*", "*/", "#", "```", "```json\n", "<think>", "</think>", "</parameter>", "<|call|>",
    '<parameter name="text">', "<text>", "</text>", '\\"', "\\n", "\\d", "\\u00e9", "\\ud83d", "\\u0", "\\x1b", "C:\\temp",
    "\u00a0", "\u200b", "\ufeff", "\u201c", "\u201d", "\u2019", "\uff1a", "\uff0c", "&quot;", "&amp;", "(", ")", "...", "=>",
    "\x00", "\ud83d", "\U0001f600", '{"text":"x"}', '{"text":"y"}', '"arguments":', '"name":"f"', "a, b", "it's",
)  # fmt: skip
_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "limit": {"type": "integer"},
        "open": {"type": ["boolean", "null"]},
        "level": {"enum": ["low", "high"]},
        "item": {"type": "object", "properties": {"text": {"type": "string"}, "limit": {"type": "number"}}},
    },
}
_REASONS: Final = ("tool_calls", None, "length", "stop")


def _nothing(**arguments: object) -> None:
    """Stand in for the tool."""


_TOOLS: Final = tuple(
    Tool.from_json_schema(name="f", input_schema={**_SCHEMA, "required": required}, handler=_nothing)
    for required in ([], ["text"])
)


def check(data: bytes) -> None:
    """Read a text, and hold the chain to its promises."""
    reader = Reader(data)
    tool, reason = reader.pick(_TOOLS), reader.pick(_REASONS)
    raw = _text(reader)
    found = repair_arguments(raw, tool, finish_reason=reason)
    assert (found.arguments is None) == (found.text is None) == (found.refusal is not None)
    if found.arguments is None or found.text is None:
        assert found.message.startswith("Not run: ")
        return
    assert reason != "length"
    again = repair_arguments(found.text, tool)
    assert (again.text, again.grade, again.edits) == (found.text, Grade.EXACT, ())
    assert same(again.arguments, found.arguments)
    assert found.arguments or found.grade is not Grade.LOSSLESS or not _said(raw), "no arguments out of something"
    if isinstance(parse_object(raw), dict):
        assert found.grade in (Grade.EXACT, Grade.SCHEMA_UNIQUE)
    assert _edited(raw, found.edits) == found.text or not raw.strip()


def _said(raw: str) -> list[object]:
    """The strings, numbers and words of a text, but for the name of a code fence, and unless some of it is thinking."""
    spoken = [value for kind, value in meanings(raw) if kind in ("text", "number", "literal") and value != "json"]
    return [] if "</think>" in raw else spoken


def _text(reader: Reader) -> str:
    """Pieces that a model could write, and some that it could not; or bytes as they are."""
    if reader.number(8) == 0:
        return reader.rest().decode(errors="replace")
    built: list[str] = []
    while reader and len(built) < 60:
        built.append(reader.pick(_PIECES))
    return "".join(built)


def _edited(raw: str, edits: tuple[object, ...]) -> str:
    built: list[str] = []
    place = 0
    for code, offset, before, after in edits:
        assert code
        assert offset >= place, "edits are in order, and do not overlap"
        assert raw[offset : offset + len(before)] == before
        built += (raw[place:offset], after)
        place = offset + len(before)
    return "".join((*built, raw[place:]))
