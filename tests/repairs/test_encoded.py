"""Containers that were written as strings, and what a refusal tells the model."""

from __future__ import annotations

import pytest

from toolrun import Runner, Tool, ToolRegistry, repair_arguments


def take(names: list[str], text: str = "", places: list[list[int]] | None = None) -> str:
    """Take what is given."""
    return f"{names} {text} {places}"


TOOL = Tool.from_function(take)


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ('{"names": "[\\"a\\"]"}', {"names": ["a"]}),
        ('{"names": ["a"], "places": "[[1], \\"[2]\\"]"}', {"names": ["a"], "places": [[1], [2]]}),
        ('{"names": ["[1]"], "text": "[\\"a\\"]"}', {"names": ["[1]"], "text": '["a"]'}),
        ('{"names": "[x"}', None),
        ('{"names": "a, b"}', None),
    ],
)
def test_containers_in_strings(raw: str, arguments: dict[str, object] | None) -> None:
    """Only where the schema has a container and nothing else; text stays text."""
    assert repair_arguments(raw, TOOL).arguments == arguments


@pytest.mark.parametrize(
    ("raw", "finish_reason"),
    [
        ('{"names": ["a", "b"', "length"),
        ('{"names": ["a", "b', "length"),
        ('{"names": ["a", "b', "tool_calls"),
        ('{"names": ["a"], "text": "cut he', "tool_calls"),
    ],
)
def test_nothing_is_closed(raw: str, finish_reason: str) -> None:
    """A cut list has plausible items, and is not what the model meant."""
    assert repair_arguments(raw, TOOL, finish_reason=finish_reason).arguments is None


async def test_an_unknown_tool_names_those_that_there_are() -> None:
    """A model that is told only that it was wrong repeats itself."""
    call = {"id": "c", "function": {"name": "grab", "arguments": "{}"}}
    response = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    turn = await Runner(ToolRegistry([TOOL])).run(response)
    [outcome] = turn.outcomes
    assert (outcome.status, outcome.code) == ("refused", "unknown_tool")
    assert "'grab'" in outcome.message
    assert "take" in outcome.message


async def test_a_name_that_no_request_takes_is_put_right_in_the_history_alone() -> None:
    """Providers refuse the next request for it; the call keeps what was written."""
    call = {"id": "c", "function": {"name": "grab<|channel|>commentary", "arguments": "{}"}}
    response = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    turn = await Runner(ToolRegistry([TOOL])).run(response)
    written = turn.messages()[0]["tool_calls"][0]["function"]["name"]
    assert turn.outcomes[0].call.name == "grab<|channel|>commentary"
    assert all(character.isalnum() or character in "_-" for character in written)
