"""The error tree.

```text
ToolrunError
├── RegistrationError        a tool, a hook or a name cannot be registered
├── DialectError             a provider's schema dialect cannot say what the tool says
├── PluginError              a named plugin cannot be found or loaded
├── RunnerClosed             the runner is not open any more
├── FinalizerClosed          an event came after close()
├── UnknownWire              nothing tells which provider protocol this is
├── StreamInterrupted        the stream raised before its finish; has .turn
├── TurnPending              a deferred call has no outcome yet
├── ApprovalExpired          the answer to a deferred call came too late
├── InvalidToken             a turn came back changed, or signed with another key
├── TooManyInvalidTurns      turn after turn has unfit calls; has .turn
├── CallConflict             one key, two different sets of arguments
├── ExecutorError            an executor could not run a call, or lost it while it ran
├── RemoteError              what a tool raised in another process; has .type_name
├── JournalError             a journal cannot be opened, read or written; the message says what to do
├── CallError                one call cannot go on; has .call
│   ├── IncompleteCall       the model did not finish it
│   ├── MalformedArguments   not one strict JSON object; has .issue
│   ├── InvalidArguments     JSON, but not what the schema asks for; has .issues
│   ├── NoSuchTool           no such tool; has .known
│   ├── RepairRefused        a repair hook said no; has .reason
│   └── ApprovalError        the approver raised, or answered nothing that is an answer
├── ToolError                raised by a tool: its own message is for the model
└── TryAgain                 raised by a tool: the same call may be run again
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.records import ArgumentIssue


class ToolrunError(Exception):
    """Base class of every error that this library raises or records."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive pickling with every attribute, whatever the signature of `__init__`."""
        return _restore, (type(self), self.args, dict(self.__dict__))


def _restore(cls: type[ToolrunError], args: tuple[object, ...], state: dict[str, object]) -> ToolrunError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class RegistrationError(ToolrunError):
    """A tool, a hook or a name cannot be registered; the message names it and what to do."""


class DialectError(ToolrunError):
    """A provider's schema dialect cannot express the tool; the message says which part."""


class PluginError(ToolrunError):
    """A plugin named by the user cannot be found or loaded; the message says what is installed."""


class RunnerClosed(ToolrunError):
    """The runner was used outside its `with` or `async with` block after leaving it."""


class FinalizerClosed(ToolrunError):
    """An event was fed after `close()`; a finalizer is for one response."""


class UnknownWire(ToolrunError):
    """`wire="auto"` found no event that it knows; name the wire."""


class StreamInterrupted(ToolrunError):
    """The stream raised before its finish; nothing was started.

    `turn` holds what arrived: every call is incomplete, the raw text is there. The exception
    of the stream is the `__cause__`.
    """

    def __init__(self, message: str, *, turn: Any) -> None:
        """Keep the turn as it stood when the stream broke; a `Turn`, which stands on a higher floor."""
        super().__init__(message)
        self.turn = turn


class TurnPending(ToolrunError):
    """`messages()` was asked for while a deferred call has no outcome yet."""


class ApprovalExpired(ToolrunError):
    """A deferred call may not run any more; it can still be denied."""


class InvalidToken(ToolrunError):
    """A turn that left the process came back changed, signed with another key, or is none."""


class TooManyInvalidTurns(ToolrunError):
    """As many turns in a row as `Limits` allows had unfit calls; `turn` is the last of them, with its outcomes."""

    def __init__(self, message: str, *, turn: Any) -> None:
        """Keep the turn; a `Turn`, which stands on a higher floor."""
        super().__init__(message)
        self.turn = turn


class CallConflict(ToolrunError):
    """A key that was used before came with other arguments."""

    def __init__(self, *, key: str, tool: str) -> None:
        """Name the key and the tool."""
        super().__init__(f"{tool!r}: key {key} was used before with other arguments; a key is for one call")
        self.key = key
        self.tool = tool


class ExecutorError(ToolrunError):
    """An executor could not run a call, or lost it while it ran; the outcome's `started` tells which."""


class RemoteError(ToolrunError):
    """What a tool raised in another process, of which only the text came back; notes may have its traceback.

    Args:
        type_name: The name of the exception's class.
        message: What it said.
    """

    def __init__(self, type_name: str, message: str) -> None:
        """Write the message as tracebacks end."""
        super().__init__(f"{type_name}: {message}" if message else type_name)
        self.type_name = type_name


class JournalError(ToolrunError):
    """A journal cannot be opened, read or written; what it confirmed before is not lost."""


class CallError(ToolrunError):
    """One call cannot go on; `call` is the call as the model wrote it."""

    def __init__(self, message: str, *, call: ToolCall) -> None:
        """Keep the call."""
        super().__init__(message)
        self.call = call


class IncompleteCall(CallError):
    """The model did not finish the call, so it was not run."""

    def __init__(self, *, call: ToolCall) -> None:
        """Write the message from the call's code and finish reason."""
        finish = f"finish reason {call.finish_reason!r}" if call.finish_reason else "no finish reason"
        super().__init__(
            f"{call.name!r} ({call.id}): the call was not finished by the model ({call.code}, {finish});"
            f" {len(call.raw_arguments)} characters of arguments had arrived",
            call=call,
        )


class MalformedArguments(CallError):
    """The arguments are not one strict JSON object; `issue` has the place."""

    def __init__(self, *, call: ToolCall, issue: ArgumentIssue) -> None:
        """Write the message from the issue."""
        super().__init__(f"{call.name!r} ({call.id}): {issue.describe()}; expected one JSON object", call=call)
        self.issue = issue


class InvalidArguments(CallError):
    """The arguments are JSON but do not fit the tool's schema; `issues` has at most 20 of them."""

    def __init__(self, *, call: ToolCall, tool: str, issues: Sequence[ArgumentIssue]) -> None:
        """Write the message from the issues."""
        listed = "; ".join(issue.describe() for issue in issues)
        super().__init__(f"{tool!r} ({call.id}): arguments do not fit the schema: {listed}", call=call)
        self.tool = tool
        self.issues: tuple[ArgumentIssue, ...] = tuple(issues)


class NoSuchTool(CallError):
    """The model called a tool that is not registered; `known` lists those that are."""

    def __init__(self, *, call: ToolCall, known: Sequence[str]) -> None:
        """Write the message with the registered names."""
        listed = ", ".join(sorted(known)) or "none"
        named = "the call has no name" if call.name is None else f"no tool named {call.name!r}"
        super().__init__(f"{call.id}: {named}; registered: {listed}", call=call)
        self.known: tuple[str, ...] = tuple(known)


class RepairRefused(CallError):
    """A repair hook answered `Refuse`; `reason` is its own text, meant for the model."""

    def __init__(self, *, call: ToolCall, hook: str, reason: str) -> None:
        """Keep the hook's name and reason."""
        super().__init__(f"{call.name!r} ({call.id}): repair hook {hook} refused: {reason}", call=call)
        self.hook = hook
        self.reason = reason


class ApprovalError(CallError):
    """The approver raised, or its answer was none; the call was not run."""


class ToolError(ToolrunError):
    """Raise it from a tool: its message goes to the model as it is. Any other exception's does not."""


class TryAgain(ToolrunError):
    """Raise it from a tool to have the same call run again, whatever the tool declares.

    Args:
        message: Goes to the model if the attempts run out.
        after: Seconds to wait before the next attempt; None leaves it to the retry policy.
    """

    def __init__(self, message: str = "the tool asked to be run again", *, after: float | None = None) -> None:
        """Keep the hint."""
        super().__init__(message)
        self.after = after
