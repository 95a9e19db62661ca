"""What messages of each wire say to the model, so that two ways to say it can be compared.

Two messages mean the same if these facts are equal, in order: texts, thoughts, calls with their parsed arguments, what
the provider's own tools did, and results by the call that they answer. What `corpus/echo/README.md` shows that a provider
does not distinguish is left out here; each such rule stands beside the line that applies it.
"""

from __future__ import annotations

import base64
import itertools
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Json = dict[str, Any]
Fact = tuple[Any, ...]

TYPOGRAPHIC = str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014\u202f", "''\"\"-- ")
"""One recorder turned these characters into ASCII."""


def meaning(wire: str, messages: Iterable[Json]) -> list[Fact]:
    """The facts, neighbouring texts joined, blank ones left out, calls numbered in the order of their first mention.

    Any renaming of ids that keeps calls and results together is the same to the model.
    """
    facts: list[Fact] = []
    numbers: dict[Any, int] = {}
    for kind, *told in FACTS[wire](messages):
        if kind in ("call", "result", "server", "server_result"):
            told[0] = numbers.setdefault((kind.startswith("server"), told[0]), len(numbers))
        if kind in ("text", "thought") and facts and facts[-1][0] == kind:
            told[0] = facts.pop()[1] + told[0]
        facts.append((kind, *told))
    return [_plain(fact) for fact in facts if fact[0] not in ("text", "thought") or fact[1].strip()]


def _plain(value: Any) -> Any:
    """With the characters that one recorder wrote, wherever they stand."""
    if isinstance(value, str):
        return value.translate(TYPOGRAPHIC)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return type(value)(map(_plain, value)) if isinstance(value, list | tuple) else value


def arguments(text: str | None) -> Any:
    """Parsed; `""` and null are `{}`: nobody echoes them as they are."""
    return json.loads(text) if text else {}


def text_of(content: Any) -> str:
    """A string is the same as text blocks; null, `""` and absence are the same."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(block.get("text", "") if "json" not in block else json.dumps(block["json"]) for block in content)


def chat(messages: Iterable[Json]) -> Iterator[Fact]:
    """`openai-chat`, `mistral` and `cohere-v2`; thoughts before the text, as all servers write them."""
    for message in messages:
        if message["role"] == "tool":
            yield "result", message["tool_call_id"], text_of(message["content"])
            continue
        # Some clients write one thought under both names; details, where there are any, repeat it.
        thought = message.get("reasoning_content") or message.get("reasoning") or message.get("tool_plan") or ""
        details = list(_details(message.get("reasoning_details") or ()))
        if not any("text" in entry or "summary" in entry for _, _, entry in details):
            yield "thought", thought
        yield from details
        yield "text", text_of(message.get("content"))
        for call in message.get("tool_calls") or ():
            yield "call", call["id"], call["function"]["name"], arguments(call["function"]["arguments"])


def _details(details: Iterable[Json]) -> Iterator[Fact]:
    """Pieces of one index are one entry: clients join them; what stays are texts, signatures and data."""
    joined: dict[Any, Json] = {}
    for detail in details:
        entry = joined.setdefault((detail.get("index"), detail["type"]), {})
        for key, value in detail.items():
            if key in ("text", "summary", "data", "signature"):
                entry[key] = entry.get(key, "") + (value or "")
    for (_, kind), entry in joined.items():
        yield "detail", kind, {key: value for key, value in entry.items() if value}


def responses(items: Iterable[Json]) -> Iterator[Fact]:
    """`openai-responses`; ids and status of items say nothing where nothing is stored."""
    for item in items:
        match item.get("type", "message"):
            case "message":
                yield "text", text_of(item["content"])
                if item.get("phase"):
                    yield "phase", item["phase"]
            case "function_call":
                yield "call", item["call_id"], item["name"], arguments(item["arguments"]), item.get("namespace")
            case "function_call_output":
                yield "result", item["call_id"], text_of(item["output"])
            case "tool_search_output" if item.get("execution") == "client":
                yield "result", item["call_id"], item["tools"]
            case "reasoning":
                yield "reasoning", item.get("summary") or [], item.get("content") or [], item.get("encrypted_content")
            case kind:
                # `sources` of a search are what it found, and come again with the message.
                action = {key: value for key, value in item.get("action", {}).items() if key != "sources"}
                yield "item", kind, action, item.get("arguments")


def anthropic(messages: Iterable[Json]) -> Iterator[Fact]:
    """`anthropic-messages`: content blocks in order; all results of a turn in one user message."""
    for message in messages:
        yield "role", message["role"]
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match block["type"]:
                case "text":
                    yield "text", block["text"]
                    if block.get("citations"):
                        yield "citations", block["citations"]
                case "thinking":
                    yield "thinking", block["thinking"], block["signature"]
                case "tool_use":
                    # A direct caller is the only one there is without programs.
                    caller = None if block.get("caller", {}).get("type") == "direct" else block.get("caller")
                    yield "call", block["id"], block["name"], block["input"], caller
                case "tool_result":
                    yield "result", block["tool_use_id"], text_of(block["content"]), block.get("is_error") or False
                case "server_tool_use":
                    yield "server", block["id"], block["name"], block["input"]
                case kind:
                    yield "server_result", block["tool_use_id"], kind, block["content"]


def converse(messages: Iterable[Json]) -> Iterator[Fact]:
    """`bedrock-converse`, and Nova through `bedrock-invoke`."""
    for message in messages:
        yield "role", message["role"]
        for block in message["content"]:
            match block:
                case {"toolUse": call}:
                    yield "call", call["toolUseId"], call["name"], call["input"], None
                case {"toolResult": result}:
                    failed = result.get("status") == "error"  # "success" and absence are the same
                    yield "result", result["toolUseId"], text_of(result["content"]), failed
                case {"reasoningContent": {"reasoningText": told}}:
                    yield "thinking", told["text"], told.get("signature")
                case {"text": text}:
                    yield "text", text


def invoke(messages: Iterable[Json]) -> Iterator[Fact]:
    """`bedrock-invoke`: whichever of the two was inside."""
    messages = list(messages)
    typed = any("type" in block for message in messages for block in message["content"])
    return anthropic(messages) if typed else converse(messages)


def gemini(contents: Iterable[Json]) -> Iterator[Fact]:
    """`gemini`: parts in order, whatever the spelling of keys; signatures by their bytes, results by what they hold."""
    names = {"function_call": "functionCall", "function_response": "functionResponse"}
    calls, results = itertools.count(), itertools.count()  # without ids, order tells what belongs together
    for content in contents:
        yield "role", content["role"]
        for written in content["parts"]:
            part = {names.get(key, key): value for key, value in written.items()}
            if "functionCall" in part:
                call = part["functionCall"]
                yield "call", call.get("id", next(calls)), call["name"], call.get("args") or {}
            elif "functionResponse" in part:
                told = part["functionResponse"]
                yield "result", told.get("id", next(results)), told["name"], _said(told["response"])
            elif not part.get("thought"):  # all clients leave thoughts out; only their signatures are asked back
                yield "text", part.get("text", "")
            if "thoughtSignature" in part:
                signature = part["thoughtSignature"].replace("+", "-").replace("/", "_")
                yield "signature", base64.urlsafe_b64decode(signature)


def _said(response: Json) -> str:
    """The text of a result, under whatever key a client put it."""
    if "content" in response:
        return text_of(response["content"])
    [text] = response.values()
    return str(text)


def ollama(messages: Iterable[Json]) -> Iterator[Fact]:
    """`ollama`: pairs by order."""
    place = 0
    for message in messages:
        if message["role"] == "tool":
            yield "result", message.get("tool_call_id", place), message["tool_name"], message["content"]
            place += 1
            continue
        yield "thought", message.get("thinking", "")
        yield "text", message["content"]
        for number, call in enumerate(message.get("tool_calls", ())):
            yield "call", call.get("id", number), call["function"]["name"], call["function"]["arguments"]


FACTS: dict[str, Callable[[Iterable[Json]], Iterator[Fact]]] = {
    "openai-chat": chat,
    "mistral": chat,
    "cohere-v2": chat,
    "openai-responses": responses,
    "anthropic-messages": anthropic,
    "bedrock-converse": converse,
    "bedrock-invoke": invoke,
    "gemini": gemini,
    "ollama": ollama,
}
