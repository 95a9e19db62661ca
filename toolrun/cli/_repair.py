"""`toolrun repair`: what the built-in chain makes of argument texts; nothing runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from toolrun import Grade, RegistrationError, repair_arguments
from toolrun.cli._exits import FAILED, SUCCEEDED, InputError
from toolrun.cli._paint import paint
from toolrun.cli._progress import ProgressBar, output_goes_elsewhere
from toolrun.cli._sources import read_file, size_of
from toolrun.cli._text import count, json_line, one_line, printable, shorten
from toolrun.repairs.standalone import tool_from_definition

if TYPE_CHECKING:
    from argparse import Namespace

    from toolrun import RepairedArguments, Tool
    from toolrun.cli._paint import Paint

_UNKNOWN: Final = "none"
_SHOWN: Final = 100
_STDIN: Final = "standard input"


class _Text(NamedTuple):
    """One argument text, and what it is for."""

    id: str | None
    raw: str
    tool: Tool
    finish_reason: str | None


def repair(options: Namespace) -> int:
    """Print what becomes of each text.

    Raises:
        InputError: A file cannot be read, or is not what it should be.
    """
    tool = None if options.tool is None else _tool(_json_file(options.tool), options.tool, None)
    reason = None if options.finish_reason == _UNKNOWN else options.finish_reason
    styled = paint()
    if options.batch is None:
        return _show_each(_one(tool, reason), _record_line if options.json else partial(_show, styled))
    with ProgressBar(options.batch, size_of(options.batch), shown=output_goes_elsewhere()) as bar:
        return _show_each(
            _many(options.batch, tool, reason, bar), _record_line if options.json else partial(_line, styled)
        )


def _show_each(texts: Iterable[_Text], show: Callable[[str | None, RepairedArguments], str]) -> int:
    code = SUCCEEDED
    for text in texts:
        found = repair_arguments(text.raw, text.tool, finish_reason=text.finish_reason)
        if found.arguments is None:
            code = FAILED
        print(show(text.id, found), flush=True)
    return code


def _one(tool: Tool | None, reason: str | None) -> Iterator[_Text]:
    if tool is None:
        raise InputError("--tool is needed: the definition of the tool (see toolrun repair --help)")
    if sys.stdin is None:  # closed by the shell
        raise InputError("it is closed", place=_STDIN)
    yield _Text(None, _decoded(sys.stdin.buffer.read(), _STDIN), tool, reason)


def _many(path: str, tool: Tool | None, reason: str | None, bar: ProgressBar) -> Iterator[_Text]:
    tools: dict[str, Tool] = {}
    for number, line in enumerate(_decoded(read_file(path), path).split("\n"), 1):
        if not line.strip():
            continue
        entry = _json(line, path, number)
        raw = entry.get("raw") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(raw, str):
            raise InputError('not an object with the text "raw"', place=path, line=number)
        definition = entry.get("tool", entry.get("tool_schema"))
        own = tool
        if definition is not None:
            key = json.dumps(definition, sort_keys=True)
            own = tools.get(key) or tools.setdefault(key, _tool(definition, path, number))
        if own is None:
            raise InputError('it has no "tool", and there is no --tool', place=path, line=number)
        given = entry.get("finish_reason", reason)
        name = entry.get("id")
        yield _Text(str(number) if name is None else str(name), raw, own, given if isinstance(given, str) else None)
        bar.advance(len(line.encode()) + 1)


def _tool(definition: object, path: str, line: int | None) -> Tool:
    if isinstance(definition, list) and definition:  # what `toolrun schema` prints
        if len(definition) > 1:
            raise InputError(f"one definition is needed, and there are {len(definition)}", place=path, line=line)
        [definition] = definition
    if not isinstance(definition, Mapping):
        raise InputError("not the definition of a tool", place=path, line=line)
    try:
        return tool_from_definition(definition)
    except RegistrationError as error:
        raise InputError(str(error), place=path, line=line) from error


def _json_file(path: str) -> object:
    return _json(_decoded(read_file(path), path), path, None)


def _json(text: str, path: str, line: int | None) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", place=path, line=line or error.lineno) from error
    except RecursionError as error:
        raise InputError("too deep", place=path, line=line) from error


def _decoded(data: bytes, place: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}", place=place) from error


# -- what is shown --------------------------------------------------------------------------


def _record_line(name: str | None, found: RepairedArguments) -> str:
    record = {
        **({} if name is None else {"id": name}),
        "arguments": found.arguments,
        "grade": found.grade,
        "refusal": found.refusal,
        "message": found.message,
        "edits": [edit._asdict() for edit in found.edits],
        "raw": found.raw,
    }
    return json_line(record)


def _verdict(found: RepairedArguments) -> str:
    if found.arguments is None:
        return f"refused ({found.refusal})"
    if found.grade is Grade.EXACT:
        return "untouched"
    return f"repaired ({found.grade})"


def _line(styled: Paint, name: str | None, found: RepairedArguments) -> str:
    shown = found.text if found.text is not None else found.raw
    verdict = styled(_verdict(found), _style(found))
    return f"{one_line(name or '')}  {verdict}  {shorten(one_line(shown), _SHOWN)}"


def _style(found: RepairedArguments) -> str:
    if found.arguments is None:
        return "doubtful"
    return "good" if found.grade is Grade.EXACT else "changed"


def _show(styled: Paint, _: str | None, found: RepairedArguments) -> str:
    edits = f", {count(len(found.edits), 'edit')}" if found.edits else ""
    lines = [styled(f"{_verdict(found)}{edits}", _style(found))]
    if found.message:
        lines.append(printable(found.message))
    lines += ["", _marked(found, styled).rstrip("\n")]
    if found.edits:
        codes = (styled(f"{edit.offset:>6}  {edit.code}", "dim") for edit in found.edits)
        lines += ["", *codes, "", printable(found.text or "")]
    return "\n".join(lines)


def _marked(found: RepairedArguments, styled: Paint) -> str:
    """The raw text with each edit in its place."""
    built: list[str] = []
    place = 0
    for edit in found.edits:
        built.append(printable(found.raw[place : edit.offset]))
        if edit.before:
            built.append(styled(f"[-{one_line(edit.before)}-]", "bad"))
        if edit.after:
            built.append(styled(f"{{+{one_line(edit.after)}+}}", "good"))
        place = edit.offset + len(edit.before)
    return "".join((*built, printable(found.raw[place:])))
