"""The values that travel from the stream to the tool: definitions and calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from toolrun._core.records import Grade

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolrun._core.records import ArgumentIssue, JsonObject, RepairRecord

CallKind: TypeAlias = Literal["function", "custom"]
"""`"function"`: arguments are JSON. `"custom"`: one free text."""

Effect: TypeAlias = Literal["once", "idempotent", "pure"]
"""`"once"`: never run again. `"idempotent"`: again with the same key is safe. `"pure"`: no effect."""

FunctionKind: TypeAlias = Literal["function", "coroutine", "generator", "async_generator"]
"""What calling a tool's function gives: its result, an awaitable of it, or an iterator whose last item it is."""


class CallStatus(StrEnum):
    """What the finalizer says of a call.

    `OK`: finished, and the arguments are one strict JSON object (or free text).
    `PARSE_ERROR`: finished, but not that. `INCOMPLETE`: the model did not finish it.
    """

    OK = "ok"
    PARSE_ERROR = "parse_error"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionOrigin:
    """The definition of a provider or an MCP server that a tool was made of.

    Attributes:
        dialect: The dialect that it is written in.
        entry: The definition as it came.
        description: What was read from it.
        input_schema: The same; objects that do not say otherwise are closed.
    """

    dialect: str
    entry: JsonObject
    description: str
    input_schema: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """What a model is told about a tool: a name, a description, a JSON Schema for the arguments.

    `origin` is where it came from if it was read from another definition, so that it can be written back as it came.
    """

    name: str
    description: str
    input_schema: JsonObject
    origin: DefinitionOrigin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that the stream has finished, exactly as the model wrote it.

    Attributes:
        id: The provider's id byte for byte, or a synthetic one (`synthetic_id` is True then).
        name: The tool's name as sent; None if none came.
        raw_arguments: The whole argument text, never trimmed.
        arguments: The parsed object if `status` is `ok` and the call is not free text; else None.
        text: The free text of a custom tool's call; else None.
        status: See `CallStatus`.
        executable: True if the finalizer sees nothing against running it. A registry may still.
        provider_executed: True for a tool that the provider runs itself.
        finish_reason: The finish reason of its choice as sent; None if none came.
        code: Why the status is what it is, where there is more to say: `finish_inferred`, `held`,
            `truncated`, `no_finish`, `stream_error`, `broken_finish`, `nameless`,
            `beside_nameless`, `identity_conflict`, `limit`, or the code of `issue`.
        issue: What the strict parser found, with its place; None if it found nothing.
        position: Place among the calls of this stream, from 0, in order of arrival.
        choice: The choice that it belongs to; only choice 0 is ever executable.
        index: The provider's index as sent; None if there was none.
        name_readings: More than one if the name came in pieces that can be read in several ways.
        kind: `"function"` or `"custom"`.
        synthetic_id: True if the provider gave no usable id.
        extra: What else the provider put on the call and wants back (thought signatures).
    """

    id: str
    name: str | None
    raw_arguments: str
    arguments: JsonObject | None
    text: str | None = None
    status: CallStatus
    executable: bool
    provider_executed: bool = False
    finish_reason: str | None = None
    code: str | None = None
    issue: ArgumentIssue | None = None
    position: int = 0
    choice: int = 0
    index: int | None = None
    name_readings: tuple[str, ...] = ()
    kind: CallKind = "function"
    synthetic_id: bool = False
    extra: Mapping[str, object] = field(default_factory=dict)


def identity_of(call: ToolCall) -> object:
    """What tells the same call given twice from a second one: the provider's id, the name and the arguments.

    Without an id of the provider's nothing does, and every call is one of its own.
    """
    return call.position if call.synthetic_id else (call.id, call.name, call.raw_arguments)


class ValidatedCall(NamedTuple):
    """A call whose arguments fit a registered tool.

    Attributes:
        call: The call as the model wrote it.
        tool: The registered name that it runs under.
        text: The argument text that was validated: the raw text, or the repaired one.
        arguments: That text, parsed.
        bound: The values for the tool's parameters, converted to their Python types.
        grade: How `text` relates to what the model wrote.
        repairs: The audit records of every hook that answered.
    """

    call: ToolCall
    tool: str
    text: str
    arguments: JsonObject
    bound: Mapping[str, object]
    grade: Grade = Grade.EXACT
    repairs: tuple[RepairRecord, ...] = ()
