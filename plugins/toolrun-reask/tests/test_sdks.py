"""Every provider's own client asks over loopback HTTP, and its response goes back as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from toolrun import Runner, ToolRegistry
from toolrun_reask import WIRES, Reask

if TYPE_CHECKING:
    from conftest import Provider

Json = dict[str, Any]
GOOD = {"query": "fjord"}
UNFIT = '{"find": "fjord"}'


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    async def search(query: str) -> str:
        return query

    return registry


def unfit() -> Json:
    entry = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": UNFIT}}
    return {"choices": [{"message": {"tool_calls": [entry]}, "finish_reason": "tool_calls"}]}


async def check(registry: ToolRegistry, hook: Reask) -> None:
    registry.repair(on=["parse", "schema"])(hook)
    async with Runner(registry) as runner:
        (outcome,) = (await runner.run(unfit())).outcomes
    assert (outcome.status, outcome.value, outcome.repairs[-1].note) == ("succeeded", "fjord", "asked again once")


# -- a client for each wire: how it is called, and what its provider answers ----------------------


def completion(message: Json, finish: str) -> Json:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def called(id: str = "call_1", **more: Any) -> list[Json]:
    return [{"id": id, "type": "function", "function": {"name": "search", "arguments": json.dumps(GOOD)}, **more}]


def claude(*content: Json, stop: str = "tool_use") -> Json:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": GOOD}

RESPONSES: dict[str, Json] = {
    "openai-chat": completion({"tool_calls": called()}, "tool_calls"),
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000,
        "model": "m",
        "status": "completed",
        "output": [
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "search",
                "arguments": json.dumps(GOOD),
                "status": "completed",
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    },
    "anthropic-messages": claude(TOOL_USE),
    "gemini": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"functionCall": {"name": "search", "args": GOOD}}]},
                "finishReason": "STOP",
                "index": 0,
            }
        ]
    },
    "bedrock-converse": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "tooluse_1", "name": "search", "input": GOOD}}],
            }
        },
        "stopReason": "tool_use",
        "usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18},
        "metrics": {"latencyMs": 1},
    },
    "bedrock-invoke": claude(TOOL_USE),
    "mistral": completion({"content": "", "tool_calls": called("abcdefghi")}, "tool_calls"),
    "cohere-v2": {
        "id": "c-1",
        "finish_reason": "TOOL_CALL",
        "message": {"role": "assistant", "tool_calls": called("search_1")},
        "usage": {"tokens": {"input_tokens": 11, "output_tokens": 7}},
    },
    "ollama": {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "search", "arguments": GOOD}}],
        },
        "done": True,
        "done_reason": "stop",
    },
}


def openai_chat(url: str) -> Callable[..., Any]:
    import openai

    client = openai.OpenAI(
        base_url=f"{url}/v1", api_key="k", max_retries=0, http_client=openai.DefaultHttpxClient(trust_env=False)
    )
    return lambda messages, **fields: client.chat.completions.create(model="m", messages=messages, **fields)


def openai_responses(url: str) -> Callable[..., Any]:
    import openai

    client = openai.OpenAI(
        base_url=f"{url}/v1", api_key="k", max_retries=0, http_client=openai.DefaultHttpxClient(trust_env=False)
    )
    return lambda messages, **fields: client.responses.create(model="m", input=messages, **fields)


def anthropic_messages(url: str) -> Callable[..., Any]:
    import anthropic

    client = anthropic.Anthropic(
        base_url=url, api_key="k", max_retries=0, http_client=anthropic.DefaultHttpxClient(trust_env=False)
    )
    return lambda messages, **fields: client.messages.create(model="m", max_tokens=99, messages=messages, **fields)


def gemini(url: str) -> Callable[..., Any]:
    from google import genai

    client = genai.Client(api_key="k", http_options={"base_url": url})
    return lambda messages, **fields: client.models.generate_content(model="m", contents=messages, config=fields)


def bedrock(url: str) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"total_max_attempts": 1}),
    )


def bedrock_converse(url: str) -> Callable[..., Any]:
    client = bedrock(url)
    return lambda messages, **fields: client.converse(modelId="m", messages=messages, **fields)


def bedrock_invoke(url: str) -> Callable[..., Any]:
    client = bedrock(url)
    version = "bedrock-2023-05-31"

    def ask(messages: list[Json], **fields: Any) -> bytes:
        body = {"anthropic_version": version, "max_tokens": 99, "messages": messages, **fields}
        return client.invoke_model(modelId="m", body=json.dumps(body))["body"].read()

    return ask


def mistral(url: str) -> Callable[..., Any]:
    from mistralai.client import Mistral

    client = Mistral(api_key="k", server_url=url)
    return lambda messages, **fields: client.chat.complete(model="m", messages=messages, **fields)


def cohere_v2(url: str) -> Callable[..., Any]:
    import cohere

    client = cohere.ClientV2(api_key="k", base_url=url)
    return lambda messages, **fields: client.chat(model="m", messages=messages, **fields)


def ollama(url: str) -> Callable[..., Any]:
    from ollama import Client

    client = Client(host=url, trust_env=False)
    return lambda messages, **fields: client.chat(model="m", messages=messages, **fields)


CLIENTS: dict[str, Callable[[str], Callable[..., Any]]] = {
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


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_every_client(wire: str, provider: Provider, registry: ToolRegistry):
    """The client takes the messages, and the fields if there are any; its response is read as it is."""
    ask = CLIENTS[wire](provider.url)

    for forced in (False, True):
        provider.will_answer(RESPONSES[wire])
        await check(registry.filtered(), Reask(ask, wire=wire, forced=forced))

    plain, with_tool = map(json.dumps, provider.requests)
    assert "could not be run: its arguments do not fit the tool's schema" in plain
    assert "Answer with the corrected arguments alone" in plain
    assert "with arguments that fit its schema" in with_tool
    assert re.search("tool_?choice|tool_?config", plain, re.IGNORECASE) is None
    assert (re.search("tool_?choice|tool_?config", with_tool, re.IGNORECASE) is not None) is (wire != "ollama")


# -- as in the README -----------------------------------------------------------------------------


async def test_async_openai(provider: Provider, registry: ToolRegistry):
    """The async client answers with text; the conversation goes before the question."""
    import openai

    provider.will_answer(completion({"content": json.dumps(GOOD)}, "stop"))
    said = [{"role": "user", "content": "Where is it?"}]
    async with AsyncExitStack() as stack:
        http = openai.DefaultAsyncHttpxClient(trust_env=False)
        client = await stack.enter_async_context(
            openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="k", max_retries=0, http_client=http)
        )

        async def ask(messages: list[Json]) -> Any:
            return await client.chat.completions.create(
                model="m", messages=said + messages, response_format={"type": "json_object"}
            )

        await check(registry, Reask(ask))

    assert [message["role"] for message in provider.requests[0]["messages"]] == ["user", "user"]
    assert provider.requests[0]["messages"][0] == said[0]


async def test_async_anthropic(provider: Provider, registry: ToolRegistry):
    """A first answer that does not fit is answered with what was wrong with it."""
    import anthropic

    provider.will_answer(claude({**TOOL_USE, "input": {"query": 3}}), claude(TOOL_USE))
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    async with anthropic.AsyncAnthropic(base_url=provider.url, api_key="k", max_retries=0, http_client=http) as client:

        async def ask(messages: list[Json], **fields: Any) -> Any:
            return await client.messages.create(model="m", max_tokens=99, messages=messages, **fields)

        registry.repair(on="schema")(Reask(ask, wire="anthropic-messages", forced=True))
        async with Runner(registry) as runner:
            (outcome,) = (await runner.run(unfit())).outcomes

    assert (outcome.value, outcome.repairs[-1].note) == ("fjord", "asked again 2 times")
    second = provider.requests[1]["messages"][0]["content"]
    assert "could not be run either" in second
    assert "- $.query: " in second
    assert '{"query": 3}' in second


@pytest.mark.parametrize("finish", ["tool_calls", "length"])
async def test_openai_stream(finish: str, provider: Provider, registry: ToolRegistry):
    """A stream of the sync client is read to its end; one that was cut is not taken."""
    import openai

    delta = {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **called()[0]}]}
    frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
    provider.will_stream(
        {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
    )
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k", max_retries=0, http_client=http) as client:
        hook = Reask(
            lambda messages: client.chat.completions.create(model="m", messages=messages, stream=True), attempts=1
        )
        registry.repair(on="schema")(hook)
        async with Runner(registry) as runner:
            (outcome,) = (await runner.run(unfit())).outcomes

    assert outcome.status == ("succeeded" if finish == "tool_calls" else "refused")
