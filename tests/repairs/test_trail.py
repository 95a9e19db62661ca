"""The edits of several steps as edits of the raw text."""

from __future__ import annotations

import pytest

from toolrun import Edit
from toolrun.repairs._trail import trail


@pytest.mark.parametrize(
    ("raw", "steps", "expected"),
    [
        ("abc", [], ()),
        ("abc", [[Edit("x", 1, "b", "B")]], (Edit("x", 1, "b", "B"),)),
        ("abc", [[Edit("x", 0, "a", "")], [Edit("y", 1, "c", "")]], (Edit("x", 0, "a", ""), Edit("y", 2, "c", ""))),
        ("abc", [[Edit("x", 3, "", "!")]], (Edit("x", 3, "", "!"),)),
        ("abc", [[Edit("x", 1, "b", "123")], [Edit("y", 2, "2", "")]], (Edit("x+y", 1, "b", "13"),)),
        ("abc", [[Edit("x", 1, "b", "12")], [Edit("y", 2, "2c", "C")]], (Edit("x+y", 1, "bc", "1C"),)),
        ("abc", [[Edit("x", 1, "b", "")], [Edit("y", 0, "ac", "z")]], (Edit("x+y", 0, "abc", "z"),)),
        ("abc", [[Edit("x", 1, "b", "")], [Edit("y", 1, "", "B")]], (Edit("x", 1, "b", ""), Edit("y", 2, "", "B"))),
        ("ab", [[Edit("x", 0, "", "1")], [Edit("x", 0, "1a", "2")]], (Edit("x", 0, "a", "2"),)),
        (
            "a-b-c",
            [[Edit("x", 1, "-", "+"), Edit("x", 3, "-", "+")], [Edit("y", 0, "a+b+c", "sum")]],
            (Edit("x+y", 0, "a-b-c", "sum"),),
        ),
    ],
)
def test_trail(raw: str, steps: list[list[Edit]], expected: tuple[Edit, ...]):
    """In order, without overlap, with offsets in the raw text."""
    assert trail(raw, steps) == expected
