"""Regular expressions from outside, by an engine whose time is linear in the text.

A backtracking engine can be held up for hours by a text that a model writes; `^(a+)+$` and 30 letters do.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

_REPETITION: Final = re.compile(r"[*+{]")


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


def is_linear(pattern: str) -> bool:
    """Tell whether the linear engine knows the pattern; look-around and back-references it does not."""
    try:
        _compiled(pattern)
    except SchemaError:
        return False
    return True


def is_short(pattern: str) -> bool:
    """Tell whether even a backtracking engine is quick with the pattern: nothing in it is repeated."""
    return not _REPETITION.search(pattern)


def found_in(pattern: str, text: str) -> bool:
    """Search for the pattern anywhere in the text."""
    try:
        _compiled(pattern).validate_python(text)
    except ValidationError:
        return False
    return True
