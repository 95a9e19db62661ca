"""A chat in the terminal that shows a file while the model still writes it.

    uv run python examples/live_chat.py

The model is a script behind a real server on the loopback interface, so nothing is needed but this file; give `--url`
and OPENAI_API_KEY to talk to another server that speaks Chat Completions.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import httpx2

from toolrun import CallCompleted, CallPreview, Event, FieldAppended, FieldSet, Runner, TextDelta, ToolRegistry

Say = Callable[[str], object]

registry = ToolRegistry()
FILES: dict[str, str] = {}


@registry.tool
def write_file(path: str, content: str) -> str:
    """Keep a text in memory, under a name.

    Args:
        path: The name.
        content: The whole text.
    """
    FILES[path] = content
    return f"{len(content.splitlines())} lines kept as {path}"


# -- the chat -----------------------------------------------------------------------------------


def show(event: Event, say: Say) -> None:
    """Say what is new: the answer's text, and the file's, piece by piece."""
    match event:
        case TextDelta(text=text, kind="text"):
            say(text)
        case CallPreview(changes=changes):
            for change in changes:
                match change:
                    case FieldSet(path=("content",)):
                        say("\n")
                    case FieldAppended(path=("path",), text=text) | FieldAppended(path=("content",), text=text):
                        say(text)
        case CallCompleted(outcome=outcome):
            say(f"\n[{outcome.tool} {outcome.status}: {outcome.message}]\n")


async def chat(url: str, questions: Iterator[str], say: Say) -> None:
    """Answer questions, one after another, as long as there are any."""
    messages: list[Any] = []
    headers = {"authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as client, Runner(registry) as runner:
        for question in questions:
            messages.append({"role": "user", "content": question})
            reply_needed = True
            while reply_needed:
                body = {
                    "model": os.environ.get("OPENAI_MODEL", "script"),
                    "messages": messages,
                    "tools": registry.definitions("openai-chat"),
                    "stream": True,
                }
                async with (
                    client.stream("POST", f"{url}/chat/completions", json=body) as response,
                    runner.stream(response.raise_for_status().aiter_bytes(), previews=True) as run,
                ):
                    async for event in run:
                        show(event, say)
                messages += run.turn.messages()
                reply_needed = run.turn.needs_reply
            say("\n")


# -- the model ----------------------------------------------------------------------------------

STORY = """The lighthouse keeper
kept a diary of every ship
that did not need the light.

On the last page he wrote:
"They knew the way."
"""


def replies(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A text and a call of `write_file` in many small pieces; once the file is written, a last word."""
    if request["messages"][-1]["role"] == "tool":
        yield {"content": "It is written."}
        return
    yield {"role": "assistant", "content": "I'll write it down.\n\n"}
    body = {"name": "write_file", "arguments": ""}
    yield {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": body}]}
    text = json.dumps({"path": "story.txt", "content": STORY})
    for start in range(0, len(text), 4):
        yield {"tool_calls": [{"index": 0, "function": {"arguments": text[start : start + 4]}}]}


class Model(BaseHTTPRequestHandler):
    """Streams the script, a piece at a time."""

    def __init__(self, *arguments: Any, pace: float) -> None:
        self.pace = pace
        super().__init__(*arguments)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        finish = "stop" if request["messages"][-1]["role"] == "tool" else "tool_calls"
        for delta in replies(request):
            self.send({"index": 0, "delta": delta, "finish_reason": None})
            time.sleep(self.pace)  # a model takes its time
        self.send({"index": 0, "delta": {}, "finish_reason": finish})
        self.wfile.write(b"data: [DONE]\n\n")

    def send(self, choice: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps({'id': 'chatcmpl-1', 'choices': [choice]})}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *arguments: object) -> None:
        """Stay quiet."""


@contextlib.contextmanager
def served(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """Run a server on the loopback interface; give its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="another server, for instance https://api.openai.com/v1")
    parser.add_argument("--pace", type=float, default=0.04, help="seconds that the script takes for a piece")
    options = parser.parse_args()

    def say(text: str) -> None:
        print(text, end="", flush=True)

    def questions() -> Iterator[str]:
        say("> ")
        for line in sys.stdin:
            yield line.strip()
            say("> ")

    with contextlib.ExitStack() as stack:
        url = options.url or stack.enter_context(served(functools.partial(Model, pace=options.pace)))
        with contextlib.suppress(KeyboardInterrupt):
            anyio.run(chat, url, questions(), say)


if __name__ == "__main__":
    main()
