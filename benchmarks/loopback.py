"""A whole turn over HTTP on the loopback interface: eight parallel calls, run, answered, and a closing text."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import anyio
import httpx2
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from benchmarks import streams
from benchmarks.harness import Effort, Measured, Row, awaited, ratio
from toolrun import Runner, Tool, ToolRegistry

_CALLS = 8
_BODY: dict[str, Any] = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]}


class Write(TypedDict):
    """What the model writes."""

    path: str
    content: str
    rows: list[dict[str, Any]]


async def write(path: str, content: str, rows: list[dict[str, Any]]) -> str:  # noqa: ARG001  # a tool's signature
    """Write a file."""
    return "ok"


_validate_json = TypeAdapter(Write).validator.validate_json


async def floor(client: httpx2.AsyncClient) -> str:
    """The least that does the turn: nothing is checked but the schema, and a fault anywhere ends it."""
    ids, texts, _ = await _read(client, _BODY["messages"])
    results: list[str] = [""] * len(ids)

    async def run(position: int) -> None:
        results[position] = await write(**_validate_json(texts[position]))

    async with anyio.create_task_group() as group:
        for position in range(len(ids)):
            group.start_soon(run, position)
    calls = [
        {"id": call_id, "type": "function", "function": {"name": "write", "arguments": text}}
        for call_id, text in zip(ids, texts, strict=True)
    ]
    answers = [
        {"role": "tool", "tool_call_id": call_id, "content": text} for call_id, text in zip(ids, results, strict=True)
    ]
    history = [*_BODY["messages"], {"role": "assistant", "content": None, "tool_calls": calls}, *answers]
    return (await _read(client, history))[2]


async def _read(client: httpx2.AsyncClient, messages: list[Any]) -> tuple[list[str], list[str], str]:
    ids: dict[int, str] = {}
    parts: dict[int, list[str]] = {}
    said: list[str] = []
    rest = b""
    async with client.stream("POST", "/", json={**_BODY, "messages": messages}) as response:
        async for block in response.aiter_bytes():
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                if not line.startswith(b"data: ") or line == b"data: [DONE]":
                    continue
                delta = json.loads(line[6:])["choices"][0]["delta"]
                for call in delta.get("tool_calls") or ():
                    if call["index"] not in parts:
                        parts[call["index"]] = []
                        ids[call["index"]] = call["id"]
                    parts[call["index"]].append(call["function"].get("arguments") or "")
                if delta.get("content"):
                    said.append(delta["content"])
    return list(ids.values()), ["".join(mine) for mine in parts.values()], "".join(said)


async def turns(client: httpx2.AsyncClient, runner: Runner) -> str:
    """The same with toolrun."""
    messages: list[Any] = list(_BODY["messages"])
    while True:
        async with client.stream("POST", "/", json={**_BODY, "messages": messages}) as response:
            turn = await runner.run(response.aiter_bytes())
        messages += turn.messages()
        if not turn.needs_reply:
            return turn.text


def end_to_end(effort: Effort) -> Measured:
    """CPU time of the client; the server is a process of its own."""
    registry = ToolRegistry()
    registry.add(Tool.from_function(write))
    with _server() as url, asyncio.Runner() as loop:
        client = httpx2.AsyncClient(base_url=url, trust_env=False)
        runner = Runner(registry)

        async def ours() -> None:
            _check(await turns(client, runner))

        async def least() -> None:
            _check(await floor(client))

        try:
            return ratio(awaited(loop, ours), awaited(loop, least), effort)
        finally:
            loop.run(client.aclose())


def _check(said: str) -> None:
    if said != "all done.":
        raise AssertionError(f"the turn ended with {said!r}")


@contextmanager
def _server() -> Iterator[str]:
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection) -> None:
    calls = streams.chat(streams.pieces(streams.arguments(1_000, seed), seed) for seed in range(_CALLS))
    bodies = [streams.sse(calls), streams.sse(streams.answer("all ", "done", "."))]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
    answers = [head % len(body) + body for body in bodies]

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = asked.partition(b"content-length:")[2].partition(b"\r\n")[0]
                body = json.loads(await reader.readexactly(int(length)))
                writer.write(answers[body["messages"][-1]["role"] == "tool"])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


ROWS = (
    Row(
        "end-to-end",
        "a turn over loopback HTTP, 8 calls of 1 KB, against httpx and the bare loop",
        "x",
        1.3,
        end_to_end,
    ),
)
