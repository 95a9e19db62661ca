"""Fixtures for every test: both event loops, and where the recordings are."""

from __future__ import annotations

import pytest

collect_ignore = ["typing"]
"""Checked by type checkers, never run."""


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param
