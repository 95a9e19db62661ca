"""The file of a SQLite journal: opening it as its one owner, and its schema."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from toolrun._core.exceptions import JournalError

if TYPE_CHECKING:
    from pathlib import Path

Durability: TypeAlias = Literal["power", "process"]

SYNCHRONOUS: Final[dict[Durability, str]] = {"power": "FULL", "process": "NORMAL"}

MIGRATIONS: Final = (
    """
    CREATE TABLE owner (epoch INTEGER NOT NULL);
    INSERT INTO owner VALUES (0);
    CREATE TABLE turns (
        key TEXT PRIMARY KEY,
        data TEXT NOT NULL,
        created REAL NOT NULL,
        finished REAL
    );
    CREATE INDEX turns_by_finish ON turns (finished, created);
    CREATE TABLE calls (
        key TEXT PRIMARY KEY,
        turn TEXT NOT NULL REFERENCES turns (key) ON DELETE CASCADE,
        tool TEXT NOT NULL,
        arguments TEXT NOT NULL,
        effect TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        audit TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        outcome TEXT
    );
    CREATE INDEX calls_by_turn ON calls (turn);
    """,
)
"""The script that leads to each version of the schema from the one before; the first makes version 1."""

_APPLICATION: Final = 0x746F6F6C
"""The mark of a journal in SQLite's header: `tool` in ASCII."""

_WAL_BYTES: Final = 4 * 1024 * 1024
"""What stays of the write-ahead log after a large write."""

_ADVICE: Final = (
    (sqlite3.SQLITE_BUSY, "another process, or another journal of this one, owns it; close that, or use another file"),
    (sqlite3.SQLITE_LOCKED, "it is in use; close what uses it, or use another file"),
    (sqlite3.SQLITE_READONLY, "it cannot be written to; make the file and its directory writable"),
    (sqlite3.SQLITE_CANTOPEN, "it cannot be opened; the directory has to exist, and the file and it to be writable"),
    (sqlite3.SQLITE_NOTADB, "it is not a SQLite file; use another path, or restore it from a copy"),
    (sqlite3.SQLITE_CORRUPT, "the file is damaged; set it aside, with its -wal file, and restore a copy"),
    (sqlite3.SQLITE_FULL, "the disk is full; what was confirmed is safe, make room"),
    (
        sqlite3.SQLITE_IOERR,
        "the disk failed, or is full; what was confirmed is safe, open the journal again after that",
    ),
    (sqlite3.SQLITE_TOOBIG, "a text is too large for SQLite; make results smaller"),
)


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's code for the kind of error; 0 if the error is Python's own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def explained(path: Path, error: sqlite3.Error) -> JournalError:
    """The same error with the file's name and what to do."""
    code = primary_code(error)
    advice = next((text for known, text in _ADVICE if known == code), "see SQLite's message")
    return JournalError(f"journal {path}: {advice} (SQLite: {error})")


def open_file(path: Path, durability: Durability) -> tuple[sqlite3.Connection, int]:
    """Open a journal as its owner, make or migrate its tables, and count this owner.

    Returns:
        The connection, which belongs to this thread and holds the file's lock, and the epoch.

    Raises:
        JournalError: Somebody else owns it, it cannot be written, or it is no journal that can be read here.
    """
    connection = None
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=0)
        return connection, _take_over(connection, path, durability)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise explained(path, error) from error
        raise


def _take_over(connection: sqlite3.Connection, path: Path, durability: Durability) -> int:
    # With this lock, which is SQLite's own, the log's index is in memory and no second process can open the file.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    _check(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
    if durability == "power":
        connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone leaves data in the drive's cache
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection)
    connection.execute("BEGIN IMMEDIATE")
    (epoch,) = connection.execute("UPDATE owner SET epoch = epoch + 1 RETURNING epoch").fetchone()
    connection.execute("COMMIT")
    return int(epoch)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and application != _APPLICATION:
        raise JournalError(f"journal {path}: it is a SQLite file, but no journal of toolrun; use another path")
    if version > len(MIGRATIONS):
        raise JournalError(
            f"journal {path}: it has version {version} of the schema, and this toolrun reads up to {len(MIGRATIONS)};"
            " use the toolrun that wrote it, or a newer one"
        )


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema to the newest version, each step wholly or not at all.

    Raises:
        sqlite3.Error: A step failed; the file is as it was before that step.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for reached, script in enumerate(MIGRATIONS[version:], version + 1):
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {script};"
                f" PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {reached}; COMMIT"
            )
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
