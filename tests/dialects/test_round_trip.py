"""Whatever fits an exported schema fits the tool, once nulls of strict schemas are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from toolrun import ToolRegistry
from toolrun._core.dialects import leave_out_nulls

from .kinds import TOOLS
from .test_table import REFUSED, WRITTEN, schema_in

ANY = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
TEXT = st.text(st.characters(codec="ascii", min_codepoint=32), max_size=8)
FORMATS: dict[str, st.SearchStrategy[str]] = {
    "date": st.dates().map(str),
    "date-time": st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat(timespec="seconds")[:19] + "Z"),
    "time": st.times().map(lambda hour: hour.isoformat(timespec="seconds")),
    "duration": st.integers(0, 10**6).map(lambda seconds: f"PT{timedelta(seconds=seconds).seconds}S"),
    "uuid": st.uuids().map(str),
}  # fmt: skip


class Root(dict[str, Any]):
    """The outermost schema, with one strategy for each of its definitions."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        super().__init__(schema)
        self.named = {
            f"#/$defs/{name}": st.deferred(lambda item=item: values(item, self))
            for name, item in schema.get("$defs", {}).items()
        }


def values(schema: Any, root: Root) -> st.SearchStrategy[Any]:
    """Values that a schema takes: only what it says, as a provider that follows it would write them."""
    if schema in (True, {}) or not {"type", "enum", "const", "anyOf", "oneOf", "$ref"} & schema.keys():
        return ANY
    if "$ref" in schema:
        return root.named[schema["$ref"]]
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return st.one_of([values(branch, root) for branch in schema[keyword]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    named = schema["type"]
    if isinstance(named, list):
        return st.one_of([values({**schema, "type": one}, root) for one in named])
    return {
        "null": st.none,
        "boolean": st.booleans,
        "integer": lambda: st.integers(schema.get("minimum"), schema.get("maximum")),
        "number": lambda: st.floats(
            schema.get("minimum"), schema.get("maximum"), allow_nan=False, allow_infinity=False
        ),
        "string": lambda: strings(schema),
        "array": lambda: arrays(schema, root),
        "object": lambda: objects(schema, root),
    }[named]()


def strings(schema: Mapping[str, Any]) -> st.SearchStrategy[str]:
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True)
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    if "minLength" in schema or "maxLength" in schema:
        return st.text("abc", min_size=schema.get("minLength", 0), max_size=schema.get("maxLength"))
    return TEXT


def arrays(schema: Mapping[str, Any], root: Root) -> st.SearchStrategy[list[Any]]:
    if "prefixItems" in schema:
        return st.tuples(*(values(item, root) for item in schema["prefixItems"])).map(list)
    fewest, most = schema.get("minItems", 0), schema.get("maxItems", schema.get("minItems", 0) + 2)
    unique = json.dumps if schema.get("uniqueItems") else None
    return st.lists(values(schema.get("items", True), root), min_size=fewest, max_size=most, unique_by=unique)


def objects(schema: Mapping[str, Any], root: Root) -> st.SearchStrategy[dict[str, Any]]:
    properties = {name: values(item, root) for name, item in schema.get("properties", {}).items()}
    required = {name: item for name, item in properties.items() if name in schema.get("required", ())}
    fixed = st.fixed_dictionaries(required, optional={n: i for n, i in properties.items() if n not in required})
    more = schema.get("additionalProperties", True)
    return fixed if more is False else st.dictionaries(TEXT, values(more, root), max_size=2).flatmap(lambda extra: fixed.map(lambda own: {**extra, **own}))  # fmt: skip


WIDER = {"decimal"}
"""What the type itself describes more widely than it takes: every string, where only numbers written out are taken."""


@pytest.mark.parametrize("kind", sorted(TOOLS.keys() - WIDER))
def test_what_fits_the_export_fits_the_tool(kind: str) -> None:
    tool = TOOLS[kind]
    exports: dict[str, bool] = {}
    for dialect, strict in WRITTEN:
        if kind not in REFUSED.get((dialect, strict), {}):
            (entry,) = ToolRegistry([tool]).definitions(dialect, strict=strict)
            exports[json.dumps(schema_in(entry, dialect))] = strict
    fitting = {text: values(json.loads(text), Root(json.loads(text))) for text in exports}
    assert fitting

    @settings(max_examples=15 * len(exports), database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of([st.tuples(st.just(text), made) for text, made in fitting.items()]))
    def check(made: tuple[str, dict[str, Any]]) -> None:
        text, arguments = made
        assume(len(json.dumps(arguments)) < 10_000)
        read = leave_out_nulls(tool.definition.input_schema, arguments)[0] if exports[text] else arguments
        assert isinstance(tool.validator.validate(json.dumps(read), read), Mapping), (text, arguments, read)

    check()
