"""`toolrun schema`: the tools of a file, as a provider's request takes them."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from toolrun import DialectError
from toolrun.cli._exits import SUCCEEDED, InputError
from toolrun.cli._text import printable
from toolrun.cli._tools import registry_from

if TYPE_CHECKING:
    from argparse import Namespace


def print_schema(options: Namespace) -> int:
    """Print the definitions as one JSON array.

    Raises:
        InputError: The tools cannot be had, or cannot be written for the wire.
    """
    # What the file prints must not get into the array.
    with redirect_stdout(sys.stderr), registry_from(options.tools) as registry:
        try:
            definitions = registry.definitions(options.wire, strict=options.strict)
        except DialectError as error:
            raise InputError(str(error), place=options.tools) from None
    print(printable(json.dumps(definitions, indent=2)))
    return SUCCEEDED
