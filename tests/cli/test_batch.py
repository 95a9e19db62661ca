"""`toolrun finalize --batch`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

CASES = Path(__file__).parent.parent / "cases" / "stream_cases.jsonl"
RAW = 'data: {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]}, "finish_reason": "stop"}]}'


@pytest.fixture
def batch(tmp_path, toolrun):
    def run(*lines: str, options: tuple[str, ...] = ()):
        path = tmp_path / "cases.jsonl"
        path.write_text("\n".join(lines))
        return toolrun("finalize", "--batch", path, *options)

    return run


def right_answers(expected: dict) -> list[dict]:
    """The expected answer and the other defensible ones."""
    return [expected, *(other for other in expected.get("alternatives", ()) if "executable" in other)]


def test_every_stream_case_is_answered(toolrun):
    """A line for each, in order, with the names that may run."""
    cases = [json.loads(line) for line in CASES.read_text().splitlines()]

    ended = toolrun("finalize", "--batch", CASES)

    assert (ended.code, ended.err) == (0, "")
    assert [answer["id"] for answer in ended.objects] == [case["id"] for case in cases]
    wrong = [
        case["id"]
        for case, answer in zip(cases, ended.objects, strict=True)
        if "needs" not in case["expected"]  # what only a registry or a schema decides
        and answer["executable"] not in [right["executable"] for right in right_answers(case["expected"])]
    ]
    assert wrong == []


def test_the_raw_text_of_a_stream_and_defaults(batch):
    """Without an id a case is named by its line; wire and end are those of the options."""
    ended = batch("", json.dumps({"events": RAW}), options=("--wire", "openai-chat", "--end", "error"))

    [answer] = ended.objects
    assert (answer["id"], answer["wire"], answer["executable"]) == (2, "openai-chat", ["f"])
    assert [odd["code"] for odd in answer["diagnostics"]] == ["error_after_finish"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nope", "not JSON: Expecting value"),
        ("[]", "a case is an object, not list"),
        ("{}", "`events` must be a list of events, or the text of a stream"),
        ('{"events": [], "end": "soon"}', "`end` must be one of auto, normal, eof, error, not 'soon'"),
        ('{"events": [], "end": []}', "`end` must be one of auto, normal, eof, error, not []"),
        ('{"events": [], "wire": 4}', "`wire` must be a name, not 4"),
        ('{"events": [], "wire": "morse"}', "no wire named 'morse'"),
    ],
)
def test_a_case_that_is_no_use_is_told_with_its_line_and_the_others_are_answered(batch, line, said):
    """The exit code says that something was wrong."""
    ended = batch('{"id": 1, "events": []}', line, '{"id": 3, "events": []}')

    assert ended.code == 2
    assert f"cases.jsonl:2: {said}" in ended.err.replace("--wire: ", "")
    assert [answer["id"] for answer in ended.objects] == [1, 3]


def test_standard_input(toolrun, monkeypatch):
    """`-`."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"id": "a", "events": []}')))

    assert toolrun("finalize", "--batch", "-").objects == [
        {"id": "a", "wire": None, "calls": [], "executable": [], "diagnostics": []}
    ]


@pytest.mark.parametrize("given", [(), ("a.sse", "--batch", "b.jsonl")])
def test_streams_or_a_batch(toolrun, given):
    """Exactly one of them."""
    ended = toolrun("finalize", *given)

    assert (ended.code, ended.out) == (2, "")
    assert "name streams, or one --batch file" in ended.err
