"""Executors in this process: in the event loop, and in worker threads."""

from toolrun.executors.inline import InlineExecutor
from toolrun.executors.thread import ThreadExecutor

__all__ = ["InlineExecutor", "ThreadExecutor"]
