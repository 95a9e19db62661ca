"""The chat in the examples: what the model writes is on the screen before it has finished writing."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

if TYPE_CHECKING:
    from types import ModuleType

EXAMPLE = Path(__file__).parents[2] / "examples" / "live_chat.py"
SHOWN = """I'll write it down.

story.txt
The lighthouse keeper
kept a diary of every ship
that did not need the light.

On the last page he wrote:
"They knew the way."

[write_file succeeded: 6 lines kept as story.txt]
It is written.
"""


@pytest.fixture
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("live_chat", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_as_a_process() -> None:
    ended = subprocess.run(
        [sys.executable, EXAMPLE, "--pace", "0"],
        input="A story, please.\n",
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.stdout, ended.stderr, ended.returncode) == (f"> {SHOWN}> ", "", 0)


async def test_it_is_shown_while_it_grows(example: ModuleType) -> None:
    """The model waits with the rest until the beginning has been shown; nothing would come if the chat waited too."""
    seen: list[str] = []
    begun = threading.Event()

    def say(text: str) -> None:
        seen.append(text)
        if "The lighthouse" in "".join(seen):
            begun.set()

    class Waiting(example.Model):  # type: ignore[name-defined,misc]
        def send(self, choice: dict[str, Any]) -> None:
            if "kept" in json.dumps(choice):
                assert begun.wait(10)
            super().send(choice)

    def handler(*arguments: Any) -> Any:
        return Waiting(*arguments, pace=0)

    with example.served(handler) as url, anyio.fail_after(20):
        await example.chat(url, iter(["A story, please."]), say)

    assert "".join(seen) == SHOWN
    assert len([text for text in seen if text]) > 20
    assert example.FILES == {"story.txt": example.STORY}
