"""Executors on this machine: in the event loop, in worker threads, and in worker processes."""

from toolrun.executors.inline import InlineExecutor
from toolrun.executors.process import ProcessExecutor
from toolrun.executors.thread import ThreadExecutor

__all__ = ["InlineExecutor", "ProcessExecutor", "ThreadExecutor"]
