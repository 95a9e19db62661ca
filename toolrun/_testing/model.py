"""`FakeModel`: a conversation written beforehand, that looks at what is sent back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from anyio.lowlevel import checkpoint

from toolrun._testing.answers import unanswered
from toolrun._testing.providers import writer_of
from toolrun._testing.scripts import ScriptedResponse, Split, Told, told

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject
    from toolrun._testing.provider import FakeProvider

Answer: TypeAlias = "ScriptedResponse | str | Callable[[Sequence[object]], ScriptedResponse | str]"
"""What a fake model says next: a response, a text alone, or a function that is given the messages and returns either."""


class Given(NamedTuple):
    """A response as the model gives it: what is told, and where the connection breaks, in events."""

    told: Told
    cut: int | None
    failed: bool


class FakeModel:
    """A model that says what was written beforehand, and refuses messages that a provider would refuse.

    With every request it looks at the messages: each call must have exactly one result, and the calls of its last
    response must be there. Give it the messages that you would send, or let SDKs talk to it over HTTP with `serve`.

    Args:
        *responses: What it says, request by request.
        wire: The name of the built-in wire that it speaks.
        split: How texts and arguments come apart, as for `ScriptedResponse.events`.
        check: False to take any messages.

    Attributes:
        wire: As given.
        requests: The messages of each request so far.

    Raises:
        UnknownWire: There is no such built-in wire.

    Examples:
        >>> from toolrun import Runner, ToolRegistry
        >>> from toolrun.testing import FakeModel, ScriptedCall, ScriptedResponse
        >>> registry = ToolRegistry()
        >>> @registry.tool
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> model = FakeModel(ScriptedResponse(calls=[ScriptedCall("add", {"a": 1, "b": 2})]), "It is 3.")
        >>> messages = [{"role": "user", "content": "1 + 2?"}]
        >>> with Runner(registry) as runner:
        ...     turn = runner.run_sync(model.stream(messages), wire=model.wire)
        ...     messages += turn.messages()
        ...     runner.run_sync(model.stream(messages), wire=model.wire).text
        'It is 3.'
        >>> model.stream(messages)
        Traceback (most recent call last):
        AssertionError: request 3, and only 2 responses were written
    """

    def __init__(self, *responses: Answer, wire: str = "openai-chat", split: Split = None, check: bool = True) -> None:
        """See the class."""
        writer_of(wire)
        self.wire = wire
        self.requests: list[list[object]] = []
        self._responses = responses
        self._split = split
        self._check = check
        self._calls = 0
        self._expected: tuple[str | None, ...] = ()
        self._refusal: Exception | None = None
        self._refused = False

    def stream(self, messages: Iterable[object]) -> Generator[JsonObject]:
        """Answer with a stream of events.

        Args:
            messages: What is sent, in the form of the wire.

        Returns:
            The events; it raises ConnectionResetError where the script says that the connection breaks.

        Raises:
            AssertionError: No provider would take the messages, or no response is left.
        """
        return _stream(self.give(messages))

    def astream(self, messages: Iterable[object]) -> AsyncGenerator[JsonObject]:
        """The same as an asynchronous stream.

        Args:
            messages: As for `stream`.

        Returns:
            The events, as for `stream`.

        Raises:
            AssertionError: As for `stream`.
        """
        return _astream(self.give(messages))

    def respond(self, messages: Iterable[object]) -> JsonObject:
        """Answer with a response that is not streamed.

        Args:
            messages: As for `stream`.

        Raises:
            AssertionError: As for `stream`.
        """
        return self.give(messages).told.whole

    def serve(self) -> FakeProvider:
        """Make a server of it, on the loopback interface, for SDKs."""
        from toolrun._testing.provider import FakeProvider  # noqa: PLC0415  # a model alone needs no server

        return FakeProvider(self)

    def assert_exhausted(self) -> None:
        """See to it that every response was asked for, and that no request was refused on the way.

        Raises:
            AssertionError: Some are left, or a request was refused and whoever sent it went on all the same.
        """
        __tracebackhide__ = True
        self.raise_refusal()
        if len(self.requests) < len(self._responses) and not self._refused:
            left = self._responses[len(self.requests) :]
            raise AssertionError(
                f"the model was asked {len(self.requests)} of {len(self._responses)} times; it still had to say:\n"
                + "\n".join(f"- {response!r:.200}" for response in left)
            )

    def give(self, messages: Iterable[object]) -> Given:
        """Take the messages of a request, and say what the answer is.

        Args:
            messages: As for `stream`.

        Raises:
            AssertionError: As for `stream`.
        """
        sent = list(messages)
        number = len(self.requests) + 1
        if self._check and (faults := unanswered(sent, self.wire, self._expected)):
            raise self.refused(AssertionError("\n".join([f"request {number} would be refused:", *faults])))
        if number > len(self._responses):
            raise self.refused(
                AssertionError(f"request {number}, and only {len(self._responses)} responses were written")
            )
        answer = self._responses[len(self.requests)]
        self.requests.append(sent)
        response = answer if isinstance(answer, str | ScriptedResponse) else answer(sent)
        return self._told(ScriptedResponse(text=response) if isinstance(response, str) else response)

    def refused(self, error: Exception) -> Exception:
        """Keep the first error that a request was refused with, in case that whoever sent it passes over it."""
        self._refusal = self._refusal or error
        return error

    def raise_refusal(self) -> None:
        """Raise what a request was refused with, if one was: once, as nothing that follows means anything.

        Raises:
            AssertionError: A request was refused.
        """
        __tracebackhide__ = True
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            self._refused = True
            raise refusal

    def _told(self, response: ScriptedResponse) -> Given:
        spoken = told(response, self.wire, split=self._split, number=len(self.requests), first_call=self._calls + 1)
        self._calls += len(spoken.ids)
        cut = response.cut_after
        failed = response.error is not None or cut is not None
        self._expected = () if failed else spoken.ids  # whether such a turn is kept is the agent's affair
        return Given(spoken, cut if cut is None or cut >= 0 else max(len(spoken.events) + cut, 0), failed)


def _stream(given: Given) -> Generator[JsonObject]:
    yield from given.told.events[: given.cut]
    if given.cut is not None:
        raise ConnectionResetError("the connection broke, as the script says")


async def _astream(given: Given) -> AsyncGenerator[JsonObject]:
    for event in given.told.events[: given.cut]:
        await checkpoint()
        yield event
    if given.cut is not None:
        raise ConnectionResetError("the connection broke, as the script says")
