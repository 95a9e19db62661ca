"""What a model is asked: the message of each wire, and the request fields that leave it only one tool to call."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from toolrun import ArgumentIssue, Fault, RepairRequest, Tool, ToolDefinition, ToolRegistry

Message: TypeAlias = dict[str, Any]

MAX_LINE: Final = 300
"""Characters of one line about what is wrong; it may quote the model."""

_OPENING: Final = {
    Fault.INCOMPLETE: "it was cut off before it was complete.",
    Fault.PARSE: "its arguments are not valid JSON.",
    Fault.NOT_OBJECT: "its arguments are not one JSON object.",
    Fault.SCHEMA: "its arguments do not fit the tool's schema.",
}


class _Wire(NamedTuple):
    message: Callable[[str], Message]
    forced: Callable[[list[Any], str], dict[str, Any]]


def _plain(text: str) -> Message:
    return {"role": "user", "content": text}


def _with_function(tools: list[Any], name: str) -> dict[str, Any]:
    return {"tools": tools, "tool_choice": {"type": "function", "function": {"name": name}}}


def _with_tool(tools: list[Any], name: str) -> dict[str, Any]:
    return {"tools": tools, "tool_choice": {"type": "tool", "name": name}}


_WIRES: Final = {
    "openai-chat": _Wire(_plain, _with_function),
    "openai-responses": _Wire(
        _plain, lambda tools, name: {"tools": tools, "tool_choice": {"type": "function", "name": name}}
    ),
    "anthropic-messages": _Wire(_plain, _with_tool),
    "gemini": _Wire(
        lambda text: {"role": "user", "parts": [{"text": text}]},
        lambda tools, name: {
            "tools": tools,
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}},
        },
    ),
    "bedrock-converse": _Wire(
        lambda text: {"role": "user", "content": [{"text": text}]},
        lambda tools, name: {"toolConfig": {"tools": tools, "toolChoice": {"tool": {"name": name}}}},
    ),
    "bedrock-invoke": _Wire(_plain, _with_tool),
    "mistral": _Wire(_plain, _with_function),
    "cohere-v2": _Wire(_plain, lambda tools, name: {"tools": tools, "tool_choice": "REQUIRED"}),  # noqa: ARG005
    "ollama": _Wire(_plain, lambda tools, name: {"tools": tools}),  # noqa: ARG005  # it cannot be told to call one
}

WIRES: Final = tuple(_WIRES)
"""The wires that messages can be written for."""


def build_messages(
    request: RepairRequest, wire: str = "openai-chat", *, max_quoted: int = 4_000, forced: bool = False
) -> list[Message]:
    """Write what to ask a model about an unfit call: what is wrong and where, the schema, and what it wrote.

    Args:
        request: What the runner asked the hook.
        wire: A name in `WIRES`.
        max_quoted: Characters of the raw text that are quoted; of a longer one, the beginning and the end.
        forced: True asks for a call of the tool, False for the arguments as JSON text.

    Returns:
        One message of the user. The conversation is yours to put before it.

    Raises:
        ValueError: Nothing is known of the wire, or the request has no definition (no tool was found).

    Examples:
        >>> from toolrun import CallStatus, ToolCall
        >>> call = ToolCall(
        ...     id="c1", name="add", raw_arguments='{"n": "1"', arguments=None, status=CallStatus.PARSE_ERROR, executable=True
        ... )
        >>> definition = ToolDefinition(name="add", description="", input_schema={"type": "object"})
        >>> request = RepairRequest(call=call, fault=Fault.PARSE, text=call.raw_arguments, definition=definition)
        >>> (message,) = build_messages(request)
        >>> message["content"].splitlines()[0]
        'Your call of the tool "add" could not be run: its arguments are not valid JSON.'
    """
    if request.definition is None:
        raise ValueError("no tool was found for this call; there is nothing to ask for")
    raw = request.call.raw_arguments
    return write_messages(
        wire, request.definition, opening=opening_of(request), raw=raw, max_quoted=max_quoted, forced=forced
    )


def write_messages(
    wire: str, definition: ToolDefinition, *, opening: str, raw: str, max_quoted: int, forced: bool
) -> list[Message]:
    """Put the text together, in the form of the wire."""
    wanted = (
        f"Call the tool {_named(definition)} once, with arguments that fit its schema."
        if forced
        else "Answer with the corrected arguments alone: one JSON object that fits the schema."
    )
    schema = json.dumps(definition.input_schema, ensure_ascii=False, indent=2)
    parts = (
        opening,
        f"The JSON Schema of its arguments:\n{schema}",
        f"What you wrote, between the lines:\n-----\n{_capped(raw, max_quoted)}\n-----",
        wanted,
    )
    return [known_wire(wire).message("\n\n".join(parts))]


def opening_of(request: RepairRequest) -> str:
    """Say what is wrong and where."""
    assert request.definition is not None
    first = _OPENING.get(request.fault, "it is unfit.")
    issues = request.issues or ((request.issue,) if request.issue else ())
    same = request.text == request.call.raw_arguments
    listed = [f"- {_shortened(_where(issue, in_raw=same))}" for issue in issues]
    return "\n".join([f"Your call of the tool {_named(request.definition)} could not be run: {first}", *listed])


def opening_again(definition: ToolDefinition, message: str) -> str:
    """Say why the answer to the last question was not taken."""
    why = "\n".join(_shortened(line) for line in message.splitlines())
    return f"Your corrected call of the tool {_named(definition)} could not be run either.\n{why}"


def force_tool(definition: ToolDefinition, wire: str = "openai-chat") -> dict[str, Any]:
    """Write the fields of a request that give the model one tool and, where the provider can be told so, only that choice.

    Args:
        definition: The tool's definition, as a request has it.
        wire: A name in `WIRES`.

    Returns:
        Fields named as the provider's API names them; for Gemini, those of `config`.

    Raises:
        ValueError: Nothing is known of the wire.
        DialectError: The provider cannot express the tool.

    Examples:
        >>> definition = ToolDefinition(name="add", description="", input_schema={"type": "object", "properties": {}})
        >>> force_tool(definition, "anthropic-messages")["tool_choice"]
        {'type': 'tool', 'name': 'add'}
    """
    known = known_wire(wire)
    return known.forced(ToolRegistry([declared(definition)]).definitions(wire), definition.name)


def declared(definition: ToolDefinition) -> Tool:
    """A tool with the same definition that does nothing: whatever fits it, or fits without a loss, is taken."""
    return Tool.from_json_schema(
        name=definition.name,
        description=definition.description,
        input_schema=definition.input_schema,
        handler=_nothing,
        timeout=None,
        repair="lossless",  # the floor of the tool that will run is not known here
    )


def known_wire(wire: str) -> _Wire:
    """Look a wire up.

    Raises:
        ValueError: Nothing is known of it.
    """
    try:
        return _WIRES[wire]
    except KeyError:
        raise ValueError(f"nothing is known of the messages of {wire!r}; known: {', '.join(WIRES)}") from None


async def _nothing(**arguments: object) -> None:
    """Stand in for the tool: it is only its schema that counts."""


def _named(definition: ToolDefinition) -> str:
    return json.dumps(definition.name)


def _where(issue: ArgumentIssue, *, in_raw: bool) -> str:
    """Say what and where; a place in a text that hooks have changed is none in what the model wrote."""
    if in_raw or issue.offset is None:
        return issue.describe()
    return f"{issue.message}, near {issue.excerpt!r}" if issue.excerpt else issue.message


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…"


def _capped(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head, tail = most - most // 2, most // 2
    return f"{text[:head]}\n[… {len(text) - most} characters …]\n{text[len(text) - tail :]}"
