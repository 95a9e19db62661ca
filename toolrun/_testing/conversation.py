"""What a fake model and its server share: which response is next, and whether the messages can be taken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from toolrun._testing.answers import unanswered
from toolrun._testing.providers import writer_of
from toolrun._testing.scripts import ScriptedResponse, Split, Told, told

Answer: TypeAlias = "ScriptedResponse | str | Callable[[Sequence[object]], ScriptedResponse | str]"
"""What a fake model says next: a response, a text alone, or a function that is given the messages and returns either."""


class Given(NamedTuple):
    """A response as the model gives it: what is told, and where the connection breaks, in events."""

    told: Told
    cut: int | None
    failed: bool


class Conversation:
    """Gives the responses, one a request.

    Args:
        responses: In order.
        wire: The name of a built-in wire.
        split: How texts and arguments come apart.
        check: False to take any messages.

    Attributes:
        wire: As given.
        requests: The messages of each request that was answered.

    Raises:
        UnknownWire: There is no such built-in wire.
    """

    def __init__(self, responses: Sequence[Answer], *, wire: str, split: Split, check: bool) -> None:
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
        self._lock = threading.Lock()  # a server has a thread for each request

    def give(self, messages: Iterable[object]) -> Given:
        """Take the messages of a request, and say what the answer is.

        Raises:
            AssertionError: No provider would take them, or no response is left.
        """
        sent = list(messages)
        with self._lock:
            number = len(self.requests) + 1
            if self._check and (faults := unanswered(sent, self.wire, self._expected)):
                raise self.refused(AssertionError("\n".join([f"request {number} would be refused:", *faults])))
            if number > len(self._responses):
                written = len(self._responses)
                raise self.refused(AssertionError(f"request {number}, and only {written} responses were written"))
            answer = self._responses[len(self.requests)]
            self.requests.append(sent)
            response = answer if isinstance(answer, str | ScriptedResponse) else answer(sent)
            return self._given(ScriptedResponse(text=response) if isinstance(response, str) else response)

    def refused(self, error: Exception) -> Exception:
        """Keep the first error that a request was refused with, in case that whoever sent it passes over it."""
        self._refusal = self._refusal or error
        return error

    def raise_refusal(self) -> None:
        """Raise what a request was refused with, if one was: once, as nothing that follows means anything."""
        __tracebackhide__ = True
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            self._refused = True
            raise refusal

    @property
    def left(self) -> Sequence[Answer]:
        """What nobody asked for; nothing after a refusal."""
        return () if self._refused else self._responses[len(self.requests) :]

    def _given(self, response: ScriptedResponse) -> Given:
        spoken = told(response, self.wire, split=self._split, number=len(self.requests), first_call=self._calls + 1)
        self._calls += len(spoken.ids)
        cut = response.cut_after
        failed = response.error is not None or cut is not None
        self._expected = () if failed else spoken.ids  # whether such a turn is kept is the agent's affair
        return Given(spoken, cut if cut is None or cut >= 0 else max(len(spoken.events) + cut, 0), failed)
