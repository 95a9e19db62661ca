"""Retry: the same arguments again. Numbers and predicates; the runner does the waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from toolrun._core.exceptions import RegistrationError, TryAgain

if TYPE_CHECKING:
    from toolrun._core.calls import Effect

RetryOn: TypeAlias = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]
"""An exception class, several, or a predicate over the exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """When a failed call is run again. Only for tools whose effect is `idempotent` or `pure`.

    Args:
        on: The exceptions worth another try; there is no default, it is a decision about the tool.
        attempts: Tries in all, the first included.
        wait: Seconds before the second try; doubled for each further one.
        max_wait: The longest wait, in seconds.
        timeout: Seconds for all tries and waits together; no try begins after them. None for no limit.

    Raises:
        RegistrationError: A number makes no sense.

    Examples:
        >>> policy = Retry(on=(ConnectionError, TimeoutError), attempts=4)
        >>> policy.wants(ConnectionResetError()), policy.wants(ValueError())
        (True, False)
    """

    on: RetryOn
    attempts: int = 3
    wait: float = 0.2
    max_wait: float = 10.0
    timeout: float | None = 60.0

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        if self.attempts < 1 or self.wait < 0 or self.max_wait < 0 or (self.timeout is not None and self.timeout <= 0):
            raise RegistrationError(f"Retry needs attempts >= 1, waits >= 0 and a timeout > 0 or None, not {self!r}")

    def wants(self, error: BaseException | None) -> bool:
        """Tell whether this error is worth another try."""
        if not isinstance(error, Exception):
            return False
        if isinstance(self.on, type | tuple):
            return isinstance(error, self.on)
        try:
            return bool(self.on(error))
        except Exception:  # noqa: BLE001  # a predicate that fails decides nothing: the tool's failure stands
            return False


TRY_AGAIN: Final = Retry(on=TryAgain, attempts=3, timeout=30.0)
"""What applies when a tool raises `TryAgain` and has no policy of its own."""

STARTS: Final = 3
"""How often a call that may run again is begun in all, if its tool's `Retry` does not allow more: one that takes its
process down each time has to end some day."""


def starts(effect: Effect, attempts: int) -> int:
    """How often a call may be begun in all, where the processes that run it end without a word.

    Args:
        effect: What running it again would do.
        attempts: How many attempts its tool's `Retry` allows; 1 without one.
    """
    return 1 if effect == "once" else max(STARTS, attempts)
