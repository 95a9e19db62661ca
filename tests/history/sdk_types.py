"""The types that the real SDKs declare for requests, as judges of messages."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


def accept(wire: str, messages: list[Json]) -> None:
    """Raise if the wire's SDK would not take one of these messages."""
    judge = _JUDGES[wire]()
    for message in messages:
        _exhaust(judge(message))


def _exhaust(value: Any) -> None:
    """An `Iterable` in an SDK's type is checked as it is read."""
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, list | Iterator) or type(value).__name__ in ("dict_values", "ValidatorIterator"):
        for item in value:
            _exhaust(item)


@functools.cache
def _openai_chat() -> Callable[[Json], Any]:
    from openai.types.chat import ChatCompletionAssistantMessageParam, ChatCompletionToolMessageParam

    kinds = {
        "assistant": TypeAdapter(ChatCompletionAssistantMessageParam),
        "tool": TypeAdapter(ChatCompletionToolMessageParam),
    }
    return lambda message: kinds[message["role"]].validate_python(message)


@functools.cache
def _openai_responses() -> Callable[[Json], Any]:
    from openai.types.responses import ResponseInputItemParam

    adapter = TypeAdapter(ResponseInputItemParam)

    def judge(item: Json) -> Any:
        # OpenAI names sources of a kind (`api`) that its SDK does not know, neither in responses nor in requests; other
        # servers' searches have arguments in place of the action, or neither. They go back as they came.
        if item.get("type") == "web_search_call" and "action" not in item:
            return None
        # The SDK's type wants the call's id as `id`; OpenAI's guide and other clients send it as `call_id`.
        if item.get("type") == "local_shell_call_output":
            item = {**item, "id": item["call_id"]}
        # Citations of other servers lack fields of OpenAI's.
        if item.get("type") == "message" and isinstance(item["content"], list):
            item = {**item, "content": [{**part, "annotations": []} for part in item["content"]]}
        if item.get("type") == "web_search_call":
            item = {**item, "action": {key: value for key, value in item["action"].items() if key != "sources"}}
        return adapter.validate_python(item)

    return judge


@functools.cache
def _anthropic() -> Callable[[Json], Any]:
    from anthropic.types.beta import BetaMessageParam

    return TypeAdapter(BetaMessageParam).validate_python


@functools.cache
def _bedrock() -> Callable[[Json], Any]:
    import botocore.session
    from botocore.validate import ParamValidator

    shape = botocore.session.get_session().get_service_model("bedrock-runtime").shape_for("Message")

    def judge(message: Json) -> None:
        report = ParamValidator().validate(message, shape)
        assert not report.has_errors(), report.generate_report()

    return judge


def _invoke() -> Callable[[Json], Any]:
    """Claude's bodies have Anthropic's types, Nova's have Converse's."""
    return lambda message: (_anthropic() if any("type" in block for block in message["content"]) else _bedrock())(
        message
    )


@functools.cache
def _gemini() -> Callable[[Json], Any]:
    from google.genai.types import Content

    return Content.model_validate


@functools.cache
def _mistral() -> Callable[[Json], Any]:
    from mistralai.client.models import AssistantMessage, ToolMessage

    kinds = {"assistant": AssistantMessage, "tool": ToolMessage}
    return lambda message: kinds[message["role"]].model_validate(message)


@functools.cache
def _cohere() -> Callable[[Json], Any]:
    import cohere.types as models

    kinds = {"assistant": models.AssistantChatMessageV2, "tool": models.ToolChatMessageV2}

    def judge(message: Json) -> None:
        read = TypeAdapter(kinds[message["role"]]).validate_python(message)
        assert not read.model_extra

    return judge


@functools.cache
def _ollama() -> Callable[[Json], Any]:
    from ollama import Message

    return Message.model_validate


_JUDGES: dict[str, Callable[[], Callable[[Json], Any]]] = {
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic-messages": _anthropic,
    "bedrock-converse": _bedrock,
    "bedrock-invoke": _invoke,
    "gemini": _gemini,
    "mistral": _mistral,
    "cohere-v2": _cohere,
    "ollama": _ollama,
}
