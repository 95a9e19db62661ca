"""Tools for worker processes, which import them from here by name."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import NoReturn

import anyio
import anyio.lowlevel

from toolrun import ToolContext, ToolError


@dataclass
class Reading:
    place: str
    degrees: float


class Station:
    def __init__(self, place: str) -> None:
        self.place = place

    def read(self, degrees: float) -> Reading:
        return Reading(self.place, degrees)


def add(a: int, b: int = 1) -> int:
    return a + b


async def add_later(a: int, b: int = 1) -> int:
    await anyio.lowlevel.checkpoint()
    return a + b


def scale(factor: int, n: int) -> int:
    return factor * n


def who(ctx: ToolContext[str]) -> list[object]:
    return [ctx.deps, ctx.call_id, ctx.tool, ctx.attempt]


def pid() -> int:
    return os.getpid()


def thread() -> int:
    return threading.get_ident()


def noise() -> str:
    sys.stdout.write("noise\n")
    sys.stdout.flush()
    subprocess.run([sys.executable, "-S", "-c", "print('noise from a child')"], check=True)
    return "quiet"


def hold(port: int) -> NoReturn:
    """Say by a connection that it runs; the connection breaks when the process is gone."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(b"x")
    while True:
        threading.Event().wait()


def hold_in_child(port: int) -> NoReturn:
    """The same, by a process that the tool starts."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(b"x")
    with subprocess.Popen(["sleep", "60"], pass_fds=[connection.fileno()]):
        connection.close()
        threading.Event().wait()
    raise AssertionError


async def hold_in_loop(port: int) -> NoReturn:
    hold(port)


def hold_until_told(port: int) -> str:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(b"x")
    return connection.recv(16).decode()


def leave() -> NoReturn:
    os._exit(3)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def lock() -> object:
    return threading.Lock()


class Unreadable:
    """Can be pickled, and not be made again."""

    def __reduce__(self) -> tuple[object, ...]:
        return int, ("no number",)


def unreadable() -> object:
    return Unreadable()


class Locked(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


def fail() -> NoReturn:
    raise ToolError("no such city")


def fail_locked() -> NoReturn:
    raise Locked("holds a lock")


def leave_politely() -> NoReturn:
    sys.exit(3)
