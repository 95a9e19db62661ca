"""The registry: names, duplicates, definitions in each dialect, hooks."""

# Tools with annotations of their own: no postponed evaluation here.
import functools

import pytest

from toolrun import DialectError, RegistrationError, Tool, ToolRegistry


def greet(name: str, times: int = 1) -> str:
    """Say hello.

    Args:
        name: Whom.
    """
    return name * times


PARAMETERS = {
    "type": "object",
    "properties": {"name": {"type": "string", "description": "Whom."}, "times": {"type": "integer", "default": 1}},
    "required": ["name"],
    "additionalProperties": False,
}


def test_openai_definitions():
    """Exactly what the request's `tools` takes."""
    assert ToolRegistry([Tool.from_function(greet)]).definitions("openai-chat") == [
        {"type": "function", "function": {"name": "greet", "description": "Say hello.", "parameters": PARAMETERS}}
    ]


@pytest.mark.parametrize("wire", ["anthropic-messages", "anthropic"])
def test_anthropic_definitions(wire: str):
    """By the wire's name, or the dialect's."""
    assert ToolRegistry([Tool.from_function(greet)]).definitions(wire) == [
        {"name": "greet", "description": "Say hello.", "input_schema": PARAMETERS}
    ]


def test_tools_without_parameters_or_description():
    """An empty object, closed; an empty description."""

    def ping():
        return "pong"

    (told,) = ToolRegistry([Tool.from_function(ping)]).definitions("anthropic")

    assert told == {
        "name": "ping",
        "description": "",
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
    }


def test_definitions_keep_the_order_of_registration():
    """It is the user's order, and stable: providers cache by prefix."""
    registry = ToolRegistry()
    for name in ("zebra", "ant", "mouse"):
        registry.tool(name=name)(greet)

    assert [told["function"]["name"] for told in registry.definitions("openai-chat")] == ["zebra", "ant", "mouse"]
    assert registry.names == ("ant", "mouse", "zebra")


def test_what_is_done_to_a_definition_changes_nothing():
    """A caller that edits the request's tools edits neither the registry nor the next request."""
    registry = ToolRegistry([Tool.from_function(greet)])
    told = registry.definitions("openai-chat")
    told[0]["function"]["parameters"]["properties"]["name"]["type"] = "integer"
    told[0]["function"]["parameters"]["required"].append("x")

    assert registry.definitions("openai-chat")[0]["function"]["parameters"] == PARAMETERS


@pytest.mark.parametrize(
    ("name", "wire", "fits"),
    [
        ("get_weather-2", "openai-chat", True),
        ("x" * 64, "openai-chat", True),
        ("x" * 65, "openai-chat", False),
        ("x" * 65, "anthropic", True),
        ("x" * 129, "anthropic", False),
        ("get weather", "openai-chat", False),
        ("get.weather", "anthropic", False),
        ("wetter_ä", "openai-chat", False),
        ("a\n", "openai-chat", False),
    ],
)
def test_names_that_a_provider_does_not_take(name: str, wire: str, fits: bool):
    """A clear error, never a changed name."""
    registry = ToolRegistry([Tool.from_function(greet, name=name)])

    if fits:
        registry.definitions(wire)
    else:
        with pytest.raises(DialectError, match="takes names that match"):
            registry.definitions(wire)


def test_an_unknown_dialect():
    """The error lists those that there are."""
    with pytest.raises(DialectError, match=r"no schema dialect named 'telnet'; known: .*openai-chat"):
        ToolRegistry([Tool.from_function(greet)]).definitions("telnet")


def test_an_unknown_dialect_without_tools():
    """A misspelt name is an error even while nothing is registered."""
    with pytest.raises(DialectError):
        ToolRegistry().definitions("telnet")


def test_duplicates():
    """A second tool of a name is refused, however it comes; the first stays."""
    registry = ToolRegistry([Tool.from_function(greet)])

    with pytest.raises(RegistrationError, match="'greet' is registered already"):
        registry.add(Tool.from_function(greet))
    with pytest.raises(RegistrationError, match="'greet' is registered already"):
        registry.tool(greet)
    with pytest.raises(RegistrationError, match="'greet' is registered already"):
        ToolRegistry([Tool.from_function(greet), Tool.from_function(greet)])
    assert len(registry) == 1


def test_a_failed_declaration_registers_nothing():
    """Neither half a tool nor its name."""
    registry = ToolRegistry()

    with pytest.raises(RegistrationError):

        @registry.tool
        def f(*args: int) -> None:
            """Do nothing."""

    assert "f" not in registry
    registry.tool(name="f")(greet)


def test_decorated_functions_stay_what_they_are():
    """Bare or with options, the decorator gives the function back."""
    registry = ToolRegistry()

    @registry.tool
    def bare(n: int) -> int:
        return n

    @registry.tool(timeout=3)
    def with_options(n: int) -> int:
        return n

    assert (bare(1), with_options(2)) == (1, 2)
    assert registry["bare"].function is bare
    assert registry["with_options"].timeout == 3


def test_a_name_and_a_description_of_its_own():
    """Said in the declaration, they win over the function's."""
    registry = ToolRegistry()
    registry.tool(name="hello", description="Greets.")(greet)

    assert registry["hello"].definition.description == "Greets."
    assert "greet" not in registry


def test_an_empty_description_is_one():
    """`description=""` silences the docstring."""
    registry = ToolRegistry()
    registry.tool(description="")(greet)

    assert registry["greet"].definition.description == ""


def test_looking_up():
    """By name, with `in`, by iteration; a missing one is a KeyError."""
    registry = ToolRegistry([Tool.from_function(greet)])

    assert registry["greet"].name == "greet"
    assert "greet" in registry
    assert "Greet" not in registry
    assert None not in registry
    assert [tool.name for tool in registry] == ["greet"]
    with pytest.raises(KeyError):
        registry["nobody"]


@pytest.mark.parametrize(
    ("readings", "found"),
    [
        (("greet",), "greet"),
        (("gre", "greet"), "greet"),
        (("gr", "gre"), None),
        (("greet", "part"), None),
        (("greet", "greet"), "greet"),
        ((), None),
    ],
)
def test_readings_of_a_name(readings: tuple[str, ...], found: str | None):
    """Exactly one registered reading, or none."""
    registry = ToolRegistry([Tool.from_function(greet), Tool.from_function(greet, name="part")])

    tool = registry.find(readings)

    assert (tool.name if tool else None) == found


def test_hooks_are_registered_as_they_are():
    """Bare or with options; a partial and a callable object too; the order is kept."""
    registry = ToolRegistry()

    class Hook:
        def __call__(self, request):
            """Answer nothing."""

    @registry.repair
    def bare(request):
        """Answer nothing."""

    @registry.repair(on=["parse", "schema"], tools="greet", first=True)
    async def bound(request):
        """Answer nothing."""

    registry.repair(functools.partial(bare))
    registry.repair(Hook())

    assert [binding.name for binding in registry.hooks] == ["bare", "bound", "partial", "Hook"]
    assert registry.hooks[0].hook is bare
    assert registry.hooks[1].on == {"parse", "schema"}
    assert registry.hooks[1].tools == {"greet"}
    assert [binding.first for binding in registry.hooks] == [False, True, False, False]
    assert "incomplete" not in registry.hooks[0].on


def test_hooks_that_make_no_sense():
    """Not callable, or bound to a fault that there is not."""
    registry = ToolRegistry()

    with pytest.raises(RegistrationError, match="must be callable"):
        registry.repair("parse")
    with pytest.raises(RegistrationError, match="faults are: incomplete"):
        registry.repair(on="syntax")(lambda request: None)
    assert registry.hooks == ()


def test_two_registries_do_not_know_each_other():
    """Nothing is global."""
    first, second = ToolRegistry(), ToolRegistry()
    first.tool(greet)
    second.tool(greet)
    first.repair(lambda request: None)

    assert len(first) == len(second) == 1
    assert second.hooks == ()
