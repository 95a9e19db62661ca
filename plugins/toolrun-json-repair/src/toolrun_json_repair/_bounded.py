"""A call of Python code that ends in time: `json_repair` has no limit of its own, and 100 KB can take it minutes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


class _TimeIsUp(BaseException):
    """Raised inside the function; no `except Exception` in there catches it."""


def call_within(seconds: float, function: Callable[[], T]) -> T:
    """Call a function, and give up on it at the first call that it makes after the time is up.

    The interpreter tells the thread's profile function of every call. A profiler that is at work in this thread sees
    nothing of it meanwhile.

    Args:
        seconds: How long it may take.
        function: Python code that calls other functions often, as parsers do.

    Raises:
        TimeoutError: It took longer.
        Exception: What the function raises.
    """
    end = time.monotonic() + seconds

    def watch(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001  # as every profile function
        # No tracer sees the inside of a profile function.
        if time.monotonic() > end:  # pragma: no cover
            sys.setprofile(None)  # it would interrupt what handles the interruption
            raise _TimeIsUp

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        return function()
    except _TimeIsUp:
        raise TimeoutError(f"gave up after {seconds:g} s") from None
    finally:
        sys.setprofile(before)
