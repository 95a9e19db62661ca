"""`toolrun journal`: the calls of a journal in a file, and settling one by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from toolrun import Failed, JournalError, Succeeded, UnknownWire
from toolrun._core.results import value_text
from toolrun._core.seams import Payload, turn_of
from toolrun._runtime.packing import outcome_text, read_audit
from toolrun._runtime.recovery import read_left
from toolrun.cli._exits import FAILED, SUCCEEDED, InputError, complain
from toolrun.cli._paint import paint
from toolrun.cli._records import outcome_record
from toolrun.cli._text import json_line, one_line, printable, shorten

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from toolrun import Outcome, ToolCall
    from toolrun._core.records import JsonObject
    from toolrun._core.seams import CallEntry, TurnEntry
    from toolrun.cli._paint import Paint
    from toolrun.journals import SqliteJournal

_SHOWN: Final = 60

_STYLES: Final = {"succeeded": "good", "started": "doubtful", "not_started": "dim", "deferred": "dim"}


class _Kept(NamedTuple):
    """One call of a journal."""

    key: str
    call: ToolCall
    outcome: Outcome | None
    entry: CallEntry | None

    @property
    def status(self) -> str:
        """How far it has come."""
        if self.outcome is not None:
            return self.outcome.status
        return "not_started" if self.entry is None else "started"

    def record(self) -> JsonObject:
        """All that is known of it."""
        if self.outcome is not None:
            return {"key": self.key, **outcome_record(self.outcome)}
        call, entry = self.call, self.entry
        grade, repairs = (None, ()) if entry is None else read_audit(entry.audit)
        known = Failed(
            call=call,
            tool=None if entry is None else entry.tool,
            repairs=repairs,
            grade=grade,
            arguments=None if entry is None else json.loads(entry.arguments),
            attempts=0 if entry is None else entry.attempt,
            started=entry is not None,
        )
        return {"key": self.key, **outcome_record(known), "status": self.status}


def journal(options: Namespace) -> int:
    """List the calls, show one, or settle one.

    Raises:
        InputError: The file cannot be read as a journal, or the options do not go together.
    """
    given = sum(value is not None for value in (options.result, options.error))
    if given != (options.settle is not None):
        raise InputError("--settle takes one of --result and --error (see toolrun journal --help)")
    if not Path(options.path).is_file():
        raise InputError("no such file", place=options.path)
    return anyio.run(_run, options)


async def _run(options: Namespace) -> int:
    from toolrun.journals import SqliteJournal  # noqa: PLC0415  # it imports sqlite3

    try:
        async with SqliteJournal(options.path) as kept:
            if options.settle is not None:
                return await _settle(kept, options)
            if options.show is not None:
                _show(await _find(kept, options.show), as_json=options.json)
            else:
                await _list(kept, options)
    except (JournalError, UnknownWire) as error:
        raise InputError(str(error)) from error
    return SUCCEEDED


async def _list(kept: SqliteJournal, options: Namespace) -> None:
    keys = await kept.unsettled() if options.unsettled else await kept.turns()
    styled = paint()
    for key in keys:
        entry = await kept.turn(key)
        for one in _calls(entry) if entry is not None else ():
            print(json_line(one.record()) if options.json else _line(one, styled))


async def _settle(kept: SqliteJournal, options: Namespace) -> int:
    one = await _find(kept, options.settle)
    if not await kept.settle(one.key, Payload(lambda: outcome_text(_decided(one, options)))):
        complain(f"{one.key} has an outcome already: {one.status}")
        return FAILED
    _show(await _find(kept, one.key), as_json=options.json)
    return SUCCEEDED


def _decided(one: _Kept, options: Namespace) -> Outcome:
    """The outcome that the options say."""
    known = one.entry
    grade, repairs = (None, ()) if known is None else read_audit(known.audit)
    arguments = one.call.arguments if known is None else json.loads(known.arguments)
    tool = one.call.name if known is None else known.tool
    attempts = 0 if known is None else known.attempt
    if options.error is not None:
        return Failed(
            call=one.call, tool=tool, code="settled", message=options.error, repairs=repairs, grade=grade,
            arguments=arguments, attempts=attempts, started=True, key=one.key,
        )  # fmt: skip
    try:
        value = json.loads(options.result)
    except json.JSONDecodeError as error:
        raise InputError(f"--result is not JSON: {error}") from error
    return Succeeded(
        call=one.call, tool=tool, value=value, message=value_text(value), repairs=repairs, grade=grade,
        arguments=arguments, attempts=attempts, started=True, key=one.key,
    )  # fmt: skip


async def _find(kept: SqliteJournal, key: str) -> _Kept:
    entry = await kept.turn(turn_of(key))
    found = next((one for one in _calls(entry) if one.key == key), None) if entry is not None else None
    if found is None:
        raise InputError(f"no call has the key {key!r}")
    return found


def _calls(entry: TurnEntry) -> Iterator[_Kept]:
    left = read_left(entry)
    for call in left.turn.calls:
        if not call.provider_executed:
            place = call.position
            yield _Kept(f"{entry.key}:{place}", call, left.outcomes.get(place), left.begun.get(place))


# -- what is shown ----------------------------------------------------------------------------


def _line(one: _Kept, styled: Paint) -> str:
    text = shorten(one_line(one.call.raw_arguments), _SHOWN)
    status = styled(f"{one.status:<12}", _STYLES.get(one.status, "bad"))
    name = styled(f"{one_line(one.call.name or ''):<16}", "title")
    return f"{styled(one_line(one.key), 'dim')}  {status}  {name}  {text}".rstrip()


def _show(one: _Kept, *, as_json: bool) -> None:
    record = one.record()
    if as_json:
        print(json_line(record))
        return
    for name, value in record.items():
        if value in (None, "", []):
            continue
        print(f"{name:<14} {printable(value if isinstance(value, str) else json.dumps(value))}")
