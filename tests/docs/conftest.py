"""A provider on the loopback interface, so that examples run with the SDKs as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolrun._testing.loopback import HttpReply, HttpRequest, LoopbackServer

from .scripts import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterator


def reply(request: HttpRequest) -> HttpReply:
    """The stream of the protocol that is spoken at that path."""
    script = next(script for path, script in SCRIPTS.items() if path in request.path)
    return HttpReply(pieces=list(script.stream(request.body)))


@pytest.fixture(scope="session")
def provider_url() -> Iterator[str]:
    with LoopbackServer(reply) as server:
        yield server.url


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
