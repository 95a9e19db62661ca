"""Docstrings as people write them: descriptions where they can be told, never an error, never a section leaking."""

from __future__ import annotations

import pytest

from toolrun import Tool

GOOGLE = """
    Search.

    First paragraph.

    Second: with a colon.

    Args:
        query (str): The query,
            continued.

            And another paragraph.
        limit (int, optional): How many. Defaults to 10.
        zz: Not a parameter.

    Returns:
        query: not a parameter either.

    Raises:
        ValueError: Never told.

    Example:
        >>> search("a")
"""

NUMPY = """
    Search.

    Parameters
    ----------
    query : str
        The query.
    limit : {10, 20}, optional
        How many: at most.

    Raises
    ------
    ValueError
        Never told.

    Examples
    --------
    >>> search("a")
"""

REST = """
    Search.

    :param query: The query,
        continued.
    :type query: str
    :param int limit: How many.
    :raises ValueError: Never told.
    :returns: The results.
"""

CASES = {
    "google": (GOOGLE, "Search.\n\nFirst paragraph.\n\nSecond: with a colon.",
        "The query,\ncontinued.\n\nAnd another paragraph.", "How many. Defaults to 10."),
    "numpy": (NUMPY, "Search.", "The query.", "How many: at most."),
    "reST": (REST, "Search.", "The query,\ncontinued.", "How many."),
    "no sections": ("Search.\n\nNote that: a colon is no section.", "Search.\n\nNote that: a colon is no section.",
        None, None),
    "only a section": ("\n    Args:\n        query: The query.\n", "", "The query.", None),
    "no description": ("\n    Search.\n\n    Returns:\n        Results.\n", "Search.", None, None),
    "a line without a colon": ("\n    Search.\n\n    Args:\n        query: The query.\n        and so on\n", "Search.",
        None, None),
    "spaces": ("\n    Search.\n\n    Args:\n        query:    The query.   \n        limit:\n", "Search.",
        "The query.", None),
    "blank": ("   \n  ", "", None, None),
    "missing": (None, "", None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_docstrings(name: str):
    """The description ends where a section begins, and each parameter has its own and no more."""
    text, description, query, limit = CASES[name]

    def search(query: str, limit: int = 10) -> None: ...

    search.__doc__ = text
    definition = Tool.from_function(search).definition
    told = definition.input_schema["properties"]

    assert definition.description == description
    assert (told["query"].get("description"), told["limit"].get("description")) == (query, limit)
    assert list(told) == ["query", "limit"]


@pytest.mark.parametrize(
    "text",
    [":param", "Args: : :\na\n\nArgs:\n  -\n  a\n: : Returns", "Parameters\n---", "Args:\n" * 50, ":param a b c:"],
)
def test_hostile_docstrings(text: str):
    """Whatever it says, the tool can be declared with all its parameters."""

    def search(query: str) -> None: ...

    search.__doc__ = text

    assert list(Tool.from_function(search).definition.input_schema["properties"]) == ["query"]
