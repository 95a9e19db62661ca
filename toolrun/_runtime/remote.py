"""Calls that run in another process: what is sent there, what runs it, and what comes back. Texts are JSON."""

from __future__ import annotations

import json
import traceback
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from toolrun._core import results
from toolrun._core.calls import CallStatus, ToolCall
from toolrun._core.context import ToolContext
from toolrun._core.events import AttemptEnded
from toolrun._core.examining import Candidate, examine
from toolrun._core.exceptions import ExecutorError, PluginError, RemoteError, ToolError, TryAgain
from toolrun._core.outcomes import Failed, Succeeded
from toolrun._core.policy import FinishPolicy
from toolrun._core.repair import RepairBudget, digest
from toolrun._core.seams import Invocation, Job
from toolrun._runtime.attempt import run_attempts, was_begun
from toolrun._runtime.limits import passed
from toolrun._runtime.packing import pack_outcome, unpack_outcome
from toolrun._runtime.progress import Reporter
from toolrun._runtime.settings import Settings
from toolrun._runtime.writing import written_down

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolrun._core.calls import Effect, ToolDefinition, ValidatedCall
    from toolrun._core.events import Event
    from toolrun._core.outcomes import Outcome
    from toolrun._core.registry import ToolRegistry
    from toolrun._core.seams import Executor
    from toolrun._core.tools import Tool

_FORMAT: Final = 1
"""What is written here; a release that writes something else counts on."""

_TRACEBACK_CHARACTERS: Final = 8_000
"""How much of a traceback comes back: its end, where the error is. A recursion can make one of megabytes."""

_OWN: Final[Mapping[str, type[Exception]]] = {
    cls.__name__: cls for cls in (ToolError, TryAgain, TimeoutError, ExecutorError)
}
"""Errors that come back as what they are; others as a `RemoteError`."""


def write_job(job: Job) -> str:
    """Write a job for the process that is to run it.

    Args:
        job: As an executor gets it. Its function stays here; the other process looks the tool up by its name.

    Returns:
        JSON text of ASCII characters.
    """
    return _written(
        {
            "format": _FORMAT,
            "key": job.key,
            "tool": job.tool,
            "call_id": job.call.id,
            "arguments": job.arguments,
            "effect": job.effect,
            "attempts": job.attempts,
            "timeout": job.timeout,
            "definition": None if job.definition is None else _fingerprint(job.definition, job.effect),
        }
    )


def is_same_call(text: str, job: Job) -> bool:
    """Tell whether a text is of the same call: the same tool with the same arguments.

    Args:
        text: What `write_job` gave for a job with the same key, in whatever process.
        job: The job.
    """
    try:
        fields = json.loads(text)
    except ValueError:
        return False
    return isinstance(fields, dict) and (fields.get("tool"), fields.get("arguments")) == (job.tool, job.arguments)


def read_remote_outcome(text: str, job: Job) -> Outcome:
    """Read what became of a job in another process.

    Args:
        text: What `JobRunner.run` gave.
        job: The job.

    Returns:
        The outcome. Values have become JSON values; an error is a `ToolError`, `TryAgain`, `TimeoutError` or
        `ExecutorError` with its message, or a `RemoteError`, with the traceback in its notes.

    Raises:
        ValueError: The text is something else.
    """
    try:
        fields = json.loads(text)
        outcome = unpack_outcome(fields, job.call)
        error = None if fields["error"] is None else _read_error(fields["error"])
    except (KeyError, TypeError) as reason:
        raise ValueError(f"not the outcome of a job: {text[:80]!r}") from reason
    return replace(outcome, error=error)


class JobRunner:
    """Runs jobs that came from another process, with the tools of this one: the other end of an executor.

    It does what a runner does between validation and outcome: the arguments are checked against the tool's schema,
    attempts have the job's deadline, the tool's own `Retry` decides on further ones, and `max_concurrency` holds here,
    too. Repair hooks and approvers are not asked; that was done before the job was sent. A tool whose executor is
    `durable` runs in this process all the same.

    Not promised: progress that a tool tells is told to nobody, and that a job runs only once; its sender sees to that.

    Args:
        registry: The tools.
        deps: What tools get as `context.deps`, for every job.
        answer_limit: Characters of an answer. A result that makes a longer one is `failed` (`unserialisable`); None for
            no limit.

    Examples:
        >>> import asyncio
        >>> from toolrun import CallStatus, ToolCall, ToolRegistry
        >>> from toolrun.abc import Job
        >>> from toolrun.remote import JobRunner, read_outcome, write_job
        >>> registry = ToolRegistry()
        >>> @registry.tool
        ... def double(n: int) -> int:
        ...     '''Twice the number.'''
        ...     return 2 * n
        >>> call = ToolCall(
        ...     id="c1", name="double", raw_arguments='{"n": 4}', arguments={"n": 4}, status=CallStatus.OK, executable=True
        ... )
        >>> job = Job(key="run:turn:0", tool="double", call=call, arguments='{"n": 4}')
        >>> text = asyncio.run(JobRunner(registry).run(write_job(job)))
        >>> read_outcome(text, job).value
        8
    """

    def __init__(self, registry: ToolRegistry, *, deps: object = None, answer_limit: int | None = None) -> None:
        """See the class."""
        self._answer_limit = answer_limit
        self._registry = registry
        self._deps = deps
        self._settings = Settings(
            registry=registry,
            run_id="",
            policy=FinishPolicy(),
            repairs=(),
            budget=RepairBudget(),
            max_concurrency=1,
            timeout=None,
            on_stream_error="raise",
            close_stream=True,
            start="end",
            executor=None,
        )

    async def run(self, text: str, *, attempt: int = 1) -> str:
        """Run a job to its outcome.

        Args:
            text: What `write_job` gave.
            attempt: The how manieth start of this job this is, if processes that ran it before ended without a word.

        Returns:
            The outcome as JSON text of ASCII characters, for `read_outcome`. Whatever goes wrong is in it; only
            cancellation is raised.
        """
        try:
            job, fingerprint = _read_job(text, attempt)
        except (ValueError, KeyError, TypeError) as error:
            job = Job(key="", tool="", call=_call("", "", ""), arguments="", attempt=attempt)
            why = f"the job cannot be read here, another release of toolrun may have written it: {error!r}"
            return _reply(_not_run(job, why, "its worker cannot read it."))
        try:
            outcome = await self._run(job, fingerprint)
            answer = _reply(outcome)
        except Exception as error:  # noqa: BLE001  # a fault in here, or in a seam, costs one call
            message = results.error_text(error, may_have_run=job.effect != "pure")
            return _reply(
                Failed(call=job.call, error=error, code="internal", message=message, started=True, key=job.key)
            )
        if self._answer_limit is None or len(answer) <= self._answer_limit:
            return answer
        return _reply(_too_large(outcome, len(answer), self._answer_limit))

    async def _run(self, job: Job, fingerprint: str | None) -> Outcome:
        if job.tool not in self._registry:
            known = ", ".join(self._registry.names) or "none"
            return _not_run(job, f"the worker has no such tool; it has: {known}", "its worker does not have this tool.")
        tool = self._registry[job.tool]
        if fingerprint not in (None, _fingerprint(tool.definition, tool.effect)):
            why = "the worker's tool has another schema or effect than the one that the model was told of"
            return _not_run(
                job, f"{why}; use the same tools on both sides", "its worker has another version of this tool."
            )
        finding = examine(job.call, Candidate(job.arguments, rewritten=True, renamed=job.tool), self._registry)
        if finding.validated is None:
            return _not_run(job, str(finding.error), "its worker does not take these arguments.")
        if tool.function is None:
            return _not_run(job, "the worker has only its declaration", "its worker cannot run this tool.")
        try:
            executor = self._executor_for(tool)
        except PluginError as error:
            return _not_run(job, str(error), "its worker cannot run this tool.")
        async with AsyncExitStack() as stack:
            await passed(stack, self._settings.gates.of(tool))
            outcome = await self._attempts(job, tool, finding.validated, executor)
        return await written_down(outcome, finding.validated, limit=None, store=None)

    async def _attempts(self, job: Job, tool: Tool, validated: ValidatedCall, executor: Executor) -> Outcome:
        reports: list[Reporter] = []
        before = job.attempt - 1

        def make_job(count: int) -> Job:
            reports.append(report := Reporter(None, 0, tool.name, count + before))
            context = ToolContext(
                deps=self._deps, call_id=job.call.id, tool=tool.name, key=job.key, attempt=count + before, report=report
            )
            # Values anew for every attempt: the tool may have changed those of the last one.
            bound = cast("Mapping[str, object]", tool.validator.validate(validated.text, validated.arguments))
            args, kwargs = tool.bind(bound, None if tool.signature.context is None else context)
            return job._replace(
                attempt=count + before, invocation=Invocation(tool.runnable(report), args, kwargs, tool.is_async)
            )

        def emit(event: Event) -> None:
            if isinstance(event, AttemptEnded):
                reports[-1].close()

        try:
            outcome = await run_attempts(make_job, tool, executor, emit)
        finally:
            reports[-1].close()
        return replace(outcome, attempts=before + len(reports)) if before and was_begun(outcome) else outcome

    def _executor_for(self, tool: Tool) -> Executor:
        chosen = self._settings.executor_for(tool)
        # Such a one would send the job on, and wait for itself.
        return self._settings.executor_for(replace(tool, executor=None)) if chosen.durable else chosen


def _fingerprint(definition: ToolDefinition, effect: Effect) -> str:
    """What both sides have to agree about: what arguments mean, and whether they may run twice."""
    told = [definition.name, definition.input_schema, effect]
    return digest(json.dumps(told, separators=(",", ":"), sort_keys=True))


def _read_job(text: str, attempt: int) -> tuple[Job, str | None]:
    """The job, and the fingerprint of the tool that it was made for."""
    fields: dict[str, Any] = json.loads(text)
    if fields["format"] != _FORMAT:
        raise ValueError(f"format {fields['format']!r} instead of {_FORMAT}")
    job = Job(
        key=fields["key"],
        tool=fields["tool"],
        call=_call(fields["call_id"], fields["tool"], fields["arguments"]),
        arguments=fields["arguments"],
        effect=fields["effect"],
        attempt=attempt,
        attempts=fields["attempts"],
        timeout=fields["timeout"],
    )
    return job, fields["definition"]


def _call(id: str, tool: str, arguments: str) -> ToolCall:
    """The call as far as a worker needs it: what the model wrote stays with the agent."""
    return ToolCall(id=id, name=tool, raw_arguments=arguments, arguments=None, status=CallStatus.OK, executable=True)


def _not_run(job: Job, error: str, told: str) -> Failed:
    return Failed(
        call=job.call,
        error=ExecutorError(f"{job.tool!r} ({job.call.id}): {error}"),
        code="not_dispatched",
        message=results.NOT_RUN + told,
        attempts=job.attempt - 1,
        key=job.key,
    )


def _too_large(outcome: Outcome, length: int, limit: int) -> Failed:
    text = f"{outcome.tool!r}: its answer has {length:,} characters, and at most {limit:,} can be sent back"
    return Failed(
        call=outcome.call,
        error=ExecutorError(text),
        code="unserialisable",
        message="The tool ran, but its result is too large to be sent back.",
        attempts=outcome.attempts,
        started=True,
        key=outcome.key,
    )


def _reply(outcome: Outcome) -> str:
    """Write an outcome; what its sender knows, or can tell from the value, is left out."""
    short = replace(outcome, arguments=None, repairs=(), grade=None, tool=None)
    packed = pack_outcome(short)
    if isinstance(outcome, Succeeded) and not outcome.parts:
        value = unpack_outcome(packed, outcome.call).value
        if results.value_text(value) == outcome.message and not results.value_parts(value):
            packed = pack_outcome(replace(short, message=""))
    return _written({**packed, "error": None if outcome.error is None else _packed_error(outcome.error)})


def _packed_error(error: BaseException) -> Mapping[str, str]:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # an error that cannot say what it is, is still that error
        text = ""
    trace = "".join(traceback.format_exception(error)) if error.__traceback__ else ""
    return {"type": type(error).__name__, "text": text, "traceback": trace[-_TRACEBACK_CHARACTERS:]}


def _read_error(packed: Mapping[str, str]) -> Exception:
    own = _OWN.get(packed["type"])
    error = RemoteError(packed["type"], packed["text"]) if own is None else own(packed["text"])
    if packed["traceback"]:
        error.add_note(f"in its worker process:\n{packed['traceback']}")
    return error


def _written(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
