"""Previews: what is shown of unfinished arguments is what the text has, whatever the pieces it came in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrun import (
    ArgumentsReplaced,
    CallDelta,
    CallFinalized,
    CallPreview,
    FieldAppended,
    FieldSet,
    Preview,
    PreviewList,
    PreviewObject,
    Repaired,
    Runner,
    StreamFinalizer,
    ToolRegistry,
)
from toolrun._core.json_text import parse_object
from toolrun._core.preview_parser import PreviewParser

from .recordings import ABSENT, recordings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolrun import FieldChange

Json = dict[str, Any]


def cut(text: str, sizes: Iterable[int]) -> Iterator[str]:
    """The text in pieces of these sizes, and what is left."""
    at = 0
    for size in sizes:
        yield text[at : at + size]
        at += size
    yield text[at:]


def parsed(*pieces: str) -> Preview:
    parser = PreviewParser()
    for piece in pieces:
        parser.feed(piece)
    return parser.snapshot()


def apply(data: Any, changes: Iterable[FieldChange]) -> Any:
    """What a front end makes of the changes."""
    for change in changes:
        if not change.path:
            data = {}
            continue
        *steps, last = change.path
        place = data
        for step in steps:
            place = place[step]
        if isinstance(change, FieldAppended):
            place[last] += change.text
        elif isinstance(place, list):
            assert last == len(place)
            place.append(change.value)
        else:
            place[last] = change.value
    return data


def is_beginning(shown: Any, whole: Any) -> bool:
    """Tell whether what is shown is the whole, or what was written of it first."""
    match shown, whole:
        case dict(), dict():
            names = list(whole)[: len(shown)]
            closed = names[:-1]
            return (
                list(shown) == names
                and all(shown[name] == whole[name] for name in closed)
                and all(is_beginning(shown[name], whole[name]) for name in names[-1:])
            )
        case list(), list():
            return shown[:-1] == whole[: len(shown)][:-1] and all(
                is_beginning(one, other) for one, other in zip(shown[-1:], whole[: len(shown)][-1:], strict=True)
            )
        case str(), str():
            return whole.startswith(shown)
        case _:
            return type(shown) is type(whole) and shown == whole


# -- generated texts --------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["😀", 'a"\\/\n', "\u2028", ""]
)
scalars = texts | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(texts, values, max_size=5)
splits = st.lists(st.integers(1, 5), max_size=60)
spellings = st.sampled_from(
    [
        {"ensure_ascii": True},
        {"ensure_ascii": False},
        {"ensure_ascii": True, "indent": 2},
        {"ensure_ascii": False, "separators": (",", ":")},
    ]
)


@given(objects, splits, spellings)
def test_generated_json(data: Json, sizes: list[int], spelling: Json) -> None:
    """At the end the data; before it a beginning of the data, that stays what it was; the changes make the same."""
    text = json.dumps(data, **spelling)
    parser = PreviewParser(changes=True)
    views = []
    rebuilt: Any = None
    for piece in cut(text, sizes):
        parser.feed(piece)
        view = parser.snapshot()
        rebuilt = apply(rebuilt, parser.take_changes())
        views.append((view, view.plain()))

        assert is_beginning(view.plain(), data)
        assert (rebuilt or {}) == view.plain()

    assert views[-1][0].state == "complete"
    assert views[-1][1] == data
    assert [view.plain() for view, _ in views] == [then for _, then in views]


@given(st.text(st.sampled_from('{}[]":,\\u dDc8e1.+-truefalsn\n\ud83d\ude00é'), max_size=40), splits)
def test_any_text(text: str, sizes: list[int]) -> None:
    """No text raises; what is called complete is what the strict parser takes, however it was cut."""
    view = parsed(*cut(text, sizes))
    strict = parse_object(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))

    assert view.plain() == parsed(text).plain()
    assert (view.state == "complete") == isinstance(strict, dict)
    if isinstance(strict, dict):
        assert view.plain() == strict


@pytest.mark.parametrize(
    ("text", "shown", "state"),
    [
        ("", {}, "growing"),
        ("  ", {}, "growing"),
        ("{", {}, "growing"),
        ('{"na', {}, "growing"),
        ('{"name"', {}, "growing"),
        ('{"name": ', {}, "growing"),
        ('{"name": "', {"name": ""}, "growing"),
        ('{"name": "Os', {"name": "Os"}, "growing"),
        ('{"name": "Os\\', {"name": "Os"}, "growing"),
        ('{"name": "\\u00e', {"name": ""}, "growing"),
        ('{"name": "\\ud83d', {"name": ""}, "growing"),
        ('{"name": "\\ud83d\\ude0', {"name": ""}, "growing"),
        ('{"name": "\\ud83d\\ude00', {"name": "😀"}, "growing"),
        ('{"name": "\ud83d', {"name": ""}, "growing"),
        ('{"name": "\ud83d\ude00', {"name": "😀"}, "growing"),
        ('{"n": 1', {}, "growing"),
        ('{"n": -', {}, "growing"),
        ('{"n": 12,', {"n": 12}, "growing"),
        ('{"n": 1.5e', {}, "growing"),
        ('{"n": 1.5e3 ', {"n": 1500.0}, "growing"),
        ('{"n": tru', {}, "growing"),
        ('{"n": true', {"n": True}, "growing"),
        ('{"n": null', {"n": None}, "growing"),
        ('{"n": [', {"n": []}, "growing"),
        ('{"n": [1, 2', {"n": [1]}, "growing"),
        ('{"n": [1, "tw', {"n": [1, "tw"]}, "growing"),
        ('{"n": {"m": {', {"n": {"m": {}}}, "growing"),
        ('{"n": {}} \n', {"n": {}}, "complete"),
        # What no object has: what came before it stays.
        ("[1]", {}, "broken"),
        ('"text"', {}, "broken"),
        ("null", {}, "broken"),
        ('{"n": 1}{', {"n": 1}, "broken"),
        ('{"n": 1,}', {"n": 1}, "broken"),
        ('{"n": [1,]', {"n": [1]}, "broken"),
        ('{"n": [}', {"n": []}, "broken"),
        ('{"n": 01,', {}, "broken"),
        ('{"n": 1.,', {}, "broken"),
        ('{"n": NaN,', {}, "broken"),
        ('{"n": nul}', {}, "broken"),
        ('{"n": 1e999,', {}, "broken"),
        ('{"n": ' + "9" * 5000 + ",", {}, "broken"),
        ("{'n'", {}, "broken"),
        ('{"n" 1', {}, "broken"),
        ('{"n": "a\nb', {"n": "a"}, "broken"),
        ('{"n": "a\\x', {"n": "a"}, "broken"),
        ('{"n": "a\\ud83d!', {"n": "a"}, "broken"),
        ('{"n": "a\\ude00', {"n": "a"}, "broken"),
        ('{"n": "a\ude00', {"n": "a"}, "broken"),
        ('{"n": 1, "\\u006e": 2}', {"n": 1}, "broken"),
    ],
)
def test_unfinished_and_malformed(text: str, shown: Json, state: str) -> None:
    """Nothing is shown that the text does not have; in one piece and character by character."""
    for view in (parsed(text), parsed(*text)):
        assert (view.plain(), view.state) == (shown, state)


def test_depth_is_that_of_arguments() -> None:
    assert parsed('{"n": ' + "[" * 127).state == "growing"
    assert parsed('{"n": ' + "[" * 128).state == "broken"


# -- views ------------------------------------------------------------------------------------

NESTED = '{"rows": [{"id": 1, "name": "a"}, {"id": 2, "name": "b'


def test_reading_a_view() -> None:
    view = parsed(NESTED)
    rows = view["rows"]

    assert isinstance(rows, PreviewList)
    assert len(rows) == 2
    assert [row["name"] for row in rows] == ["a", "b"]
    assert rows[-1].plain() == {"id": 2, "name": "b"}
    assert [name for name, _ in view.items()] == ["rows"]
    assert ("rows" in view, "id" in view, 7 in view) == (True, False, False)
    assert (view.get("id"), view.get("id", 5)) == (None, 5)
    assert view.find(("rows", 1, "name")) == "b"
    assert repr(view) == "Preview({'rows': [{'id': 1, 'name': 'a'}, {'id': 2, 'name': 'b'}]})"
    assert repr(rows[0]) == "PreviewObject({'id': 1, 'name': 'a'})"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", None),
        ("{", ()),
        ('{"a": 1, "b', ()),
        ('{"a": "x', ("a",)),
        ('{"a": "x"', ()),
        ('{"a": 1', ()),
        ('{"a": [', ("a",)),
        ('{"a": [true, "x', ("a", 1)),
        (NESTED, ("rows", 1, "name")),
        ('{"a": 1}', None),
        ('{"a": "x\n', None),
    ],
)
def test_open_path(text: str, path: Any) -> None:
    """Where the model is writing."""
    assert parsed(text).open_path == path


def test_open_path_of_an_older_view() -> None:
    parser = PreviewParser()
    parser.feed('{"a": {"b": "x')
    older = parser.snapshot()
    parser.feed('y"}, "c": ["z"]}')

    assert (older.open_path, older.plain()) == (("a", "b"), {"a": {"b": "x"}})
    assert "c" not in older


@pytest.mark.parametrize("path", [("id",), ("rows", 2), ("rows", "id"), ("rows", 0, "id", "x"), (0,)])
def test_what_has_not_begun_is_not_there(path: Any) -> None:
    with pytest.raises(LookupError):
        parsed(NESTED).find(path)


@pytest.mark.parametrize("index", [2, -3])
def test_no_such_item(index: int) -> None:
    rows = parsed(NESTED)["rows"]

    with pytest.raises(IndexError):
        rows[index]


def test_a_view_does_not_pass_for_arguments() -> None:
    """It is no mapping, at any depth: it cannot be unpacked, turned into a dict, written as JSON or given to a hook."""
    view = parsed('{"a": {"b": 1}}')

    for part in (view, view["a"]):
        assert isinstance(part, PreviewObject)
        with pytest.raises(TypeError):
            dict(part)
        with pytest.raises(TypeError):
            dict(**part)
        with pytest.raises(TypeError):
            json.dumps(part)
        assert not Repaired(arguments=part).is_well_formed()  # type: ignore[arg-type]


# -- streams ----------------------------------------------------------------------------------


def piece(text: str, *, index: int = 0, name: str | None = None) -> Json:
    call = {"index": index, "function": {"arguments": text}}
    if name:
        call = {"index": index, "id": f"call_{index}", "function": {"name": name, "arguments": text}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}


FINISH: Json = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
TWO = [
    piece('{"path": "a', index=0, name="write"),
    piece('{"n"', index=1, name="add"),
    piece('.txt", "content": "Once', index=0),
    piece(": 4", index=1),
    piece(' upon\\n"}', index=0),
    piece("2}", index=1),
    FINISH,
]


def previews(events: Iterable[object]) -> list[CallPreview]:
    return [event for event in events if isinstance(event, CallPreview)]


def test_events_of_a_stream() -> None:
    """One after each delta that changed what there is to show; two calls side by side."""
    finalizer = StreamFinalizer("openai-chat", previews=True)
    events = [event for each in TWO for event in finalizer.feed(each)]
    events += finalizer.close()

    assert [(event.position, event.changes) for event in previews(events)] == [
        (0, (FieldSet((), {}), FieldSet(("path",), ""), FieldAppended(("path",), "a"))),
        (1, (FieldSet((), {}),)),
        (
            0,
            (
                FieldAppended(("path",), ".txt"),
                FieldSet(("content",), ""),
                FieldAppended(("content",), "Once"),
            ),
        ),
        (0, (FieldAppended(("content",), " upon\n"),)),
        (1, (FieldSet(("n",), 42),)),
    ]
    for place, event in enumerate(events):
        if isinstance(event, CallPreview):
            assert isinstance(events[place - 1], CallDelta)
    assert [event.preview.plain() for event in previews(events)][-2:] == [call.arguments for call in finalizer.calls]


def test_on_demand() -> None:
    """No option, and no order: each call when it is asked for."""
    finalizer = StreamFinalizer("openai-chat")
    shown = []
    for event in TWO:
        finalizer.feed(event)
        shown.append(finalizer.preview(0).plain())

    assert shown[0] == {"path": "a"}
    assert shown[2] == {"path": "a.txt", "content": "Once"}
    assert shown[-1] == {"path": "a.txt", "content": "Once upon\n"}
    assert finalizer.preview(1).plain() == {"n": 42}
    finalizer.close()
    assert finalizer.preview(1).state == "complete"


@pytest.mark.parametrize("position", [-1, 2])
def test_no_call_at_the_position(position: int) -> None:
    finalizer = StreamFinalizer("openai-chat")
    for event in TWO:
        finalizer.feed(event)

    with pytest.raises(LookupError):
        finalizer.preview(position)


@given(st.lists(st.sampled_from(["ask", "feed", "feed", "resend"]), max_size=30))
def test_on_demand_whenever_it_is_asked(steps: list[str]) -> None:
    """The assembler joins its pieces now and then, when a text looks complete; nothing is read twice or left out."""
    pieces = iter(['{"a": {}', "}", ""] * 4)
    finalizer = StreamFinalizer("openai-chat")
    finalizer.feed(piece("", name="f"))
    sent = ""
    for step in steps:
        if step == "ask":
            assert finalizer.preview(0).plain() == parsed(sent).plain()
        else:
            text = next(pieces, "") if step == "feed" else ""
            finalizer.feed(piece(text, name="f" if step == "resend" else None))
            sent += text if not (sent and text == sent) else ""


RESPONSES = [
    {"type": "response.output_item.added", "output_index": 0, "item": {
        "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "write", "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": '{"text": "Onc'},
    {"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc_1", "arguments": '{"text": "Two"}'},
    {"type": "response.completed", "response": {"status": "completed", "output": []}},
]  # fmt: skip


def test_the_wires_own_copy_begins_anew() -> None:
    finalizer = StreamFinalizer("openai-responses", previews=True)
    asked = [(finalizer.feed(event), finalizer.preview(0).plain()) for event in RESPONSES]
    events = [event for told, _ in asked for event in told]

    place = next(place for place, event in enumerate(events) if isinstance(event, ArgumentsReplaced))
    after = events[place + 1]
    assert isinstance(after, CallPreview)
    assert after.changes == (FieldSet((), {}), FieldSet(("text",), ""), FieldAppended(("text",), "Two"))
    assert [shown for _, shown in asked] == [{}, {"text": "Onc"}, {"text": "Two"}, {"text": "Two"}]


def test_arguments_that_come_as_a_whole() -> None:
    """In one block, at the end: there is one preview, before the call is final."""
    finalizer = StreamFinalizer("gemini", previews=True)
    part = {"functionCall": {"name": "add", "args": {"a": 1, "tags": ["x"]}}}
    fed = finalizer.feed({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]})
    closed = finalizer.close()

    assert previews(fed) == []
    assert [type(event) for event in closed] == [CallDelta, CallPreview, CallFinalized]
    assert previews(closed)[0].preview.plain() == {"a": 1, "tags": ["x"]}
    assert finalizer.preview(0).plain() == {"a": 1, "tags": ["x"]}


def test_surrogate_halves_in_two_deltas() -> None:
    finalizer = StreamFinalizer("openai-chat", previews=True)
    events = [*finalizer.feed(piece('{"a": "\ud83d', name="f")), *finalizer.feed(piece("\ude00!"))]

    assert [event.preview.plain() for event in previews(events)] == [{"a": ""}, {"a": "😀!"}]
    assert finalizer.preview(0).plain() == {"a": "😀!"}


async def sync_in_async(events: list[Json]) -> Any:
    for event in events:
        yield event


@pytest.mark.parametrize("source", [list, iter, sync_in_async], ids=["memory", "thread", "async"])
async def test_with_a_runner(source: Any) -> None:
    """Previews come between the other events, wherever the source is read."""
    registry = ToolRegistry()

    @registry.tool
    def write(path: str, content: str) -> int:
        return len(content)

    @registry.tool
    def add(n: int) -> int:
        return n

    async with Runner(registry) as runner, runner.stream(source(TWO), previews=True) as run:
        events = [event async for event in run]
    seen = previews(events)

    assert [event.preview.plain() for event in seen if event.position == 0] == [
        {"path": "a"},
        {"path": "a.txt", "content": "Once"},
        {"path": "a.txt", "content": "Once upon\n"},
    ]
    assert [outcome.value for outcome in run.turn.outcomes] == [10, 42]


async def test_a_runner_gives_none_unless_asked() -> None:
    async with Runner(ToolRegistry()) as runner, runner.stream(TWO) as run:
        assert previews([event async for event in run]) == []


# -- recordings -------------------------------------------------------------------------------

RECORDINGS = recordings()


@pytest.mark.skipif(not RECORDINGS, reason=ABSENT)
@pytest.mark.parametrize("wire", sorted({recording.wire for recording in RECORDINGS}))
def test_recordings(wire: str) -> None:
    """At the end the parsed arguments; each view stays what it was and is a beginning of the next."""
    ended = 0
    for recording in (each for each in RECORDINGS if each.wire == wire):
        finalizer = StreamFinalizer(recording.wire, previews=True)
        events = [event for each in recording.events() for event in finalizer.feed(each)]
        events += finalizer.close()
        last: dict[int, Preview] = {}
        for event in events:
            if isinstance(event, ArgumentsReplaced):
                last.pop(event.position, None)
            elif isinstance(event, CallPreview):
                if event.position in last:
                    assert is_beginning(last[event.position].plain(), event.preview.plain())
                last[event.position] = event.preview
        for call in finalizer.calls:
            on_demand = finalizer.preview(call.position)
            if call.arguments is not None:
                assert on_demand.plain() == call.arguments
                assert (last[call.position].plain() if call.position in last else {}) == call.arguments
                ended += 1
            elif call.kind == "function":
                assert on_demand.state != "complete" or call.status == "incomplete" or call.issue is None
    assert ended > 0
