"""Responses of OpenAI and Anthropic, from calls written as `(id, name, pieces of the arguments)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from toolrun.testing import ScriptedCall, ScriptedResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    Event: TypeAlias = dict[str, object]
    Call: TypeAlias = tuple[str, str, Iterable[str]]


def scripted(calls: Iterable[Call], text: str | None, finish: str | None, **more: object) -> ScriptedResponse:
    """What both providers say; pieces stay pieces."""
    written = [ScriptedCall(name, list(pieces), call_id) for call_id, name, pieces in calls]
    return ScriptedResponse(text=text or "", calls=written, finish=finish, **more)


def openai_chunks(*calls: Call, text: str = "", finish: str | None = "tool_calls") -> list[Event]:
    """The chunks of a streamed chat completion without usage; `finish=None` leaves the finish reason out."""
    return scripted(calls, text, finish, usage=None).events("openai-chat")


def chunk(delta: Event, finish: str | None = None) -> Event:
    """One OpenAI chunk."""
    (first, *_) = openai_chunks(finish=None)
    return {**first, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def openai_completion(*calls: Call, text: str | None = None, finish: str = "tool_calls") -> Event:
    """A whole chat completion."""
    return scripted(calls, text, finish).whole("openai-chat")


def response(*calls: tuple[str, str], finish: str = "tool_calls") -> Event:
    """A whole chat completion with calls written as `(name, arguments)`; their ids are c0, c1 …."""
    return openai_completion(
        *((f"c{number}", name, [arguments]) for number, (name, arguments) in enumerate(calls)), finish=finish
    )


def anthropic_events(*calls: Call, text: str = "", stop: str | None = "tool_use") -> list[Event]:
    """The events of a streamed message; `stop=None` leaves the end out."""
    return scripted(calls, text, stop).events("anthropic-messages")


def anthropic_message(*calls: tuple[str, str, Event], text: str = "", stop: str = "tool_use") -> Event:
    """A whole message; the arguments are objects here, as they are on this wire."""
    written = [ScriptedCall(name, given, call_id) for call_id, name, given in calls]
    return ScriptedResponse(text=text, calls=written, finish=stop).whole("anthropic-messages")
