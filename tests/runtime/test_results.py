"""What the model is told of a result: images and files, limits, and where the whole is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from toolrun import Failed, Image, RegistrationError, Runner, Succeeded, Tool, ToolError, ToolRegistry

from .responses import anthropic_message, response

if TYPE_CHECKING:
    from toolrun import Outcome

PNG = b"\x89PNG\r\n\x1a\nrest"
LONG = "é" * 150_000


def long() -> str:
    return LONG


def fail() -> str:
    raise ToolError(LONG)


def pictures() -> list[object]:
    return [LONG, Image(data=PNG), LONG]


async def outcome_of(tool: Tool, **options: object) -> Outcome:
    return (await Runner(ToolRegistry([tool]), **options).run(response((tool.name, "{}")))).outcomes[0]


async def test_an_image_goes_to_the_model():
    """As a block of the wire; the value stays the tool's own."""
    registry = ToolRegistry()

    @registry.tool
    def look() -> list[object]:
        return ["A cat:", Image(data=PNG)]

    turn = await Runner(registry).run(anthropic_message(("t1", "look", {})))

    assert turn.outcomes[0].value == ["A cat:", Image(data=PNG)]
    assert turn.outcomes[0].message == "A cat:\n[image: image/png, 12 bytes; it cannot be shown here]"
    (block,) = turn.messages()[1]["content"]
    assert [item["type"] for item in block["content"]] == ["text", "image"]


@pytest.mark.parametrize(
    ("tool_limit", "runner", "told"),
    [
        ("default", {}, 100_000),
        ("default", {"result_limit": 1000}, 1000),
        ("default", {"result_limit": None}, 150_000),
        (2000, {"result_limit": 1000}, 2000),
        (None, {"result_limit": 1000}, 150_000),
    ],
)
async def test_the_limit_of_results(tool_limit: object, runner: dict[str, object], told: int):
    """The tool's, else the runner's; the value is whole in any case."""
    outcome = await outcome_of(Tool.from_function(long, result_limit=tool_limit), **runner)

    assert len(outcome.message) == told
    assert outcome.value == LONG


async def test_the_words_of_an_error_have_the_same_limit():
    """A tool's own message can be as long as a result."""
    outcome = await outcome_of(Tool.from_function(fail))

    assert isinstance(outcome, Failed)
    assert len(outcome.message) == 100_000
    assert str(outcome.error) == LONG


async def test_the_texts_beside_an_image_share_the_limit():
    """Each of them is cut."""
    outcome = await outcome_of(Tool.from_function(pictures), result_limit=1000)

    assert [len(part) if isinstance(part, str) else part for part in outcome.parts] == [500, Image(data=PNG), 500]


@pytest.mark.parametrize("limit", [0, 199, -1, 1.5])
def test_a_limit_that_leaves_no_room(limit: object):
    """Refused where it is set."""
    with pytest.raises(RegistrationError, match="result_limit must be at least 200 characters or None"):
        Runner(ToolRegistry(), result_limit=limit)
    with pytest.raises(RegistrationError, match="tool 'long': result_limit must be"):
        Tool.from_function(long, result_limit=limit)


# -- the store ------------------------------------------------------------------------------


async def test_a_store_keeps_the_whole():
    """Sync or async; asked only for what is too long, with the outcome and the text."""
    kept: list[tuple[object, str]] = []

    def store(outcome: Outcome, text: str) -> str:
        kept.append((outcome.call.id, text))
        return "/kept/1"

    async def store_later(outcome: Outcome, text: str) -> str:
        await anyio.lowlevel.checkpoint()
        return store(outcome, text)

    tool = Tool.from_function(long)
    told = [(await outcome_of(tool, result_store=hook, result_limit=1000)).message for hook in (store, store_later)]
    await outcome_of(tool, result_store=store, result_limit=None)

    assert kept == [("c0", LONG)] * 2
    assert all("The whole is kept: /kept/1" in text and len(text) == 1000 for text in told)


def raising(outcome: Outcome, text: str) -> str:
    raise OSError("disk full")


def nothing(outcome: Outcome, text: str) -> None:
    return None


async def leaving(outcome: Outcome, text: str) -> str:
    raise SystemExit(3)


@pytest.mark.parametrize("store", [raising, nothing, leaving])
async def test_a_store_that_fails(store: object):
    """The result is cut without a reference, and the run goes on."""
    outcome = await outcome_of(Tool.from_function(long), result_store=store)

    assert isinstance(outcome, Succeeded)
    assert len(outcome.message) == 100_000
    assert "kept" not in outcome.message


async def test_a_store_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch):
    """So is one that never answers."""
    monkeypatch.setattr("toolrun._runtime.writing.STORE_SECONDS", 0.05)

    async def hang(outcome: Outcome, text: str) -> str:
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.fail_after(5):
        outcome = await outcome_of(Tool.from_function(long), result_store=hang)

    assert isinstance(outcome, Succeeded)
