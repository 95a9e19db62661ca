"""The pictures of the command in the documentation are what it shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="pseudo-terminals as Linux has them")
def test_views() -> None:
    """Each is drawn again from what the command leaves on a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "docs.views", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
