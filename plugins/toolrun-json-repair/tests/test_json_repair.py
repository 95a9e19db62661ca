"""What is proposed, what is not, and who runs it: all of it through a runner."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from toolrun import FinishPolicy, Outcome, Runner, Tool, ToolRegistry
from toolrun.repairs import lossless
from toolrun_json_repair import JsonRepair

CASES = Path(__file__).parents[3] / "tests/cases/repair_cases.jsonl"
PARAMETERS = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "cwd": {"type": "string"},
        "n": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "more": {"type": "object", "additionalProperties": True},
    },
}
ALONE = (JsonRepair(),)
BARE = '{"text": back at ten, "n": 1}'


def take(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def tool_of(name: str = "take", parameters: dict[str, Any] = PARAMETERS, **options: Any) -> Tool:
    return Tool.from_json_schema(name=name, input_schema=parameters, handler=take, **{"repair": "lossy", **options})


def outcome_of(
    raw: str,
    tool: Tool | None = None,
    *,
    chain: Any = ALONE,
    finish: str | None = "tool_calls",
    on: Any = None,
) -> Outcome:
    registry = ToolRegistry([tool or tool_of()])
    if on is not None:
        registry.repair(on=on)(JsonRepair())
    call = {"id": "c1", "type": "function", "function": {"name": registry.names[0], "arguments": raw}}
    response = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": finish}]}
    policy = FinishPolicy(missing_finish="infer")
    (outcome,) = Runner(registry, repairs=chain, policy=policy).run_sync(response).outcomes
    return outcome


@pytest.mark.parametrize("chain", [ALONE, (*lossless(), JsonRepair())], ids=["alone", "behind the built-in"])
@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        (BARE, {"text": "back at ten", "n": 1}),
        ('{"text": "git -m "wip", "cwd": "/srv"}', {"text": 'git -m "wip', "cwd": "/srv"}),
        ('{"tags": [red wine, "b"], "n": -5}', {"tags": ["red wine", "b"], "n": -5}),
        ('{"text": b c, "cwd": "\\u00e9t\\u00e9 \\ud83d\\ude00"}', {"text": "b c", "cwd": "été 😀"}),
        (
            '{"text": ok then, "more": {"on": true, "off": null}}',
            {"text": "ok then", "more": {"on": True, "off": None}},
        ),
    ],
)
def test_proposals(raw: str, arguments: dict[str, Any], chain: Any):
    """What keeps every character and key runs, graded lossy, with a note of what was done."""
    outcome = outcome_of(raw, chain=chain)

    record = next(record for record in outcome.repairs if record.hook == "JsonRepair")
    assert (outcome.status, outcome.arguments, outcome.grade) == ("succeeded", arguments, "lossy")
    assert (record.accepted, record.raw, record.grade) == (True, raw, "lossy")
    assert record.note.startswith("json_repair 0.")


REFUSED = {
    "nothing": "",
    "an empty object": "{,}",
    "no object": '["a" "b"]',
    "two objects": '{"n": 1}{"text": "a"}',
    "a doubled key": '{"text": back at ten, "n": 1, "n": 2}',
    "a key that ends up in a value": '{"text": say \'cwd\': b, "n": 1}',
    "a quoted key that ends up in a value": '{"text": "say "cwd": b", "n": 1}',
    "a key that the tool does not know": '{"text": back at ten, "dry_run": true}',
    "a missing value": '{"text": , "n": 1}',
    "undefined": '{"text": undefined, "cwd": b c}',
    "not a number": '{"text": NaN, "cwd": b c}',
    "an ellipsis": '{"tags": [a, ...]}',
    "a thousands separator": '{"text": back at ten, "n": 1,200}',
    "leading zeros": '{"text": back at ten, "n": 007}',
    "a number that is written in another way": '{"more": {"x": 1.10}, "text": back at ten}',
    "an overflow": '{"more": {"x": 1e999}, "text": back at ten}',
    "an odd escape": '{"text": echo \\$HOME}',
    "a short escape": '{"text": x\\u00}',
    "words behind the object": '{"text": back at ten} as agreed {"n": 1}',
    "an open object": '{"more": {"x": 1}, "text": back at ten, "more": {"x": 1}',
    "an open list": '{"tags": [a b, {"x": 1}',
    "an open string": '{"text": back at ten, "cwd": "}',
    "an open string in a list": '{"tags": [a b], "text": "]}',
    "deep": '{"more": ' + '{"a":' * 1500 + "b c" + "}" * 1501,
    "not what the schema says": '{"n": back at ten}',
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED)
def test_refusals(raw: str):
    """Whatever may have been cut, dropped, invented or read in another way does not run."""
    outcome = outcome_of(raw, tool_of(parameters={**PARAMETERS, "required": [] if raw else ["text"]}))

    assert (outcome.status, outcome.arguments) == ("refused", None)


def test_every_prefix():
    """Under a finish reason that says that all is well, no part of the arguments runs."""
    whole = {
        "text": 'if (a) { say("}") } // {x}, {"n": 2}',
        "more": {"a": [{"b": "}"}, [1.5, True]], "c": {"d": "e"}},
        "tags": ["x", "y z", "}"],
        "n": 123,
    }
    raw = json.dumps(whole)

    ran = [end for end in range(1, len(raw)) if outcome_of(raw[:end]).status == "succeeded"]

    assert ran == []
    assert outcome_of(raw).arguments == whole


@pytest.mark.parametrize("finish", ["length", "max_tokens", "content_filter", "error"])
@pytest.mark.parametrize("on", [None, ["incomplete", "parse"]])
def test_finish_reasons_that_cut(finish: str, on: list[str] | None):
    """Nothing is proposed for a call that was cut, whatever the hook is bound to."""
    outcome = outcome_of(BARE, finish=finish, on=on)

    assert (outcome.status, outcome.repairs) == ("refused", ())


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"repair": "lossy"}, "succeeded"),
        ({"repair": "lossy", "destructive": True}, "refused"),
        ({"repair": "schema_unique"}, "refused"),
        ({"repair": "lossless"}, "refused"),
        ({"repair": "never"}, "refused"),
    ],
)
def test_floors(options: dict[str, Any], status: str):
    """Only a tool that is opened to lossy repair and not destructive runs a proposal; the record says why not."""
    outcome = outcome_of(BARE, tool_of(**options))

    (record,) = outcome.repairs
    refusal = None if status == "succeeded" else "the tool does not admit a lossy repair"
    assert (outcome.status, record.refusal) == (status, refusal)


def test_the_cases():
    """Behind the built-in chain it decides what cannot be known in two cases, and spoils none that is right."""
    differing = []
    for line in CASES.read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["category"] == "tool_name":
            continue
        tool = tool_of(case["tool_schema"]["name"], case["tool_schema"]["parameters"])
        finish = case.get("finish_reason", "tool_calls")
        outcome = outcome_of(case["raw"], tool, chain=(*lossless(), JsonRepair()), finish=finish)
        untouched = outcome.grade == "exact" and case.get("untouched_ok", False)
        if not untouched and outcome.arguments != case["expected"]:
            differing.append(case["id"])

    assert differing == ["uq-04", "uq-06"]


def test_time():
    """A text that would take json_repair minutes is given up in time, on record."""
    raw = '{"tags": ["' + 'a" ","' * 3_000 + '"]}'
    began = time.monotonic()

    outcome = outcome_of(raw, chain=(JsonRepair(seconds=0.05),))

    assert [record.refusal for record in outcome.repairs] == ["the hook raised TimeoutError: gave up after 0.05 s"]
    assert time.monotonic() - began < 5
    assert sys.getprofile() is None


def test_size():
    """A longer text than allowed is passed over."""
    assert outcome_of(BARE, chain=(JsonRepair(max_characters=len(BARE)),)).status == "succeeded"
    assert outcome_of(BARE, chain=(JsonRepair(max_characters=len(BARE) - 1),)).repairs == ()


@pytest.mark.parametrize("limits", [{"max_characters": 0}, {"seconds": 0.0}])
def test_limits(limits: dict[str, Any]):
    """A limit of nothing is a mistake."""
    with pytest.raises(ValueError, match="limits must be above 0"):
        JsonRepair(**limits)


def test_entry_point():
    """The name in configuration files leads to the hook."""
    (found,) = entry_points(group="toolrun.repairs", name="json-repair")

    assert found.load() is JsonRepair
