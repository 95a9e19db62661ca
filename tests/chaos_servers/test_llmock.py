"""llmock (PyPI): ten providers' protocols, with tool calls made up from schemas, and streams broken on demand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

import httpx2
import pytest

from tests.chaos_servers.clients import PROMPT, WEATHER, Clients, Json
from tests.chaos_servers.programs import free_port, program, running

PREFIX = {
    "openai-chat": "",
    "openai-responses": "",
    "anthropic-messages": "/anthropic",
    "gemini": "/gemini",
    "cohere-v2": "/cohere",
}
WIRES = list(PREFIX)
FINISH = {
    "openai-chat": '"finish_reason":"tool_calls"',
    "openai-responses": '"type":"response.completed"',
    "anthropic-messages": '"stop_reason":"tool_use"',
    "gemini": '"finishReason":"STOP"',
    "cohere-v2": '"finish_reason":"TOOL_CALL"',
}
"""What a good end of a response with calls is on the wire."""

PATH = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
    "cohere-v2": "/v2/chat",
}

OTHER = {"city": "Bergen", "days": 1}


class Llmock:
    def __init__(self, url: str, http: httpx2.Client) -> None:
        self._url = url
        self._http = http

    def at(self, wire: str) -> str:
        return self._url + PREFIX[wire]

    def will(self, *behaviors: Json) -> None:
        self._http.post(f"{self._url}/_llmock/reset")
        if behaviors:
            self._http.post(f"{self._url}/_llmock/scenario", json={"behaviors": list(behaviors)}).raise_for_status()

    def sends_whole(self, wire: str) -> bool:
        """Tell whether a good end comes over the wire, before anything that is no JSON: without any SDK."""
        said = {"role": "user", "content": PROMPT, "parts": [{"text": PROMPT}]}
        body = {"model": "m", "messages": [said], "contents": [said], "input": PROMPT, "stream": True, "max_tokens": 9}
        with (
            suppress(httpx2.RemoteProtocolError),
            self._http.stream("POST", self.at(wire) + PATH[wire], json=body) as sent,
        ):
            for line in sent.iter_lines():
                payload = line.removeprefix("data: ")
                if payload != line and FINISH[wire] in payload:
                    return is_json(payload)
                if payload not in (line, "[DONE]") and not is_json(payload):
                    return False
        return False


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.fixture(scope="module")
def llmock() -> Iterator[Llmock]:
    port = free_port()
    command = [program("llmock"), "serve", "--port", str(port), "--log-level", "error"]
    with running(command, f"http://127.0.0.1:{port}") as url, httpx2.Client() as http:
        yield Llmock(url, http)


def calls(*called: tuple[str, Json]) -> Json:
    return {"type": "reply", "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in called]}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", WIRES)
def test_conversation(wire: str, stream: bool, llmock: Llmock, clients: Clients) -> None:
    """Calls made up from the schemas run, their results go back, and the model has the last word."""
    llmock.will()

    first, last = clients.converse(llmock.at(wire), wire, stream=stream)

    ((name, arguments),) = first.ran
    assert name == "get_weather"
    assert (type(arguments["city"]), type(arguments["days"])) == (str, int)
    assert first.told == [("succeeded", None)]
    assert (last.ran, last.told) == ([], [])
    assert last.turn.text


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", WIRES)
def test_parallel_calls(wire: str, stream: bool, llmock: Llmock, clients: Clients) -> None:
    """Several calls of one response run, each with its own arguments."""
    llmock.will(calls(("get_weather", WEATHER), ("ping", {}), ("get_weather", OTHER)))

    seen = clients.exchange(llmock.at(wire), wire, stream=stream)

    assert seen.told == [("succeeded", None)] * 3
    assert sorted(seen.ran, key=str) == sorted(
        [("get_weather", WEATHER), ("get_weather", OTHER), ("ping", {})], key=str
    )


@pytest.mark.parametrize("kind", ["truncate", "disconnect", "malformed"])
@pytest.mark.parametrize("wire", WIRES)
def test_broken_streams(wire: str, kind: str, llmock: Llmock, clients: Clients) -> None:
    """Broken after each chunk in turn, a stream runs its call if the reason of its end had come, and never else."""
    ends = 0
    for chunks in range(12):
        broken = {"type": "stream_fault", "kind": kind, "after_chunks": chunks}
        llmock.will(calls(("get_weather", WEATHER)), broken)
        whole = llmock.sends_whole(wire)
        llmock.will(calls(("get_weather", WEATHER)), broken)
        seen = clients.exchange(llmock.at(wire), wire)

        ends += whole
        assert seen.ran == ([("get_weather", WEATHER)] if whole else []), chunks
        assert len(seen.told) == len(seen.turn.calls), chunks
        assert {status for status, _ in seen.told} <= ({"succeeded"} if whole else {"refused"}), chunks
    assert 0 < ends < 12


@pytest.mark.parametrize(("kind", "code"), [("malformed_arguments", "truncated"), ("unknown_tool", "unknown_tool")])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", WIRES)
def test_broken_calls(wire: str, stream: bool, kind: str, code: str, llmock: Llmock, clients: Clients) -> None:
    """Arguments cut in half under a good finish, and a tool that does not exist, are refused and answered."""
    llmock.will(calls(("get_weather", WEATHER)), {"type": "tool_fault", "kind": kind})

    first, *_ = clients.converse(llmock.at(wire), wire, stream=stream)

    # Where the arguments are no text on the wire, llmock sends an empty object for what it cut.
    as_object = kind == "malformed_arguments" and (wire == "gemini" or (wire == "anthropic-messages" and not stream))
    assert first.ran == []
    assert first.told == [("refused", "schema" if as_object else code)]
