"""Strings that are written as another language writes them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from toolrun._core.json_text import parse_object
from toolrun._core.lexemes import CURLY_DOUBLE, CURLY_SINGLE, QUOTE_ENTITY, STRINGS, body
from toolrun._core.records import Edit
from toolrun._core.repair import Declined, Reading, Repaired
from toolrun.repairs._text import is_beyond, repaired, take_apart

if TYPE_CHECKING:
    from toolrun._core.repair import RepairRequest

_OTHER_QUOTES: Final = re.compile(f"['{CURLY_DOUBLE}{CURLY_SINGLE}]|{QUOTE_ENTITY}")
_ESCAPED_START: Final = re.compile(r'(?:[ \t]|\\[nrt])*\{(?:[ \t]|\\[nrt])*\\"')
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_UNQUOTED: Final = re.compile(r"""(\\.)|(")""", re.DOTALL)
_ENTITY: Final = re.compile(r"&(?!quot;)(?:[a-zA-Z]{2,10}|#[0-9]{1,6});")

_ESCAPED: Final = {character: json.dumps(character)[1:-1] for character in (*map(chr, range(0x20)), '"')}
_KNOWN: Final = frozenset('"\\/bfnrt')
# Escapes that another language has: there the character differs, so keeping the backslash is a guess.
_ELSEWHERE: Final = frozenset("xuUNave0123456789$`\r\n")
_DRIVE: Final = re.compile(r"(?:^|[\s\"'=(])[A-Za-z]:\\")


def escaped_whole(request: RepairRequest) -> Repaired | None:
    r"""Take the escapes out of arguments that were escaped as if they stood in a string: `{\"city\": \"Oslo\"}`.

    Source: stacks that serialise twice and take off the outer quotation marks.

    Refuses a text in which any quotation mark is not escaped.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(escaped_whole, r'{\"city\": \"say \\\"hi\\\"\"}')
        '{"city": "say \\"hi\\""}'
        >>> ask(escaped_whole, r'{\"city\": "Oslo"}')
    """
    text = request.text
    if is_beyond(request) or not _ESCAPED_START.match(text) or not isinstance(parse_object(f'{{"":"{text}"}}'), dict):
        return None
    inner = str(json.loads(f'"{text}"'))
    reading = Reading(inner, (Edit("escaped_whole", 0, text, inner),))
    return Repaired(text=reading.text, edits=reading.edits, readings=(reading,))


def quotes(request: RepairRequest) -> Repaired | Declined | None:
    r"""Write strings between single quotes, curly quotes or quote entities between double quotes.

    The first closing quote ends a string. Quotes of the other kind inside are escaped, and `\'` becomes `'`.

    Source: Python and JavaScript literals, word processors, pages that were escaped as HTML.

    Refuses an apostrophe inside a string between single quotes: it ends the string there, and what follows it is not
    JSON. (Where one reading is left, `inner_quotes` finds it.) Refuses other entities between quote entities.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(quotes, '''{'title': 'say "hi"', "by": "it's me"}''')
        '{"title": "say \\"hi\\"", "by": "it\'s me"}'
        >>> ask(quotes, "{'title': 'Dana's notes'}")
    """
    text = request.text
    if is_beyond(request) or not _OTHER_QUOTES.search(text):
        return None
    found = take_apart(request).clean
    odd = [piece for piece in found if piece.kind in STRINGS and piece.kind != "string"]
    if any(piece.kind == "entity" and _ENTITY.search(piece.text) for piece in odd):
        return Declined("ambiguous", "HTML entities inside of text that is quoted with entities")
    return repaired(
        text, [Edit("quotes", piece.start, piece.text, f'"{in_double_quotes(body(piece))}"') for piece in odd]
    )


def in_double_quotes(inner: str) -> str:
    r"""The same body for a string between double quotes: `"` is escaped, `\'` is not."""
    return _UNQUOTED.sub(lambda found: '\\"' if found[2] else "'" if found[1] == "\\'" else found[0], inner)


def control_characters(request: RepairRequest) -> Repaired | None:
    r"""Write raw control characters inside strings as escapes: a line break as `\n`, a tab as `\t`.

    Source: models that write files into arguments as they are.

    Refuses a text whose strings do not certainly end where they seem to.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(control_characters, '{"code": "all:\n\tcc main.c"}')
        '{"code": "all:\\n\\tcc main.c"}'
        >>> ask(control_characters, '{"code": "say "hi"\n"}')
    """
    text = request.text
    if is_beyond(request) or not _CONTROL.search(text):
        return None
    found = take_apart(request).clean
    return repaired(
        text,
        [
            Edit("control_character", piece.start + raw.start(), raw[0], escaped(raw[0]))
            for piece in found
            if piece.kind == "string"
            for raw in _CONTROL.finditer(piece.text)
            if not _is_escaped(piece.text, raw.start())
        ],
    )


def escaped(character: str) -> str:
    """The escape of a control character."""
    return _ESCAPED[character]


def escapes(request: RepairRequest) -> Repaired | Declined | None:
    r"""Mend escapes that JSON does not have: `\'` is `'`, and `\d`, `\w`, `\.`, `\P` keep their backslash.

    Source: regular expressions, Windows paths and shell commands that were not escaped.

    Refuses escapes that mean something in another language (`\x1b`, `\$`, a short `\u`): the character is not known.
    Refuses a string with escapes of both kinds where those that JSON has are likely not meant: `C:\temp\data`
    would become a tab and a path.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(escapes, r'{"pattern": "^\d{4}$"}')
        '{"pattern": "^\\\\d{4}$"}'
        >>> ask(escapes, r'{"path": "C:\temp\data.csv"}').code
        'ambiguous_escape'
    """
    text = request.text
    if is_beyond(request) or "\\" not in text:
        return None
    found = take_apart(request).clean
    edits: list[Edit] = []
    for piece in found:
        if piece.kind != "string" or "\\" not in piece.text:
            continue
        mended = mended_escapes(body(piece))
        if mended is None:
            return Declined("ambiguous_escape", piece.text)
        edits += [edit._replace(offset=edit.offset + piece.start + 1) for edit in mended]
    return repaired(text, edits)


def mended_escapes(inner: str) -> list[Edit] | None:
    """The edits that mend the escapes of a string's body; None if one of them is ambiguous."""
    edits: list[Edit] = []
    own: set[str] = set()
    for found in _ESCAPE.finditer(inner):
        name = found[1]
        if len(name) > 1 or name in _KNOWN:
            own.add(name[:1])
        elif name == "'":
            edits.append(Edit("escape", found.start(), found[0], "'"))
        else:
            edits.append(Edit("escape", found.start(), found[0], "\\" + found[0]))
    kept = [edit for edit in edits if edit.after != "'"]
    if not kept:
        return edits
    path = _DRIVE.search(inner) is not None or inner.startswith("\\\\")
    if path:
        # In a path every backslash is a separator: those that JSON read otherwise would be lost.
        plain = (
            not own & set("bfnrtu") and not inner.startswith("\\\\") and not (own & {"\\"} and not _separated(inner))
        )
        return edits if plain and not any(edit.before[1] in "u\r\n" for edit in kept) else None
    if own & set("bf") or any(edit.before[1] in _ELSEWHERE for edit in kept):
        return None
    return edits


def _separated(inner: str) -> bool:
    r"""Tell whether doubled backslashes in a path are single separators: `C:\\a\b`, not `C:\\\\a`."""
    return "\\\\\\\\" not in inner


def _is_escaped(text: str, place: int) -> bool:
    """Tell whether an odd number of backslashes stands before a place."""
    count = 0
    while text[place - count - 1] == "\\":
        count += 1
    return count % 2 == 1
