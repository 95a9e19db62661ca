"""`Reask`: the hook."""

from __future__ import annotations

import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import anyio.to_thread

from toolrun import Repaired, RepairRequest
from toolrun_reask._answers import read_answer
from toolrun_reask._messages import (
    declared,
    force_tool,
    known_wire,
    opening_again,
    opening_of,
    write_messages,
)

Ask: TypeAlias = Callable[..., Any]
"""`ask(messages)`, or with `forced=True` `ask(messages, **fields)`; sync or async."""

_REMEMBERED_TURNS: Final = 1_024


class Reask:
    """Ask a model for the arguments again, and take the answer if it fits.

    The hook's answers are graded `hook` unless `grade` says otherwise: a tool with `repair="never"` takes none of
    them. Register it for the faults that a model can mend:
    `registry.repair(on=["parse", "not_object", "schema"])(Reask(ask))`. Name `"incomplete"` too if calls that were cut are
    to be asked for anew; the whole call is written again then, nothing is closed or filled in.

    Args:
        ask: Your own callable. It is given the messages, puts the conversation before them if it likes, and returns
            the answer: a text, the arguments as a dict, or a response of any SDK, streamed or whole. Sync ones run
            in a worker thread. What it raises is recorded, and the next hook is asked.
        wire: The provider that the messages (and fields) are for; a name in `WIRES`.
        forced: True gives `ask` the request fields too that leave the model one tool to call: `ask(messages, **fields)`.
        attempts: Questions for one call.
        per_turn: Questions for all calls of one response together.
        max_quoted: Characters of what the model wrote that go into a question.
        grade: What the answers are worth to a tool's repair floor: `"hook"`, `"schema_unique"` or `"lossy"`.

    Raises:
        ValueError: A limit makes no sense, or nothing is known of the wire.

    Examples:
        >>> from toolrun import Runner, ToolRegistry
        >>> registry = ToolRegistry()
        >>> @registry.tool
        ... def search(query: str) -> str:
        ...     return f"hits for {query}"
        >>> def ask(messages):  # here your client is called
        ...     return '{"query": "fjord"}'
        >>> hook = registry.repair(on=["parse", "not_object", "schema"])(Reask(ask))
        >>> call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"find": "fjord"}'}}
        >>> response = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
        >>> with Runner(registry) as runner:
        ...     (outcome,) = runner.run_sync(response).outcomes
        >>> outcome.value, outcome.grade.value, outcome.repairs[-1].note
        ('hits for fjord', 'hook', 'asked again once')
    """

    def __init__(
        self,
        ask: Ask,
        *,
        wire: str = "openai-chat",
        forced: bool = False,
        attempts: int = 2,
        per_turn: int = 6,
        max_quoted: int = 4_000,
        grade: Literal["hook", "schema_unique", "lossy"] = "hook",
    ) -> None:
        """See the class."""
        known_wire(wire)
        given: object = ask
        if not callable(given) or min(attempts, per_turn, max_quoted) < 1 or grade not in _GRADES:
            raise ValueError(
                "Reask needs a callable, limits of at least 1, and one of the grades " + ", ".join(_GRADES)
            )
        self._ask = ask
        self._wire = wire
        self._forced = forced
        self._attempts = attempts
        self._max_quoted = max_quoted
        self._grade = grade
        self._turns = _Counter(per_turn)

    async def __call__(self, request: RepairRequest) -> Repaired | None:
        """Answer a request; None if there is no tool to ask for, or no question left.

        Raises:
            Exception: What `ask` raises, and what is wrong with the form of its answer.
        """
        definition = request.definition
        if definition is None:
            return None
        tool = declared(definition)
        fields = force_tool(definition, self._wire) if self._forced else {}
        opening, raw, last = opening_of(request), request.call.raw_arguments, None
        asked = 0
        while asked < self._attempts and self._turns.take(request):
            asked += 1
            messages = write_messages(
                self._wire, definition, opening=opening, raw=raw, max_quoted=self._max_quoted, forced=self._forced
            )
            read = await read_answer(await self._answer(messages, fields), tool)
            if read.arguments is not None:
                return Repaired(text=read.arguments, grade=self._grade, note=_note(asked))
            opening, last = opening_again(definition, read.message), read.raw
            raw = raw if last is None else last
        # It does not fit; the runner finds that too, and puts it on record.
        return None if last is None else Repaired(text=last, grade=self._grade, note=_note(asked))

    async def _answer(self, messages: list[dict[str, Any]], fields: dict[str, Any]) -> object:
        if _is_async(self._ask):
            answer = self._ask(messages, **fields)
        else:  # in a tuple, because trio takes no awaitable out of a thread
            (answer,) = await anyio.to_thread.run_sync(lambda: (self._ask(messages, **fields),), abandon_on_cancel=True)
        return await answer if inspect.isawaitable(answer) else answer


_GRADES: Final = ("hook", "schema_unique", "lossy")


class _Counter:
    """Counts questions by response, which is known by the calls in it. The oldest ones are forgotten."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._asked: OrderedDict[frozenset[tuple[int, str, str]], int] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, request: RepairRequest) -> bool:
        """Take one question, if there is one left."""
        calls = (request.call, *request.siblings)
        turn = frozenset((call.position, call.id, call.raw_arguments) for call in calls)
        with self._lock:
            asked = self._asked.pop(turn, 0)
            self._asked[turn] = min(asked + 1, self._most)
            if len(self._asked) > _REMEMBERED_TURNS:
                self._asked.popitem(last=False)
        return asked < self._most


def _note(asked: int) -> str:
    return f"asked again {'once' if asked == 1 else f'{asked} times'}"


def _is_async(ask: Ask) -> bool:
    return inspect.iscoroutinefunction(ask) or inspect.iscoroutinefunction(getattr(ask, "__call__", None))  # noqa: B004
