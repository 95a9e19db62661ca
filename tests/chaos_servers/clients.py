"""One turn of a conversation: an SDK asks, a runner reads what comes, and the tools write down what they ran with."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import anthropic
import cohere
import openai
from google import genai

from toolrun import Runner, StreamInterrupted, ToolRegistry, Turn

Json = dict[str, Any]

PROMPT = "What is the weather in Oslo?"
WEATHER = {"city": "Oslo, Norway", "days": 3}


@dataclass
class Exchange:
    """What came of one response.

    Attributes:
        ran: What each tool ran with.
        turn: What the runner made of it.
        error: What the stream raised, if it did.
    """

    ran: list[tuple[str, Json]]
    turn: Turn
    error: BaseException | None = None

    @property
    def told(self) -> list[tuple[str, str | None]]:
        """The status and the code of each outcome."""
        return [(outcome.status, outcome.code) for outcome in self.turn.outcomes]


@dataclass
class Tools:
    """A registry whose tools write down what they ran with."""

    ran: list[tuple[str, Json]] = field(default_factory=list)
    registry: ToolRegistry = field(default_factory=ToolRegistry)

    def __post_init__(self) -> None:
        @self.registry.tool
        def get_weather(city: str, days: int) -> str:
            """The weather in a city."""
            self.ran.append(("get_weather", {"city": city, "days": days}))
            return "fog"

        @self.registry.tool
        def ping() -> str:
            """Answer."""
            self.ran.append(("ping", {}))
            return "pong"


class Clients:
    """The SDKs' clients, made once for each server, since making one takes longer than a request."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._made: dict[tuple[type, str], Any] = {}

    def ask(self, url: str, wire: str, body: Json, *, stream: bool) -> Any:
        """Send a request, streamed or not; give what the SDK gives."""
        match wire:
            case "openai-chat":
                client = self._client(openai.OpenAI, url, base_url=f"{url}/v1", max_retries=0)
                return client.chat.completions.create(**body, stream=stream)
            case "openai-responses":
                client = self._client(openai.OpenAI, url, base_url=f"{url}/v1", max_retries=0)
                return client.responses.create(**body, stream=stream)
            case "anthropic-messages":
                client = self._client(anthropic.Anthropic, url, base_url=url, max_retries=0)
                return client.messages.create(**body, max_tokens=1024, stream=stream)
            case "gemini":
                client = self._client(genai.Client, url, http_options={"base_url": url, "api_version": "v1beta"})
                return (client.models.generate_content_stream if stream else client.models.generate_content)(**body)
            case "cohere-v2":
                client = self._client(cohere.ClientV2, url, base_url=url)
                return (client.chat_stream if stream else client.chat)(**body)
            case _:
                raise ValueError(wire)

    def _client(self, kind: type, url: str, **options: Any) -> Any:
        if (kind, url) not in self._made:
            self._made[kind, url] = self._stack.enter_context(kind(api_key="no-key-needed", **options))
        return self._made[kind, url]

    def exchange(self, url: str, wire: str, *, stream: bool = True, prompt: str = PROMPT, **options: Any) -> Exchange:
        """Ask once, and run what comes."""
        tools = Tools()
        body = body_of(wire, tools.registry, prompt)
        with Runner(tools.registry, **options) as runner:
            try:
                turn = runner.run_sync(self.ask(url, wire, body, stream=stream), wire=wire)
            except StreamInterrupted as interrupted:
                return Exchange(tools.ran, interrupted.turn, interrupted.__cause__)
        return Exchange(tools.ran, turn)

    def converse(
        self, url: str, wire: str, *, stream: bool = True, prompt: str = PROMPT, turns: int = 4
    ) -> list[Exchange]:
        """Ask, run, send back, until the model has said its last word."""
        tools = Tools()
        messages: list[Json] = []
        seen: list[Exchange] = []
        with Runner(tools.registry) as runner:
            while not seen or (seen[-1].turn.needs_reply and len(seen) < turns):
                tools.ran.clear()
                body = body_of(wire, tools.registry, prompt, *messages)
                turn = runner.run_sync(self.ask(url, wire, body, stream=stream), wire=wire)
                seen.append(Exchange(list(tools.ran), turn))
                messages += turn.messages() if turn.needs_reply else []
        return seen

    def close(self) -> None:
        """Close them all."""
        self._stack.close()


def body_of(wire: str, tools: ToolRegistry, prompt: str, *messages: Json) -> Json:
    """The body of a request: a question, and what was said since."""
    model = {"model": f"{wire}-model"}
    definitions = tools.definitions(wire)
    if wire == "gemini":
        question = {"role": "user", "parts": [{"text": prompt}]}
        config = {"tools": definitions, "automatic_function_calling": {"disable": True}}
        return {**model, "contents": [question, *messages], "config": config}
    question = {"role": "user", "content": prompt}
    place = "input" if wire == "openai-responses" else "messages"
    return {**model, place: [question, *messages], "tools": definitions}
