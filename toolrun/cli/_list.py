"""`toolrun plugins`: what is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolrun import _plugins
from toolrun.cli._text import json_line, one_line

if TYPE_CHECKING:
    from argparse import Namespace


def list_plugins(options: Namespace) -> int:
    """Print the plugins by group; none of them is imported."""
    found = _plugins.installed()
    if options.json:
        for plugin in found:
            print(json_line(plugin._asdict()))
        return 0
    widths = [
        max((len(one_line(text)) for text in column), default=0) for column in zip(*map(_cells, found), strict=True)
    ]
    for group in _plugins.GROUPS:
        print(group)
        mine = [plugin for plugin in found if plugin.group == group]
        for plugin in mine:
            cells = [one_line(text).ljust(width) for text, width in zip(_cells(plugin), widths, strict=True)]
            print(f"  {'  '.join(cells).rstrip()}")
        if not mine:
            print("  none")
    return 0


def _cells(plugin: _plugins.Plugin) -> tuple[str, str, str]:
    return plugin.name, f"{plugin.distribution} {plugin.version}".strip(), plugin.target
