"""The agent loop of the README, as written there, against a provider."""

# Tools with annotations of their own: no postponed evaluation here.
import json
from dataclasses import dataclass
from typing import Any, Literal

import anthropic
import openai
import pytest
from anthropic.types import MessageParam, ToolParam
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
from pydantic import BaseModel, TypeAdapter

from toolrun import Repaired, RepairRequest, Retry, Runner, ToolContext, ToolError, ToolRegistry
from toolrun._testing.loopback import json_reply

from .responses import anthropic_events, anthropic_message, openai_chunks, openai_completion
from .server import ReplayServer, anthropic_sse, openai_sse


@dataclass
class Weather:
    degrees: float
    sky: str


class Place(BaseModel):
    city: str
    country: str | None = None


PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "City and country."},
        "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
    },
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool(timeout=10, effect="idempotent", retry=Retry(on=ConnectionError))
    async def get_weather(ctx: ToolContext[dict[str, float]], city: str, unit: Literal["c", "f"] = "c") -> Weather:
        """Current weather.

        Args:
            city: City and country.
        """
        return Weather(ctx.deps[city] if unit == "c" else ctx.deps[city] * 9 / 5 + 32, "clear")

    @registry.tool
    def locate(name: str) -> Place:
        """Find a place."""
        return Place(city=name.title(), country="IS")

    @registry.repair(on="schema")
    def old_client(request: RepairRequest) -> Repaired | None:
        if request.call.arguments is None or set(request.call.arguments) != {"town"}:
            return None
        return Repaired(arguments={"city": request.call.arguments["town"]}, note="town is city now")

    return registry


DEPS = {"Oslo": 10.0, "Rome": 20.0}


def accepted_by_openai(messages: list[dict[str, Any]]) -> None:
    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(messages, strict=True)


def accepted_by_anthropic(messages: list[dict[str, Any]]) -> None:
    TypeAdapter(list[MessageParam]).validate_python(messages, strict=True)


async def test_openai_loop(server: ReplayServer, openai_async: openai.AsyncOpenAI, registry: ToolRegistry):
    """What the client sends next holds the assistant message and one result a call, in call order."""
    calls = (
        ("call_a", "get_weather", ['{"city": "Oslo"', ', "unit": "f"}']),
        ("call_b", "get_weather", ['{"town": "Rome"}']),
        ("call_c", "locate", ['{"name": "reykjavik"}']),
        ("call_d", "get_weather", ['{"city": "Oslo", "unit": "k"}']),
    )
    server.will_answer(
        openai_sse(openai_chunks(*calls, text="Looking.")),
        openai_sse(openai_chunks(text="Done.", finish="stop")),
    )
    messages: list[Any] = [{"role": "user", "content": "Weather?"}]

    async with Runner(registry) as runner:
        while True:
            stream = await openai_async.chat.completions.create(
                model="m", messages=messages, tools=registry.definitions("openai-chat"), stream=True
            )
            turn = await runner.run(stream, deps=DEPS)
            messages += turn.messages()
            if not turn.needs_reply:
                break

    assert len(server.requests) == 2
    first, second = (request.body for request in server.requests)
    assert first["tools"] == [
        {
            "type": "function",
            "function": {"name": "get_weather", "description": "Current weather.", "parameters": PARAMETERS},
        },
        {
            "type": "function",
            "function": {
                "name": "locate",
                "description": "Find a place.",
                "parameters": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            },
        },
    ]
    assistant, *results = second["messages"][1:]
    assert assistant == {
        "role": "assistant",
        "content": "Looking.",
        "tool_calls": [
            {
                "id": id_,
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for id_, name, arguments in [
                ("call_a", "get_weather", '{"city": "Oslo", "unit": "f"}'),
                ("call_b", "get_weather", '{"city": "Rome"}'),  # repaired: what the tool got
                ("call_c", "locate", '{"name": "reykjavik"}'),
                ("call_d", "get_weather", '{"city": "Oslo", "unit": "k"}'),  # refused: what the model wrote
            ]
        ],
    }
    assert results[:3] == [
        {"role": "tool", "tool_call_id": "call_a", "content": '{"degrees":50.0,"sky":"clear"}'},
        {"role": "tool", "tool_call_id": "call_b", "content": '{"degrees":20.0,"sky":"clear"}'},
        {"role": "tool", "tool_call_id": "call_c", "content": '{"city":"Reykjavik","country":"IS"}'},
    ]
    assert results[3]["tool_call_id"] == "call_d"
    assert results[3]["content"].startswith("Not run: the arguments do not fit the tool's schema.")
    assert "$.unit" in results[3]["content"]
    assert messages[-1] == {"role": "assistant", "content": "Done."}
    accepted_by_openai(messages)
    TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(first["tools"], strict=True)


async def test_anthropic_loop(server: ReplayServer, anthropic_async: anthropic.AsyncAnthropic, registry: ToolRegistry):
    """The same on Anthropic Messages: results in one user message, errors marked."""
    calls = (
        ("toolu_a", "get_weather", ['{"city": "Oslo"', ', "unit": "f"}']),
        ("toolu_b", "get_weather", ['{"town": "Rome"}']),
        ("toolu_d", "nonesuch", []),
    )
    server.will_answer(
        anthropic_sse(anthropic_events(*calls, text="Looking.")),
        anthropic_sse(anthropic_events(text="Done.", stop="end_turn")),
    )
    messages: list[Any] = [{"role": "user", "content": "Weather?"}]

    async with Runner(registry) as runner:
        while True:
            stream = await anthropic_async.messages.create(
                model="m",
                messages=messages,
                max_tokens=99,
                tools=registry.definitions("anthropic-messages"),
                stream=True,
            )
            turn = await runner.run(stream, deps=DEPS)
            messages += turn.messages()
            if not turn.needs_reply:
                break

    assert len(server.requests) == 2
    first, second = (request.body for request in server.requests)
    assert first["tools"][0] == {"name": "get_weather", "description": "Current weather.", "input_schema": PARAMETERS}
    assert second["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Looking."},
                {
                    "type": "tool_use",
                    "id": "toolu_a",
                    "name": "get_weather",
                    "input": {"city": "Oslo", "unit": "f"},
                },
                {"type": "tool_use", "id": "toolu_b", "name": "get_weather", "input": {"city": "Rome"}},
                {"type": "tool_use", "id": "toolu_d", "name": "nonesuch", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_a",
                    "content": '{"degrees":50.0,"sky":"clear"}',
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_b",
                    "content": '{"degrees":20.0,"sky":"clear"}',
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_d",
                    "content": "Not run: there is no tool named 'nonesuch'. Available tools: get_weather, locate.",
                    "is_error": True,
                },
            ],
        },
    ]
    assert messages[-1] == {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    accepted_by_anthropic(messages)
    TypeAdapter(list[ToolParam]).validate_python(first["tools"], strict=True)


def test_sync_openai_loop_on_whole_responses(
    server: ReplayServer, openai_client: openai.OpenAI, registry: ToolRegistry
):
    """The loop without an event loop and without a stream."""
    server.will_answer(
        json_reply(openai_completion(("call_a", "get_weather", ['{"city": "Rome"}']))),
        json_reply(openai_completion(text="20 degrees.", finish="stop")),
    )
    messages: list[Any] = [{"role": "user", "content": "Weather?"}]

    with Runner(registry) as runner:
        while True:
            response = openai_client.chat.completions.create(
                model="m", messages=messages, tools=registry.definitions("openai-chat")
            )
            turn = runner.run_sync(response, deps=DEPS)
            messages += turn.messages()
            if not turn.needs_reply:
                break

    assert messages == [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_a",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_a", "content": '{"degrees":20.0,"sky":"clear"}'},
        {"role": "assistant", "content": "20 degrees."},
    ]
    accepted_by_openai(messages)


def test_sync_anthropic_loop_on_whole_messages(
    server: ReplayServer, anthropic_client: anthropic.Anthropic, registry: ToolRegistry
):
    """The loop without an event loop and without a stream."""
    server.will_answer(
        json_reply(anthropic_message(("toolu_a", "get_weather", {"city": "Rome"}))),
        json_reply(anthropic_message(text="20 degrees.", stop="end_turn")),
    )
    messages: list[Any] = [{"role": "user", "content": "Weather?"}]

    with Runner(registry) as runner:
        while True:
            message = anthropic_client.messages.create(
                model="m",
                messages=messages,
                max_tokens=99,
                tools=registry.definitions("anthropic-messages"),
            )
            turn = runner.run_sync(message, deps=DEPS)
            messages += turn.messages()
            if not turn.needs_reply:
                break

    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    accepted_by_anthropic(messages)
    assert server.requests[1].body["messages"] == messages[:-1]


@pytest.mark.parametrize("finish", ["tool_calls", "length", "content_filter", "stop"])
async def test_openai_takes_the_history_of_bad_calls(
    server: ReplayServer, openai_async: openai.AsyncOpenAI, registry: ToolRegistry, finish: str
):
    """However a turn went wrong, its messages are what the request's types ask for, every call answered once."""
    calls = (
        ("call_a", "get_weather", ['{"city": "Oslo"}']),
        ("call_b", "get_weather", ['{"city": "Os']),
        ("call_c", "get weather!", ["null"]),
        ("call_d", "locate", []),
        ("call_e", "locate", ['{"name": "\\ud83d"}']),
    )
    server.will_answer(openai_sse(openai_chunks(*calls, finish=finish)), openai_sse(openai_chunks(finish="stop")))
    turn = await Runner(registry).run(
        await openai_async.chat.completions.create(model="m", messages=[], stream=True), deps=DEPS
    )

    messages = turn.messages()
    await openai_async.chat.completions.create(model="m", messages=messages, stream=True)

    accepted_by_openai(messages)
    ids = [call_id for call_id, _, _ in calls]
    assert [entry["id"] for entry in messages[0]["tool_calls"]] == ids
    assert [message["tool_call_id"] for message in messages[1:]] == ids
    assert all(message["content"] for message in messages[1:])
    assert server.requests[1].body["messages"] == messages


@pytest.mark.parametrize("stop", ["tool_use", "max_tokens", "refusal", "pause_turn"])
async def test_anthropic_takes_the_history_of_bad_calls(
    server: ReplayServer, anthropic_async: anthropic.AsyncAnthropic, registry: ToolRegistry, stop: str
):
    """The same for Anthropic: inputs are objects, and never the ones that a bad call did not have."""
    calls = (
        ("toolu_a", "get_weather", ['{"city": "Oslo"}']),
        ("toolu_b", "get_weather", ['{"city": "Os']),
        ("toolu_c", "get weather!", ["null"]),
    )
    server.will_answer(anthropic_sse(anthropic_events(*calls, stop=stop)), anthropic_sse(anthropic_events()))
    turn = await Runner(registry).run(
        await anthropic_async.messages.create(model="m", messages=[], max_tokens=9, stream=True), deps=DEPS
    )

    messages = turn.messages()
    await anthropic_async.messages.create(model="m", messages=messages, max_tokens=9, stream=True)

    accepted_by_anthropic(messages)
    assert [block["input"] for block in messages[0]["content"]] == [
        # A paused turn is not over: what came of its calls is not taken for whole.
        {"invalid_arguments": '{"city": "Oslo"}'} if stop == "pause_turn" else {"city": "Oslo"},
        {"invalid_arguments": '{"city": "Os'},
        {"invalid_arguments": "null"},
    ]
    assert [block["tool_use_id"] for block in messages[1]["content"]] == ["toolu_a", "toolu_b", "toolu_c"]
    assert server.requests[1].body["messages"] == messages


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
@pytest.mark.parametrize("place", ["text", "arguments", "name", "result", "error"])
async def test_the_history_can_always_be_sent(wire: str, place: str):
    """Half of a surrogate pair, wherever it came from, does not end the next request with a UnicodeEncodeError."""
    registry = ToolRegistry()

    @registry.tool
    def echo(to: str = "") -> str:
        if place == "error":
            raise ToolError("bad \ud83d")
        return "half \ud83d" if place == "result" else "fine"

    arguments = '{"to": "\ud83d"}' if place == "arguments" else "{}"
    call = ("c1", "echo\ud83d" if place == "name" else "echo", [arguments])
    text = "half \ud83d" if place == "text" else "whole"
    events = openai_chunks(call, text=text) if wire == "openai-chat" else anthropic_events(call, text=text)

    turn = await Runner(registry).run(events)

    assert turn.outcomes[0].call.raw_arguments == arguments
    json.dumps(turn.messages(), ensure_ascii=False).encode()
