"""What a scripted model says, whatever the wire: texts, calls, how it ends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from toolrun._testing.framing import encode
from toolrun._testing.providers import Lines, Writer, Written, writer_of
from toolrun._testing.splitting import split_text

if TYPE_CHECKING:
    from toolrun._core.records import JsonObject

Text: TypeAlias = str | Sequence[str]
"""A text, or the pieces in which it comes."""

Split: TypeAlias = int | Random | None
"""Into what a text comes apart: pieces of that many characters, pieces of random lengths, or one piece."""

_CALLS: Final = "tool_calls"


class ScriptedCall(NamedTuple):
    """A call as the model writes it, right or wrong.

    Attributes:
        name: The tool; None for a call without a name.
        arguments: An object, which is written as JSON; a text, which is written as it is, whatever it is; or the
            pieces of one.
        id: The provider's id of the call. `""` numbers it (`call00001` …: a form that every provider takes back);
            None sends none.

    Examples:
        >>> from toolrun.testing import ScriptedCall
        >>> whole, cut = ScriptedCall("add", {"a": 1}), ScriptedCall("add", ['{"a', '": 1'])
        >>> whole.text, cut.text
        ('{"a": 1}', '{"a": 1')
    """

    name: str | None
    arguments: Mapping[str, object] | Text = ""
    id: str | None = ""

    @property
    def text(self) -> str:
        """The arguments as they are written."""
        return "".join(self.pieces())

    def pieces(self, split: Split = None) -> list[str]:
        """The pieces of the arguments; those that were given as pieces stay so.

        Args:
            split: How a text comes apart.
        """
        given = self.arguments
        return _pieces(json.dumps(given) if isinstance(given, Mapping) else given, split)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedResponse:
    """One response of a model, in the words of no provider.

    Attributes:
        text: The answer's text.
        thinking: What the model thinks before it, where the wire shows it.
        calls: The calls, in order.
        finish: How it ends: `"tool_calls"`, `"stop"`, `"length"` and `"content_filter"` become the wire's own words, any
            other is sent as it is; None sends none. `"auto"`: `"tool_calls"` if there are calls, else `"stop"`, and None
            after an error.
        terminator: Whether the protocol's terminator is sent where it has one of its own (`[DONE]`, `message_stop`); None:
            if a finish is.
        usage: Tokens in and out; None sends none.
        error: What the provider reports in the middle of the stream, in place of an end.
        cut_after: After how many events the connection breaks; of a negative number, so many before the last. None: it
            does not. It is the transport that breaks, so `FakeModel` and its server do that; `events` gives all.

    Examples:
        >>> from toolrun import finalize
        >>> from toolrun.testing import ScriptedCall, ScriptedResponse
        >>> response = ScriptedResponse(text="Adding.", calls=[ScriptedCall("add", {"a": 1, "b": 2})])
        >>> [event["type"] for event in response.events("anthropic-messages")][-3:]
        ['content_block_stop', 'message_delta', 'message_stop']
        >>> finalize(response.encode("gemini"))[0].arguments
        {'a': 1, 'b': 2}
    """

    text: Text = ""
    thinking: Text = ""
    calls: Sequence[ScriptedCall] = ()
    finish: str | None = "auto"
    terminator: bool | None = None
    usage: tuple[int, int] | None = (11, 7)
    error: str | None = None
    cut_after: int | None = None

    def events(self, wire: str, *, split: Split = None, interleaved: bool = False) -> list[JsonObject]:
        """Write it as the events of a stream, as they are once decoded: plain data.

        Args:
            wire: The name of a built-in wire.
            split: How texts and arguments come apart; those that were given as pieces stay so. Where arguments are
                objects (`gemini`, `ollama`), they come whole.
            interleaved: Weave the events of several calls into each other, where the wire says of each whose it is.

        Raises:
            UnknownWire: There is no such built-in wire.
        """
        return told(self, wire, split=split, interleaved=interleaved).events

    def whole(self, wire: str) -> JsonObject:
        """Write it as the response to a request without streaming.

        Args:
            wire: The name of a built-in wire.

        Raises:
            UnknownWire: There is no such built-in wire.
        """
        return told(self, wire).whole

    def encode(self, wire: str, *, split: Split = None, interleaved: bool = False) -> bytes:
        """Write it as the body of an HTTP response: server-sent events, JSON lines or Amazon's event stream.

        Args:
            wire: The name of a built-in wire.
            split: As for `events`; to cut the bytes, use `chunked`.
            interleaved: As for `events`.

        Raises:
            UnknownWire: There is no such built-in wire.
        """
        return b"".join(told(self, wire, split=split, interleaved=interleaved).encoded())


class Told(NamedTuple):
    """A response in the protocol of a wire.

    Attributes:
        wire: The wire's name.
        events: All of them, whatever the transport does.
        whole: The response without streaming.
        ids: The ids of the calls as the next request must have them, in order; None for one that need not have any.
        terminated: True if the terminator follows.
    """

    wire: str
    events: list[JsonObject]
    whole: JsonObject
    ids: tuple[str | None, ...]
    terminated: bool

    def encoded(self) -> list[bytes]:
        """The body, event by event."""
        return encode(self.events, self.wire, terminated=self.terminated)


def told(
    response: ScriptedResponse,
    wire: str,
    *,
    split: Split = None,
    interleaved: bool = False,
    number: int = 1,
    first_call: int = 1,
) -> Told:
    """Write a response in the protocol of a wire.

    Args:
        response: What is said.
        wire: The name of a built-in wire.
        split: How texts and arguments come apart.
        interleaved: Weave the events of the calls into each other.
        number: Which response of a conversation this is: ids have it in them.
        first_call: The number of its first call, for calls without an id of their own.
    """
    writer = writer_of(wire)
    lines = _lines(response, writer, split, number, first_call)
    written = writer.stream(lines)
    calls = (
        _woven(written.calls) if interleaved and writer.indexed else [event for call in written.calls for event in call]
    )
    events = [*written.begin, *calls, *written.end]
    if writer.numbered:
        events = [{**event, "sequence_number": place} for place, event in enumerate(events)]
    return Told(
        wire=wire,
        events=events,
        whole=writer.whole(lines),
        ids=tuple(call.id if writer.keeps_ids else None for call in lines.calls),
        terminated=lines.terminated,
    )


def _lines(response: ScriptedResponse, writer: Writer, split: Split, number: int, first_call: int) -> Lines:
    finish = response.finish
    if finish == "auto":
        finish = None if response.error else _CALLS if response.calls else "stop"
    return Lines(
        number=number,
        text=_pieces(response.text, split),
        thinking=_pieces(response.thinking, split),
        calls=[
            Written(call.id if call.id != "" else f"call{place:05}", call.name, call.pieces(split))
            for place, call in enumerate(response.calls, first_call)
        ],
        finish=writer.finishes.get(finish, finish) if finish else None,
        terminated=finish is not None if response.terminator is None else response.terminator,
        usage=response.usage,
        error=response.error,
    )


def _pieces(text: Text, split: Split) -> list[str]:
    return split_text(text, split) if isinstance(text, str) else list(text)


def _woven(calls: list[list[JsonObject]]) -> list[JsonObject]:
    """The first event of each call, then the second of each, and so on."""
    longest = max(map(len, calls), default=0)
    return [call[place] for place in range(longest) for call in calls if place < len(call)]
