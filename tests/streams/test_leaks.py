"""Text that looks like a call is told, and stays text."""

from __future__ import annotations

import pytest

from toolrun import Diagnostic, StreamFinalizer
from toolrun._core.leaks import MARKERS, leaked_call


def chunk(text: str | None, finish: str | None = None) -> dict[str, object]:
    """A chunk with text of the answer."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


@pytest.mark.parametrize("marker", MARKERS)
def test_every_marker_is_told_however_the_text_is_split(marker: str) -> None:
    """One diagnostic, with the marker that came first; no call."""
    finalizer = StreamFinalizer("openai-chat")
    for character in f"Let me look. {marker}get_weather":
        finalizer.feed(chunk(character))
    finalizer.feed(chunk(None, "stop"))
    [odd] = [event for event in finalizer.close() if isinstance(event, Diagnostic)]
    assert (odd.code, odd.position) == ("leaked_call", None)
    assert repr(marker) in odd.message
    assert finalizer.calls == ()


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
        ' \n{"name": "get_weather", "parameters": {}}\n',
    ],
)
def test_an_answer_that_is_a_call_written_as_an_object_is_told(text: str) -> None:
    """Small models do this when they are given tools as text."""
    assert leaked_call(text) == '{"name": "get_weather", ...}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It is 4 degrees in Oslo.",
        '{"name": "Oslo", "degrees": 4}',
        'The object {"name": "x", "arguments": {}} is a call.',
        '{"name": "x", "arguments": {}',
        "a <tool> that is called",
    ],
)
def test_other_text_is_not_told(text: str) -> None:
    """Objects in an answer are data."""
    assert leaked_call(text) is None


def test_reasoning_is_not_looked_at() -> None:
    """Models think about calls in the notation of calls."""
    finalizer = StreamFinalizer("openai-chat")
    finalizer.feed({"choices": [{"index": 0, "delta": {"reasoning_content": "<tool_call>"}, "finish_reason": "stop"}]})
    assert [event for event in finalizer.close() if isinstance(event, Diagnostic)] == []
