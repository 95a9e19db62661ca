"""How each provider writes a response: one module a protocol."""

from __future__ import annotations

from typing import Final

from toolrun._core.exceptions import UnknownWire
from toolrun._testing.providers import anthropic, chat, cohere, converse, gemini, ollama, responses
from toolrun._testing.providers._lines import Lines, Stream, Writer, Written

__all__ = ["WRITERS", "Lines", "Stream", "Writer", "Written", "writer_of"]

WRITERS: Final[dict[str, Writer]] = {
    "openai-chat": chat.OPENAI,
    "openai-responses": responses.WRITER,
    "anthropic-messages": anthropic.MESSAGES,
    "gemini": gemini.WRITER,
    "bedrock-converse": converse.WRITER,
    "bedrock-invoke": anthropic.INVOKE,
    "mistral": chat.MISTRAL,
    "cohere-v2": cohere.WRITER,
    "ollama": ollama.WRITER,
}


def writer_of(wire: str) -> Writer:
    """The writer of a wire.

    Raises:
        UnknownWire: There is no such built-in wire.
    """
    try:
        return WRITERS[wire]
    except KeyError:
        raise UnknownWire(f"nothing is known of the streams of {wire!r}; known: {', '.join(WRITERS)}") from None
