"""Every form in which a stream may come, for every wire: one table says which test proves it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.wires.openai_realtime import OpenAIRealtime
from toolrun import afinalize, finalize
from toolrun.wires import WIRES as BUILT_IN

from .test_every_wire import STREAMS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from toolrun.abc import Wire

Json = dict[str, Any]

WIRES: dict[str, Wire] = {**BUILT_IN, "openai-realtime": OpenAIRealtime()}
FRAMES = {"openai-realtime": "ndjson", "ollama": "ndjson"}
"""How raw streams of a wire are framed, where it is not as server-sent events; a WebSocket's messages are lines here."""

each = pytest.mark.parametrize("wire", WIRES)


def decoded(wire: str) -> list[list[Json]]:
    """Streams of a wire as plain data, what is bytes in them as text."""
    return [json.loads(json.dumps(events, default=bytes.decode)) for events in STREAMS[wire]]


def encoded(wire: str, events: Sequence[Json]) -> bytes:
    form = "{}\n" if FRAMES.get(wire) == "ndjson" else "data: {}\n\n"
    return "".join(form.format(json.dumps(event)) for event in events).encode()


async def one_by_one(events: Sequence[object]) -> AsyncIterator[object]:
    for event in events:
        yield event


@each
async def test_dicts(wire: str) -> None:
    """A list, an iterator and an async iterator of events are one."""
    for events in decoded(wire):
        calls = finalize(events, wire=WIRES[wire])
        assert finalize(iter(events), wire=WIRES[wire]) == calls
        assert await afinalize(events, wire=WIRES[wire]) == calls
        assert await afinalize(one_by_one(events), wire=WIRES[wire]) == calls


def provider(wire: str) -> httpx.MockTransport:
    """Answers a request for `/n` with the n-th stream."""
    bodies = [encoded(wire, events) for events in decoded(wire)]
    return httpx.MockTransport(lambda request: httpx.Response(200, content=bodies[int(request.url.path[1:])]))


@each
def test_raw(wire: str) -> None:
    """So are the bytes of a body, its text, and what httpx reads of a response."""
    with httpx.Client(transport=provider(wire)) as client:
        for number, events in enumerate(decoded(wire)):
            body, calls = encoded(wire, events), finalize(events, wire=WIRES[wire])
            assert finalize(body, wire=WIRES[wire]) == finalize(body.decode(), wire=WIRES[wire]) == calls
            with client.stream("GET", f"http://provider/{number}") as response:
                assert finalize(response.iter_bytes(7), wire=WIRES[wire]) == calls


@each
async def test_raw_async(wire: str) -> None:
    """The same for the bytes, and the text, of an async response."""
    async with httpx.AsyncClient(transport=provider(wire)) as client:
        for number, events in enumerate(decoded(wire)):
            calls = finalize(events, wire=WIRES[wire])
            for read in (httpx.Response.aiter_bytes, httpx.Response.aiter_text):
                async with client.stream("GET", f"http://provider/{number}") as response:
                    assert await afinalize(read(response), wire=WIRES[wire]) == calls


# -- the table ------------------------------------------------------------------------------

TESTS = Path(__file__).resolve().parents[1]
HERE = "streams/test_inputs.py"
BY_FORM = {
    "decoded dicts": f"{HERE}::test_dicts",
    "raw bytes and text": f"{HERE}::test_raw",
    "httpx, async": f"{HERE}::test_raw_async",
}
RECORDED = {
    "recorded dicts": "streams/test_corpus.py::test_as_recorded",
    "any chunks": "streams/test_corpus.py::test_bytes",
}
CONVERSE, RESPONSES = "wires/test_bedrock_converse.py", "wires/test_openai_responses_streams.py"

PROVEN: dict[str, dict[str, str]] = {
    "openai-chat": {
        "sdk, sync": "streams/test_corpus.py::test_sdk_objects",
        "sdk, async": "runtime/test_sdk_streams.py::test_async_openai_stream",
        "whole response": "runtime/test_sdk_streams.py::test_whole_openai_response",
    },
    "anthropic-messages": {
        "sdk, sync": "streams/test_corpus.py::test_sdk_objects",
        "sdk, async": "runtime/test_sdk_streams.py::test_async_anthropic_stream",
        "whole response": "runtime/test_sdk_streams.py::test_whole_anthropic_message",
    },
    "openai-responses": {
        "sdk, sync": f"{RESPONSES}::test_sdk_stream",
        "sdk, async": f"{RESPONSES}::test_sdk_async_stream",
        "whole response": f"{RESPONSES}::test_sdk_whole_response",
    },
    "gemini": {
        "sdk, sync": "wires/test_gemini.py::test_sdk_stream",
        "sdk, async": "wires/test_gemini.py::test_sdk_async_stream",
        "whole response": "wires/test_gemini.py::test_sdk_whole_response_in_a_runner",
    },
    "bedrock-converse": {
        "sdk, sync": f"{CONVERSE}::test_recording_through_boto3",
        "whole response": f"{CONVERSE}::test_recording_as_whole_response",
    },
    "bedrock-invoke": {
        "sdk, sync": "wires/test_bedrock_invoke.py::test_recording_through_boto3",
        "whole response": "wires/test_bedrock_invoke.py::test_whole_body",
    },
    **{
        wire: {
            "sdk, sync": f"wires/test_{module}.py::test_sdk_stream",
            "sdk, async": f"wires/test_{module}.py::test_sdk_async_stream",
            "whole response": f"wires/test_{module}.py::test_whole_response",
        }
        for wire, module in (("mistral", "mistral"), ("cohere-v2", "cohere_v2"), ("ollama", "ollama"))
    },
    "openai-realtime": {"sdk, sync": "wires/test_openai_realtime.py::test_recording_of_sdk_objects"},
}

NO_SUCH_FORM = {
    ("bedrock-converse", "sdk, async"): "boto3 has no async client",
    ("bedrock-invoke", "sdk, async"): "boto3 has no async client",
    ("openai-realtime", "sdk, async"): "the async connection yields the same objects, one at a time",
    ("openai-realtime", "whole response"): "a session is always a stream",
}


@each
@pytest.mark.parametrize("form", ["sdk, sync", "sdk, async", "whole response", *BY_FORM, *RECORDED])
def test_every_form_is_proven(wire: str, form: str) -> None:
    """Each form of each wire names the test that feeds it, and that test is there; or the form does not exist."""
    proof = {**BY_FORM, **RECORDED, **PROVEN[wire]}.get(form)
    if proof is None:
        assert (wire, form) in NO_SUCH_FORM
        return
    file, _, name = proof.partition("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
