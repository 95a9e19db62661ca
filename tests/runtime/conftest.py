"""Fixtures for tests that talk to a provider over loopback HTTP, with the official clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anthropic
import openai
import pytest

from .server import ReplayServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


def pytest_configure(config: pytest.Config) -> None:
    # At `[DONE]` the OpenAI SDK leaves its inner generators unfinished, and trio says so.
    config.addinivalue_line("filterwarnings", r"ignore:Async generator '(openai|httpx2|httpcore2)\.:ResourceWarning")


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as running:
        yield running


@pytest.fixture
def openai_client(server: ReplayServer) -> Iterator[openai.OpenAI]:
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0, http_client=http) as client:
        yield client


@pytest.fixture
async def openai_async(anyio_backend: str, server: ReplayServer) -> AsyncIterator[openai.AsyncOpenAI]:
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0, http_client=http) as client:
        yield client


@pytest.fixture
def anthropic_client(server: ReplayServer) -> Iterator[anthropic.Anthropic]:
    http = anthropic.DefaultHttpxClient(trust_env=False)
    with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0, http_client=http) as client:
        yield client


@pytest.fixture
async def anthropic_async(anyio_backend: str, server: ReplayServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0, http_client=http) as client:
        yield client
