"""Strict JSON with its places: what stands where, and in which characters."""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from toolrun._core.json_text import parse_object
from toolrun._core.records import ArgumentIssue

_TOKEN: Final = re.compile(r'[ \t\r\n]*+("(?:[^"\\]|\\.)*+"|[{}\[\]:,]|[^ \t\r\n{}\[\]:,"]++)')


class Member(NamedTuple):
    """A key and its value; `start` and `end` are those of the key."""

    key: str
    start: int
    end: int
    value: Node


class Node(NamedTuple):
    """A value: its kind in JSON Schema's words, its place, its text; what is in it, if it is a container."""

    kind: str
    start: int
    end: int
    text: str
    items: tuple[Node, ...] = ()
    members: tuple[Member, ...] = ()

    @property
    def value(self) -> str:
        """What a string says."""
        return str(json.loads(self.text))


def parse_value(text: str) -> Node | None:
    """Parse a text that must be one strict JSON value of any kind; None if it is not."""
    # One level deeper, so that the strict parser's rules for objects hold for every kind of value.
    if isinstance(parse_object(f'{{"":{text}\n}}'), ArgumentIssue):
        return None
    return parse(text)


def parse(text: str) -> Node:
    """Parse a text that is known to be strict JSON."""
    reader = _Reader(text)
    return reader.value()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def value(self) -> Node:
        """The value that begins here."""
        lexeme, start, end = self._next()
        if lexeme == "{":
            members: list[Member] = []
            while (key := self._next())[0] != "}":
                if key[0] == ",":
                    continue
                self._next()  # the colon
                members.append(Member(str(json.loads(key[0])), key[1], key[2], self.value()))
            return Node("object", start, self._place, self._text[start : self._place], (), tuple(members))
        if lexeme == "[":
            items: list[Node] = []
            while not self._text.startswith("]", self._skip()):
                items.append(self.value())
                if self._text.startswith(",", self._skip()):
                    self._next()
            self._next()
            return Node("array", start, self._place, self._text[start : self._place], tuple(items))
        return Node(_kind(lexeme), start, end, lexeme)

    def _next(self) -> tuple[str, int, int]:
        found = _TOKEN.match(self._text, self._place)
        if found is None:
            raise AssertionError("the text is strict JSON")
        self._place = found.end()
        return found[1], found.start(1), found.end()

    def _skip(self) -> int:
        while self._text[self._place] in " \t\r\n":
            self._place += 1
        return self._place


def _kind(lexeme: str) -> str:
    if lexeme.startswith('"'):
        return "string"
    if lexeme in ("true", "false"):
        return "boolean"
    if lexeme == "null":
        return "null"
    return "number" if any(mark in lexeme for mark in ".eE") else "integer"
