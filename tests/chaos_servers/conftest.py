"""The SDKs' clients, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos_servers.clients import Clients


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    clients = Clients()
    yield clients
    clients.close()
