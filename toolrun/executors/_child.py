"""What runs in a worker process: it takes one call after the other from its connection, and answers each."""

from __future__ import annotations

import functools
import inspect
import os
import pickle
import signal
import sys
import traceback
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
import anyio.lowlevel

from toolrun.executors._attempt import ending

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.connection import Connection

READY: Final = b"ready"
"""A worker says it when it has started, and again when it has loaded a call."""

GO: Final = b"go"
"""What a loaded call waits for; only now the tool begins."""


class Kind(StrEnum):
    """How a call ended in its process."""

    RETURNED = "returned"
    RAISED = "raised"
    NOT_PICKLED = "not pickled"


class Reply(NamedTuple):
    """What a worker answers: what came of the call, that value or error pickled, and the same in words."""

    kind: Kind
    pickled: bytes = b""
    text: str = ""


class Request(NamedTuple):
    """What a worker is asked: a function with its arguments, and the event loop for what it may await."""

    function: Callable[..., object]
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    backend: str
    is_async: bool


def serve(connection: Connection) -> None:
    """Answer calls until the other side is gone."""
    _stand_apart()
    connection.send_bytes(READY)
    with suppress(EOFError, OSError):
        while True:
            _take(connection)


def _take(connection: Connection) -> None:
    data = connection.recv_bytes()
    try:
        request = Request(*pickle.loads(data))  # noqa: S301  # from the process that started this one
        if request.is_async:
            _import_loop(request.backend)
    except BaseException as error:  # noqa: BLE001  # imports run code of the tool's module
        connection.send_bytes(_described(error).encode(errors="replace"))
        return
    connection.send_bytes(READY)
    if connection.recv_bytes() == GO:
        connection.send_bytes(pickle.dumps(tuple(_answer(request))))


def _stand_apart() -> None:
    """Leave Ctrl-C to the process that started this one, which ends it together with what its tools started."""
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    else:
        os.setsid()


@functools.cache
def _import_loop(backend: str) -> None:
    """Have the event loop's modules imported before the deadline of the first call begins."""
    anyio.run(anyio.lowlevel.checkpoint, backend=backend)


def _answer(request: Request) -> Reply:
    ended = ending(_call, request)
    if ended.error is not None:
        return _raised(ended.error)
    try:
        return Reply(Kind.RETURNED, pickle.dumps(ended.value))
    except BaseException as error:  # noqa: BLE001  # pickling runs code of the value
        return Reply(Kind.NOT_PICKLED, text=f"{type(ended.value).__name__}: {_described(error)}")


def _call(request: Request) -> object:
    value = request.function(*request.args, **request.kwargs)
    if not inspect.isawaitable(value):
        return value

    async def wait() -> object:
        return await value

    return anyio.run(wait, backend=request.backend)


def _raised(error: BaseException) -> Reply:
    text = _described(error)
    trace = "".join(traceback.format_exception(error))
    try:
        error.add_note(f"in its worker process:\n{trace}")
        pickled = pickle.dumps(error)
        pickle.loads(pickled)  # noqa: S301  # many an exception can be pickled, and not be made again
    except BaseException:  # noqa: BLE001  # pickling runs code of the exception
        return Reply(Kind.RAISED, text=f"{text}\n{trace}")
    return Reply(Kind.RAISED, pickled, text)


def _described(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()
