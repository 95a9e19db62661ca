"""Who a delta belongs to: the rules for indexes, ids and names, one method each.

* provider indexes are keys, not positions: `Router.route`
* a known id goes to its call; a second call may reuse an id: `_opens_again`
* another id at a used index: `_is_minted_id`, `_names_another`
* no index: `_without_index`; an index that comes late: `_continues_indexless`
* a repeated name: `_repeats_name_anew`
* a name is set, not appended: `_set_name`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from toolrun._core.json_text import opens_object
from toolrun._core.slots import Slot

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_CALLS: Final = 1_000
"""Calls of one response; those after it are merged into the last one, which never runs."""

Place: TypeAlias = int | tuple[int, int | None] | None
"""An index of choice 0 as it is, for speed; else the choice and the index. Without an index: the last call."""


def place(choice: int, index: int | None) -> Place:
    """Where a call with an index is found; with None, the one that was written to last."""
    return (choice, index) if choice else index


class Router:
    """Finds or opens the call that a delta belongs to.

    Args:
        make_id: Gives the synthetic id for the call at a position.
        opened: Told of every call that is opened.
        overflowed: Told once when there are too many.
    """

    def __init__(
        self, make_id: Callable[[int], str], opened: Callable[[Slot], None], overflowed: Callable[[Slot], None]
    ) -> None:
        self._make_id = make_id
        self._opened = opened
        self._overflowed = overflowed
        self.slots: list[Slot] = []
        self.at: dict[Place, Slot] = {}
        self._by_id: dict[tuple[int, str], Slot] = {}
        self._used: set[tuple[int, str]] = set()

    def forget(self) -> None:
        """Another response begins: its ids and indexes are its own."""
        self.at.clear()
        self._by_id.clear()

    def known(self, choice: int, id: str | None) -> Slot | None:
        """The newest call with this id."""
        return None if id is None else self._by_id.get((choice, id))

    def route(self, choice: int, index: int | None, id: str | None, name: str | None, text: str) -> Slot:
        """Find or open the call; the id and the name that came are taken in."""
        at = None if index is None else self.at.get(place(choice, index))
        if id is not None:
            known = at if at is not None and at.wire_id == id else self._by_id.get((choice, id))
            if known is not None:
                if self._opens_again(known, at, index, name, text):
                    return self.open(choice, index, id, name)
                if at is not None and at is not known and at.is_complete():
                    self.at[place(choice, index)] = known  # it moved to a place that is no longer written to
                return self._continue(known, index, None, name)
        if index is None:
            return self._without_index(choice, id, name, text)
        if at is None:
            recent = self.at.get(place(choice, None))
            if recent is not None and self._continues_indexless(recent, id, name, text):
                return self._continue(recent, index, id, name)
            return self.open(choice, index, id, name)
        if id is not None and at.wire_id is not None and not self._is_minted_id(at, name):
            return self.open(choice, index, id, name)
        if id is None and at.wire_id is None and name is not None and self._names_another(at, name, text):
            return self.open(choice, index, id, name)
        return self._continue(at, index, id, name)

    def _without_index(self, choice: int, id: str | None, name: str | None, text: str) -> Slot:
        """No index: a new id starts a call; with no id, a name does; anything else continues the last one."""
        recent = self.at.get(place(choice, None))
        if recent is None:
            return self.open(choice, None, id, name)
        if id is not None:
            late = recent.wire_id is None and name is None and recent.size > 0 and not recent.is_complete()
            return self._continue(recent, None, id, name) if late else self.open(choice, None, id, name)
        if name is None or recent.name is None:
            return self._continue(recent, None, None, name)
        if name != recent.name or self._repeats_name_anew(recent, text):
            return self.open(choice, None, None, name)
        return self._continue(recent, None, None, name)

    def _opens_again(self, known: Slot, at: Slot | None, index: int | None, name: str | None, text: str) -> bool:
        """A known id may be reused: by another tool after complete arguments, or by a whole call in a new place."""
        if name is None or known.name is None:
            return False
        new_place = index is not None and at is None
        if name != known.name:
            return known.is_complete() or new_place
        return new_place and self._repeats_name_anew(known, text)

    @staticmethod
    def _is_minted_id(at: Slot, name: str | None) -> bool:
        """Some servers mint an id a fragment: another id without a name continues unfinished arguments."""
        return name is None and not at.is_complete()

    def _names_another(self, at: Slot, name: str, text: str) -> bool:
        """Without any ids, a used index starts a new call by naming a tool after complete arguments."""
        if name != at.name:
            return at.name is not None and at.is_complete()
        return self._repeats_name_anew(at, text)

    @staticmethod
    def _repeats_name_anew(slot: Slot, text: str) -> bool:
        """A repeated name splits off a call only if the last one is complete and a different object begins."""
        return opens_object(text) and slot.is_complete() and text.strip() != slot.text().strip()

    def _continues_indexless(self, recent: Slot, id: str | None, name: str | None, text: str) -> bool:
        """The first delta at a new index binds to the index-less call that it continues."""
        if recent.index is not None or (id is not None and recent.wire_id is not None):
            return False
        if name is None:
            return id is None or not recent.is_complete()
        return name == recent.name and not self._repeats_name_anew(recent, text) and not recent.is_complete()

    def _continue(self, slot: Slot, index: int | None, id: str | None, name: str | None) -> Slot:
        if index is not None and self.at.setdefault(place(slot.choice, index), slot) is slot and slot.index is None:
            slot.index = index
        if id is not None:
            self._by_id.setdefault((slot.choice, id), slot)
            if slot.wire_id is None:
                slot.wire_id = id
                slot.synthetic_id = (slot.choice, id) in self._used
                self._used.add((slot.choice, id))
        if name is not None:
            self._set_name(slot, name)
        self.at[place(slot.choice, None)] = slot
        return slot

    def open(
        self, choice: int, index: int | None, id: str | None, name: str | None, *, provider_executed: bool = False
    ) -> Slot:
        """Open a call. A second one with a known id gets an id of its own."""
        if len(self.slots) >= MAX_CALLS:
            return self._overflow(choice, index)
        slot = Slot(len(self.slots), choice, index)
        if id is not None:
            slot.synthetic_id = (choice, id) in self._used
            self._used.add((choice, id))
            slot.wire_id = id
            self._by_id[choice, id] = slot
        slot.name = name
        slot.readings = (name,) if name else ()
        slot.provider_executed = provider_executed
        slot.shown_id = self._make_id(slot.position) if id is None or slot.synthetic_id else id
        self.slots.append(slot)
        if not provider_executed:  # what comes without an index continues a call of the client
            self.at[place(choice, None)] = slot
        if index is not None:
            self.at[place(choice, index)] = slot
        self._opened(slot)
        return slot

    def _overflow(self, choice: int, index: int | None) -> Slot:
        slot = self.slots[-1]
        if not slot.dropped:
            self._overflowed(slot)
        slot.dropped += 1
        self.at[place(choice, None)] = slot
        if index is not None:
            self.at[place(choice, index)] = slot
        return slot

    @staticmethod
    def _set_name(slot: Slot, name: str) -> None:
        """A name is set: equal is ignored, longer replaces, other pieces before any arguments are joined."""
        current = slot.name
        if current is None:
            slot.name = name
            slot.readings = (name,)
        elif name == current:
            return
        elif slot.size:
            slot.conflict = True
        elif name.startswith(current):
            slot.name = name
            slot.readings = (name,)
        else:
            slot.name = current + name
            slot.readings = (slot.name, name)
