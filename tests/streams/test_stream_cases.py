"""Odd streams, written after public bug reports, held against what must become of them."""

from __future__ import annotations

import copy
import functools
import json
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from toolrun import FinishPolicy, Runner, Tool, ToolRegistry, finalize
from toolrun.wires import WIRES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolrun import ToolCall

Json = dict[str, Any]

FILE = Path(__file__).resolve().parents[1] / "cases" / "stream_cases.jsonl"
ALL: list[Json] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").split("\n") if line]
TESTED = ("openai-chat", "anthropic-messages")
CASES = [case for case in ALL if case["wire"] in TESTED]
BY_ID = {case["id"]: case for case in CASES}

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

SPLIT = [case for case in CASES if case["id"] not in ABOUT_IDENTICAL_DELTAS]

RUN_HELD = FinishPolicy(run_held={"length"})
INFER = FinishPolicy(missing_finish="infer")

each = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])


# -- comparing ------------------------------------------------------------------------------


def client_calls(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls that cases list: not those that the provider runs itself."""
    return [call for call in calls if not call.provider_executed]


def same_text(got: str, want: str) -> bool:
    """Compare argument text; what came as an object, or is written down anew in an alternative, as JSON."""
    if got == want:
        return True
    try:
        return bool(json.loads(got) == json.loads(want))
    except ValueError:
        return False


def same_call(got: ToolCall, want: Json) -> bool:
    return (
        (got.synthetic_id and bool(got.id) if want["id"] is None else got.id == want["id"])
        and got.name == want["name"]
        and got.arguments == want["arguments"]
        and got.status.value == want["status"]
        and same_text(got.raw_arguments, want["raw"])
    )


def matches(answer: Json, calls: Sequence[ToolCall], executable: list[str | None]) -> bool:
    return (
        len(calls) == len(answer["calls"])
        and all(same_call(got, want) for got, want in zip(calls, answer["calls"], strict=True))
        and executable == answer["executable"]
    )


def answers(case: Json, *, policy: str | None = None) -> list[Json]:
    """The primary answer and the alternatives; those of a policy only under that policy."""
    expected = case["expected"]
    alternatives = [other for other in expected.get("alternatives", ()) if other.get("policy") == policy]
    return alternatives if policy else [expected, *alternatives]


def names_in(case: Json) -> set[str]:
    """Every name that a call of the case may be known by."""
    listed = [case["expected"], *case["expected"].get("alternatives", ())]
    return {call["name"] for answer in listed for call in answer["calls"] if call["name"]}


def registry_for(case: Json, ran: list[tuple[str, Json]]) -> ToolRegistry:
    """Tools that take any arguments and note what ran, the provider's own names included."""
    finalized = finalize(case["events"], wire=case["wire"], end=case["end"])
    seen = names_in(case) | {call.name for call in finalized if call.name}

    async def note(name: str, /, **arguments: Any) -> str:
        ran.append((name, arguments))
        return "done"

    return ToolRegistry(
        Tool.from_json_schema(
            name=name,
            input_schema={"type": "object", "additionalProperties": True},
            handler=functools.partial(note, name),
        )
        for name in REGISTERED.get(case["id"], sorted(seen))
    )


def source(case: Json, events: list[Json]) -> Any:
    """The events as a source that ends like the case does."""

    def broken() -> Iterator[Json]:
        yield from events
        raise ConnectionResetError("cut")

    return broken() if case["end"] == "error" else list(events)


async def run(case: Json, *, events: list[Json] | None = None, policy: FinishPolicy | None = None) -> list[Any]:
    """Run a case without any repair; give what ran, with what."""
    ran: list[tuple[str, Json]] = []
    registry = registry_for(case, ran)
    end = "auto" if case["end"] == "error" else case["end"]
    async with Runner(registry, repairs=(), policy=policy, on_stream_error="return", max_concurrency=1) as runner:
        turn = await runner.run(source(case, events or case["events"]), wire=case["wire"], end=end)
    client = [call for call in turn.calls if not call.provider_executed]
    assert [outcome.call for outcome in turn.outcomes] == client
    turn.messages()
    return ran


# -- scored ---------------------------------------------------------------------------------


def test_numbers() -> None:
    """The cases of two wires are tested here; those of the others stand beside their wires, in `tests/wires`."""
    assert Counter(case["wire"] for case in CASES) == {"openai-chat": 84, "anthropic-messages": 20}
    elsewhere = Counter(case["wire"] for case in ALL if case["wire"] not in TESTED)
    assert elsewhere == {
        "openai-responses": 17,
        "gemini": 15,
        "bedrock-converse": 7,
        "ollama": 7,
        "cohere-v2": 5,
        "mistral": 3,
    }
    assert elsewhere.keys() <= WIRES.keys()


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
        (name, call["arguments"])
        for answer in answers(case)
        for call in answer["calls"]
        for name in (call["name"], *REGISTERED.get(case["id"], ()))
        if call["status"] == "ok"
    ]
    assert all(item in allowed for item in await run(case))


@pytest.mark.parametrize("case", SPLIT, ids=lambda case: case["id"])
def test_split_elsewhere(case: Json) -> None:
    """Where the argument text is split does not matter."""
    whole = finalize(case["events"], wire=case["wire"], end=case["end"])
    for seed in range(6):
        events = split_events(case, f"{case['id']}-{seed}")
        assert finalize(events, wire=case["wire"], end=case["end"]) == whole, events


# -- policies -------------------------------------------------------------------------------

HELD = [case for case in CASES if answers(case, policy="run_held")]


def test_held_cases() -> None:
    """Two cases have an answer that only `run_held` gives."""
    assert [case["id"] for case in HELD] == [
        "oc-035-length-parallel-first-complete",
        "an-007-max-tokens-first-call-whole",
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


# -- splitting ------------------------------------------------------------------------------


def split_events(case: Json, seed: str) -> list[Json]:
    """The same events with each piece of argument text split at random places, into events of their own.

    The pieces after the first carry the index alone, like those of a server that says who a call is once.
    """
    random_ = random.Random(seed)
    split = _split_chat if case["wire"] == "openai-chat" else _split_messages
    return [part for event in case["events"] for part in split(event, random_)]


def pieces(text: str, random_: random.Random) -> list[str]:
    cuts = sorted(random_.sample(range(1, len(text)), k=min(random_.randint(1, 4), len(text) - 1)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _split_chat(event: Json, random_: random.Random) -> Iterator[Json]:
    """The pieces come first, then the event without them: a chunk's deltas count before its finish."""
    rest = copy.deepcopy(event)
    for choice in rest.get("choices") or ():
        delta = choice.get("delta") or {}
        calls = delta.pop("tool_calls", None)
        for call in [calls] if isinstance(calls, dict) else calls or ():
            for piece in _split_call(call, random_):
                yield _chunk(event, choice, {"tool_calls": [piece]})
        legacy = delta.pop("function_call", None)
        for piece in _split_call({"function": legacy}, random_) if legacy else ():
            yield _chunk(event, choice, {"function_call": piece["function"]})
    yield rest


def _chunk(event: Json, choice: Json, delta: Json) -> Json:
    return {**event, "choices": [{"index": choice.get("index", 0), "delta": delta, "finish_reason": None}]}


def _split_call(call: Json, random_: random.Random) -> Iterator[Json]:
    function = call.get("function")
    text = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(text, str) or len(text) < 2:
        yield call
        return
    first, *others = pieces(text, random_)
    yield {**call, "function": {**function, "arguments": first}}
    place = {"index": call["index"]} if "index" in call else {}
    for piece in others:
        yield {**place, "function": {"arguments": piece}}


def _split_messages(event: Json, random_: random.Random) -> Iterator[Json]:
    delta = event.get("delta") or {}
    text = delta.get("partial_json", "")
    if event.get("type") != "content_block_delta" or len(text) < 2:
        yield event
        return
    for piece in pieces(text, random_):
        yield {**event, "delta": {**delta, "partial_json": piece}}
