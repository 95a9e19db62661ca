"""`check` and `trim` on messages that users hold."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrun import UnknownWire
from toolrun.history import check, trim
from toolrun.wires import WIRES

from .recordings import ABSENT, ROOT

Json = dict[str, Any]


def found(messages: Any, wire: str) -> list[tuple[str, int, str | None]]:
    return [(issue.code, issue.index, issue.call_id) for issue in check(messages, wire)]


# -- how each wire writes a conversation ------------------------------------------------------


def chat_calls(*ids: str) -> list[Json]:
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    return [{"role": "assistant", "content": None, "tool_calls": calls}]


def chat_results(*ids: str) -> list[Json]:
    return [{"role": "tool", "tool_call_id": one, "content": "r"} for one in ids]


def item_calls(*ids: str) -> list[Json]:
    return [{"type": "function_call", "call_id": one, "name": "f", "arguments": "{}"} for one in ids]


def item_results(*ids: str) -> list[Json]:
    return [{"type": "function_call_output", "call_id": one, "output": "r"} for one in ids]


def block_calls(*ids: str) -> list[Json]:
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in ids]}
    ]


def block_results(*ids: str) -> list[Json]:
    return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": one, "content": "r"} for one in ids]}]


def union_calls(*ids: str) -> list[Json]:
    return [
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": one, "name": "f", "input": {}}} for one in ids]}
    ]


def union_results(*ids: str) -> list[Json]:
    return [
        {"role": "user", "content": [{"toolResult": {"toolUseId": one, "content": [{"text": "r"}]}} for one in ids]}
    ]


def part_calls(*ids: str) -> list[Json]:
    return [{"role": "model", "parts": [{"functionCall": {"id": one, "name": "f", "args": {}}} for one in ids]}]


def part_results(*ids: str) -> list[Json]:
    parts = [{"functionResponse": {"id": one, "name": "f", "response": {"result": "r"}}} for one in ids]
    return [{"role": "user", "parts": parts}]


def ollama_calls(*ids: str) -> list[Json]:
    calls = [{"id": one, "function": {"name": "f", "arguments": {}}} for one in ids]
    return [{"role": "assistant", "content": "", "tool_calls": calls}]


def ollama_results(*ids: str) -> list[Json]:
    return [{"role": "tool", "tool_name": "f", "tool_call_id": one, "content": "r"} for one in ids]


def says(role: str, text: str = "Hi.") -> Json:
    return {"role": role, "content": text}


def says_text(role: str) -> Json:
    return {"role": role, "content": [{"text": "Hi."}]}


def says_part(role: str) -> Json:
    return {"role": "model" if role == "assistant" else role, "parts": [{"text": "Hi."}]}


FORMS: dict[str, tuple[Any, Any, Any]] = {
    "openai-chat": (chat_calls, chat_results, says),
    "mistral": (chat_calls, chat_results, says),
    "cohere-v2": (chat_calls, chat_results, says),
    "openai-responses": (item_calls, item_results, says),
    "anthropic-messages": (block_calls, block_results, says),
    "bedrock-invoke": (union_calls, union_results, says_text),
    "bedrock-converse": (union_calls, union_results, says_text),
    "gemini": (part_calls, part_results, says_part),
    "ollama": (ollama_calls, ollama_results, says),
}
each_wire = pytest.mark.parametrize("wire", FORMS)


def test_every_wire_has_its_forms() -> None:
    assert set(FORMS) == set(WIRES)


@each_wire
def test_what_belongs_together(wire: str) -> None:
    calls, results, says = FORMS[wire]
    turn = [*calls("a", "b"), *results("a", "b")]

    assert found([], wire) == []
    assert found([says("user"), *turn, says("assistant"), says("user"), *calls("c"), *results("c")], wire) == []
    assert found([says("user"), *turn, *turn], wire) == []  # ids are unique in a turn, not in a conversation
    assert found([*calls("a", "b"), *results("b", "a")], wire) == []


@each_wire
def test_each_issue(wire: str) -> None:
    calls, results, says = FORMS[wire]
    later = len(calls("a", "b"))

    assert found(calls("a", "b"), wire) == [("missing_result", 0, "a"), ("missing_result", later - 1, "b")]
    assert found([*calls("a"), says("user")], wire) == [("missing_result", 0, "a")]
    assert found([says("user"), *results("a")], wire) == [("orphan_result", 1, "a")]
    assert found([*calls("a"), *results("a"), *results("a")], wire) == [("duplicate_result", 2, "a")]
    assert found([*calls("a", "a"), *results("a")], wire) == [("duplicate_call", later - 1, "a")]
    assert found([*calls("a"), says("user"), *results("a")], wire) == [("bad_order", 2, "a")]
    assert found([*calls("a"), says("assistant"), *calls("b"), *results("a", "b")], wire)[0][0] == "bad_order"
    assert found([*results("a"), *calls("a")], wire) == [("orphan_result", 0, "a"), ("missing_result", 1, "a")]


@pytest.mark.parametrize(
    ("wire", "message", "code"),
    [
        ("openai-chat", chat_calls("a")[0] | {"tool_calls": [{"id": "a", "function": {"name": "f"}}]}, "bad_call"),
        ("openai-chat", {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, "bad_call"),
        (
            "mistral",
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "[1]"}}]},
            "bad_call",
        ),
        ("openai-chat", {"role": "tool", "content": "r"}, "bad_result"),
        ("openai-responses", {"type": "function_call", "name": "f", "arguments": "{}"}, "bad_call"),
        ("openai-responses", {"type": "function_call", "call_id": "a", "name": "f", "arguments": {}}, "bad_call"),
        ("openai-responses", {"type": "function_call_output", "output": "r"}, "bad_result"),
        ("anthropic-messages", {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}]}, "bad_call"),
        ("anthropic-messages", {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": {}}]}, "bad_call"),
        ("bedrock-converse", {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": []}}]}, "bad_call"),
        ("gemini", {"role": "model", "parts": [{"functionCall": {}}]}, "bad_call"),
        ("gemini", {"role": "model", "parts": [{"function_call": {"name": "f", "args": "x"}}]}, "bad_call"),
        ("ollama", {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, "bad_call"),
    ],
)  # fmt: skip
def test_bad_shapes(wire: str, message: Json, code: str) -> None:
    assert code in [issue.code for issue in check([message], wire)]


def test_results_come_first_in_a_message_of_anthropic() -> None:
    [call], [result] = block_calls("a"), block_results("a")
    text = {"type": "text", "text": "Hi."}

    assert found([call, {**result, "content": [*result["content"], text]}], "anthropic-messages") == []
    assert found([call, {**result, "content": [text, *result["content"]]}], "anthropic-messages") == [
        ("bad_order", 1, "a")
    ]


def test_pairs_without_ids() -> None:
    """By name, in order."""
    calls = {"role": "model", "parts": [{"functionCall": {"name": name}} for name in ("f", "g", "f")]}
    results = [{"functionResponse": {"name": name, "response": {}}} for name in ("f", "g", "f", "f", "h")]

    assert found([calls, {"role": "user", "parts": results[:3]}], "gemini") == []
    assert found([calls, {"role": "user", "parts": results[:2]}], "gemini") == [("missing_result", 0, None)]
    assert found([calls, {"role": "user", "parts": results}], "gemini") == [
        ("duplicate_result", 1, None),
        ("orphan_result", 1, None),
    ]


def test_calls_of_the_provider_need_no_result() -> None:
    blocks = [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]
    items = [{"type": "web_search_call", "id": "w"}, {"type": "mcp_call", "id": "m"}]

    assert found([{"role": "assistant", "content": blocks}], "anthropic-messages") == []
    assert found(items, "openai-responses") == []


@pytest.mark.parametrize(
    "odd", [None, 5, "text", b"bytes", {}, {"role": "user"}, {"role": "user", "content": "one message"}]
)
@each_wire
def test_what_is_no_list(odd: Any, wire: str) -> None:
    assert found(odd, wire) == [("unreadable", 0, None)]


class Hostile:
    @property
    def __dict__(self) -> Any:
        raise RuntimeError


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just(Hostile()),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["role", "content", "tool_calls", "id", "function", "name", "arguments", "type", "parts",
                         "functionCall", "functionResponse", "toolUse", "toolResult", "call_id", "tool_call_id"]),
        inner | st.sampled_from(["user", "assistant", "tool", "tool_use", "tool_result", "function_call", "model"]),
        max_size=4,
    ),
    max_leaves=15,
)  # fmt: skip


@given(st.lists(junk, max_size=6), st.sampled_from(sorted(WIRES)))
def test_odd_input_never_raises(messages: list[Any], wire: str) -> None:
    for issue in check(messages, wire):
        assert 0 <= issue.index < len(messages)
    kept = trim(messages, wire, max_messages=3)
    rest = iter(messages)
    assert all(any(message is one for one in rest) for message in kept)


def test_objects_of_an_sdk() -> None:
    from openai.types.chat import ChatCompletionMessage

    [message] = chat_calls("a")
    spoken = ChatCompletionMessage.model_validate(message)

    assert found([spoken], "openai-chat") == [("missing_result", 0, "a")]
    assert found([spoken, *chat_results("a")], "openai-chat") == []


@pytest.mark.parametrize("wire", ["chat", "auto"])
def test_unknown_wire(wire: str) -> None:
    with pytest.raises(UnknownWire):
        check([], wire)


# -- what real clients sent -------------------------------------------------------------------

ECHOES = sorted((ROOT / "echo").glob("*/*.json"))


@pytest.mark.skipif(not ECHOES, reason=ABSENT)
def test_nothing_that_was_accepted_is_an_issue() -> None:
    """Every echo, and the other accepted forms."""
    checked = 0
    for path in ECHOES:
        echo = json.loads(path.read_text(encoding="utf-8"))
        if echo["wire"] not in WIRES or "assistant" not in echo:
            continue
        issues = check([*echo["assistant"], *echo["results"]], echo["wire"])
        assert issues == (), path
        checked += 1
    assert checked >= 264


@pytest.mark.skipif(not ECHOES, reason=ABSENT)
def test_what_was_rejected_for_its_order_is_an_issue() -> None:
    rejected = json.loads((ROOT / "echo" / "rejected.jsonl").read_text("utf-8").splitlines()[0])

    assert found(rejected["items"], rejected["wire"]) == [("bad_order", 4, "call-a")]


# -- trimming ---------------------------------------------------------------------------------


def conversation(wire: str, turns: int) -> list[Json]:
    calls, results, says = FORMS[wire]
    random_ = random.Random(turns)
    messages = [says("system")]
    for number in range(turns):
        ids = [f"{number}-{place}" for place in range(random_.randint(0, 3))]
        if number == 0 or random_.random() < 0.5:
            messages.append(says("user"))
        messages += [*calls(*ids), *results(*ids)] if ids else [says("assistant")]
    return messages


@pytest.mark.parametrize("turns", range(1, 9))
@each_wire
def test_trimming_keeps_pairs(wire: str, turns: int) -> None:
    """At any limit: nothing to find, the system's message, the end as it was, a user's message at the beginning."""
    messages = conversation(wire, turns)
    lengths = []
    for limit in range(1, len(messages) + 1):
        kept = trim(messages, wire, max_messages=limit)
        lengths.append(len(kept))

        assert check(kept, wire) == ()
        assert (kept[0], kept[-1]) == (messages[0], messages[-1])
        assert kept[1] == FORMS[wire][2]("user")
        assert len(kept) <= limit or kept == trim(messages, wire, max_messages=1)
    assert trim(messages, wire, max_messages=len(messages)) == messages
    assert lengths == sorted(lengths)


def test_trimming_by_size() -> None:
    messages = [
        says("user", "a" * 10),
        says("assistant", "b" * 10),
        says("user", "c" * 10),
        says("assistant", "d" * 10),
    ]

    def size(message: Json) -> int:
        return len(message["content"])

    assert trim(messages, "openai-chat", max_size=40, size=size) == messages
    assert trim(messages, "openai-chat", max_size=39, size=size) == messages[2:]
    assert trim(messages, "openai-chat", max_size=5, size=size) == messages[2:]
    assert trim(messages, "openai-chat", max_messages=2, max_size=40, size=size) == messages[2:]
    assert trim([], "openai-chat", max_messages=2) == []


def test_a_long_run_of_turns_keeps_the_question() -> None:
    """An agent that works for long on one question: the question, and the newest turns."""
    turns = [[*chat_calls(str(number)), *chat_results(str(number))] for number in range(5)]
    messages = [says("user"), *(message for turn in turns for message in turn)]

    assert trim(messages, "openai-chat", max_messages=6) == [messages[0], *turns[3], *turns[4]]


@pytest.mark.parametrize("limits", [{}, {"max_size": 5}, {"size": len}])
def test_limits_are_needed(limits: Any) -> None:
    with pytest.raises(ValueError, match="trim needs"):
        trim([], "openai-chat", **limits)
