"""`toolrun completion`: a script that completes the command in a shell. Only this module imports shtab."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from toolrun import _plugins
from toolrun.cli._exits import SUCCEEDED, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILES: Final = frozenset({"STREAM", "FILE.py[:NAME]", "FILE.jsonl", "TOOL.json", "PATH"})
"""What the help calls a file."""

_WIRE: Final = "--wire"


def print_completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the script for a shell.

    Raises:
        InputError: shtab, which writes it, is not installed.
    """
    try:
        import shtab  # noqa: PLC0415  # an extra, and needed for this alone
    except ModuleNotFoundError as error:
        if error.name != "shtab":
            raise
        raise InputError("completion needs the extra toolrun[cli]: pip install 'toolrun[cli]'") from None
    wires = [plugin.name for plugin in _plugins.installed(_plugins.WIRES)]
    for action in _actions(parser):
        if action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
        elif _WIRE in action.option_strings:
            action.choices = [*wires, "mcp" if action.required else action.default]
    print(shtab.complete(parser, shell))
    return SUCCEEDED


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options and arguments of a parser and of the commands in it."""
    for action in parser._actions:  # noqa: SLF001  # argparse lists them nowhere else
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for command in action.choices.values():
                yield from _actions(command)
