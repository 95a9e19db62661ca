"""Journals: what a runner began and what came of it, in memory or in a SQLite file."""

from toolrun.journals.memory import MemoryJournal
from toolrun.journals.sqlite import SqliteJournal

__all__ = ["MemoryJournal", "SqliteJournal"]
