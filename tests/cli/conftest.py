"""Running the command: in this process, and as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from toolrun.cli import main

ROOT = Path(__file__).parents[2]


class Ended(NamedTuple):
    """What the command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def objects(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.lines]


Command = Callable[..., Ended]


@pytest.fixture
def toolrun(capsys: pytest.CaptureFixture[str]) -> Command:
    """`main([...])`."""

    def run(*arguments: object) -> Ended:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return run


@pytest.fixture
def process() -> Command:
    """`python -m toolrun.cli`, to its end."""

    def run(*arguments: object, stdin: bytes = b"", cwd: Path = ROOT) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "toolrun.cli", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            timeout=60,
            cwd=cwd,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode().replace("\r\n", "\n"))

    return run


@pytest.fixture
def examples() -> Path:
    return ROOT / "examples"


@pytest.fixture
def chat() -> Callable[..., str]:
    """Write `openai-chat` events as lines of JSON: one call an argument, given as id, name and arguments."""

    def write(*calls: Sequence[str], finish: str | None = "tool_calls", text: str = "") -> str:
        deltas: list[dict[str, object]] = [{"content": text}] if text else []
        deltas += [
            {"tool_calls": [{"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}]}
            for index, (call_id, name, arguments) in enumerate(calls)
        ]
        choices: list[dict[str, object]] = [{"index": 0, "delta": delta} for delta in deltas]
        if finish is not None:
            choices.append({"index": 0, "delta": {}, "finish_reason": finish})
        return "".join(f"{json.dumps({'choices': [choice]})}\n" for choice in choices)

    return write


@pytest.fixture
def tools(tmp_path: Path) -> Callable[[str], Path]:
    """Write a file of tools; `registry` and what tools usually need is there."""

    def write(body: str, name: str = "own_tools.py") -> Path:
        path = tmp_path / name
        path.write_text(f"import asyncio, time\nfrom toolrun import ToolRegistry\nregistry = ToolRegistry()\n{body}\n")
        return path

    return write
