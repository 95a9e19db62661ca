"""Turns and outcomes as JSON text, for signed tokens and for journals. Values become JSON values; errors stay behind."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pydantic_core import to_jsonable_python

from toolrun._core import calls, content, events, outcomes, records, response
from toolrun._core.json_text import encodable
from toolrun._runtime.turn import Turn
from toolrun.wires import get_wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolrun._core.calls import ToolCall
    from toolrun._core.outcomes import Outcome
    from toolrun._core.records import Grade, RepairRecord

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

_DEEPEST: Final = 200
"""Containers inside each other; written as they are here, `json` can still read them."""

_LARGEST: Final = 10**4000
"""Python writes integers of up to 4,300 digits in decimal, and reads no longer ones."""


class _Returned(NamedTuple):
    """Stands around what a tool returned."""

    value: object


_FIELDS: Final = tuple(field.name for field in dataclasses.fields(Turn) if field.name != "wire")


def turn_text(turn: Turn) -> str:
    """Write a turn; its wire by name."""
    packed = {name: _pack(getattr(turn, name)) for name in _FIELDS}
    return _written({**packed, "wire": None if turn.wire is None else turn.wire.name})


def read_turn(text: str) -> Turn:
    """Read it back.

    Raises:
        UnknownWire: It came over a wire that is not there.
    """
    packed = json.loads(text)
    name = packed.pop("wire")
    wire = None if name is None else get_wire(name)
    return Turn(wire=wire, **{field: _unpack(value) for field, value in packed.items()})


def outcome_text(outcome: Outcome) -> str:
    """Write an outcome without its call, which stands in the turn."""
    return _written(pack_outcome(outcome))


def read_outcome(text: str, call: ToolCall) -> Outcome:
    """Read it back, as the outcome of this call."""
    return unpack_outcome(json.loads(text), call)


def pack_outcome(outcome: Outcome) -> dict[str, object]:
    """An outcome without its call, as JSON values."""
    fields = _shallow(outcome)
    del fields["call"]
    return {"type": type(outcome).__name__, "fields": {name: _pack(value) for name, value in fields.items()}}


def unpack_outcome(packed: Mapping[str, Any], call: ToolCall) -> Outcome:
    """The outcome of this call again."""
    outcome: Outcome = _TYPES[packed["type"]](
        call=call, **{name: _unpack(value) for name, value in packed["fields"].items()}
    )
    return outcome


def audit_text(grade: Grade, repairs: tuple[RepairRecord, ...]) -> str:
    """Write how arguments came to be."""
    return _written([_pack(grade), _pack(repairs)])


def read_audit(text: str) -> tuple[Grade, tuple[RepairRecord, ...]]:
    """Read it back."""
    grade, repairs = json.loads(text)
    return _unpack(grade), _unpack(repairs)


def _written(packed: object) -> str:
    return json.dumps(packed, separators=(",", ":"))


def _pack(value: object, room: int = _DEEPEST) -> object:
    """JSON that tells tuples from lists and knows the types of a turn; a key that begins with $ says which.

    Raises:
        ValueError: It has more containers inside each other than `room`.
        Exception: What writing a value of the user's raises.
    """
    if not room:
        raise ValueError(f"more than {_DEEPEST} containers inside each other")
    name = type(value).__name__
    if value is None or isinstance(value, BaseException):
        return None
    if isinstance(value, StrEnum) and _ENUMS.get(name) is type(value):
        return {"$enum": name, "value": str(value)}
    if type(value) in (str, bool):
        return value
    if type(value) in (int, float):
        return _number(cast("float", value))
    if type(value) is bytes:
        return {"$bytes": base64.b64encode(value).decode()}
    if _TYPES.get(name) is type(value):
        fields = value._asdict() if isinstance(value, tuple) else _shallow(value)  # type: ignore[attr-defined]
        return {"$type": name, "fields": {field: _pack(item, room - 1) for field, item in fields.items()}}
    return _returned(value.value) if type(value) is _Returned else _pack_items(value, room - 1)


def _pack_items(value: object, room: int) -> object:
    if type(value) is tuple:
        return {"$tuple": [_pack(item, room) for item in value]}
    if type(value) is list:
        return [_pack(item, room) for item in value]
    if type(value) is dict:
        return {"$dict": [[_pack_key(key, room), _pack(item, room)] for key, item in value.items()]}
    return _pack(encodable(to_jsonable_python(value, fallback=repr, inf_nan_mode="null", bytes_mode="base64")), room)


def _returned(value: object) -> object:
    """What a tool returned may be anything. Where it cannot be written, the turn still can."""
    try:
        return _pack(value)
    except Exception:  # noqa: BLE001  # writing it runs code of the value
        return f"a {type(value).__name__} that cannot be written as JSON"


def _number(number: float) -> object:
    """A number as JSON has it; Python itself writes no integer of more digits than that as text."""
    if isinstance(number, int):
        return number if abs(number) < _LARGEST else {"$int": hex(number)}
    return number if math.isfinite(number) else None


def _pack_key(key: object, room: int) -> object:
    """A key that is one again when it is read: of any other, its text."""
    if type(key) is tuple:
        return {"$tuple": [_pack_key(item, room) for item in key]}
    packed = _pack(key, room)
    return packed if type(key) is bytes or not isinstance(packed, list | dict) else repr(key)


def _shallow(value: Any) -> dict[str, object]:
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, outcomes.OutcomeBase):
        fields["value"] = _Returned(value.value)
    return fields


def _unpack(value: Any) -> Any:
    match value:
        case {"$enum": name, "value": text}:
            return _ENUMS[name](text)
        case {"$type": name, "fields": fields}:
            return _TYPES[name](**{field: _unpack(item) for field, item in fields.items()})
        case {"$bytes": text}:
            return base64.b64decode(text)
        case {"$int": text}:
            return int(text, 16)
        case {"$tuple": items}:
            return tuple(_unpack(item) for item in items)
        case {"$dict": items}:
            return {_unpack(key): _unpack(item) for key, item in items}
        case list():
            return [_unpack(item) for item in value]
        case _:
            return value
