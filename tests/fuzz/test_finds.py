"""What the fuzzer found once is not found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import finalizer, repair

TARGETS = {"finalizer": finalizer.check, "repair": repair.check}
FINDS = sorted(find for target in TARGETS for find in (Path(__file__).parent / "finds" / target).iterdir())


@pytest.mark.parametrize("find", FINDS, ids=lambda find: f"{find.parent.name}-{find.name}")
def test_find(find: Path) -> None:
    """Nothing raises, and every promise is kept."""
    TARGETS[find.parent.name](find.read_bytes())
