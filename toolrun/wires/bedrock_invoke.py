"""Amazon Bedrock InvokeModel: chunks whose bytes are events of the model's own protocol, and whole bodies.

A chunk is `{"chunk": {"bytes": b"…"}}` as boto3 yields it, or `{"bytes": "…"}` with base64 text as recorders
keep it. Inside are events of `anthropic-messages`, or of Nova, which have the shape of `bedrock-converse`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from toolrun.wires._bedrock import blob, report_exception, without_bytes
from toolrun.wires._reading import fields
from toolrun.wires.anthropic_messages import AnthropicMessages
from toolrun.wires.bedrock_converse import CALL, BedrockConverse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolrun._core.calls import ToolCall
    from toolrun._core.records import JsonObject
    from toolrun._core.response import Response
    from toolrun._core.seams import Decode, Sink, ToolResult, Wire

_CHUNK: Final = "chunk"
_BYTES: Final = "bytes"
_CLAUDE: Final = AnthropicMessages()
_NOVA: Final = BedrockConverse()


class BedrockInvoke:
    """The `bedrock-invoke` wire.

    Definitions are written for Anthropic's models; Nova takes those of the `bedrock-converse` dialect.
    """

    name = "bedrock-invoke"
    dialect = "anthropic"

    def recognises(self, event: Mapping[str, object]) -> bool:
        """Chunks of bytes; a whole body is recognised as what it is by its own wire."""
        return _BYTES in event or _BYTES in fields(event.get(_CHUNK))

    def decoder(self, sink: Sink) -> Decode:
        """Make the reader of one response."""
        return _Decoder(sink).decode

    def synthetic_id(self, digest: str) -> str:
        """`toolu_bdrk_` and 24 characters, like Anthropic's on Bedrock; Nova takes any."""
        return f"toolu_bdrk_{digest[:24]}"

    def assistant_messages(self, response: Response, calls: Sequence[ToolCall]) -> list[JsonObject]:
        """One assistant message, in the form of the protocol that was inside."""
        return _inside(response, calls).assistant_messages(response, calls)

    def result_messages(self, results: Sequence[ToolResult]) -> list[JsonObject]:
        """One user message with every result, in the form of the protocol that was inside."""
        messages = _made_for([result.call for result in results]).result_messages(results)
        return cast("list[JsonObject]", without_bytes(messages))

    def continues(self, finish_reason: str | None) -> bool:
        """A paused turn of Anthropic's goes on when it is sent back as it is."""
        return _CLAUDE.continues(finish_reason)


def _inside(response: Response, calls: Sequence[ToolCall]) -> Wire:
    """Tell by what is left of the events: Anthropic's responses have an id, and each block a type."""
    if calls:
        return _made_for(calls)
    typed = any("type" in part.data for part in response.parts)
    return _CLAUDE if typed or response.id is not None else _NOVA


def _made_for(calls: Sequence[ToolCall]) -> Wire:
    return _NOVA if any(CALL in call.extra for call in calls) else _CLAUDE


class _Decoder:
    """Reads the events of one response."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._decode: Decode | None = None
        self._puzzled = False

    def decode(self, event: object) -> None:
        told = event if type(event) is dict else fields(event)
        if _CHUNK in told or _BYTES in told or told.get("type") == _CHUNK:
            self._chunk(fields(told.get(_CHUNK)).get(_BYTES, told.get(_BYTES)))
        else:
            self._inner(told)

    def _chunk(self, data: object) -> None:
        """The bytes of a chunk are one event. If they cannot be read, a piece of any call may be gone with them."""
        payload = blob(data)
        try:
            event = json.loads(str(data) if payload is None else payload)
        except (ValueError, RecursionError) as error:
            self._sink.lose(f"the bytes of a chunk are not JSON: {error}")
            return
        if isinstance(event, dict):
            self._inner(event)
        else:
            self._sink.lose(f"the bytes of a chunk are no event but {type(event).__name__}")

    def _inner(self, event: Mapping[str, object]) -> None:
        kind = event.get("type")
        if kind is not None and not isinstance(kind, str):
            self._sink.lose("an event whose type is no text")
            return
        if report_exception(self._sink, kind, event) or any(
            report_exception(self._sink, name, body) for name, body in event.items()
        ):
            return
        if self._decode is None:
            wire = _wire_of(event)
            if wire is None:
                if not self._puzzled:
                    self._puzzled = True
                    self._sink.diagnose("unknown_wire", f"neither Anthropic's nor Nova's: {', '.join(map(str, event))}")
                return
            self._decode = wire.decoder(self._sink)
        self._decode(event)


def _wire_of(event: Mapping[str, object]) -> Wire | None:
    if _NOVA.recognises(event):
        return _NOVA
    # An error may come before anything else; Anthropic's has its own type.
    return _CLAUDE if _CLAUDE.recognises(event) or event.get("type") == "error" else None
