"""The ladder of names: exactly one hit, or nothing."""

from __future__ import annotations

import pytest

from toolrun import Tool, ToolRegistry
from toolrun._core.names import fold, resolve_name

KNOWN = ("get_weather", "read_file", "delete_file", "list-dirs", "HTTPGet")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("get_weather", "get_weather"),
        (" get_weather\n", "get_weather"),
        ("functions.get_weather", "get_weather"),
        ("functions.get_weather:0", "get_weather"),
        ("tools/get_weather", "get_weather"),
        ("default_api.get_weather", "get_weather"),
        ("functions.tools.get_weather", "get_weather"),
        ("mcp__home__get_weather", "get_weather"),
        ("mcp__my_server__get_weather", "get_weather"),
        ("get_weather<|channel|>commentary", "get_weather"),
        ("<|call|>get_weather", None),
        ("</tool>get_weather", "get_weather"),
        ("get_weather_tool", "get_weather"),
        ("getWeatherTool", "get_weather"),
        ("get_weather()", "get_weather"),
        ('"get_weather"', "get_weather"),
        ("get-weather", "get_weather"),
        ("GetWeather", "get_weather"),
        ("GET WEATHER", "get_weather"),
        ("list_dirs", "list-dirs"),
        ("http_get", "HTTPGet"),
        ("delete_files", None),
        ("get_weathers", None),
        ("weather", None),
        ("read", None),
        ("file", None),
        ("multi_tool_use.parallel", None),
        ("shell", None),
        ("", None),
        (" ", None),
        ("functions.", None),
        ("_", None),
        ("tool", None),
        ("x" * 100_000, None),
        ("mcp__" + "a_" * 250, None),
    ],
)
def test_ladder(name: str, expected: str | None):
    """Spelling is forgiven; distance, parts and meaning are not."""
    assert resolve_name(name, KNOWN) == expected


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("get_weather", ["get_weather", "getWeather"], "get_weather"),
        ("getweather", ["get_weather", "getWeather"], None),
        ("functions.get", ["functions.get", "get"], "functions.get"),
        ("get_tool", ["get", "get_tool"], "get_tool"),
        ("mcp__a__get", ["mcp__a__get", "get"], "mcp__a__get"),
        ("parallel", ["multi_tool_use.parallel"], None),
        ("天气", ["天气"], "天气"),
        ("--", ["__"], None),
    ],
)
def test_exactly_one_hit(name: str, known: list[str], expected: str | None):
    """An exact name wins; of two that fold to the same, none is chosen."""
    assert resolve_name(name, known) == expected


def test_of_a_registry():
    """Registered names are what is looked in."""
    registry = ToolRegistry(
        Tool.from_json_schema(name=name, input_schema={"type": "object"}, handler=lambda **_: None) for name in KNOWN
    )

    assert registry.resolve_name("functions.read-file") == "read_file"
    assert registry.resolve_name("read_files") is None


def test_folding():
    """Letter case and separators do not count."""
    assert fold("Get-Weather_2 ") == fold("getWeather2") == "getweather2"
