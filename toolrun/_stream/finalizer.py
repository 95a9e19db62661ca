"""`StreamFinalizer`: events of one response in, finished calls out, once each."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from toolrun._core.assembler import Assembler
from toolrun._core.exceptions import FinalizerClosed, UnknownWire
from toolrun._core.policy import FinishPolicy
from toolrun._core.preview_parser import PreviewReader, Previews
from toolrun._stream.framing import DONE, Frame, Framer, decode_payload
from toolrun.wires import get_wire, recognise
from toolrun.wires._reading import error_message, fields

if TYPE_CHECKING:
    from toolrun._core.calls import ToolCall
    from toolrun._core.events import StreamEvent
    from toolrun._core.preview import Preview
    from toolrun._core.response import Response
    from toolrun._core.seams import Decode, ReadPiece, Wire

EndOfStream: TypeAlias = Literal["auto", "normal", "eof", "error"]
"""How the source ended: `normal` after the protocol's terminator, `eof` without it, `error` if it raised."""

_ENVELOPE: Final = frozenset(("event", "data"))
_MAX_WAITING: Final = 64
_RAW: Final = (str, bytes, bytearray, memoryview)


class StreamFinalizer:
    """Merges the events of one response and finalizes every call exactly once, when the stream closes.

    Fed and asked; it never waits. No event raises out of `feed` or `close`, whatever is in it:
    what cannot be read becomes a `Diagnostic`.

    Args:
        wire: The provider protocol: `"auto"` (told by the first event that is known), a name, or a `Wire`.
        policy: What to make of a missing or doubtful finish.
        deltas: False leaves out the events that only show what comes: `CallDelta`, `TextDelta`, `CitationAdded` and
            `UsageReported`.
        eager: Tells by its name whether a call is finalized as soon as the wire proves it whole, before the end of
            the stream: a Responses item that is done, or an Anthropic block with another one after it.
        previews: True puts a `CallPreview` after each event that changed what there is to show; with `deltas`.
        run_id: With `turn_id`, what synthetic call ids are derived from; the same pair gives the same ids.
        turn_id: By default the provider's id of the response.

    Raises:
        UnknownWire: No wire has that name.

    Examples:
        >>> finalizer = StreamFinalizer("openai-chat")
        >>> delta = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}
        >>> [type(event).__name__ for event in finalizer.feed({"choices": [{"delta": delta}]})]
        ['CallStarted', 'CallDelta']
        >>> _ = finalizer.feed({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
        >>> [type(event).__name__ for event in finalizer.close()]
        ['CallFinalized']
        >>> finalizer.calls[0].arguments
        {}
    """

    def __init__(
        self,
        wire: str | Wire = "auto",
        *,
        policy: FinishPolicy | None = None,
        deltas: bool = True,
        eager: Callable[[str], bool] | None = None,
        previews: bool = False,
        run_id: str = "",
        turn_id: str | None = None,
    ) -> None:
        """See the class."""
        self._policy = policy or FinishPolicy()
        self._run_id = run_id
        self._turn_id = turn_id
        self._assembler = Assembler(self._make_id, deltas=deltas, eager=eager)
        self._previews = Previews() if previews else None
        self._readers: dict[int, PreviewReader] = {}
        self._framer: Framer | None = None
        self._wire: Wire | None = None
        self._decode: Decode = self._await_wire
        self._read_piece: ReadPiece = _reads_nothing
        self._waiting: list[object] = []
        self._calls: tuple[ToolCall, ...] = ()
        self._strange = False
        self._closed = False
        if wire != "auto":
            self._use(get_wire(wire))

    @property
    def wire(self) -> Wire | None:
        """The protocol in use; None as long as `"auto"` has not found one."""
        return self._wire

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The finalized calls of all choices, in order of arrival; empty before `close`."""
        return self._calls

    @property
    def ended(self) -> bool:
        """True once a finish reason or the protocol's terminator was seen."""
        return self._assembler.ended()

    @property
    def response(self) -> Response:
        """What the response consists of so far, calls aside."""
        return self._assembler.response(self._wire.name if self._wire else "")

    def require_wire(self) -> None:
        """Insist that what came was recognised; an empty stream is fine.

        Raises:
            UnknownWire: Events came, and `"auto"` knew none of them.
        """
        if self._waiting or (self._strange and self._wire is None):
            raise UnknownWire("no event was recognised as any known provider's; name the wire with wire=… (or --wire)")

    def feed(self, event: object) -> Sequence[StreamEvent]:
        """Take the next event, or the next piece of the raw stream.

        Args:
            event: A decoded event (a mapping, or an SDK's object), one whole response, or raw SSE,
                NDJSON or JSON as bytes or str, split anywhere.

        Returns:
            What came of it, in order. Calls are finalized here only on proof, and only those that `eager` wants.

        Raises:
            FinalizerClosed: `close` was called before; a finalizer is for one response.
        """
        if self._closed:
            raise FinalizerClosed("this finalizer is closed; make a new StreamFinalizer for each response")
        assembler = self._assembler
        try:
            if not self._read_piece(event):
                if isinstance(event, _RAW):
                    self._feed_raw(event)
                else:
                    self._feed_event(event, asked=True)
        except Exception as error:  # noqa: BLE001  # a hostile event must not disturb its siblings
            self._unreadable(event, error)
        if not assembler.events:
            return ()
        events, assembler.events = assembler.events, []
        return events if self._previews is None else self._previews.follow(events)

    def close(self, end: EndOfStream = "auto") -> Sequence[StreamEvent]:
        """Finalize every call.

        Args:
            end: How the source ended. `"auto"`: normal if a finish reason or a terminator was seen,
                else end of file.

        Returns:
            One `CallFinalized` a call, in order, and diagnostics. Closing again returns nothing.
        """
        if self._closed:
            return ()
        if self._framer is not None:
            for payload in self._framer.close():
                self._feed_payload(payload)
        self._closed = True
        for event in self._waiting:
            self._assembler.diagnose("unknown_wire", f"no wire knows this event: {_described(event)}")
        if end == "normal":
            self._assembler.terminate()
        elif end == "error":
            self._assembler.error("the stream raised before its end")
        self._calls = self._assembler.close(self._policy)
        events = self._assembler.events
        return events if self._previews is None else self._previews.follow(events)

    def preview(self, position: int) -> Preview:
        """Show the arguments of a call as far as they have come.

        Nothing is read before it is asked for, and nothing twice: it costs nothing until then, and as much as what
        came since the last time.

        Args:
            position: The call's place in this stream, as its events have it.

        Returns:
            A view that does not change when more comes.

        Raises:
            LookupError: No call has begun at that position.
        """
        if position < 0:
            raise IndexError(position)
        pieces = self._assembler.pieces(position)
        if self._calls and not pieces:
            pieces = [self._calls[position].raw_arguments]  # they came as a whole
        reader = self._readers.get(position)
        if reader is None or reader.pieces is not pieces:
            reader = self._readers[position] = PreviewReader(pieces)
        return reader.snapshot()

    def _feed_raw(self, chunk: str | bytes | bytearray | memoryview) -> None:
        if chunk == DONE:
            self._assembler.terminate()
            return
        if self._framer is None:
            self._framer = Framer()
        data = chunk.encode(errors="surrogatepass") if isinstance(chunk, str) else bytes(chunk)
        for payload in self._framer.feed(data):
            if not self._read_piece(payload):
                self._feed_payload(payload)

    def _feed_payload(self, payload: object) -> None:
        if not isinstance(payload, Frame):
            self._feed_event(payload, asked=True)
        elif payload.value is DONE:
            self._assembler.terminate()
        elif payload.unreadable is not None:
            self._lose(payload.unreadable, payload.line, last=payload.last)
        elif isinstance(payload.value, list):
            for event in payload.value:
                self._feed_event(event)
        else:
            self._feed_event(_named(payload.value, payload.event))

    def _lose(self, text: str, line: int | None, *, last: bool = False) -> None:
        """A payload that cannot be read. If it began like an event, argument text is gone with it.

        The last payload of a stream that was cut says no more than that it was cut.
        """
        message = f"not JSON: {_shorten(text)}"
        if text.lstrip().startswith(("{", "[")) and not last:
            self._assembler.lose(message, line=line)
        else:
            self._assembler.diagnose("undecodable_event", message, line=line)
        self._strange = self._wire is None

    def _feed_event(self, event: object, *, asked: bool = False) -> None:
        """One decoded event; `asked` if the quick reader left it, which is shown each event once."""
        try:
            if not asked and self._read_piece(event):
                return
            if type(event) is not dict or "data" in event:
                event = self._open_envelope(event)
            if event is not None:
                self._decode(event)
        except Exception as error:  # noqa: BLE001  # as in `feed`, which is this without the detours
            self._unreadable(event, error)

    def _unreadable(self, event: object, error: Exception) -> None:
        self._assembler.lose(f"{type(error).__name__} while reading {_described(event)}")

    def _open_envelope(self, event: object) -> object | None:
        """`{"event": …, "data": …}`, as logs and SSE clients have it, is opened; what is no event is reported."""
        if isinstance(event, str) and event == DONE:
            self._assembler.terminate()
            return None
        told = fields(event)
        if not isinstance(event, Mapping) and isinstance(getattr(event, "data", None), str):
            told = {"event": getattr(event, "event", None), "data": getattr(event, "data")}  # noqa: B009  # an object of an SSE client
        if "data" in told and "event" in told and (type(event) is not dict or told.keys() <= _ENVELOPE):
            name, data = told["event"], told["data"]
            if isinstance(data, str) and data == DONE:
                self._assembler.terminate()
                return None
            value = decode_payload(data) if isinstance(data, str | bytes) else data
            if value is None:
                self._lose(str(data), None)
                return None
            return _named(value, name if isinstance(name, str) else None)
        if not told:
            self._assembler.diagnose("undecodable_event", f"not an event: {_described(event)}")
            return None
        return event

    def _await_wire(self, event: object) -> None:
        wire = recognise(fields(event))
        if wire is None:
            chunk = fields(event).get("chunk")
            wire = recognise(fields(chunk)) if chunk else None
        if wire is None:
            if error := fields(event).get("error"):
                self._assembler.error(error_message(error))
            elif len(self._waiting) < _MAX_WAITING:
                self._waiting.append(event)
            return
        self._use(wire)
        waiting, self._waiting = self._waiting, []
        for earlier in (*waiting, event):
            self._feed_event(earlier)

    def _use(self, wire: Wire) -> None:
        self._wire = wire
        self._decode = wire.decoder(self._assembler)
        self._read_piece = getattr(wire, "piece_reader", _no_reader)(self._assembler)

    def _make_id(self, position: int) -> str:
        turn = self._turn_id if self._turn_id is not None else self._assembler.response_id or ""
        digest = sha256(f"{self._run_id}\0{turn}\0{position}".encode(errors="surrogatepass")).hexdigest()
        return self._wire.synthetic_id(digest) if self._wire else f"call_{digest[:24]}"


def _reads_nothing(event: object) -> bool:  # noqa: ARG001  # the signature of every reader
    return False


def _no_reader(sink: object) -> ReadPiece:  # noqa: ARG001  # as above
    return _reads_nothing


def _named(value: object, event: str | None) -> object:
    """Some servers put an event's type on the SSE `event:` line only."""
    if event and isinstance(value, Mapping) and "type" not in value:
        return {"type": event, **value}
    return value


def _described(value: object) -> str:
    """A value in short, however large, deep or hostile it is."""
    try:
        return reprlib.repr(value)
    except Exception:  # noqa: BLE001  # some objects cannot even be shown
        return f"a {type(value).__name__}"


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"  # noqa: PLR2004  # said here
