"""Responses with calls written as `(name, arguments)`; their ids are c0, c1 …."""

from __future__ import annotations

from typing import Any

from toolrun.testing import ScriptedCall, ScriptedResponse


def response(*calls: tuple[str, str], finish: str = "tool_calls") -> dict[str, Any]:
    """A whole chat completion."""
    return _scripted(calls, finish).whole("openai-chat")


def blocks(*calls: tuple[str, str]) -> list[dict[str, Any]]:
    """The events of a streamed message, in which each call but the last is proven whole by the next."""
    return _scripted(calls, "tool_use").events("anthropic-messages")


def _scripted(calls: tuple[tuple[str, str], ...], finish: str) -> ScriptedResponse:
    written = [ScriptedCall(name, [arguments], f"c{place}") for place, (name, arguments) in enumerate(calls)]
    return ScriptedResponse(calls=written, finish=finish)
