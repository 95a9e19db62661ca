"""Odd streams, written after public bug reports, held against what must become of them."""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from toolrun import FinishPolicy, Runner, Tool, ToolRegistry, finalize

from .cases import BY_ID, CASES, answers, client_calls, matches
from .corpus import ENDS, raising
from .splitting import INTERLEAVING, interleaved, second_call, split_events

if TYPE_CHECKING:
    from toolrun import ToolCall

Json = dict[str, Any]

NOT_YET: dict[str, str] = {}
"""Cases that are not answered rightly so far, and why; one that begins to pass must be taken out."""

REGISTERED = {
    "oc-009-name-fragmented": ("get_weather",),
    "oc-049-harmony-token-in-name": ("query_dataset",),
    "oc-108-doubled-id-and-name": ("reverse_search",),
}
"""What is registered where the registry decides; elsewhere every name that occurs."""

ABOUT_IDENTICAL_DELTAS = (
    "oc-026-identical-full-resend",
    "oc-027-fragment-equals-incomplete-buffer",
    "oc-106-full-args-then-fragments",
    "oc-107-resend-of-incomplete-then-rest",
)
"""Cases whose answer rests on where the argument text is split."""

WITHOUT_INDEXES = (
    "oc-003-gemini-compat-no-index-single",
    "oc-004-no-index-two-ids-fragmented",
    "oc-005-mixed-indexed-and-indexless",
    "oc-058-index-null-id-every-chunk",
    "oc-059-two-calls-one-chunk-no-index-no-id",
    "oc-060-same-name-no-id-no-index-two-objects",
    "oc-061-same-name-no-id-continuation-with-name",
    "oc-064-legacy-function-call",
)
"""Cases whose events do not say whose they are: they go on with the last call, so nothing can come between."""

SPLIT = [case for case in CASES if case["id"] not in ABOUT_IDENTICAL_DELTAS]

RUN_HELD = FinishPolicy(run_held={"length"})
INFER = FinishPolicy(missing_finish="infer")

each = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])


# -- running ------------------------------------------------------------------------------


def names_in(case: Json) -> set[str]:
    """Every name that a call of the case may be known by."""
    listed = [case["expected"], *case["expected"].get("alternatives", ())]
    return {call["name"] for answer in listed for call in answer["calls"] if call["name"]}


TAKES_ANYTHING: Json = {"type": "object", "additionalProperties": True}
TAKES_TEXT: Json = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def registry_for(case: Json, ran: list[tuple[str, Json]]) -> ToolRegistry:
    """Tools that take any arguments and note what ran, the provider's own names included."""
    finalized = finalize(case["events"], wire=case["wire"], end=case["end"])
    seen = names_in(case) | {call.name for call in finalized if call.name}
    free = {call.name for call in finalized if call.kind == "custom"}

    async def note(name: str, /, **arguments: Any) -> str:
        ran.append((name, arguments))
        return "done"

    return ToolRegistry(
        Tool.from_json_schema(
            name=name,
            input_schema=TAKES_TEXT if name in free else TAKES_ANYTHING,
            handler=functools.partial(note, name),
        )
        for name in REGISTERED.get(case["id"], sorted(seen))
    )


async def run(case: Json, *, policy: FinishPolicy | None = None) -> list[Any]:
    """Run a case without any repair; give what ran, with what."""
    ran: list[tuple[str, Json]] = []
    registry = registry_for(case, ran)
    end = "auto" if case["end"] == "error" else case["end"]
    async with Runner(registry, repairs=(), policy=policy, on_stream_error="return", max_concurrency=1) as runner:
        turn = await runner.run(
            raising(case["events"]) if case["end"] == "error" else case["events"], wire=case["wire"], end=end
        )
    client = [call for call in turn.calls if not call.provider_executed]
    assert [outcome.call for outcome in turn.outcomes] == client
    turn.messages()
    return ran


# -- scored ---------------------------------------------------------------------------------


def test_numbers() -> None:
    """Every case there is, of every wire that has any."""
    assert Counter(case["wire"] for case in CASES) == {
        "openai-chat": 84,
        "anthropic-messages": 20,
        "openai-responses": 17,
        "gemini": 15,
        "bedrock-converse": 7,
        "ollama": 7,
        "cohere-v2": 5,
        "mistral": 3,
    }


def test_not_yet_is_of_cases() -> None:
    """What is excused is a case, and has a reason."""
    assert set(NOT_YET) <= set(BY_ID)
    assert all(NOT_YET.values())


@each
async def test_answer(case: Json) -> None:
    """The calls are the primary answer or an alternative, and so is what may run; a registry decides where it must."""
    calls = client_calls(finalize(case["events"], wire=case["wire"], end=case["end"]))
    executable = [call.name for call in calls if call.executable]
    ran = [name for name, _ in await run(case)]
    if "needs" in case["expected"]:
        executable = [*ran]

    passes = any(matches(answer, calls, executable) for answer in answers(case))

    assert passes == (case["id"] not in NOT_YET), calls
    assert ran == executable
    if case["id"] not in NOT_YET:
        allowed = Counter[str]()
        for answer in answers(case):
            allowed |= Counter(answer["executable"])
        assert Counter(ran) <= allowed


@each
async def test_run_arguments(case: Json) -> None:
    """What runs, runs with the arguments that an answer has for that name."""
    allowed = [
        (name, {"text": call["raw"]} if call["arguments"] is None else call["arguments"])
        for answer in answers(case)
        for call in answer["calls"]
        for name in (call["name"], *REGISTERED.get(case["id"], ()))
        if call["status"] == "ok"
    ]
    assert all(item in allowed for item in await run(case))


ALTERNATIVE = ("oc-063-second-choice", "ge-010-partial-args-two-calls")
"""Cases in which another defensible answer than the first is given."""


@each
def test_primary_answer(case: Json) -> None:
    """Of several defensible answers it is the first, but for the cases that are named here."""
    calls = finalize(case["events"], wire=case["wire"], end=case["end"])
    if "needs" not in case["expected"]:
        assert matches(case["expected"], calls) == (case["id"] not in ALTERNATIVE)


@pytest.mark.parametrize("case", SPLIT, ids=lambda case: case["id"])
def test_split_elsewhere(case: Json) -> None:
    """Where the argument text is split does not matter."""
    whole = finalize(case["events"], wire=case["wire"], end=case["end"])
    for seed in range(6):
        events = split_events(case, f"{case['id']}-{seed}")
        assert finalize(events, wire=case["wire"], end=case["end"]) == whole, events


WOVEN = [case for case in SPLIT if case["wire"] in INTERLEAVING and case["id"] not in WITHOUT_INDEXES]


@pytest.mark.parametrize("case", WOVEN, ids=lambda case: case["id"])
def test_interleaved(case: Json) -> None:
    """A second call between the events of a case, split or not, changes no other call and is whole itself."""
    second = second_call(case["wire"])
    whole = finalize(case["events"], wire=case["wire"], end=case["end"])
    for seed in range(4):
        told = {**case, "events": split_events(case, f"{case['id']}-{seed}")} if seed % 2 else case
        events = interleaved(told, f"{case['id']}-{seed}", ENDS[case["wire"]])
        calls = finalize(events, wire=case["wire"], end=case["end"])
        (woven,) = (call for call in calls if call.name == "second")
        assert (woven.id, woven.raw_arguments) == (second.id, second.raw)
        assert [read(call) for call in calls if call is not woven] == [read(call) for call in whole], events


def read(call: ToolCall) -> tuple[object, ...]:
    """What does not depend on the calls before it."""
    shown = None if call.synthetic_id else call.id
    return (shown, call.name, call.raw_arguments, call.arguments, call.status, call.code, call.executable)


# -- policies -------------------------------------------------------------------------------

HELD = [case for case in CASES if answers(case, policy="run_held")]


def test_held_cases() -> None:
    """Some cases have an answer that only `run_held` gives."""
    assert [case["id"] for case in HELD] == [
        "oc-035-length-parallel-first-complete",
        "an-007-max-tokens-first-call-whole",
        "ge-016-max-tokens-with-call",
        "ol-004-done-reason-length",
        "re-007-incomplete-with-earlier-complete",
    ]


@pytest.mark.parametrize("case", HELD, ids=lambda case: case["id"])
async def test_run_held(case: Json) -> None:
    """`run_held={"length"}` runs whole calls of a cut response, and nothing else changes."""
    (answer,) = answers(case, policy="run_held")
    held = client_calls(finalize(case["events"], wire=case["wire"], end=case["end"], policy=RUN_HELD))
    default = client_calls(finalize(case["events"], wire=case["wire"], end=case["end"]))

    assert matches(answer, held, [call.name for call in held if call.executable])
    assert not matches(answer, default, [call.name for call in default if call.executable])
    assert [name for name, _ in await run(case, policy=RUN_HELD)] == answer["executable"]
    assert await run(case) == []


@pytest.mark.parametrize("case", [case for case in CASES if case not in HELD], ids=lambda case: case["id"])
def test_run_held_changes_nothing_else(case: Json) -> None:
    """Where nothing is held, `run_held` makes no difference."""
    held = finalize(case["events"], wire=case["wire"], end=case["end"], policy=RUN_HELD)
    assert held == finalize(case["events"], wire=case["wire"], end=case["end"])


INFERRED = {
    # The stream just ended: taken for a terminator.
    "oc-039-eof-after-open-brace": [],
    "oc-040-eof-zero-argument-bytes": ["write_file"],
    "oc-041-eof-complete-json-no-finish": ["bash"],
    "an-017-eof-after-block-stop": ["read"],
    "an-018-eof-zero-bytes": ["write_file"],
    # A provider's error stays an error.
    "oc-044-inband-error-empty-choices": [],
    # Calls that are whole by themselves, or by their own end.
    "ge-017-no-finish-reason": ["ls"],
    "ol-003-no-done-chunk": ["weather"],
    "re-011-eof-after-item-done": ["read"],
}
"""What `missing_finish="infer"` runs where the default runs nothing, or might be thought to."""


@each
async def test_missing_finish_inferred(case: Json) -> None:
    """`missing_finish="infer"` takes a bare end for a terminator; with a finish it makes no difference."""
    default = finalize(case["events"], wire=case["wire"], end=case["end"])
    expected = INFERRED.get(case["id"], [call.name for call in client_calls(default) if call.executable])

    inferred = finalize(case["events"], wire=case["wire"], end=case["end"], policy=INFER)

    assert [call.name for call in client_calls(inferred) if call.executable] == expected
    if case["id"] not in REGISTERED:
        assert [name for name, _ in await run(case, policy=INFER)] == expected
    if case["id"] not in INFERRED:
        assert inferred == default
