"""The table while arguments grow."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from toolrun import StreamFinalizer
from toolrun.cli import _live
from toolrun.cli._rows import Rows


def shown(*pieces: str, width: int) -> list[str]:
    """The lines of the table when these pieces of the arguments have come."""
    finalizer = StreamFinalizer("openai-chat", previews=True)
    rows = Rows()
    for number, text in enumerate(pieces):
        named = {"id": "call_1", "function": {"name": "write", "arguments": text}}
        call = {"index": 0, **(named if number == 0 else {"function": {"arguments": text}})}
        for event in finalizer.feed({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}):
            rows.apply(event)
    output = io.StringIO()
    Console(file=output, width=width, color_system=None).print(_live._table(list(rows), width))
    return [line.rstrip() for line in output.getvalue().splitlines()]


def test_the_text_that_grows_is_shown_by_its_end() -> None:
    story = "".join(f"{number} " for number in range(1000))

    lines = shown('{"path": "story.txt", "content": "', story, width=80)

    assert lines[1:] == [
        " 0  write                 streaming     content: 92 993 994 995 996 997 998 999",
        "    call_1                              3,924 characters",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"path": "story.txt"', '{"path": "story.txt"'),
        ('{"count": 1', '{"count": 1'),
        ('["', '["'),
        ('{"rows": [{"name": "a\\n', "rows.0.name: a\\n"),
        ('{"text": "' + "長" * 50, "text: " + "長" * 16),
        ('{"text": "' + "\x9b" * 50, "text: 009b" + "\\u009b" * 5),
    ],
)
def test_what_is_shown(text: str, line: str) -> None:
    """No text grows: the arguments themselves. One does: its path and its end, as wide as there is room."""
    assert shown(text, width=80)[1] == f" 0  write                 streaming     {line}"
