"""`FakeModel`: a conversation written beforehand, that looks at what is sent back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from typing import TYPE_CHECKING

from anyio.lowlevel import checkpoint

from toolrun._testing.conversation import Answer, Conversation, Given
from toolrun._testing.provider import FakeProvider

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject
    from toolrun._testing.scripts import Split


class FakeModel:
    """A model that says what was written beforehand, and refuses messages that a provider would refuse.

    With every request it looks at the messages: each call must have exactly one result, and the calls of its last
    response must be there. Give it the messages that you would send, or let SDKs talk to it over HTTP with `serve`.

    Args:
        *responses: What it says, request by request.
        wire: The name of the built-in wire that it speaks.
        split: How texts and arguments come apart, as for `ScriptedResponse.events`.
        check: False to take any messages.

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
        self._conversation = Conversation(responses, wire=wire, split=split, check=check)

    @property
    def wire(self) -> str:
        """As given."""
        return self._conversation.wire

    @property
    def requests(self) -> Sequence[Sequence[object]]:
        """The messages of each request that was answered."""
        return self._conversation.requests

    def stream(self, messages: Iterable[object]) -> Generator[JsonObject]:
        """Answer with a stream of events.

        Args:
            messages: What is sent, in the form of the wire.

        Returns:
            The events; it raises ConnectionResetError where the script says that the connection breaks.

        Raises:
            AssertionError: No provider would take the messages, or no response is left.
        """
        return _stream(self._conversation.give(messages))

    def astream(self, messages: Iterable[object]) -> AsyncGenerator[JsonObject]:
        """The same as an asynchronous stream.

        Args:
            messages: As for `stream`.

        Returns:
            The events, as for `stream`.

        Raises:
            AssertionError: As for `stream`.
        """
        return _astream(self._conversation.give(messages))

    def respond(self, messages: Iterable[object]) -> JsonObject:
        """Answer with a response that is not streamed.

        Args:
            messages: As for `stream`.

        Raises:
            AssertionError: As for `stream`.
        """
        return self._conversation.give(messages).told.whole

    def serve(self) -> FakeProvider:
        """Make a server of it, on the loopback interface, for SDKs. Enter it to start it."""
        return FakeProvider(self._conversation)

    def assert_exhausted(self) -> None:
        """See to it that every response was asked for, and that no request was refused on the way.

        Raises:
            AssertionError: Some are left, or a request was refused and whoever sent it went on all the same.
        """
        __tracebackhide__ = True
        self._conversation.raise_refusal()
        asked, left = len(self.requests), self._conversation.left
        if left:
            said = "\n".join(f"- {response!r:.200}" for response in left)
            raise AssertionError(
                f"the model was asked {asked} of {asked + len(left)} times; it still had to say:\n{said}"
            )


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
