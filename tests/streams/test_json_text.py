"""Strict JSON: what is refused, with which code, and where exactly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrun import ArgumentIssue
from toolrun._core import json_text
from toolrun._core.json_text import is_complete_container, join_surrogates, parse_object

bounded = settings(max_examples=200, deadline=None, derandomize=True)


def issue(text: str) -> ArgumentIssue:
    found = parse_object(text)
    assert isinstance(found, ArgumentIssue), found
    return found


# -- what is taken --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        ' \t\r\n{ "a" : 1 }\n',
        '{"": ""}',
        '{"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]}',
        '{"A": 1, "a": 2, "\u00e9": 3, "e\u0301": 4}',
        '{"a": -0, "b": 0.1, "c": 1e2, "d": 1E+2, "e": 1e-400, "f": 123456789012345678901234567890}',
        '{"a": 1.7976931348623157e308, "b": -1.7976931348623157e308}',
        '{"a": "\\ud83d\\ude00", "b": "\\u0000", "c": "\\/", "d": "😀"}',
        '{"NaN": "Infinity", "1e999": "1e999"}',
        '{"a": null, "b": true, "c": false}',
    ],
)
def test_valid(text: str) -> None:
    """What is valid is read as any JSON reader reads it."""
    assert parse_object(text) == json.loads(text)


def test_exact_integers() -> None:
    """Integers keep all their digits; numbers with a point stay floats, and booleans booleans."""
    parsed = parse_object('{"a": 12345678901234567890123, "b": 1.0, "c": true, "d": 1}')
    assert isinstance(parsed, dict)
    assert [(type(value), value) for value in parsed.values()] == [
        (int, 12345678901234567890123),
        (float, 1.0),
        (bool, True),
        (int, 1),
    ]


@pytest.mark.parametrize("digits", [200, 308, 309, 400, 4000])
def test_long_integers(digits: int) -> None:
    """An integer too large for a double is an integer all the same."""
    assert parse_object(f'{{"a": {"9" * digits}}}') == {"a": int("9" * digits)}


# -- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("[1]", "not_object"),
        ("[]", "not_object"),
        ('"{}"', "not_object"),
        ("null", "not_object"),
        ("true", "not_object"),
        ("12", "not_object"),
        ("1.5", "not_object"),
        ('{"a": 1, "a": 1}', "duplicate_key"),
        ('{"a": 1, "\\u0061": 2}', "duplicate_key"),
        ('{"\\u00e9": 1, "é": 2}', "duplicate_key"),
        ('{"😀": 1, "\\ud83d\\ude00": 2}', "duplicate_key"),
        ('{"a/b": 1, "a\\/b": 2}', "duplicate_key"),
        ('{"": 1, "": 2}', "duplicate_key"),
        ('{"a": [{"b": {"c": 1, "c": 2}}]}', "duplicate_key"),
        ('{"a": NaN}', "non_finite"),
        ('{"a": Infinity}', "non_finite"),
        ('{"a": -Infinity}', "non_finite"),
        ('{"a": [1, NaN]}', "non_finite"),
        ("NaN", "non_finite"),
        ('{"a": 1e999}', "number_out_of_range"),
        ('{"a": -1e999}', "number_out_of_range"),
        ('{"a": 1E+999}', "number_out_of_range"),
        ('{"a": [0, {"b": 1.5e0309}]}', "number_out_of_range"),
        ('{"a": 2e308}', "number_out_of_range"),
        (f'{{"a": {"9" * 309}.0}}', "number_out_of_range"),
        (f'{{"a": {"9" * 250}e60}}', "number_out_of_range"),
        (f'{{"a": {"9" * 250}e99}}', "number_out_of_range"),
        (f'{{"a": {"9" * 5000}}}', "number_out_of_range"),
        ('{"a": "\\ud83d"}', "lone_surrogate"),
        ('{"a": "\\ude00"}', "lone_surrogate"),
        ('{"a": "\\ud83d\\ud83d"}', "lone_surrogate"),
        ('{"a": "\\ud83dx"}', "lone_surrogate"),
        ('{"a": "\\ud83d\\n"}', "lone_surrogate"),
        ('{"\\ud83d": 1}', "lone_surrogate"),
        ('{"a": "\ud83d"}', "lone_surrogate"),
        ('{"a": "\ude00\ud83d"}', "lone_surrogate"),
        ("{", "truncated"),
        ('{"a', "truncated"),
        ('{"a"', "truncated"),
        ('{"a":', "truncated"),
        ('{"a": "x', "truncated"),
        ('{"a": "x\\', "truncated"),
        ('{"a": "\\u00', "truncated"),
        ('{"a": t', "truncated"),
        ('{"a": 1.', "truncated"),
        ('{"a": [1, 2', "truncated"),
        ('{"a": 1', "truncated"),
        ('{"a": 1}}', "syntax"),
        ('{"a": 1}{"a": 1}', "syntax"),
        ("{'a': 1}", "syntax"),
        ("{a: 1}", "syntax"),
        ('{"a": 1,}', "syntax"),
        ('{"a": 01}', "syntax"),
        ('{"a": .5}', "syntax"),
        ('{"a": +1}', "syntax"),
        ('{"a": 0x10}', "syntax"),
        ('{"a": True}', "syntax"),
        ('{"a": None}', "syntax"),
        ('{"a": undefined}', "syntax"),
        ('{"a": "\n"}', "syntax"),
        ('{"a": "\\x41"}', "syntax"),
        ('{"a": "\\uZZZZ"}', "syntax"),
        ('{"a": "\\u12"}', "syntax"),
        ('{"a": 1} // x', "syntax"),
        ('/* x */{"a": 1}', "syntax"),
        ("\ufeff{}", "syntax"),
        ("{}\u00a0", "syntax"),
        ("{}\x00", "syntax"),
    ],
)  # fmt: skip
def test_codes(text: str, code: str) -> None:
    """Every refusal has a code, a message, a place inside the text and an excerpt around it."""
    found = issue(text)
    assert found.code == code
    assert found.message
    assert found.path == ""
    assert found.offset is not None
    assert 0 <= found.offset <= len(text)
    assert found.excerpt in text
    assert len(found.excerpt) <= 24
    assert str(found.line) in found.describe()


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": trux}', 1, 10),
        ('{"é": trux}', 1, 10),
        ('{"日本語": "😀😀", "b": x}', 1, 20),
        ('{\n  "a": 1,\n  "b": x\n}', 3, 8),
        ('{\n  "日本": "😀",\n  "é": x\n}', 3, 8),
        ('{\r\n "a": x}', 2, 7),
        ('{"a": 1}\n\n 2', 3, 2),
        ('{"é": "\t"}', 1, 8),
        ('{"é":\n"\t"}', 2, 2),
        ('{"é": NaN}', 1, 7),
        ('{\n"é": [1,\n -Infinity]}', 3, 2),
        ('{"é": 1, é: 2}', 1, 10),
        ('["é"]', 1, 1),
        ('{"é": "\ud83d"}', 1, 8),
        ('{\n"é": "x\ud83d"}', 2, 8),
        ("x", 1, 1),
        ("é", 1, 1),
    ],
)
def test_places(text: str, line: int, column: int) -> None:
    """Line and column count characters, also after characters of several bytes and after line ends."""
    found = issue(text)
    before = text.split("\n")[: line - 1]
    offset = sum(len(part) + 1 for part in before) + column - 1
    assert (found.line, found.column, found.offset) == (line, column, offset)
    assert text[offset] in found.excerpt


@pytest.mark.parametrize("last", ["a", "é", "日", "😀", "\u0301"])
def test_cut_after_any_character(last: str) -> None:
    """A text that was cut after any character, also one of several bytes, is truncated at its last character."""
    for text in (f'{{"t": "{last}', f'{{"t": "x{last}{last}', f'{{"{last}', f'{{\n"{last}": "{last}'):
        found = issue(text)
        assert (found.code, found.offset) == ("truncated", len(text) - 1)


def test_place_of_a_duplicate_key() -> None:
    """The place of a repeated key is in its second appearance."""
    found = issue('{\n "é": 1,\n "b": 2,\n "é": 3}')
    assert found.line == 4


@pytest.mark.parametrize(
    ("depth", "fits"), [(1, True), (127, True), (128, True), (129, False), (199, False), (300, False), (100_000, False)]
)
def test_depth(depth: int, fits: bool) -> None:
    """128 containers inside each other are read, one more is not."""
    for text in (
        '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1),
        '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}" if depth > 1 else "{}",
    ):
        parsed = parse_object(text)
        if fits:
            assert isinstance(parsed, dict)
        else:
            assert isinstance(parsed, ArgumentIssue)
            assert parsed.code == "too_deep"


def test_many_containers_beside_each_other() -> None:
    """Depth is what counts, not the number of containers."""
    text = '{"a": [' + ", ".join(['{"b": []}'] * 5_000) + "]}"
    assert parse_object(text) == json.loads(text)


def test_brackets_in_strings() -> None:
    """Brackets in strings are text."""
    assert parse_object(json.dumps({"a": "[{" * 500})) == {"a": "[{" * 500}


def test_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text over the limit is not read at all."""
    monkeypatch.setattr(json_text, "MAX_CHARACTERS", 8)
    assert parse_object('{"a": 1}') == {"a": 1}
    assert issue('{"a": 12}').code == "too_long"


def test_excerpts_are_short() -> None:
    """An excerpt shows the place, not the text."""
    text = '{"a": "' + "x" * 100_000 + '", b}'
    found = issue(text)
    assert found.offset == len(text) - 2
    assert found.excerpt == text[-14:]


# -- against other readers ------------------------------------------------------------------

VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner, max_size=4),
    ),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), VALUES, max_size=5)


@bounded
@given(OBJECTS, st.booleans(), st.sampled_from([None, 1]))
def test_round_trip(value: dict[str, Any], escaped: bool, indent: int | None) -> None:
    """What was written as JSON is read back, however it was written."""
    assert parse_object(json.dumps(value, ensure_ascii=escaped, indent=indent)) == value


@bounded
@given(OBJECTS, st.booleans(), st.data())
def test_no_prefix_is_an_object(value: dict[str, Any], escaped: bool, data: st.DataObject) -> None:
    """No proper prefix of an object is an object: what was cut is known to be cut."""
    text = json.dumps(value, ensure_ascii=escaped)
    cut = data.draw(st.integers(0, len(text) - 1))
    found = issue(text[:cut])
    assert found.code in ("empty", "truncated", "lone_surrogate")


def strictly(text: str) -> Any:
    """What the standard library makes of a text, with the same things refused."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(items)) != len(items):
            raise ValueError("duplicate")
        return dict(items)

    def finite(digits: str) -> float:
        number = float(digits)
        if number in (float("inf"), float("-inf")):
            raise ValueError("overflow")
        return number

    def constant(name: str) -> float:
        raise ValueError(name)

    value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=finite)
    if not isinstance(value, dict):
        raise TypeError("no object")
    json.dumps(value, ensure_ascii=False).encode()
    return value


PIECES = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"', '"a"', '"b"', "1", "-", ".", "e", "0", "e999", "true", "null", "NaN", " ", "\n",
     "\\", "\\u", "d83d", "\\ude00", "é", "😀", "\ud83d", "\x00", "Infinity", "\ufeff"],
)  # fmt: skip


@settings(bounded, max_examples=1000)
@given(st.one_of(st.lists(PIECES, max_size=14).map("".join), st.text(max_size=10)))
def test_same_as_the_standard_library(text: str) -> None:
    """Any text at all is taken or refused as a strict reader on the standard library does it, and nothing raises."""
    try:
        expected = strictly(text)
    except (ValueError, TypeError):
        expected = None
    parsed = parse_object(text)
    assert (parsed if isinstance(parsed, dict) else None) == expected
    if isinstance(parsed, ArgumentIssue):
        assert parsed.offset is not None
        assert 0 <= parsed.offset <= len(text)
        assert parsed.line == text[: parsed.offset].count("\n") + 1


@settings(bounded, max_examples=500)
@given(st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(max_size=10)))
def test_complete_containers(text: str) -> None:
    """A text is complete if it is one object or array; nothing raises."""
    try:
        complete = isinstance(json.loads(text), dict | list)
    except ValueError:
        complete = False
    if not any("\ud800" <= letter <= "\udfff" for letter in text) and "\\u" not in text:
        assert is_complete_container(text) == complete
    else:
        is_complete_container(text)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["a"], "a"),
        (["\ud83d", "\ude00"], "😀"),
        (["x\ud83d", "\ude00y"], "x😀y"),
        (["\ud83d", "x"], "\ud83dx"),
        (["\ude00", "\ud83d"], "\ude00\ud83d"),
        (["\ud83d", "\ud83d", "\ude00"], "\ud83d😀"),
        (["é", "\ud83d", "\ude00", "日"], "é😀日"),
    ],
)
def test_join_surrogates(pieces: list[str], expected: str) -> None:
    """Halves that belong together become one character; a lone half stays what it is."""
    assert join_surrogates("".join(pieces)) == expected


@pytest.mark.parametrize("text", ['{"a": 1}], [{"b": 2}', "]" * 73 + "[" * 73, '{"a": [' + "[], " * 130 + "[]]}], [1"])
def test_text_that_closes_more_than_it_opened_is_no_object(text: str) -> None:
    """The limit of depth is measured inside other arrays, which a text cannot close."""
    for padded in (text, text + " " * 3, text + '{"deep": ' + "[" * 200):
        parsed = parse_object(padded)
        assert isinstance(parsed, ArgumentIssue)
        assert parsed.code in ("syntax", "truncated")
