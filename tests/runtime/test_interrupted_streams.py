"""Streams that break, hang or are left: nothing unfinished runs, and the source is closed."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING

import anthropic
import anyio
import httpx2
import openai
import pytest

from toolrun import CallDelta, Repaired, Runner, StreamInterrupted, ToolRegistry, UnknownWire

from .responses import anthropic_events, chunk, openai_chunks
from .server import HttpReply, anthropic_sse, openai_sse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from toolrun import Turn

    from .server import ReplayServer

ASKED = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
CALL = ("call_1", "pay", ['{"amount": 5, ', '"to": "al"}'])
WHOLE = '{"amount": 5, "to": "al"}'


@pytest.fixture
def ran() -> list[tuple[int, str]]:
    return []


@pytest.fixture
def registry(ran: list[tuple[int, str]]) -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool
    async def pay(amount: int = 1, to: str = "nobody") -> str:
        ran.append((amount, to))
        return "paid"

    return registry


async def open_stream(kind: str, server: ReplayServer, stack: list[object]) -> object:
    """Open a stream with one of the four clients; the client is put on the stack, to be closed."""
    url = server.url
    if kind == "openai async":
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
        stack.append(client)
        return await client.chat.completions.create(**ASKED, stream=True)
    if kind == "openai sync":
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
        stack.append(client)
        return client.chat.completions.create(**ASKED, stream=True)
    if kind == "anthropic async":
        client = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0)
        stack.append(client)
        return await client.messages.create(**ASKED, max_tokens=9, stream=True)
    client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
    stack.append(client)
    return client.messages.create(**ASKED, max_tokens=9, stream=True)


@pytest.fixture
async def clients(anyio_backend: str) -> AsyncIterator[list[object]]:
    stack: list[object] = []
    yield stack
    for client in stack:
        closed = client.close()
        if closed is not None:
            await closed


KINDS = ["openai async", "openai sync", "anthropic async", "anthropic sync"]


def reply_for(kind: str, *, drop_after: int | None = None, hold_before: int | None = None) -> HttpReply:
    """One call; the third piece from the front ends in the middle of its arguments on both wires."""
    if kind.startswith("openai"):
        return openai_sse(openai_chunks(CALL), drop_after=drop_after, hold_before=hold_before)
    return anthropic_sse(anthropic_events(CALL), drop_after=drop_after, hold_before=hold_before)


@pytest.mark.parametrize("kind", KINDS)
async def test_connection_dropped_in_the_middle(
    server: ReplayServer, clients: list[object], registry: ToolRegistry, ran: list[object], kind: str
):
    """Nothing runs; the error has the turn, the raw text and the client's own error."""
    server.will_answer(reply_for(kind, drop_after=3))
    stream = await open_stream(kind, server, clients)

    with pytest.raises(StreamInterrupted) as raised:
        await Runner(registry).run(stream)

    turn = raised.value.turn
    assert ran == []
    assert [(call.id, call.name, call.raw_arguments, call.status) for call in turn.calls] == [
        ("call_1", "pay", '{"amount": 5, ', "incomplete")
    ]
    assert [(outcome.status, outcome.code, outcome.started) for outcome in turn.outcomes] == [
        ("refused", "stream_error", False)
    ]
    assert isinstance(raised.value.__cause__, openai.APIConnectionError | anthropic.APIError | httpx2.TransportError)
    assert stream.response.is_closed
    assert len(turn.messages()) == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_a_broken_stream_as_a_turn(
    server: ReplayServer, clients: list[object], registry: ToolRegistry, ran: list[object], kind: str
):
    """`on_stream_error="return"` gives the same turn without raising."""
    server.will_answer(reply_for(kind, drop_after=3))

    turn = await Runner(registry, on_stream_error="return").run(await open_stream(kind, server, clients))

    assert ran == []
    assert [(outcome.status, outcome.code) for outcome in turn.outcomes] == [("refused", "stream_error")]
    assert [diagnostic.code for diagnostic in turn.diagnostics] == ["stream_error"]


@pytest.mark.parametrize("kind", KINDS)
async def test_connection_dropped_after_the_finish(
    server: ReplayServer, clients: list[object], registry: ToolRegistry, ran: list[object], kind: str
):
    """The calls were whole before the drop: they run, with a diagnostic."""
    pieces = reply_for(kind).pieces
    server.will_answer(reply_for(kind, drop_after=len(pieces) - 1))  # all but `[DONE]`, or `message_stop`

    turn = await Runner(registry).run(await open_stream(kind, server, clients))

    assert ran == [(5, "al")]
    assert [(outcome.status, outcome.value) for outcome in turn.outcomes] == [("succeeded", "paid")]
    assert [diagnostic.code for diagnostic in turn.diagnostics] == ["error_after_finish"]


async def test_connection_dropped_after_the_terminator(server: ReplayServer, registry: ToolRegistry, ran: list[object]):
    """`[DONE]` ended the stream, finish reason or not: what breaks after it takes nothing back."""
    pieces = list(openai_sse(openai_chunks(CALL, finish=None)).pieces)
    server.will_answer(HttpReply(pieces=[*pieces, b": bye\n\n"], drop_after=len(pieces)))

    async with (
        httpx2.AsyncClient(trust_env=False) as client,
        client.stream("POST", f"{server.url}/v1/any", json=ASKED) as response,
    ):
        turn = await Runner(registry).run(response.aiter_bytes())

    assert [(call.status, call.code) for call in turn.calls] == [("ok", "finish_inferred")]
    assert [outcome.status for outcome in turn.outcomes] == ["succeeded"]
    assert ran == [(5, "al")]
    assert [diagnostic.code for diagnostic in turn.diagnostics] == ["error_after_finish"]


async def test_an_error_before_the_terminator_counts(registry: ToolRegistry, ran: list[object]):
    """Servers send `[DONE]` after an error too; the calls are unfinished all the same."""
    turn = await Runner(registry).run([*openai_chunks(CALL, finish=None), {"error": {"message": "busy"}}, "[DONE]"])

    assert ran == []
    assert [(outcome.status, outcome.code) for outcome in turn.outcomes] == [("refused", "stream_error")]


async def test_no_hook_revives_a_call_of_a_broken_stream(registry: ToolRegistry, ran: list[object]):
    """Not even a hook that asks for unfinished calls by name: the error says that nothing was started."""

    @registry.repair(on="incomplete")
    def close_it(request: object) -> Repaired:
        return Repaired(arguments={"amount": 9})

    async def broken() -> AsyncIterator[object]:
        yield openai_chunks(CALL)[1]
        raise OSError("reset")

    with pytest.raises(StreamInterrupted) as raised:
        await Runner(registry).run(broken())

    assert ran == []
    assert raised.value.turn.outcomes[0].status == "refused"
    assert isinstance(raised.value.__cause__, OSError)


# -- closing --------------------------------------------------------------------------------


class AsyncSource:
    """Gives its events, then does as told: `end`, `raise`, `hang` or `nonsense`."""

    def __init__(self, then: str) -> None:
        self.then = then
        self.hanging = anyio.Event()
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[object]:
        if self.then == "nonsense":
            yield {"what": "is this"}
            return
        events = openai_chunks(CALL)
        if self.then == "end":
            for event in events:
                yield event
            return
        yield events[1]
        if self.then == "raise":
            raise OSError("reset")
        self.hanging.set()
        await anyio.sleep_forever()

    async def close(self) -> None:
        self.closed += 1


class SyncSource:
    """The same for a source that blocks."""

    def __init__(self, then: str) -> None:
        self.then = then
        self.hanging = threading.Event()
        self.release = threading.Event()
        self.closed = 0

    def __iter__(self) -> Iterator[object]:
        if self.then == "nonsense":
            yield {"what": "is this"}
            return
        events = openai_chunks(CALL)
        if self.then == "end":
            yield from events
            return
        yield events[1]
        if self.then == "raise":
            raise OSError("reset")
        self.hanging.set()
        self.release.wait(10)

    def close(self) -> None:
        self.closed += 1


async def read_with(runner: Runner, entry: str, source: object) -> Turn:
    if entry == "run":
        return await runner.run(source)
    async with runner.stream(source) as run:
        async for _ in run:
            pass
    return run.turn


@pytest.mark.parametrize("make", [AsyncSource, SyncSource])
@pytest.mark.parametrize("close_stream", [True, False])
@pytest.mark.parametrize("entry", ["run", "stream"])
async def test_the_source_is_closed_on_every_way_out(
    registry: ToolRegistry, make: type[AsyncSource | SyncSource], close_stream: bool, entry: str
):
    """At its end, when it raises, when nothing in it is known; unless the user said not to."""
    closed = {}
    for then, error in (("end", None), ("raise", StreamInterrupted), ("nonsense", UnknownWire)):
        source = make(then)
        with pytest.raises(error) if error else nullcontext():
            await read_with(Runner(registry, close_stream=close_stream), entry, source)
        closed[then] = source.closed

    times = 1 if close_stream else 0
    assert closed == {"end": times, "raise": times, "nonsense": times}


@pytest.mark.parametrize("close_stream", [True, False])
async def test_an_async_source_is_closed_on_cancellation(registry: ToolRegistry, close_stream: bool):
    source = AsyncSource("hang")

    async with anyio.create_task_group() as group:
        group.start_soon(Runner(registry, close_stream=close_stream).run, source)
        await source.hanging.wait()
        group.cancel_scope.cancel()

    assert source.closed == (1 if close_stream else 0)


async def test_a_blocking_source_does_not_hold_up_cancellation(registry: ToolRegistry, ran: list[object]):
    """The caller is released while the thread still blocks; what the thread gets later changes nothing."""
    source = SyncSource("hang")
    runner = Runner(registry)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(runner.run, source)
            await anyio.to_thread.run_sync(source.hanging.wait)
            group.cancel_scope.cancel()
        assert not source.release.is_set()

    assert source.closed == 1
    source.release.set()
    assert ran == []


@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_while_the_provider_is_silent(
    server: ReplayServer, clients: list[object], registry: ToolRegistry, ran: list[object], kind: str
):
    """The caller is released at once, and the connection is closed."""
    server.will_answer(reply_for(kind, hold_before=3))
    stream = await open_stream(kind, server, clients)

    with anyio.fail_after(4):
        async with anyio.create_task_group() as group:
            group.start_soon(Runner(registry).run, stream)
            await anyio.to_thread.run_sync(server.held.wait)
            group.cancel_scope.cancel()
        assert not server.release.is_set()

    assert stream.response.is_closed
    assert ran == []
    server.release.set()


async def test_leaving_the_events_of_a_silent_provider(server: ReplayServer, registry: ToolRegistry):
    """A run that is left early closes the connection; its turn can be read."""
    server.will_answer(openai_sse(openai_chunks(CALL), hold_before=3))

    async with (
        httpx2.AsyncClient(trust_env=False) as client,
        client.stream("POST", f"{server.url}/v1/any", json=ASKED) as response,
    ):
        with anyio.fail_after(4):
            async with Runner(registry).stream(response.aiter_bytes()) as run:
                async for event in run:
                    if isinstance(event, CallDelta):
                        break
        assert response.is_closed

    assert [(call.raw_arguments, call.status) for call in run.turn.calls] == [('{"amount": 5, ', "incomplete")]
    assert [outcome.status for outcome in run.turn.outcomes] == ["cancelled"]


@pytest.mark.parametrize("kind", ["async generator", "generator"])
async def test_generators_are_finished(registry: ToolRegistry, kind: str):
    """A generator that is left in the middle gets to its `finally`."""
    finished = []

    async def async_source() -> AsyncIterator[object]:
        try:
            yield openai_chunks(CALL)[1]
            yield chunk({}, "tool_calls")
        finally:
            finished.append(True)

    def sync_source() -> Iterator[object]:
        try:
            yield openai_chunks(CALL)[1]
            yield chunk({}, "tool_calls")
        finally:
            finished.append(True)

    await Runner(registry).run(async_source() if kind == "async generator" else sync_source())

    assert finished == [True]


@pytest.mark.parametrize("how", ["raises", "hangs", "raises something worse"])
async def test_a_close_that_fails_costs_nothing(registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch, how: str):
    """What the stream was for is done: the turn comes back, soon."""
    monkeypatch.setattr("toolrun._runtime.reading._CLOSE_SECONDS", 0.05)

    class Source(AsyncSource):
        async def close(self) -> None:
            if how == "hangs":
                await anyio.sleep_forever()
            raise OSError("gone") if how == "raises" else ExceptionGroup("several", [OSError("gone")])

    with anyio.fail_after(4):
        turn = await Runner(registry).run(Source("end"))

    assert [outcome.status for outcome in turn.outcomes] == ["succeeded"]


async def test_sources_in_memory_need_no_thread_and_are_not_closed(registry: ToolRegistry):
    """A list, a tuple and a whole response are data."""

    class Events(list[object]):
        def close(self) -> None:
            raise AssertionError("not a stream")

    turn = await Runner(registry).run(Events(openai_chunks(CALL)))

    assert [outcome.status for outcome in turn.outcomes] == ["succeeded"]
