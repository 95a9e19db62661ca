"""Amazon Bedrock for tests: its recordings, the encoding of its streams, and a loopback server for boto3."""

from __future__ import annotations

import functools
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote

from toolrun import Diagnostic, StreamFinalizer, Tool, ToolRegistry, finalize
from toolrun._testing.framing import EVENT_STREAM
from toolrun._testing.framing import event_stream as message_of
from toolrun._testing.loopback import HttpReply, LoopbackServer, json_reply
from toolrun.wires.bedrock_converse import BedrockConverse

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def event_stream(events: Iterable[Json]) -> bytes:
    """Wrapped events as Bedrock sends them."""
    return b"".join(map(message_of, events))


# -- the server -----------------------------------------------------------------------------


REQUEST_ID = {"x-amzn-requestid": "req-1"}


class Bedrock(LoopbackServer):
    """A server on the loopback interface that answers by model id, and a real client for it."""

    def __init__(self) -> None:
        super().__init__(lambda request: self._replies[unquote(request.path.split("/")[2])])
        self._replies: dict[str, HttpReply] = {}

    def __enter__(self) -> Self:
        import boto3  # importing it takes long, and not every test needs it
        from botocore.config import Config

        self.client = boto3.client(
            "bedrock-runtime",
            region_name="us-east-1",
            endpoint_url=self.url,
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"total_max_attempts": 1}),
        )
        return super().__enter__()

    def __exit__(self, *raised: object) -> None:
        self.client.close()
        super().__exit__(*raised)

    def serve(self, model: str, events: Iterable[Json], *, missing: int = 0) -> None:
        """Answer with a stream; with `missing` bytes the connection breaks before they are sent."""
        body = event_stream(events)
        there = len(body) - missing
        pieces = [piece for piece in (body[:there], body[there:]) if piece]
        self._replies[model] = HttpReply(
            pieces=pieces, content_type=EVENT_STREAM, drop_after=1 if missing else None, headers=REQUEST_ID
        )

    def serve_whole(self, model: str, body: Json) -> None:
        """Answer with one JSON document."""
        self._replies[model] = json_reply(body, headers=REQUEST_ID)

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
        return list(self.requests[-1].body["messages"][1:])


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
