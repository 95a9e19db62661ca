"""What a rule of `schema_reading` is: it proposes other texts for a value that does not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from toolrun._core.repair import Declined

if TYPE_CHECKING:
    from toolrun.repairs._nodes import Node
    from toolrun.repairs._places import Schema

Proposal: TypeAlias = tuple[str, str] | Declined
"""The code of an edit and the value's other text; or why there is none."""

Rule: TypeAlias = "Callable[[Node, Schema], Sequence[Proposal]]"
