"""Every recording of the built-in wires, and what the client that recorded it sent next."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toolrun import StreamFinalizer
from toolrun.wires import WIRES

if TYPE_CHECKING:
    from toolrun import ToolCall
    from toolrun.abc import Response

Json = dict[str, Any]

ROOT: Final = Path(os.environ.get("TOOLRUN_CORPUS") or Path(__file__).resolve().parents[2].parent / "shared" / "corpus")
INDEX: Final = ROOT / "index.jsonl"
ABSENT: Final = f"the recordings are not in {ROOT}; set TOOLRUN_CORPUS to the folder that has their index.jsonl"


@dataclass(frozen=True)
class Recording:
    """One recorded stream."""

    id: str
    wire: str
    file: str

    def events(self) -> list[Any]:
        """Its events as they were recorded."""
        return [json.loads(line) for line in (ROOT / self.file).read_bytes().split(b"\n") if line]

    def read(self, *, upto: int | None = None) -> tuple[tuple[ToolCall, ...], Response]:
        """The calls and the response; with `upto`, of so many events."""
        finalizer = StreamFinalizer(self.wire, deltas=False)
        for event in self.events()[:upto]:
            finalizer.feed(event)
        finalizer.close()
        return finalizer.calls, finalizer.response

    @property
    def echo_path(self) -> Path:
        return ROOT / "echo" / self.wire / f"{self.id}.json"


@functools.cache
def recordings() -> tuple[Recording, ...]:
    """All of them; none where the corpus is absent."""
    if not INDEX.is_file():
        return ()
    entries = [json.loads(line) for line in INDEX.read_text(encoding="utf-8").split("\n") if line]
    return tuple(Recording(entry["id"], entry["wire"], entry["file"]) for entry in entries if entry["wire"] in WIRES)
