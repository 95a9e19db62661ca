"""`Progress`: how far a call is, in the words of the protocol."""

from __future__ import annotations

from typing import NamedTuple


class Progress(NamedTuple):
    """How far a call is, as MCP has it.

    A `ProgressReported` event of a remote tool has one as its `value`. A tool that is served may give one to
    `ctx.progress`.

    Attributes:
        progress: Grows with each report.
        total: What it grows to; None if that is not known.
        message: What is being done, in words.
    """

    progress: float
    total: float | None = None
    message: str | None = None


def next_progress(value: object, reported: int) -> Progress:
    """Say in the words of the protocol what a tool told.

    Args:
        value: What it gave to `ctx.progress`: a `Progress` and a number are taken as they are, of anything else the
            text is the message.
        reported: How many reports of the call there were before.
    """
    if isinstance(value, Progress):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Progress(value)
    return Progress(reported + 1, message=str(value))
