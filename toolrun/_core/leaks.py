"""Text that looks like a call that the provider's server did not recognise as one.

A model writes its calls as text, and the server turns them into calls. Where the two disagree (another
template, a cut tag, a parser that gave up), the call arrives as text of the answer, and nothing runs.
"""

from __future__ import annotations

from typing import Final

from toolrun._core.json_text import parse_object

MARKERS: Final = (
    "<tool_call>",  # Hermes, Qwen, GLM
    "<function=",  # Llama 3, Qwen Coder
    "<function_calls>",
    "<function_call>",
    "<invoke",  # Anthropic's own notation
    "<minimax:tool_call>",
    "[TOOL_CALLS]",  # Mistral
    "<|tool_call>",  # Gemma
    "<|tool_call|>",  # Granite, Phi
    "<|tool_call_begin|>",  # Kimi
    "<|tool_calls_section_begin|>",
    "<\uff5ctool\u2581call\u2581begin\uff5c>",  # DeepSeek
    "<\uff5ctool\u2581calls\u2581begin\uff5c>",
    "<\uff5cDSML\uff5c",
    "<|python_tag|>",  # Llama 3.1
    "<|channel|>commentary to=functions.",  # the harmony format
    "<|START_ACTION|>",  # Command
)
"""What models' templates put before a call. None of them is text that a reader is meant to see."""

_ARGUMENTS: Final = ("arguments", "parameters", "args", "input")


def leaked_call(text: str) -> str | None:
    """Find the first sign of a call in a text.

    Args:
        text: The whole text of an answer.

    Returns:
        The marker, the name in an object that is all of the text, or None. A text that speaks about calls may look
        like one: it is a sign, not a proof.
    """
    found = [(place, marker) for marker in MARKERS if (place := text.find(marker)) >= 0]
    if found:
        return min(found)[1]
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return None
    told = parse_object(stripped)
    if isinstance(told, dict) and isinstance(told.get("name"), str) and any(key in told for key in _ARGUMENTS):
        return f'{{"name": "{told["name"]}", ...}}'
    return None
