"""What became of a call: exactly one of these, for every client call that the model began."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from toolrun._core.calls import ToolCall, ValidatedCall
    from toolrun._core.content import ContentPart
    from toolrun._core.records import Grade, RepairRecord

OutcomeStatus: TypeAlias = Literal[
    "succeeded",
    "failed",
    "refused",
    "denied",
    "deferred",
    "timed_out",
    "cancelled",
    "interrupted",
    "not_executed",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeBase:
    """The fields that every outcome has.

    Attributes:
        call: The call as the model wrote it.
        tool: The registered name that it ran under, or None if it never got that far.
        value: What the tool returned; None for every other status.
        error: What went wrong, for the developer; None if nothing did.
        code: A short stable word for why (`truncated`, `unknown_tool`, `schema`, `deadline` …).
        message: What the model is told; for a success, its value as text.
        parts: What the model is shown of a result that has images or files, piece by piece; `message` says the same
            in text alone.
        repairs: The audit records of every repair hook that answered.
        grade: How the arguments that ran relate to what the model wrote; None if none ran.
        arguments: The arguments that the tool got; None if it was not started.
        attempts: How often the tool was started.
        started: True if the tool may have had an effect.
        key: The idempotency key, the same on every attempt; `""` outside a runner.
    """

    status: ClassVar[OutcomeStatus]

    call: ToolCall
    tool: str | None = None
    value: object = None
    error: BaseException | None = None
    code: str | None = None
    message: str = ""
    parts: tuple[ContentPart, ...] = ()
    repairs: tuple[RepairRecord, ...] = ()
    grade: Grade | None = None
    arguments: dict[str, object] | None = None
    attempts: int = 0
    started: bool = False
    key: str = ""


OutcomeT = TypeVar("OutcomeT", bound=OutcomeBase)


def completed(
    outcome: OutcomeT,
    validated: ValidatedCall,
    message: str | None = None,
    parts: tuple[ContentPart, ...] | None = None,
) -> OutcomeT:
    """An outcome that an executor gave, with what the flow knows of the call: tool, arguments, grade and repairs.

    Args:
        outcome: As given; returned as it is if there is nothing to add.
        validated: The call that was run.
        message: What the model is told; None leaves it as it is.
        parts: What it is shown, piece by piece; None leaves it as it is.
    """
    if message is None:
        if outcome.arguments is validated.arguments and outcome.tool == validated.tool:
            return outcome
        message = outcome.message
    # Written out: `dataclasses.replace` takes twice as long, and this is done for every call.
    return type(outcome)(
        call=outcome.call,
        tool=validated.tool,
        value=outcome.value,
        error=outcome.error,
        code=outcome.code,
        message=message,
        parts=outcome.parts if parts is None else parts,
        repairs=validated.repairs,
        grade=validated.grade,
        arguments=validated.arguments,
        attempts=outcome.attempts,
        started=outcome.started,
        key=outcome.key,
    )


class Succeeded(OutcomeBase):
    """The tool returned `value`."""

    __slots__ = ()
    status: ClassVar[OutcomeStatus] = "succeeded"


class Failed(OutcomeBase):
    """The tool raised `error`, or its result could not be written down."""

    __slots__ = ()
    status: ClassVar[OutcomeStatus] = "failed"


class Refused(OutcomeBase):
    """The call itself is unfit: unfinished, not JSON, not the schema, unknown tool, identity."""

    __slots__ = ()
    status: ClassVar[OutcomeStatus] = "refused"


class Denied(OutcomeBase):
    """A person said no."""

    __slots__ = ()
    status: ClassVar[OutcomeStatus] = "denied"


class Deferred(OutcomeBase):
    """The answer comes later, from elsewhere."""

    __slots__ = ()
    status: ClassVar[OutcomeStatus] = "deferred"


class TimedOut(OutcomeBase):
    """The tool did not return before its deadline; it may still have had an effect."""

    __slots__ = ()
    status: ClassVar[OutcomeStatus] = "timed_out"


class Cancelled(OutcomeBase):
    """The run was cancelled before or while the tool ran; `started` tells which."""

    __slots__ = ()
    status: ClassVar[OutcomeStatus] = "cancelled"


class Interrupted(OutcomeBase):
    """The process ended while the tool ran; whether it had its effect is not known."""

    __slots__ = ()
    status: ClassVar[OutcomeStatus] = "interrupted"


class NotExecuted(OutcomeBase):
    """The call is fit, but policy says no: held, or over a limit."""

    __slots__ = ()
    status: ClassVar[OutcomeStatus] = "not_executed"


Outcome: TypeAlias = Succeeded | Failed | Refused | Denied | Deferred | TimedOut | Cancelled | Interrupted | NotExecuted
"""What became of a call: each client call gets exactly one."""
