"""Finishing: which evidence makes a call ok, malformed or incomplete. The whole decision is `TABLE`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from toolrun._core.calls import CallStatus

MissingFinish: TypeAlias = Literal["incomplete", "infer"]


class Evidence(Enum):
    """How the stream ended, as far as one choice is concerned."""

    FINISHED = auto()
    """The finish reason says tool calls, stop, or a known synonym."""
    TERMINATED = auto()
    """The protocol's terminator came, but no finish reason."""
    HELD = auto()
    """Length, content filter, refusal, or a reason that nobody knows."""
    BROKEN = auto()
    """The finish reason says that the response is broken or paused."""
    ERROR = auto()
    """The provider reported an error, or the stream raised, before a finish."""
    CUT = auto()
    """The stream just ended."""

    def verdict(self, text: Text) -> Verdict:
        """Look the cell up."""
        return TABLE[self][text]


class Text(Enum):
    """What the argument text is."""

    BLANK = auto()
    OBJECT = auto()
    OTHER = auto()


class Verdict(NamedTuple):
    """A cell of the table; `code` None means that there is nothing to add."""

    status: CallStatus
    code: str | None = None


_OK: Final = Verdict(CallStatus.OK)
_INFERRED: Final = Verdict(CallStatus.OK, "finish_inferred")
_HELD: Final = Verdict(CallStatus.OK, "held")
_MALFORMED: Final = Verdict(CallStatus.PARSE_ERROR)
_TRUNCATED: Final = Verdict(CallStatus.INCOMPLETE, "truncated")
_BROKEN: Final = Verdict(CallStatus.INCOMPLETE, "broken_finish")
_STREAM_ERROR: Final = Verdict(CallStatus.INCOMPLETE, "stream_error")
_NO_FINISH: Final = Verdict(CallStatus.INCOMPLETE, "no_finish")

TABLE: Final[dict[Evidence, dict[Text, Verdict]]] = {
    Evidence.FINISHED: {Text.BLANK: _OK, Text.OBJECT: _OK, Text.OTHER: _MALFORMED},
    Evidence.TERMINATED: {Text.BLANK: _INFERRED, Text.OBJECT: _INFERRED, Text.OTHER: _MALFORMED},
    Evidence.HELD: {Text.BLANK: _TRUNCATED, Text.OBJECT: _HELD, Text.OTHER: _TRUNCATED},
    Evidence.BROKEN: dict.fromkeys(Text, _BROKEN),
    Evidence.ERROR: dict.fromkeys(Text, _STREAM_ERROR),
    Evidence.CUT: dict.fromkeys(Text, _NO_FINISH),
}

_FINISHED_REASONS: Final = (
    "tool_calls", "tool_call", "tool_use", "tools", "function_call", "function_calls", "stop", "end_turn",
    "stop_sequence", "eos", "eos_token", "end", "complete", "completed", "done", "finished",
)  # fmt: skip
_HELD_REASONS: Final = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "incomplete": "length",
    "continuation": "length",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "safety": "content_filter",
    **dict.fromkeys(
        (
            "recitation",
            "blocklist",
            "prohibited_content",
            "spii",
            "language",
            "model_armor",
            "image_safety",
            "image_prohibited_content",
            "image_recitation",
            "error_toxic",
        ),
        "content_filter",
    ),
    "guardrail_intervened": "content_filter",
    "refusal": "refusal",
}
_BROKEN_REASONS: Final = (
    "error", "failed", "failure", "cancelled", "canceled", "abort", "aborted", "network_error", "pause_turn",
    "malformed_function_call", "malformed_tool_use", "malformed_model_output", "malformed_response",
    "missing_thought_signature", "unexpected_tool_call", "insufficient_system_resource", "timeout", "error_limit",
    "user_cancel",
)  # fmt: skip

REASONS: Final[dict[str, Evidence]] = {
    **dict.fromkeys(_FINISHED_REASONS, Evidence.FINISHED),
    **dict.fromkeys(_HELD_REASONS, Evidence.HELD),
    **dict.fromkeys(_BROKEN_REASONS, Evidence.BROKEN),
}
"""Every finish reason that is known, in lower case, and what it is evidence of."""

SAYS_CALLS: Final = frozenset(
    (
        "tool_calls", "tool_call", "tool_use", "tools", "function_call", "function_calls",
        "malformed_function_call", "malformed_tool_use", "unexpected_tool_call",
    )
)  # fmt: skip
"""Finish reasons that tell of at least one call, good or bad."""

# Reasons repeat and disagree (a gateway's `stop` after the provider's `length`): the worst one counts.
_SEVERITY: Final = {Evidence.FINISHED: 0, Evidence.HELD: 1, Evidence.BROKEN: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishPolicy:
    """What to make of a finish that does not say plainly that the calls are whole.

    Args:
        missing_finish: `"incomplete"` (default) runs nothing when the stream just ends. `"infer"` treats
            a bare end and an unknown reason like a terminator, for providers that never send either.
        run_held: Families of finish reasons whose whole calls run all the same: `"length"`,
            `"content_filter"`, `"refusal"`, or an unknown reason as it was sent, in any case.

    Raises:
        ValueError: `missing_finish` is neither.
    """

    missing_finish: MissingFinish = "incomplete"
    run_held: frozenset[str] | set[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse a misspelt choice: it must not pass for the other one."""
        if self.missing_finish not in get_args(MissingFinish):
            raise ValueError(f"missing_finish must be one of {get_args(MissingFinish)}, not {self.missing_finish!r}")

    def runs(self, verdict: Verdict, reason: str | None) -> bool:
        """Tell whether a call with this verdict may run."""
        if verdict.status is not CallStatus.OK:
            return False
        return verdict.code != "held" or held_family(reason) in map(held_family, self.run_held)


def evidence(
    policy: FinishPolicy, *, reason: str | None, terminated: bool, failed: bool, cut: bool = False
) -> Evidence:
    """Sum up how a choice ended.

    Args:
        policy: Decides on what is missing or unknown.
        reason: The finish reason that counts, as sent, or None.
        terminated: The protocol's terminator was seen, or the user says that the end was normal.
        failed: The provider reported an error or the stream raised, and no finish had come before; or an event
            could not be read, so that a piece of any call may be missing.
        cut: The call is not whole by the wire's own structure, or another response began before its finish.
    """
    if cut:
        return Evidence.CUT
    if failed:
        return Evidence.ERROR
    if reason is not None:
        unknown = Evidence.TERMINATED if policy.missing_finish == "infer" else Evidence.HELD
        return REASONS.get(normalise(reason), unknown)
    if terminated or policy.missing_finish == "infer":
        return Evidence.TERMINATED
    return Evidence.CUT


def says_whole(reason: str | None) -> bool:
    """Tell whether a finish reason says that what came before it is whole."""
    return reason is not None and REASONS.get(normalise(reason)) is Evidence.FINISHED


def worse(current: str | None, new: str) -> str:
    """Of two finish reasons for one choice, keep the one that lets less run; the first of equals."""
    if current is None:
        return new
    ranks = [_SEVERITY.get(REASONS.get(normalise(reason), Evidence.HELD), 1) for reason in (current, new)]
    return new if ranks[1] > ranks[0] else current


def held_family(reason: str | None) -> str:
    """The name under which `run_held` knows a reason."""
    normal = normalise(reason or "")
    return _HELD_REASONS.get(normal, normal)


def normalise(reason: str) -> str:
    """Fold case and separators: providers write `STOP`, `tool-calls` and `tool_calls` alike."""
    return reason.strip().lower().replace("-", "_").replace(" ", "_")
