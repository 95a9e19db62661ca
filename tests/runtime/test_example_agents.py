"""The agents in `examples/`, each against a scripted provider on the loopback interface."""

from __future__ import annotations

import builtins
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .responses import anthropic_events, openai_chunks
from .server import ReplayServer, anthropic_sse, openai_sse

if TYPE_CHECKING:
    from types import ModuleType

    import anthropic
    import openai

EXAMPLES = Path(__file__).parents[2] / "examples"
AGENTS = ("openai_agent", "anthropic_agent", "http_agent")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sent(server: ReplayServer) -> list[Any]:
    return [request.body["messages"] for request in server.requests]


@pytest.mark.parametrize("name", AGENTS)
def test_they_are_short(name: str):
    """An agent of one's own is a page."""
    assert len((EXAMPLES / f"{name}.py").read_text("utf-8").splitlines()) <= 60


async def test_openai(server: ReplayServer, openai_async: openai.AsyncOpenAI, capsys: pytest.CaptureFixture[str]):
    """Two calls, one of them mended; a mistake that the model is told of; then the answer, as it is written."""
    server.will_answer(
        openai_sse(
            openai_chunks(
                ("c0", "get_weather", ['{"city": ', '"Oslo"}']),
                ("c1", "get_weather", ['{"city": "Rome", "unit": "f",}']),
            )
        ),
        openai_sse(openai_chunks(("c2", "get_weather", ['{"city": "Atlantis"}']))),
        openai_sse(openai_chunks(text="Cold, and 66 °F.", finish="stop")),
    )

    text = await load("openai_agent").answer(openai_async, "Oslo and Rome?")

    first, second, third = sent(server)
    assert first == [{"role": "user", "content": "Oslo and Rome?"}]
    assert [message["content"] for message in second[2:]] == ["4 °C", "66 °F"]
    assert third[-1]["content"] == "no weather for Atlantis; there is some for oslo, rome"
    assert (text, capsys.readouterr().out) == ("Cold, and 66 °F.", "Cold, and 66 °F.\n")


@pytest.mark.parametrize(
    ("reply", "paid", "told"),
    [
        ("yes", [(50, "Kari")], "paid 50 € to Kari"),
        ("20", [(20, "Kari")], "paid 20 € to Kari"),
        ("no", [], "Not run: the call was denied: The user said no."),
    ],
)
def test_anthropic(
    server: ReplayServer,
    anthropic_client: anthropic.Anthropic,
    monkeypatch: pytest.MonkeyPatch,
    reply: str,
    paid: list[object],
    told: str,
):
    """Nothing is paid without a yes to exactly what is paid."""
    server.will_answer(
        anthropic_sse(anthropic_events(("t0", "pay", ['{"amount": 50, ', '"to": "Kari"}']))),
        anthropic_sse(anthropic_events(text="Done.", stop="end_turn")),
    )
    asked: list[str] = []
    monkeypatch.setattr(builtins, "input", lambda prompt: asked.append(prompt) or reply)
    agent = load("anthropic_agent")

    text = agent.answer(anthropic_client, "Pay Kari 50.")

    (result,) = sent(server)[1][-1]["content"]
    assert asked == ["pay {'amount': 50, 'to': 'Kari'} - yes, another amount, or no? "]
    assert (agent.paid, text) == (paid, "Done.")
    assert result["content"] == told


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
async def test_http(server: ReplayServer, wire: str):
    """The same loop for two providers, from raw bytes."""
    calls = ("c0", "count", ['{"word": "strawberry", "letter": "r"}'])
    if wire == "openai-chat":
        server.will_answer(openai_sse(openai_chunks(calls)), openai_sse(openai_chunks(text="3", finish="stop")))
    else:
        server.will_answer(
            anthropic_sse(anthropic_events(calls)), anthropic_sse(anthropic_events(text="3", stop="end_turn"))
        )

    text = await load("http_agent").answer(wire, f"{server.url}/v1", "m", "How many?")

    last = sent(server)[1][-1]
    assert text == "3"
    assert (last["content"] if wire == "openai-chat" else last["content"][0]["content"]) == "3"
