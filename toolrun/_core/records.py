"""What is kept about an argument text: issues found in it, and edits made to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

JsonObject: TypeAlias = dict[str, object]
"""A decoded JSON object: string keys; values are JSON values."""


class Grade(StrEnum):
    """How far the arguments that ran are from what the model wrote.

    `EXACT` and `LOSSLESS` are assigned by a check, never claimed. `HOOK` stands outside the
    order: a person's code decided.
    """

    EXACT = "exact"
    LOSSLESS = "lossless"
    SCHEMA_UNIQUE = "schema_unique"
    LOSSY = "lossy"
    HOOK = "hook"


RepairFloor: TypeAlias = Literal["never", "lossless", "schema_unique", "lossy"]
"""The worst grade that a tool accepts; `"never"` also shuts out the user's own hooks."""


class ArgumentIssue(NamedTuple):
    """One thing that is wrong with an argument text or value.

    `path` is a JSON path (`$.city`) for schema issues and `""` for syntax issues; `offset`
    counts characters from 0, `line` and `column` from 1, and all three are None for schema issues.
    `expected` and `came` say for schema issues what should stand there and what does, in a few words;
    `""` where there is nothing to say.
    """

    code: str
    message: str
    path: str = ""
    offset: int | None = None
    line: int | None = None
    column: int | None = None
    excerpt: str = ""
    expected: str = ""
    came: str = ""

    def describe(self) -> str:
        """Say where and what, in one line."""
        if self.offset is not None:
            near = f", near {self.excerpt!r}" if self.excerpt else ""
            return f"{self.message} (line {self.line}, column {self.column}, character {self.offset}{near})"
        came = f", got {self.came}" if self.came else ""
        return f"{self.path}: {self.message}{came}" if self.path else self.message


class Edit(NamedTuple):
    """One piece of text replaced in an argument text.

    `offset` counts characters in the text before the edit; `before` stood there and `after`
    stands there now. The edits of one repair are in order and do not overlap.
    """

    code: str
    offset: int
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRecord:
    """The audit record of one answer of one repair hook, accepted or not.

    `raw_sha256` is of the UTF-8 bytes of the text that the model wrote (lone surrogates are
    encoded as they stand); `code` is a refusal code, where a built-in hook has one; `readings` is how many ways
    to read the text were compared, 0 where nothing had to be compared; `seconds` is the time that the hook took.
    """

    hook: str
    fault: str
    accepted: bool
    grade: Grade | None
    raw: str
    raw_sha256: str
    before: str
    after: str | None
    edits: tuple[Edit, ...] = ()
    renamed_from: str | None = None
    renamed_to: str | None = None
    refusal: str | None = None
    code: str | None = None
    readings: int = 0
    note: str = ""
    seconds: float = 0.0
