"""Views of unfinished arguments, to be shown and never to be used.

The tree behind them only grows: what was written into it stays as it is, but for the one text that is being written.
So a view is the tree and the sizes of what was open in it, costs the same at any length, and does not change.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

Path: TypeAlias = tuple[str | int, ...]
"""Names and indexes from the arguments down to a value; `()` is the arguments themselves."""

State: TypeAlias = Literal["growing", "complete", "broken"]
"""`"complete"`: the object is closed. `"broken"`: from some place on, the text is no JSON object."""

Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = "Scalar | PreviewObject | PreviewList"
"""What a view shows."""


NOT_OPEN: Final = -1
"""For the size of an open text, where none is open."""


class Node:
    """An object, with the place of each name, or an array, without names. Both only grow."""

    __slots__ = ("names", "path", "values")

    def __init__(self, path: Path, names: dict[str, int] | None) -> None:
        self.path: Path = path
        self.names: dict[str, int] | None = names
        self.values: list[Scalar | Node] = []


class _View:
    """What a node had when the view was made: so many values, of which the last may have been open."""

    __slots__ = ("_depth", "_node", "_sizes", "_text")

    def __init__(self, node: Node, sizes: tuple[int, ...] = (), text: int = NOT_OPEN, depth: int = 0) -> None:
        self._node = node
        self._sizes = sizes  # of the open containers, from the root on
        self._text = text  # the size of the open text in the last of them
        self._depth = depth

    def __len__(self) -> int:
        """How many values it had."""
        return self._sizes[self._depth] if self._depth < len(self._sizes) else len(self._node.values)

    def _at(self, index: int) -> Value:
        value = self._node.values[index]
        inner = self._depth + 1
        may_be_open = inner <= len(self._sizes) and index == self._sizes[self._depth] - 1
        if isinstance(value, Node):
            view = PreviewList if value.names is None else PreviewObject
            return view(value, self._sizes, self._text, inner) if may_be_open else view(value)
        if may_be_open and isinstance(value, str) and self._text != NOT_OPEN and inner == len(self._sizes):
            return value[: self._text]  # of the whole text, that is the text itself
        return value


class PreviewObject(_View):
    """An object of unfinished arguments. It is not a mapping: it cannot be unpacked, or passed for arguments."""

    __slots__ = ()

    __iter__: ClassVar[None] = None
    """Without it, Python would ask for the item 0, and `dict(preview)` would work."""

    def __getitem__(self, name: str) -> Value:
        """Give a field.

        Raises:
            KeyError: It has not begun.
        """
        index = (self._node.names or {})[name]
        if index >= len(self):
            raise KeyError(name)
        return self._at(index)

    def __contains__(self, name: object) -> bool:
        """Tell whether a field has begun."""
        names = self._node.names or {}
        return name in names and names[str(name)] < len(self)

    def get(self, name: str, default: Value = None) -> Value:
        """Give a field, or the default if it has not begun."""
        try:
            return self[name]
        except KeyError:
            return default

    def items(self) -> Iterator[tuple[str, Value]]:
        """Go through the fields that have begun, in order."""
        for index, name in enumerate(islice(self._node.names or (), len(self))):
            yield name, self._at(index)

    def plain(self) -> dict[str, object]:
        """Copy it into plain data, for display elsewhere. The time is that of its size."""
        return {name: _plain(value) for name, value in self.items()}

    def __repr__(self) -> str:
        """Show the data."""
        return f"{type(self).__name__}({self.plain()!r})"


class PreviewList(_View):
    """An array of unfinished arguments."""

    __slots__ = ()

    def __getitem__(self, index: int) -> Value:
        """Give an item.

        Raises:
            IndexError: It has not begun.
        """
        size = len(self)
        if not -size <= index < size:
            raise IndexError(index)
        return self._at(index % size)

    def __iter__(self) -> Iterator[Value]:
        """Go through the items that have begun."""
        return (self._at(index) for index in range(len(self)))

    def plain(self) -> list[object]:
        """Copy it into plain data, for display elsewhere."""
        return [_plain(value) for value in self]

    def __repr__(self) -> str:
        """Show the data."""
        return f"{type(self).__name__}({self.plain()!r})"


class Preview(PreviewObject):
    """The arguments of a call as far as they have come, for display only.

    It does not change when more comes. Only `CallFinalized` tells whether a call is whole, and has its arguments.

    Examples:
        >>> from toolrun import StreamFinalizer
        >>> finalizer = StreamFinalizer("openai-chat")
        >>> body = {"name": "write", "arguments": '{"path": "a.txt", "content": "Once up'}
        >>> _ = finalizer.feed({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": body}]}}]})
        >>> preview = finalizer.preview(0)
        >>> preview["content"], preview.open_path, preview.state
        ('Once up', ('content',), 'growing')
    """

    __slots__ = ("_state",)

    def __init__(self, node: Node, sizes: tuple[int, ...], text: int, state: State) -> None:
        """Get one from an event or from `StreamFinalizer.preview`."""
        self._node = node  # written out: one is made for every delta
        self._sizes = sizes
        self._text = text
        self._depth = 0
        self._state: State = state

    @property
    def state(self) -> State:
        """`"growing"`, `"complete"`, or `"broken"`: from some place on, the text is no JSON object."""
        return self._state

    @property
    def open_path(self) -> Path | None:
        """Where the model is writing: names and indexes down to an open text, object or array; None if nowhere."""
        if self._state != "growing" or not self._sizes:
            return None
        node = self._node
        for size in self._sizes[:-1]:
            node = cast("Node", node.values[size - 1])  # what is open in a container stands last in it
        if self._text == NOT_OPEN:
            return node.path
        last = self._sizes[-1] - 1
        return (*node.path, last if node.names is None else next(islice(node.names, last, None)))

    def find(self, path: Path) -> Value:
        """Give the value at a path.

        Raises:
            LookupError: There is none.
        """
        value: Value = self
        for step in path:
            if not isinstance(value, PreviewList if isinstance(step, int) else PreviewObject):
                raise KeyError(step)
            value = value[step]  # type: ignore[index]  # just checked
        return value


def _plain(value: Value) -> object:
    return value.plain() if isinstance(value, PreviewObject | PreviewList) else value
