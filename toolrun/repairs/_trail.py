"""The edits of several steps, told as edits of the first text."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from toolrun._core.records import Edit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class _Segment(NamedTuple):
    """A piece of the present text, and the piece of the first text that it stands for; without codes, it is that."""

    text: str
    start: int
    end: int
    codes: tuple[str, ...] = ()


def trail(raw: str, steps: Iterable[Sequence[Edit]]) -> tuple[Edit, ...]:
    """Tell the edits of steps that build on each other as edits of the raw text, in order and without overlap.

    Where a later step changed what an earlier one wrote, both are one edit, whose code names both: `quotes+escape`.

    Examples:
        >>> trail("{'a': 1,}", [[Edit("quotes", 1, "'a'", '"a"')], [Edit("trailing_comma", 7, ",", "")]])[1]
        Edit(code='trailing_comma', offset=7, before=',', after='')
    """
    segments = [_Segment(raw, 0, len(raw))]
    for edits in steps:
        segments = _after(segments, edits)
    return tuple(
        Edit("+".join(dict.fromkeys(segment.codes)), segment.start, raw[segment.start : segment.end], segment.text)
        for segment in segments
        if segment.codes
    )


class _Cursor:
    """Gives segments one after the other; what is still the first text can be cut anywhere."""

    def __init__(self, segments: Sequence[_Segment]) -> None:
        self._waiting = list(reversed(segments))
        self.place = 0

    def take(self, until: int, *, inclusive: bool) -> list[_Segment]:
        """The segments up to a place in the present text; empty ones at the place itself only if inclusive."""
        taken: list[_Segment] = []
        while self._waiting:
            segment = self._waiting[-1]
            end = self.place + len(segment.text)
            if end > until:
                if self.place < until:  # the first text goes on: cut it
                    cut = segment.start + until - self.place
                    taken.append(_Segment(segment.text[: until - self.place], segment.start, cut))
                    self._waiting[-1] = _Segment(segment.text[until - self.place :], cut, segment.end)
                    self.place = until
                break
            if not segment.text and end == until and not inclusive:
                break
            taken.append(self._waiting.pop())
            self.place = end
        return taken


def _after(segments: list[_Segment], edits: Sequence[Edit]) -> list[_Segment]:
    """The segments after one step; the offsets of its edits count in the text of the segments."""
    text = "".join(segment.text for segment in segments)
    cursor = _Cursor(segments)
    done: list[_Segment] = []
    for start, end, own in _spans(segments, edits):
        done += cursor.take(start, inclusive=True)
        inside = cursor.take(end, inclusive=False) if end > start else []
        here = done[-1].end if done else 0
        codes = tuple(code for segment in inside for code in segment.codes)
        written = _written(text, start, end, own)
        last = inside[-1].end if inside else here
        done.append(
            _Segment(written, inside[0].start if inside else here, last, (*codes, *(edit.code for edit in own)))
        )
    return done + cursor.take(len(text), inclusive=True)


def _spans(segments: list[_Segment], edits: Sequence[Edit]) -> list[tuple[int, int, list[Edit]]]:
    """Where edits fall; one that falls into what an earlier step wrote takes all of that with it."""
    ends = list(accumulate(len(segment.text) for segment in segments))
    found: list[tuple[int, int, list[Edit]]] = []
    for edit in edits:
        start, end = _widened(segments, ends, edit.offset), edit.offset + len(edit.before)
        end = _widened(segments, ends, end, outwards=True)
        if found and start < found[-1][1]:
            first, last, own = found.pop()
            found.append((first, max(last, end), [*own, edit]))
        else:
            found.append((start, end, [edit]))
    return found


def _widened(segments: list[_Segment], ends: list[int], place: int, *, outwards: bool = False) -> int:
    """The place itself, or the edge of the written piece that it lies inside of."""
    number = bisect_right(ends, place)
    if number == len(segments) or not segments[number].codes:
        return place
    begin = ends[number] - len(segments[number].text)
    return place if begin == place else ends[number] if outwards else begin


def _written(text: str, start: int, end: int, edits: Sequence[Edit]) -> str:
    built: list[str] = []
    for edit in edits:
        built += (text[start : edit.offset], edit.after)
        start = edit.offset + len(edit.before)
    return "".join((*built, text[start:end]))
