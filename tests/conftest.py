"""Fixtures for every test: both event loops, and where the recordings are."""

from __future__ import annotations

from pathlib import Path

import pytest

collect_ignore = ["typing"]
"""Checked by type checkers, never run."""


VOLUME = frozenset(
    Path(__file__).parent / name
    for name in (
        "core/test_tool_properties.py",
        "history/test_echo.py",
        "repairs/test_generated.py",
        "repairs/test_hostile.py",
        "runtime/test_chaos.py",
        "runtime/test_entries.py",
        "runtime/test_inputs.py",
        "runtime/test_recordings.py",
        "streams/test_assembler_properties.py",
        "streams/test_corpus.py",
        "streams/test_memory.py",
        "streams/test_stream_cases.py",
    )
)
"""Modules that give the same lines many inputs: counting branches would take as long again, and find none."""


_ALWAYS_VOLUME = ("test_soup", "test_sdk_stream[")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path in VOLUME or item.path.parent.name == "chaos_servers" or item.name.startswith(_ALWAYS_VOLUME):
            item.add_marker(pytest.mark.volume)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param
