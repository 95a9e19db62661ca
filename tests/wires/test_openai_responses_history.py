"""What the `openai-responses` wire sends back: every kind of item, the SDK's request types, and what clients sent."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ConfigDict, TypeAdapter, with_config

from tests.streams import corpus
from toolrun import Repaired, Runner, StreamFinalizer, Tool, ToolRegistry, finalize

from .responses import (
    PATCH,
    RECORDINGS,
    SEARCH,
    SHELL,
    WIRE,
    added,
    call_item,
    calls_of,
    created,
    custom_item,
    delta,
    ended,
    history,
    item_done,
    kind_of,
    message_item,
    reasoning_item,
    text_delta,
)

if TYPE_CHECKING:
    from .responses import Json

recorded = pytest.mark.skipif(not RECORDINGS, reason=corpus.ABSENT)


# -- history --------------------------------------------------------------------------------


def test_history_as_it_arrived() -> None:
    """Every item goes back as it came, in order, its final copy first of all; results follow."""
    reasoning = reasoning_item(encrypted_content="gAAA", summary=[{"type": "summary_text", "text": "so"}])
    comment = message_item("Let me look.", phase="commentary")
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    }
    call = call_item(1, arguments='{"a": 1.50}', status="completed", namespace="ns")
    assert history(
        created(),
        added(reasoning_item(encrypted_content="part")),
        item_done(reasoning),
        added(message_item("", content=[]), 1),
        text_delta("Let me look.", index=1, content_index=0),
        item_done(comment, 1),
        added({**search, "status": "in_progress"}, 2),
        item_done(search, 2),
        added(call_item(1, status="in_progress"), 3),
        delta('{"a": 1.50}', 3),
        item_done(call, 3),
        ended(reasoning, comment, search, call),
        results=["ok"],
    ) == [
        reasoning,
        comment,
        search,
        call,
        {"type": "function_call_output", "call_id": "call_1", "output": "ok"},
    ]


def test_history_of_rotating_ids() -> None:
    """Items whose ids change with every event are not doubled; the first copy counts."""
    assert history(
        added(reasoning_item(1)),
        item_done(reasoning_item(2, encrypted_content="gAAA")),
        added(message_item("", 3, content=[]), 1),
        text_delta("Hi", index=1, item_id="msg_4"),
        item_done(message_item("Hi", 5), 1),
        ended(reasoning_item(6, encrypted_content="gAAA"), message_item("Hi", 7)),
    ) == [reasoning_item(2, encrypted_content="gAAA"), message_item("Hi", 5)]


def test_history_of_hosted_copies() -> None:
    """Of a hosted call the first final copy goes back: what is encrypted in it is new in each."""
    program = {"type": "program", "id": "cm_1", "call_id": "call_1", "code": "text(1)", "fingerprint": "first"}
    begun, listed = {**program, "code": "", "fingerprint": "begun"}, {**program, "fingerprint": "listed"}
    assert history(added(begun), item_done(program), ended(listed)) == [program]
    assert history(added(begun), ended(listed)) == [listed]


CUT_REASONING = added(reasoning_item(encrypted_content="part"))
CUT_SEARCH = added({"type": "web_search_call", "id": "ws_1", "status": "in_progress"}, 1)


def test_history_of_a_cut_response() -> None:
    """Of a cut response goes back what can: the text so far and the calls, no half of reasoning or of a hosted call."""
    assert history(
        created(),
        CUT_REASONING,
        CUT_SEARCH,
        added(message_item("", content=[], phase="commentary", status="in_progress"), 2),
        text_delta("Let me", index=2),
        added(call_item(1, status="in_progress"), 3),
        delta('{"a', 3),
        results=["not run"],
    ) == [
        {"type": "message", "role": "assistant", "content": "Let me", "phase": "commentary"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"invalid_arguments": "{\\"a"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "not run"},
    ]


def test_history_of_nothing() -> None:
    """A response that only began has nothing to send back."""
    assert history(created(), CUT_REASONING, added(message_item("", content=[]), 1)) == []
    assert history(created(), item_done(message_item("", content=[])), ended()) == []
    assert history() == []


def test_history_of_reasoning_that_is_not_stored() -> None:
    """Reasoning that only its id stands for is left out where nothing is stored, and so are ids that refer to it."""
    empty, whole = reasoning_item(1), reasoning_item(2, content=[{"type": "reasoning_text", "text": "hm"}])
    call, message = call_item(1, arguments="{}"), message_item()
    assert history(ended(empty, message, call))[:3] == [empty, message, call]
    assert history(ended(whole, message, call, store=False))[:3] == [whole, message, call]
    assert history(ended(empty, message, call, store=False))[:2] == [
        {**{key: value for key, value in message.items() if key != "id"}, "content": "Hi"},
        {key: value for key, value in call.items() if key != "id"},
    ]


def test_history_keeps_calls_together() -> None:
    """A message behind a call goes before it, as DeepSeek wants it; reasoning keeps its place before its item."""
    first, second, message = call_item(1, arguments="{}"), call_item(2, arguments="{}"), message_item()
    reasoning = reasoning_item(encrypted_content="gAAA")
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}

    def order(*items: Json) -> list[Json]:
        return [item for item in history(ended(*items)) if not item["type"].endswith("_output")]

    assert order(first, message, search, second) == [message, first, search, second]
    assert order(first, reasoning, message, second) == [first, reasoning, message, second]
    assert order(message, first, second) == [message, first, second]
    assert order(search, message, first) == [search, message, first]
    assert order(first, message) == [message, first]
    assert order(first, second, message, search) == [message, first, second, search]
    assert order(first, message, second, reasoning, message) == [message, first, second, reasoning, message]


def test_history_of_calls_from_elsewhere() -> None:
    """Calls that no stream of this wire brought are written too."""
    (call,) = finalize({"choices": [{"message": {"tool_calls": [
        {"id": "c1", "function": {"name": "f", "arguments": "{}"}}]}, "finish_reason": "stop"}]})  # fmt: skip
    empty = StreamFinalizer(WIRE).response
    assert WIRE.assistant_messages(empty, [call]) == [
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    ]


@pytest.mark.parametrize(
    ("item", "text", "result"),
    [
        (call_item(1, arguments="{}"), "ok", {"type": "function_call_output", "output": "ok"}),
        (
            call_item(1, arguments="{}", caller={"type": "program", "caller_id": "call_0"}),
            "ok",
            {"type": "function_call_output", "output": "ok", "caller": {"type": "program", "caller_id": "call_0"}},
        ),
        (custom_item("x"), "ok", {"type": "custom_tool_call_output", "output": "ok"}),
        (
            {**SEARCH, "execution": "client"},
            '[{"type": "function", "name": "f"}]',
            {
                "type": "tool_search_output", "execution": "client", "status": "completed",
                "tools": [{"type": "function", "name": "f"}],
            },
        ),
        (
            {**SEARCH, "execution": "client"},
            '{"tools": []}',
            {"type": "tool_search_output", "execution": "client", "status": "completed", "tools": []},
        ),
        (
            {**SEARCH, "execution": "client"},
            "nothing found",
            {"type": "tool_search_output", "execution": "client", "status": "incomplete", "tools": []},
        ),
        (
            {"type": "local_shell_call", "id": "l", "call_id": "call_1", "action": {"type": "exec", "command": ["ls"]}},
            "a.txt",
            {"type": "local_shell_call_output", "output": "a.txt"},
        ),
        (
            SHELL,
            "a.txt",
            {
                "type": "shell_call_output",
                "output": [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
        ),
        (
            {**SHELL, "action": {"commands": ["ls"], "max_output_length": 99}},
            '[{"stdout": "a", "stderr": "b", "outcome": {"type": "timeout"}}]',
            {
                "type": "shell_call_output", "max_output_length": 99,
                "output": [{"stdout": "a", "stderr": "b", "outcome": {"type": "timeout"}}],
            },
        ),
        (
            {"type": "apply_patch_call", "id": "apc_1", "call_id": "call_1", "operation": PATCH},
            "patched",
            {"type": "apply_patch_call_output", "status": "completed", "output": "patched"},
        ),
        (
            {"type": "computer_call", "id": "cu_1", "call_id": "call_1", "action": {"type": "screenshot"}},
            "data:image/png;base64,iVBO",
            {
                "type": "computer_call_output",
                "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBO"},
            },
        ),
        (
            {"type": "computer_call", "id": "cu_1", "call_id": "call_1", "actions": [{"type": "screenshot"}]},
            '{"type": "computer_screenshot", "file_id": "file_1"}',
            {"type": "computer_call_output", "output": {"type": "computer_screenshot", "file_id": "file_1"}},
        ),
    ],
)  # fmt: skip
def test_results(item: Json, text: str, result: Json) -> None:
    """Each kind of call is answered by its own kind of output, and its item goes back as it came."""
    assert history(ended(item), results=[text]) == [item, {"call_id": "call_1", **result}]


@pytest.mark.parametrize(
    ("item", "result"),
    [
        (call_item(1, arguments="{}"), {"output": "it broke"}),
        (custom_item("x"), {"output": "it broke"}),
        ({**SEARCH, "execution": "client"}, {"execution": "client", "status": "incomplete", "tools": []}),
        (
            SHELL,
            {"output": [{"stdout": "", "stderr": "it broke", "outcome": {"type": "exit", "exit_code": 1}}]},
        ),
        (
            {"type": "apply_patch_call", "id": "a", "call_id": "call_1", "operation": PATCH},
            {"status": "failed", "output": "it broke"},
        ),
        (
            {"type": "computer_call", "id": "c", "call_id": "call_1", "action": {"type": "wait"}},
            {"output": {"type": "computer_screenshot"}, "status": "incomplete"},
        ),
    ],
)
def test_error_results(item: Json, result: Json) -> None:
    """Errors use the mark that the kind of output has, if it has one."""
    written = history(ended(item), results=["it broke"], is_error=True)[1]
    assert {key: value for key, value in written.items() if key not in ("type", "call_id")} == result


async def test_edited_arguments_go_back() -> None:
    """A call goes back with the arguments that ran, not with those that a repair replaced."""

    async def shell_call(commands: list[str]) -> str:
        return ",".join(commands)

    def numbers(request: Any) -> Any:
        return Repaired(arguments={"commands": ["ls"]})

    registry = ToolRegistry([Tool.from_function(shell_call)])
    registry.repair(on="schema")(numbers)
    shell = {**SHELL, "action": {"commands": [[]]}}
    async with Runner(registry) as runner:
        turn = await runner.run([item_done(shell), ended(shell)], wire=WIRE)
    assert [outcome.status for outcome in turn.outcomes] == ["succeeded"]
    assert [item.get("action") for item in turn.messages()] == [{"commands": ["ls"]}, None]


# -- history against the SDK's request types ------------------------------------------------


@cache
def input_types() -> dict[str, Any]:
    """The SDK's request types by the `type` of the item."""
    from openai.types import responses
    from openai.types.responses import response_input_item_param as params

    return {
        "function_call": responses.ResponseFunctionToolCallParam,
        "custom_tool_call": responses.ResponseCustomToolCallParam,
        "tool_search_call": params.ToolSearchCall,
        "local_shell_call": params.LocalShellCall,
        "shell_call": params.ShellCall,
        "apply_patch_call": params.ApplyPatchCall,
        "computer_call": responses.ResponseComputerToolCallParam,
        "function_call_output": params.FunctionCallOutput,
        "custom_tool_call_output": responses.ResponseCustomToolCallOutputParam,
        "tool_search_output": responses.ResponseToolSearchOutputItemParamParam,
        "shell_call_output": params.ShellCallOutput,
        "apply_patch_call_output": params.ApplyPatchCallOutput,
        "computer_call_output": params.ComputerCallOutput,
        "reasoning": responses.ResponseReasoningItemParam,
        "message": responses.EasyInputMessageParam,
    }


def check_form(item: Json) -> None:
    """Hold an input item against the SDK's request type: known keys, required keys, types."""
    kind = input_types()[item["type"]]
    unknown = item.keys() - kind.__annotations__.keys() - inherited_keys(kind)
    assert unknown <= {"status"}, unknown  # items go back as they came, and custom calls come with a status
    TypeAdapter(with_config(ConfigDict(strict=True))(kind)).validate_python(item)


def inherited_keys(kind: Any) -> set[str]:
    """The keys of a TypedDict with those of the ones that it extends."""
    return set(kind.__required_keys__ | kind.__optional_keys__)


BEGUN = {"status": "in_progress"}
OBJECT_ITEMS = [
    {**SEARCH, "execution": "client", "status": "completed"},
    {
        "type": "local_shell_call", "id": "lsh_1", "call_id": "call_1", "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    },
    {**SHELL, "status": "completed"},
    {"type": "apply_patch_call", "id": "apc_1", "call_id": "call_1", "operation": PATCH, "status": "completed"},
    {
        "type": "computer_call", "id": "cu_1", "call_id": "call_1", "action": {"type": "wait"}, "status": "completed",
        "pending_safety_checks": [],
    },
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "status", "written"),
    [
        ([ended(call_item(1, arguments='{"a": 1.0}'))], "ok", {"name": "f", "arguments": '{"a": 1.0}'}),
        ([ended(call_item(1))], "ok", {"name": "f", "arguments": "{}"}),
        (
            [ended(call_item(1, arguments='{"a":'))], "parse_error",
            {"name": "f", "arguments": '{"invalid_arguments": "{\\"a\\":"}'},
        ),
        (
            [added(call_item(1)), delta('{"a')], "incomplete",
            {"name": "f", "arguments": '{"invalid_arguments": "{\\"a"}'},
        ),
        (
            [added(call_item(1)), delta('{"a":1}')], "incomplete",
            {"name": "f", "arguments": '{"invalid_arguments": "{\\"a\\":1}"}'},
        ),
        ([added(call_item(1))], "incomplete", {"name": "f", "arguments": '{"invalid_arguments": ""}'}),
        ([ended(call_item(1, None, "{}"))], "parse_error", {"name": "unnamed_tool", "arguments": "{}"}),
        ([ended(call_item(1, "a.b c", "{}"))], "ok", {"name": "a_b_c", "arguments": "{}"}),
        ([ended(custom_item("text"))], "ok", {"name": "f", "input": "text"}),
        ([added(custom_item()), ended(kind="failed")], "incomplete", {"name": "f", "input": ""}),
        ([ended(custom_item("text", name=None))], "parse_error", {"name": "unnamed_tool", "input": "text"}),
        *(([ended(item)], "ok", {}) for item in OBJECT_ITEMS),
        *(([added({**item, **BEGUN})], "incomplete", {}) for item in OBJECT_ITEMS),
    ],
)  # fmt: skip
def test_history_forms(events: list[Json], status: str, written: Json) -> None:
    """Whatever became of a call, its item and its result have a form that the SDK's request types take."""
    (call,) = calls_of(*events)
    assert call.status.value == status

    item, result = history(*events, results=["no"], is_error=status != "ok")

    assert {key: item[key] for key in written} == written
    assert item["call_id"] == result["call_id"] == call.id
    check_form(item)
    if result["type"] == "local_shell_call_output":
        # The request type wants `id`; the provider's guide, and what clients send, is `call_id`.
        assert result == {"type": "local_shell_call_output", "call_id": call.id, "output": "no"}
    else:
        check_form(result)


def test_message_forms() -> None:
    """Reasoning, and the message of a cut response, have a form that the SDK's request types take."""
    message, reasoning = history(
        added(message_item("", content=[], phase="commentary")), text_delta("Hi"), item_done(reasoning_item(), 1)
    )
    check_form(message)
    check_form(reasoning)


# -- history against what clients sent next -------------------------------------------------

LOSSY_ECHOES = {
    "fantasy-openai-gpt-5-thinking-streaming": {"reasoning"},
    "fantasy-openai-o4-mini-thinking-streaming": {"reasoning"},
    "pydanticai-test-openai-native-tool-search-streaming": {"tool_search_call", "tool_search_output"},
}
"""Items that these clients left out or rewrote, and that go back as they came here."""

TYPOGRAPHIC = str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014\u202f", "''\"\"-- ")
"""One recorder turned these characters into ASCII."""


def meaning(items: list[Json], lossy: set[str]) -> list[Json]:
    """What a request says: without ids of items, empty keys and notes of the provider; call ids numbered."""
    numbers: dict[str, int] = {}
    told = []
    for item in items:
        kind = item.get("type", "message")
        if kind in lossy:
            continue
        kept = {key: value for key, value in item.items() if key not in ("id", "status") and value is not None}
        if "call_id" in kept:
            kept["call_id"] = numbers.setdefault(kept["call_id"], len(numbers))
        if kind == "function_call":
            kept["arguments"] = json.loads(item["arguments"])
        if kind == "message":
            content = item["content"]
            parts = [{"text": content}] if isinstance(content, str) else content
            kept["content"] = "".join(part["text"] for part in parts).translate(TYPOGRAPHIC)
        if not kept.get("content", True):
            del kept["content"]
        if kind == "web_search_call":
            kept["action"] = {key: value for key, value in item["action"].items() if key != "sources"}
        told.append({**kept, "type": kind})
    return told


def echoes() -> list[Json]:
    folder = corpus.ROOT / "echo" / "openai-responses"
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


ECHOES = echoes()


@recorded
def test_number_of_echoes() -> None:
    """Every recording with an echo is compared."""
    assert len(ECHOES) >= 46
    assert set(LOSSY_ECHOES) <= {echo["id"] for echo in ECHOES}
    assert {echo["id"] for echo in ECHOES} <= {recording.id for recording in RECORDINGS}


@recorded
@pytest.mark.parametrize("echo", ECHOES, ids=lambda echo: echo["id"])
def test_echo(echo: Json) -> None:
    """What goes back means the same as what a real client sent back and was answered 200 for."""
    (recording,) = [recording for recording in RECORDINGS if recording.id == echo["id"]]
    lossy = LOSSY_ECHOES.get(echo["id"], set())
    texts = [item["output"] if "output" in item else json.dumps(item["tools"]) for item in echo["results"]]

    items = history(*recording.events, results=texts)

    assert meaning(items, lossy) == meaning([*echo["assistant"], *echo["results"]], lossy)


@recorded
@pytest.mark.parametrize("echo", ECHOES, ids=lambda echo: echo["id"])
def test_echo_byte_for_byte(echo: Json) -> None:
    """Arguments and encrypted reasoning go back byte for byte, the latter from the item's own copy."""
    (recording,) = [recording for recording in RECORDINGS if recording.id == echo["id"]]
    items = history(*recording.events)
    done = json.dumps([event["data"] for event in recording.events if kind_of(event) == "response.output_item.done"])
    assert [item["arguments"] for item in items if item["type"] == "function_call"] == [
        want.raw for want in recording.calls if not want.as_object and not want.provider_executed
    ]
    for item in items:
        if item.get("encrypted_content"):
            assert json.dumps(item["encrypted_content"]) in done
