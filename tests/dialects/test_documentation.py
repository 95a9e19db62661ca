"""The table of the guide is the data."""

from __future__ import annotations

import re
from pathlib import Path

from toolrun._core.dialects import DIALECTS, get_dialect
from toolrun.wires import WIRES

GUIDE = Path(__file__).parents[2] / "docs/guides/definitions.md"


def test_the_table_of_wires() -> None:
    rows = re.findall(r"^\| (`[^|]+) \| [^|]+ \| ([^|]+) \| (yes|no) \|$", GUIDE.read_text("utf-8"), re.MULTILINE)

    told = {
        wire: (names.strip("`"), strict) for wires, names, strict in rows for wire in re.findall("`([^`]+)`", wires)
    }
    assert told.keys() == {*WIRES, "mcp"}
    assert {get_dialect(wire).name for wire in told} == {*DIALECTS}
    for wire, (names, strict) in told.items():
        dialect = get_dialect(wire)
        assert names == (dialect.names[0] if dialect.names else "any")
        assert strict == ("yes" if dialect.strict else "no")


def test_each_wire_names_its_dialect() -> None:
    assert {name: get_dialect(wire.dialect).name for name, wire in WIRES.items()} == {
        name: get_dialect(name).name for name in WIRES
    }
