"""The `toolrun` command: runs or finalizes recorded and piped streams, and lists plugins.

The other names are for commands of plugins, so that those read tools, refuse input and end as this one does.
"""

from toolrun.cli._arguments import Parser, number, seconds
from toolrun.cli._exits import InputError, complain
from toolrun.cli._main import entry, main
from toolrun.cli._tools import registry_from

__all__ = ["InputError", "Parser", "complain", "entry", "main", "number", "registry_from", "seconds"]
