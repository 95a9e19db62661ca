"""Between a model's stream and your functions.

A tool never runs on arguments that the model did not finish, did not write validly, or that were changed
without a record. Every client call gets exactly one outcome. Every outcome can be sent back.
"""

from toolrun._core.calls import CallStatus, ToolCall, ToolDefinition, ValidatedCall
from toolrun._core.content import File, Image
from toolrun._core.context import ToolContext
from toolrun._core.events import (
    ArgumentsReplaced,
    AttemptEnded,
    AttemptStarted,
    CallCompleted,
    CallDelta,
    CallFinalized,
    CallPreview,
    CallStarted,
    CitationAdded,
    Diagnostic,
    Event,
    FieldAppended,
    FieldChange,
    FieldSet,
    RepairAnswered,
    StreamEvent,
    TextDelta,
    UsageReported,
)
from toolrun._core.exceptions import (
    CallConflict,
    CallError,
    DialectError,
    ExecutorError,
    FinalizerClosed,
    IncompleteCall,
    InvalidArguments,
    MalformedArguments,
    NoSuchTool,
    PluginError,
    RegistrationError,
    RepairRefused,
    RunnerClosed,
    StreamInterrupted,
    ToolError,
    ToolrunError,
    TryAgain,
    TurnPending,
    UnknownWire,
)
from toolrun._core.marks import tool
from toolrun._core.outcomes import (
    Cancelled,
    Deferred,
    Denied,
    Failed,
    Interrupted,
    NotExecuted,
    Outcome,
    Refused,
    Succeeded,
    TimedOut,
)
from toolrun._core.policy import FinishPolicy
from toolrun._core.preview import Preview, PreviewList, PreviewObject
from toolrun._core.records import ArgumentIssue, Edit, Grade, RepairRecord
from toolrun._core.registry import ToolRegistry
from toolrun._core.repair import Fault, Refuse, Renamed, RepairBudget, Repaired, RepairRequest
from toolrun._core.retry import Retry
from toolrun._core.tools import Tool
from toolrun._runtime.events import RunStream
from toolrun._runtime.runner import Runner
from toolrun._runtime.turn import Turn
from toolrun._stream import StreamFinalizer, afinalize, finalize
from toolrun.repairs import RepairedArguments, repair_arguments

__all__ = [
    "ArgumentIssue",
    "ArgumentsReplaced",
    "AttemptEnded",
    "AttemptStarted",
    "CallCompleted",
    "CallConflict",
    "CallDelta",
    "CallError",
    "CallFinalized",
    "CallPreview",
    "CallStarted",
    "CallStatus",
    "Cancelled",
    "CitationAdded",
    "Deferred",
    "Denied",
    "Diagnostic",
    "DialectError",
    "Edit",
    "Event",
    "ExecutorError",
    "Failed",
    "Fault",
    "FieldAppended",
    "FieldChange",
    "FieldSet",
    "File",
    "FinalizerClosed",
    "FinishPolicy",
    "Grade",
    "Image",
    "IncompleteCall",
    "Interrupted",
    "InvalidArguments",
    "MalformedArguments",
    "NoSuchTool",
    "NotExecuted",
    "Outcome",
    "PluginError",
    "Preview",
    "PreviewList",
    "PreviewObject",
    "Refuse",
    "Refused",
    "RegistrationError",
    "Renamed",
    "RepairAnswered",
    "RepairBudget",
    "RepairRecord",
    "RepairRefused",
    "RepairRequest",
    "Repaired",
    "RepairedArguments",
    "Retry",
    "RunStream",
    "Runner",
    "RunnerClosed",
    "StreamEvent",
    "StreamFinalizer",
    "StreamInterrupted",
    "Succeeded",
    "TextDelta",
    "TimedOut",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolDefinition",
    "ToolError",
    "ToolRegistry",
    "ToolrunError",
    "TryAgain",
    "Turn",
    "TurnPending",
    "UnknownWire",
    "UsageReported",
    "ValidatedCall",
    "afinalize",
    "finalize",
    "repair_arguments",
    "tool",
]
