"""A provider and a Temporal server on the loopback interface, so that examples run with the SDKs as they are written."""

from __future__ import annotations

import functools
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from anyio.from_thread import start_blocking_portal

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


@pytest.fixture(scope="session")
def temporal_address() -> Iterator[str]:
    from temporalio.testing import WorkflowEnvironment

    program = shutil.which("temporal", path=str(Path(sys.executable).parent))
    with start_blocking_portal() as portal:
        start = functools.partial(
            WorkflowEnvironment.start_local, dev_server_existing_path=program, dev_server_log_level="never"
        )
        server = portal.call(start)
        yield server.client.service_client.config.target_host
        portal.call(server.shutdown)


@pytest.fixture
def temporal(temporal_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point Temporal's client at the local server, the way its users would."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", temporal_address)
