"""Damage to the syntax: commas, quotes, escapes, brackets, literals."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from toolrun._testing.damage.places import Call, NotApplicable, keys, pick, replaced, strings, tokens

if TYPE_CHECKING:
    from random import Random


def trailing_comma(call: Call, rng: Random) -> str:
    """A comma before a closing bracket."""
    found = tokens(call.text)
    closers = [b for a, b in pairwise(found) if b[0] in "}]" and a[0] not in "{["]
    return replaced(call.text, closer := pick(rng, closers), "," + closer[0])


def missing_comma(call: Call, rng: Random) -> str:
    """A comma is a line end, or a space; not between numbers, which could be one."""
    found = tokens(call.text)
    commas = [
        comma
        for before, comma, after in zip(found, found[1:], found[2:], strict=False)
        if comma[0] == ","
        and not (before[0][-2:-1].isspace() or after[0][1:2].isspace())
        and not (before[0][-1].isdigit() and after[0][0] in "-0123456789")
    ]
    return replaced(call.text, pick(rng, commas), rng.choice(["\n", " "]))


def python_repr(call: Call, rng: Random) -> str:
    """The arguments as Python writes them."""
    if re.search(r"\\[xU]", repr(call.arguments)):
        raise NotApplicable
    return repr(call.arguments)


def python_word(call: Call, rng: Random) -> str:
    """`True`, `False` or `None`."""
    words = [token for token in tokens(call.text) if token[0] in ("true", "false", "null")]
    found = pick(rng, words)
    return replaced(call.text, found, {"true": "True", "false": "False", "null": "None"}[found[0]])


def single_quotes(call: Call, rng: Random) -> str:
    """A string, or a key, in single quotes."""
    plain = [token for token in tokens(call.text) if token[0].startswith('"') and not set(token[0]) & {"'", "\\"}]
    found = pick(rng, plain)
    return replaced(call.text, found, f"'{found[0][1:-1]}'")


def smart_quotes(call: Call, rng: Random) -> str:
    """A string, or a key, in typographic quotes."""
    plain = [t for t in tokens(call.text) if t[0].startswith('"') and not set(t[0]) & {"\\", "\u201c", "\u201d"}]
    found = pick(rng, plain)
    return replaced(call.text, found, f"\u201c{found[0][1:-1]}\u201d")


def raw_control(call: Call, rng: Random) -> str:
    """A line end or a tab inside of a string, as it is."""
    found = pick(rng, [token for token in strings(call) if re.search(r"(?<!\\)\\[nt]", token[0])])
    return replaced(call.text, found, re.sub(r"(?<!\\)\\([nt])", lambda m: {"n": "\n", "t": "\t"}[m[1]], found[0]))


def inner_quotes(call: Call, rng: Random) -> str:
    """Quotes inside of a string that are not escaped."""
    found = pick(rng, [token for token in strings(call) if re.search(r'(?<!\\)\\"', token[0])])
    return replaced(call.text, found, found[0].replace('\\"', '"'))


def escaped_apostrophe(call: Call, rng: Random) -> str:
    """An apostrophe with a backslash."""
    found = pick(rng, [token for token in strings(call) if "'" in token[0]])
    return replaced(call.text, found, found[0].replace("'", "\\'"))


def bare_backslashes(call: Call, rng: Random) -> str:
    """Backslashes that are not escaped."""
    found = pick(rng, [token for token in strings(call) if re.search(r"\\\\[dwPm]", token[0])])
    return replaced(call.text, found, re.sub(r"\\\\(?=[dwPam])", r"\\", found[0]))


def no_last_brace(call: Call, rng: Random) -> str:
    """The last brace is missing."""
    if call.text[:-1].rstrip()[-1].isdigit():
        raise NotApplicable  # the number may have been cut
    return call.text[:-1].rstrip()


def no_inner_closer(call: Call, rng: Random) -> str:
    """The bracket at the end of a list is missing."""
    found = tokens(call.text)
    closers = [a for a, b in pairwise(found) if a[0] == "]" and b[0] in ",}"]
    return replaced(call.text, pick(rng, closers), "")


def wrong_closer(call: Call, rng: Random) -> str:
    """A list that ends without its bracket."""
    found = tokens(call.text)
    closers = [a for a, b in pairwise(found) if a[0] == "]" and b[0] == "}"]
    closer = pick(rng, closers)
    return (
        replaced(call.text, closer, "}")[:-1].rstrip()
        if closer.end() + 1 >= len(call.text)
        else replaced(call.text, closer, "")
    )


def extra_inner_closer(call: Call, rng: Random) -> str:
    """A bracket too many at the end of a list."""
    found = pick(rng, [token for token in tokens(call.text) if token[0] == "]"])
    return replaced(call.text, found, "]]")


def early_close(call: Call, rng: Random) -> str:
    """The object ends in the middle, and goes on."""
    depth, commas = 0, []
    for token in tokens(call.text):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if token[0] == "," and depth == 1:
            commas.append(token)
    return replaced(call.text, pick(rng, commas), "},")


def comment(call: Call, rng: Random) -> str:
    """A comment."""
    found = pick(rng, [token for token in tokens(call.text) if token[0] in ",{["])
    return replaced(call.text, found, found[0] + rng.choice([" // what\n", " /* what, {this} */ ", " # what's this\n"]))


def bare_key(call: Call, rng: Random) -> str:
    """A key without quotes."""
    found = pick(rng, keys(call))
    return replaced(call.text, found, found[0][1:-1])


def bare_keys(call: Call, rng: Random) -> str:
    """No key has quotes."""
    text = call.text
    for found in reversed(keys(call)):
        text = replaced(text, found, found[0][1:-1])
    return text


def half_key(call: Call, rng: Random) -> str:
    """A key without its first quote."""
    found = pick(rng, keys(call))
    return replaced(call.text, found, found[0][1:])


def plus(call: Call, rng: Random) -> str:
    """A number with a plus sign."""
    found = pick(rng, [token for token in tokens(call.text) if re.fullmatch(r"\d+(\.\d+)?", token[0])])
    return replaced(call.text, found, f"+{found[0]}")


def no_zero(call: Call, rng: Random) -> str:
    """A fraction without its zero."""
    found = pick(rng, [token for token in tokens(call.text) if re.fullmatch(r"0\.\d+", token[0])])
    return replaced(call.text, found, found[0][1:])


def odd_spaces(call: Call, rng: Random) -> str:
    """A space that JSON does not know."""
    found = pick(rng, [token for token in tokens(call.text) if token[0] in "{,:"])
    return replaced(call.text, found, found[0] + rng.choice(["\u00a0", "\u200b", "\ufeff", "\u2003"]))


def tuple_for_list(call: Call, rng: Random) -> str:
    """A list in round brackets."""
    found = tokens(call.text)
    number = pick(rng, [n for n, token in enumerate(found[:-1]) if token[0] == "["])
    depth = 0
    for token in found[number:]:
        depth += {"[": 1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return replaced(replaced(call.text, token, ")"), found[number], "(")
    raise NotApplicable
