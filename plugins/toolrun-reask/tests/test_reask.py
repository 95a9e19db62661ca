"""Which answers are taken, and how often is asked: all of it through a runner."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import anyio
import pytest

from toolrun import Outcome, RepairBudget, Runner, ToolRegistry
from toolrun_reask import Reask

Json = dict[str, Any]
UNFIT = '{"find": "fjord"}'
GOOD = '{"query": "fjord"}'


def call(arguments: str, *, name: str = "search", id: str = "c1") -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def response(*calls: Json, text: str | None = None, finish: str | None = "tool_calls") -> Json:
    message = {"role": "assistant", "content": text, "tool_calls": list(calls) or None}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def chunks(arguments: str, finish: str | None = "tool_calls") -> list[Json]:
    deltas = [{"tool_calls": [{"index": 0, **call(arguments[:8])}]}]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": arguments[8:]}}]}, {}]
    finishes = [None, None, finish]
    return [{"choices": [{"delta": d, "finish_reason": f}]} for d, f in zip(deltas, finishes, strict=True)]


def registry_of(hook: Reask, *, on: Any = ("parse", "not_object", "schema"), **options: Any) -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool(**options)
    async def search(query: str) -> str:
        return query

    registry.repair(on=on)(hook)
    return registry


async def run(hook: Reask, source: Json | None = None, **options: Any) -> tuple[Outcome, ...]:
    async with Runner(registry_of(hook, **options)) as runner:
        return (await runner.run(source or response(call(UNFIT)))).outcomes


class Model:
    """Gives the answers one after the other, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, messages: list[Json]) -> Any:
        (message,) = messages
        self.asked.append(message["content"])
        answer = self.answers.pop(0)
        return answer() if callable(answer) else answer


async def events(*items: Json) -> Any:
    for item in items:
        yield item


TAKEN: dict[str, Callable[[], Any]] = {
    "a text": lambda: GOOD,
    "a fenced text": lambda: f"Here it is:\n```json\n{GOOD}\n```",
    "a dict": lambda: {"query": "fjord"},
    "a call": lambda: response(call(GOOD, id="other")),
    "a call that says stop": lambda: response(call(GOOD), finish="stop"),
    "a response with text": lambda: response(text=GOOD, finish="stop"),
    "a stream": lambda: iter(chunks(GOOD)),
    "a list of events": lambda: chunks(GOOD),
    "an async stream": lambda: events(*chunks(GOOD)),
    "another provider": lambda: {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "search", "input": {"query": "fjord"}}],
        "stop_reason": "tool_use",
    },
}


@pytest.mark.parametrize("answer", TAKEN.values(), ids=TAKEN)
async def test_answers(answer: Callable[[], Any]):
    """An answer of any form is read; the call runs with it, and the record says so."""
    (outcome,) = await run(Reask(Model(answer)))

    record = outcome.repairs[-1]
    assert (outcome.status, outcome.value, outcome.grade) == ("succeeded", "fjord", "hook")
    assert (record.hook, record.raw, record.note) == ("Reask", UNFIT, "asked again once")


NOT_TAKEN: dict[str, tuple[Callable[[], Any], str]] = {
    "prose": (lambda: "I cannot do that.", "the arguments are not one valid JSON object"),
    "nothing": (lambda: "", "The answer was empty."),
    "no text": (lambda: response(finish="stop"), "The answer was empty."),
    "unfit": (lambda: '{"query": 3, "limit": 1}', "the arguments do not fit the tool's schema"),
    "an unfit dict": (lambda: {"queries": ["a", "b"]}, "- $.queries: "),
    "cut": (lambda: '{"query": "fj', "the arguments end before they are complete"),
    "a cut call": (lambda: response(call('{"query": "fj'), finish="length"), "the arguments were cut off"),
    "a whole call in a cut response": (lambda: response(call(GOOD), finish="length"), "its calls are held"),
    "a whole text in a cut response": (lambda: response(text=GOOD, finish="length"), "Not run:"),
    "a stream without an end": (lambda: iter(chunks(GOOD, finish=None)), "the response ended before"),
    "a text without an end": (lambda: response(text=GOOD, finish=None), "The answer broke off before its end."),
    "another tool": (lambda: response(call(GOOD, name="delete")), "there is no tool named 'delete'"),
    "two calls": (lambda: response(call(GOOD), call(GOOD, id="c2")), "There were 2 calls. Call search exactly once."),
    "not what was meant for sure": (lambda: '{"Query": ["fjord"]}', "- $.Query: "),
}


@pytest.mark.parametrize(("answer", "told"), NOT_TAKEN.values(), ids=NOT_TAKEN)
async def test_unfit_answers(answer: Callable[[], Any], told: str):
    """What would not run as a call is not taken; the model is told why, and asked once more."""
    model = Model(answer, GOOD)

    (outcome,) = await run(Reask(model))

    assert (outcome.value, outcome.repairs[-1].note) == ("fjord", "asked again 2 times")
    first, second = model.asked
    assert first.startswith('Your call of the tool "search" could not be run: ')
    assert second.startswith('Your corrected call of the tool "search" could not be run either.\n')
    assert told in second.split("\n\nThe JSON Schema")[0]


async def test_attempts_for_a_call():
    """After so many questions the call is refused, and the last answer is on record."""
    model = Model("no", '{"query": 1.5}', GOOD)

    (outcome,) = await run(Reask(model, attempts=2))

    assert (outcome.status, len(model.asked)) == ("refused", 2)
    record = outcome.repairs[-1]
    assert (record.hook, record.accepted, record.after, record.note) == (
        "Reask", False, '{"query": 1.5}', "asked again 2 times",
    )  # fmt: skip


async def test_nothing_is_kept_of_what_was_cut():
    """A cut answer is never taken for one that is whole, though it may look so."""
    (outcome,) = await run(Reask(Model(response(call(GOOD), finish="length")), attempts=1))

    assert (outcome.status, [record.hook for record in outcome.repairs]) == ("refused", ["schema_reading"])


async def test_questions_for_a_turn():
    """The calls of a response share their questions; the next response has its own."""
    hook = Reask(Model(*[GOOD] * 4), per_turn=2, attempts=1)
    sources = [response(*(call(f'{{"find": {number}}}', id=f"{turn}{number}") for number in range(3))) for turn in "ab"]

    async with Runner(registry_of(hook), max_concurrency=1) as runner:
        turns = [await runner.run(source) for source in sources]

    statuses = [[outcome.status for outcome in turn.outcomes] for turn in turns]
    assert statuses == [["succeeded", "succeeded", "refused"]] * 2


async def test_what_is_remembered_of_turns(monkeypatch: pytest.MonkeyPatch):
    """The count of a response is kept until enough others came, and no longer."""
    monkeypatch.setattr("toolrun_reask._hook._REMEMBERED_TURNS", 2)
    hook = Reask(Model(*[GOOD] * 4), per_turn=1)

    async with Runner(registry_of(hook)) as runner:
        turns = [await runner.run(response(call(UNFIT, id=own))) for own in "abaca"]

    statuses = [turn.outcomes[0].status for turn in turns]
    assert statuses == ["succeeded", "succeeded", "refused", "succeeded", "refused"]
    async with Runner(registry_of(hook)) as runner:
        turns = [await runner.run(response(call(UNFIT, id=own))) for own in "b"]
    assert turns[0].outcomes[0].status == "succeeded"


async def test_an_ask_that_raises():
    """What it raises is recorded; nothing else comes of it."""

    def ask(messages: list[Json]) -> str:
        raise ConnectionError("no network")

    (outcome,) = await run(Reask(ask))

    assert outcome.repairs[-1].refusal == "the hook raised ConnectionError: no network"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(7, "TypeError"), (None, "TypeError"), ([{"query": "fjord"}], "UnknownWire"), ({"query": {1}}, "UnknownWire")],
)
async def test_answers_of_no_form(answer: Any, kind: str):
    """What is no answer is recorded as a fault of the hook."""
    (outcome,) = await run(Reask(Model(answer)))

    assert outcome.status == "refused"
    assert str(outcome.repairs[-1].refusal).startswith(f"the hook raised {kind}: ")


async def test_a_stream_that_breaks():
    """A stream that raises before its end is a fault of the hook too."""

    async def broken() -> Any:
        yield chunks(GOOD)[0]
        raise ConnectionError("gone")

    (outcome,) = await run(Reask(Model(broken)))

    assert str(outcome.repairs[-1].refusal).startswith("the hook raised StreamInterrupted: ")


async def test_an_ask_that_hangs():
    """The runner's budget ends it."""

    async def ask(messages: list[Json]) -> str:
        await anyio.sleep_forever()
        raise AssertionError("not reached")

    async with Runner(registry_of(Reask(ask)), budget=RepairBudget(seconds=0.05)) as runner:
        (outcome,) = (await runner.run(response(call(UNFIT)))).outcomes

    assert outcome.repairs[-1].refusal is not None
    assert outcome.repairs[-1].refusal.startswith("the hook did not answer within 0.0")


async def test_a_sync_ask():
    """It runs in a worker thread, so that a blocking client holds up nothing else."""
    threads = []

    def ask(messages: list[Json]) -> str:
        threads.append(threading.get_ident())
        return GOOD

    (outcome,) = await run(Reask(ask))

    assert outcome.value == "fjord"
    assert threads != [threading.get_ident()]


async def test_an_ask_that_returns_an_awaitable():
    """As a lambda around an async client does."""
    model = Model(GOOD)

    (outcome,) = await run(Reask(lambda messages: model(messages)))  # noqa: PLW0108  # what is tested

    assert outcome.value == "fjord"


def test_without_an_event_loop():
    """`run_sync` asks too."""
    with Runner(registry_of(Reask(lambda messages: GOOD))) as runner:
        (outcome,) = runner.run_sync(response(call(UNFIT))).outcomes

    assert outcome.value == "fjord"


@pytest.mark.parametrize(
    ("options", "grade", "status"),
    [
        ({}, "hook", "succeeded"),
        ({"destructive": True}, "hook", "succeeded"),
        ({"repair": "never"}, "hook", "refused"),
        ({}, "lossy", "refused"),
        ({"repair": "lossy"}, "lossy", "succeeded"),
        ({"destructive": True, "repair": "lossy"}, "lossy", "refused"),
        ({}, "schema_unique", "succeeded"),
    ],
)
async def test_floors(options: Json, grade: Any, status: str):
    """The tool's floor decides, by the grade that the hook claims."""
    (outcome,) = await run(Reask(Model(GOOD), grade=grade), **options)

    assert outcome.status == status


@pytest.mark.parametrize(("on", "status"), [(("parse", "schema"), "refused"), (("incomplete",), "succeeded")])
async def test_cut_calls(on: tuple[str, ...], status: str):
    """They are asked for anew only if that is named."""
    model = Model(GOOD)

    (outcome,) = await run(Reask(model), response(call('{"query": "fj'), finish="length"), on=on)

    assert (outcome.status, len(model.asked)) == (status, int(status == "succeeded"))


async def test_unknown_tools():
    """Without a tool nothing is asked."""
    model = Model()

    (outcome,) = await run(Reask(model), response(call(GOOD, name="fly")), on=None)

    assert (outcome.code, model.asked) == ("unknown_tool", [])


@pytest.mark.parametrize(
    "options",
    [{"attempts": 0}, {"per_turn": 0}, {"max_quoted": 0}, {"wire": "smoke"}, {"grade": "lossless"}, {"ask": 3}],
)
def test_options(options: Json):
    """What makes no sense is a mistake."""
    with pytest.raises(ValueError, match=r"Reask needs|nothing is known"):
        Reask(**{"ask": Model(), **options})


def test_entry_point():
    """The name in configuration files leads to the hook."""
    (found,) = entry_points(group="toolrun.repairs", name="reask")

    assert found.load() is Reask
