"""The provider protocols that come with the library, by name.

A wire of your own is an instance of `toolrun.abc.Wire`, passed where a name would stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._core.exceptions import UnknownWire
from toolrun.wires.anthropic_messages import AnthropicMessages
from toolrun.wires.bedrock_converse import BedrockConverse
from toolrun.wires.bedrock_invoke import BedrockInvoke
from toolrun.wires.cohere_v2 import CohereV2
from toolrun.wires.gemini import Gemini
from toolrun.wires.mistral import Mistral
from toolrun.wires.ollama import Ollama
from toolrun.wires.openai_chat import OpenAIChat
from toolrun.wires.openai_responses import OpenAIResponses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolrun._core.seams import Wire

__all__ = [
    "WIRES",
    "AnthropicMessages",
    "BedrockConverse",
    "BedrockInvoke",
    "CohereV2",
    "Gemini",
    "Mistral",
    "Ollama",
    "OpenAIChat",
    "OpenAIResponses",
    "get_wire",
    "recognise",
]

WIRES: Final[dict[str, Wire]] = {
    wire.name: wire
    for wire in (
        Mistral(),  # before the wire that it resembles: it claims only what is unmistakably its own
        OpenAIChat(),
        OpenAIResponses(),
        AnthropicMessages(),
        Gemini(),
        BedrockConverse(),
        BedrockInvoke(),
        CohereV2(),
        Ollama(),
    )
}
"""The built-in wires, in the order in which `wire="auto"` asks them."""


def get_wire(wire: str | Wire) -> Wire:
    """Find a wire by name; an instance is returned as it is.

    Raises:
        UnknownWire: No built-in wire has that name.
    """
    if not isinstance(wire, str):
        return wire
    try:
        return WIRES[wire]
    except KeyError:
        raise UnknownWire(f"no wire named {wire!r}; known: {', '.join(WIRES)}, or 'auto'") from None


def recognise(event: Mapping[str, object]) -> Wire | None:
    """Tell which built-in wire a decoded event belongs to; None if none claims it."""
    return next((wire for wire in WIRES.values() if wire.recognises(event)), None)
