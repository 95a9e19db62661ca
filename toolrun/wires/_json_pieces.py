"""A JSON object that comes in pieces, each with the JSON path of the value that it belongs to.

Paths are the part of RFC 9535 that names one value: names and indexes. Nothing here raises and nothing is
guessed: pieces that contradict each other stay pieces, which are no object.
"""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias

from toolrun._core.json_text import MAX_CHARACTERS, MAX_DEPTH, dump_once, join_surrogates

Scalar: TypeAlias = str | int | float | bool | None
Tree: TypeAlias = "dict[str | int, Node]"
Node: TypeAlias = "Tree | list[str] | Scalar"
"""A value while it grows: an array is a dict by index, a string the list of its pieces."""

_STEP: Final = re.compile(
    r"""\.([^.\[\]]+) | \[(0|[1-9][0-9]{0,8})\] | \[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""", re.VERBOSE | re.DOTALL
)
_LONGEST_PATH: Final = 10_000
"""Characters of a path: as many steps as arguments may be deep, with names as long as they get."""


class JsonPieces:
    """Pieces as they come. They are put together when they are asked for, so that a long string is copied once."""

    def __init__(self) -> None:
        self._pieces: list[tuple[str, list[str] | Scalar]] = []
        self._goes_on: dict[str, bool | None] = {}
        self._size = 0
        self._contradicted = False
        self.overflowed = False

    def __bool__(self) -> bool:
        """Tell whether any piece came."""
        return bool(self._pieces)

    def is_open(self) -> bool:
        """Tell whether a piece was announced that did not come."""
        return any(self._goes_on.values())

    def add(self, path: str, value: Scalar, *, more: bool) -> None:
        """Take a piece: text goes on at its path, any other value stands there alone.

        `more` announces another piece for the path. Not all servers do so before they send one; but
        where one was announced and has come without announcing the next, text after it is too much.
        """
        if self.overflowed:
            return
        before = self._goes_on.get(path)
        if isinstance(value, str) and value and before is False:
            self._contradicted = True
        if value != "" or path not in self._goes_on:
            self._keep(path, value)
        self._goes_on[path] = True if more else None if before is None else False

    def end(self, path: str, *, more: bool) -> None:
        """Take a piece without a value: it can end a path, but at a new one nobody knows what stands there."""
        if path in self._goes_on:
            self._goes_on[path] = more
        else:
            self.refuse(path, None)

    def refuse(self, path: str, value: Scalar) -> None:
        """Take what cannot be read as a piece: no object comes of them any more."""
        self._contradicted = True
        self._keep(path, value)

    def text(self) -> str:
        """The object as JSON text; if the pieces do not make one, a list of pairs of path and value."""
        if not self._contradicted:
            try:
                return dump_once(_finished(self._tree()))
            except ValueError:
                pass
        return dump_once([(path, _finished(value)) for path, value in self._pieces])

    def _keep(self, path: str, value: Scalar) -> None:
        if self._size > MAX_CHARACTERS:
            self.overflowed = True
            return
        last_path, last = self._pieces[-1] if self._pieces else (None, None)
        if last_path == path and isinstance(last, list) and isinstance(value, str):
            last.append(value)
        else:
            self._size += len(path) + 1
            self._pieces.append((path, [value] if isinstance(value, str) else value))
        if isinstance(value, str):
            self._size += len(value)

    def _tree(self) -> Tree:
        root: Tree = {}
        known: dict[str, list[str | int]] = {}
        for path, value in self._pieces:
            steps = known.setdefault(path, []) or _steps(path)
            known[path] = steps
            node = root
            for step in steps[:-1]:
                node = _container(node, step)
            _put(node, steps[-1], value)
        return root


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    place = 1
    if not path.startswith("$") or not 1 < len(path) <= _LONGEST_PATH:
        raise ValueError(path)
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None or len(steps) == MAX_DEPTH or found[1] == "*":
            raise ValueError(path)
        name, index, quoted = found.groups()
        steps.append(_unquoted(quoted) if quoted else int(index) if index else name)
        place = found.end()
    return steps


def _unquoted(text: str) -> str:
    body = text[1:-1]
    if text[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    return str(json.loads(f'"{body}"'))


def _check(node: Tree, step: str | int) -> None:
    """An index into an object, or a name into an array, contradicts what came before."""
    if node and isinstance(next(iter(node)), int) is not isinstance(step, int):
        raise ValueError(step)


def _container(node: Tree, step: str | int) -> Tree:
    _check(node, step)
    child = node.setdefault(step, {})
    if not isinstance(child, dict):
        raise ValueError(step)  # noqa: TRY004  # the pieces are wrong, not their types
    return child


def _put(node: Tree, step: str | int, value: list[str] | Scalar) -> None:
    _check(node, step)
    if step not in node:
        node[step] = list(value) if isinstance(value, list) else value
        return
    there = node[step]
    if isinstance(there, list) and isinstance(value, list):
        there.extend(value)
    elif type(there) is not type(value) or there != value:
        raise ValueError(step)


def _finished(node: Node) -> object:
    """A node as plain data. An array must have all of its indexes."""
    if isinstance(node, list):
        return join_surrogates("".join(node))
    if not isinstance(node, dict):
        return node
    if not isinstance(next(iter(node), None), int):
        return {key: _finished(child) for key, child in node.items()}
    if any(index not in node for index in range(len(node))):
        raise ValueError(len(node))
    return [_finished(node[index]) for index in range(len(node))]
