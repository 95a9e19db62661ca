"""Agents that are killed at every step, and at random moments, judged by a ledger outside the journal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("crashes.py")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the agents are forked and killed with SIGKILL")


def rounds(*options: str) -> list[dict[str, object]]:
    done = subprocess.run([sys.executable, SCRIPT, "--json", *options], capture_output=True, text=True, check=False)
    assert not done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_nothing_twice_and_nothing_lost():
    """At every fault point and at 12 random moments: `once` effects at most once, one outcome a call, and it stays."""
    done = rounds("--random", "12", "--seed", "7")

    assert [one["name"] for one in done] == [
        "before a start",
        "after a start",
        "before an effect",
        "after an effect",
        "before an outcome",
        "after an outcome",
        "before a turn is finished",
        "after a turn is finished",
        *(f"random {seed}" for seed in range(7, 19)),
    ]
    assert all(one["killed"] for one in done)
    assert [one["wrong"] for one in done] == [[]] * 20
    assert any("interrupted" in one["outcomes"] for one in done)


def test_the_judge_sees_what_is_wrong():
    """A journal that forgets starts lets effects happen twice."""
    wrong = {one["name"]: one["wrong"] for one in rounds("--random", "0", "--wrong")}

    assert "charge succeeded, and 2 effects" in str(wrong["after an effect"])
