"""Every wire against the public suite, with its provider's own way to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.wires.openai_realtime import OpenAIRealtime
from toolrun.testing import ScriptedResponse, WireSuite
from toolrun.wires import WIRES

if TYPE_CHECKING:
    from toolrun.abc import Wire


def suite_of(name: str) -> type[WireSuite]:
    class Suite(WireSuite):
        arguments_are_objects = name in ("gemini", "ollama")

        def wire(self) -> Wire:
            return WIRES[name]

        def events(self, response: ScriptedResponse) -> list[Any]:
            return response.events(name)

    return Suite


TestOpenAIChat = suite_of("openai-chat")
TestOpenAIResponses = suite_of("openai-responses")
TestAnthropicMessages = suite_of("anthropic-messages")
TestGemini = suite_of("gemini")
TestBedrockConverse = suite_of("bedrock-converse")
TestBedrockInvoke = suite_of("bedrock-invoke")
TestMistral = suite_of("mistral")
TestCohereV2 = suite_of("cohere-v2")
TestOllama = suite_of("ollama")


class TestOpenAIRealtime(WireSuite):
    """A wire that is none of the library's own; its events are those of Responses, but for their ends."""

    def wire(self) -> Wire:
        return OpenAIRealtime(replay=True)

    def events(self, response: ScriptedResponse) -> list[Any]:
        written = []
        for number, event in enumerate(response.events("openai-responses")):
            told = {**event, "event_id": f"event_{number}", "response_id": "resp_1"}
            if event["type"] in ("response.completed", "response.incomplete"):
                whole = event["response"]
                details = whole["incomplete_details"]
                status = {"type": whole["status"], **({"reason": "max_output_tokens"} if details else {})}
                told |= {"type": "response.done", "response": {**whole, "status_details": status}}
            written.append(told)
        return written


def test_every_built_in_wire_is_here() -> None:
    """A new wire joins the classes above."""
    names = {
        suite().wire().name
        for suite in globals().values()
        if isinstance(suite, type) and issubclass(suite, WireSuite) and suite is not WireSuite
    }

    assert names == {*WIRES, "openai-realtime"}
