"""`Turn`: one response, the outcome of each of its calls, and what goes back to the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from toolrun._core.calls import CallStatus
from toolrun._core.exceptions import TurnPending, UnknownWire
from toolrun._core.json_text import dump_once, encodable
from toolrun._core.outcomes import Deferred, Succeeded
from toolrun._core.records import Grade
from toolrun._core.seams import ToolResult

if TYPE_CHECKING:
    from toolrun._core.calls import ToolCall
    from toolrun._core.events import Diagnostic
    from toolrun._core.outcomes import Outcome
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Response
    from toolrun._core.seams import Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What became of one response.

    Attributes:
        run_id: The runner's id.
        turn_id: This turn's id; with a call's position they make its key.
        wire: The protocol it came over; None if nothing came.
        response: Blocks, usage and finish, calls aside.
        calls: Every call of choice 0, in order, those that the provider runs itself included.
        outcomes: One for each client call, in call order.
        diagnostics: What was odd about the stream.
        expires_at: Until when deferred calls can be approved, in seconds since the epoch; None for no limit.
    """

    run_id: str
    turn_id: str
    wire: Wire | None
    response: Response
    calls: tuple[ToolCall, ...]
    outcomes: tuple[Outcome, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    expires_at: float | None = None

    @property
    def text(self) -> str:
        """The answer's text, without reasoning and refusals."""
        return self.response.text

    @property
    def usage(self) -> JsonObject:
        """The provider's token counts, as sent."""
        return self.response.usage

    @property
    def finish_reason(self) -> str | None:
        """The finish reason, as sent."""
        return self.response.finish_reason

    @property
    def pending(self) -> tuple[Outcome, ...]:
        """The deferred calls, whose answer is still to come."""
        return tuple(outcome for outcome in self.outcomes if isinstance(outcome, Deferred))

    @property
    def needs_reply(self) -> bool:
        """True if the model waits for `messages()`: calls were answered, or the provider paused the turn."""
        if self.pending:
            return False
        if self.wire is None:
            return bool(self.outcomes)
        # A call that the response itself answers has an outcome, and yet there is nothing to say to it.
        return bool(self._result_messages(self.wire)) or self.wire.continues(self.finish_reason)

    def messages(self) -> list[Any]:
        """Write the assistant message and exactly one result for each client call, for the wire it came over.

        Returns:
            New messages, plain data; append them to the ones that you send next. They are typed as Any, so that
            they fit the request types of every SDK.

        Raises:
            TurnPending: A deferred call has no outcome yet.
            UnknownWire: The calls came from elsewhere, and no wire was named.
        """
        if self.pending:
            waiting = ", ".join(outcome.call.id for outcome in self.pending)
            raise TurnPending(f"these calls have no outcome yet: {waiting}")
        if self.wire is None:
            if self.outcomes:
                raise UnknownWire(
                    "these calls came over no known wire; name the one to write for: execute(calls, wire=…)"
                )
            return []
        as_run = {outcome.call.position: _as_run(outcome) for outcome in self.outcomes}
        calls = [as_run.get(call.position, call) for call in self.calls]
        messages = [*self.wire.assistant_messages(self.response, calls), *self._result_messages(self.wire)]
        return cast("list[Any]", encodable(messages))

    def _result_messages(self, wire: Wire) -> list[JsonObject]:
        return wire.result_messages(
            [
                ToolResult(_as_run(outcome), outcome.message, not isinstance(outcome, Succeeded), outcome.parts)
                for outcome in self.outcomes
            ]
        )


def _as_run(outcome: Outcome) -> ToolCall:
    """The call as it was run: a repaired one is repeated to the model with the arguments that the tool got."""
    call = outcome.call
    if outcome.tool is not None and outcome.tool != call.name and outcome.grade is not None:
        call = replace(call, name=outcome.tool)
    if outcome.arguments is None or outcome.grade in (None, Grade.EXACT):
        return call
    text = dump_once(outcome.arguments)
    return replace(call, raw_arguments=text, arguments=outcome.arguments, status=CallStatus.OK)
