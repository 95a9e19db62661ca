"""The real parts, each a process of its own: a Temporal server, workers, agents. All are ended by their id."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TOOLS = HERE / "temporal_tools.py"
PATIENCE = 120.0
"""Seconds that anything may take here, on however busy a machine; what takes longer is a failure."""


def program(name: str) -> str:
    """A command that is installed beside this Python."""
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found is not None, f"{name} is not installed beside {sys.executable}"
    return found


class Process:
    """A process whose output is read as it comes.

    Args:
        command: Program and arguments.
    """

    def __init__(self, *command: object) -> None:
        self.lines: list[str] = []
        self._told = threading.Condition()
        self._popen = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            with self._told:
                self.lines.append(line.rstrip("\n"))
                self._told.notify_all()
        with self._told:
            self._told.notify_all()

    def wait_for(self, word: str) -> str:
        """Wait for a line with this word, and return it."""

        def found() -> str | None:
            return next((line for line in self.lines if word in line), None)

        with self._told:
            self._told.wait_for(lambda: found() or not self._reader.is_alive(), PATIENCE)
        line = found()
        assert line is not None, self.lines
        return line

    def signal(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut does."""
        self._popen.kill()
        self.wait()

    def wait(self) -> int:
        code = self._popen.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def close(self) -> None:
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGCONT)
            self._popen.kill()
        self.wait()
        assert self._popen.stdout is not None
        self._popen.stdout.close()


class Server(Process):
    """Temporal's development server.

    Args:
        file: What it keeps its state in; in memory if there is none.
        port: Where it listens; a free one if it is not told.
    """

    def __init__(self, file: Path | None = None, port: int | None = None) -> None:
        self.file = file
        self.port = port or free_port()
        where = ["--ip", "127.0.0.1", "--port", self.port] + ([] if file is None else ["--db-filename", file])
        super().__init__(program("temporal"), "server", "start-dev", "--headless", "--log-level", "never", *where)
        self.wait_for("Temporal Server:")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def restarted(self) -> Server:
        """Another one in its place, once it is gone."""
        return Server(self.file, self.port)


def start_worker(address: str, task_queue: str, *options: object) -> Process:
    """The command that users start; it says when it takes calls."""
    where = ("--address", address, "--task-queue", task_queue, "--tools", TOOLS)
    return Process(program("toolrun-temporal"), "worker", *where, *options)


def start_agent(**options: Any) -> Process:
    """A process that runs `agent.py`; its last line is what came of the calls."""
    return Process(sys.executable, HERE / "agent.py", json.dumps(options))


def answers(agent: Process) -> list[list[dict[str, Any]]]:
    """What an agent says came of the calls of its turns, once it has ended."""
    assert agent.wait() == 0, agent.lines
    return json.loads(agent.lines[-1])


def until(happened: Callable[[], object]) -> None:
    """Wait for something outside of this process, such as a line in a file."""
    last = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < last, "it did not happen"
        time.sleep(0.005)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


needs_signals = os.name == "posix"
