"""The seams, on one page: what you can put in the place of what comes with the library.

* `RepairHook`: answers a `RepairRequest` with `Repaired`, `Renamed`, `Refuse` or None.
* `Approver`: decides whether a call may run.
* `Executor`: one verb, `execute(job)`, that gives an `Outcome`.
* `Journal`: keeps what was begun and what came of it, so that a process that dies leaves an account of it.
* `Listener`: is told of everything that happens in a runner's turns, for logs, traces and metrics.
* `Wire`: reads a provider's events into a `Sink`, and writes its history.
"""

from toolrun._core.approval import ApprovalDecision, ApprovalRequest, Approve, Approver, Defer, Deny
from toolrun._core.listener import Listener
from toolrun._core.outcomes import Outcome
from toolrun._core.repair import Fault, HookBinding, Reading, Refuse, Renamed, Repaired, RepairHook, RepairRequest
from toolrun._core.response import Part, Response
from toolrun._core.seams import (
    CallEntry,
    Decode,
    Executor,
    Invocation,
    Job,
    Journal,
    Payload,
    Sink,
    ToolResult,
    TurnEntry,
    Wire,
    turn_of,
)

__all__ = [
    "ApprovalDecision",
    "ApprovalRequest",
    "Approve",
    "Approver",
    "CallEntry",
    "Decode",
    "Defer",
    "Deny",
    "Executor",
    "Fault",
    "HookBinding",
    "Invocation",
    "Job",
    "Journal",
    "Listener",
    "Outcome",
    "Part",
    "Payload",
    "Reading",
    "Refuse",
    "Renamed",
    "RepairHook",
    "RepairRequest",
    "Repaired",
    "Response",
    "Sink",
    "ToolResult",
    "TurnEntry",
    "Wire",
    "turn_of",
]
