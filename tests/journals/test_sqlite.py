"""What a journal in a SQLite file does beyond the contract: its one owner, its disk, its versions, its bounds."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import anyio
import pytest

from toolrun import CallStatus, JournalError, ToolCall
from toolrun.abc import Job, Payload
from toolrun.journals import MemoryJournal, SqliteJournal, _schema

CALL = ToolCall(id="c", name="pay", raw_arguments="{}", arguments={}, status=CallStatus.OK, executable=True)


def text(value: str) -> Payload:
    return Payload(lambda: value)


async def start(journal, key: str, data: str = "turn", **changes):
    job = Job(key=key, tool="pay", call=CALL, arguments="{}")._replace(**changes)
    return await journal.start(job, audit=text("audit"), turn=text(data))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.db"


def run_script(script: str, path: Path) -> str:
    """Run a script in a process of its own, with what the tests here use imported."""
    prelude = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from test_sqlite import *\n"
    # One of them gives up the right to write anywhere: coverage, where it is on, could not keep what it measured.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-c", prelude + script, path],
        capture_output=True,
        text=True,
        check=False,
        cwd=path.parent,
        env=environment,
    )
    assert not done.stderr
    return done.stdout.strip()


# -- one owner --------------------------------------------------------------------------------

OPEN = """
try:
    SqliteJournal(sys.argv[1]).close()
    print("opened")
except JournalError as error:
    print(error)
"""


def test_one_owner(path: Path):
    """A second process, or a second journal in this one, gets an error that names the file; afterwards it is free."""
    with SqliteJournal(path):
        said = (
            f"journal {path}: another process, or another journal of this one, owns it; close that, or use another file"
            " (SQLite: database is locked)"
        )
        assert run_script(OPEN, path) == said
        with pytest.raises(JournalError) as caught:
            SqliteJournal(path)
        assert str(caught.value) == said

    assert run_script(OPEN, path) == "opened"


async def test_who_takes_the_file_over_fences_the_owner(path: Path):
    """Also where the lock did not hold, as on some network disks."""
    async with SqliteJournal(path) as journal:
        await start(journal, "r:t:0")
        await journal._writer.do(lambda db: db.execute("UPDATE owner SET epoch = epoch + 1"))

        with pytest.raises(JournalError, match=r"another owner has taken it over \(epoch 2, this is 1\)"):
            await journal.settle("r:t:0", text("late"), attempt=1)


@pytest.mark.parametrize("options", [{"durability": "none"}, {"retention": -1}, {"retention": float("nan")}])
def test_options_that_make_no_sense(path: Path, options):
    """Nothing is made then."""
    with pytest.raises(JournalError):
        SqliteJournal(path, **options)
    assert not path.exists()


# -- files that are no journals ---------------------------------------------------------------


def make_newer(path: Path):
    SqliteJournal(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def make_foreign(path: Path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (make_newer, "it has version 99 of the schema, and this toolrun reads up to 1; use the toolrun that wrote it"),
        (make_foreign, "it is a SQLite file, but no journal of toolrun; use another path"),
        (lambda path: path.write_bytes(b"not a database, though long enough" * 40), "it is not a SQLite file"),
        (lambda path: path.mkdir(), "it cannot be opened; the directory has to exist"),
    ],
    ids=["newer", "foreign", "no database", "directory"],
)
def test_a_file_that_is_no_journal(path: Path, make, says: str):
    """The error names it and says what to do, and the file stays as it is."""
    make(path)
    before = path.read_bytes() if path.is_file() else None

    with pytest.raises(JournalError) as caught:
        SqliteJournal(path)

    assert str(caught.value).startswith(f"journal {path}: {says}")
    assert before is None or path.read_bytes() == before


def test_no_directory(tmp_path: Path):
    """Directories are not made."""
    with pytest.raises(JournalError, match="the directory has to exist"):
        SqliteJournal(tmp_path / "missing" / "calls.db")


READ_ONLY = """
os.chmod(sys.argv[1], 0o444)
os.chmod(".", 0o555)
if not os.geteuid():
    os.setuid(65534)  # nothing is read-only for root
try:
    SqliteJournal("calls.db")
except JournalError as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="no file modes as POSIX has them")
async def test_a_read_only_file(path: Path):
    """It says so; what is in there is not touched."""
    async with SqliteJournal(path) as journal:
        await start(journal, "r:t:0")
    before = path.read_bytes()

    said = run_script(READ_ONLY, path)

    path.parent.chmod(0o755)
    assert said.startswith(
        "journal calls.db: it cannot be opened; the directory has to exist, and the file and it to be writable"
    )
    assert path.read_bytes() == before


# -- versions ---------------------------------------------------------------------------------

NOTES = "ALTER TABLE turns ADD COLUMN note TEXT NOT NULL DEFAULT 'old'"


async def test_a_file_of_an_older_version(path: Path, monkeypatch):
    """It is brought to the newest version, with what is in it."""
    async with SqliteJournal(path) as journal:
        await start(journal, "r:t:0")
    monkeypatch.setattr(_schema, "MIGRATIONS", (*_schema.MIGRATIONS, NOTES))

    async with SqliteJournal(path) as journal:
        assert list(await journal.unsettled()) == ["r:t"]
        rows = await journal._writer.do(lambda db: db.execute("SELECT key, note FROM turns").fetchall())

    assert rows == [("r:t", "old")]
    monkeypatch.undo()
    with pytest.raises(JournalError, match="it has version 2 of the schema, and this toolrun reads up to 1"):
        SqliteJournal(path)


async def test_a_migration_that_fails(path: Path, monkeypatch):
    """The file is as it was before."""
    async with SqliteJournal(path) as journal:
        await start(journal, "r:t:0")
    monkeypatch.setattr(_schema, "MIGRATIONS", (*_schema.MIGRATIONS, f"{NOTES}; INSERT INTO nowhere VALUES (1)"))

    with pytest.raises(JournalError, match="no such table: nowhere"):
        SqliteJournal(path)

    monkeypatch.undo()
    async with SqliteJournal(path) as journal:
        assert list(await journal.unsettled()) == ["r:t"]


# -- the disk ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [1, 24, 4000])
async def test_a_torn_tail_of_the_log(path: Path, tmp_path: Path, lost: int):
    """What was cut off is the last commit alone; everything before it is there."""
    async with SqliteJournal(path) as journal:
        await start(journal, "r:a:0")
        await start(journal, "r:b:0")
        whole = path.with_name("calls.db-wal").stat().st_size
        await start(journal, "r:c:0")
        for name in ("calls.db", "calls.db-wal"):  # as a machine leaves them that goes down
            shutil.copy(tmp_path / name, tmp_path / f"copy-{name}")
    log = tmp_path / "copy-calls.db-wal"
    assert log.stat().st_size - lost >= whole
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - lost)

    async with SqliteJournal(tmp_path / "copy-calls.db") as journal:
        assert list(await journal.unsettled()) == ["r:a", "r:b"]
        await start(journal, "r:c:0")
        assert list(await journal.unsettled()) == ["r:a", "r:b", "r:c"]


FULL = """
import resource

async def main():
    async with SqliteJournal(sys.argv[1]) as journal:
        await start(journal, "r:a:0")
        room = os.stat(sys.argv[1] + "-wal").st_size + 8192
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        for key in ("r:b:0", "r:c:0"):  # the second one is refused for the first one's sake
            try:
                await start(journal, key, "x" * 100_000)
            except JournalError as error:
                print(str(error).partition(" (")[0])
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        try:
            await start(journal, "r:d:0")
        except JournalError:
            print("open it again")
    async with SqliteJournal(sys.argv[1]) as journal:
        await start(journal, "r:e:0", "x" * 100_000)
        print(*await journal.unsettled())

anyio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file sizes there")
def test_a_disk_that_fails(path: Path):
    """Whoever waits is told, nothing half is there, and after it the journal has to be opened again."""
    says = f"journal {path}: the disk failed, or is full; what was confirmed is safe, open the journal again after that"

    assert run_script(FULL, path).splitlines() == [says, says, "open it again", "r:a r:e"]


@pytest.fixture
def small_disk(tmp_path: Path):
    """A disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a file system of its own can be mounted by root alone")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(ballast: Path) -> None:
    """Write until there is no room left."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)


async def test_a_full_disk(small_disk: Path):
    """Whoever waits is told; once there is room, the same journal goes on."""
    path, ballast = small_disk / "calls.db", small_disk / "ballast"
    async with SqliteJournal(path) as journal:
        await start(journal, "r:a:0")
        fill(ballast)

        with pytest.raises(JournalError, match="the disk is full; what was confirmed is safe, make room"):
            await start(journal, "r:b:0", "x" * 100_000)
        ballast.unlink()

        await start(journal, "r:c:0", "x" * 100_000)
        assert list(await journal.unsettled()) == ["r:a", "r:c"]


STEPS = """
async def main():
    async with SqliteJournal(sys.argv[1]) as journal:
        await start(journal, "r:warm:0")
        os.write(1, b"[start]")
        await start(journal, "r:t:0")
        os.write(1, b"[effect]")
        await journal.settle("r:t:0", text("done"), attempt=1)
        os.write(1, b"[outcome]")

anyio.run(main)
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_the_disk_has_a_start_before_its_effect(path: Path):
    """Exactly one fdatasync stands between the two, and one before the outcome is told."""
    log = path.with_name("strace")
    prelude = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from test_sqlite import *\n"
    subprocess.run(
        ["strace", "-f", "-e", "trace=write,fdatasync,fsync", "-o", log, sys.executable, "-c", prelude + STEPS, path],
        check=True,
        capture_output=True,
    )

    lines = log.read_text().splitlines()
    marks = [next(n for n, line in enumerate(lines) if mark in line) for mark in ("[start]", "[effect]", "[outcome]")]
    syncs = [sum("sync(" in line for line in lines[a:b]) for a, b in itertools.pairwise(marks)]
    assert syncs == [1, 1]


@pytest.mark.parametrize(("durability", "level"), [("power", 2), ("process", 1)])
async def test_how_long_it_waits_for_the_disk(path: Path, durability, level: int):
    """SQLite's levels: 2 is FULL, 1 is NORMAL."""
    async with SqliteJournal(path, durability=durability) as journal:
        read = await journal._writer.do(lambda db: [db.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS])

    assert read == [level, "wal", "exclusive"]


PRAGMAS = ("synchronous", "journal_mode", "locking_mode")


async def test_those_who_wait_share_a_commit(path: Path):
    """A hundred starts at once, far fewer transactions."""
    said: list[str] = []
    async with SqliteJournal(path) as journal:
        await journal._writer.do(lambda db: db.set_trace_callback(said.append))
        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(start, journal, f"r:{number}:0")
        await journal._writer.do(lambda db: db.set_trace_callback(None))

    assert sum(line.startswith("INSERT INTO calls") for line in said) == 100
    assert said.count("COMMIT") <= 10


# -- bounds -----------------------------------------------------------------------------------


async def test_finished_turns_go_after_a_time(path: Path):
    """Unfinished ones stay, whatever their age."""
    async with SqliteJournal(path, retention=0) as journal:
        for turn in ("r:a", "r:b"):
            await start(journal, f"{turn}:0")
        await journal.finish("r:a")
        await start(journal, "r:c:0")
        await start(journal, "r:d:0")

        assert list(await journal.turns()) == ["r:b", "r:c", "r:d"]
        assert await journal.turn("r:a") is None


async def test_the_file_is_bounded(path: Path):
    """What was removed makes room: 200 turns of 20 kB, of which none has to stay."""
    async with SqliteJournal(path, durability="process", retention=0) as journal:
        for number in range(200):
            await start(journal, f"r:{number}:0", "x" * 20_000)
            await journal.settle(f"r:{number}:0", text("done"), attempt=1)
            await journal.finish(f"r:{number}")
    async with SqliteJournal(path) as journal:
        await journal.unsettled()

    assert path.stat().st_size < 400_000


async def test_memory_is_bounded():
    """Finished turns go, the oldest first; unfinished ones stay."""
    journal = MemoryJournal(max_turns=2)
    for name in "abcd":
        await start(journal, f"r:{name}:0")
    for name in "bcd":
        await journal.finish(f"r:{name}")

    assert [name for name in "abcd" if await journal.turn(f"r:{name}") is not None] == ["a", "c", "d"]


async def test_what_was_noted_is_written_at_the_end(path: Path):
    """Closing waits for it."""
    async with SqliteJournal(path) as journal:
        await start(journal, "r:t:0")
        await journal.finish("r:t")

    async with SqliteJournal(path) as journal:
        assert list(await journal.unsettled()) == []


async def test_a_note_survives_a_transaction_that_fails(path: Path):
    """The turn was handed over, whatever became of what was to be written with that."""

    def broken(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("not now")

    async with SqliteJournal(path) as journal:
        for key in ("R:a", "R:b"):
            await start(journal, f"{key}:0")
        journal._writer.note(lambda db: db.execute("INSERT INTO nowhere VALUES (1)"))
        await journal.finish("R:a")
        with pytest.raises(JournalError, match="not now"):
            await journal._writer.do(broken)
        await journal.finish("R:b")

    async with SqliteJournal(path) as journal:
        assert await journal.unsettled() == []


async def test_an_outcome_of_which_the_wait_was_cancelled(path: Path):
    """It took place all the same, and whoever waits for it is told."""
    async with SqliteJournal(path) as journal:
        await start(journal, "R:T:0")
        found: list[str] = []

        async def wait() -> None:
            found.append(await journal.outcome("R:T:0"))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                await journal.unsettled()  # so that what `wait` asked first is done
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await journal.settle("R:T:0", text("done"), attempt=1)

        assert found == ["done"]


@pytest.mark.parametrize("verb", ["keep", "start"])
@pytest.mark.parametrize("in_memory", [True, False])
async def test_a_finished_turn_that_goes_on_is_unfinished(path: Path, verb: str, in_memory: bool):
    """It is kept for answers once more, or a call of it is begun again."""
    async with MemoryJournal() if in_memory else SqliteJournal(path) as journal:
        await start(journal, "R:T:0")
        await journal.finish("R:T")
        assert await journal.unsettled() in ([], ())

        if verb == "keep":
            await journal.keep("R:T", text("turn"))
        else:
            await start(journal, "R:T:0", attempt=2)

        assert tuple(await journal.unsettled()) == ("R:T",)
