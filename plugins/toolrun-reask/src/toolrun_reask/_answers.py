"""What came back: a text, the arguments as a dict, or a response of any SDK, streamed or whole. One tool's arguments, or a reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from toolrun import Outcome, Refused, Runner, Succeeded, Tool, ToolRegistry, UnknownWire, repair_arguments


class Reading(NamedTuple):
    """What an answer comes to.

    Attributes:
        arguments: JSON text that fits the tool, or None.
        message: Why there are none, for the model.
        raw: What was written in their place; None if nothing was, or not to its end.
    """

    arguments: str | None
    message: str = ""
    raw: str | None = None


async def read_answer(answer: object, tool: Tool) -> Reading:
    """Find the arguments of one tool in an answer.

    A text is them, a mapping that fits the tool too. Anything else is a response: exactly one call of the tool counts, or
    if there is no call, the text. What the runner would not run (a cut response, another tool, two calls) is not taken.

    Raises:
        TypeError: It is no answer of any form.
        StreamInterrupted: A stream raised before its end.
        UnknownWire: It is of no known provider.
    """
    if isinstance(answer, str):
        return _from_text(answer, tool, "stop")
    as_arguments = _from_mapping(answer, tool) if isinstance(answer, Mapping) else None
    if as_arguments is not None and as_arguments.arguments is not None:
        return as_arguments
    try:
        turn = await Runner(ToolRegistry([tool])).run(answer)
    except UnknownWire:
        if as_arguments is None:
            raise
        return as_arguments
    if turn.outcomes:
        return _from_outcomes(turn.outcomes, tool)
    if not turn.response.ended:
        return Reading(None, "The answer broke off before its end. Answer again.")
    return _from_text(turn.text, tool, turn.finish_reason)


def _from_text(text: str, tool: Tool, finish_reason: str | None) -> Reading:
    if not text.strip():
        return Reading(None, "The answer was empty.")
    found = repair_arguments(text, tool, finish_reason=finish_reason)
    return Reading(found.text, found.message, None if found.refusal == "truncated" else text)


def _from_mapping(arguments: Mapping[str, object], tool: Tool) -> Reading | None:
    try:
        text = json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return _from_text(text, tool, "stop")


def _from_outcomes(outcomes: tuple[Outcome, ...], tool: Tool) -> Reading:
    if len(outcomes) > 1:
        return Reading(None, f"There were {len(outcomes)} calls. Call {tool.name} exactly once.")
    (outcome,) = outcomes
    if isinstance(outcome, Succeeded):
        return Reading(json.dumps(outcome.arguments, ensure_ascii=False))
    cut = not isinstance(outcome, Refused) or outcome.call.status == "incomplete"
    return Reading(None, outcome.message, None if cut else outcome.call.raw_arguments)
