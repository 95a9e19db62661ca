"""What providers say, as shapes with gaps: `Gap`s are filled by what a fuzzer decides.

The first shapes of a wire say nothing of an end; those of `ENDS` do.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final, TypeAlias

Shape: TypeAlias = dict[str, Any] | str


class Gap(Enum):
    """A place in a shape, named after what belongs there."""

    INDEX = auto()
    ID = auto()
    NAME = auto()
    TEXT = auto()
    VALUE = auto()
    FLAG = auto()
    PATH = auto()
    REASON = auto()


INDEX, ID, NAME, TEXT, VALUE, FLAG, PATH, REASON = Gap

ABSENT: Final = object()
"""Instead of a value: the key is left out."""

TEXTS: Final = (
    "", "{", "}", '{"a"', ":1}", '{"a":1}', '{"b":2}', "{}", "[1]", '"', " ", "null", '{"a":1e999}', '{"a":1,"a":2}', "é",
    "\ud83d", "\ude00", '{"t":"\ud83d', '\ude00"}', "NaN", '{"a":{"b":[', "]}}", "\\", "\n",
)  # fmt: skip
ODD: Final = (
    None,
    "",
    0,
    -1,
    7,
    True,
    1.5,
    [],
    {},
    "null",
    "None",
    " ",
    [{}],
    {"a": 1},
    10**40,
    "9" * 50,
    "\x00",
    ABSENT,
)

FILLINGS: Final[dict[Gap, tuple[Any, ...]]] = {
    INDEX: (0, 1, 2, ABSENT, None, "0", 7, -1),
    ID: ("a", "b", ABSENT, "", "null", "0", None),
    NAME: ("f", "g", ABSENT, "", "get_", "weather", "get_weather", None),
    TEXT: TEXTS,
    VALUE: ({"a": 1}, {}, ABSENT, '{"a":1}', None, [1], "x", 1.5, True, {"a": {"b": ["c"]}}),
    FLAG: (True, False, ABSENT, None),
    PATH: ("$.a", "$.a.b", "$.a[0]", "$.a[1].b", "$['a']", "$", "", "a", "$.a[", "$.a[99999999]", ABSENT),
    REASON: (
        "stop", "tool_calls", "length", "error", "odd", "", " ", "TOOL-CALLS", "end_turn", "tool_use", "max_tokens", "refusal",
        "STOP", "MAX_TOKENS", "MALFORMED_FUNCTION_CALL", "TOOL_CALL", "COMPLETE", "guardrail_intervened", None, ABSENT,
    ),
}  # fmt: skip

_FUNCTION: Final = {"name": NAME, "arguments": TEXT}
_CHAT_CALL: Final = {"index": INDEX, "id": ID, "function": _FUNCTION}
_ITEM: Final = {"type": "function_call", "id": ID, "call_id": ID, "name": NAME, "arguments": TEXT}
_CUSTOM_ITEM: Final = {"type": "custom_tool_call", "id": ID, "call_id": ID, "name": NAME, "input": TEXT}
_PLACE: Final = {"output_index": INDEX, "item_id": ID}


def _choice(delta: dict[str, Any], **rest: Any) -> Shape:
    return {"choices": [{"index": INDEX, "delta": delta, **rest}]}


def _responses(kind: str, **rest: Any) -> Shape:
    return {"type": f"response.{kind}", **rest}


def _block(kind: str, **block: Any) -> Shape:
    return {"type": "content_block_start", "index": INDEX, "content_block": {"type": kind, **block}}


def _block_delta(kind: str, **delta: Any) -> Shape:
    return {"type": "content_block_delta", "index": INDEX, "delta": {"type": kind, **delta}}


def _parts(*parts: dict[str, Any], **rest: Any) -> Shape:
    return {"candidates": [{"index": INDEX, "content": {"role": "model", "parts": list(parts)}, **rest}]}


def _cohere(kind: str, **message: Any) -> Shape:
    return {"type": kind, "index": INDEX, "delta": {"message": message}}


_CHAT: Final[tuple[Shape, ...]] = (
    _choice({"tool_calls": [_CHAT_CALL]}),
    _choice({"tool_calls": [{"index": INDEX, "function": {"arguments": TEXT}}]}, finish_reason=None),
    _choice({"tool_calls": [_CHAT_CALL, _CHAT_CALL]}),
    _choice({"tool_calls": [{"index": INDEX, "id": ID, "type": "custom", "custom": {"name": NAME, "input": TEXT}}]}),
    _choice({"tool_calls": [{"index": INDEX, "id": ID, "function": {"name": NAME, "arguments": VALUE}}]}),
    _choice({"function_call": _FUNCTION}),
    _choice({"content": TEXT, "reasoning_content": TEXT}),
    _choice({"executed_tools": [{"index": INDEX, "name": NAME, "arguments": TEXT, "output": TEXT}]}),
    {"id": ID, "choices": [], "usage": {"total_tokens": INDEX}},
    {"error": {"message": TEXT, "failed_generation": TEXT}},
)
_MESSAGES: Final[tuple[Shape, ...]] = (
    _block("tool_use", id=ID, name=NAME, input=VALUE),
    _block_delta("input_json_delta", partial_json=TEXT),
    {"type": "content_block_stop", "index": INDEX},
    {"type": "message_start", "message": {"id": ID, "type": "message", "role": "assistant", "content": []}},
    {"type": "message_start", "message": {"id": ID, "content": [{"type": "tool_use", "id": ID, "name": NAME, "input": VALUE}]}},
    _block("server_tool_use", id=ID, name=NAME, input=VALUE),
    _block("text", text=TEXT),
    _block_delta("text_delta", text=TEXT),
    _block_delta("thinking_delta", thinking=TEXT),
    _block_delta("signature_delta", signature=TEXT),
    {"type": "ping"},
    {"type": "error", "error": {"type": "overloaded_error", "message": TEXT}},
)  # fmt: skip

SHAPES: Final[dict[str, tuple[Shape, ...]]] = {
    "openai-chat": _CHAT,
    "anthropic-messages": _MESSAGES,
    "openai-responses": (
        _responses("output_item.added", output_index=INDEX, item=_ITEM),
        _responses("function_call_arguments.delta", **_PLACE, delta=TEXT),
        _responses("function_call_arguments.done", **_PLACE, arguments=TEXT),
        _responses("output_item.done", output_index=INDEX, item=_ITEM),
        _responses("output_item.added", output_index=INDEX, item=_CUSTOM_ITEM),
        _responses("custom_tool_call_input.delta", **_PLACE, delta=TEXT),
        _responses("custom_tool_call_input.done", **_PLACE, input=TEXT),
        _responses("output_item.done", output_index=INDEX, item=_CUSTOM_ITEM),
        _responses("output_item.done", output_index=INDEX, item={"type": "mcp_call", "id": ID, "name": NAME, "arguments": TEXT}),
        _responses("output_text.delta", **_PLACE, content_index=INDEX, delta=TEXT),
        _responses("created", response={"id": ID, "status": "in_progress", "output": []}),
        {"type": "error", "message": TEXT, "code": ID},
    ),
    "gemini": (
        _parts({"functionCall": {"id": ID, "name": NAME, "args": VALUE}}),
        _parts({"functionCall": {"name": NAME, "willContinue": FLAG}}),
        _parts({"functionCall": {"willContinue": FLAG, "partialArgs": [{"jsonPath": PATH, "stringValue": TEXT, "willContinue": FLAG}]}}),
        _parts({"functionCall": {"name": NAME, "willContinue": FLAG, "partialArgs": [{"jsonPath": PATH, "numberValue": VALUE}]}}),
        _parts({"functionCall": {"partialArgs": [{"jsonPath": PATH, "boolValue": FLAG}, {"jsonPath": PATH, "nullValue": "NULL_VALUE"}]}}),
        _parts({"functionCall": {}}),
        _parts({"functionCall": {"name": NAME, "args": VALUE}, "thoughtSignature": TEXT}, {"text": TEXT, "thought": FLAG}),
        {"responseId": ID, "usageMetadata": {"totalTokenCount": INDEX}},
        {"promptFeedback": {"blockReason": NAME}},
    ),
    "bedrock-converse": (
        {"contentBlockStart": {"contentBlockIndex": INDEX, "start": {"toolUse": {"toolUseId": ID, "name": NAME}}}},
        {"contentBlockDelta": {"contentBlockIndex": INDEX, "delta": {"toolUse": {"input": TEXT}}}},
        {"contentBlockStop": {"contentBlockIndex": INDEX}},
        {"contentBlockDelta": {"contentBlockIndex": INDEX, "delta": {"toolUse": {"input": VALUE}}}},
        {"contentBlockDelta": {"contentBlockIndex": INDEX, "delta": {"text": TEXT}}},
        {"contentBlockDelta": {"contentBlockIndex": INDEX, "delta": {"reasoningContent": {"text": TEXT, "signature": TEXT}}}},
        {"messageStart": {"role": "assistant"}},
        {"metadata": {"usage": {"totalTokens": INDEX}}},
        {"modelStreamErrorException": {"message": TEXT}},
    ),
    "bedrock-invoke": _MESSAGES,
    "mistral": _CHAT,
    "cohere-v2": (
        _cohere("tool-call-start", tool_calls={"id": ID, "type": "function", "function": _FUNCTION}),
        _cohere("tool-call-delta", tool_calls={"function": {"arguments": TEXT}}),
        {"type": "tool-call-end", "index": INDEX},
        _cohere("tool-call-start", tool_calls=[{"id": ID, "function": _FUNCTION}]),
        _cohere("tool-plan-delta", tool_plan=TEXT),
        _cohere("content-delta", content={"text": TEXT, "thinking": TEXT}),
        {"type": "message-start", "id": ID},
    ),
    "ollama": (
        {"message": {"role": "assistant", "content": TEXT, "tool_calls": [{"id": ID, "function": {"index": INDEX, "name": NAME, "arguments": VALUE}}]}, "done": False},
        {"message": {"content": TEXT, "thinking": TEXT}, "done": False},
        {"message": {"tool_calls": [{"function": {"name": NAME, "arguments": TEXT}}, {"function": {"name": NAME, "arguments": VALUE}}]}},
        {"error": TEXT},
    ),
}  # fmt: skip

_CHAT_ENDS: Final[tuple[Shape, ...]] = (
    _choice({}, finish_reason=REASON),
    "[DONE]",
    _choice({"tool_calls": [_CHAT_CALL]}, finish_reason=REASON),
    {"choices": [{"index": INDEX, "message": {"content": TEXT, "tool_calls": [_CHAT_CALL, _CHAT_CALL]}, "finish_reason": REASON}]},
)  # fmt: skip
_MESSAGES_ENDS: Final[tuple[Shape, ...]] = (
    {"type": "message_delta", "delta": {"stop_reason": REASON}, "usage": {"output_tokens": INDEX}},
    {"type": "message_stop"},
    {"type": "message", "id": ID, "content": [{"type": "tool_use", "id": ID, "name": NAME, "input": VALUE}], "stop_reason": REASON},
)  # fmt: skip

ENDS: Final[dict[str, tuple[Shape, ...]]] = {
    "openai-chat": _CHAT_ENDS,
    "anthropic-messages": _MESSAGES_ENDS,
    "openai-responses": (
        _responses("completed", response={"id": ID, "status": "completed", "output": [_ITEM]}),
        _responses("completed", response={"id": ID, "status": "completed", "output": [_CUSTOM_ITEM, _ITEM]}),
        _responses("completed", response={"id": ID, "status": "completed", "output": []}),
        _responses("incomplete", response={"status": "incomplete", "incomplete_details": {"reason": REASON}, "output": [_ITEM]}),
        _responses("failed", response={"status": "failed", "error": {"code": ID, "message": TEXT}, "output": []}),
        {"object": "response", "status": "completed", "output": [_ITEM]},
    ),
    "gemini": (
        {"candidates": [{"index": INDEX, "finishReason": REASON}]},
        _parts({"functionCall": {"id": ID, "name": NAME, "args": VALUE}}, finishReason=REASON),
    ),
    "bedrock-converse": (
        {"messageStop": {"stopReason": REASON}},
        {"output": {"message": {"content": [{"toolUse": {"toolUseId": ID, "name": NAME, "input": VALUE}}]}}, "stopReason": REASON},
    ),
    "bedrock-invoke": _MESSAGES_ENDS,
    "mistral": _CHAT_ENDS,
    "cohere-v2": (
        {"type": "message-end", "delta": {"finish_reason": REASON, "usage": {}}},
        {"id": ID, "message": {"tool_calls": [{"id": ID, "function": _FUNCTION}]}, "finish_reason": REASON},
    ),
    "ollama": (
        {"message": {"content": ""}, "done": True, "done_reason": REASON},
        {"message": {"tool_calls": [{"function": {"name": NAME, "arguments": VALUE}}]}, "done": FLAG, "done_reason": REASON},
    ),
}  # fmt: skip
