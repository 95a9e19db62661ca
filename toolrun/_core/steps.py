"""The steps of a call's flow: what a driver is told to do next, and what it sends back."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from toolrun._core.outcomes import Outcome

if TYPE_CHECKING:
    from toolrun._core.calls import ValidatedCall
    from toolrun._core.records import RepairRecord
    from toolrun._core.repair import HookBinding, RepairRequest
    from toolrun._core.tools import Tool


@dataclass(frozen=True, slots=True)
class AskRepair:
    """Ask a hook; send back a `HookAnswer`."""

    binding: HookBinding
    request: RepairRequest


class HookAnswer(NamedTuple):
    """What came of asking: what the hook returned, or why it returned nothing; and the seconds it took."""

    decision: object
    failure: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Note:
    """Tell listeners of a hook's answer; send back nothing."""

    record: RepairRecord


class Answered(NamedTuple):
    """Take a result that came from elsewhere; send back its outcome, written down."""

    outcome: Outcome
    validated: ValidatedCall
    tool: Tool


class AskApproval(NamedTuple):
    """Ask whether the call may run; send back an `ApprovalAnswer`."""

    validated: ValidatedCall
    tool: Tool


class ApprovalAnswer(NamedTuple):
    """What came of asking: what the approver returned, or why it returned nothing."""

    decision: object
    failure: str | None = None


class Execute(NamedTuple):
    """Run the call; send back its `Outcome`."""

    validated: ValidatedCall
    tool: Tool


Step: TypeAlias = AskRepair | Note | AskApproval | Answered | Execute
Flow: TypeAlias = Generator[Step, Any, Outcome]
