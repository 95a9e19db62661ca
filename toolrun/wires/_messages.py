"""What the messages of each wire hold, read back: calls, results, and everything else, in order.

For histories that users keep themselves. Messages are mappings or an SDK's objects; nothing here raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from toolrun._core.json_text import parse_object
from toolrun.wires._json_names import json_fields
from toolrun.wires._reading import as_name, fields, items
from toolrun.wires._responses_items import SHAPES, is_hosted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Role: TypeAlias = Literal["system", "user", "assistant", "result", "neutral", "unreadable"]
"""Who speaks. `"result"`: only results. `"neutral"`: what may stand anywhere in an assistant's turn."""


class Piece(NamedTuple):
    """A call, a call that the provider served, a result, or something else in a message.

    `fault` says what is wrong with its shape, if anything is.
    """

    kind: Literal["call", "served", "result", "other"]
    id: str | None = None
    name: str | None = None
    fault: str | None = None


class Said(NamedTuple):
    """What one message says."""

    role: Role
    pieces: tuple[Piece, ...] = ()


UNREADABLE: Final = Said("unreadable")
_OTHER: Final = Piece("other")
_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "result",
    "function": "result",
}


def read_message(wire: str, message: object) -> Said:
    """Read one message; what cannot be read has the role `unreadable`.

    Raises:
        KeyError: Nothing is known of messages of that wire.
    """
    reader = _READERS[wire]
    try:
        told = fields(message)
        return reader(told) if told else UNREADABLE
    except Exception:  # noqa: BLE001  # a hostile message is an odd one
        return UNREADABLE


def _said(role: Role, pieces: Iterator[Piece]) -> Said:
    read = tuple(pieces)
    kinds = {piece.kind for piece in read}
    return Said("result" if role == "user" and kinds == {"result"} else role, read)


def _role(told: Mapping[str, object]) -> Role:
    return _ROLES.get(str(told.get("role")), "unreadable")


def _call(id: object, name: object, fault: str | None) -> Piece:
    known = as_name(name)
    return Piece("call", as_name(id), known, fault or (None if known else "a call without a name"))


def _text_fault(text: object) -> str | None:
    """Providers take JSON text of an object, and refuse anything else."""
    if isinstance(text, str) and isinstance(parse_object(text), dict):
        return None
    return "arguments that are not the text of a JSON object"


def _object_fault(value: object) -> str | None:
    return None if type(value) is dict or fields(value) else "arguments that are no object"


# -- messages with `tool_calls` -----------------------------------------------------------------


def _chat(told: Mapping[str, object]) -> Said:
    role = _role(told)
    if role == "result":
        given = told.get("tool_call_id")
        lacks = None if as_name(given) or told.get("role") == "function" else "a result without `tool_call_id`"
        return Said(role, (Piece("result", as_name(given), as_name(told.get("name")), lacks),))
    return _said(role, _chat_pieces(told))


def _chat_pieces(told: Mapping[str, object]) -> Iterator[Piece]:
    if told.get("content"):
        yield _OTHER
    for call in map(fields, items(told.get("tool_calls"))):
        function, custom = fields(call.get("function")), fields(call.get("custom"))
        if custom:
            fault = None if isinstance(custom.get("input"), str) else "an input that is no text"
            yield _call(call.get("id"), custom.get("name"), fault)
        else:
            fault = _text_fault(function.get("arguments"))
            yield _call(call.get("id"), function.get("name"), fault or _lacks_id(call))
    if legacy := fields(told.get("function_call")):
        yield _call(None, legacy.get("name"), _text_fault(legacy.get("arguments")))


def _lacks_id(call: Mapping[str, object]) -> str | None:
    return None if as_name(call.get("id")) else "a call without an id"


def _ollama(told: Mapping[str, object]) -> Said:
    role = _role(told)
    if role == "result":
        return Said(role, (Piece("result", as_name(told.get("tool_call_id")), as_name(told.get("tool_name"))),))
    return _said(role, _ollama_pieces(told))


def _ollama_pieces(told: Mapping[str, object]) -> Iterator[Piece]:
    if told.get("content"):
        yield _OTHER
    for call in map(fields, items(told.get("tool_calls"))):
        function = fields(call.get("function"))
        yield _call(call.get("id"), function.get("name"), _object_fault(function.get("arguments")))


# -- items --------------------------------------------------------------------------------------


def _responses(told: Mapping[str, object]) -> Said:
    kind = str(told.get("type", "message"))
    if kind == "message":
        return Said(_role(told), (_OTHER,))
    call_id = as_name(told.get("call_id"))
    shape = SHAPES.get(kind)
    if shape is not None and shape.client:
        served = Piece("served", call_id)
        return Said("assistant", (served if is_hosted(told) else _responses_call(kind, call_id, told),))
    if kind.endswith("_output") and not (kind == "tool_search_output" and told.get("execution") != "client"):
        return Said("result", (Piece("result", call_id, None, None if call_id else "a result without `call_id`"),))
    return Said("neutral")


def _responses_call(kind: str, call_id: str | None, told: Mapping[str, object]) -> Piece:
    fault = None if call_id else "a call without `call_id`"
    if kind == "function_call":
        fault = fault or _text_fault(told.get("arguments"))
    named = kind in ("function_call", "custom_tool_call")
    return _call(call_id, told.get("name") if named else kind, fault)


# -- messages with blocks -----------------------------------------------------------------------


def _anthropic(told: Mapping[str, object]) -> Said:
    return _said(_role(told), _anthropic_pieces(told.get("content")))


def _anthropic_pieces(content: object) -> Iterator[Piece]:
    for block in (content,) if isinstance(content, str) else items(content):
        given = fields(block)
        match given.get("type"):
            case "tool_use":
                yield _call(given.get("id"), given.get("name"), _object_fault(given.get("input")) or _lacks_id(given))
            case "tool_result":
                yield Piece("result", as_name(given.get("tool_use_id")))
            case _:
                yield _OTHER


def _converse(told: Mapping[str, object]) -> Said:
    return _said(_role(told), _converse_pieces(told.get("content")))


def _converse_pieces(content: object) -> Iterator[Piece]:
    for block in map(fields, items(content)):
        if "toolUse" in block:
            call = fields(block["toolUse"])
            served = call.get("type") not in (None, "tool_use")
            fault = _object_fault(call.get("input"))
            yield _OTHER if served else _call(call.get("toolUseId"), call.get("name"), fault)
        elif "toolResult" in block and fields(block["toolResult"]).get("type") in (None, "tool_result"):
            yield Piece("result", as_name(fields(block["toolResult"]).get("toolUseId")))
        else:
            yield _OTHER


def _invoke(told: Mapping[str, object]) -> Said:
    content = told.get("content")
    typed = isinstance(content, str) or any("type" in fields(block) for block in items(content))
    return _anthropic(told) if typed else _converse(told)


def _gemini(told: Mapping[str, object]) -> Said:
    role: Role = "user" if told.get("role") is None else _role(told)
    return _said("user" if role == "result" else role, _gemini_pieces(told.get("parts")))


def _gemini_pieces(parts: object) -> Iterator[Piece]:
    for part in map(json_fields, items(parts)):
        if (call := json_fields(part.get("functionCall"))) or "functionCall" in part:
            args = call.get("args")
            yield _call(call.get("id"), call.get("name"), None if args is None else _object_fault(args))
        elif result := json_fields(part.get("functionResponse")):
            yield Piece("result", as_name(result.get("id")), as_name(result.get("name")))
        else:
            yield _OTHER


_READERS: Final[dict[str, Callable[[Mapping[str, object]], Said]]] = {
    "openai-chat": _chat,
    "mistral": _chat,
    "cohere-v2": _chat,
    "ollama": _ollama,
    "openai-responses": _responses,
    "anthropic-messages": _anthropic,
    "bedrock-converse": _converse,
    "bedrock-invoke": _invoke,
    "gemini": _gemini,
}
