"""Twenty-two malformed and odd arguments, through every entry of the runner: the same verdict everywhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import pytest

from toolrun import Runner, ToolRegistry, finalize

from .responses import anthropic_events, anthropic_message, openai_chunks, openai_completion
from .server import anthropic_sse, openai_sse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from toolrun import Turn

FENCE = "`" * 3
CUT = '{"amount": 5, "to": "al'


class Case(NamedTuple):
    """An input; what the tool ran with (None: it did not run), and the outcome's status, code and grade."""

    raw: str
    ran: tuple[int, str, float] | None
    status: str
    code: str | None
    grade: str | None
    finish: str = "tools"
    name: str = "pay"


CASES = {
    "01_empty": Case("", (1, "nobody", 1.0), "succeeded", None, "exact"),
    "02_braces": Case("{}", (1, "nobody", 1.0), "succeeded", None, "exact"),
    "03_trailing_comma": Case('{"amount": 5, "to": "al",}', (5, "al", 1.0), "succeeded", None, "lossless"),
    "04_trunc_length": Case(CUT, None, "refused", "truncated", None, "length"),
    "05_double_encoded": Case(json.dumps('{"amount": 5}'), (5, "nobody", 1.0), "succeeded", None, "schema_unique"),
    "06_py_dict": Case("{'amount': 5, 'to': 'al'}", (5, "al", 1.0), "succeeded", None, "lossless"),
    "07_fenced": Case(f'{FENCE}json\n{{"amount": 5}}\n{FENCE}', (5, "nobody", 1.0), "succeeded", None, "lossless"),
    "08_nan": Case('{"amount": 5, "rate": NaN}', None, "refused", "non_finite", None),
    "09_dup_keys": Case('{"amount": 5, "amount": 6}', None, "refused", "duplicate_key", None),
    "10_str_int": Case('{"amount": "5"}', (5, "nobody", 1.0), "succeeded", None, "schema_unique"),
    "11_unknown_tool": Case('{"amount": 5}', None, "refused", "unknown_tool", None, "tools", "pey"),
    "12_extra_prop": Case('{"amount": 5, "bogus": 1}', None, "refused", "unknown_key", None),
    "13_trunc_toolcalls": Case(CUT, None, "refused", "truncated", None),
    "14_valid_but_length": Case('{"amount": 5}', None, "not_executed", "held", None, "length"),
    "15_list": Case("[5]", None, "refused", "not_object", None),
    "16_null": Case("null", (1, "nobody", 1.0), "succeeded", None, "schema_unique"),
    "17_ctrl_char": Case('{"to": "a\nb"}', (1, "a\nb", 1.0), "succeeded", None, "lossless"),
    "18_bool_int": Case('{"amount": true}', None, "refused", "schema", None),
    "19_concat": Case('{"amount": 5}{"amount": 6}', None, "refused", "several_objects", None),
    "20_lone_surrogate": Case('{"to": "\\ud83d"}', None, "refused", "lone_surrogate", None),
    "21_wrong_type": Case('{"amount": "lots"}', None, "refused", "schema", None),
    "22_valid_content_filter": Case('{"amount": 5}', None, "not_executed", "held", None, "filter"),
}

OPENAI_FINISH = {"tools": "tool_calls", "length": "length", "filter": "content_filter"}
ANTHROPIC_STOP = {"tools": "tool_use", "length": "max_tokens", "filter": "refusal"}


def events(wire: str, case: Case, pieces: list[str]) -> list[dict[str, object]]:
    if wire == "openai-chat":
        return openai_chunks(("c1", case.name, pieces), finish=OPENAI_FINISH[case.finish])
    return anthropic_events(("c1", case.name, pieces), stop=ANTHROPIC_STOP[case.finish])


async def one_by_one(items: list[dict[str, object]]) -> AsyncIterator[object]:
    for item in items:
        yield item


def one_after_another(items: list[dict[str, object]]) -> Iterator[object]:
    yield from items


async def by_stream(runner: Runner, items: list[dict[str, object]]) -> Turn:
    async with runner.stream(items) as run:
        async for _ in run:
            pass
    return run.turn


def whole(wire: str, case: Case) -> dict[str, object]:
    if wire == "openai-chat":
        return openai_completion(("c1", case.name, [case.raw]), finish=OPENAI_FINISH[case.finish])
    return anthropic_message(("c1", case.name, json.loads(case.raw or "{}")), stop=ANTHROPIC_STOP[case.finish])


async def enter(entry: str, runner: Runner, wire: str, case: Case) -> Turn:
    """Put the case into the runner by one of its entries."""
    in_one = events(wire, case, [case.raw])
    if entry == "run_sync":
        return runner.run_sync(in_one)
    if entry == "stream":
        return await by_stream(runner, in_one)
    if entry == "execute":
        return await runner.execute(finalize(in_one), wire=wire)
    sources = {
        "run, async stream, a character a piece": lambda: one_by_one(events(wire, case, list(case.raw))),
        "run, sync stream": lambda: one_after_another(in_one),
        "run, raw bytes": lambda: iter((openai_sse if wire == "openai-chat" else anthropic_sse)(in_one).pieces),
        "run, list": lambda: in_one,
        "run, whole response": lambda: whole(wire, case),
    }
    return await runner.run(sources[entry]())


ENTRIES = (
    "run, async stream, a character a piece",
    "run, sync stream",
    "run, raw bytes",
    "run, list",
    "stream",
    "run_sync",
    "execute",
    "run, whole response",
)


def can_be_whole_message(case: Case) -> bool:
    """An object, strictly: a whole message of this wire has objects, not texts."""
    try:
        given = json.loads(case.raw or "{}")
    except ValueError:
        return False
    return isinstance(given, dict) and "NaN" not in case.raw and case.raw.count('"amount"') < 2


WAYS = [
    (name, wire, entry)
    for name, case in CASES.items()
    for wire in ("openai-chat", "anthropic-messages")
    for entry in ENTRIES
    if entry != "run, whole response" or wire == "openai-chat" or can_be_whole_message(case)
]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(("name", "wire", "entry"), WAYS)
async def test_verdict(name: str, wire: str, entry: str):
    """Run with exactly these values, or not run with exactly this code."""
    case = CASES[name]
    registry = ToolRegistry()
    ran: list[tuple[int, str, float]] = []

    @registry.tool
    def pay(amount: int = 1, to: str = "nobody", rate: float = 1.0) -> str:
        ran.append((amount, to, rate))
        return "paid"

    turn = await enter(entry, Runner(registry), wire, case)

    (outcome,) = turn.outcomes
    assert ran == ([] if case.ran is None else [case.ran])
    assert (outcome.status, outcome.code, outcome.grade) == (case.status, case.code, case.grade)
    assert outcome.started == (case.ran is not None)
    assert turn.needs_reply
    assert json.loads(json.dumps(turn.messages())) == turn.messages()
    json.dumps(turn.messages(), ensure_ascii=False).encode()  # a lone surrogate would end the next request


@pytest.mark.parametrize("name", CASES)
async def test_all_at_once(name: str):
    """Beside a good call the verdict is the same, and the good call runs."""
    case = CASES[name]
    registry = ToolRegistry()
    ran: list[tuple[int, str, float]] = []

    @registry.tool
    async def pay(amount: int = 1, to: str = "nobody", rate: float = 1.0) -> str:
        ran.append((amount, to, rate))
        return "paid"

    @registry.tool
    async def other() -> str:
        return "fine"

    chunks = openai_chunks(("c1", case.name, [case.raw]), ("c2", "other", ["{}"]), finish=OPENAI_FINISH[case.finish])
    turn = await Runner(registry).run(chunks)

    first, second = turn.outcomes
    assert (first.status, first.code, first.grade) == (case.status, case.code, case.grade)
    assert ran == ([] if case.ran is None else [case.ran])
    assert second.status == ("succeeded" if case.finish == "tools" else "not_executed")
