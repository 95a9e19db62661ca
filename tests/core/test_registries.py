"""Registries made of registries: combined, filtered, renamed, prepared for a turn."""

# Tools with annotations of their own: no postponed evaluation here.
from dataclasses import replace
from typing import Any

import pytest

from toolrun import Refuse, RegistrationError, RepairRequest, Runner, Tool, ToolRegistry


def make(name: str, *tags: str, **options: Any) -> Tool:
    def function(n: int = 0) -> str:
        return name

    return Tool.from_function(function, name=name, tags=tags, **options)


def names(registry: ToolRegistry) -> list[str]:
    return [tool.name for tool in registry]


def files() -> ToolRegistry:
    """Three tools and two hooks, one of them bound to a tool."""
    registry = ToolRegistry([make("read", "fs", "safe"), make("write", "fs"), make("ping", "net", "safe")])

    @registry.repair(tools="write")
    def of_write(request: RepairRequest) -> Refuse:
        return Refuse("of write")

    @registry.repair
    def of_all(request: RepairRequest) -> None:
        """Answer nothing."""

    return registry


def hooks(registry: ToolRegistry) -> list[tuple[str, Any]]:
    return [(hook.name, hook.tools and set(hook.tools)) for hook in registry.hooks]


def test_combined():
    """The tools and hooks of both, in this order; a hook of both is asked once."""
    left, right = files(), ToolRegistry([make("pay")])
    right.repair(left.hooks[1].hook)
    both = left | right

    assert names(both) == ["read", "write", "ping", "pay"]
    assert hooks(both) == [("of_write", {"write"}), ("of_all", None)]
    left.add(make("late"))
    assert "late" not in both
    assert (names(right), len(left)) == (["pay"], 4)


def test_names_in_both():
    """Refused, like any second tool of a name."""
    with pytest.raises(RegistrationError, match="'read' is registered already"):
        files() | ToolRegistry([make("read")])


def test_filtered_by_tags():
    """Tools that have one of the tags."""
    assert names(files().filtered(tags="safe")) == ["read", "ping"]
    assert names(files().filtered(tags=["net", "fs"])) == ["read", "write", "ping"]
    assert names(files().filtered(tags=[])) == []
    assert names(files().filtered(lambda tool: tool.name != "read", tags="fs")) == ["write"]
    assert make("t").tags == frozenset()
    assert Tool.from_function(lambda: 1, name="t", tags="one").tags == {"one"}


def test_filtered_by_a_function():
    """Hooks that are bound to tools that are gone are asked about nothing."""
    kept = files().filtered(lambda tool: tool.name == "read")

    assert names(kept) == ["read"]
    assert hooks(kept) == [("of_write", set()), ("of_all", None)]


def test_prefixed():
    """Each name, in what models are told too; the tools stay the same otherwise, and so does the original."""
    registry = files()
    prefixed = registry.prefixed("fs_")

    assert names(prefixed) == ["fs_read", "fs_write", "fs_ping"]
    assert [told["function"]["name"] for told in prefixed.definitions("openai-chat")] == names(prefixed)
    assert hooks(prefixed) == [("of_write", {"fs_write"}), ("of_all", None)]
    assert prefixed["fs_read"].function is registry["read"].function
    assert names(registry) == ["read", "write", "ping"]
    assert "read" not in prefixed


def test_renamed():
    """Those that are named; two may change places."""
    assert names(files().renamed({"read": "cat"})) == ["cat", "write", "ping"]
    swapped = files().renamed({"read": "write", "write": "read"})
    assert names(swapped) == ["write", "read", "ping"]
    assert hooks(swapped)[0] == ("of_write", {"read"})


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"nobody": "x"}, "no tools named 'nobody'; registered: ping, read, write"),
        ({"read": "write"}, "'write' is registered already"),
        ({"read": ""}, "has no name of its own"),
    ],
)
def test_names_that_cannot_be_given(names: dict[str, str], said: str):
    """An old name that is not registered, a new one that is, and an empty one."""
    with pytest.raises(RegistrationError, match=said):
        files().renamed(names)


def test_reserved_names():
    """Refused however a tool comes by one, in every registry made of this one."""
    registry = ToolRegistry([make("search")], reserved=["web_search"])
    attempts = [
        lambda: registry.add(make("web_search")),
        lambda: registry.tool(name="web_search")(lambda: 1),
        lambda: registry.prefixed("web_"),
        lambda: registry.renamed({"search": "web_search"}),
        lambda: registry | ToolRegistry([make("web_search")]),
        lambda: ToolRegistry([make("web_search")]) | registry,
        lambda: registry.filtered(tags=[]).add(make("web_search")),
        lambda: ToolRegistry([make("web_search")], reserved=["web_search"]),
    ]

    for attempt in attempts:
        with pytest.raises(RegistrationError, match="'web_search' is reserved for a tool that the provider runs"):
            attempt()
    assert names(registry) == ["search"]


@pytest.mark.parametrize("name", ["__class__", "__init__", "add", "names", "definitions", "get", "keys", "", "Read"])
def test_only_registered_names_are_names(name: str):
    """No attribute of the registry or of its dict is a tool."""
    registry = files()

    assert name not in registry
    assert registry.find((name,)) is None
    with pytest.raises(KeyError):
        registry[name]


# -- one turn ---------------------------------------------------------------------------------


def by_role(deps: Any, tools: Any) -> list[Tool]:
    """Guests only see what is safe, under the same names; admins get one tool more."""
    if deps == "admin":
        return [*tools, make("delete")]
    return [tool for tool in tools if "safe" in tool.tags]


def test_prepared():
    """What the function makes of the tools, for these deps; hooks stay, and the registry itself does not change."""
    registry = files()
    assert registry.prepared("guest") is registry
    assert registry.prepare(by_role) is by_role

    assert names(registry.prepared("guest")) == ["read", "ping"]
    assert names(registry.prepared("admin")) == ["read", "write", "ping", "delete"]
    assert hooks(registry.prepared("guest")) == hooks(registry)
    assert names(registry) == ["read", "write", "ping"]


def test_changed_for_a_turn():
    """A tool may be told otherwise in a turn."""
    registry = ToolRegistry([make("read")])

    @registry.prepare
    def told(deps: Any, tools: Any) -> list[Tool]:
        return [replace(tool, definition=replace(tool.definition, description=f"For {deps}.")) for tool in tools]

    assert registry.prepared("Kari")["read"].definition.description == "For Kari."


def test_preparations_keep_to_their_tools():
    """In a combination each is asked about the tools of its own part, under their names there, in their place."""
    guarded = ToolRegistry([make("read", "safe"), make("write")])
    guarded.prepare(by_role)
    both = ToolRegistry([make("first")]) | guarded.prefixed("fs_") | ToolRegistry([make("last")])

    assert names(both.prepared("guest")) == ["first", "fs_read", "last"]
    assert names(both.prepared("admin")) == ["first", "fs_read", "fs_write", "delete", "last"]
    assert names(guarded.filtered(lambda tool: tool.name == "write").prepared("guest")) == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [([make("a"), make("a")], "'a' is registered already"), (["a"], "has to return tools")],
)
def test_preparations_that_make_no_sense(answer: list[Any], said: str):
    """Two tools of a name, and what is no tool."""
    registry = ToolRegistry()
    registry.prepare(lambda deps, tools: answer)

    with pytest.raises(RegistrationError, match=said):
        registry.prepared()


async def test_a_run_has_the_tools_of_its_turn():
    """What a turn was not given cannot be called in it, and is not among the names that the model is told."""
    registry = files()
    registry.prepare(by_role)
    call = {"id": "c", "type": "function", "function": {"name": "write", "arguments": "{}"}}
    response = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}

    async with Runner(registry) as runner:
        (guest,) = (await runner.run(response, deps="guest")).outcomes
        (admin,) = (await runner.run(response, deps="admin")).outcomes

    assert (guest.status, guest.code) == ("refused", "unknown_tool")
    assert guest.message.endswith("Available tools: ping, read.")
    assert (admin.status, admin.value) == ("succeeded", "write")
