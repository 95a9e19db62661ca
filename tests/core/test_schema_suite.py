"""Both validators of JSON Schemas decide as the official JSON Schema Test Suite says.

The suite is not part of this repository. The source distribution of jsonschema carries it:
`pip download --no-deps --no-binary jsonschema jsonschema`, unpack it, and set TOOLRUN_JSON_SCHEMA_SUITE to its
`json/tests`. `.ci/run` does that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import SchemaError, validators

from toolrun import RegistrationError
from toolrun._core.meta_schema import check_schema
from toolrun._core.schema_validator import bounded, quick

SUITE = os.environ.get("TOOLRUN_JSON_SCHEMA_SUITE")
pytestmark = pytest.mark.skipif(
    SUITE is None, reason="TOOLRUN_JSON_SCHEMA_SUITE does not say where the suite is; see this file's docstring"
)

DRAFTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
}
ELSEWHERE = "http://localhost:1234/"
"""Where the suite serves the documents that some of its schemas refer to. Nothing is ever fetched here."""

UNSUPPORTED = {("vocabulary.json", "schema that uses custom metaschema with with no validation vocabulary")}


def cases(draft: str) -> Iterator[tuple[str, dict[str, Any] | bool, list[dict[str, Any]]]]:
    for file in sorted((Path(SUITE or "") / draft).glob("*.json")):
        for case in json.loads(file.read_text(encoding="utf-8")):
            told = (file.name, case["description"])
            if ELSEWHERE in json.dumps(case["schema"]) and file.name in ("refRemote.json", "dynamicRef.json"):
                continue
            if told not in UNSUPPORTED:
                yield " ".join(told), case["schema"], case["tests"]


@pytest.mark.parametrize("draft", DRAFTS)
def test_what_is_a_schema(draft: str):
    """The schemas of the suite, and its data taken for schemas: the merged meta-schema decides as jsonschema's own."""
    kind = validators.validator_for({"$schema": DRAFTS[draft]})
    candidates = [item for _, schema, tests in cases(draft) for item in (schema, *(test["data"] for test in tests))]
    expected = [accepts(kind.check_schema, item) for item in candidates]

    assert [accepts(lambda item: check_schema(item, kind), item) for item in candidates] == expected
    assert 100 < sum(expected) < len(expected) - 100


def accepts(check: Callable[[Any], None], schema: Any) -> bool:
    try:
        check(schema)
    except (SchemaError, RegistrationError):
        return False
    return True


def decided(draft: str, schema: Any, data: Any) -> tuple[bool, bool | None]:
    """What jsonschema says, and what jsonschema-rs says; None if it does not take the schema."""
    named = {"$schema": DRAFTS[draft], **schema} if isinstance(schema, dict) else schema
    kind = validators.validator_for({"$schema": DRAFTS[draft]})
    fast = quick(named)
    return bounded(kind, named).is_valid(data), fast(data) if fast else None


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_official_suite(draft: str):
    """Every case but those with documents from elsewhere: each validator alone decides as the suite says."""
    pytest.importorskip("jsonschema_rs")
    wrong, number, fast = [], 0, 0
    for name, schema, tests in cases(draft):
        for test in tests:
            slow, quickly = decided(draft, schema, test["data"])
            number += 1
            fast += quickly is not None
            if slow is not test["valid"] or quickly not in (test["valid"], None):
                wrong.append((name, test["description"], slow, quickly))

    assert wrong == []
    assert number > 800
    assert fast > 0.95 * number
