"""A fake model says what was written, and takes no messages that a provider would refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import openai
import pytest

from toolrun import Runner, StreamInterrupted, ToolRegistry, afinalize, finalize
from toolrun.testing import FakeModel, ScriptedCall, ScriptedResponse
from toolrun.wires import WIRES

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolrun.testing import FakeProvider

Json = dict[str, Any]

each_wire = pytest.mark.parametrize("wire", WIRES)
ADD = ScriptedResponse(calls=[ScriptedCall("add", {"a": 1, "b": 2}), ScriptedCall("add", {"a": "x"})])


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    def add(a: int, b: int) -> int:
        return a + b

    return registry


def question(wire: str) -> Json:
    if wire == "gemini":
        return {"role": "user", "parts": [{"text": "1 + 2?"}]}
    return {"role": "user", "content": [{"text": "1 + 2?"}] if wire == "bedrock-converse" else "1 + 2?"}


@each_wire
async def test_conversation(wire: str, registry: ToolRegistry) -> None:
    """What a turn gives is taken, refused calls included; ids go on counting."""
    model = FakeModel(ADD, ADD, "It is 3.", wire=wire, split=3)
    messages = [question(wire)]

    async with Runner(registry) as runner:
        turns = []
        while not turns or turns[-1].needs_reply:
            turns.append(await runner.run(model.astream(messages), wire=wire))
            messages += turns[-1].messages()

    assert [outcome.status for turn in turns for outcome in turn.outcomes] == ["succeeded", "refused"] * 2
    assert [call.id for turn in turns for call in turn.calls] == ["call00001", "call00002", "call00003", "call00004"]
    assert turns[-1].text == "It is 3."
    assert model.requests[0] == messages[:1]
    model.assert_exhausted()


@each_wire
@pytest.mark.parametrize("forgotten", ["result", "results", "everything", "calls"])
def test_what_a_provider_would_refuse(wire: str, registry: ToolRegistry, forgotten: str) -> None:
    """A call without its result, results without their calls, or the whole turn missing."""
    model = FakeModel(ADD, "3", wire=wire)
    with Runner(registry) as runner:
        turn = runner.run_sync(model.stream([question(wire)]), wire=wire)
    said = turn.messages()
    kept = {
        "result": without_a_result(said),
        "results": [message for message in said if not is_result(message)],
        "everything": [],
        "calls": [message for message in said if is_result(message)],
    }[forgotten]

    with pytest.raises(AssertionError, match=r"request 2 would be refused:\n- "):
        model.stream([question(wire), *kept])

    assert len(model.requests) == 1
    assert list(model.stream([question(wire), *said]))
    with pytest.raises(AssertionError, match="request 2 would be refused"):  # whoever passed over it
        model.assert_exhausted()
    model.assert_exhausted()


def is_result(message: Json) -> bool:
    return any(
        word in json.dumps(message) for word in ('"tool"', "_result", "_output", "toolResult", "functionResponse")
    )


def without_a_result(said: list[Json]) -> list[Json]:
    """The messages without the last result, wherever the wire has it."""
    *before, last = json.loads(json.dumps(said))
    for key in ("content", "parts"):
        if isinstance(last.get(key), list):
            last[key].pop()
            return [*before, last]
    return before


def test_the_texts_of_refusals() -> None:
    """They say which call lacks what."""
    model = FakeModel(ADD, "3")
    list(model.stream([]))

    with pytest.raises(AssertionError) as raised:
        model.stream([{"role": "tool", "tool_call_id": "call00001", "content": "3"}])

    assert str(raised.value) == (
        "request 2 would be refused:\n"
        "- message 0: there is no such call before it (orphan_result, call00001)\n"
        "- the call call00001 is missing\n"
        "- the call call00002 is missing\n"
        "- the result of the call call00002 is missing"
    )


def test_any_messages() -> None:
    """Unchecked, it takes what it is given."""
    model = FakeModel(ADD, "3", check=False)

    list(model.stream([]))

    assert finalize(model.stream([])) == ()


def test_one_request_too_many() -> None:
    """There is nothing to say."""
    model = FakeModel("Hi.")
    list(model.stream([]))

    with pytest.raises(AssertionError, match="request 2, and only 1 responses were written"):
        model.stream([])


def test_one_request_too_few() -> None:
    """What was not asked for is said."""
    model = FakeModel("Hi.", "And bye.")
    list(model.stream([]))

    with pytest.raises(AssertionError, match=r"asked 1 of 2 times; it still had to say:\n- 'And bye\.'"):
        model.assert_exhausted()


def test_an_answer_that_depends_on_the_messages(registry: ToolRegistry) -> None:
    """A function is given what was sent."""
    model = FakeModel(ADD, lambda messages: f"It says {messages[-2]['content']}.")
    with Runner(registry) as runner:
        turn = runner.run_sync(model.stream([]))

        assert runner.run_sync(model.stream(turn.messages())).text == "It says 3."


def test_whole_responses(registry: ToolRegistry) -> None:
    """The same conversation without streams."""
    model = FakeModel(ADD, "3")
    with Runner(registry) as runner:
        turn = runner.run_sync(model.respond([]))

        assert runner.run_sync(model.respond(turn.messages())).text == "3"


@pytest.mark.parametrize(("cut", "events"), [(2, 2), (-2, 5), (-99, 0)])
async def test_a_connection_that_breaks(cut: int, events: int) -> None:
    """After so many events, or so many before the end; the next request need not know of the turn."""
    response = ScriptedResponse(text="Hi.", calls=[ScriptedCall("add", {"a": 1})], cut_after=cut)
    model = FakeModel(response, response, "Again.", split=6)
    stream = model.stream([])

    assert len([next(stream) for _ in range(events)]) == events
    with pytest.raises(ConnectionResetError, match="the connection broke"):
        next(stream)

    with pytest.raises(StreamInterrupted):
        await Runner(ToolRegistry()).run(model.astream([]), wire="openai-chat")
    assert finalize(model.stream([])) == ()


# -- over HTTP ------------------------------------------------------------------------------


@pytest.fixture
def client(fake_provider: Callable[..., FakeProvider]) -> Any:
    """Makes a provider, and a client that talks to it."""

    def connect(*responses: object, **options: Any) -> openai.OpenAI:
        provider = fake_provider(*responses, **options)
        http = openai.DefaultHttpxClient(trust_env=False)
        return openai.OpenAI(base_url=provider.url, api_key="k", max_retries=0, http_client=http)

    return connect


def test_a_refused_request() -> None:
    """The client is told as by a provider, and the test is told when the block is left."""
    http = openai.DefaultHttpxClient(trust_env=False)
    provider = FakeModel(ADD, "3").serve()
    provider.__enter__()
    with openai.OpenAI(base_url=provider.url, api_key="k", http_client=http) as client:
        client.chat.completions.create(model="m", messages=[])
        with pytest.raises(openai.BadRequestError, match="the result of the call call00001 is missing"):
            client.chat.completions.create(model="m", messages=[])

    with pytest.raises(AssertionError, match="request 2 would be refused"):
        provider.__exit__(None, None, None)


def test_what_the_test_raises_comes_first() -> None:
    """A refusal does not hide it."""
    provider = FakeModel().serve()
    provider.__enter__()

    assert httpx2.post(provider.url, json={"messages": []}, trust_env=False).status_code == 400
    provider.__exit__(ZeroDivisionError, ZeroDivisionError(), None)


def test_responses_that_go_on(client: Callable[..., openai.OpenAI], registry: ToolRegistry) -> None:
    """With `previous_response_id` only results are sent; the calls are those of the response that it names."""
    with client(ADD, "3", wire="openai-responses") as openai_client, Runner(registry) as runner:
        first = openai_client.responses.create(model="m", input="1 + 2?")
        results = [item for item in runner.run_sync(first).messages() if item["type"] == "function_call_output"]

        second = openai_client.responses.create(model="m", input=results, previous_response_id=first.id)

    assert second.output_text == "3"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_connection_that_breaks_over_http(client: Callable[..., openai.OpenAI], streamed: bool) -> None:
    """The client's own error comes of it, and no call runs."""
    with client(ScriptedResponse(calls=ADD.calls, cut_after=3)) as openai_client:
        if not streamed:
            with pytest.raises(openai.APIConnectionError):
                openai_client.chat.completions.create(model="m", messages=[])
            return
        calls = finalize(openai_client.chat.completions.create(model="m", messages=[], stream=True))

    assert [(call.status.value, call.code) for call in calls] == [("incomplete", "stream_error")]


@pytest.mark.parametrize("streamed", [True, False])
def test_an_error_over_http(client: Callable[..., openai.OpenAI], streamed: bool) -> None:
    """The client's own error comes of it."""
    with (
        client(ScriptedResponse(error="overloaded")) as openai_client,
        pytest.raises(openai.APIError, match="overloaded"),
    ):
        list(openai_client.chat.completions.create(model="m", messages=[], stream=streamed))


async def test_raw_bytes(fake_provider: Callable[..., FakeProvider]) -> None:
    """The bytes of an HTTP response need no SDK."""
    provider = fake_provider(ADD, wire="anthropic-messages", split=2)
    async with (
        httpx2.AsyncClient(trust_env=False) as http,
        http.stream("POST", provider.url, json={"messages": [], "stream": True}) as response,
    ):
        calls = await afinalize(response.aiter_bytes())

    assert [call.arguments for call in calls] == [{"a": 1, "b": 2}, {"a": "x"}]
    assert provider.requests == [{"messages": [], "stream": True}]
