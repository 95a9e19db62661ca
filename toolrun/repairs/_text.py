"""What the strategies for text have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from toolrun._core.lexemes import LITERALS, STRINGS, pieces
from toolrun._core.repair import Repaired

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolrun._core.lexemes import Piece
    from toolrun._core.records import Edit
    from toolrun._core.repair import RepairRequest

LONGEST: Final = 1_000_000
"""Characters of a text that is repaired at all; a longer one is answered at once. Strict JSON has no such limit."""

# What the strict parser found and no other way of writing could mend: the value itself is the fault.
_BEYOND: Final = frozenset(
    ("too_deep", "too_long", "lone_surrogate", "duplicate_key", "non_finite", "number_out_of_range")
)
_MARGINS: Final = frozenset(("space", "blank", "comment"))
_JOINED: Final = STRINGS | {"word", "number", "other", "open"}


def is_beyond(request: RepairRequest) -> bool:
    """Tell whether a strategy for text need not look: the text is too long, or its fault is in a value."""
    return len(request.text) > LONGEST or (request.issue is not None and request.issue.code in _BEYOND)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Make the edits in a text."""
    built: list[str] = []
    place = 0
    for edit in edits:
        built += (text[place : edit.offset], edit.after)
        place = edit.offset + len(edit.before)
    return "".join((*built, text[place:]))


def repaired(text: str, edits: Sequence[Edit]) -> Repaired | None:
    """The answer that makes these edits; None if there are none."""
    joined = coalesced(edits)
    return Repaired(text=apply_edits(text, joined), edits=joined) if joined else None


def coalesced(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Join edits of one kind that touch: a run of a thousand brackets too many is one edit."""
    runs: list[list[Edit]] = []
    end = -1
    for edit in edits:
        if runs and edit.offset == end and edit.before and runs[-1][0].code == edit.code:
            runs[-1].append(edit)
        else:
            runs.append([edit])
        end = edit.offset + len(edit.before)
    return tuple(run[0] if len(run) == 1 else _joined(run) for run in runs)


def _joined(run: Sequence[Edit]) -> Edit:
    before, after = ("".join(parts) for parts in zip(*((edit.before, edit.after) for edit in run), strict=True))
    return run[0]._replace(before=before, after=after)


class Pieces(NamedTuple):
    """A text taken apart.

    Attributes:
        all: Every piece.
        significant: Those that are neither white space nor comments.
        clean: The same, or none at all where it is not certain that the strings end where they seem to. Text that
            touches a string, as in `"say "hi" now"`, shows that a quotation mark inside a string was taken for its
            end. Then nothing may be edited as if it stood outside of strings.
        kinds: The kinds that occur.
    """

    all: list[Piece]
    significant: list[Piece]
    clean: list[Piece]
    kinds: frozenset[str]


def take_apart(request: RepairRequest) -> Pieces:
    """The pieces of the request's text; the strategies share them."""
    known = request.memo.get(request.text)
    if isinstance(known, Pieces):
        return known
    found = pieces_of(request.text)
    request.memo.clear()  # only the present text matters
    request.memo[request.text] = found
    return found


def pieces_of(text: str) -> Pieces:
    """Take a text apart."""
    found = pieces(text)
    significant = [piece for piece in found if piece.kind not in _MARGINS]
    clean = significant if _is_clean(significant) else []
    return Pieces(found, significant, clean, frozenset(piece.kind for piece in found))


def _is_clean(found: Sequence[Piece]) -> bool:
    for number in range(1, len(found)):
        before, after = found[number - 1], found[number]
        if before.end != after.start or before.kind not in _JOINED or after.kind not in _JOINED:
            continue
        if (before.kind in STRINGS or after.kind in STRINGS) and not _is_next_key(found, number):
            return False
    return bool(found) and found[-1].kind != "open"


def _is_next_key(found: Sequence[Piece], number: int) -> bool:
    """Tell whether a piece is a key that follows a value without a comma: `"x""key":`, `5"key":`."""
    follows = found[number + 1].text if number + 1 < len(found) else ""
    before = found[number - 1]
    return (
        found[number].kind in STRINGS
        and follows == ":"
        and (before.kind in STRINGS or before.kind == "number" or before.text in LITERALS)
    )
