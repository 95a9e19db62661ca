"""Amazon Bedrock for tests: its recordings, the encoding of its streams, and a loopback server for boto3."""

from __future__ import annotations

import base64
import functools
import json
import struct
import threading
from contextlib import closing
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote
from zlib import crc32

from toolrun import Diagnostic, StreamFinalizer, Tool, ToolRegistry, finalize
from toolrun.wires.bedrock_converse import BedrockConverse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from tests.streams.corpus import Recording
    from toolrun.abc import Wire

Json = dict[str, Any]

CONVERSE = BedrockConverse()

# -- comparing ------------------------------------------------------------------------------


def wrapped(recording: Recording) -> list[Json]:
    """The events as boto3 yields them: the name is the only key."""
    return [{event["event"]: event["data"]} for event in recording.events]


def runs(recording: Recording) -> list[tuple[str | None, Json | None]]:
    """What must run, with what."""
    return [(call.name, call.arguments) for call in recording.runnable]


def meaning(messages: Iterable[Json]) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """What messages say, in the form of either protocol: joined texts, calls, results."""
    return [(message["role"], _meaning(message["content"])) for message in messages]


def _meaning(blocks: Iterable[Json]) -> list[tuple[Any, ...]]:
    said: list[tuple[Any, ...]] = []
    for block in blocks:
        match block:
            case {"toolUse": call}:
                said.append(("call", call["toolUseId"], call["name"], call["input"]))
            case {"type": "tool_use"}:
                said.append(("call", block["id"], block["name"], block["input"]))
            case {"toolResult": result}:
                said.append(("result", result["toolUseId"], texts(result["content"]), result.get("status") == "error"))
            case {"type": "tool_result"}:
                failed = block.get("is_error", False)
                said.append(("result", block["tool_use_id"], texts(block["content"]), failed))
            case {"text": text} if said and said[-1][0] == "text":
                said[-1] = ("text", said[-1][1] + text)
            case {"text": text}:
                said.append(("text", text))
            case _:
                raise AssertionError(f"not a block that is compared: {block}")
    return said


def texts(content: str | list[Json]) -> str:
    """A result's content as one text: JSON is written down."""
    if isinstance(content, str):
        return content
    return "".join(json.dumps(item["json"]) if "json" in item else item["text"] for item in content)


def results_in(messages: list[Json]) -> list[str]:
    """The ids of the calls that have a result, in order."""
    return [
        block["toolResult"]["toolUseId"]
        for message in messages
        if message["role"] == "user"
        for block in message["content"]
    ]


def diagnostics(wire: Wire, events: Iterable[object]) -> list[Diagnostic]:
    """What was odd about a stream."""
    finalizer = StreamFinalizer(wire)
    seen = [event for each in events for event in finalizer.feed(each)]
    return [event for event in (*seen, *finalizer.close()) if isinstance(event, Diagnostic)]


def noting(ran: list[tuple[str, Json]], names: Iterable[str]) -> ToolRegistry:
    """Tools that take anything, and note what ran with what."""

    async def note(name: str, /, **arguments: Any) -> str:
        ran.append((name, arguments))
        return "done"

    schema = {"type": "object", "additionalProperties": True}
    return ToolRegistry(
        Tool.from_json_schema(name=name, input_schema=schema, handler=functools.partial(note, name))
        for name in sorted(set(names))
    )


def feed(wire: Wire, events: Iterable[object], end: Any = "auto") -> StreamFinalizer:
    """A closed finalizer that has seen the events."""
    finalizer = StreamFinalizer(wire)
    for event in events:
        finalizer.feed(event)
    finalizer.close(end)
    return finalizer


# -- writing Converse events down -----------------------------------------------------------

START: Json = {"messageStart": {"role": "assistant"}}


def call_start(index: int | None, id: str | None = "t1", name: str | None = "look_up", **rest: Any) -> Json:
    block = {key: value for key, value in {"toolUseId": id, "name": name, **rest}.items() if value is not None}
    return {"contentBlockStart": at(index, start={"toolUse": block})}


def delta(index: int | None, **member: Any) -> Json:
    return {"contentBlockDelta": at(index, delta=member)}


def piece(index: int | None, input: Any) -> Json:
    return delta(index, toolUse={"input": input})


def at(index: int | None, **body: Any) -> Json:
    return body if index is None else {**body, "contentBlockIndex": index}


def stop(reason: str | None = "tool_use") -> Json:
    return {"messageStop": {"stopReason": reason} if reason else {}}


def a_call(index: int, id: str, name: str, *inputs: Any) -> list[Json]:
    return [call_start(index, id, name), *(piece(index, each) for each in inputs)]


def read(*events: Json, end: Any = "auto") -> tuple[Any, ...]:
    return finalize(list(events), wire=CONVERSE, end=end)


def said(*events: Json) -> list[Json]:
    """The content of the assistant message that repeats a stream; no message is no content."""
    finalizer = feed(CONVERSE, events)
    messages = CONVERSE.assistant_messages(finalizer.response, finalizer.calls)
    assert [message["role"] for message in messages] == ["assistant"] * len(messages)
    return [block for message in messages for block in message["content"]]


def codes(*events: Json) -> list[str]:
    """The codes of what was odd about a stream."""
    return [diagnostic.code for diagnostic in diagnostics(CONVERSE, events)]


# -- the encoding ---------------------------------------------------------------------------


def frame(payload: bytes, **headers: str) -> bytes:
    """One message of `application/vnd.amazon.eventstream`: lengths, a checksum, headers, the payload, a checksum."""
    packed = b"".join(
        struct.pack("!B", len(name) + 1)
        + f":{name.replace('_', '-')}".encode()
        + struct.pack("!BH", 7, len(value))
        + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(packed) + len(payload), len(packed))
    message = prelude + struct.pack("!I", crc32(prelude)) + packed + payload
    return message + struct.pack("!I", crc32(message))


def event_stream(events: Iterable[Json]) -> bytes:
    """Wrapped events as Bedrock sends them; bytes are base64 text, exceptions are messages of their own type."""
    return b"".join(_frames(events))


def _frames(events: Iterable[Json]) -> Iterator[bytes]:
    for event in events:
        ((name, body),) = event.items()
        payload = json.dumps(body, default=lambda value: base64.b64encode(value).decode()).encode()
        if name.endswith("Exception"):
            yield frame(payload, message_type="exception", exception_type=name, content_type="application/json")
        else:
            yield frame(payload, message_type="event", event_type=name, content_type="application/json")


# -- the server -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reply:
    body: bytes
    content_type: str
    missing: int = 0


@dataclass
class Bedrock:
    """A server on the loopback interface that answers by model id, and a real client for it.

    Attributes:
        requests: The body of each request, in order.
    """

    requests: list[Json] = field(default_factory=list)
    _replies: dict[str, _Reply] = field(default_factory=dict)

    def __enter__(self) -> Self:
        import boto3  # importing it takes long, and not every test needs it
        from botocore.config import Config

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.client = boto3.client(
            "bedrock-runtime",
            region_name="us-east-1",
            endpoint_url=f"http://127.0.0.1:{self._server.server_address[1]}",
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"total_max_attempts": 1}),
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.client.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def serve(self, model: str, events: Iterable[Json], *, missing: int = 0) -> None:
        """Answer with a stream; with `missing` bytes the connection breaks before they are sent."""
        self._replies[model] = _Reply(event_stream(events), "application/vnd.amazon.eventstream", missing)

    def serve_whole(self, model: str, body: Json) -> None:
        """Answer with one JSON document."""
        self._replies[model] = _Reply(json.dumps(body).encode(), "application/json")

    def converse_stream(self, events: Iterable[Json], *, missing: int = 0) -> Any:
        """What boto3 makes of a Converse stream."""
        self.serve("model", events, missing=missing)
        return self.client.converse_stream(modelId="model", messages=[])["stream"]

    def invoke_stream(self, events: Iterable[Json], *, missing: int = 0) -> Any:
        """What boto3 makes of an InvokeModel stream."""
        self.serve("model", events, missing=missing)
        return self.client.invoke_model_with_response_stream(modelId="model", body=b"{}")["body"]

    def send_converse(self, messages: list[Json]) -> list[Json]:
        """Send messages after a user's, and give what arrived of them."""
        self.serve_whole("sent", whole_response([{"text": "ok"}], "end_turn"))
        user = {"role": "user", "content": [{"text": "Hello"}]}
        self.client.converse(modelId="sent", messages=[user, *messages])
        return list(self.requests[-1]["messages"][1:])

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        replies, requests = self._replies, self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                reply = replies[unquote(self.path.split("/")[2])]
                self.send_response(200)
                self.send_header("content-type", reply.content_type)
                self.send_header("x-amzn-requestid", "req-1")
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: len(reply.body) - reply.missing])

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        return Handler


def collect(stream: Any) -> list[Json]:
    """Every event of a boto3 stream, which is closed then."""
    with closing(stream):
        return list(stream)


def whole_response(content: list[Json], reason: str) -> Json:
    """A response of the Converse operation."""
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reason,
        "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3},
        "metrics": {"latencyMs": 4},
    }
