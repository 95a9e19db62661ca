"""How the server is reached and asked, and how a text travels."""

from __future__ import annotations

import asyncio
import atexit
import functools
import time
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError, RPCStatusCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

ACTIVITY: Final = "toolrun.call"
"""The type of every activity here, whatever the tool."""

TASK_QUEUE: Final = "toolrun"
ADDRESS: Final = "localhost:7233"

PAYLOAD_LIMIT: Final = 2_000_000
"""Bytes of a text. A server refuses payloads of more than 2 MiB, with what it adds, unless it is configured otherwise."""

_AWAY: Final = frozenset(
    (
        RPCStatusCode.ABORTED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.INTERNAL,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.UNKNOWN,
    )
)
"""What a server says, or is said of it, that restarts, has not loaded everything yet, or cannot be reached."""

PAUSE: Final = 0.3
"""Seconds until a server that is away is asked again."""

_LAST_PAUSE: Final = 0.2


class Unanswered(Exception):
    """The server was away for longer than it is waited for."""


@functools.cache
def pause_at_exit() -> None:
    """Have this process wait a moment at its end.

    Threads of Temporal's core hand results to Python, and one that is at it while Python is taken down aborts the
    process (temporalio/sdk-python#300): four in 32 did, of those that ended right after their last call.
    """
    atexit.register(time.sleep, _LAST_PAUSE)


def settings(address: str | None, namespace: str | None) -> tuple[str, str]:
    """Where the server is, and the namespace there: as told, or as the environment says, or Temporal's own defaults."""
    config = ClientConfig.load_client_connect_config()
    return (
        address or config.get("target_host") or ADDRESS,
        namespace or config.get("namespace") or "default",
    )


async def connect(address: str | None, namespace: str | None) -> Client:
    """Connect; what is not told comes from `TEMPORAL_…` variables and Temporal's configuration file, TLS and keys too.

    Raises:
        RuntimeError: The server cannot be reached.
    """
    config = ClientConfig.load_client_connect_config()
    config["target_host"], config["namespace"] = settings(address, namespace)
    return await Client.connect(**config)


async def ask(question: Callable[[], Awaitable[T]], *, patience: float) -> T:
    """Ask the server, and again while it is away.

    Args:
        question: A short one: how long it takes counts as time that the server is away.
        patience: Seconds from the first time that it is away.

    Raises:
        Unanswered: It was away for longer.
        RPCError: The server's answer is that it will not.
    """
    until: float | None = None
    while True:
        try:
            return await question()
        except RPCError as error:
            if not is_away(error):
                raise
            reason: Exception = error
        except RuntimeError as error:  # a client that is not connected yet
            if "client connect" not in str(error):
                raise
            reason = error
        now = anyio.current_time()
        until = now + patience if until is None else until
        if now >= until:
            raise Unanswered(str(reason)) from reason
        await anyio.sleep(PAUSE)


def is_away(error: BaseException) -> bool:
    """Tell whether an error says no more than that the server is away now."""
    if isinstance(error, asyncio.CancelledError):  # the client makes one of a poll that the server ended
        error = error.__cause__ or error
    return isinstance(error, RPCError) and error.status in _AWAY


def packed(text: str) -> RawValue:
    """JSON text as a payload that Temporal's own tools can show; written as a string it would be escaped once more."""
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=text.encode()))


def unpacked(value: RawValue) -> str:
    """The text again."""
    return value.payload.data.decode()
