"""The built-in repair chain: hooks that lose nothing, or find the only reading that the schema allows.

Each strategy gives the edits that it made; checks in the core, not the strategy, decide on the grade. Text inside of
strings is never edited as if it stood outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolrun._core.repair import Fault, bind
from toolrun.repairs._bare_values import bare_values
from toolrun.repairs._brackets import brackets, tuples
from toolrun.repairs._inner_quotes import inner_quotes
from toolrun.repairs._schema_reading import schema_reading
from toolrun.repairs.commas import missing_comma, trailing_comma
from toolrun.repairs.margins import comments, odd_space, stray_tag, wide_punctuation
from toolrun.repairs.names import tool_name
from toolrun.repairs.noise import outer_noise
from toolrun.repairs.parameters import xml_parameters
from toolrun.repairs.standalone import RepairedArguments, repair_arguments
from toolrun.repairs.strings import control_characters, escaped_whole, escapes, quotes
from toolrun.repairs.words import bare_keys, half_quoted_keys, literals, numbers

if TYPE_CHECKING:
    from toolrun._core.repair import HookBinding, RepairHook

__all__ = [
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
]

# What stands around the arguments first, then how single tokens are written, then what holds them together; last what
# needs the schema.
_FOR_TEXT: Final[tuple[RepairHook, ...]] = (
    xml_parameters, escaped_whole, outer_noise, odd_space, wide_punctuation, comments, stray_tag, half_quoted_keys,
    quotes, bare_keys, literals, bare_values, numbers, control_characters, escapes, tuples, brackets, trailing_comma,
    missing_comma, inner_quotes,
)  # fmt: skip


def lossless() -> tuple[HookBinding, ...]:
    """The built-in chain, in order; what `Runner` uses unless it is given `repairs=`.

    Examples:
        >>> [binding.name for binding in lossless()][:3]
        ['tool_name', 'xml_parameters', 'escaped_whole']
    """
    return (
        bind(tool_name, on=Fault.UNKNOWN_TOOL, builtin=True),
        *(bind(hook, on=Fault.PARSE, builtin=True) for hook in _FOR_TEXT),
        bind(schema_reading, on=(Fault.NOT_OBJECT, Fault.SCHEMA), builtin=True),
    )
