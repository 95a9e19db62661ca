"""Damage is done by seed, and what toolrun makes of it is what each kind says."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.repairs.faults import make_call
from toolrun import Grade, RepairedArguments, Runner, Tool, ToolRegistry, repair_arguments
from toolrun.testing import DAMAGE_KINDS, DamagedArguments, ScriptedCall, ScriptedResponse, assert_handled, damaged

ARGUMENTS = {"amount": 20, "to": "Kari", "note": 'say "hi"', "now": True, "tags": ["a", "b"]}


def pay(amount: int, to: str, note: str = "", *, now: bool = False, tags: list[str] | None = None) -> None:
    """Pay somebody."""


PAY = Tool.from_function(pay)


def test_every_kind_is_handled() -> None:
    """Of random calls: repaired to what was meant, with the grade that it may have, or refused."""
    random = Random(20261130)
    seen = set()
    for seed in range(60):
        call = make_call(random)
        tool = Tool.from_json_schema(name="f", input_schema=call.schema, handler=lambda **_: None)
        for broken in damaged(call.arguments, tool, seed=seed):
            assert_handled(broken, repair_arguments(broken.text, tool))
            seen.add(broken.kind)

    assert seen == set(DAMAGE_KINDS)


class Leg(BaseModel):
    to: str
    day: int | None = None


def book(legs: list[Leg], cabin: Literal["eco", "first"] | int = "eco", pets: dict[str, int] | None = None) -> None:
    """Book a journey."""


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_schemas_of_every_form(seed: int) -> None:
    """References and unions too: other arguments than the model meant never run."""
    tool = Tool.from_function(book)
    arguments = {"legs": [{"to": 'the "Bay"', "day": 3}, {"to": "12"}], "cabin": "first", "pets": {"cat": 1}}

    for broken in damaged(arguments, tool, seed=seed):
        assert_handled(broken, repair_arguments(broken.text, tool))


def test_calls_with_damage() -> None:
    """The outcome of a call is judged in the same way."""
    registry = ToolRegistry([PAY])
    broken = damaged(ARGUMENTS, PAY, seed=3)
    with Runner(registry) as runner:
        for each in broken:
            turn = runner.run_sync(ScriptedResponse(calls=[ScriptedCall("pay", each.text)]).events("openai-chat"))
            assert_handled(each, turn.outcomes[0])


def test_the_same_seed() -> None:
    """It does the same damage, whatever kinds are asked for; another seed does other damage."""
    first = damaged(ARGUMENTS, PAY, seed=1)

    assert damaged(ARGUMENTS, PAY, seed=1) == first
    assert damaged(ARGUMENTS, PAY, seed=1, kinds=["cut"]) == [each for each in first if each.kind == "cut"]
    assert damaged(ARGUMENTS, PAY, seed=2) != first


def test_what_does_not_fit_is_left_out() -> None:
    """There is no list in these arguments, and the schema takes any key."""
    open_schema = {"properties": {"to": {"type": "string"}}, "additionalProperties": True}
    definition = {"name": "pay", "input_schema": open_schema}

    assert damaged({"to": "Kari"}, definition, kinds=["no_inner_closer", "tuple_for_list", "unknown_key"]) == []


def test_unknown_kinds() -> None:
    """A misspelt kind is not passed over."""
    with pytest.raises(KeyError, match="fences"):
        damaged(ARGUMENTS, PAY, kinds=["fences"])


def test_kinds_are_described() -> None:
    """Each has a sentence, and a place in the table of what must come of it."""
    assert all(kind.description.endswith((".", "?")) for kind in DAMAGE_KINDS.values())
    assert {kind.grade for kind in DAMAGE_KINDS.values()} == {Grade.LOSSLESS, Grade.SCHEMA_UNIQUE, None}


def got(arguments: dict[str, Any] | None, grade: Grade | None = None) -> RepairedArguments:
    return RepairedArguments(
        raw="",
        arguments=arguments,
        text=None if arguments is None else json.dumps(arguments),
        grade=grade,
        refusal=None,
        message="Not run: no",
        edits=(),
        records=(),
    )


MEANT = {"n": 1}


@pytest.mark.parametrize(
    ("expected", "grade", "certain", "came", "text"),
    [
        (MEANT, "lossless", True, got(None), "came nothing, not {'n': 1}; the model is told: Not run: no"),
        (MEANT, "lossless", False, got({"n": 2}, Grade.LOSSLESS), "came {'n': 2}, not {'n': 1}"),
        (MEANT, "lossless", True, got({"n": True}, Grade.LOSSLESS), "came {'n': True}, not {'n': 1}"),
        (None, None, True, got(MEANT, Grade.LOSSLESS), "came {'n': 1}; it must be refused"),
        (
            MEANT,
            "lossless",
            True,
            got(MEANT, Grade.SCHEMA_UNIQUE),
            "came the right arguments with the grade schema_unique; at worst it may be lossless",
        ),
        (
            MEANT,
            "schema_unique",
            True,
            got(MEANT, Grade.LOSSY),
            "came the right arguments with the grade lossy; at worst it may be schema_unique",
        ),
    ],
)
def test_what_is_wrong(expected: Any, grade: Any, certain: bool, came: RepairedArguments, text: str) -> None:
    """The failure says what came of which text."""
    broken = DamagedArguments("fence", "```", expected, grade and Grade(grade), certain)

    with pytest.raises(AssertionError) as raised:
        assert_handled(broken, came)
    assert str(raised.value) == f"fence: of '```' {text}"


@pytest.mark.parametrize(
    ("certain", "came"),
    [(False, got(None)), (True, got(MEANT, Grade.LOSSLESS)), (True, got(MEANT, Grade.HOOK))],
)
def test_what_is_right(certain: bool, came: RepairedArguments) -> None:
    """A refusal where nothing is certain, a better grade, and whatever a person's own hook decides."""
    assert_handled(DamagedArguments("quotes", "{", MEANT, Grade.SCHEMA_UNIQUE, certain), came)
