"""The protocols behind `toolrun.abc`: what a wire and an executor are, and what they are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from toolrun._core.repair import digest

if TYPE_CHECKING:
    from toolrun._core.calls import CallKind, Effect, ToolCall
    from toolrun._core.content import ContentPart
    from toolrun._core.events import TextKind
    from toolrun._core.outcomes import Outcome
    from toolrun._core.records import JsonObject
    from toolrun._core.response import BlockKey, Response

Decode: TypeAlias = Callable[[object], None]
"""Reads one decoded event, a mapping or an SDK's object, and tells a sink what is in it."""

ReadPiece: TypeAlias = Callable[[object], bool]
"""Reads an event that is nothing but argument text for a call that is known; False, and nothing done, for any other."""


class Sink(Protocol):
    """What a wire writes to: calls on methods, no objects. Each method is documented on the assembler."""

    def begin(self, response_id: str | None) -> None: ...
    def tool_delta(self, choice: int, index: int | None, id: str | None, name: str | None, text: str) -> None: ...
    def tool_text(self, choice: int, index: int | None, text: str) -> bool: ...
    def tool_open(
        self,
        choice: int,
        index: int | None,
        id: str | None,
        name: str | None,
        *,
        kind: CallKind = "function",
        provider_executed: bool = False,
        placeholder: str | Callable[[], str] = "",
        extra: Mapping[str, object] | None = None,
    ) -> None: ...
    def tool_extra(self, choice: int, extra: Mapping[str, object]) -> None: ...
    def tool_is_custom(self, choice: int) -> None: ...
    def tool_replace(self, choice: int, index: int | None, text: str) -> None: ...
    def tool_whole(self, choice: int, index: int | None, *, whole: bool) -> None: ...
    def tool_proven(self, choice: int, index: int | None) -> None: ...
    def has_call(self, choice: int, index: int | None) -> bool: ...
    def orphan(self, choice: int, text: str) -> None: ...
    def block(self, choice: int, key: BlockKey, data: JsonObject) -> None: ...
    def block_text(
        self,
        choice: int,
        key: BlockKey,
        field: str,
        text: str,
        kind: TextKind | None = None,
    ) -> None: ...
    def block_item(self, choice: int, key: BlockKey, field: str, item: object) -> None: ...
    def finish(self, choice: int, reason: str | None) -> None: ...
    def citation(self, choice: int, data: JsonObject) -> None: ...
    def usage(self, usage: Mapping[str, object]) -> None: ...
    def terminate(self) -> None: ...
    def error(self, message: str) -> None: ...
    def lose(self, message: str, *, line: int | None = None) -> None: ...
    def diagnose(self, code: str, message: str, *, position: int | None = None, line: int | None = None) -> None: ...


class ToolResult(NamedTuple):
    """What one client call is answered with: a text for the model, and whether it is an error.

    A result with images or files has `parts`, too; `text` describes them, for wires without blocks for them.
    """

    call: ToolCall
    text: str
    is_error: bool
    parts: tuple[ContentPart, ...] = ()


class Wire(Protocol):
    """One provider protocol: reads its events, and writes its history.

    A wire holds no state of a stream; `decoder` makes what does. It never raises on what a
    provider sent: what it cannot read it tells the sink with `diagnose`.

    A wire may also have `piece_reader(sink) -> ReadPiece`: nearly every event of a long call is one piece of text,
    and a reader that asks for no more than that halves the cost. Every other event goes to the decoder.
    """

    @property
    def name(self) -> str:
        """The name that users pass as `wire=`."""
        ...

    @property
    def dialect(self) -> str:
        """The name of the schema dialect that `registry.definitions` writes."""
        ...

    def recognises(self, event: Mapping[str, object]) -> bool:
        """Tell whether a decoded event is one of this protocol's, for `wire="auto"`."""
        ...

    def decoder(self, sink: Sink) -> Decode:
        """Make the reader of one response."""
        ...

    def synthetic_id(self, digest: str) -> str:
        """Form a call id that the provider accepts back, from at least 32 hexadecimal digits."""
        ...

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
        """Write the response as the next request repeats it; the calls are those of choice 0, in order."""
        ...

    def result_messages(self, results: Sequence[ToolResult]) -> list[JsonObject]:
        """Write the results, one a client call, grouped as the provider wants them."""
        ...

    def continues(self, finish_reason: str | None) -> bool:
        """Tell whether the provider waits for the response to be sent back although no call is answered."""
        ...


class Invocation(NamedTuple):
    """A Python function with the arguments for one call; what an executor in this process runs."""

    function: Callable[..., object]
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    is_async: bool


class Job(NamedTuple):
    """One validated call, ready to run somewhere.

    Attributes:
        key: The idempotency key of the call: run, turn and position. The same on every attempt.
        tool: The registered name.
        call: The call as the model wrote it.
        arguments: The validated arguments as JSON text.
        effect: What running it again would do.
        attempt: Which attempt this is, from 1.
        attempts: How many there may be in all; an executor that is `durable` makes them itself.
        timeout: Seconds for this attempt; None for no limit.
        invocation: The function to call, for executors in this process; never serialised.
    """

    key: str
    tool: str
    call: ToolCall
    arguments: str
    effect: Effect = "once"
    attempt: int = 1
    attempts: int = 1
    timeout: float | None = None
    invocation: Invocation | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of `arguments`, hexadecimal; computed when it is asked for."""
        return digest(self.arguments)


class Executor(ABC):
    """Runs one validated call somewhere, and says what became of it.

    One verb. Cancel by cancelling the await. An executor never raises what the tool raised: a tool
    that fails is a `Failed`, one over its time a `TimedOut`. An executor that is `durable` keeps its own
    start record, is idempotent by `job.key` and makes the further attempts itself; for any other,
    each submission is one attempt, and the runner decides on the next.
    """

    durable: bool = False

    @abstractmethod
    async def execute(self, job: Job) -> Outcome:
        """Run the job once and return its outcome.

        Raises:
            CallConflict: The key was used before with other arguments.
        """

    @property
    def abandoned(self) -> int:
        """How many threads or processes still run for calls that were given up."""
        return 0
