"""fakellm (PyPI): rules in YAML, with tool calls for two protocols."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import anthropic
import openai
import pytest

from tests.chaos_servers.clients import WEATHER, Clients
from tests.chaos_servers.programs import free_port, program, running

WIRES = ["openai-chat", "anthropic-messages"]
CALLS = {
    "case-good": [("get_weather", WEATHER), ("ping", {})],
    "case-text": [("get_weather", {**WEATHER, "days": "3"})],
    "case-wrong": [("get_weather", {**WEATHER, "days": "many"})],
    "case-extra": [("get_weather", {**WEATHER, "unit": "c"})],
    "case-unknown": [("delete_everything", {})],
}


@pytest.fixture(scope="module")
def fakellm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    rules = [
        *(
            {"name": f"after {role}", "when": {"previous_message_role": role}, "respond": {"content": "Take a coat."}}
            for role in ("assistant", "tool")
        ),
        {"name": "down", "when": {"messages_contain": "case-down"}, "respond": {"status": 500, "error": "down"}},
        *(
            {
                "name": case,
                "when": {"messages_contain": case},
                "respond": {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]},
            }
            for case, calls in CALLS.items()
        ),
    ]
    config: Path = tmp_path_factory.mktemp("fakellm") / "fakellm.yaml"
    config.write_text(json.dumps({"version": 1, "rules": rules}), "utf-8")
    port = free_port()
    command = [program("fakellm"), "serve", "--port", str(port), "--config", str(config)]
    with running(command, f"http://127.0.0.1:{port}") as url:
        yield url


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("case-good", [("succeeded", None)] * 2),
        ("case-text", [("succeeded", None)]),
        ("case-wrong", [("refused", "schema")]),
        ("case-extra", [("refused", "unknown_key")]),
        ("case-unknown", [("refused", "unknown_tool")]),
    ],
)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", WIRES)
def test_conversation(
    wire: str, stream: bool, case: str, told: list[tuple[str, str | None]], fakellm: str, clients: Clients
) -> None:
    """What fits runs, what does not is refused; either way the results go back, and the model has the last word."""
    first, last = clients.converse(fakellm, wire, stream=stream, prompt=case)

    assert first.told == told
    assert sorted(first.ran, key=str) == (
        [("get_weather", WEATHER), *CALLS[case][1:]] if "succeeded" in told[0] else []
    )
    assert (last.turn.text, last.ran) == ("Take a coat.", [])


@pytest.mark.parametrize("wire", WIRES)
def test_down(wire: str, fakellm: str, clients: Clients) -> None:
    """An error of the provider is the SDK's to raise. Asked for a stream, fakellm sends a text instead: nothing runs."""
    with pytest.raises((openai.InternalServerError, anthropic.InternalServerError)):
        clients.exchange(fakellm, wire, stream=False, prompt="case-down")

    seen = clients.exchange(fakellm, wire, prompt="case-down")
    assert (seen.ran, seen.told) == ([], [])
