"""Every recorded stream of the `openai-responses` wire: decoded, as bytes, cut, whole, and through the official SDK."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.streams import corpus
from tests.streams.corpus import check
from toolrun import CallStatus, StreamFinalizer, afinalize, finalize
from toolrun._testing.loopback import HttpReply, LoopbackServer, json_reply

from .responses import (
    RECORDINGS,
    SEARCH,
    SHELL,
    WIRE,
    brief,
    call_item,
    ended,
    fed,
    history,
    kind_of,
    message_item,
    reasoning_item,
    runs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.streams.corpus import Recording

    from .responses import Json

recorded = pytest.mark.skipif(not RECORDINGS, reason=corpus.ABSENT)
each_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.id)


@recorded
def test_differences_are_of_recordings() -> None:
    """Every difference that is written down belongs to a recording that is there."""
    assert {recording.id for recording in RECORDINGS} >= NOT_BY_HELPER


QUIET = {
    "response.output_text.delta", "response.output_text.annotation.added", "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta", "response.code_interpreter_call_code.delta",
    "response.shell_call_command.delta",
}  # fmt: skip
"""Events that come in long runs and say nothing about a client's call: a run of them is cut once."""


@recorded
@each_recording
def test_recording_cut(recording: Recording) -> None:
    """Cut before its end, nothing runs; each client call that began is in the history once, and answered once."""
    kinds = [kind_of(event) for event in recording.events]
    events = [event["data"] for event in recording.events]
    for length in range(recording.proven + 1):
        if kinds[length - 1 : length] == kinds[length : length + 1] and kinds[length] in QUIET:
            continue
        for end in ("auto", "error"):
            finalizer, _ = fed(*events[:length], end=end)
            assert runs(finalizer.calls) == []
            assert {call.status for call in finalizer.calls} <= {CallStatus.INCOMPLETE}
        own = [call.id for call in finalizer.calls if not call.provider_executed]
        items = [item for item in history(*events[:length]) if item.get("call_id") in own]
        assert Counter(item["call_id"] for item in items) == dict.fromkeys(own, 2)
        assert [item["call_id"] for item in items if item["type"].endswith("_output")] == own


@recorded
@each_recording
def test_recording_without_its_stream(recording: Recording) -> None:
    """The terminal response alone, as a whole response, has the same calls where it lists them."""
    events = [event["data"] for event in recording.events if kind_of(event) == "response.completed"]
    output = [event["response"].get("output") for event in events if isinstance(event, dict)]
    if not output or not output[0]:
        pytest.skip("the terminal response lists nothing")
    calls = finalize(events[0]["response"], wire=WIRE)

    if recording.id == "vercel-should-send-streaming-tool-calls-5":
        assert [call.id for call in calls] == ["call_KsVqaVAf3alAtCCkQe4itE7W", "call_X2PAkDJInno9VVnNkDrfhboW"]
    else:
        check(calls, recording.calls)


# -- the official SDK -----------------------------------------------------------------------

NOT_BY_SDK = {"vercel-parallel-tool-call-wrapper-1"}
"""The SDK raises at the payload that is not JSON: nothing has come before it."""

NOT_BY_HELPER = NOT_BY_SDK | {
    "rubyllm-providers-bedrock-mantle-responses-chat-streams-through-the-re-cdfda3",
    "vercel-github-copilot-id-rotation-1",
    "vercel-openai-client-tool-search-1",
    "vercel-should-send-streaming-tool-calls-5",
    "vercel-should-use-the-final-tool-search-call-id-when-the-streamed-p-12",
}
"""The SDK's `.stream()` helper raises over ids that change, and over a text part that was never announced."""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """The SDK's client, and a server on the loopback interface that answers with the recording named as the model."""
    import openai  # it takes seconds to import

    answers = {recording.id: HttpReply(pieces=[recording.stream]) for recording in RECORDINGS}
    answers["whole"] = json_reply(SDK_RESPONSE)
    with (
        LoopbackServer(lambda request: answers[request.body["model"]]) as server,
        openai.OpenAI(api_key="none", base_url=server.url, max_retries=0) as sdk,
    ):
        yield sdk


SDK_RESPONSE: Json = {
    **ended(
        reasoning_item(encrypted_content="gAAA"),
        message_item("Hello"),
        call_item(1, arguments='{"a":1}', status="completed"),
        {**SHELL, "call_id": "call_2", "status": "completed"},
        {**SEARCH, "call_id": None, "execution": "server", "status": "completed"},
    )["response"],
    "created_at": 1,
    "model": "m",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}


def test_sdk_whole_response(client: Any) -> None:
    """The SDK's whole response has the same calls and the same history as the JSON that it was made from."""
    finalizer, _ = fed(client.responses.create(model="whole", input="x"))
    plain, _ = fed(SDK_RESPONSE)
    assert brief(finalizer.calls) == brief(plain.calls)
    assert finalizer.calls == finalize(SDK_RESPONSE, wire=WIRE)
    written = WIRE.assistant_messages(finalizer.response, finalizer.calls)
    assert written == WIRE.assistant_messages(plain.response, plain.calls) == SDK_RESPONSE["output"]


def test_sdk_parsed_response(client: Any) -> None:
    """What the SDK's `.parse()` adds to a response does not go back."""
    parsed = client.responses.parse(model="whole", input="x")
    finalizer, _ = fed(parsed)
    assert "parsed" in parsed.output[1].content[0].model_fields_set
    assert WIRE.assistant_messages(finalizer.response, finalizer.calls) == SDK_RESPONSE["output"]


@recorded
@each_recording
def test_sdk_stream(recording: Recording, client: Any) -> None:
    """The SDK's events give the same calls as the same events as JSON."""
    calls = finalize(client.responses.create(model=recording.id, input="x", stream=True), wire=WIRE)
    check(calls, () if recording.id in NOT_BY_SDK else recording.calls)


@recorded
# The client leaves its inner generators unfinished at the last event, and trio says so.
@pytest.mark.filterwarnings(r"ignore:Async generator '(openai|httpx2|httpcore2)\.:ResourceWarning")
async def test_sdk_async_stream(client: Any) -> None:
    """The async client's objects give the same calls."""
    import openai

    async with openai.AsyncOpenAI(api_key="none", base_url=client.base_url, max_retries=0) as sdk:
        for recording in RECORDINGS[::5]:
            stream = await sdk.responses.create(model=recording.id, input="x", stream=True)
            check(await afinalize(stream, wire=WIRE), () if recording.id in NOT_BY_SDK else recording.calls)


@recorded
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # the helper dumps what it does not know
@each_recording
def test_sdk_helper(recording: Recording, client: Any) -> None:
    """The events of the SDK's `.stream()` helper give the same calls, and nothing of the helper's own goes back."""
    finalizer = StreamFinalizer(WIRE)
    raised = None
    with client.responses.stream(model=recording.id, input="x") as stream:
        try:
            for event in stream:
                finalizer.feed(event)
        except Exception as error:  # noqa: BLE001  # whatever the helper raises
            raised = error
    finalizer.close("auto" if raised is None else "error")

    if recording.id in NOT_BY_HELPER:
        assert raised is not None
        assert runs(finalizer.calls) == []
    else:
        check(finalizer.calls, recording.calls)
        written = json.dumps(WIRE.assistant_messages(finalizer.response, finalizer.calls))
        assert '"parsed' not in written
