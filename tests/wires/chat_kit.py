"""What the tests of the chat wires share: recordings, cases, comparisons, and damage done on purpose."""

from __future__ import annotations

import copy
import json
import os
import random
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from toolrun import FinishPolicy, Runner, StreamFinalizer, Tool, ToolRegistry, finalize
from toolrun._core.assembler import Assembler
from toolrun._core.seams import ToolResult

from .chat_server import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolrun import ToolCall
    from toolrun.abc import Wire

Json = dict[str, Any]

ROOT: Final = Path(os.environ.get("TOOLRUN_CORPUS") or Path(__file__).resolve().parents[2].parent / "shared" / "corpus")
INDEX: Final = ROOT / "index.jsonl"
ABSENT: Final = f"the recordings are not in {ROOT}; set TOOLRUN_CORPUS to the folder that has their index.jsonl"
CASES: Final = Path(__file__).resolve().parents[1] / "cases" / "stream_cases.jsonl"
UNHURRIED: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
RUN_HELD: Final = FinishPolicy(run_held={"length"})


# -- cases ----------------------------------------------------------------------------------


def cases(wire: str) -> list[Json]:
    """The odd streams of a wire."""
    lines = CASES.read_text(encoding="utf-8").split("\n")
    return [case for case in map(json.loads, filter(None, lines)) if case["wire"] == wire]


def answers(case: Json, policy: str | None = None) -> list[Json]:
    """The primary answer and the alternatives; those of a policy only under that policy."""
    others = [other for other in case["expected"].get("alternatives", ()) if other.get("policy") == policy]
    return others if policy else [case["expected"], *others]


def matches(answer: Json, calls: Sequence[ToolCall]) -> bool:
    """Tell whether calls are what an answer says."""
    return (
        len(calls) == len(answer["calls"])
        and all(_same_call(got, want) for got, want in zip(calls, answer["calls"], strict=True))
        and [call.name for call in calls if call.executable] == answer["executable"]
    )


def _same_call(got: ToolCall, want: Json) -> bool:
    return (
        (got.synthetic_id and bool(got.id) if want["id"] is None else got.id == want["id"])
        and got.name == (want["name"] or None)
        and got.arguments == want["arguments"]
        and got.status.value == want["status"]
        and same_text(got.raw_arguments, want["raw"])
    )


def same_text(got: str, want: str) -> bool:
    """Compare argument texts; what came as an object is written down anew, so as JSON."""
    if got == want:
        return True
    try:
        return bool(json.loads(got) == json.loads(want))
    except ValueError:
        return False


# -- recordings -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Recording:
    """One recorded stream, what its index says of its calls, and what a real client sent next."""

    id: str
    wire: str
    data: bytes
    named_events: bool
    calls: tuple[Json, ...]

    @cached_property
    def events(self) -> tuple[Any, ...]:
        return tuple(json.loads(line) for line in self.data.split(b"\n") if line)

    @cached_property
    def frames(self) -> tuple[bytes, ...]:
        """The events as the provider's server sends them."""
        if self.wire == "ollama":
            return tuple(line + b"\n" for line in self.data.split(b"\n") if line)
        return tuple(map(self._frame, self.events))

    @cached_property
    def echo(self) -> Json | None:
        path = ROOT / "echo" / self.wire / f"{self.id}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    @property
    def reply(self) -> Reply:
        kind = "application/x-ndjson" if self.wire == "ollama" else "text/event-stream"
        return Reply(pieces=self.frames, content_type=kind)

    def _frame(self, event: Any) -> bytes:
        name, payload = (event["event"], event["data"]) if self.named_events else (None, event)
        text = payload if isinstance(payload, str) else json.dumps(payload)
        return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def recordings(wire: str) -> tuple[Recording, ...]:
    """Every recording of a wire; none where the corpus is absent."""
    return tuple(_recording(entry) for entry in _index() if entry["wire"] == wire)


def recordings_of_others(wire: str) -> Iterator[Recording]:
    """Every recording of every other wire."""
    return (_recording(entry) for entry in _index() if entry["wire"] != wire)


def payloads(recording: Recording) -> Iterator[Json]:
    """The decoded events, out of the envelopes that they are recorded in, without terminators."""
    for event in recording.events:
        payload = event["data"] if recording.named_events else event
        if isinstance(payload, dict):
            yield payload


def _index() -> list[Json]:
    if not INDEX.is_file():
        return []
    return [json.loads(line) for line in INDEX.read_text(encoding="utf-8").split("\n") if line]


def _recording(entry: Json) -> Recording:
    return Recording(
        id=entry["id"],
        wire=entry["wire"],
        data=(ROOT / entry["file"]).read_bytes(),
        named_events=entry["format"] == "event+data",
        calls=tuple(entry["expected"]["calls"]),
    )


def check(calls: Sequence[ToolCall], recording: Recording, *, as_json: bool = False) -> None:
    """Hold calls against the index: every recorded call of these wires is finished, whole and a client's."""
    wanted = recording.calls
    assert [call.name for call in calls] == [want["name"] for want in wanted]
    assert [None if call.synthetic_id else call.id for call in calls] == [want["id"] for want in wanted]
    assert [call.index for call in calls] == [want["index"] for want in wanted]
    raws = [(call.raw_arguments, want["arguments_raw"]) for call, want in zip(calls, wanted, strict=True)]
    assert all(same_text(*pair) if as_json else pair[0] == pair[1] for pair in raws)
    assert [call.arguments for call in calls] == [want["arguments"] for want in wanted]
    assert [(call.status.value, call.code, call.executable) for call in calls] == [("ok", None, True)] * len(wanted)
    assert not any(call.provider_executed for call in calls)
    assert [call.position for call in calls] == list(range(len(wanted)))


def check_bytes(recording: Recording, wire: Wire, *, as_json: bool = False) -> None:
    """The recording's own lines and the provider's framing give the same calls however they are cut."""
    for data in (recording.data, b"".join(recording.frames)):
        check(finalize(data, wire=wire), recording, as_json=as_json)
        for most in (1 if len(data) < 20_000 else 61, 4096):
            check(finalize(chunks(data, recording.id, most=most), wire=wire), recording, as_json=as_json)


def check_cuts(recording: Recording, wire: Wire, is_end: Callable[[Any], bool]) -> None:
    """A stream that stops, or breaks, before its finish runs nothing, wherever that is."""
    events = recording.events
    proven = next((place for place, event in enumerate(events) if is_end(event)), len(events))
    assert proven < len(events)
    for length in range(proven + 1):
        for calls in (finalize(events[:length], wire=wire), finalize(breaking(events[:length]), wire=wire)):
            assert {(call.status.value, call.executable) for call in calls} <= {("incomplete", False)}
    allowed = [(want["name"], want["arguments"]) for want in recording.calls]
    data = b"".join(recording.frames)
    cuts = random.Random(recording.id)
    for cut in cuts.sample(range(len(data)), k=min(24, len(data))):
        calls = finalize(data[:cut], wire=wire)
        assert all((call.name, call.arguments) in allowed for call in calls if call.executable)


def chunks(data: bytes, seed: str, *, most: int) -> Iterator[bytes]:
    """Cut bytes at random places into pieces of 1 to `most` bytes; the same seed gives the same pieces."""
    cuts = random.Random(seed)
    start = 0
    while start < len(data):
        end = start + cuts.randint(1, most)
        yield data[start:end]
        start = end


def breaking(events: Iterable[object]) -> Iterator[object]:
    """A source that breaks after its last event."""
    yield from events
    raise ConnectionResetError("cut")


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
