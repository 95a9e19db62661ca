"""Whether messages answer what a model asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolrun.history import check
from toolrun.wires._messages import read_message

if TYPE_CHECKING:
    from collections.abc import Sequence


def unanswered(messages: Sequence[object], wire: str, asked: Sequence[str | None]) -> list[str]:
    """What a provider would find wrong with the messages, a line each; empty if they can be sent.

    Args:
        messages: As they would be sent.
        wire: The name of a built-in wire.
        asked: The ids of the calls that must be in them with a result; None for a call without one.
    """
    faults = [
        f"- message {issue.index}: {issue.message} ({_named(issue.code, issue.call_id)})"
        for issue in check(messages, wire)
    ]
    pieces = [piece for message in messages for piece in read_message(wire, message).pieces]
    for kind, word in (("call", "call"), ("result", "result of the call")):
        found = [piece.id for piece in pieces if piece.kind == kind]
        missing = [call_id for call_id in asked if call_id is not None and call_id not in found]
        faults += [f"- the {word} {call_id} is missing" for call_id in missing]
        if not missing and len(found) < len(asked):
            faults.append(f"- {len(asked)} calls were made, and the messages have {len(found)} of kind {kind!r}")
    return faults


def _named(code: str, call_id: str | None) -> str:
    return code if call_id is None else f"{code}, {call_id}"
