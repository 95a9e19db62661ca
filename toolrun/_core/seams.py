"""The protocols behind `toolrun.abc`: what a wire, an executor and a journal are, and what they are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeAlias

from toolrun._core.repair import digest
from toolrun._core.retry import starts

if TYPE_CHECKING:
    from types import TracebackType

    from toolrun._core.calls import CallKind, Effect, ToolCall, ToolDefinition
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
        definition: What the model was told of the tool; None if that is not known. Another process can tell by it
            whether it has the same tool.
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
    definition: ToolDefinition | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of `arguments`, hexadecimal; computed when it is asked for."""
        return digest(self.arguments)

    @property
    def starts(self) -> int:
        """How often it may be begun in all, if the processes that run it end without a word: 1 for `once`."""
        return starts(self.effect, self.attempts)


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


class Payload:
    """A text for a journal, written when it is first asked for: a journal in memory may never ask.

    Args:
        write: Writes it.
    """

    __slots__ = ("_text", "_write")

    def __init__(self, write: Callable[[], str]) -> None:
        """See the class."""
        self._write = write
        self._text: str | None = None

    @property
    def text(self) -> str:
        """The text, the same each time."""
        if self._text is None:
            self._text = self._write()
        return self._text


class CallEntry(NamedTuple):
    """What a journal holds of one call.

    Attributes:
        key: The key of the call; `turn_of` tells its turn.
        tool: The registered name; `""` if the call was settled without a start.
        arguments: The validated arguments as JSON text.
        effect: What running it again would do.
        attempt: The last attempt that began; 0 if none did.
        audit: How the arguments came to be: grade and repair records.
        epoch: The owner that began it.
        outcome: What came of it; None as long as that is open.
    """

    key: str
    tool: str
    arguments: str
    effect: Effect
    attempt: int
    audit: str
    epoch: int
    outcome: str | None


class TurnEntry(NamedTuple):
    """What a journal holds of one turn.

    Attributes:
        key: Run and turn.
        data: The text that was kept for it.
        calls: What is known of its calls, by key; one that was neither started nor settled has no entry.
        finished: True if its outcomes were handed over.
    """

    key: str
    data: str
    calls: Mapping[str, CallEntry]
    finished: bool


def turn_of(key: str) -> str:
    """The key of the turn that a call belongs to: what stands before the position.

    Args:
        key: The key of a call.
    """
    return key.rpartition(":")[0]


class Journal(ABC):
    """Keeps what was begun and what came of it, so that a process that dies leaves an account of it.

    A journal has one owner at a time, and every owner has a higher `epoch` than the one before. What a verb has
    returned for is as durable as the journal is; cancelling one of them leaves open whether it took place. The
    texts are the runner's; a journal does not read them.
    """

    @property
    @abstractmethod
    def epoch(self) -> int:
        """The number of this owner, from 1."""

    @abstractmethod
    async def start(self, job: Job, *, audit: Payload, turn: Payload) -> CallEntry | None:
        """Record that an attempt begins, before it does; its turn with it, if that is not there yet.

        Args:
            job: The attempt.
            audit: How its arguments came to be.
            turn: What is known of its turn.

        Returns:
            None if it is recorded and may begin. An entry if it may not: the call has an outcome, or this attempt,
            or a later one, was begun before.

        Raises:
            CallConflict: The key was used with another tool or other arguments.
            JournalError: Nothing is recorded.
        """

    @abstractmethod
    async def settle(self, key: str, outcome: Payload, *, attempt: int | None = None) -> bool:
        """Record an outcome; the first one stands.

        Args:
            key: The call; it need not have been started.
            outcome: What came of it.
            attempt: The attempt that it came of: it must be the last one begun, and begun by this owner. None for
                whoever decides from outside.

        Returns:
            False, with nothing recorded, if the call has an outcome, or a later attempt or owner has taken it over.

        Raises:
            JournalError: Nothing is recorded.
        """

    @abstractmethod
    async def outcome(self, key: str) -> str:
        """Wait until a call has an outcome, and return its text.

        Args:
            key: A call that was started.

        Raises:
            JournalError: There is no such call, or the journal was closed.
        """

    @abstractmethod
    async def keep(self, turn: str, data: Payload) -> None:
        """Keep a turn, over what was kept of it before: some of its calls wait for something outside.

        Args:
            turn: Its key.
            data: What is known of it.

        Raises:
            JournalError: Nothing is recorded.
        """

    @abstractmethod
    async def finish(self, turn: str) -> None:
        """Note that the outcomes of a turn are handed over. The note may wait for the next write.

        Args:
            turn: Its key; one that is not there is no error.
        """

    @abstractmethod
    async def unsettled(self) -> Sequence[str]:
        """The keys of the turns that were not finished, the oldest first.

        Raises:
            JournalError: It cannot be read.
        """

    @abstractmethod
    async def turn(self, key: str) -> TurnEntry | None:
        """What is known of a turn; None if there is no such turn.

        Args:
            key: Its key.

        Raises:
            JournalError: It cannot be read.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Write what is waiting, and give the journal up. A second time does nothing."""

    async def __aenter__(self) -> Self:
        """Leave the block to close the journal."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        await self.aclose()
