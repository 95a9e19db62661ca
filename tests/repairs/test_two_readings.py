"""Damaged texts that can be read in two ways: refused, unless the schema leaves one of them."""

from __future__ import annotations

from typing import Any

import pytest

from toolrun import repair_arguments

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
ANYTHING: dict[str, Any] = {}


def items(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def closed(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def read(raw: str, **properties: dict[str, Any]) -> dict[str, Any] | None:
    """What a text comes to for a tool with these parameters, none of them required."""
    return repair_arguments(raw, {"name": "f", "parameters": closed(**properties)}).arguments


TEXTS, NUMBERS = items(TEXT), items(NUMBER)
EITHER = {"anyOf": [TEXT, TEXTS]}
LOOSE = {"type": "object", "additionalProperties": TEXT}


@pytest.mark.parametrize(
    ("raw", "schema"),
    [
        pytest.param('{"x": [10-20]}', NUMBERS, id="a range is no list"),
        pytest.param('{"x": [1+2]}', NUMBERS, id="a sum is no list"),
        pytest.param('{"x": [true-5]}', items(ANYTHING), id="an expression is no list"),
        pytest.param('{"x": [12[3]]}', items(ANYTHING), id="an index is no item"),
        pytest.param('{"x": [1 250, 2 500]}', NUMBERS, id="thousands are set apart with spaces"),
        pytest.param('{"x": ["a""b"]}', TEXTS, id="a comma is missing, or marks stand inside"),
        pytest.param('{"x": ["a" "b", "c "d" e"]}', TEXTS, id="the same with a space"),
        pytest.param('{"x": ["a, "b"]}', TEXTS, id="a mark is missing, or stands inside"),
        pytest.param('{"x": "say ""hi"" now"}', TEXT, id="doubled marks, as in SQL"),
        pytest.param('{"x": "Oslo""}', TEXT, id="a doubled delimiter"),
        pytest.param('{"x": ""Oslo"}', TEXT, id="a doubled delimiter before"),
        pytest.param('{"x": "Oslo"\n"}', TEXT, id="a doubled delimiter on its own line"),
        pytest.param('{"x": "Oslo""Oslo"}', TEXT, id="a text that came twice"),
        pytest.param('{"x": """say "hi" now"""}', TEXT, id="a text between three marks, as in Python"),
        pytest.param("{\"x\": '''Oslo'''}", TEXT, id="the same with single ones"),
        pytest.param('{"x": {"a": "b", "c: "d"}}', LOOSE, id="a member of an open object in a text"),
        pytest.param('{"x": {"a": "b, "c": "d"}}', LOOSE, id="a key of an open object in a text"),
        pytest.param('{"x": "a"], "y": 2}', EITHER, id="a bracket too many, or one too few"),
        pytest.param('{"x": [[]}', items(ANYTHING), id="a list of a list, or a doubled bracket"),
        pytest.param('{"x": [[1, 2, [3]], "y": 2}', items(ANYTHING), id="where a list inside of a list ends"),
        pytest.param('{"x": [{"y": 1}, "y": 2}]}', items(closed(y=NUMBER)), id="a key of an item, or of the root"),
        pytest.param('{"x": "a" # "y": 3}', TEXT, id="a comment that hides the end"),
        pytest.param('{"x": "a" // "y": 3}\n', TEXT, id="the same with slashes"),
        pytest.param('{\n"y": 10//3\n}', TEXT, id="a division"),
        pytest.param('{\n"y": 10 // 3,\n"x": "a"\n}', TEXT, id="a division with spaces"),
        pytest.param('{\n"y": 10#3\n}', TEXT, id="what touches a number"),
        pytest.param('{"y": 12]34}', TEXT, id="a bracket between digits"),
        pytest.param('{"x": "a"}\ny: 5', TEXT, id="a parameter behind the object"),
        pytest.param('y=5 {"x": "a"}', TEXT, id="a parameter before the object"),
        pytest.param(
            '{"x": {"z": "a"}, "y": 2}}', closed(z=TEXT, y=NUMBER), id="an object that ends early, or a brace too many"
        ),
        pytest.param('{"x": [1, 2]}', items(NUMBERS), id="one list in the place of several, or several of one"),
        pytest.param('{"x": ["1", "2"]}', items(NUMBERS), id="the same as texts"),
    ],
)
def test_refused(raw: str, schema: dict[str, Any]) -> None:
    """Which of two values was meant, nothing tells."""
    assert read(raw, x=schema, y=NUMBER) is None


@pytest.mark.parametrize("text", ["null", "None", "undefined"])
def test_no_list(text: str) -> None:
    """A required list is not the list of the word for nothing."""
    parameters = {**closed(x=TEXTS), "required": ["x"]}

    assert repair_arguments(f'{{"x": "{text}"}}', {"name": "f", "parameters": parameters}).arguments is None


@pytest.mark.parametrize(
    ("raw", "schema", "expected"),
    [
        ('{"x": ["say "hi"", 1152, " pad "]}', items({"type": ["string", "integer"]}), ['say "hi"', 1152, " pad "]),
        ('{"x": ["say "hi"", true, " pad "]}', items(ANYTHING), ['say "hi"', True, " pad "]),
        ('{"x": ["say \\"hi\\", ok", "a "b" c"]}', TEXTS, ['say "hi", ok', 'a "b" c']),
        ('{"x": "f({"a": "b"}, [c])"}', TEXT, 'f({"a": "b"}, [c])'),
        ('{"x": "a = "" + b"}', TEXT, 'a = "" + b'),
        ('{"x": {"a": "it "is" b", "c": "d"}}', LOOSE, {"a": 'it "is" b', "c": "d"}),
        ('{"x": [["a", "b", ["c"], ["d"]]}', items(TEXTS), [["a", "b"], ["c"], ["d"]]),
        ('{"x": [["a", "b"]}', items(TEXTS), [["a", "b"]]),
        ('{"x": [[1, 2]}', NUMBERS, [1, 2]),
        ('{"x": "a"], "y": 2}', TEXT, "a"),
        ('{"x": "a"], "y": 2}', TEXTS, ["a"]),
        ('{"x": [[1][2]]}', items(NUMBERS), [[1], [2]]),
        ('Here is the x: {"x": "a"}', TEXT, "a"),
        ('The x:\n```json\n{"x": "a"}\n```', TEXT, "a"),
        ('{"x": {"z": "a"}, "y": 2}}', closed(z=TEXT), {"z": "a"}),
        ('{"x": {"z": "a"}, "v": 2}}', closed(z=TEXT, v=NUMBER), {"z": "a", "v": 2}),
        ('{"x": [1]}', items(NUMBERS), [[1]]),
        ('{"x": [1, [2]]}', items(NUMBERS), [[1], [2]]),
        ('{"x": [1, 2]}', items({**NUMBERS, "minItems": 2}), [[1, 2]]),
        ('{"x": [1 2 30 4000]}', NUMBERS, [1, 2, 30, 4000]),
        ('{"x": "a", # why\n"y": 2}', TEXT, "a"),
        ('{\n"x": "a",\n"y": 2 // 2 days\n}', TEXT, "a"),
    ],
)
def test_only_one(raw: str, schema: dict[str, Any], expected: object) -> None:
    """Where one reading is left, it is taken."""
    found = read(raw, x=schema, y=NUMBER)

    assert found is not None
    assert found["x"] == expected
