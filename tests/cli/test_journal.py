"""`toolrun journal`: what is in a journal, and settling a call by hand."""

from __future__ import annotations

import json

import anyio
import pytest

from toolrun import Repaired, Runner, ToolRegistry
from toolrun.cli import main
from toolrun.journals import SqliteJournal


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()
    registry.repair(lambda request: Repaired(arguments={"n": 7}) if request.text == "seven" else None)

    @registry.tool(effect="pure")
    async def look(n: int) -> int:
        return n

    @registry.tool
    async def charge(n: int) -> None:
        await anyio.sleep_forever()

    return registry


def calls(*pairs: tuple[str, str]) -> dict[str, object]:
    entries = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(pairs)
    ]
    return {"choices": [{"message": {"tool_calls": entries}, "finish_reason": "tool_calls"}]}


class Ended(SqliteJournal):
    """A journal of a process that ends before anything else is recorded."""

    async def settle(self, key, outcome, *, attempt=None):
        if attempt is None:
            return False
        return await super().settle(key, outcome, attempt=attempt)

    async def finish(self, turn):
        pass


@pytest.fixture
def path(tmp_path, registry) -> str:
    """A journal with a repaired call that succeeded, one that began, and one that did not."""
    path = tmp_path / "calls.db"

    async def main() -> None:
        with Ended(path) as journal:
            runner = Runner(registry, journal=journal, run_id="R", max_concurrency=1)
            with anyio.move_on_after(0.1):
                await runner.run(calls(("look", "seven"), ("charge", '{"n": 1}'), ("look", '{"n": 2}')), turn_id="T")

    anyio.run(main)
    return str(path)


def test_listing(path, capsys):
    """A line a call."""
    assert main(["journal", path]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "R:T:0  succeeded     look              seven",
        'R:T:1  started       charge            {"n": 1}',
        'R:T:2  not_started   look              {"n": 2}',
    ]


def test_showing_a_repaired_call(path, capsys):
    """The raw text, the repair record, the attempts, the outcome."""
    assert main(["journal", path, "--show", "R:T:0", "--json"]) == 0

    shown = json.loads(capsys.readouterr().out)
    assert (shown["status"], shown["value"], shown["attempts"]) == ("succeeded", 7, 1)
    assert (shown["raw_arguments"], shown["arguments"], shown["grade"]) == ("seven", {"n": 7}, "hook")
    assert [(repair["accepted"], repair["fault"]) for repair in shown["repairs"]] == [(True, "parse")]


def test_showing_a_call_that_began(path, capsys):
    """What it ran with is known, and no outcome is."""
    assert main(["journal", path, "--show", "R:T:1"]) == 0

    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (shown["status"], shown["attempts"], shown["started"]) == ("started", "1", "true")
    assert shown["arguments"] == '{"n": 1}'


@pytest.mark.parametrize(
    ("options", "status", "content"),
    [(["--result", '{"receipt": 12}'], "succeeded", '{"receipt":12}'), (["--error", "no money"], "failed", "no money")],
)
def test_settling(path, registry, capsys, options, status, content):
    """The outcome is what recovery brings then; a second one is refused."""
    assert main(["journal", path, "--settle", "R:T:1", *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == status
    assert main(["journal", path, "--settle", "R:T:1", "--result", "1"]) == 1
    assert capsys.readouterr().err == f"toolrun: R:T:1 has an outcome already: {status}\n"

    async def recover() -> list[str]:
        async with SqliteJournal(path) as journal:
            return [turn.messages() async for turn in Runner(registry, journal=journal).recover()]

    ((_, *results),) = anyio.run(recover)
    assert [message["content"] for message in results] == ["7", content, "2"]
    assert main(["journal", path, "--unsettled"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--show", "R:T:9"], "no call has the key 'R:T:9'"),
        (["--settle", "R:T:1"], "--settle takes one of --result and --error"),
        (["--result", "1"], "--settle takes one of --result and --error"),
        (["--settle", "R:T:1", "--result", "{"], "--result is not JSON"),
    ],
)
def test_bad_options(path, capsys, options, says):
    """One line says what; nothing is settled."""
    assert main(["journal", path, *options]) == 2
    assert says in capsys.readouterr().err
    assert main(["journal", path, "--show", "R:T:1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "started"


def test_no_file(tmp_path, capsys):
    """None is made."""
    assert main(["journal", str(tmp_path / "calls.db")]) == 2
    assert capsys.readouterr().err.endswith("calls.db: no such file\n")
    assert not list(tmp_path.iterdir())


def test_a_journal_in_use(path, capsys):
    """It has one owner."""
    with SqliteJournal(path):
        assert main(["journal", path]) == 2
    assert "owns it; close that, or use another file" in capsys.readouterr().err
