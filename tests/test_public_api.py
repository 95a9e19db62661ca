"""The public API: its names, their documentation, and what importing it costs."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import json
import pickle
import subprocess
import sys
from importlib.metadata import version

import pytest
import typing_extensions

import toolrun
import toolrun.abc
import toolrun.cli
import toolrun.history
from tests import public_api
from toolrun import ArgumentIssue, CallStatus, ToolCall, ToolrunError

NAMES = [
    "ApprovalAnswered", "ApprovalError", "ApprovalExpired", "ApprovalRequest", "ApprovalRequested", "Approve",
    "ArgumentIssue", "ArgumentsReplaced", "AttemptEnded", "AttemptStarted", "CallCompleted", "CallConflict",
    "CallDelta", "CallError", "CallFinalized", "CallPreview", "CallRepeated", "CallStarted", "CallStatus", "Cancelled", "CitationAdded", "Defer", "Deferred", "Denied",
    "Deny", "Diagnostic", "DialectError", "Edit", "Event", "ExecutorError", "Failed", "Fault", "FieldAppended", "FieldChange", "FieldSet", "File", "FinalizerClosed", "FinishPolicy", "Grade",
    "Happened", "Image", "IncompleteCall", "Interrupted", "Interruption", "InvalidArguments", "InvalidToken", "JournalError", "Limits", "MalformedArguments", "NoSuchTool", "NotExecuted", "NotHappened", "Outcome",
    "PluginError", "Preview", "PreviewList", "PreviewObject", "ProgressReported", "Refuse", "Refused", "RegistrationError", "RemoteError", "Renamed", "RepairAnswered", "RepairBudget",
    "RepairRecord", "RepairRefused", "RepairRequest", "Repaired", "RepairedArguments", "Result", "Retry", "RunStream", "Runner", "RunnerClosed",
    "StreamEvent", "StreamFinalizer", "StreamInterrupted", "Succeeded", "TextDelta", "TimedOut", "TooManyInvalidTurns", "Tool", "ToolCall",
    "ToolContext", "ToolDefinition", "ToolError", "ToolRegistry", "ToolrunError", "TryAgain", "Turn", "TurnInvalid", "TurnPending",
    "UnknownWire", "UsageReported", "ValidatedCall", "afinalize", "finalize", "repair_arguments", "tool",
]  # fmt: skip

SEAMS = [
    "ApprovalDecision", "ApprovalRequest", "Approve", "Approver", "CallEntry", "Decode", "Defer", "Deny", "Executor", "Fault", "HookBinding", "Invocation", "Job", "Journal", "Listener", "Outcome", "Part", "Payload", "Reading", "Refuse", "Renamed",
    "RepairHook", "RepairRequest", "Repaired", "Response", "Sink", "ToolResult", "TurnEntry", "Wire", "turn_of",
]  # fmt: skip

PUBLIC = {
    "toolrun": NAMES,
    "toolrun.abc": SEAMS,
    "toolrun.cli": ["InputError", "Parser", "complain", "entry", "main", "number", "registry_from", "seconds"],
    "toolrun.executors": ["InlineExecutor", "ProcessExecutor", "ThreadExecutor"],
    "toolrun.history": ["HistoryIssue", "check", "trim"],
    "toolrun.journals": ["MemoryJournal", "SqliteJournal"],
    "toolrun.remote": ["JobRunner", "is_same_call", "read_outcome", "write_job"],
    "toolrun.testing": [
        "DAMAGE_KINDS",
        "DamageKind",
        "DamagedArguments",
        "DurableExecutorSuite",
        "ExecutorSuite",
        "FakeModel",
        "FakeProvider",
        "JournalSuite",
        "Ledger",
        "RecordedRun",
        "ScriptedCall",
        "ScriptedResponse",
        "WireSuite",
        "assert_answered",
        "assert_handled",
        "assert_nothing_ran",
        "assert_outcome",
        "assert_ran_once",
        "chunked",
        "damaged",
        "record_runs",
        "sample_tools",
    ],
    "toolrun.repairs": [
        "RepairedArguments",
        "bare_keys",
        "bare_values",
        "brackets",
        "comments",
        "control_characters",
        "escaped_whole",
        "escapes",
        "half_quoted_keys",
        "inner_quotes",
        "literals",
        "lossless",
        "missing_comma",
        "numbers",
        "odd_space",
        "outer_noise",
        "quotes",
        "repair_arguments",
        "schema_reading",
        "stray_tag",
        "tool_name",
        "trailing_comma",
        "tuples",
        "wide_punctuation",
        "xml_parameters",
    ],
    "toolrun.executors.limits": ["CircuitBreaker", "RateLimited"],
    "toolrun.wires.helpers": [
        "as_index",
        "as_name",
        "as_text",
        "error_message",
        "fields",
        "history_arguments",
        "history_name",
        "history_text",
        "items",
        "plain",
        "plain_object",
    ],
    "toolrun.wires": [
        "WIRES",
        "AnthropicMessages",
        "BedrockConverse",
        "BedrockInvoke",
        "CohereV2",
        "Gemini",
        "Mistral",
        "Ollama",
        "OpenAIChat",
        "OpenAIResponses",
        "get_wire",
        "recognise",
    ],
}

OBJECTS = {
    f"{module}.{name}": getattr(importlib.import_module(module), name)
    for module, names in PUBLIC.items()
    for name in names
}
CLASSES = {name: found for name, found in OBJECTS.items() if inspect.isclass(found)}
FUNCTIONS = {name: found for name, found in OBJECTS.items() if inspect.isfunction(found)}


@pytest.mark.parametrize("module", PUBLIC)
def test_names(module: str) -> None:
    """`__all__` is exactly this; a change of it is a decision, and has a changelog fragment."""
    assert importlib.import_module(module).__all__ == PUBLIC[module]


@pytest.mark.parametrize("module", PUBLIC)
def test_names_are_sorted(module: str) -> None:
    """As ruff sorts them: constants, classes, functions."""
    names = PUBLIC[module]

    assert names == sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


@pytest.mark.parametrize("name", [*CLASSES, *FUNCTIONS])
def test_documented(name: str) -> None:
    """Every public class and function says in a first sentence what it is."""
    documentation = OBJECTS[name].__doc__

    assert documentation
    assert documentation.strip().split("\n\n")[0].rstrip().endswith((".", ":"))


METHODS = {
    f"{name}.{attribute}": member
    for name, found in CLASSES.items()
    if found is not toolrun.abc.Sink  # the assembler documents the sink's methods
    for attribute, member in vars(found).items()
    if not attribute.startswith("_")
    and (inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod))
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_documented(name: str) -> None:
    """So does every public method and property."""
    assert METHODS[name].__doc__


def test_signatures() -> None:
    """Every name, signature, field and method is what it was; a change of it is a decision."""
    now, before = public_api.described(), public_api.SNAPSHOT.read_text("utf-8")
    changes = difflib.unified_diff(before.splitlines(), now.splitlines(), "before", "now", lineterm="", n=0)

    assert now == before, "\n".join([f"if this is meant: {public_api.COMMAND}, and a changelog fragment", *changes])


def test_every_module_is_in_the_snapshot() -> None:
    """A public module is in both lists."""
    assert {*PUBLIC, "pytest_toolrun"} == {*public_api.MODULES}


VERSION = tuple(map(int, version("toolrun").split(".")[:2]))


def test_what_goes_has_its_time() -> None:
    """Every mark names its versions, and nothing stays beyond the release in which it was to go."""
    assert {
        name: public_api.fault_of(message, VERSION)
        for name, message in public_api.deprecations().items()
        if public_api.fault_of(message, VERSION)
    } == {}


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("call settle() instead; deprecated since 0.3, goes in 0.5", None),
        ("call settle() instead; deprecated since 0.9, goes in 1.0", None),
        ("call settle() instead", "it must end in `deprecated since X.Y, goes in X.Z`"),
        ("call settle() instead; deprecated since 0.3, goes in 0.4", "it has to stay for two minor releases"),
        ("call settle() instead; deprecated since 0.1, goes in 0.3", "it was to go by now"),
    ],
)
def test_marks_of_what_goes(message: str, fault: str | None) -> None:
    assert public_api.fault_of(message, (0, 3)) == fault


def test_what_goes_shows_in_the_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function and a method that are marked."""
    mark = typing_extensions.deprecated("call settle() instead; deprecated since 0.3, goes in 0.5")
    monkeypatch.setattr(toolrun, "finalize", mark(toolrun.finalize))
    monkeypatch.setattr(toolrun.Runner, "run", mark(toolrun.Runner.run))

    assert public_api.deprecations() == dict.fromkeys(
        ["toolrun.Runner.run", "toolrun.finalize"], "call settle() instead; deprecated since 0.3, goes in 0.5"
    )


# -- values -----------------------------------------------------------------------------------

EVENTS = {
    # Events are made in great numbers, and read by name.
    "ApprovalAnswered", "ApprovalRequested", "ArgumentsReplaced", "AttemptEnded", "AttemptStarted", "CallCompleted", "CallDelta", "CallFinalized",
    "CallPreview", "CallRepeated", "CallStarted", "CitationAdded", "Diagnostic", "ProgressReported", "RepairAnswered",
    "TextDelta", "TurnInvalid", "UsageReported",
}  # fmt: skip
POSITIONAL = EVENTS | {
    # One field that says it all.
    "Approve", "Deny", "Refuse", "Renamed",
}  # fmt: skip


def test_dataclasses_are_keyword_only() -> None:
    """A field may be added to a value without breaking who makes it; the exceptions are listed."""
    positional = {
        found.__name__
        for found in CLASSES.values()
        if dataclasses.is_dataclass(found) and not all(field.kw_only for field in dataclasses.fields(found))
    }

    assert positional == POSITIONAL


def test_values_are_frozen() -> None:
    """Only events can be changed: a frozen one costs several times as much to make."""
    mutable = {
        found.__name__
        for found in CLASSES.values()
        if dataclasses.is_dataclass(found) and not found.__dataclass_params__.frozen
    }

    assert mutable == EVENTS


def test_values_are_slotted() -> None:
    """No value takes an attribute that it does not have."""
    with_dict = {found.__name__ for found in CLASSES.values() if dataclasses.is_dataclass(found) and has_dict(found)}

    assert with_dict == set()


def has_dict(found: type) -> bool:
    return any("__dict__" in vars(base) for base in found.__mro__)


# -- errors -----------------------------------------------------------------------------------

CALL = ToolCall(
    id="c1",
    name="pay",
    raw_arguments='{"n": ',
    arguments=None,
    status=CallStatus.INCOMPLETE,
    executable=False,
    code="truncated",
)
ISSUE = ArgumentIssue("truncated", "EOF while parsing a value", "", 6, 1, 7, '{"n": ')

ERRORS: dict[str, ToolrunError] = {
    type(error).__name__: error
    for error in (
        ToolrunError("it went wrong"),
        toolrun.RegistrationError("tool 'pay': no"),
        toolrun.DialectError("tool 'pay': no"),
        toolrun.PluginError("no plugin"),
        toolrun.RunnerClosed("closed"),
        toolrun.FinalizerClosed("closed"),
        toolrun.UnknownWire("no wire"),
        toolrun.StreamInterrupted("the stream broke", turn=None),
        toolrun.TurnPending("c1"),
        toolrun.ApprovalExpired("too late"),
        toolrun.InvalidToken("changed"),
        toolrun.TooManyInvalidTurns("3 turns", turn=None),
        toolrun.ApprovalError("it raised", call=CALL),
        toolrun.CallConflict(key="run:turn:0", tool="pay"),
        toolrun.ExecutorError("the worker process ended"),
        toolrun.JournalError("the disk is full"),
        toolrun.RemoteError("KeyError", "'city'"),
        toolrun.cli.InputError("no such file", place="tools.py", line=3),
        toolrun.CallError("no", call=CALL),
        toolrun.IncompleteCall(call=CALL),
        toolrun.MalformedArguments(call=CALL, issue=ISSUE),
        toolrun.InvalidArguments(call=CALL, tool="pay", issues=[ISSUE]),
        toolrun.NoSuchTool(call=CALL, known=["pay"]),
        toolrun.RepairRefused(call=CALL, hook="mine", reason="no"),
        toolrun.ToolError("no such city"),
        toolrun.TryAgain("busy", after=2.0),
    )
}


def test_every_error_is_here() -> None:
    """A new error joins the tests below."""
    assert set(ERRORS) == {found.__name__ for found in CLASSES.values() if issubclass(found, Exception)}
    assert all(issubclass(found, ToolrunError) for found in CLASSES.values() if issubclass(found, Exception))


@pytest.mark.parametrize("name", ERRORS)
def test_errors_survive_pickling(name: str) -> None:
    """With their message and every attribute."""
    error = ERRORS[name]
    error.add_note("seen in test")
    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CallConflict", "'pay': key run:turn:0 was used before with other arguments; a key is for one call"),
        (
            "IncompleteCall",
            (
                "'pay' (c1): the call was not finished by the model (truncated, no finish reason); 6 characters of arguments"
                " had arrived"
            ),
        ),
        (
            "MalformedArguments",
            (
                "'pay' (c1): EOF while parsing a value (line 1, column 7, character 6, near '{\"n\": ');"
                " expected one JSON object"
            ),
        ),
        ("NoSuchTool", "c1: no tool named 'pay'; registered: pay"),
        ("RepairRefused", "'pay' (c1): repair hook mine refused: no"),
    ],
)
def test_errors_say_what_failed(name: str, text: str) -> None:
    """The message names the call, the tool, and what to look at."""
    assert str(ERRORS[name]) == text


# -- what importing costs ---------------------------------------------------------------------

HEAVY = {
    "anthropic", "docstring_parser", "importlib.metadata", "jsonschema", "jsonschema_rs", "openai", "rich", "sqlite3", "tenacity", "trio",
}  # fmt: skip

IMPORTED = """
import json, sys
before = set(sys.modules)
import toolrun
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def imported(*options: str) -> set[str]:
    done = subprocess.run([sys.executable, *options, "-c", IMPORTED], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_import_is_light() -> None:
    """`import toolrun` imports nothing that only some of its users need."""
    assert imported("-I") & HEAVY == set()


def test_import_warns_of_nothing() -> None:
    """Neither does it import anything deprecated."""
    assert "toolrun" in imported("-I", "-W", "error")
