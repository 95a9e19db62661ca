"""A provider on the loopback interface, so that examples run with the SDKs as they are written."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from .scripts import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Provider(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        script = next(script for path, script in SCRIPTS.items() if path in self.path)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for piece in script.stream(request):
            self.wfile.write(piece)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


@pytest.fixture(scope="session")
def provider_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Provider) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def provider(provider_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the SDKs at the local provider, the way their users would: by environment variables."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider_url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider_url)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", provider_url)
    monkeypatch.setenv("MISTRAL_SERVER_URL", f"{provider_url}/mistral")
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "MISTRAL"):
        monkeypatch.setenv(f"{name}_API_KEY", "no-key-needed")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it is fetched when LiteLLM is imported
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
