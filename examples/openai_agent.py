"""An agent on the OpenAI SDK: the loop is yours, the calls are toolrun's.

OPENAI_API_KEY=… uv run python examples/openai_agent.py "What is the weather in Oslo?"
"""

import asyncio
import os
import sys
from typing import Literal

import openai

from toolrun import Limits, Runner, TextDelta, ToolError, ToolRegistry

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
registry = ToolRegistry()
CLIMATE = {"oslo": 4, "rome": 19}


@registry.tool(effect="pure", timeout=10)
async def get_weather(city: str, unit: Literal["c", "f"] = "c") -> str:
    """Current temperature.

    Args:
        city: The city's name.
        unit: Celsius or Fahrenheit.
    """
    if city.lower() not in CLIMATE:
        raise ToolError(f"no weather for {city}; there is some for {', '.join(CLIMATE)}")
    degrees = CLIMATE[city.lower()]
    return f"{degrees} °C" if unit == "c" else f"{degrees * 9 // 5 + 32} °F"


async def answer(client: openai.AsyncOpenAI, question: str) -> str:
    """Ask, run what the model calls, and ask again, until it only answers."""
    messages = [{"role": "user", "content": question}]
    async with Runner(registry, limits=Limits(calls=8, repeats=2, invalid_turns=3)) as runner:
        while True:
            stream = await client.chat.completions.create(
                model=MODEL, messages=messages, tools=registry.definitions("openai-chat"), stream=True
            )
            async with runner.stream(stream) as run:
                async for event in run:
                    if isinstance(event, TextDelta):
                        print(event.text, end="", flush=True)
            messages += run.turn.messages()
            if not run.turn.needs_reply:
                print()
                return run.turn.text


if __name__ == "__main__":
    asyncio.run(answer(openai.AsyncOpenAI(), " ".join(sys.argv[1:]) or "What is the weather in Oslo?"))
