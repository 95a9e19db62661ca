"""`Ledger`: what really happened, by an account that nothing under test keeps."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path


class Ledger:
    """An outside account of what really happened: a file that is only appended to, by whatever process.

    Args:
        path: The file; made with the first line.

    Examples:
        >>> import tempfile
        >>> from toolrun.testing import Ledger
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     ledger = Ledger(f"{directory}/ledger")
        ...     ledger.append("charged order 7")
        ...     ledger.count("charged order 7"), ledger.count("refunded order 7")
        (1, 0)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """See the class."""
        self._path = Path(path)

    def append(self, line: str) -> None:
        """Add a line; it is there when this returns, even if the process is killed then.

        Args:
            line: A text without line ends.
        """
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)

    def lines(self) -> list[str]:
        """All lines, in the order in which they were added."""
        return self._path.read_text("utf-8").splitlines() if self._path.exists() else []

    def count(self, line: str) -> int:
        """How often a line was added.

        Args:
            line: The line.
        """
        return Counter(self.lines())[line]
