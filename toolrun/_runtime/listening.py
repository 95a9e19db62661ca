"""Telling listeners of a turn: what they raise is logged, and costs the turn nothing."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from toolrun._core.events import CallDelta, CitationAdded, TextDelta, UsageReported
from toolrun._core.exceptions import RegistrationError
from toolrun._core.listener import Listener

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from toolrun._core.calls import ValidatedCall
    from toolrun._core.events import Event
    from toolrun._core.outcomes import Outcome
    from toolrun._core.registry import ToolRegistry
    from toolrun._runtime.attempt import Emit

_PIECES: Final = (CallDelta, TextDelta, CitationAdded, UsageReported)


def checked_listeners(listeners: Iterable[Listener]) -> tuple[Listener, ...]:
    """The listeners of a runner.

    Raises:
        RegistrationError: One of them is none.
    """
    given: tuple[object, ...] = tuple(listeners)
    for one in given:
        if not isinstance(one, Listener):
            raise RegistrationError(f"listeners must be objects of subclasses of toolrun.abc.Listener, not {one!r}")
    return tuple(one for one in given if isinstance(one, Listener))


class Listening:
    """Those who listen to one turn: the runner's listeners, and whoever follows it with `Runner.stream`."""

    def __init__(self, listeners: tuple[Listener, ...], turn: str, follower: Emit | None) -> None:
        self._listeners = listeners
        self._for_pieces = tuple(one for one in listeners if one.deltas)
        self._turn = turn
        self._follower = follower

    @property
    def deltas(self) -> bool:
        """True if somebody wants the pieces as they come."""
        return self._follower is not None or bool(self._for_pieces)

    def begin(self, registry: ToolRegistry, outcomes: Sequence[Outcome]) -> None:
        """Tell the listeners that the turn begins."""
        for listener in self._listeners:
            try:
                listener.on_begin(self._turn, registry, outcomes)
            except Exception as error:  # noqa: BLE001  # as below
                _log(listener, error)

    def emit(self, event: Event) -> None:
        """Tell everybody."""
        if self._follower is not None:
            self._follower(event)
        for listener in self._for_pieces if isinstance(event, _PIECES) else self._listeners:
            try:
                listener.on_event(event, self._turn)
            except Exception as error:  # noqa: BLE001  # a listener cannot break a run
                _log(listener, error)

    @contextmanager
    def around(self, call: ValidatedCall, key: str) -> Iterator[None]:
        """Run a call in the contexts that the listeners give it."""
        # What they do to the call reaches neither the tool nor the record.
        told = call._replace(arguments=copy.deepcopy(call.arguments), bound=MappingProxyType(call.bound))
        entered = [(listener, context) for listener in self._listeners if (context := _enter(listener, told, key))]
        try:
            yield
        finally:
            for listener, context in reversed(entered):
                try:
                    context.__exit__(None, None, None)
                except Exception as error:  # noqa: BLE001  # as above
                    _log(listener, error)

    def end(self, outcomes: Sequence[Outcome]) -> None:
        """Tell the listeners that the turn is over."""
        for listener in self._listeners:
            try:
                listener.on_end(self._turn, outcomes)
            except Exception as error:  # noqa: BLE001  # as above
                _log(listener, error)


def _enter(listener: Listener, call: ValidatedCall, key: str) -> AbstractContextManager[object] | None:
    try:
        context = listener.around(call, key)
        context.__enter__()
    except Exception as error:  # noqa: BLE001  # as above
        _log(listener, error)
        return None
    return context


def _log(listener: Listener, error: Exception) -> None:
    import logging  # noqa: PLC0415  # needed only after a failure

    logging.getLogger("toolrun").error("the listener %r raised", listener, exc_info=error)
