"""The page that compares: what it says of toolrun is what comes out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from toolrun import Runner, Tool, ToolRegistry

PAGE = (Path(__file__).parents[2] / "docs/explanation/peers.md").read_text("utf-8")


def pay(amount: int = 1, to: str = "nobody", rate: float = 1.0) -> list[object]:
    """Pay somebody."""
    return [amount, to, rate]


def rows(header: str) -> dict[str, list[str]]:
    """The rows of a table by their first cell."""
    lines = PAGE.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {header} |"))
    cells = [re.split(r" \| ", line.strip("| ")) for line in lines[start + 2 : lines.index("", start)]]
    return {first: rest for first, *rest in cells}


INPUTS = rows("input")
VALUES = {
    "trailing comma": [5, "al", 1.0],
    "Python literal": [5, "al", 1.0],
    "code fence": [5, "nobody", 1.0],
    "line break in a text": [1, "a\nb", 1.0],
    "a text in a text": [5, "nobody", 1.0],
    "a text for a number": [5, "nobody", 1.0],
    "`null`": [1, "nobody", 1.0],
}


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry([Tool.from_function(pay)])


@pytest.mark.parametrize("name", INPUTS)
def test_arguments(registry: ToolRegistry, name: str) -> None:
    """Each text as it stands on the page."""
    shown, finish, told, _ = INPUTS[name]
    span = re.fullmatch(r"(`+) ?(.*?) ?\1", shown)
    assert span is not None
    function = {"name": "pay", "arguments": span[2].replace("⏎", "\n")}
    message = {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    with Runner(registry) as runner:
        (outcome,) = runner.run_sync({"choices": [{"message": message, "finish_reason": finish.strip("`")}]}).outcomes

    assert f"{outcome.status}, {outcome.code or outcome.grade}" == told
    assert outcome.value == VALUES.get(name)


def delta(index: int | None = 0, id: str | None = None, name: str | None = None, arguments: object = None) -> Any:
    told = {"name": name, "arguments": arguments}
    call = {"index": index, "id": id, "function": {key: value for key, value in told.items() if value is not None}}
    call = {key: value for key, value in call.items() if value is not None}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
FIVE, SIX = '{"amount": 5}', '{"amount": 6}'
STREAMS = {
    "the name in every delta": [
        delta(0, "c1", "pay", '{"amount"'),
        delta(0, None, "pay", ": "),
        delta(0, None, "pay", "5}"),
        END,
    ],
    "two calls without an index": [delta(None, "c1", "pay", FIVE), delta(None, "c2", "pay", SIX), END],
    "two ids at one index": [delta(0, "c1", "pay", FIVE), delta(0, "c2", "pay", SIX), END],
    "two calls with the same id": [delta(0, "c1", "pay", FIVE), delta(1, "c1", "pay", SIX), END],
    "the name in two pieces": [delta(0, "c1", "pa"), delta(0, None, "y"), delta(0, None, None, FIVE), END],
    "arguments as an object": [delta(0, "c1", "pay", {"amount": 5}), END],
    "a clean end without a finish": [delta(0, "c1", "pay", FIVE)],
    "a clean end in the middle of the arguments": [delta(0, "c1", "pay", '{"amount": 5, "to": "al')],
}


@pytest.mark.parametrize("name", rows("stream"))
def test_streams(registry: ToolRegistry, name: str) -> None:
    """Each stream by what it is called on the page."""
    with Runner(registry) as runner:
        outcomes = runner.run_sync(STREAMS[name]).outcomes
    ran = ", ".join(f"`pay({outcome.value[0]})`" for outcome in outcomes if outcome.status == "succeeded")
    refused = ", ".join(f"{outcome.status}, {outcome.code}" for outcome in outcomes if outcome.status != "succeeded")

    assert ran + refused == rows("stream")[name][0]


def test_cases_are_counted() -> None:
    """The page says how many cases there are."""
    cases = Path(__file__).parents[1] / "cases"
    repair, streams = (
        len((cases / f"{kind}_cases.jsonl").read_text("utf-8").splitlines()) for kind in ("repair", "stream")
    )

    assert f"{repair} for repair and {streams}\nstreams" in PAGE
