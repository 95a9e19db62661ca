"""Message lists that you hold yourself: whether their calls and results belong together, and how to shorten them.

`Turn.messages()` writes messages that are right. What happens to them later — a turn cut out, a list trimmed by count,
two lists put together — is what providers refuse whole requests for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, TypeVar

from toolrun._core.exceptions import UnknownWire
from toolrun.wires import WIRES, get_wire
from toolrun.wires._messages import UNREADABLE, Piece, Said, read_message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolrun._core.seams import Wire

__all__ = ["HistoryIssue", "check", "trim"]

IssueCode: TypeAlias = Literal[
    "bad_call", "bad_order", "bad_result", "duplicate_call", "duplicate_result", "missing_result", "orphan_result",
    "unreadable",
]  # fmt: skip

_Message = TypeVar("_Message")

_RESULTS_FIRST: Final = frozenset(("anthropic-messages", "bedrock-invoke"))
"""Where a result may not stand behind something else in its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryIssue:
    """Something in a list of messages that a provider may refuse.

    Attributes:
        code: `missing_result`: a call has no result. `orphan_result`: a result has no call before it.
            `duplicate_call`, `duplicate_result`: a second one with the id. `bad_order`: something stands between calls
            and their results. `bad_call`, `bad_result`: its shape. `unreadable`: no message of this wire.
        message: The same in words.
        index: The place of the message in the list.
        call_id: The id of the call, if there is one.
    """

    code: IssueCode
    message: str
    index: int
    call_id: str | None = None


def check(messages: Iterable[object], wire: str | Wire) -> tuple[HistoryIssue, ...]:
    """Name what does not belong together in a list of messages.

    Args:
        messages: As they would be sent: mappings, or an SDK's objects. Nothing in them raises.
        wire: The wire that they are written for.

    Returns:
        The issues in the order of the messages; empty if there are none. Whether a provider takes the rest of a
        message is not looked at.

    Raises:
        UnknownWire: It is none of the built-in wires.

    Examples:
        >>> call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
        >>> messages = [{"role": "assistant", "tool_calls": [call]}, {"role": "user", "content": "And?"}]
        >>> [(issue.code, issue.index, issue.call_id) for issue in check(messages, "openai-chat")]
        [('missing_result', 0, 'c1')]
    """
    name = _name_of(wire)
    checker = _Checker(results_first=name in _RESULTS_FIRST)
    for index, said in enumerate(_read(messages, name)):
        checker.take(index, said)
    return tuple(checker.issues())


def trim(
    messages: Iterable[_Message],
    wire: str | Wire,
    *,
    max_messages: int | None = None,
    max_size: float | None = None,
    size: Callable[[_Message], float] | None = None,
) -> list[_Message]:
    """Leave out the oldest messages, without parting a call from its result.

    System messages and the last message of the user stay. An assistant's turn stays or goes with all of its results. What
    is left begins with a message of the user, because some providers refuse any other beginning.

    Args:
        messages: As they would be sent.
        wire: The wire that they are written for.
        max_messages: How many may be left.
        max_size: What they may measure together, in the unit of `size`.
        size: Measures one message, for instance in tokens.

    Returns:
        The messages that are left, the same objects in the same order. If what must stay is over a limit, that
        alone is left.

    Raises:
        UnknownWire: It is none of the built-in wires.
        ValueError: There is no limit, or only one of `max_size` and `size`.

    Examples:
        >>> messages = [
        ...     {"role": "system", "content": "Be brief."},
        ...     {"role": "user", "content": "One?"},
        ...     {"role": "assistant", "content": "Two."},
        ...     {"role": "user", "content": "Three?"},
        ... ]
        >>> [message["content"] for message in trim(messages, "openai-chat", max_messages=3)]
        ['Be brief.', 'Three?']
    """
    if (max_messages is None and max_size is None) or (max_size is None) != (size is None):
        raise ValueError("trim needs max_messages, or max_size together with size, or all three")
    kept = list(messages)
    units = _units([read_message(_name_of(wire), message) for message in kept])
    costs = [_Cost(len(unit.places), sum(size(kept[place]) for place in unit.places) if size else 0) for unit in units]
    limit = _Cost(max_messages, max_size)
    chosen = _chosen(units, costs, limit)
    places = sorted(place for number in chosen for place in units[number].places)
    return [kept[place] for place in places]


# -- checking -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Call:
    id: str | None
    name: str | None
    index: int
    turn: int
    answered: bool = False


class _Checker:
    """Goes through messages once. A turn ends where something else stands, or a call after all have their results."""

    def __init__(self, *, results_first: bool) -> None:
        self._results_first = results_first
        self._found: list[HistoryIssue] = []
        self._calls: list[_Call] = []
        self._latest: dict[str, _Call] = {}
        self._served: set[str | None] = set()
        self._turn = 0
        self._waiting = 0

    def take(self, index: int, said: Said) -> None:
        if said.role == "unreadable":
            self._note("unreadable", "not a message of this wire", index)
            return
        calls_here = any(piece.kind == "call" for piece in said.pieces)
        for place, piece in enumerate(said.pieces):
            if piece.kind == "call":
                self._take_call(index, piece)
            elif piece.kind == "served":
                self._served.add(piece.id)
            elif piece.kind == "result":
                if piece.id is None or piece.id not in self._served:
                    self._take_result(index, piece)
            elif not calls_here:  # what stands beside calls in their own message interrupts nothing
                self._take_other(said.pieces[place:])

    def issues(self) -> list[HistoryIssue]:
        for call in self._calls:
            if not call.answered:
                self._note("missing_result", f"{call.name or 'the call'} has no result", call.index, call.id)
        return sorted(self._found, key=lambda issue: issue.index)

    def _take_call(self, index: int, piece: Piece) -> None:
        if piece.fault:
            self._note("bad_call", piece.fault, index, piece.id)
        if not self._waiting:
            self._next_turn()
        known = self._latest.get(piece.id) if piece.id is not None else None
        if known is not None and known.turn == self._turn:
            self._note("duplicate_call", "a second call with this id", index, piece.id)
            return
        call = _Call(piece.id, piece.name, index, self._turn)
        self._calls.append(call)
        self._waiting += 1
        if piece.id is not None:
            self._latest[piece.id] = call

    def _take_result(self, index: int, piece: Piece) -> None:
        if piece.fault:
            self._note("bad_result", piece.fault, index, piece.id)
        call = self._call_of(piece)
        if call is None:
            self._note("orphan_result", "there is no such call before it", index, piece.id)
        elif call.answered:
            self._note("duplicate_result", "a second result for this call", index, piece.id)
        else:
            call.answered = True
            if call.turn == self._turn:
                self._waiting -= 1
            else:
                self._note("bad_order", "something stands between the call and its result", index, piece.id)

    def _call_of(self, piece: Piece) -> _Call | None:
        """By id; without one, the first call of the name that waits, and if none waits the last that has its result."""
        if piece.id is not None:
            return self._latest.get(piece.id)
        same = [call for call in self._calls if call.id is None and piece.name in (None, call.name)]
        waiting = [call for call in same if not call.answered]
        return next(iter(waiting or same[-1:]), None)

    def _take_other(self, rest: tuple[Piece, ...]) -> None:
        """Where results may stand behind something else in their message, that does not part them from their calls."""
        if self._results_first or not any(piece.kind == "result" for piece in rest):
            self._next_turn()

    def _next_turn(self) -> None:
        self._turn += 1
        self._waiting = 0

    def _note(self, code: IssueCode, message: str, index: int, call_id: str | None = None) -> None:
        self._found.append(HistoryIssue(code=code, message=message, index=index, call_id=call_id))


def _read(messages: object, name: str) -> Iterator[Said]:
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        yield UNREADABLE
        return
    for message in messages:
        yield read_message(name, message)


def _name_of(wire: str | Wire) -> str:
    name = get_wire(wire).name
    if name not in WIRES:
        raise UnknownWire(f"nothing is known of the messages of {name!r}; known: {', '.join(WIRES)}")
    return name


# -- trimming -----------------------------------------------------------------------------------


class _Unit(NamedTuple):
    """Messages that stay or go together: one of the user or the system, or an assistant's turn with its results."""

    role: Literal["system", "user", "assistant"]
    places: list[int]


class _Cost(NamedTuple):
    messages: float | None
    size: float | None

    def fits(self, limit: _Cost) -> bool:
        return all(most is None or (own or 0) <= most for own, most in zip(self, limit, strict=True))

    def plus(self, other: _Cost) -> _Cost:
        return _Cost(*((own or 0) + (more or 0) for own, more in zip(self, other, strict=True)))


def _units(said: Sequence[Said]) -> list[_Unit]:
    units: list[_Unit] = []
    answering = False
    for place, (role, pieces) in enumerate(said):
        has_result = any(piece.kind == "result" for piece in pieces)
        if role in ("system", "user", "unreadable") and not has_result:
            units.append(_Unit("system" if role == "system" else "user", [place]))
            continue
        begins = answering and not has_result
        if begins or not units or units[-1].role != "assistant":
            units.append(_Unit("assistant", [place]))
        else:
            units[-1].places.append(place)
        answering = has_result
    return units


def _chosen(units: list[_Unit], costs: list[_Cost], limit: _Cost) -> set[int]:
    """The units that stay: what must, then the newest as far as there is room."""
    users = [number for number, unit in enumerate(units) if unit.role == "user"]
    chosen = {number for number, unit in enumerate(units) if unit.role == "system"}
    chosen.update(users[-1:], [len(units) - 1] if units else [])
    total = _Cost(0, 0)
    for number in chosen:
        total = total.plus(costs[number])
    for number in reversed(range(len(units))):
        if number in chosen:
            continue
        total = total.plus(costs[number])
        if not total.fits(limit):
            break
        chosen.add(number)
    first = min((number for number in chosen if units[number].role == "user"), default=0)
    return {number for number in chosen if units[number].role == "system" or number >= first}
