"""What the fuzzer found once is not found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from .finalizer import check

FINDS = sorted((Path(__file__).parent / "finds" / "finalizer").iterdir())


@pytest.mark.parametrize("find", FINDS, ids=lambda find: find.name)
def test_finalizer(find: Path) -> None:
    """Nothing raises, and every promise is kept."""
    check(find.read_bytes())
