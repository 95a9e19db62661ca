"""Approvals: asking whoever decides, and matching the answers that come later to the calls that wait for them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from toolrun._core.approval import Approve, Defer, Deny, Result
from toolrun._core.calls import identity_of
from toolrun._core.exceptions import ApprovalExpired
from toolrun._core.steps import ApprovalAnswer
from toolrun._runtime.asking import ask
from toolrun.executors._attempt import propagate

if TYPE_CHECKING:
    from toolrun._core.approval import Answer, ApprovalRequest, Approver
    from toolrun._core.registry import ToolRegistry
    from toolrun._runtime.turn import Turn


async def ask_approver(approver: Approver | None, request: ApprovalRequest) -> ApprovalAnswer:
    """Ask an approver; without one the answer comes later. One that raises has not approved."""
    if approver is None:
        return ApprovalAnswer(Defer())
    try:
        return ApprovalAnswer(await ask(approver, request))
    except BaseException as error:  # noqa: BLE001  # an approver cannot break a run
        propagate(error)
        return ApprovalAnswer(None, f"the approver raised {type(error).__name__}: {error}")


def matched(turn: Turn, answers: Mapping[str | int, Answer], registry: ToolRegistry) -> dict[int, Answer]:
    """Find the deferred calls that the answers are for, by id or by position; nothing has run when this raises.

    The same call given twice is one call: an answer to either is for both.

    Raises:
        ValueError: No pending call has that id, the answer cannot be one for that call, or a call has two answers.
        ApprovalExpired: The turn's time is over, and an answer does not deny.
    """
    found: dict[int, Answer] = {}
    for named, answer in answers.items():
        pending = [item for item in turn.pending if named in (item.call.id, item.call.position)]
        if not pending:
            waiting = ", ".join(item.call.id for item in turn.pending) or "none"
            raise ValueError(f"no pending call is {named!r}; pending: {waiting}")
        if len({(item.call.name, item.call.raw_arguments) for item in pending}) > 1:
            places = ", ".join(str(item.call.position) for item in pending)
            raise ValueError(f"several pending calls are {named!r}; name them by position: {places}")
        if not isinstance(cast("object", answer), Approve | Deny | Result):
            raise ValueError(f"the answer to {named!r} must be Approve, Deny or Result, not {answer!r}")  # noqa: TRY004  # a choice
        same = {identity_of(item.call) for item in pending}
        for item in (other for other in turn.pending if identity_of(other.call) in same):
            declared = item.tool is not None and item.tool in registry and registry[item.tool].function is None
            if isinstance(answer, Approve) and declared:
                raise ValueError(f"{named!r}: {item.tool!r} is only declared, nothing can run it; answer with Result")
            if found.setdefault(item.call.position, answer) != answer:
                raise ValueError(f"{named!r}: the call {item.call.id} has another answer already; answer it once")
    late = turn.expires_at is not None and time.time() > turn.expires_at
    if late and not all(isinstance(answer, Deny) for answer in found.values()):
        raise ApprovalExpired("the time to approve these calls is over; they can only be denied")
    return found
