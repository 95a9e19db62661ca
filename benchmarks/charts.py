"""`python -m benchmarks charts`: draw what was measured last as SVG, and write it into the page."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pygal
from pygal.style import Style

from benchmarks.report import PAGE, RESULTS, Line, page, stored

# pygal adds a finder for its own plug-ins that no Python after 3.11 knows, and 3.11 warns of at every later import.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != pygal.__name__]

ASSETS = PAGE.parents[1] / "assets"
LEAST = 0.001
"""What is less is drawn as this: a difference of two times can come out as nothing."""

_WITHIN, _OVER = "#4d8a5d", "#b5533c"
_STYLE = Style(
    background="white",
    plot_background="white",
    foreground="#1c2333",
    foreground_strong="#1c2333",
    foreground_subtle="#5b6b8c",
    value_colors=("#1c2333",),
    font_family="system-ui, sans-serif",
    label_font_size=11,
    major_label_font_size=11,
    value_font_size=10,
    title_font_size=15,
)


def draw() -> None:
    """Write the charts and the table of the page from the stored results."""
    for path, svg in charts(stored()).items():
        path.write_text(svg, "utf-8")
        print(f"{path} from {RESULTS.name}")
    PAGE.write_text(page(PAGE.read_text("utf-8"), stored()), "utf-8")
    print(PAGE)


def charts(lines: Sequence[Line]) -> dict[Path, str]:
    """Every chart by its file: the rows with a target above 0, and those that have a peer."""
    peers = [line for line in lines if line["name"].startswith("peer-")]
    own = [line for line in lines if line["target"] and line not in peers]
    return {
        ASSETS / "benchmarks.svg": _bars("Measured, as a share of the target", own, [share(line) for line in own]),
        ASSETS / "benchmarks-peers.svg": _bars(
            "Time of toolrun, as a share of the peer's", peers, [line["measured"] for line in peers]
        ),
    }


def share(line: Line) -> float:
    """What was measured, as a share of the target."""
    return line["measured"] / line["target"]


def _bars(title: str, lines: Sequence[Line], values: Sequence[float]) -> str:
    """Bars from below the least value on, so that each can be seen; 1 is what none should be over."""
    values = [max(value, LEAST) for value in values]
    first = math.ceil(math.log10(min(values))) - 1
    decades = [10.0**power for power in range(first, math.ceil(math.log10(max(values))) + 1)]
    chart = pygal.HorizontalBar(
        js=[],  # it would be fetched
        style=_STYLE,
        title=title,
        width=900,
        height=90 + 20 * len(lines),
        margin=15,
        spacing=5,
        logarithmic=True,
        range=(decades[0], decades[-1]),
        zero=decades[0],
        y_labels=decades,
        value_formatter=lambda value: f"{value:g}",
        print_values=True,
        print_values_position="top",
        show_legend=False,
        disable_xml_declaration=True,
    )
    chart.uuid = "toolrun"  # the same for the same results
    chart.x_labels = [line["name"] for line in reversed(lines)]
    bars = [{"value": float(f"{value:.2g}"), "color": _WITHIN if value <= 1 else _OVER} for value in values]
    chart.add(None, bars[::-1])
    return re.sub(r"<!--.*?-->", "", chart.render(is_unicode=True))  # it has the day in a comment
