"""An agent for several providers without any SDK: raw bytes in, messages out.

API_KEY=… uv run python examples/http_agent.py openai-chat https://api.openai.com/v1/chat/completions gpt-5-mini
"""

import asyncio
import os
import sys
from typing import Any

import httpx2 as httpx

from toolrun import Runner, ToolRegistry

registry = ToolRegistry()
TURNS = 8


@registry.tool(effect="pure")
def count(word: str, letter: str) -> int:
    """Count how often a letter occurs in a word."""
    return word.lower().count(letter.lower())


def request(wire: str, model: str, messages: list[Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and body; what differs between providers beyond this, toolrun's wires know."""
    key = os.environ.get("API_KEY", "none")
    body = {"model": model, "messages": messages, "tools": registry.definitions(wire), "stream": True}
    if wire == "anthropic-messages":
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}, {**body, "max_tokens": 2048}
    return {"authorization": f"Bearer {key}"}, body


async def answer(wire: str, url: str, model: str, question: str) -> str:
    """Ask, run what the model calls, and ask again, until it only answers."""
    messages: list[Any] = [{"role": "user", "content": question}]
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client, Runner(registry) as runner:
        for _ in range(TURNS):
            headers, body = request(wire, model, messages)
            async with client.stream("POST", url, headers=headers, json=body) as response:
                response.raise_for_status()
                turn = await runner.run(response.aiter_bytes(), wire=wire)
            messages += turn.messages()
            if not turn.needs_reply:
                return turn.text
    raise RuntimeError(f"no answer after {TURNS} turns")


if __name__ == "__main__":
    print(asyncio.run(answer(*sys.argv[1:4], "How many r are in strawberry?")))
