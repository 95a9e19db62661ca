"""The official clients' streams and responses go into the runner as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
import pytest

from toolrun import Runner, ToolRegistry, afinalize, finalize
from toolrun._testing.loopback import json_reply

from .responses import anthropic_events, anthropic_message, openai_chunks, openai_completion
from .server import anthropic_sse, openai_sse

if TYPE_CHECKING:
    import anthropic
    import openai

    from toolrun import Turn

    from .server import ReplayServer

ASKED = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
CALLS = (("call_1", "add", ['{"a": 2, ', '"b": 3}']), ("call_2", "add", ['{"a": 1, "b"', ": 1}"]))


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return registry


def check(turn: Turn, *, wire: str, text: str = "") -> None:
    assert [(call.id, call.name, call.raw_arguments) for call in turn.calls] == [
        ("call_1", "add", '{"a": 2, "b": 3}'),
        ("call_2", "add", '{"a": 1, "b": 1}'),
    ]
    assert [(outcome.status, outcome.value) for outcome in turn.outcomes] == [("succeeded", 5), ("succeeded", 2)]
    assert turn.wire is not None
    assert turn.wire.name == wire
    assert turn.text == text
    assert turn.diagnostics == ()


async def through(entry: str, registry: ToolRegistry, stream: object) -> Turn:
    if entry == "run":
        return await Runner(registry).run(stream)
    if entry == "run_sync":
        return Runner(registry).run_sync(stream)
    with Runner(registry) as runner:
        return runner.run_sync(stream)


async def test_async_openai_stream(server: ReplayServer, openai_async: openai.AsyncOpenAI, registry: ToolRegistry):
    """A stream of the async client is read, run and closed."""
    server.will_answer(openai_sse(openai_chunks(*CALLS, text="Adding.")))
    stream = await openai_async.chat.completions.create(**ASKED, stream=True)

    async with Runner(registry) as runner:
        turn = await runner.run(stream)

    check(turn, wire="openai-chat", text="Adding.")
    assert turn.finish_reason == "tool_calls"
    assert stream.response.is_closed


async def test_async_anthropic_stream(
    server: ReplayServer, anthropic_async: anthropic.AsyncAnthropic, registry: ToolRegistry
):
    """A stream of the async client is read, run and closed."""
    server.will_answer(anthropic_sse(anthropic_events(*CALLS, text="Adding.")))
    stream = await anthropic_async.messages.create(**ASKED, max_tokens=9, stream=True)

    async with Runner(registry) as runner:
        turn = await runner.run(stream)

    check(turn, wire="anthropic-messages", text="Adding.")
    assert turn.usage == {"input_tokens": 11, "output_tokens": 7}
    assert stream.response.is_closed


@pytest.mark.parametrize("entry", ["run", "run_sync", "run_sync in a block"])
async def test_sync_openai_stream(
    server: ReplayServer, openai_client: openai.OpenAI, registry: ToolRegistry, entry: str
):
    """A stream of the sync client goes into every entry, inside a running loop too."""
    server.will_answer(openai_sse(openai_chunks(*CALLS)))
    stream = openai_client.chat.completions.create(**ASKED, stream=True)

    check(await through(entry, registry, stream), wire="openai-chat")
    assert stream.response.is_closed


@pytest.mark.parametrize("entry", ["run", "run_sync", "run_sync in a block"])
async def test_sync_anthropic_stream(
    server: ReplayServer, anthropic_client: anthropic.Anthropic, registry: ToolRegistry, entry: str
):
    """A stream of the sync client goes into every entry, inside a running loop too."""
    server.will_answer(anthropic_sse(anthropic_events(*CALLS)))
    stream = anthropic_client.messages.create(**ASKED, max_tokens=9, stream=True)

    check(await through(entry, registry, stream), wire="anthropic-messages")
    assert stream.response.is_closed


async def test_openai_stream_helpers(
    server: ReplayServer, openai_async: openai.AsyncOpenAI, openai_client: openai.OpenAI, registry: ToolRegistry
):
    """The `.stream()` helpers wrap each chunk and add events of their own; the calls are the same."""
    server.will_answer(*[openai_sse(openai_chunks(*CALLS, text="Adding."))] * 2)
    runner = Runner(registry)

    async with openai_async.chat.completions.stream(**ASKED) as stream:
        check(await runner.run(stream), wire="openai-chat", text="Adding.")
    with openai_client.chat.completions.stream(**ASKED) as stream:
        check(await runner.run(stream), wire="openai-chat", text="Adding.")


async def test_anthropic_stream_helpers(
    server: ReplayServer,
    anthropic_async: anthropic.AsyncAnthropic,
    anthropic_client: anthropic.Anthropic,
    registry: ToolRegistry,
):
    """The `.stream()` helpers add accumulated events; the calls are the same."""
    server.will_answer(*[anthropic_sse(anthropic_events(*CALLS, text="Adding."))] * 2)
    runner = Runner(registry)

    async with anthropic_async.messages.stream(**ASKED, max_tokens=9) as stream:
        check(await runner.run(stream), wire="anthropic-messages", text="Adding.")
    with anthropic_client.messages.stream(**ASKED, max_tokens=9) as stream:
        check(await runner.run(stream), wire="anthropic-messages", text="Adding.")


async def test_whole_openai_response(server: ReplayServer, openai_async: openai.AsyncOpenAI, registry: ToolRegistry):
    """A response that was not streamed goes in at the same door."""
    server.will_answer(json_reply(openai_completion(*CALLS, text="Adding.")))
    response = await openai_async.chat.completions.create(**ASKED)

    turn = await Runner(registry).run(response)

    check(turn, wire="openai-chat", text="Adding.")
    assert turn.usage == {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


async def test_whole_anthropic_message(
    server: ReplayServer, anthropic_async: anthropic.AsyncAnthropic, registry: ToolRegistry
):
    """A response that was not streamed goes in at the same door."""
    given = (("call_1", "add", {"a": 2, "b": 3}), ("call_2", "add", {"a": 1, "b": 1}))
    server.will_answer(json_reply(anthropic_message(*given, text="Adding.")))
    response = await anthropic_async.messages.create(**ASKED, max_tokens=9)

    turn = await Runner(registry).run(response)

    check(turn, wire="anthropic-messages", text="Adding.")


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
async def test_raw_bytes(server: ReplayServer, registry: ToolRegistry, wire: str):
    """The bytes of an HTTP response need no SDK."""
    server.will_answer(
        openai_sse(openai_chunks(*CALLS)) if wire == "openai-chat" else anthropic_sse(anthropic_events(*CALLS))
    )
    async with (
        httpx2.AsyncClient(trust_env=False) as client,
        client.stream("POST", f"{server.url}/v1/any", json=ASKED) as response,
    ):
        turn = await Runner(registry).run(response.aiter_bytes())

    check(turn, wire=wire)


async def test_finalize_takes_the_same_streams(
    server: ReplayServer, openai_async: openai.AsyncOpenAI, openai_client: openai.OpenAI
):
    """Without a runner: `finalize` for sync streams, `afinalize` for async ones."""
    server.will_answer(*[openai_sse(openai_chunks(*CALLS))] * 2)
    expected = [("call_1", {"a": 2, "b": 3}, "ok"), ("call_2", {"a": 1, "b": 1}, "ok")]

    sync_calls = finalize(openai_client.chat.completions.create(**ASKED, stream=True))
    async_calls = await afinalize(await openai_async.chat.completions.create(**ASKED, stream=True))

    assert [(call.id, call.arguments, call.status) for call in sync_calls] == expected
    assert [(call.id, call.arguments, call.status) for call in async_calls] == expected


async def test_a_finish_that_the_sdk_hides(
    server: ReplayServer, openai_async: openai.AsyncOpenAI, registry: ToolRegistry
):
    """The OpenAI SDK swallows `[DONE]`: without a finish reason the end is bare, unless the user says otherwise."""
    server.will_answer(*[openai_sse(openai_chunks(*CALLS, finish=None))] * 2)

    bare = await Runner(registry).run(await openai_async.chat.completions.create(**ASKED, stream=True))
    told = await Runner(registry).run(await openai_async.chat.completions.create(**ASKED, stream=True), end="normal")

    assert [(outcome.status, outcome.code) for outcome in bare.outcomes] == [("refused", "no_finish")] * 2
    assert [(outcome.status, outcome.value) for outcome in told.outcomes] == [("succeeded", 5), ("succeeded", 2)]


async def test_a_coroutine_is_not_a_stream(
    server: ReplayServer, openai_async: openai.AsyncOpenAI, registry: ToolRegistry
):
    """A forgotten `await` is said to be one."""
    server.will_answer(json_reply(openai_completion()))
    forgotten = openai_async.chat.completions.create(**ASKED)

    with pytest.raises(TypeError, match="await it first"):
        await Runner(registry).run(forgotten)

    await forgotten
