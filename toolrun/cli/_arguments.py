"""Arguments of commands, and how they are refused: in one line."""

from __future__ import annotations

import argparse
import math
from typing import Any, NoReturn

from toolrun.cli._exits import InputError


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, instead of the usage and a line; takes its help as it is written.

    Args:
        **options: As for `argparse.ArgumentParser`.
    """

    def __init__(self, **options: Any) -> None:
        """See the class."""
        super().__init__(**{"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments.

        Raises:
            InputError: Always.
        """
        raise InputError(f"{message} (see {self.prog} --help)")


def seconds(text: str) -> float:
    """Read the argument of an option that takes a time.

    Raises:
        ArgumentTypeError: It is none, or not above 0.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def number(text: str) -> int:
    """Read the argument of an option that takes a count.

    Raises:
        ArgumentTypeError: It is none, or not above 0.
    """
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
