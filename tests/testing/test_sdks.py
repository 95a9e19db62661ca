"""A fake provider and the official clients: each wire's conversation, streamed and whole, over loopback HTTP."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pytest

from toolrun import Runner, ToolRegistry
from toolrun.testing import FakeModel, FakeProvider, ScriptedCall, ScriptedResponse, assert_answered, assert_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]
Ask = "Callable[[list[Any], list[Any], bool], Any]"

QUESTION: Final = "Oslo and Rome?"


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    async def get_weather(city: str) -> str:
        return f"4 °C in {city}"

    return registry


# -- one client for each wire: it sends messages and tools, and gives the response ---------------


def openai_chat(url: str) -> Iterator[Ask]:
    import openai

    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, http_client=quiet(openai)) as client:
        yield lambda messages, tools, stream: client.chat.completions.create(
            model="m", messages=messages, tools=tools, stream=stream
        )


def openai_responses(url: str) -> Iterator[Ask]:
    import openai

    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, http_client=quiet(openai)) as client:
        yield lambda messages, tools, stream: client.responses.create(
            model="m", input=messages, tools=tools, stream=stream
        )


def anthropic_messages(url: str) -> Iterator[Ask]:
    import anthropic

    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0, http_client=quiet(anthropic)) as client:
        yield lambda messages, tools, stream: client.messages.create(
            model="m", max_tokens=99, messages=messages, tools=tools, stream=stream
        )


def quiet(sdk: Any) -> Any:
    return sdk.DefaultHttpxClient(trust_env=False)


def gemini(url: str) -> Iterator[Ask]:
    from google import genai

    with genai.Client(api_key="k", http_options={"base_url": url}) as client:

        def ask(messages: list[Any], tools: list[Any], stream: bool) -> Any:
            models = client.models
            send = models.generate_content_stream if stream else models.generate_content
            return send(model="m", contents=messages, config={"tools": tools})

        yield ask


def bedrock(url: str) -> Any:
    import boto3
    from botocore.config import Config

    return closing(
        boto3.client(
            "bedrock-runtime",
            region_name="us-east-1",
            endpoint_url=url,
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"total_max_attempts": 1}),
        )
    )


def bedrock_converse(url: str) -> Iterator[Ask]:
    with bedrock(url) as client:

        def ask(messages: list[Any], tools: list[Any], stream: bool) -> Any:
            asked = {"modelId": "m", "messages": messages, "toolConfig": {"tools": tools}}
            return client.converse_stream(**asked)["stream"] if stream else client.converse(**asked)

        yield ask


def bedrock_invoke(url: str) -> Iterator[Ask]:
    import json

    with bedrock(url) as client:

        def ask(messages: list[Any], tools: list[Any], stream: bool) -> Any:
            body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 99, "messages": messages})
            if stream:
                return client.invoke_model_with_response_stream(modelId="m", body=body)["body"]
            return json.loads(client.invoke_model(modelId="m", body=body)["body"].read())

        yield ask


def mistral(url: str) -> Iterator[Ask]:
    import httpx
    from mistralai.client import Mistral

    with httpx.Client(trust_env=False) as http, Mistral(api_key="k", server_url=url, client=http) as client:
        yield lambda messages, tools, stream: (client.chat.stream if stream else client.chat.complete)(
            model="mistral-small-latest", messages=messages, tools=tools
        )


def cohere_v2(url: str) -> Iterator[Ask]:
    import cohere
    import httpx

    with httpx.Client(trust_env=False) as http:
        client = cohere.ClientV2(api_key="k", base_url=url, httpx_client=http)
        yield lambda messages, tools, stream: (client.chat_stream if stream else client.chat)(
            model="m", messages=messages, tools=tools
        )


def ollama(url: str) -> Iterator[Ask]:
    import ollama

    with ollama.Client(host=url, trust_env=False) as client:
        yield lambda messages, tools, stream: client.chat(model="m", messages=messages, tools=tools, stream=stream)


CLIENTS: Final = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic-messages": anthropic_messages,
    "gemini": gemini,
    "bedrock-converse": bedrock_converse,
    "bedrock-invoke": bedrock_invoke,
    "mistral": mistral,
    "cohere-v2": cohere_v2,
    "ollama": ollama,
}


@pytest.fixture(params=CLIENTS)
def wire(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def connect(wire: str) -> Iterator[Callable[[FakeProvider], Ask]]:
    opened: list[Any] = []

    def connected(provider: FakeProvider) -> Ask:
        opened.append(CLIENTS[wire](provider.url))
        return next(opened[-1])

    yield connected
    for client in opened:
        client.close()


def question(wire: str) -> Json:
    if wire == "gemini":
        return {"role": "user", "parts": [{"text": QUESTION}]}
    return {"role": "user", "content": [{"text": QUESTION}] if wire == "bedrock-converse" else QUESTION}


@pytest.mark.parametrize("streamed", [True, False])
def test_conversation(
    wire: str, connect: Callable[[FakeProvider], Ask], registry: ToolRegistry, streamed: bool
) -> None:
    """Two calls are run, their results are sent, the answer comes: the official client takes it all."""
    model = FakeModel(
        ScriptedResponse(
            text="Looking.",
            calls=[ScriptedCall("get_weather", {"city": "Oslo"}), ScriptedCall("get_weather", {"city": "Rome"})],
        ),
        "Cold.",
        wire=wire,
        split=5,
    )
    messages = [question(wire)]

    with model.serve() as provider, Runner(registry) as runner:
        ask = connect(provider)
        for _ in range(2):
            turn = runner.run_sync(ask(messages, registry.definitions(wire), streamed), wire=wire)
            messages += turn.messages()
            assert_answered(turn)
            if turn.needs_reply:
                assert_outcome(turn, 0, status="succeeded", value="4 °C in Oslo")
                assert_outcome(turn, 1, status="succeeded", value="4 °C in Rome")
                assert turn.text == "Looking."

    assert turn.text == "Cold."
    assert len(provider.requests) == 2
    model.assert_exhausted()
