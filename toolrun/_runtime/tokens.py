"""A turn as text, signed: for the time between a deferred call and its answer, which may be another process's."""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Final

from toolrun._core.exceptions import InvalidToken, RegistrationError
from toolrun._runtime.packing import read_turn, turn_text

if TYPE_CHECKING:
    from toolrun._runtime.turn import Turn

_FORMAT: Final = 1
_SHORTEST_KEY: Final = 16
_DOMAIN: Final = b"toolrun turn 1\0"


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
    text = turn_text(turn)
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
    return read_turn(text)


def _signature(text: str, key: bytes) -> str:
    return hmac.new(key, _DOMAIN + text.encode(errors="surrogatepass"), "sha256").hexdigest()
