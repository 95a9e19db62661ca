"""Which output item an event of OpenAI Responses belongs to, and what each type of item is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from toolrun.wires._reading import as_index, as_name, as_text, fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolrun._core.calls import CallKind
    from toolrun._core.records import JsonObject


class Shape(NamedTuple):
    """What a type of call looks like: where its arguments are, what they are, and who executes it as a rule."""

    arguments: tuple[str, ...]
    kind: CallKind = "function"
    client: bool = False


SHAPES: Final = {
    "function_call": Shape(("arguments",), client=True),
    "custom_tool_call": Shape(("input",), kind="custom", client=True),
    "tool_search_call": Shape(("arguments",), client=True),
    "local_shell_call": Shape(("action",), client=True),
    "shell_call": Shape(("action",), client=True),
    "apply_patch_call": Shape(("operation",), client=True),
    "computer_call": Shape(("action", "actions"), client=True),
    "code_interpreter_call": Shape(("code",), kind="custom"),
    "program": Shape(("code",), kind="custom"),
    # A person is asked, and then the provider runs it: what answers it is no tool's result.
    "mcp_approval_request": Shape(("arguments",)),
}
HOSTED: Final = Shape(("arguments", "action"))
"""Any other type that ends with `_call`: it is shown, and never runs here."""

NAMED: Final = frozenset(("function_call", "custom_tool_call", "mcp_call", "mcp_approval_request"))
"""Calls that carry a name; any other is named after its type."""


class Item:
    """One output item, and what has been told of it.

    Attributes:
        key: Where the sink knows it: its output index, or a negative number of our own.
        closed: True once a final copy of the whole item came.
        copy: The final copy of a call's arguments, once one with text came.
        place: The output index that the copy came with.
        shown: The texts that were told; for a call, whether there was any argument text.
        barred: True if something showed that it must not run here.
    """

    __slots__ = (
        "barred", "call_id", "client", "closed", "copy", "id", "key", "name", "place", "shape", "shown", "type",
    )  # fmt: skip

    def __init__(self, key: int, item: Mapping[str, object]) -> None:
        self.key = key
        self.type = str(item.get("type"))
        self.shape = SHAPES.get(self.type) or (HOSTED if self.type.endswith("_call") else None)
        self.client = self.shape is not None and self.shape.client and not is_hosted(item)
        self.name = as_name(item.get("name")) or (None if self.type in NAMED else self.type)
        self.call_id = as_id(item.get("call_id"))
        self.id = as_id(item.get("id"))
        self.closed = False
        self.copy: str | None = None
        self.place: int | None = None
        self.shown: set[str] = set()
        self.barred = False

    def has_name_of(self, item: Mapping[str, object]) -> bool:
        """Tell whether what came has this type and, as far as both have one, this name."""
        name = as_name(item.get("name"))
        return item.get("type") == self.type and (name is None or self.name in (None, name))

    def says_no_more(self, item: Mapping[str, object]) -> bool:
        """Tell whether what came says nothing else than what is known."""
        return self.has_name_of(item) and (self.copy is None or self.copy == self.arguments(item))

    def arguments(self, item: Mapping[str, object]) -> str:
        """The argument text in a copy of this call; an object is written down."""
        for field in self.shape.arguments if self.shape else ():
            value = item.get(field)
            if value is not None:
                return as_text({field: value} if field == "actions" else value)  # the one list is put into an object
        return ""


class Items:
    """The items of one response: finds the one that an event or a copy belongs to."""

    def __init__(self) -> None:
        self._by_index: dict[int | None, Item] = {}
        self._by_id: dict[str | None, Item] = {}
        self._by_call: dict[str | None, Item] = {}
        self._reused: set[int | None] = set()
        self._own_keys = 0

    def open(self, item: Mapping[str, object], index: int | None) -> Item:
        """A new item; a call id that another item has already is not its own."""
        key = index
        if key is None or key in self._by_index:
            self._own_keys += 1
            key = -self._own_keys  # no provider sends a negative index
        opened = Item(key, item)
        if opened.call_id in self._by_call:
            opened.call_id = None
        if opened.id in self._by_id:
            opened.id = None
        self.know(opened, item, index)
        return opened

    def find(self, index: int | None, item_id: object, call_id: object, *, call: bool = False) -> Item | None:
        """The item of an event: by output index, then item id, then call id.

        An index that two items had tells nothing, unless there is nothing else. With `call`, only a call will do.
        """
        known = self._by_index.get(index)
        if known is None or index in self._reused or (call and known.shape is None):
            known = self._by_id.get(as_id(item_id)) or self._by_call.get(as_id(call_id)) or known
        return None if known is None or (call and known.shape is None) else known

    def is_at(self, index: int | None, known: Item) -> bool:
        """Tell whether an output index alone tells the item."""
        return self._by_index.get(index) is known and index not in self._reused

    def of_call(self, item: Mapping[str, object]) -> Item | None:
        """The item with the same call id."""
        return self._by_call.get(as_id(item.get("call_id")))

    def announced(self, item: Mapping[str, object], index: int | None) -> Item | None:
        """The item that is announced once more. A known call id goes to its call, whatever its index says."""
        known = self.of_call(item)
        if known is None or not known.has_name_of(item):
            known = self._by_id.get(as_id(item.get("id")))
            same_place = index is None or self._by_index.get(index) is known
            if known is None or not same_place or not self._may_be(known, item, index):
                return None
        self.know(known, item, index)
        return known

    def finished(self, item: Mapping[str, object], index: int | None) -> Item | None:
        """The item that this is the final copy of."""
        for known in (self.find(index, item.get("id"), item.get("call_id")), self._by_id.get(as_id(item.get("id")))):
            if known is not None and self._may_be(known, item, index):
                return known
        known = self.of_call(item)
        return known if known is not None and known.has_name_of(item) else None

    def listed(self, copies: Sequence[JsonObject]) -> Iterator[tuple[int, JsonObject, Item | None]]:
        """Each item of an output list with its place there and what it is a copy of; repetitions are left out.

        The list has positions of its own, so ids decide: with the name, then without it (a conflict, which the core
        sees); failing those, what says the same in the same place.
        """
        matched: dict[int, Item] = {}
        taken: set[Item] = set()
        for by_name in (True, False):
            for place, item in enumerate(copies):
                for known in (self.of_call(item), self._by_id.get(as_id(item.get("id")))):
                    if known is None or place in matched or known in taken or item["type"] != known.type:
                        continue
                    if known.has_name_of(item) or not by_name:
                        matched[place] = known
                        taken.add(known)
        for place, item in enumerate(copies):
            known = matched.get(place)
            if known is None:
                twin = self.of_call(item)
                if twin is not None and twin.says_no_more(item):
                    continue
                known = self._by_index.get(place)
                if known is not None and (known in taken or not known.says_no_more(item)):
                    known = None
            yield place, item, known

    def know(self, known: Item, item: Mapping[str, object], index: int | None) -> None:
        """Let an item be found by what came of it."""
        if (item_id := as_id(item.get("id"))) is not None:
            self._by_id.setdefault(item_id, known)
        if known.shape is not None and (call_id := as_id(item.get("call_id"))) is not None:
            self._by_call.setdefault(call_id, known)
        if index is not None and self._by_index.get(index) is not known:
            if index in self._by_index:
                self._reused.add(index)
            self._by_index[index] = known

    def bind(self, known: Item, call_id: str) -> bool:
        """Give an item the call id that came late; False if another item has it."""
        if self._by_call.setdefault(call_id, known) is not known:
            return False
        known.call_id = call_id
        return True

    def _may_be(self, known: Item, item: Mapping[str, object], index: int | None) -> bool:
        """Another call id is another call, unless the item id says that the first one was provisional.

        Without call ids, what is closed has no second copy in another place.
        """
        if item.get("type") != known.type:
            return False
        call_id, item_id = as_id(item.get("call_id")), as_id(item.get("id"))
        if call_id is None or known.call_id is None:
            return not known.closed or index is None or self._by_index.get(index) is known
        if call_id == known.call_id:
            return True
        return call_id not in self._by_call and not known.closed and item_id is not None and item_id == known.id


def as_id(value: object) -> str | None:
    """Read an id; the words for nothing are absent."""
    name = as_name(value)
    return None if name is None or name.strip() in ("null", "None") else name


def as_place(value: object) -> int | None:
    """Read an output index."""
    place = value if type(value) is int else as_index(value)
    return None if place is None or place < 0 else place


def is_hosted(item: Mapping[str, object]) -> bool:
    """Tell whether the provider runs a call whose type alone does not say so."""
    match item.get("type"):
        case "tool_search_call":
            return item.get("execution") != "client"
        case "shell_call":
            return fields(item.get("environment")).get("type") not in (None, "local")
        case "custom_tool_call":
            return (as_id(item.get("call_id")) or "").startswith("xs_call")  # xAI's search on X
        case _:
            return False


_SDK_OWN: Final = frozenset(("parsed", "parsed_arguments"))
"""What the SDK's `.stream()` and `.parse()` add to what the provider sent."""


def as_sent(value: object) -> object:
    """Turn SDK objects into the data that the provider sent: a null that it sent stays, a default goes.

    What has no fields stays as it is, so that it is never taken for an empty object.
    """
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, list | tuple):
        return [as_sent(item) for item in value]
    return sent_object(value) if isinstance(value, Mapping) or fields(value) else value


def sent_object(value: object) -> JsonObject:
    """`as_sent` for something that has fields; anything else is empty."""
    given = getattr(value, "model_fields_set", None)
    return {
        key: as_sent(item)
        for key, item in fields(value).items()
        if given is None or (key not in _SDK_OWN and (item is not None or key in given))
    }
