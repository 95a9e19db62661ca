"""The wire in the documentation passes the suite in the documentation, as its author would run it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs" / "extending" / "wires.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


FAULTS = {
    # what its author forgets: what is written instead, and the tests that see it
    "the finish": ('sink.finish(0, as_name(told["end"]))', "pass", "test_a_response"),
    "that a limit is no end": ('sink.finish(0, as_name(told["end"]))', 'sink.finish(0, "stop")', "test_a_limit"),
    "that events may be anything": ('as_name(told["end"])', 'str(told["end"]).strip("x")[0]', "test_junk"),
    "that SDKs have objects": ("told = fields(event)", "told = event", "test_objects_in_place_of_mappings"),
    "that arguments may be wrong": (
        "history_text(call)",
        'call.arguments or "{}"',
        "test_history_of_a_call_that_was_refused",
    ),
    "a result": ("for result in results]", "for result in results[:1]]", "test_history"),
}


def test_it_passes_and_its_faults_are_found(pytester: pytest.Pytester) -> None:
    """As it stands it passes; each thing that its author could have forgotten fails a test of its own."""
    written = "\n\n".join(BLOCKS)
    pytester.makeini("[pytest]\nfilterwarnings = error\naddopts = -p no:cacheprovider -p no:cov -p no:xdist")
    sources = {"test_right": written}
    for number, (right, wrong, _) in enumerate(FAULTS.values()):
        assert right in written
        sources[f"test_fault_{number}"] = written.replace(right, wrong)
    pytester.makepyfile(**sources)

    result = pytester.runpytest("-rf")

    failed = {
        (line.partition(".py::")[0].removeprefix("FAILED "), line.split("::")[2].split(" ")[0])
        for line in result.outlines
        if line.startswith("FAILED ")
    }
    assert result.parseoutcomes()["passed"] > 50
    assert [name for file, name in failed if file == "test_right"] == []
    assert {(f"test_fault_{number}", name) for number, (*_, name) in enumerate(FAULTS.values())} <= failed
