"""The contract suite for wires."""

from __future__ import annotations

import copy
import json
from hashlib import sha256
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from toolrun._core.assembler import Assembler
from toolrun._core.events import Diagnostic
from toolrun._core.policy import FinishPolicy
from toolrun._core.registry import ToolRegistry
from toolrun._core.seams import ToolResult
from toolrun._core.tools import Tool
from toolrun._runtime.runner import Runner
from toolrun._stream import StreamFinalizer
from toolrun._testing.scripts import ScriptedCall, ScriptedResponse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.seams import Wire
    from toolrun._runtime.turn import Turn

_JUNK: Final[tuple[object, ...]] = (
    None,
    True,
    -1,
    10**30,
    0.5,
    "",
    "junk",
    [],
    [None],
    {},
    {"type": {}, "text": []},
    [["deep"]],
)
"""What may stand where something else should."""

_ADD: Final = ScriptedCall("add", ['{"a": ', '1, "b"', ": 2}"], "call00001")
_SUB: Final = ScriptedCall("sub", {"a": 5}, "call00002")
_CUT: Final = ScriptedCall("add", '{"a": "not fini', "call00003")
_BOTH: Final = ScriptedResponse(text=["Let me ", "see."], calls=[_ADD, _SUB], finish="tool_calls", usage=None)


class WireSuite:
    """What every wire has to do, shown on streams that you write down as the provider does.

    Examples:
        >>> from toolrun.testing import WireSuite
        >>> from toolrun.wires import OpenAIChat
        >>> class TestOpenAIChat(WireSuite):
        ...     def wire(self):
        ...         return OpenAIChat()
        ...     def events(self, response):
        ...         return response.events("openai-chat")
    """

    arguments_are_objects: bool = False
    """True if the provider sends arguments as an object: such a call cannot be cut, or wrong as a text."""

    def wire(self) -> Wire:
        """Make the wire."""
        raise NotImplementedError

    def events(self, response: ScriptedResponse) -> Sequence[object]:
        """Write a response down as the provider's stream, decoded.

        Args:
            response: What is said. Read its `text`, its `calls` (each with an id or None, a name and `pieces()`), and its
                `finish`: `"tool_calls"`, `"stop"`, `"length"`, or None for a stream that just ends.
        """
        raise NotImplementedError

    def test_a_response(self) -> None:
        """Texts, calls and the finish arrive, and nothing is odd."""
        finalizer, diagnostics = self._read(_BOTH)

        assert finalizer.response.text == "Let me see."
        assert _told(finalizer.calls) == [("call00001", "add", {"a": 1, "b": 2}), ("call00002", "sub", {"a": 5})]
        assert [call.executable for call in finalizer.calls] == [True, True]
        assert finalizer.response.ended
        assert diagnostics == []

    def test_a_response_without_calls(self) -> None:
        """Nothing is to be answered."""
        turn = self._run(ScriptedResponse(text="Hello.", finish="stop", usage=None))

        assert (turn.text, turn.calls, turn.needs_reply) == ("Hello.", (), False)

    def test_it_is_recognised(self) -> None:
        """Its events are its own, and what has nothing of them is not."""
        wire = self.wire()

        assert any(wire.recognises(event) for event in self.events(_BOTH) if isinstance(event, dict))
        assert not wire.recognises({})
        assert not wire.recognises({"nothing": "of it"})

    def test_a_stream_that_just_ends(self) -> None:
        """Without a finish, nothing runs."""
        finalizer, _ = self._read(ScriptedResponse(calls=[_ADD, _SUB], finish=None, usage=None))

        assert [call.executable for call in finalizer.calls] == [False, False]

    def test_a_limit(self) -> None:
        """Under a finish that cuts, nothing runs."""
        finalizer, _ = self._read(ScriptedResponse(calls=[_ADD, _SUB], finish="length", usage=None))

        assert [call.executable for call in finalizer.calls] == [False, False]

    def test_a_stream_that_is_cut(self) -> None:
        """At whatever event: nothing runs, and nothing raises."""
        events = self.events(_BOTH)
        for length in range(len(events)):
            finalizer = StreamFinalizer(self.wire())
            for event in events[:length]:
                finalizer.feed(event)
            if not finalizer.ended:
                finalizer.close("error")
                assert [call.name for call in finalizer.calls if call.executable] == [], f"after {length} events"

    def test_calls_without_ids(self) -> None:
        """Each gets one of the wire's own form, the same each time, and its result is found by it."""
        response = ScriptedResponse(
            calls=[_ADD._replace(id=None), _SUB._replace(id=None)], finish="tool_calls", usage=None
        )
        finalizer, _ = self._read(response)
        ids = [call.id for call in finalizer.calls]

        assert len(set(ids)) == len(ids) == 2  # noqa: PLR2004  # the two calls above
        assert all(ids)
        assert [outcome.value for outcome in self._run(response).outcomes] == ["result of 1, 2", "result of 5"]

    def test_arguments_stay_as_they_are_written(self) -> None:
        """Byte for byte, right or wrong."""
        if self.arguments_are_objects:
            return
        finalizer, _ = self._read(ScriptedResponse(calls=[_ADD, _CUT], finish="tool_calls", usage=None))

        assert [call.raw_arguments for call in finalizer.calls] == ['{"a": 1, "b": 2}', '{"a": "not fini']
        assert [call.status.value for call in finalizer.calls] == ["ok", "parse_error"]

    def test_history(self) -> None:
        """Every call and its result are in it, in order; it is plain data, and the same each time."""
        messages = self._run(_BOTH).messages()
        text = json.dumps(messages)

        assert json.loads(text) == messages
        assert text.index("add") < text.index("sub")
        assert "result of 1" in text
        assert "result of 5" in text
        assert messages == self._run(_BOTH).messages()

    def test_history_of_a_call_that_was_refused(self) -> None:
        """The model sees what it wrote, never `{}`, and is told why it did not run."""
        bad = ScriptedCall("add", {"nonsense": "as written"}, "call00001") if self.arguments_are_objects else _CUT
        turn = self._run(ScriptedResponse(calls=[bad], finish="tool_calls", usage=None))
        said = self.wire().assistant_messages(turn.response, turn.calls)

        assert turn.outcomes[0].status == "refused"
        assert not said or ("as written" if self.arguments_are_objects else "not fini") in json.dumps(said)
        assert "Not run" in json.dumps(turn.messages())

    def test_objects_in_place_of_mappings(self) -> None:
        """An SDK's objects are read like what they were made of."""
        finalizer = StreamFinalizer(self.wire())
        for event in self.events(_BOTH):
            finalizer.feed(_as_object(event))
        finalizer.close()

        assert _told(finalizer.calls) == [("call00001", "add", {"a": 1, "b": 2}), ("call00002", "sub", {"a": 5})]

    def test_two_responses_at_once(self) -> None:
        """A wire keeps nothing of a stream: what does is made for each."""
        wire = self.wire()
        first, second = StreamFinalizer(wire), StreamFinalizer(wire)
        for event in self.events(_BOTH):
            first.feed(event)
            second.feed(copy.deepcopy(event))
        first.close()
        second.close()

        assert _told(first.calls) == _told(second.calls) == _told(self._read(_BOTH)[0].calls)

    def test_junk(self) -> None:
        """Whatever stands wherever in an event, and whatever event comes when: the decoder raises nothing."""
        events = list(self.events(_BOTH))
        random = Random(0)  # noqa: S311  # the same junk each time
        for place, event in enumerate(events):
            before, after = events[:place], events[place + 1 :]
            lost: list[object] = []
            junk = [[each] for each in (*_JUNK, *_damaged(event, random))]
            for others in (lost, [event, event], *junk):
                self._survives([*before, *others, *after])

    # -- how it is shown ------------------------------------------------------------------------

    def _read(self, response: ScriptedResponse) -> tuple[StreamFinalizer, list[Diagnostic]]:
        finalizer = StreamFinalizer(self.wire())
        told = [item for event in self.events(response) for item in finalizer.feed(event)]
        return finalizer, [item for item in (*told, *finalizer.close()) if isinstance(item, Diagnostic)]

    def _run(self, response: ScriptedResponse) -> Turn:
        with Runner(_TOOLS) as runner:
            return runner.run_sync(list(self.events(response)), wire=self.wire(), turn_id="turn")

    def _survives(self, events: Sequence[object]) -> None:
        """A finalizer would catch what is raised, so the decoder is asked; what came can be sent back, whatever it is."""
        wire = self.wire()
        assembler = Assembler(lambda position: wire.synthetic_id(sha256(b"%d" % position).hexdigest()))
        decode = wire.decoder(assembler)
        for event in events:
            decode(event)
        calls = [call for call in assembler.close(FinishPolicy()) if call.choice == 0]
        results = [ToolResult(call, "result", is_error=False) for call in calls if not call.provider_executed]
        written = wire.assistant_messages(assembler.response(wire.name), calls)
        json.dumps([*written, *wire.result_messages(results)])


def add(a: int, b: int) -> str:
    """Tell what it was given."""
    return f"result of {a}, {b}"


def sub(a: int) -> str:
    """Tell what it was given."""
    return f"result of {a}"


_TOOLS: Final = ToolRegistry([Tool.from_function(add), Tool.from_function(sub)])


def _told(calls: Sequence[ToolCall]) -> list[tuple[str, str | None, object]]:
    return [(call.id, call.name, call.arguments) for call in calls]


def _as_object(value: object) -> object:
    if isinstance(value, dict):
        return SimpleNamespace(**{key: _as_object(item) for key, item in value.items()})
    return [_as_object(item) for item in value] if isinstance(value, list) else value


def _damaged(event: object, random: Random) -> Iterator[object]:
    """The event with junk in each of its places, a few kinds of it."""
    for path in _paths(event):
        for junk in random.sample(_JUNK, 3):
            damaged = holder = copy.deepcopy(event)
            for key in path[:-1]:
                holder = holder[key]  # type: ignore[index]  # pyright: ignore[reportIndexIssue]  # the path leads there
            holder[path[-1]] = junk  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
            yield damaged


def _paths(value: object) -> Iterator[tuple[Any, ...]]:  # Any: keys and places
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (key,)
        yield from ((key, *path) for path in _paths(value[key]))  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
