"""`Runner`: streams in, turns out. It owns every task that it starts."""

from __future__ import annotations

import functools
import os
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self, get_args

import anyio
import anyio.to_thread

from toolrun._core.exceptions import RegistrationError, RunnerClosed
from toolrun._core.policy import FinishPolicy
from toolrun._core.repair import HookBinding, RepairBudget, bind
from toolrun._core.tools import check_result_limit
from toolrun._runtime.approvals import matched
from toolrun._runtime.events import RunStream
from toolrun._runtime.journaling import check_journal
from toolrun._runtime.limits import Limits
from toolrun._runtime.listening import checked_listeners
from toolrun._runtime.recovery import read_left
from toolrun._runtime.session import TurnSession
from toolrun._runtime.settings import OnStreamError, Settings, Start
from toolrun._runtime.tokens import checked_key, dump_turn, load_turn
from toolrun.repairs import lossless

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from anyio.from_thread import BlockingPortal

    from toolrun._core.approval import Answer, Approver
    from toolrun._core.calls import ToolCall
    from toolrun._core.listener import Listener
    from toolrun._core.registry import ToolRegistry
    from toolrun._core.repair import RepairHook
    from toolrun._core.seams import Executor, Journal, Wire
    from toolrun._runtime.attempt import Emit
    from toolrun._runtime.recovery import Verify
    from toolrun._runtime.turn import Turn
    from toolrun._runtime.writing import ResultStore
    from toolrun._stream import EndOfStream


class Runner:
    """Finalizes the calls of a stream, checks and repairs them, and runs what is fit.

    Every client call gets exactly one outcome, in call order, whatever its siblings do. Use it as
    `async with Runner(...)`, or as `with Runner(...)` and `run_sync` in code without an event loop.

    Args:
        registry: The tools and their repair hooks.
        repairs: The chain of built-in hooks; hooks of your own can stand in it. Default:
            `toolrun.repairs.lossless()`; `()` turns built-in repair off.
        policy: What to make of a missing or doubtful finish.
        budget: What repair may cost a call.
        max_concurrency: Calls of one turn that run at once.
        timeout: Seconds for an attempt of a tool that has no timeout of its own; None for no limit.
        on_stream_error: What `run` does when the stream raises before its finish: `"raise"` `StreamInterrupted`,
            or `"return"` the turn with incomplete calls.
        close_stream: Close the source on every way out.
        start: `"end"` runs calls when the stream has ended well; `"eager"` runs each as soon as the wire proves it
            whole (a Responses item that is done, an Anthropic block that another one follows). What was started on
            proof stays, whatever the stream does then. Tools with `eager=True` start so in any case.
        executor: Runs the calls of every tool that has no executor of its own; by default async tools run in the loop
            and sync ones in worker threads.
        approver: Decides on the calls of tools that say `approval=True`; without one they are deferred.
        approval_timeout: Seconds within which a deferred call can be approved; None for no limit.
        signing_key: At least 16 bytes, to sign turns that leave the process with `dump_turn`; every process that
            resumes them needs the same.
        limits: How many calls run at once over all turns, and guard rails for loops; see `Limits`.
        result_limit: Characters of a result that the model is told: of a longer one, its head and its tail. None for no
            limit.
        result_store: Called with the outcome and the whole text of a result that is longer; what it returns, such as
            a path, is told to the model as where the whole is. Sync or async.
        journal: Keeps each turn before its first start, each start before the tool, and each outcome before it is
            returned, for `recover`; calls start when the stream has ended. It is not closed with the runner.
        verify: Asked what became of a call with `effect="once"` that began in a process which has ended: `Happened`,
            `NotHappened`, or None if it cannot tell. Sync or async.
        listeners: Told of everything that happens in every turn, for logs, traces and metrics.
        run_id: Part of every key; by default a new random one.

    Raises:
        RegistrationError: A number makes no sense, a hook is not callable, or a listener is none.

    Examples:
        >>> import toolrun
        >>> registry = toolrun.ToolRegistry()
        >>> @registry.tool
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
        >>> response = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
        >>> with toolrun.Runner(registry) as runner:
        ...     turn = runner.run_sync(response)
        >>> turn.outcomes[0].status, turn.outcomes[0].value
        ('succeeded', 3)
    """

    def __init__(  # noqa: PLR0913  # options, each by its name
        self,
        registry: ToolRegistry,
        *,
        repairs: Iterable[RepairHook | HookBinding] | None = None,
        policy: FinishPolicy | None = None,
        budget: RepairBudget | None = None,
        max_concurrency: int = 16,
        timeout: float | None = 60.0,
        on_stream_error: OnStreamError = "raise",
        close_stream: bool = True,
        start: Start = "end",
        executor: Executor | None = None,
        approver: Approver | None = None,
        approval_timeout: float | None = None,
        signing_key: bytes | None = None,
        limits: Limits | None = None,
        result_limit: int | None = 100_000,
        result_store: ResultStore | None = None,
        journal: Journal | None = None,
        verify: Verify | None = None,
        listeners: Iterable[Listener] = (),
        run_id: str | None = None,
    ) -> None:
        """See the class."""
        if max_concurrency < 1 or (timeout is not None and not timeout > 0):
            raise RegistrationError("Runner needs max_concurrency >= 1 and a timeout > 0 or None")
        check_result_limit("Runner", result_limit)
        if on_stream_error not in get_args(OnStreamError):
            raise RegistrationError(
                f"on_stream_error must be one of {get_args(OnStreamError)}, not {on_stream_error!r}"
            )
        if start not in get_args(Start):
            raise RegistrationError(f"start must be one of {get_args(Start)}, not {start!r}")
        if policy is not None and not isinstance(policy, FinishPolicy):
            raise RegistrationError(f"policy must be a FinishPolicy, not {policy!r}")
        if approver is not None and not callable(approver):
            raise RegistrationError(f"approver must be an Approver, not {approver!r}")
        if approval_timeout is not None and not approval_timeout > 0:
            raise RegistrationError("Runner needs an approval_timeout > 0 or None")
        if limits is not None and not isinstance(limits, Limits):
            raise RegistrationError(f"limits must be a Limits, not {limits!r}")
        check_journal(journal, verify, start)
        chain = lossless() if repairs is None else repairs
        self._settings = Settings(
            registry=registry,
            run_id=run_id or _random_id(),
            policy=policy or FinishPolicy(),
            repairs=tuple(hook if isinstance(hook, HookBinding) else bind(hook) for hook in chain),
            budget=budget or RepairBudget(),
            max_concurrency=max_concurrency,
            timeout=timeout,
            on_stream_error=on_stream_error,
            close_stream=close_stream,
            start=start,
            executor=executor,
            approver=approver,
            approval_timeout=approval_timeout,
            signing_key=checked_key(signing_key),
            limits=limits or Limits(),
            result_limit=result_limit,
            result_store=result_store,
            journal=journal,
            verify=verify,
            listeners=checked_listeners(listeners),
        )
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._closed = False

    @property
    def run_id(self) -> str:
        """Part of the key of every call that this runner runs."""
        return self._settings.run_id

    @property
    def abandoned(self) -> int:
        """How many worker threads still run for calls that timed out or were cancelled."""
        return self._settings.abandoned

    async def run(
        self,
        source: object,
        *,
        deps: object = None,
        wire: str | Wire = "auto",
        end: EndOfStream = "auto",
        turn_id: str | None = None,
    ) -> Turn:
        """Read a stream to its end and run its calls.

        Args:
            source: An SDK's stream, sync or async; any iterator of events, bytes or text; one whole response.
            deps: Given to tools as `ToolContext.deps`.
            wire: `"auto"`, a wire's name, or a `Wire`.
            end: How the source ended; `"auto"` finds out.
            turn_id: Part of the calls' keys; by default a new random one.

        Returns:
            The turn, with one outcome a client call, in call order.

        Raises:
            StreamInterrupted: The stream raised before its finish; nothing was started, `.turn` has what came.
            TooManyInvalidTurns: As `Limits` says; `.turn` has the outcomes.
            UnknownWire: Nothing that came was recognised.
            TypeError: `source` is not a source.
            RunnerClosed: The runner's block was left.
        """
        return await self._session(deps, wire, turn_id).consume(source, end=end)

    def stream(
        self,
        source: object,
        *,
        deps: object = None,
        wire: str | Wire = "auto",
        end: EndOfStream = "auto",
        turn_id: str | None = None,
        previews: bool = False,
    ) -> RunStream:
        """The same as `run`, with its events: `async with runner.stream(...) as run: async for event in run: ...`.

        Args:
            source: As for `run`, as are the others.
            deps: As for `run`.
            wire: As for `run`.
            end: As for `run`.
            turn_id: As for `run`.
            previews: True puts a `CallPreview` after each event that changed what there is to show of a call.

        Raises:
            RunnerClosed: The runner's block was left.
        """

        def make_session(emit: Emit) -> TurnSession:
            return self._session(deps, wire, turn_id, emit)

        return RunStream(make_session, source, end, previews=previews)

    async def execute(
        self, calls: Sequence[ToolCall], *, deps: object = None, wire: str | Wire = "auto", turn_id: str | None = None
    ) -> Turn:
        """Run calls that were finalized elsewhere, the same way.

        Args:
            calls: As `finalize` gives them.
            deps: As for `run`.
            wire: What `turn.messages()` writes; needed only for that.
            turn_id: As for `run`.

        Raises:
            RunnerClosed: The runner's block was left.
        """
        return await self._session(deps, wire, turn_id).execute(calls)

    async def resume(self, turn: Turn | str, answers: Mapping[str | int, Answer], *, deps: object = None) -> Turn:
        """Take the deferred calls of a turn on, with the answers that they waited for.

        A call runs with exactly the arguments that were asked about, validated once more, under the same key; or with
        those of `Approve(arguments=…)`. Whoever resumes the same turn twice runs its calls twice, as far as the
        executor does not join by key.

        Args:
            turn: The turn, or what `dump_turn` made of it, in whatever process.
            answers: `Approve`, `Deny` or `Result` by call id, or by position. Calls without an answer stay deferred.
            deps: As for `run`.

        Returns:
            A turn with every outcome so far; it is still pending if calls are left.

        Raises:
            ValueError: No pending call has that id, or the answer cannot be one for that call. Nothing ran.
            ApprovalExpired: `approval_timeout` is over, and an answer does not deny. Nothing ran.
            InvalidToken: The text was changed, or signed with another key.
            RunnerClosed: The runner's block was left.
        """
        if isinstance(turn, str):
            turn = self.load_turn(turn)
        session = self._session_of(turn, deps)
        return await session.resume(turn, matched(turn, answers, session.registry))

    async def recover(self, *, deps: object = None) -> AsyncIterator[Turn]:
        """Take on what earlier processes left behind, one turn after another, the oldest first.

        A call whose outcome is recorded keeps it, and one that never began is run. One that began and has no outcome
        is run again if its effect was `idempotent` (with the same key) or `pure`; with `once` it is `Interrupted`,
        unless `verify` knows better. Turns that wait for answers come as they are, for `resume`. A turn that was
        handed over just before the process ended may come once more.

        Args:
            deps: As for `run`.

        Yields:
            Each turn with its outcomes, as `run` would have returned it.

        Raises:
            JournalError: The journal cannot be read or written.
            UnknownWire: A turn came over a wire that is not registered here.
            RegistrationError: The runner has no journal.
            RunnerClosed: The runner's block was left.
        """
        journal = self._settings.journal
        if journal is None:
            raise RegistrationError("recover reads a journal: Runner(…, journal=…)")
        for key in await journal.unsettled():
            entry = None if key in self._settings.running else await journal.turn(key)
            if entry is not None and not entry.finished:  # it may have come to its end since
                left = read_left(entry)
                yield await self._session_of(left.turn, deps).recover(left)

    def resume_sync(self, turn: Turn | str, answers: Mapping[str | int, Answer], *, deps: object = None) -> Turn:
        """`resume` for code without an event loop, as `run_sync` is for `run`.

        Args:
            turn: As for `resume`, as are the others.
            answers: As for `resume`.
            deps: As for `resume`.

        Raises:
            ValueError: As for `resume`.
            ApprovalExpired: As for `resume`.
            InvalidToken: As for `resume`.
            RunnerClosed: As for `resume`.
        """
        return self._block(functools.partial(self.resume, turn, answers, deps=deps))

    def dump_turn(self, turn: Turn) -> str:
        """Write a turn as text that can leave the process, signed with the runner's `signing_key`.

        The text is not encrypted: it holds the calls, their arguments and results. Results become JSON values, and
        exceptions stay behind.

        Args:
            turn: Usually one that is pending.

        Raises:
            RegistrationError: The runner has no `signing_key`.
        """
        return dump_turn(turn, self._signing_key())

    def load_turn(self, token: str) -> Turn:
        """Read a turn that `dump_turn` wrote, here or in another process.

        Args:
            token: The text.

        Raises:
            InvalidToken: It was changed, was signed with another key, or is no such text.
            UnknownWire: It came over a wire that is not registered here.
            RegistrationError: The runner has no `signing_key`.
        """
        return load_turn(token, self._signing_key())

    def _signing_key(self) -> bytes:
        key = self._settings.signing_key
        if key is None:
            raise RegistrationError("a turn that leaves the process is signed: Runner(…, signing_key=…)")
        return key

    def run_sync(
        self,
        source: object,
        *,
        deps: object = None,
        wire: str | Wire = "auto",
        end: EndOfStream = "auto",
        turn_id: str | None = None,
    ) -> Turn:
        """`run` for code without an event loop; it blocks until the turn is done.

        The runner keeps one event loop in a thread of its own for all calls inside its `with` block, so async
        clients that tools hold on to stay usable. Inside a running loop it works too, and blocks that loop.

        Args:
            source: As for `run`, as are the others.
            deps: As for `run`.
            wire: As for `run`.
            end: As for `run`.
            turn_id: As for `run`.

        Raises:
            StreamInterrupted: As for `run`.
            UnknownWire: As for `run`.
            TypeError: As for `run`.
            RunnerClosed: The runner's block was left.
        """
        return self._block(functools.partial(self.run, source, deps=deps, wire=wire, end=end, turn_id=turn_id))

    def _block(self, call: Callable[[], Awaitable[Turn]]) -> Turn:
        self._check_open()
        if self._portal is not None:
            return _run_in(self._portal, call)
        with _start_portal() as portal:
            return _run_in(portal, call)

    def __enter__(self) -> Self:
        """Start the event loop that `run_sync` uses."""
        self._check_open()
        self._portal = self._stack.enter_context(_start_portal())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop it."""
        self._closed = True
        self._portal = None
        self._stack.__exit__(kind, error, traceback)  # leaving with an error cancels what still runs
        for executor in self._settings.own_processes():
            executor.close()

    async def __aenter__(self) -> Self:
        """Use the event loop that is running."""
        self._check_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Refuse further runs, and end the processes that were started for its tools."""
        self._closed = True
        for executor in self._settings.own_processes():
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(executor.close)

    def _session(
        self,
        deps: object,
        wire: str | Wire,
        turn_id: str | None,
        emit: Emit | None = None,
        run_id: str | None = None,
    ) -> TurnSession:
        self._check_open()
        return TurnSession(
            self._settings, deps=deps, wire=wire, turn_id=turn_id or _random_id(), emit=emit, run_id=run_id
        )

    def _session_of(self, turn: Turn, deps: object) -> TurnSession:
        return self._session(deps, turn.wire or "auto", turn.turn_id, run_id=turn.run_id)

    def _check_open(self) -> None:
        if self._closed:
            raise RunnerClosed("this runner's block was left; make a new Runner")


def _random_id() -> str:
    return os.urandom(16).hex()


def _start_portal() -> AbstractContextManager[BlockingPortal]:
    from anyio.from_thread import start_blocking_portal  # noqa: PLC0415  # it imports asyncio

    return start_blocking_portal()


def _run_in(portal: BlockingPortal, call: Callable[[], Awaitable[Turn]]) -> Turn:
    ended = threading.Event()

    async def run() -> Turn:
        try:
            return await call()
        finally:
            ended.set()

    future = portal.start_task_soon(run)
    try:
        return future.result()
    except BaseException:
        # Ctrl-C, or a timeout raised in the caller's thread: the turn is cancelled, and awaited.
        if future.cancel():
            ended.wait()
        raise
