"""`import toolrun` in fresh processes, against the two libraries that it cannot do without."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from tempfile import TemporaryDirectory

from benchmarks.harness import Effort, Measured, Row

_OURS = "import toolrun"
_FLOOR = "import anyio; from pydantic import TypeAdapter"
_TIMED = "import time; start = time.process_time(); {}; print(time.process_time() - start)"
_BANNED = (
    "anthropic", "boto3", "botocore", "cohere", "google.genai", "importlib.metadata", "jsonschema", "mistralai", "ollama",
    "openai", "rich", "sqlite3", "tenacity",
)  # fmt: skip


def time(effort: Effort) -> Measured:
    """CPU time of the import itself; the interpreter's own start is not counted, nor is compiling."""
    sides = (_TIMED.format(_OURS), _TIMED.format(_FLOOR))
    with TemporaryDirectory() as bytecode:
        rounds = [[float(_python(side, bytecode)) for side in sides] for _ in range(1 + effort.rounds)]
    del rounds[0]  # it compiled
    ours, floor = (statistics.median(taken) for taken in zip(*rounds, strict=True))
    return Measured(statistics.median(a / b for a, b in rounds), f"{ours * 1e3:.0f} against {floor * 1e3:.0f} ms")


def banned(_effort: Effort) -> Measured:
    """What is needed only sometimes is imported only then."""
    with TemporaryDirectory() as bytecode:
        modules = _python(f"{_OURS}; import sys; print(*sys.modules)", bytecode).split()
    found = sorted(set(_BANNED) & set(modules))
    return Measured(len(found), ", ".join(found))


def _python(code: str, bytecode: str) -> str:
    """Run a process that writes bytecode to a directory and reads it there, whatever the environment says."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = bytecode
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env).stdout


ROWS = (
    Row("import", "import toolrun against anyio and pydantic's TypeAdapter", "x", 1.25, time),
    Row("import-banned", "modules that must not be imported with it", "modules", 0, banned),
)
