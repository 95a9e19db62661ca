"""What the tests of the wires share: running, and damage done on purpose."""

from __future__ import annotations

import copy
import json
from hashlib import sha256
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from toolrun import FinishPolicy, Runner, StreamFinalizer, Tool, ToolRegistry
from toolrun._core.assembler import Assembler
from toolrun._core.seams import ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolrun.abc import Wire

Json = dict[str, Any]

UNHURRIED: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


# -- running --------------------------------------------------------------------------------


def registry(*names: str) -> ToolRegistry:
    """A registry that takes any arguments for each name and gives them back."""

    async def echo(**arguments: Any) -> Json:
        return arguments

    schema = {"type": "object", "additionalProperties": True}
    return ToolRegistry(Tool.from_json_schema(name=name, input_schema=schema, handler=echo) for name in names)


async def messages_of(source: object, wire: Wire, *names: str) -> list[Json]:
    """What goes back to the model after a stream was run, whatever became of it."""
    async with Runner(registry(*names), on_stream_error="return") as runner:
        turn = await runner.run(source, wire=wire)
    return turn.messages()


# -- damage ---------------------------------------------------------------------------------


def junk(words: Sequence[str]) -> st.SearchStrategy[Any]:
    """Any JSON value; keys and some texts are the protocol's own words."""
    texts = st.sampled_from(words) | st.text(max_size=4)
    scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | texts | st.just("{}")
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=10,
    )


def soup(streams: Sequence[Sequence[Json]], words: Sequence[str]) -> st.SearchStrategy[list[Any]]:
    """Junk events, and well-formed streams with junk in some places, events lost, doubled and out of order."""

    @st.composite
    def damaged(draw: st.DrawFn) -> list[Any]:
        events = copy.deepcopy(list(draw(st.sampled_from(streams))))
        for _ in range(draw(st.integers(0, 4))):
            places = [(holder, key) for event in events for holder, key in _places(event)]
            holder, key = draw(st.sampled_from(places))
            holder[key] = draw(junk(words))
        order = draw(st.lists(st.integers(0, len(events) - 1), min_size=1, max_size=len(events) + 2))
        return draw(st.sampled_from((events, [events[place] for place in order])))

    return damaged() | st.lists(junk(words), max_size=5)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def check_survives(wire: Wire, events: Sequence[Any]) -> None:
    """Whatever comes, as plain data or as objects: nothing raises, nothing runs without an end, history is plain data."""
    for told in (events, [_as_object(event) for event in events]):
        _check_decoder(wire, told)
        finalizer = StreamFinalizer(wire)
        seen = [item for event in told for item in finalizer.feed(event)]
        seen += finalizer.close()
        ended = [item.position for item in seen if type(item).__name__ == "CallFinalized"]
        assert ended == [call.position for call in finalizer.calls]
        wire.recognises(told[0] if told and isinstance(told[0], dict) else {"choices": told})


def _check_decoder(wire: Wire, events: Sequence[Any]) -> None:
    assembler = Assembler(lambda position: wire.synthetic_id(sha256(b"%d" % position).hexdigest()))
    decode = wire.decoder(assembler)
    for event in events:
        decode(event)  # a finalizer would catch what is raised here, so it is not asked
    calls = assembler.close(FinishPolicy())
    response = assembler.response(wire.name)
    first = [call for call in calls if call.choice == 0]
    results = [ToolResult(call, "result", is_error=False) for call in first]
    written = [*wire.assistant_messages(response, first), *wire.result_messages(results)]
    assert json.loads(json.dumps(written)) == written
    assert all(call.finish_reason or call.code == "finish_inferred" for call in calls if call.executable)
    assert [call.position for call in calls] == list(range(len(calls)))


def _as_object(value: Any) -> Any:
    if isinstance(value, dict) and value:
        return SimpleNamespace(**{key: _as_object(item) for key, item in value.items()})
    return [_as_object(item) for item in value] if isinstance(value, list) else value
