"""The built-in repair chain: hooks that lose nothing, or answer nothing.

Each strategy gives the edits that it made; the check in the core, not the strategy, decides that
nothing was lost. Text inside strings is never touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolrun._core.repair import Fault, bind
from toolrun.repairs.noise import outer_noise
from toolrun.repairs.punctuation import trailing_comma

if TYPE_CHECKING:
    from toolrun._core.repair import HookBinding

__all__ = ["lossless", "outer_noise", "trailing_comma"]


def lossless() -> tuple[HookBinding, ...]:
    """The built-in chain, in order; what `Runner` uses unless it is given `repairs=`.

    Examples:
        >>> [binding.name for binding in lossless()]
        ['outer_noise', 'trailing_comma']
    """
    return tuple(bind(hook, on=(Fault.PARSE,), builtin=True) for hook in (outer_noise, trailing_comma))
