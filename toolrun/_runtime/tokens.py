"""A turn as text, signed: for the time between a deferred call and its answer, which may be another process's."""

from __future__ import annotations

import base64
import dataclasses
import hmac
import json
from enum import StrEnum
from typing import Any, Final

from pydantic_core import to_jsonable_python

from toolrun._core import calls, content, events, outcomes, records, response
from toolrun._core.exceptions import InvalidToken, RegistrationError
from toolrun._core.json_text import encodable
from toolrun._runtime.turn import Turn
from toolrun.wires import get_wire

_FORMAT: Final = 1
_SHORTEST_KEY: Final = 16
_DOMAIN: Final = b"toolrun turn 1\0"

_TYPES: Final[dict[str, type[Any]]] = {
    cls.__name__: cls
    for cls in (
        calls.ToolCall,
        content.File,
        content.Image,
        events.Diagnostic,
        outcomes.Cancelled,
        outcomes.Deferred,
        outcomes.Denied,
        outcomes.Failed,
        outcomes.Interrupted,
        outcomes.NotExecuted,
        outcomes.Refused,
        outcomes.Succeeded,
        outcomes.TimedOut,
        records.ArgumentIssue,
        records.Edit,
        records.RepairRecord,
        response.Part,
        response.Response,
    )
}
_ENUMS: Final[dict[str, type[StrEnum]]] = {cls.__name__: cls for cls in (calls.CallStatus, records.Grade)}
_FIELDS: Final = tuple(field.name for field in dataclasses.fields(Turn) if field.name != "wire")


def checked_key(key: object) -> bytes | None:
    """Refuse a key that is none.

    Raises:
        RegistrationError: It is not at least 16 bytes.
    """
    if key is not None and (not isinstance(key, bytes) or len(key) < _SHORTEST_KEY):
        raise RegistrationError(f"signing_key must be at least {_SHORTEST_KEY} bytes")
    return key


def dump_turn(turn: Turn, key: bytes) -> str:
    """Write a turn as signed text. Values become JSON values; errors stay behind, their messages go along."""
    packed = {name: _pack(getattr(turn, name)) for name in _FIELDS}
    wire = None if turn.wire is None else turn.wire.name
    text = json.dumps({**packed, "wire": wire}, separators=(",", ":"))
    return json.dumps({"toolrun": _FORMAT, "signature": _signature(text, key), "turn": text})


def load_turn(token: str, key: bytes) -> Turn:
    """Read it back.

    Raises:
        InvalidToken: It was changed, was signed with another key, or is no such text.
        UnknownWire: It came over a wire that is not there.
    """
    try:
        envelope = json.loads(token)
        text, signature, version = envelope["turn"], envelope["signature"], envelope["toolrun"]
        genuine = hmac.compare_digest(signature.encode(), _signature(text, key).encode())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InvalidToken("this is no turn that dump_turn wrote") from None
    if version != _FORMAT:
        raise InvalidToken(f"this turn has the format {version!r}; this version reads {_FORMAT}")
    if not genuine:
        raise InvalidToken("the turn was changed since it was written, or signed with another key")
    packed = json.loads(text)
    name = packed.pop("wire")
    wire = None if name is None else get_wire(name)
    return Turn(wire=wire, **{field: _unpack(value) for field, value in packed.items()})


def _signature(text: str, key: bytes) -> str:
    return hmac.new(key, _DOMAIN + text.encode(errors="surrogatepass"), "sha256").hexdigest()


def _pack(value: object) -> object:
    """JSON that tells tuples from lists and knows the types of a turn; a key that begins with $ says which."""
    name = type(value).__name__
    if value is None or isinstance(value, BaseException):
        return None
    if isinstance(value, StrEnum) and _ENUMS.get(name) is type(value):
        return {"$enum": name, "value": str(value)}
    if type(value) in (str, int, bool):
        return value
    if type(value) is bytes:
        return {"$bytes": base64.b64encode(value).decode()}
    if _TYPES.get(name) is type(value):
        fields = value._asdict() if isinstance(value, tuple) else _shallow(value)  # type: ignore[attr-defined]
        return {"$type": name, "fields": {field: _pack(item) for field, item in fields.items()}}
    if type(value) is tuple:
        return {"$tuple": [_pack(item) for item in value]}
    if type(value) is list:
        return [_pack(item) for item in value]
    if type(value) is dict:
        return {"$dict": [[_pack(key), _pack(item)] for key, item in value.items()]}
    return {"$json": encodable(to_jsonable_python(value, fallback=repr, inf_nan_mode="null", bytes_mode="base64"))}


def _shallow(value: Any) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _unpack(value: Any) -> Any:
    match value:
        case {"$enum": name, "value": text}:
            return _ENUMS[name](text)
        case {"$type": name, "fields": fields}:
            return _TYPES[name](**{field: _unpack(item) for field, item in fields.items()})
        case {"$bytes": text}:
            return base64.b64decode(text)
        case {"$tuple": items}:
            return tuple(_unpack(item) for item in items)
        case {"$dict": items}:
            return {_unpack(key): _unpack(item) for key, item in items}
        case {"$json": plain}:
            return plain
        case list():
            return [_unpack(item) for item in value]
        case _:
            return value
