"""`Listener`: what is told of everything that happens in a runner's turns, and can break none of it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from toolrun._core.calls import ValidatedCall
    from toolrun._core.events import Event
    from toolrun._core.outcomes import Outcome
    from toolrun._core.registry import ToolRegistry


class Listener:
    """Told of the turns of a runner, whatever entry they come through: for logs, traces and metrics.

    Every method does nothing until it is overridden. All of them are called in the event loop, and the turn waits
    for them: be quick. What they raise is logged (`logging.getLogger("toolrun")`), and costs the turn nothing.

    Attributes:
        deltas: True to be told of the pieces as they come (`CallDelta`, `TextDelta`, `CitationAdded`, `UsageReported`)
            also where nobody else asks for them.

    Examples:
        >>> import toolrun
        >>> class Failures(toolrun.abc.Listener):
        ...     def on_event(self, event, turn):
        ...         if isinstance(event, toolrun.CallCompleted) and event.outcome.status == "failed":
        ...             print(event.outcome.tool, event.outcome.error)
        >>> registry = toolrun.ToolRegistry()
        >>> runner = toolrun.Runner(registry, listeners=[Failures()])
    """

    deltas: bool = False

    def on_begin(self, turn: str, registry: ToolRegistry, outcomes: Sequence[Outcome]) -> None:
        """Take the begin of a turn, or of another part of one that is resumed or recovered.

        Args:
            turn: The key of the turn: `run_id:turn_id`.
            registry: The tools of the turn.
            outcomes: Those that it came with; of their calls no event is told, and `on_end` has them again.
        """

    def on_event(self, event: Event, turn: str) -> None:
        """Take an event of a turn, in the order of `Runner.stream`.

        Args:
            event: What happened.
            turn: The key of the turn. With the event's position it is the key of a call.
        """

    def around(self, call: ValidatedCall, key: str) -> AbstractContextManager[object]:
        """Give a context in which a call runs, with all its attempts; context variables set in it reach the tool.

        It is entered when the call is fit, approved and has its place, and left when its outcome is known, in the
        same context and without a wait between. It does not learn of errors: the outcome follows as `CallCompleted`.

        Args:
            call: What is run; a copy, as far as it can be changed.
            key: Its idempotency key.
        """
        del call, key
        return nullcontext()

    def on_end(self, turn: str, outcomes: Sequence[Outcome]) -> None:
        """Take the end of a turn, also of one that was cancelled or whose stream broke off.

        Args:
            turn: Its key.
            outcomes: One for every client call; those that a cancellation overtook had no `CallCompleted`.
        """
