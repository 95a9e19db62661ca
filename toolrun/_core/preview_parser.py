"""Unfinished arguments, read in pieces. Linear time; nothing is read twice.

Every value is one that the text has. Of strings the beginning is shown; numbers, literals, escapes and names are not
shown until they are whole. Text that is no strict JSON object is read as far as it could be one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from toolrun._core.events import ArgumentsReplaced, CallDelta, CallPreview, FieldAppended, FieldSet
from toolrun._core.json_text import MAX_DEPTH, join_surrogates
from toolrun._core.preview import NOT_OPEN, Node, Preview

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolrun._core.events import Event, FieldChange
    from toolrun._core.preview import Path, Scalar, State

_LITERALS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_BLANK: Final = " \t\n\r"
_NOT_TEXT: Final = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<rest>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_NOT_NUMBER: Final = re.compile(r"[^-+.0-9eE]")
# A pair of surrogates is one escape: neither half is a character.
_ESCAPE: Final = re.compile(
    r'\\(?:["\\/bfnrt]|u(?:[0-9a-cefA-CEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}'
    r"|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))"
)
_WHOLE_ESCAPES: Final = (r"\u0000", r"\ud800\udc00")
_LONGEST_ESCAPE: Final = len(_WHOLE_ESCAPES[1])
_SIMPLE_ESCAPES: Final = {
    r"\"": '"', r"\\": "\\", r"\/": "/", r"\b": "\b", r"\f": "\f", r"\n": "\n", r"\r": "\r", r"\t": "\t",
}  # fmt: skip


class PreviewParser:
    """Reads argument text in pieces, in linear time.

    Args:
        changes: True also keeps what the pieces changed, until `take_changes` asks.
    """

    __slots__ = (
        "_changes", "_expected", "_growing", "_half", "_held", "_name", "_path", "_pieces", "_root", "_size", "_sizes",
        "_stack", "_state", "_step",
    )  # fmt: skip

    def __init__(self, *, changes: bool = False) -> None:
        self._root = Node((), {})
        self._stack: list[Node] = []
        self._state: State = "growing"
        self._step: _Step = _STRUCTURE
        self._expected: _Expected = _ROOT
        self._growing: list[Scalar | Node] | None = None
        self._size = NOT_OPEN
        self._sizes: tuple[int, ...] | None = None
        self._path: Path = ()
        self._name = ""
        self._pieces: list[str] = []
        self._held = ""
        self._half = ""
        self._changes: list[FieldChange] | None = [] if changes else None

    def feed(self, text: str) -> None:
        """Take the next piece, split anywhere."""
        if self._half or not text.isascii():
            text = self._hold_half(text)
        at, end = 0, len(text)
        while at < end:
            at = self._step(self, text, at)

    @property
    def state(self) -> State:
        """See `Preview.state`."""
        return self._state

    def snapshot(self) -> Preview:
        """What there is now."""
        if self._sizes is None:
            self._sizes = tuple([len(node.values) for node in self._stack])
        return Preview(self._root, self._sizes, self._size, self._state)

    def take_changes(self) -> tuple[FieldChange, ...]:
        """What has changed since this was last asked."""
        if not self._changes:
            return ()
        changes = tuple(self._changes)
        self._changes.clear()
        return changes

    def _hold_half(self, text: str) -> str:
        """Keep back half of a pair of surrogates until the other half comes."""
        text, self._half = join_surrogates(self._half + text), ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return text

    # -- steps: each reads from a place on, and gives the place where the next one begins ----------

    def _structure(self, text: str, at: int) -> int:
        """What stands between texts, numbers and literals: one character decides what it is and what may follow."""
        for place in range(at, len(text)):
            char = text[place]
            action = self._expected.get(char)
            if action is not None:
                action(self, char)
                if self._step is not _STRUCTURE:
                    return place + 1
            elif char not in _BLANK:
                return self._break(text)
        return len(text)

    def _text(self, text: str, at: int) -> int:
        special = _NOT_TEXT.search(text, at)
        if special is None:
            self._add(text[at:])
            return len(text)
        end = special.start()
        if end > at:
            self._add(text[at:end])
        if text[end] == '"':
            self._close_text()
            return end + 1
        if text[end] != "\\":
            return self._break(text)
        self._step = PreviewParser._escape
        return end

    def _escape(self, text: str, at: int) -> int:
        held = self._held
        written = held + text[at : at + _LONGEST_ESCAPE - len(held)]
        found = _ESCAPE.match(written)
        if found is None:
            if not any(_ESCAPE.fullmatch(written + whole[len(written) :]) for whole in _WHOLE_ESCAPES):
                return self._break(text)
            self._held = written
            return len(text)
        self._held = ""
        self._step = PreviewParser._text
        self._add(_SIMPLE_ESCAPES.get(found[0]) or str(json.loads(f'"{found[0]}"')))
        return at + found.end() - len(held)

    def _number(self, text: str, at: int) -> int:
        after = _NOT_NUMBER.search(text, at)
        end = after.start() if after else len(text)
        self._pieces.append(text[at:end])
        if end == len(text):
            return end
        value = _number("".join(self._pieces))
        if value is None:
            return self._break(text)
        self._put(value)
        self._expect_next()
        return end

    def _literal(self, text: str, at: int) -> int:
        held = self._held
        word = next(word for word in _LITERALS if word[0] == held[0])
        written = held + text[at : at + len(word) - len(held)]
        if written == word:
            self._held = ""
            self._put(_LITERALS[word])
            self._expect_next()
        elif word.startswith(written):
            self._held = written
        else:
            return self._break(text)
        return at + len(written) - len(held)

    def _ignore(self, text: str, _at: int) -> int:
        return len(text)

    def _break(self, text: str) -> int:
        """What follows is no part of an object; what came stays."""
        self._state = "broken"
        self._step = PreviewParser._ignore
        return len(text)

    # -- what a character does ----------------------------------------------------------------

    def open_object(self, _char: str) -> None:
        self._open(Node(self._path_of_next(), {}), {}, _FIRST_NAME)

    def open_array(self, _char: str) -> None:
        self._open(Node(self._path_of_next(), None), [], _FIRST_ITEM)

    def _open(self, node: Node, empty: Scalar | dict[str, object] | list[object], expected: _Expected) -> None:
        if len(self._stack) == MAX_DEPTH:
            self._break("")
            return
        self._put(node, empty)
        self._stack.append(node)
        self._sizes = None
        self._expected = expected

    def open_root(self, _char: str) -> None:
        self._stack.append(self._root)
        self._sizes = None
        self._expected = _FIRST_NAME
        if self._changes is not None:
            self._changes.append(FieldSet((), {}))

    def close(self, _char: str) -> None:
        self._stack.pop()
        self._sizes = None
        if not self._stack:
            self._state = "complete"
        self._expect_next()

    def open_name(self, _char: str) -> None:
        self._pieces.clear()
        self._step = PreviewParser._text

    def open_text(self, _char: str) -> None:
        if self._changes is not None:
            self._path = self._path_of_next()
        self._put("")
        self._growing, self._size = self._stack[-1].values, 0
        self._step = PreviewParser._text

    def open_number(self, char: str) -> None:
        self._pieces[:] = [char]
        self._step = PreviewParser._number

    def open_literal(self, char: str) -> None:
        self._held = char
        self._step = PreviewParser._literal

    def expect_name(self, _char: str) -> None:
        self._expected = _NEXT_NAME

    def expect_value(self, _char: str) -> None:
        self._expected = _VALUE

    # -- the tree -----------------------------------------------------------------------------

    def _add(self, text: str) -> None:
        """More of the open text, or of a name."""
        values = self._growing
        if values is None:
            self._pieces.append(text)
            return
        # Nothing but the local name holds the text while it grows, so it is not copied.
        grown: str = values[-1]  # type: ignore[assignment]  # the open text
        values[-1] = None
        grown += text
        values[-1] = grown
        self._size = len(grown)
        if self._changes is not None:
            self._append_change(self._changes, text)

    def _append_change(self, changes: list[FieldChange], text: str) -> None:
        last = changes[-1] if changes else None
        if isinstance(last, FieldAppended) and last.path == self._path:
            changes[-1] = FieldAppended(self._path, last.text + text)
        else:
            changes.append(FieldAppended(self._path, text))

    def _close_text(self) -> None:
        if self._growing is not None:
            self._growing, self._size = None, NOT_OPEN
            self._expect_next()
            return
        self._name = "".join(self._pieces)
        if self._name in (self._stack[-1].names or ()):
            self._break("")  # a name given twice is refused
            return
        self._step = _STRUCTURE
        self._expected = _COLON

    def _put(self, value: Scalar | Node, shown: Scalar | dict[str, object] | list[object] = None) -> None:
        node = self._stack[-1]
        if self._changes is not None:
            self._changes.append(FieldSet(self._path_of_next(), shown if isinstance(value, Node) else value))
        if node.names is not None:
            node.names[self._name] = len(node.values)
        node.values.append(value)
        self._sizes = None

    def _path_of_next(self) -> Path:
        node = self._stack[-1]
        return (*node.path, len(node.values) if node.names is None else self._name)

    def _expect_next(self) -> None:
        """A value is whole: what may follow depends on what it stands in."""
        self._step = _STRUCTURE
        if not self._stack:
            self._expected = _NOTHING
        else:
            self._expected = _AFTER_ITEM if self._stack[-1].names is None else _AFTER_FIELD


_Step: TypeAlias = Callable[[PreviewParser, str, int], int]
_Expected: TypeAlias = dict[str, Callable[[PreviewParser, str], None]]

_STRUCTURE: Final = PreviewParser._structure  # noqa: SLF001  # the class names it before it is there

_NOTHING: Final[_Expected] = {}
_ROOT: Final[_Expected] = {"{": PreviewParser.open_root}
_COLON: Final[_Expected] = {":": PreviewParser.expect_value}
_NEXT_NAME: Final[_Expected] = {'"': PreviewParser.open_name}
_FIRST_NAME: Final[_Expected] = {**_NEXT_NAME, "}": PreviewParser.close}
_VALUE: Final[_Expected] = {
    "{": PreviewParser.open_object,
    "[": PreviewParser.open_array,
    '"': PreviewParser.open_text,
    **dict.fromkeys("-0123456789", PreviewParser.open_number),
    **dict.fromkeys("tfn", PreviewParser.open_literal),
}
_FIRST_ITEM: Final[_Expected] = {**_VALUE, "]": PreviewParser.close}
_AFTER_FIELD: Final[_Expected] = {",": PreviewParser.expect_name, "}": PreviewParser.close}
_AFTER_ITEM: Final[_Expected] = {",": PreviewParser.expect_value, "]": PreviewParser.close}


AnyEvent = TypeVar("AnyEvent", bound="Event")


class PreviewReader:
    """Reads the pieces of a call's arguments when it is asked for; what was read is not read again.

    Args:
        pieces: The assembler's own list: pieces are added to it, and may be joined into its first.
    """

    __slots__ = ("_characters", "_first", "_parser", "_read", "pieces")

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces
        self._parser = PreviewParser()
        self._read = 0
        self._characters = 0
        self._first = 0

    def snapshot(self) -> Preview:
        """What there is now."""
        pieces = self.pieces
        if self._read and len(pieces[0]) != self._first:  # joined: what was read, and perhaps more, is the first now
            self._feed(pieces[0][self._characters :])
            self._read = 1
        for piece in pieces[self._read :]:
            self._feed(piece)
        self._read = len(pieces)
        self._first = len(pieces[0]) if pieces else 0
        return self._parser.snapshot()

    def _feed(self, text: str) -> None:
        self._characters += len(text)
        self._parser.feed(text)


class Previews:
    """Follows the events of a stream, and tells what each piece of argument text changed."""

    def __init__(self) -> None:
        self._parsers: dict[int, PreviewParser] = {}

    def follow(self, events: Iterable[AnyEvent]) -> list[AnyEvent | CallPreview]:
        """Put a `CallPreview` after each event that changed what there is to show."""
        followed: list[AnyEvent | CallPreview] = []
        for event in events:
            followed.append(event)
            if isinstance(event, CallDelta):
                followed += self._grown(event.position, event.text)
            elif isinstance(event, ArgumentsReplaced):
                self._parsers.pop(event.position, None)
                followed += self._grown(event.position, event.after)
        return followed

    def _grown(self, position: int, text: str) -> Iterator[CallPreview]:
        parser = self._parsers.get(position)
        if parser is None:
            parser = self._parsers[position] = PreviewParser(changes=True)
        state = parser.state
        parser.feed(text)
        if (changes := parser.take_changes()) or parser.state != state:
            yield CallPreview(position, changes, parser.snapshot())


def _number(text: str) -> int | float | None:
    """Read a number; None if it is none, or none that arguments may have."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    try:
        value = float(text) if found["rest"] else int(text)
    except ValueError:  # thousands of digits
        return None
    return value if math.isfinite(value) else None
