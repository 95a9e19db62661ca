"""The event union: what user interfaces, logs and journals listen to.

For each call exactly one `CallStarted`, its `CallDelta`s and one `CallFinalized`, in that order,
dropped and nameless calls included, with a `CallPreview` after a delta if previews are wanted; then its `RepairAnswered`s, an
`ApprovalRequested` and `ApprovalAnswered` if it needs approval, `AttemptStarted`s, `ProgressReported`s and `AttemptEnded`s,
and one `CallCompleted`. `position` ties the events of a call together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from toolrun._core.approval import Answer, ApprovalRequest, Defer
    from toolrun._core.calls import ToolCall
    from toolrun._core.outcomes import Outcome
    from toolrun._core.preview import Path, Preview
    from toolrun._core.records import JsonObject, RepairRecord


TextKind: TypeAlias = Literal["text", "reasoning", "refusal"]
"""The answer itself, thinking about it, or declining it."""


@dataclass(slots=True)
class CallStarted:
    """The first sign of a call. Name and id are what is known so far; `CallFinalized` has the last word."""

    position: int
    id: str
    name: str | None
    choice: int = 0
    provider_executed: bool = False


@dataclass(slots=True)
class CallDelta:
    """Argument text, in order; a lone high surrogate waits for its other half."""

    position: int
    text: str


class FieldSet(NamedTuple):
    """A value is there: a whole scalar, an empty object or list that may be filled, or `""` that may be added to."""

    path: Path
    value: str | int | float | bool | dict[str, object] | list[object] | None


class FieldAppended(NamedTuple):
    """Text was added to the string at a path."""

    path: Path
    text: str


FieldChange: TypeAlias = FieldSet | FieldAppended
"""Applied in order, changes make the preview; one that sets `()` begins anew."""


@dataclass(slots=True)
class CallPreview:
    """What the last piece of argument text changed, and all that there is to show. Never run anything on it."""

    position: int
    changes: tuple[FieldChange, ...]
    preview: Preview


@dataclass(slots=True)
class ArgumentsReplaced:
    """The wire's own final copy of the arguments differs from the deltas and won."""

    position: int
    before: str
    after: str


@dataclass(slots=True)
class CallFinalized:
    """The call is complete, malformed or cut: `call.status` says which. Nothing ran yet."""

    position: int
    call: ToolCall


@dataclass(slots=True)
class TextDelta:
    """Text of the answer beside the calls; `kind` tells the answer from reasoning and refusal."""

    text: str
    kind: TextKind = "text"
    choice: int = 0


@dataclass(slots=True)
class CitationAdded:
    """What the provider names as a source: its own data, in the form of its wire."""

    data: JsonObject
    choice: int = 0


@dataclass(slots=True)
class UsageReported:
    """Token counts that are new or have changed, in the words of the wire; `Turn.usage` has all of them."""

    usage: JsonObject


@dataclass(slots=True)
class Diagnostic:
    """Something odd that is not an error of one call; `position` names the call if there is one.

    Codes: `finish_without_calls`, `leaked_call`, `orphan_delta`, `late_arguments`, `undecodable_event`, `lost_event`,
    `stream_error`, `failed_generation`, `error_after_finish`, `limit`, `unknown_wire`.
    """

    code: str
    message: str
    position: int | None = None
    line: int | None = None


@dataclass(slots=True)
class RepairAnswered:
    """A repair hook answered, raised or gave up; accepted or not, the record says."""

    position: int
    record: RepairRecord


@dataclass(slots=True)
class ApprovalRequested:
    """The call is fit, and waits for somebody to decide on it."""

    position: int
    request: ApprovalRequest


@dataclass(slots=True)
class ApprovalAnswered:
    """It was decided; `answer` is None if the approver failed, and `failure` says how."""

    position: int
    answer: Answer | Defer | None
    failure: str | None = None


@dataclass(slots=True)
class AttemptStarted:
    """The tool is about to be started with these arguments."""

    position: int
    tool: str
    attempt: int


@dataclass(slots=True)
class ProgressReported:
    """The tool told how far it is: `ctx.progress(value)`, or an item of a generator."""

    position: int
    tool: str
    attempt: int
    value: object


@dataclass(slots=True)
class CallRepeated:
    """The same call, by name and arguments, came in this many turns of the runner in a row."""

    position: int
    count: int


@dataclass(slots=True)
class TurnInvalid:
    """Calls of the turn were unfit, and so it was in this many turns of the runner in a row."""

    count: int


@dataclass(slots=True)
class AttemptEnded:
    """An attempt is over; `retry_in` is the wait in seconds before the next, or None if there is none."""

    position: int
    tool: str
    attempt: int
    status: str
    error: BaseException | None = None
    retry_in: float | None = None


@dataclass(slots=True)
class CallCompleted:
    """The call has its one outcome."""

    position: int
    outcome: Outcome


StreamEvent: TypeAlias = (
    CallStarted
    | CallDelta
    | CallPreview
    | ArgumentsReplaced
    | CallFinalized
    | TextDelta
    | CitationAdded
    | UsageReported
    | Diagnostic
)
"""What a `StreamFinalizer` gives."""

Event: TypeAlias = (
    StreamEvent
    | RepairAnswered
    | ApprovalRequested
    | ApprovalAnswered
    | AttemptStarted
    | ProgressReported
    | AttemptEnded
    | CallRepeated
    | CallCompleted
    | TurnInvalid
)
"""What a `Runner` gives."""
