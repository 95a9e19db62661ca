"""Approval: somebody decides on a call that is fit, bound to the exact arguments that were validated."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from toolrun._core.calls import ToolCall
    from toolrun._core.records import Grade, JsonObject, RepairRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A call that is about to run.

    Attributes:
        call: The call as the model wrote it.
        tool: The registered name that it would run under.
        arguments: A copy of the arguments that it would run with.
        digest: SHA-256 of those arguments as they were validated, hexadecimal.
        key: The idempotency key of the call.
        grade: How the arguments relate to what the model wrote.
        repairs: The audit records of the repair hooks that answered.
        deps: What the caller passed as `deps=`.
    """

    call: ToolCall
    tool: str
    arguments: JsonObject
    digest: str
    key: str
    grade: Grade
    repairs: tuple[RepairRecord, ...] = ()
    deps: object = None


@dataclass(frozen=True, slots=True)
class Approve:
    """Run the call: with the arguments that were asked about, or with others, which are validated again."""

    arguments: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not run the call; the reason goes to the model."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Defer:
    """Nobody can say yet: the turn is pending until `Runner.resume` brings the answer."""


class Result(NamedTuple):
    """What came of a deferred call that was executed elsewhere.

    Args:
        value: What a function would have returned.
        error: What went wrong, for the model; None if nothing did.
    """

    value: object = None
    error: str | None = None


ApprovalDecision: TypeAlias = Approve | Deny | Defer
"""What an approver may answer."""

Answer: TypeAlias = Approve | Deny | Result
"""What `Runner.resume` brings to a deferred call."""


class Approver(Protocol):
    """Decides whether a call runs. Sync approvers run in a worker thread, and may wait for a person.

    An approver that raises, or answers anything else, has not approved: the call is denied.
    """

    def __call__(self, request: ApprovalRequest, /) -> ApprovalDecision | Awaitable[ApprovalDecision]:
        """Decide."""
        ...
