"""`JsonRepair`: one proposal for a text that is no JSON, if nothing speaks against it."""

from __future__ import annotations

import json
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from json_repair import repair_json

from toolrun import Fault, Grade, Repaired, RepairRequest
from toolrun_json_repair._bounded import call_within
from toolrun_json_repair._guards import (
    has_an_odd_escape,
    joined,
    keeps_characters,
    keeps_keys,
    lacks_a_value,
    may_be_cut,
)

_NOTED_STEPS: Final = 8
"""Kinds of steps that a note lists; hostile texts have thousands of steps, of few kinds."""


class JsonRepair:
    """Ask `json_repair` how to read arguments that are not JSON, and pass on what it says if nothing speaks against it.

    The answer is graded `lossy`: where strings and objects end is guessed. A tool runs such arguments only with
    `repair="lossy"`, and never if it is destructive. An answer has every character of the text but space, quotes,
    brackets, commas and colons, in the same order, and every key as a key; and the text seems to be whole. The runner
    validates it by the tool's schema. Calls that the model did not finish are not looked at, whatever this hook is
    bound to.

    Args:
        max_characters: Longer texts are passed over.
        seconds: How long `json_repair` may think about a call. If that is not enough, the call's record says so.

    Raises:
        ValueError: A limit is not above 0.

    Examples:
        >>> from toolrun import Runner, ToolRegistry
        >>> from toolrun.repairs import lossless
        >>> registry = ToolRegistry()
        >>> @registry.tool(repair="lossy")
        ... def note(text: str) -> str:
        ...     return text
        >>> function = {"name": "note", "arguments": '{"text": back at ten}'}
        >>> call = {"id": "c1", "type": "function", "function": function}
        >>> response = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
        >>> with Runner(registry, repairs=[*lossless(), JsonRepair()]) as runner:
        ...     (outcome,) = runner.run_sync(response).outcomes
        >>> outcome.value, outcome.grade.value
        ('back at ten', 'lossy')
    """

    def __init__(self, *, max_characters: int = 20_000, seconds: float = 0.5) -> None:
        """See the class."""
        if not (max_characters > 0 and seconds > 0):
            raise ValueError(f"limits must be above 0, not {max_characters!r} and {seconds!r}")
        self._max_characters = max_characters
        self._seconds = seconds

    def __call__(self, request: RepairRequest) -> Repaired | None:
        """Answer a request; None if there is nothing to propose.

        Raises:
            TimeoutError: `json_repair` took too long; the runner records it and asks the next hook.
        """
        text = request.text
        if request.fault is not Fault.PARSE or len(text) > self._max_characters:
            return None
        if may_be_cut(text) or lacks_a_value(text) or has_an_odd_escape(text):
            return None
        left = self._seconds if request.seconds_left is None else min(self._seconds, request.seconds_left)
        proposal, steps = _ask(text, left)
        if not isinstance(proposal, dict) or not proposal:
            return None
        written = joined(json.dumps(proposal, ensure_ascii=False, separators=(",", ":")))
        if not (keeps_keys(text, proposal) and keeps_characters(text, written)):
            return None
        return Repaired(text=written, grade=Grade.LOSSY, note=_note(steps))


def _ask(text: str, seconds: float) -> tuple[object, list[dict[str, str]]]:
    """What `json_repair` makes of a text, and the steps that it took; None if it gives up by itself."""
    ask = partial(repair_json, text, return_objects=True, skip_json_loads=True, logging=True)
    try:
        answer: Any = call_within(seconds, ask)  # a pair, which its overloads do not say of `partial`
    except (ValueError, RecursionError):  # too deep
        return None, []
    proposal, steps = answer
    return proposal, steps


def _note(steps: list[dict[str, str]]) -> str:
    kinds = list(dict.fromkeys(step["text"] for step in steps))
    more = [f"and {len(kinds) - _NOTED_STEPS} more"] if len(kinds) > _NOTED_STEPS else []
    return f"json_repair {version('json-repair')}: {'; '.join(kinds[:_NOTED_STEPS] + more) or 'no step noted'}"
