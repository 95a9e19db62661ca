"""What goes back means the same as what a real client sent back and was answered 200 for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from toolrun import StreamFinalizer, finalize
from toolrun.abc import Response, ToolResult
from toolrun.wires import WIRES

from .meaning import FACTS, meaning
from .recordings import ABSENT, ROOT, Recording, recordings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolrun import ToolCall

Json = dict[str, Any]

RECORDINGS = [recording for recording in recordings() if recording.echo_path.is_file()]
pytestmark = pytest.mark.skipif(not RECORDINGS, reason=ABSENT)

DETAILS = frozenset(("thought", "detail"))
LOST_BY_CLIENT = {
    # The text beside the call, or the plan before it.
    "fantasy-claude-sonnet-4-computer-use-streaming": {"text"},
    "rubyllm-chat-function-calling-cohere-command-a-03-2025-can-use-tools-w-035f1b-2": DETAILS,
    "rubyllm-chat-function-calling-cohere-command-a-03-2025-can-use-tools-w-17b2d0": DETAILS,
    # Reasoning without its details, its first word, its kind, or its text.
    "fantasy-avian-kimi-tool-streaming": DETAILS,
    "fantasy-avian-kimi-thinking-streaming": DETAILS,
    "fantasy-glm-multi-tool-streaming": DETAILS,
    "fantasy-grok-tool-streaming": DETAILS,
    "fantasy-kimi-tool-streaming": DETAILS,
    "fantasy-testvercelthinking-gemini-3-pro-preview-thinking-streaming": DETAILS,
    "fantasy-openai-gpt-5-thinking-streaming": {"reasoning"},
    "fantasy-openai-o4-mini-thinking-streaming": {"reasoning"},
    # Reasoning as if it were a text.
    "pydanticai-test-tool-use-failed-error-streaming-1": DETAILS | {"text"},
    # A search by the provider, with its arguments renamed.
    "pydanticai-test-openai-native-tool-search-streaming": {"item"},
}
"""What these clients lost or changed on the way, and what goes back as it came here: a 200 does not prove fidelity."""


def results_of(wire: str, sent: list[Json], calls: Sequence[ToolCall]) -> list[ToolResult]:
    """The results that the client sent, as results of these calls."""
    told = [fact for fact in FACTS[wire](sent) if fact[0] == "result"]
    with_errors = wire in ("anthropic-messages", "bedrock-converse", "bedrock-invoke")
    results = []
    for call, fact in zip(calls, told, strict=True):
        text, is_error = (fact[-2], fact[-1]) if with_errors else (fact[-1], False)
        results.append(ToolResult(call, text if isinstance(text, str) else json.dumps(text), is_error))
    return results


def history(recording: Recording, sent: list[Json]) -> list[Json]:
    calls, response = recording.read()
    calls = tuple(call for call in calls if call.choice == 0)
    wire = WIRES[recording.wire]
    client = [call for call in calls if not call.provider_executed]
    results = wire.result_messages(results_of(recording.wire, sent, client))
    return [*wire.assistant_messages(response, calls), *results]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.id)
def test_echo(recording: Recording) -> None:
    echo = json.loads(recording.echo_path.read_text(encoding="utf-8"))
    lost = LOST_BY_CLIENT.get(recording.id, frozenset())

    ours = meaning(recording.wire, history(recording, echo["results"]))
    theirs = meaning(recording.wire, [*echo["assistant"], *echo["results"]])

    assert [fact for fact in ours if fact[0] not in lost] == [fact for fact in theirs if fact[0] not in lost]
    if lost:
        assert ours != theirs


@pytest.mark.parametrize("wire", sorted({recording.wire for recording in RECORDINGS}))
def test_provider_ids_and_arguments_byte_for_byte(wire: str) -> None:
    """Whatever the comparison above lets pass: ids and argument texts are those that came."""
    for recording in (each for each in RECORDINGS if each.wire == wire):
        echo = json.loads(recording.echo_path.read_text(encoding="utf-8"))
        calls, _ = recording.read()
        written = json.dumps(history(recording, echo["results"]), ensure_ascii=False)
        for call in calls:
            if call.choice == 0 and not call.synthetic_id and not call.provider_executed:
                assert written.count(json.dumps(call.id, ensure_ascii=False)) >= 2
        for message in history(recording, echo["results"]):
            for entry in message.get("tool_calls", ()):
                raw = entry["function"]["arguments"]
                assert raw in {call.raw_arguments or "{}" for call in calls}


def test_every_echo_is_compared() -> None:
    """Those whose stream is among the recordings, from eight wires."""
    assert len(RECORDINGS) >= 223
    assert len({recording.wire for recording in RECORDINGS}) == 8


# -- forms that were refused ------------------------------------------------------------------


def test_messages_never_split_the_calls_of_a_turn() -> None:
    """DeepSeek refuses the items of the first rejected request; the same response is written with its calls together."""
    rejected = [json.loads(line) for line in (ROOT / "echo" / "rejected.jsonl").read_text("utf-8").splitlines()]
    sent = rejected[0]["items"]
    wire = WIRES["openai-responses"]
    output = [
        {**item, "content": [{"type": "output_text", "text": item["content"]}], "type": "message"}
        if item.get("role") == "assistant"
        else item
        for item in sent[:4]
    ]
    recorded: list[Json] = [{"type": "response.completed", "response": {"status": "completed", "output": output}}]

    finalizer = StreamFinalizer(wire)
    for event in recorded:
        finalizer.feed(event)
    finalizer.close()
    items = wire.assistant_messages(finalizer.response, finalizer.calls)

    assert [item.get("type", "message") for item in sent[:4]] == ["message", "function_call"] * 2
    assert [item["type"] for item in items] == ["message", "message", "function_call", "function_call"]


@pytest.mark.parametrize("text", ["plain", '{"file": "s3://bucket/file.pdf"}', ""])
def test_results_of_converse_hold_only_text(text: str) -> None:
    """Nova refuses documents in the results of the second rejected request: what a tool returns is text here."""
    response = {"output": {"message": {"content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]}}}
    [call] = finalize({**response, "stopReason": "tool_use"}, wire="bedrock-converse")
    [message] = WIRES["bedrock-converse"].result_messages([ToolResult(call, text, is_error=False)])

    assert [list(block["toolResult"]["content"][0]) for block in message["content"]] == [["text"]]


def test_an_empty_response_is_no_message() -> None:
    """But for the wire that takes a blank one, nothing is made of nothing."""
    made = {name: wire.assistant_messages(Response(wire=name), []) for name, wire in WIRES.items()}

    assert {name for name, messages in made.items() if messages} == {"openai-chat"}


# -- forms that no client sends -----------------------------------------------------------------

SOURCES = frozenset((".action.sources[]", ".action.sources[]{}", ".action.sources[].name", ".action.sources[].type"))
ANNOTATION = frozenset(
    f".content[].annotations[]{key}" for key in ("{}", ".type", ".url", ".title", ".start_index", ".end_index")
)
OWN_FORMS: dict[str, frozenset[str]] = {
    # Results are texts here, as for Converse; the clients of Nova in the data sent what a tool returned as JSON.
    "bedrock-invoke": frozenset((".content[].toolResult.content[].text",)),
    # The plan before the calls: Cohere's guide sends it back, the one client in the data drops it.
    "cohere-v2": frozenset((".tool_plan",)),
    # Thoughts are marked and go back where they stood, since signatures belong to places; clients drop their text.
    "gemini": frozenset((".parts[].thought",)),
    # The name on a result is in Mistral's own type for it, and its older models ask for it.
    "mistral": frozenset((".name",)),
    # Items go back as they arrived: with annotations, empty lists of them and of log probabilities, what a search found,
    # and the summaries of reasoning.
    "openai-responses": SOURCES
    | ANNOTATION
    | {".content[].logprobs[]", ".summary[]{}", ".summary[].text", ".summary[].type"},
}


def forms(value: Any, path: str = "") -> Iterator[str]:
    """The path of every object, list and value; what the model wrote as arguments is one value."""
    if isinstance(value, dict) and not path.endswith((".arguments", ".input", ".args")):
        yield f"{path}{{}}"
        for key, item in value.items():
            yield from forms(item, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path}[]"
        for item in value:
            yield from forms(item, f"{path}[]")
    else:
        yield path


@pytest.mark.parametrize("wire", sorted({recording.wire for recording in RECORDINGS}))
def test_forms_that_no_client_sends(wire: str) -> None:
    """Beside these, every key that goes back is one that some client sent and was answered 200 for."""
    sent: set[str] = set()
    for path in (ROOT / "echo").glob("*/*.json"):
        echo = json.loads(path.read_text(encoding="utf-8"))
        if echo["wire"] == wire:
            sent.update(form for message in [*echo["assistant"], *echo["results"]] for form in forms(message))
    ours = set()
    for recording in (each for each in RECORDINGS if each.wire == wire):
        results = json.loads(recording.echo_path.read_text(encoding="utf-8"))["results"]
        ours.update(form for message in history(recording, results) for form in forms(message))

    assert ours - sent == OWN_FORMS.get(wire, frozenset())
