"""Definitions fit the SDKs' request types without a cast; checked by mypy and basedpyright, never run."""

from collections.abc import Sequence
from typing import Any, assert_type

from toolrun import Tool, ToolRegistry
from toolrun.wires import OpenAIChat

registry = ToolRegistry(strict=True)
assert_type(registry.strict, bool)
assert_type(registry.definitions("openai-chat"), list[Any])
assert_type(registry.definitions(OpenAIChat(), strict=False), list[Any])
entries: Sequence[dict[str, object]] = registry.definitions("mcp")
assert_type(Tool.from_definition({"name": "add"}, handler=print, effect="pure"), Tool)
registry.definitions(wire=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
