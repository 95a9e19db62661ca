"""Repair: other arguments. What a hook is asked, what it may answer, and how an answer is graded.

Every answer is parsed strictly and validated again, whoever gave it, and leaves a record, accepted
or not. Nobody claims `lossless`: `conserves` decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from toolrun._core.conservation import conserves
from toolrun._core.exceptions import RegistrationError
from toolrun._core.records import Edit, Grade

if TYPE_CHECKING:
    from toolrun._core.calls import ToolCall, ToolDefinition
    from toolrun._core.records import ArgumentIssue, JsonObject, RepairFloor, RepairRecord


class Fault(StrEnum):
    """What is wrong with a call, in the order in which it is looked at."""

    INCOMPLETE = "incomplete"
    """The model did not finish it. Only for hooks that ask for it by name."""
    IDENTITY = "identity"
    """It has no name, or changed it midway."""
    UNKNOWN_TOOL = "unknown_tool"
    """No registered tool has the name."""
    PARSE = "parse"
    """The arguments are not strict JSON."""
    NOT_OBJECT = "not_object"
    """They are JSON, but not an object."""
    SCHEMA = "schema"
    """They are an object, but not what the schema asks for."""


# Text that is not JSON and JSON that is not an object are equally far from running.
_ORDER: Final = {fault: place for place, fault in enumerate(Fault)} | {Fault.NOT_OBJECT: list(Fault).index(Fault.PARSE)}
ASKED_BY_DEFAULT: Final = frozenset(Fault) - {Fault.INCOMPLETE}


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRequest:
    """Everything about a call that is unfit as it stands.

    Attributes:
        call: The call as the model wrote it; `call.raw_arguments` is whole and never trimmed.
        fault: What is wrong now.
        text: The argument text as far as earlier hooks brought it; the raw text to begin with.
        issue: What the strict parser found, with its place; None for other faults.
        issues: What the schema found, with JSON paths; empty for other faults.
        definition: A copy of the tool's definition; None if no tool was found.
        known: The registered names, sorted.
        finish_reason: As sent.
        attempts: The records of the hooks that answered before.
        candidates: Readings to choose from, where there are several.
        attempt: The how manieth question for this call this is, from 1.
        seconds_left: How long the answer may take, in seconds; None without a limit.
        siblings: The other client calls of the response.
        key: The key that the call runs under: run, turn and position; `""` outside a runner.
        deps: What the caller passed as `deps=`; None outside a runner.
        memo: What built-in strategies found out about texts of this call, so that the next one need not.
    """

    call: ToolCall
    fault: Fault
    text: str
    issue: ArgumentIssue | None = None
    issues: tuple[ArgumentIssue, ...] = ()
    definition: ToolDefinition | None = None
    known: tuple[str, ...] = ()
    finish_reason: str | None = None
    attempts: tuple[RepairRecord, ...] = ()
    candidates: tuple[str, ...] = ()
    attempt: int = 1
    seconds_left: float | None = None
    siblings: tuple[ToolCall, ...] = ()
    key: str = ""
    deps: object = None
    memo: dict[str, object] = field(default_factory=dict, repr=False, compare=False)


class Reading(NamedTuple):
    """One way to read an argument text: the text that it comes to, and the edits that lead there."""

    text: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """Other arguments: an object or a text, not both. They are parsed and validated again.

    Args:
        arguments: The arguments as an object.
        text: The arguments as JSON text.
        note: For the record.
        grade: A claim of `lossless` counts only if the check agrees; else it is `hook`.
        edits: What was replaced in the request's `text`; needed for `lossless`.
        readings: All the ways to read the text, this answer's included, where a hook found several or had to consult
            the schema. The answer counts only if exactly one of them fits the schema; that one is taken.
    """

    arguments: JsonObject | None = None
    text: str | None = None
    note: str = ""
    grade: Grade | Literal["hook", "lossy", "schema_unique", "lossless"] = Grade.HOOK
    edits: tuple[Edit, ...] = ()
    readings: tuple[Reading, ...] = ()

    def is_well_formed(self) -> bool:
        """Tell whether the fields are what they should be; a hook is somebody else's code."""
        text: object = self.text
        arguments: object = self.arguments
        edits: object = self.edits
        note: object = self.note
        readings: object = self.readings
        return (
            (text is None) != (arguments is None)
            and isinstance(text, str | None)
            and isinstance(arguments, dict | None)
            and isinstance(edits, tuple)
            and all(isinstance(edit, Edit) for edit in edits)
            and isinstance(note, str)
            and isinstance(readings, tuple)
            and all(isinstance(reading, Reading) for reading in readings)
            and self.grade in tuple(Grade)
        )


@dataclass(frozen=True, slots=True)
class Renamed:
    """The call was meant for the tool with this registered name. Every later event says so."""

    tool: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Stop here; the reason goes to the model."""

    reason: str


@dataclass(frozen=True, slots=True)
class Declined:
    """What a built-in hook found that it must not decide: the next hook is asked, and the model is told if none helps.

    Attributes:
        code: A refusal code; see `toolrun._core.results`.
        detail: What and where, for the model.
    """

    code: str
    detail: str = ""


RepairDecision: TypeAlias = Repaired | Renamed | Refuse | Declined


class RepairHook(Protocol):
    """Answers a request, or None to let the next hook try. Sync hooks run in a worker thread.

    What a hook changes in the request changes nothing else. A hook that raises, takes too long or
    answers something else is recorded and passed over.
    """

    def __call__(self, request: RepairRequest, /) -> RepairDecision | Awaitable[RepairDecision | None] | None:
        """Decide."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HookBinding:
    """A hook and what it is asked about.

    Args:
        hook: The hook.
        name: For records.
        on: The faults it is asked about.
        tools: The registered names of the tools it is asked about; None for all, unknown ones included.
        first: Asked before the built-in chain.
        builtin: Graded by the check alone, run in place, and built upon by the hooks after it.
    """

    hook: RepairHook
    name: str
    on: frozenset[Fault] = ASKED_BY_DEFAULT
    tools: frozenset[str] | None = None
    first: bool = False
    builtin: bool = False

    def answers(self, fault: Fault, tool: str | None) -> bool:
        """Tell whether to ask this hook."""
        return fault in self.on and (self.tools is None or tool in self.tools)


def bind(
    hook: RepairHook,
    *,
    on: str | Iterable[str] | None = None,
    tools: str | Iterable[str] | None = None,
    first: bool = False,
    builtin: bool = False,
) -> HookBinding:
    """Bind a hook to faults and tools.

    Raises:
        RegistrationError: It is not callable, or a fault is unknown.
    """
    if not callable(hook):
        raise RegistrationError(f"a repair hook must be callable, not {hook!r}")
    named = [on] if isinstance(on, str) else on
    try:
        faults = ASKED_BY_DEFAULT if named is None else frozenset(Fault(fault) for fault in named)
    except ValueError as error:
        raise RegistrationError(f"{error}; faults are: {', '.join(Fault)}") from None
    return HookBinding(
        hook=hook,
        name=getattr(hook, "__name__", None) or type(hook).__name__,
        on=faults,
        tools=None if tools is None else frozenset([tools] if isinstance(tools, str) else tools),
        first=first,
        builtin=builtin,
    )


def ordered(chain: Iterable[HookBinding], hooks: Iterable[HookBinding]) -> tuple[HookBinding, ...]:
    """The order of asking: hooks marked `first`, the built-in chain, the other hooks as registered."""
    own = tuple(hooks)
    if not own:
        return tuple(chain)
    return (*(hook for hook in own if hook.first), *chain, *(hook for hook in own if not hook.first))


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairBudget:
    """How much one call may cost.

    Args:
        hooks: Questions a call to hooks that are not built in.
        seconds: Seconds a call, for all hooks together; None for no limit.

    Raises:
        RegistrationError: A number makes no sense.
    """

    hooks: int = 16
    seconds: float | None = 30.0

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        if self.hooks < 0 or (self.seconds is not None and not self.seconds >= 0):
            raise RegistrationError(f"RepairBudget needs hooks >= 0 and seconds >= 0 or None, not {self!r}")


def grade_answer(binding: HookBinding, before: str, after: str, answer: Repaired) -> Grade:
    """Grade an answer: what the check finds, or the hook's own modest claim, or `hook`.

    A built-in hook that read the text by the schema says so by giving `readings`; whether only one of them fits is
    decided where the answer is judged.
    """
    claim = Grade(answer.grade)
    if binding.builtin and answer.readings:
        return Grade.SCHEMA_UNIQUE
    if (binding.builtin or claim is Grade.LOSSLESS) and conserves(before, after, answer.edits):
        return Grade.LOSSLESS
    if binding.builtin:
        return Grade.LOSSY
    return claim if claim in (Grade.SCHEMA_UNIQUE, Grade.LOSSY) else Grade.HOOK


_RANK: Final = {Grade.EXACT: 0, Grade.LOSSLESS: 1, Grade.SCHEMA_UNIQUE: 2, Grade.LOSSY: 3}


def worst(grades: Iterable[Grade]) -> Grade:
    """The grade of several repairs one after the other; one by a person's code makes it `hook`."""
    listed = list(grades)
    return Grade.HOOK if Grade.HOOK in listed else max(listed, key=_RANK.__getitem__, default=Grade.EXACT)


def admits(floor: RepairFloor, *, destructive: bool, grade: Grade) -> bool:
    """Tell whether a tool with this floor runs arguments of this grade."""
    if grade is Grade.EXACT:
        return True
    if floor == "never":
        return False
    if grade is Grade.HOOK:
        return True
    limit = Grade.LOSSLESS if destructive else Grade(floor)
    return _RANK[grade] <= _RANK[limit]


def advanced(before: Fault, after: Fault | None) -> bool:
    """Tell whether a call is nearer to running than it was."""
    return after is None or _ORDER[after] > _ORDER[before]


def digest(text: str) -> str:
    """SHA-256 of a text's UTF-8 bytes, hexadecimal; lone surrogates are encoded as they stand."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
