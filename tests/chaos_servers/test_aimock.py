"""@copilotkit/aimock (npm): fixtures for many protocols, with streams cut after any chunk, and requests that fail."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import anthropic
import httpx2
import openai
import pytest

from tests.chaos_servers.clients import PROMPT, WEATHER, Clients, Json
from tests.chaos_servers.programs import free_port, running

GOOD = json.dumps(WEATHER)
WIRES = ["openai-chat", "openai-responses", "anthropic-messages", "gemini", "cohere-v2"]
RAN = [("get_weather", WEATHER)]


pytestmark = pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid FinishReason:UserWarning")
"""What aimock says for Gemini, and Gemini does not."""


class Aimock:
    def __init__(self, url: str, http: httpx2.Client) -> None:
        self.url = url
        self._http = http

    def will(self, *calls: tuple[str, str], response: Json | None = None, **how: object) -> None:
        """Answer with these calls, then, once there are results, with a text."""
        called = {"toolCalls": [{"name": name, "arguments": text} for name, text in calls], **(response or {})}
        fixtures = [
            {"match": {"userMessage": PROMPT, "hasToolResult": True}, "response": {"content": "Take a coat."}},
            {"match": {"userMessage": PROMPT}, "response": called, "chunkSize": 10, **how},
        ]
        self._http.post(f"{self.url}/__aimock/reset").raise_for_status()
        self._http.post(f"{self.url}/__aimock/fixtures", json={"fixtures": fixtures}).raise_for_status()


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    script = os.environ.get("TOOLRUN_AIMOCK")
    if script is None:
        pytest.skip("TOOLRUN_AIMOCK does not name dist/cli.js of @copilotkit/aimock")
    port = free_port()
    nothing = str(tmp_path_factory.mktemp("fixtures"))
    command = ["node", script, "--port", str(port), "--fixtures", nothing, "--log-level", "silent"]
    with running(command, f"http://127.0.0.1:{port}") as url, httpx2.Client() as http:
        yield Aimock(url, http)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", WIRES)
def test_conversation(wire: str, stream: bool, aimock: Aimock, clients: Clients) -> None:
    """Two calls run, their results go back, and the model has the last word."""
    aimock.will(("get_weather", GOOD), ("ping", "{}"))

    first, last = clients.converse(aimock.url, wire, stream=stream)

    assert (sorted(first.ran, key=str), first.told) == ([*RAN, ("ping", {})], [("succeeded", None)] * 2)
    assert (last.ran, last.turn.text) == ([], "Take a coat.")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"city": "Oslo", "city": "Bergen", "days": 3}', "duplicate_key"),
        ('{"city": "Oslo", "days": true}', "schema"),
        ("[1]", "not_object"),
    ],
)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_argument_texts(text: str, code: str, stream: bool, aimock: Aimock, clients: Clients) -> None:
    """Argument texts come as the fixture has them, as far as it takes them: they have to be JSON."""
    aimock.will(("get_weather", text))

    seen = clients.exchange(aimock.url, "openai-chat", stream=stream)

    assert (seen.ran, seen.told) == ([], [("refused", code)])


@pytest.mark.parametrize("wire", WIRES)
def test_cut_streams(wire: str, aimock: Aimock, clients: Clients) -> None:
    """Cut after each chunk in turn, a stream runs its call once it is whole, and not before."""
    ran = []
    for chunks in range(1, 13):
        aimock.will(("get_weather", GOOD), truncateAfterChunks=chunks)
        try:
            seen = clients.exchange(aimock.url, wire)
        except (openai.APIConnectionError, anthropic.APIConnectionError):  # cut before the headers were sent
            ran.append([])
            continue
        ran.append(seen.ran)
        assert len(seen.told) == len(seen.turn.calls), chunks
        assert {status for status, _ in seen.told} <= {"succeeded" if seen.ran else "refused"}, chunks

    assert ran[-1] == RAN
    whole = ran.index(RAN)
    assert ran == [[]] * whole + [RAN] * (12 - whole)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", WIRES)
def test_stopped_early(wire: str, stream: bool, aimock: Aimock, clients: Clients) -> None:
    """A call in a response that was stopped by length is held, however whole it looks."""
    aimock.will(("get_weather", GOOD), response={"finishReason": "length"})

    seen = clients.exchange(aimock.url, wire, stream=stream)

    assert (seen.ran, seen.told) == ([], [("not_executed", "held")])
