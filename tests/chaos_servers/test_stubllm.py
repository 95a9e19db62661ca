"""stubllm (PyPI): fixtures in YAML, with argument texts as they are written. Its streams of calls have no end of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.chaos_servers.clients import WEATHER, Clients, Json
from tests.chaos_servers.programs import free_port, program, running
from toolrun import FinishPolicy

GOOD = json.dumps(WEATHER)
CALLS = {
    "case-good": [("get_weather", GOOD)],
    "case-two": [("get_weather", GOOD), ("ping", "{}")],
    "case-ping": [("ping", "{}")],
    "case-fenced": [("get_weather", f"```json\n{GOOD}\n```")],
    "case-comma": [("get_weather", '{"city": "Oslo, Norway", "days": 3,}')],
    "case-cut": [("get_weather", GOOD[:15])],
    "case-twice": [("get_weather", '{"city": "Oslo", "city": "Bergen", "days": 3}')],
    "case-nan": [("get_weather", '{"city": "Oslo", "days": NaN}')],
    "case-true": [("get_weather", '{"city": "Oslo", "days": true}')],
    "case-list": [("get_weather", f"[{GOOD}, {GOOD}]")],
}
RAN = [("get_weather", WEATHER)]


@pytest.fixture(scope="module")
def stubllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    fixtures = [
        {
            "name": case,
            "match": {"messages": [{"role": "user", "content": {"exact": case}}]},
            "response": {"tool_calls": [_entry(number, *call) for number, call in enumerate(calls)]},
        }
        for case, calls in CALLS.items()
    ]
    file = tmp_path_factory.mktemp("stubllm") / "calls.json"
    file.write_text(json.dumps({"fixtures": fixtures}), "utf-8")
    port = free_port()
    command = [program("stubllm"), "serve", "--port", str(port), "--fixture-file", str(file), "--log-level", "error"]
    with running(command, f"http://127.0.0.1:{port}") as url:
        yield url


def _entry(number: int, name: str, arguments: str) -> Json:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("case", "ran", "told"),
    [
        ("case-good", RAN, [("succeeded", None)]),
        ("case-two", [*RAN, ("ping", {})], [("succeeded", None)] * 2),
        ("case-fenced", RAN, [("succeeded", None)]),
        ("case-comma", RAN, [("succeeded", None)]),
        ("case-cut", [], [("refused", "truncated")]),
        ("case-twice", [], [("refused", "duplicate_key")]),
        ("case-nan", [], [("refused", "non_finite")]),
        ("case-true", [], [("refused", "schema")]),
        ("case-list", [], [("refused", "not_object")]),
    ],
)
def test_whole_chat(
    case: str, ran: list[tuple[str, Json]], told: list[tuple[str, str | None]], stubllm: str, clients: Clients
) -> None:
    """Whole responses: every argument text gets the verdict that it gets anywhere."""
    seen = clients.exchange(stubllm, "openai-chat", stream=False, prompt=case)

    assert (sorted(seen.ran, key=str), seen.told) == (ran, told)


def test_streamed_chat(stubllm: str, clients: Clients) -> None:
    """Its stream has no finish reason, and the SDK keeps `[DONE]` to itself: nothing runs, unless one says so."""
    cautious = clients.exchange(stubllm, "openai-chat", prompt="case-good")
    trusting = clients.exchange(stubllm, "openai-chat", prompt="case-good", policy=FinishPolicy(missing_finish="infer"))

    assert (cautious.ran, cautious.told) == ([], [("refused", "no_finish")])
    assert (trusting.ran, trusting.told) == (RAN, [("succeeded", None)])


def test_streamed_chat_two_calls(stubllm: str, clients: Clients) -> None:
    """It sends both calls under one index; they are two calls all the same."""
    seen = clients.exchange(stubllm, "openai-chat", prompt="case-two", policy=FinishPolicy(missing_finish="infer"))

    assert (sorted(seen.ran, key=str), seen.told) == ([*RAN, ("ping", {})], [("succeeded", None)] * 2)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_messages(stream: bool, stubllm: str, clients: Clients) -> None:
    """The Anthropic stream is sent without the arguments: what needs them is refused, what needs none runs."""
    weather = clients.exchange(stubllm, "anthropic-messages", stream=stream, prompt="case-good")
    ping = clients.exchange(stubllm, "anthropic-messages", stream=stream, prompt="case-ping")

    if stream:
        assert (weather.ran, weather.told) == ([], [("refused", "schema")])
    else:
        assert (weather.ran, weather.told) == (RAN, [("succeeded", None)])
    assert (ping.ran, ping.told) == ([("ping", {})], [("succeeded", None)])
