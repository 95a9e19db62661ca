"""The `toolrun` command: runs or finalizes recorded and piped streams, and lists plugins."""

from toolrun.cli._main import entry, main

__all__ = ["entry", "main"]
