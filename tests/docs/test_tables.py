"""The tables of the documentation say what the code does: each row is produced, compared, or counted."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import anyio
import anyio.to_thread
import pytest

from toolrun import (
    Approve,
    CallCompleted,
    Deny,
    Diagnostic,
    FinishPolicy,
    Grade,
    Limits,
    Outcome,
    Refuse,
    RepairBudget,
    RepairRequest,
    Result,
    Retry,
    Runner,
    StreamFinalizer,
    Succeeded,
    ToolRegistry,
)
from toolrun._core import exceptions, outcomes, policy
from toolrun._core.issues import MAX_ISSUES
from toolrun._core.json_text import MAX_CHARACTERS, MAX_DEPTH
from toolrun._core.repair import Fault
from toolrun._core.results import QUOTED_CHARACTERS
from toolrun._core.routing import MAX_CALLS
from toolrun._core.tools import Tool, ToolOptions
from toolrun.abc import Executor, Job, Payload, Sink
from toolrun.cli import main
from toolrun.executors.limits import CircuitBreaker, RateLimited
from toolrun.journals import MemoryJournal, SqliteJournal
from toolrun.repairs import lossless

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
COMPLETE = '{"n": 1}'


def table(page: str, header: str) -> list[list[str]]:
    """The rows of the table whose header begins like this."""
    lines = (DOCS / page).read_text("utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {header} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# -- outcome codes ----------------------------------------------------------------------------


def delta(**call: object) -> dict[str, Any]:
    return {"choices": [{"delta": {"tool_calls": [{"index": 0, **call}]}}]}


def finish(reason: str) -> dict[str, Any]:
    return {"choices": [{"delta": {}, "finish_reason": reason}]}


def one(arguments: str, *, name: str | None = "take", end: str | None = "tool_calls") -> list[dict[str, Any]]:
    begun = delta(id="c1", function={"name": name, "arguments": arguments})
    return [begun] if end is None else [begun, finish(end)]


def raising() -> Iterator[dict[str, Any]]:
    yield from one(COMPLETE, end=None)
    raise ConnectionError


NAME_CHANGED = [
    delta(id="c1", function={"name": "take", "arguments": '{"n"'}),
    delta(function={"name": "fail", "arguments": ": 1}"}),
    finish("stop"),
]
BESIDE = [
    delta(index=0, id="c1", function={"name": "take", "arguments": ""}),
    delta(index=1, id="c2", function={"arguments": COMPLETE}),
    finish("tool_calls"),
]
CUSTOM = {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "custom": {"name": "take", "input": "x"}}]}}]}

SOURCES: dict[str, Any] = {
    "truncated": one('{"n": ', end="length"),
    "no_finish": one(COMPLETE, end=None),
    "stream_error": raising,
    "broken_finish": one(COMPLETE, end="error"),
    "beside_nameless": BESIDE,
    "limit": one('{"text": "' + "x" * 16_000_000 + '"}'),
    "nameless": one(COMPLETE, name=None),
    "identity_conflict": NAME_CHANGED,
    "unknown_tool": one(COMPLETE, name="other"),
    "schema": one('{"n": "one"}'),
    "unknown_key": one('{"n": 1, "dry_run": true}'),
    "lossy_number": one('{"n": "007"}'),
    "envelope_mismatch": one('{"name": "other", "arguments": {"n": 1}}'),
    "ambiguous": one('{"n": 1}', name="choose"),
    "syntax": one('{"n" 1}'),
    "several_objects": one('{"n": 1}{"n": 2}'),
    "ambiguous_quotes": one('{"run": "git -m "wip", "cwd": "/srv"}', name="shell"),
    "ambiguous_escape": one('{"run": "echo \\$HOME"}', name="shell"),
    "not_object": one("[1]"),
    "duplicate_key": one('{"n": 1, "\\u006e": 2}'),
    "non_finite": one('{"n": NaN}'),
    "number_out_of_range": one('{"n": 1e999}'),
    "lone_surrogate": one('{"n": "\\ud83d"}'),
    "too_deep": one('{"n": ' + "[" * 128 + "]" * 128 + "}"),
    "custom_text": [CUSTOM, finish("tool_calls")],
    "refused": one("{}", name="hooked"),
    "held": one(COMPLETE, end="length"),
    "raised": one("{}", name="fail"),
    "unserialisable": one("{}", name="opaque"),
    "not_dispatched": one("{}", name="local"),
    "worker_died": one("{}", name="abort"),
    "deadline": one("{}", name="forever"),
    "denied": one("{}", name="denied"),
    "approver": one("{}", name="undecided"),
    "unfit_edit": one("{}", name="edited"),
    "approval": one("{}", name="asked"),
    "declared_only": one("{}", name="declared"),
}


APPROVALS: dict[str, Any] = {
    "denied": lambda request: Deny(),
    "undecided": lambda request: None,
    "edited": lambda request: Approve({"n": 1}),
    "asked": True,
}


def nothing() -> None: ...


@pytest.fixture
def registry() -> ToolRegistry:  # noqa: C901  # a list of tools
    registry = ToolRegistry()

    @registry.tool
    def take(n: int) -> int:
        return n

    @registry.tool
    def fail() -> None:
        raise ValueError("secret")

    @registry.tool
    def opaque() -> object:
        return object()

    @registry.tool(executor="process")
    def local() -> None:
        """Not at the top of a module."""

    registry.add(Tool.from_json_schema(name="abort", input_schema={}, handler=os.abort, executor="process"))

    @registry.tool(timeout=0.02)
    async def forever() -> None:
        await anyio.sleep_forever()

    @registry.tool
    def hooked(n: int) -> int:
        return n

    @registry.tool
    def shell(run: str, cwd: str = ".") -> str:
        return run

    @registry.tool
    def choose(n: bool | list[int]) -> None:
        raise AssertionError

    for name, approval in APPROVALS.items():
        registry.add(Tool.from_function(nothing, name=name, approval=approval))
    registry.add(Tool.from_json_schema(name="declared", input_schema={"type": "object"}))

    @registry.repair(tools="hooked")
    def refuse(request: RepairRequest) -> Refuse:
        return Refuse("The hook's reason.")

    return registry


CODES = {words(row[0])[0]: row for row in table("guides/errors.md", "code")}


def check(outcome: Outcome, row: list[str]) -> None:
    code, status, _, told = row
    pattern = ".*".join(re.escape(piece.strip()) for piece in told.split("…"))

    assert [outcome.code] == words(code)
    assert [outcome.status] == words(status)
    assert re.fullmatch(pattern, outcome.message, re.DOTALL), outcome.message


@pytest.mark.parametrize("code", SOURCES)
async def test_code(code: str, registry: ToolRegistry) -> None:
    """A call that ends with the code has the status and the text of its row."""
    source = SOURCES[code]
    async with Runner(registry, on_stream_error="return") as runner:
        turn = await runner.run(source() if callable(source) else source)

    check(turn.outcomes[0], CODES[code])


async def test_codes_of_guard_rails(registry: ToolRegistry) -> None:
    """Two calls against a limit of one, then the same again."""
    runner = Runner(registry, limits=Limits(calls=1, repeats=1))
    first, second = [await runner.run(one(COMPLETE, end=None) + one("{}", name="fail")) for _ in range(2)]

    check(first.outcomes[1], CODES["call_limit"])
    check(second.outcomes[0], CODES["repeated"])


async def test_code_of_a_call_that_failed_elsewhere(registry: ToolRegistry) -> None:
    """The one code that is brought from outside."""
    runner = Runner(registry)
    turn = await runner.run(one("{}", name="declared"))
    resumed = await runner.resume(turn, {"c1": Result(error="The error's text.")})

    check(resumed.outcomes[0], CODES["elsewhere"])


async def test_code_of_a_cancelled_call(registry: ToolRegistry) -> None:
    """The row of `cancelled`; the run is left while its tool waits."""
    registry.add(Tool.from_function(anyio.sleep_forever, name="wait", timeout=None))
    source = one("{}", name="wait") + one("{}", name="fail")
    source[2]["choices"][0]["delta"]["tool_calls"][0] |= {"index": 1, "id": "c2"}
    async with Runner(registry) as runner, runner.stream(source) as run:
        async for event in run:
            if isinstance(event, CallCompleted):
                break

    check(run.turn.outcomes[0], CODES["cancelled"])


def test_the_chain() -> None:
    """The table of built-in hooks has them all, in the order of asking."""
    assert [words(row[0])[0] for row in table("guides/repair.md", "hook")] == [binding.name for binding in lossless()]


def test_the_repair_score() -> None:
    """The page counts the cases; `tests/repairs/test_cases.py` sees to it that all of them are right."""
    cases = [json.loads(line) for line in (ROOT / "tests/cases/repair_cases.jsonl").read_text("utf-8").splitlines()]
    known = sum(case.get("expected") is not None for case in cases if case["category"] != "tool_name")
    hopeless = sum(case["expected"] is None for case in cases if case["category"] != "tool_name")
    header = f"| system | version | right of {known} | silent of {known} | run wrongly of {hopeless} | silent in all |"
    rows = {
        row[0]: row[2:]
        for row in table("explanation/repair-compared.md", header.split(" | ", maxsplit=1)[0].strip("| "))
    }

    assert header in (DOCS / "explanation/repair-compared.md").read_text("utf-8")
    assert rows["toolrun"] == [str(known), "0", "0", "0"]


LIMITS = {"rate_limited": RateLimited("1/hour", max_wait=0), "circuit_open": CircuitBreaker(failures=1)}


@pytest.mark.parametrize("code", LIMITS)
async def test_codes_of_limits(code: str, registry: ToolRegistry) -> None:
    """The second call is one too many, or comes after a failure."""
    async with Runner(registry, executor=LIMITS[code]) as runner:
        await runner.run(one("{}", name="fail"))
        turn = await runner.run(one("{}", name="fail"))

    check(turn.outcomes[0], CODES[code])


JOURNALED = {"interrupted": "fail", "attempts": "hooked", "conflict": "fail", "journal": "fail"}


@pytest.mark.parametrize("code", JOURNALED)
async def test_codes_of_a_journal(code: str) -> None:
    """A call that another process began: with this text, or, for a conflict, with another one; or one too late."""
    registry, tool = ToolRegistry(), JOURNALED[code]
    registry.add(Tool.from_json_schema(name="fail", input_schema={"type": "object"}, handler=lambda: None))
    registry.add(
        Tool.from_json_schema(name="hooked", input_schema={"type": "object"}, handler=lambda: None, effect="pure")
    )
    journal = MemoryJournal()
    call = (await Runner(registry, executor=Nowhere()).run(one("{}", name=tool))).calls[0]
    text = '{"n": 1}' if code == "conflict" else "{}"
    job = Job(key="R:T:0", tool=tool, call=call, arguments=text, effect=registry[tool].effect, attempt=3)
    audit = Payload(lambda: '[{"$enum":"Grade","value":"exact"},{"$tuple":[]}]')
    await journal.start(job, audit=audit, turn=Payload(str))
    later = journal.reopened()

    turn = await Runner(registry, journal=journal if code == "journal" else later, run_id="R").run(
        one("{}", name=tool), turn_id="T"
    )

    check(turn.outcomes[0], CODES[code])


class Nowhere(Executor):
    async def execute(self, job: Job) -> Outcome:
        return Succeeded(call=job.call, key=job.key)


class Raises(Executor):
    async def execute(self, job: Job) -> Outcome:
        raise ValueError("secret")


async def test_code_of_an_executor_that_raises(registry: ToolRegistry) -> None:
    """It costs the call, not the run."""
    async with Runner(registry, executor=Raises()) as runner:
        turn = await runner.run(one(COMPLETE))

    check(turn.outcomes[0], CODES["executor"])


async def test_code_of_a_fault_elsewhere(registry: ToolRegistry) -> None:
    """A function of the user's that is no tool raises."""

    def conflicts(arguments: object) -> str:
        raise ValueError("secret")

    registry.add(Tool.from_function(nothing, name="ordered", conflict_key=conflicts))
    async with Runner(registry) as runner:
        turn = await runner.run(one("{}", name="ordered"))

    check(turn.outcomes[0], CODES["internal"])


async def test_code_of_a_call_that_somebody_settled(registry: ToolRegistry, tmp_path: Path) -> None:
    """Between two processes, from the command line."""
    path = tmp_path / "calls.db"
    async with SqliteJournal(path) as journal:
        await Runner(registry, journal=journal, run_id="R").run(one("{}", name="declared"), turn_id="T")
    assert (
        await anyio.to_thread.run_sync(
            main, ["journal", str(path), "--settle", "R:T:0", "--error", CODES["settled"][3]]
        )
        == 0
    )
    async with SqliteJournal(path) as journal:
        turns = [turn async for turn in Runner(registry, journal=journal, run_id="R").recover()]

    check(turns[0].outcomes[0], CODES["settled"])


SINGLE = {"call_limit", "cancelled", "elsewhere", "executor", "internal", "repeated", "settled"}
NO_OUTCOME = {"finish_inferred"}


def test_codes_are_all_there() -> None:
    """No row is left without a call that produces it."""
    assert set(CODES) == {*SOURCES, *LIMITS, *JOURNALED, *SINGLE}


def test_no_code_is_left_out() -> None:
    """Whatever is given as a code of an outcome anywhere in the library has a row, here or among the diagnostics."""
    calls = (
        node
        for path in (ROOT / "toolrun").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    )
    given = {
        part.value
        for node in calls
        for keyword in node.keywords
        if keyword.arg == "code"
        for part in ast.walk(keyword.value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }
    diagnostics = {words(row[0])[0] for row in table("guides/errors.md", "code | when")}

    assert given - set(CODES) - diagnostics - NO_OUTCOME == set()


def test_outcomes() -> None:
    """One row a class, with its status."""
    rows = {words(row[1])[0]: words(row[0])[0] for row in table("guides/errors.md", "status")}

    assert rows == {outcome.__name__: outcome.status for outcome in get_args(outcomes.Outcome)}


def test_exceptions() -> None:
    """The tree on the page is the tree in the code."""
    page = (DOCS / "guides/errors.md").read_text("utf-8")

    assert exceptions.__doc__ is not None
    assert re.findall(r"```text\n.*?```", exceptions.__doc__, re.DOTALL)[0] in page


# -- diagnostics ------------------------------------------------------------------------------

ORPHAN = {"type": "content_block_delta", "index": 4, "delta": {"type": "input_json_delta", "partial_json": "{}"}}
FAILED = {"error": {"message": "no call", "failed_generation": "<function=take>"}}
PROVEN = [
    {"type": "message_start", "message": {}},
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "a", "name": "take", "input": {"n": 1}},
    },
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
]

ODD: dict[str, list[object]] = {
    "finish_without_calls": [finish("tool_calls")],
    "leaked_call": [{"choices": [{"delta": {"content": "<tool_call>{"}, "finish_reason": "stop"}]}],
    "late_arguments": [*PROVEN, {**ORPHAN, "index": 0}],
    "orphan_delta": [{"type": "message_start", "message": {}}, ORPHAN],
    "undecodable_event": [finish("stop"), "data: keep-alive\n\n"],
    "lost_event": [finish("stop"), "data: {]\n\n"],
    "stream_error": [{"choices": [], "error": {"message": "overloaded"}}],
    "failed_generation": [*one(COMPLETE, end=None), FAILED],
    "error_after_finish": [*one(COMPLETE), {"error": "late"}],
    "limit": [delta(index=n, id=f"c{n}", function={"name": "take"}) for n in range(1001)],
    "unknown_wire": [{"hello": "world"}],
}


@pytest.mark.parametrize("code", ODD)
def test_diagnostic(code: str) -> None:
    """Each documented diagnostic comes from a stream that is odd in its way."""
    finalizer = StreamFinalizer(eager=lambda name: name == "take")
    events = [event for source in ODD[code] for event in finalizer.feed(source)] + list(finalizer.close())

    assert code in [event.code for event in events if isinstance(event, Diagnostic)]


def test_diagnostics_are_all_there() -> None:
    """The page, the docstring and the streams above name the same codes."""
    documented = {words(row[0])[0] for row in table("guides/errors.md", "code | when")}

    assert documented == set(ODD)
    assert documented == set(re.findall(r"`(\w+)`", inspect.getdoc(Diagnostic) or "")) - {"position"}


# -- the promise ------------------------------------------------------------------------------

EVIDENCE = {
    "finished": policy.Evidence.FINISHED,
    "terminated": policy.Evidence.TERMINATED,
    "held": policy.Evidence.HELD,
    "broken": policy.Evidence.BROKEN,
    "error": policy.Evidence.ERROR,
    "cut": policy.Evidence.CUT,
}


def test_finish_table() -> None:
    """The page's table is the code's table, cell by cell."""
    for evidence, *cells in table("explanation/promise.md", "evidence | blank"):
        row = policy.TABLE[EVIDENCE.pop(evidence.split(":")[0])]
        expected = [[str(verdict.status), *([verdict.code] if verdict.code else [])] for verdict in row.values()]

        assert [words(cell) for cell in cells] == expected
    assert EVIDENCE == {}


def test_finish_reasons() -> None:
    """Every known reason is listed under what it is evidence of."""
    rows = table("explanation/promise.md", "evidence | reasons")
    listed = {reason: policy.Evidence[row[0].upper()] for row in rows for reason in words(row[1])}

    assert listed == policy.REASONS


# -- options ----------------------------------------------------------------------------------


def defaults(function: Any) -> dict[str, str]:
    return {name: str(parameter.default) for name, parameter in inspect.signature(function).parameters.items()}


def test_runner_options() -> None:
    """Every option of `Runner` has its row, with its default."""
    rows = {words(row[0])[0]: row[1].strip("`").strip('"') for row in table("guides/running.md", "option | default")}
    expected = defaults(Runner)
    del expected["registry"]
    spelled_out = {
        "repairs": "toolrun.repairs.lossless()",
        "policy": "FinishPolicy()",
        "budget": "RepairBudget()",
        "limits": "Limits()",
        "run_id": "a new random one",
    }

    assert rows == expected | spelled_out
    assert (RepairBudget().hooks, RepairBudget().seconds) == (16, 30.0)
    assert FinishPolicy() == FinishPolicy(missing_finish="incomplete", run_held=frozenset())


def test_limits_fields() -> None:
    """Every field of `Limits` has its row."""
    assert [words(row[0])[0] for row in table("guides/running.md", "limit")] == [field.name for field in fields(Limits)]


def test_retry_fields() -> None:
    """Every field of `Retry` has its row, with its default."""
    rows = {words(row[0])[0]: row[1] for row in table("guides/running.md", "field | default")}

    assert rows == defaults(Retry) | {"on": "none"}


def test_tool_options() -> None:
    """Every option of a tool has its row, with its default."""
    rows = {words(row[0])[0]: row[1].strip("`").strip('"') for row in table("guides/tools.md", "option")}
    expected = {name: default for name, default in defaults(Tool).items() if name in ToolOptions.__annotations__}

    assert rows == expected | {"metadata": "{}", "tags": "()"}


def test_faults_and_grades() -> None:
    """Every fault and every grade has its row."""
    assert {words(row[0])[0] for row in table("guides/repair.md", "fault")} == set(Fault)
    assert [words(row[0])[0] for row in table("guides/repair.md", "grade")] == list(Grade)


def test_sink() -> None:
    """Every method of the sink has its row, with its parameters."""
    rows = [words(row[0])[0] for row in table("extending/wires.md", "method")]
    expected = []
    for name, method in inspect.getmembers(Sink, inspect.isfunction):
        if not name.startswith("_"):
            _, *parameters = inspect.signature(method).parameters.values()
            shown = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
            keywords = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
            expected.append(f"{name}({', '.join([*shown, *(['*', *keywords] if keywords else [])])})")

    assert sorted(rows) == sorted(expected)


def test_job() -> None:
    """Every field of a job is in the table."""
    listed = [word for row in table("extending/executors.md", "field") for word in words(row[0])]

    assert sorted(listed) == sorted((*Job._fields, "digest", "starts"))


# -- numbers and links ------------------------------------------------------------------------


def test_limits() -> None:
    """The numbers that several pages repeat are those of the code."""
    limits = (DOCS / "guides/streams.md").read_text("utf-8").split("## Limits")[1]
    security = (DOCS / "explanation/security.md").read_text("utf-8")

    for page in (limits, security):
        assert f"{MAX_CHARACTERS:,} characters" in page
        assert f"{MAX_CALLS:,} calls" in page
    assert f"{MAX_DEPTH} levels" in security
    assert f"up to {MAX_ISSUES}." in security
    assert f"{QUOTED_CHARACTERS} characters" in security


def test_extras() -> None:
    """Every extra has its row, with what it brings."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {
        name: ", ".join(re.split(r"[>=<]", needed)[0] for needed in brought)
        for name, brought in project["optional-dependencies"].items()
    }

    assert {words(row[0])[0]: row[1] for row in table("index.md", "extra")} == extras


@pytest.mark.parametrize("row", table("explanation/by-hand.md", "what | where"), ids=lambda row: row[0])
def test_by_hand(row: list[str]) -> None:
    """The files of the row are there, and about as long as it says."""
    first, *others = words(row[1])
    place = ROOT / first if first.startswith("toolrun/") else ROOT / "toolrun" / first
    paths = [place, *(place.parent / name for name in others)]
    files = [file for path in paths for file in (path.glob("*.py") if path.is_dir() else [path])]
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in files)

    assert lines * 2 / 3 < int(row[2].replace(",", "")) < lines * 4 / 3


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "plugins/README.md"])
def test_links(page: str) -> None:
    """Pages outside the site link to files and headings that exist; mkdocs checks the others."""
    text = (ROOT / page).read_text("utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", text):
        assert (ROOT / page).parent.joinpath(target).is_file(), target
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]+)#([^)]*)\)", text):
        headings = re.findall(r"^#+ (.*)$", (ROOT / page).parent.joinpath(target).read_text("utf-8"), re.MULTILINE)
        assert anchor in [heading.lower().replace(" ", "-") for heading in headings]
