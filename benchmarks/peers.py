"""The same work by others, where they are installed: accumulators of SDKs, partial parsers, a repairer.

They do less (no identities, no finish, no record), or something else (a guess): a row says what theirs is. Each peer is
optional: its row is left out where it is not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks import preview, streams
from benchmarks.assembly import assemble
from benchmarks.harness import Effort, Measured, Row, ratio, repeated
from toolrun import Tool, repair_arguments

PEERS = {
    "openai": "openai.lib.streaming.chat",
    "jiter": "jiter",
    "partial-json-parser": "partial_json_parser",
    "json-repair": "json_repair",
}
"""Distribution and module."""

_MALFORMED = "{'query': 'fjord', limit: \"3\", 'tags': ['a', 'b',],}"


def installed(peer: str) -> str | None:
    """The version of a peer; None if it is not there."""
    try:
        return version(peer)
    except PackageNotFoundError:
        return None


def told() -> str:
    """Every peer with its version, or that it is not there."""
    return ", ".join(f"{peer} {installed(peer) or '(not installed)'}" for peer in PEERS)


def against_openai(effort: Effort) -> Measured:
    """The SDK's own accumulator, on its own chunk objects; making these is not counted."""
    module = import_module(PEERS["openai"])
    from openai.types.chat import ChatCompletionChunk  # noqa: PLC0415  # dear to import, and needed for this row alone

    pieces = streams.pieces(streams.arguments(10_000))
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [ChatCompletionChunk.model_validate({**head, **event}) for event in streams.chat([pieces])]

    def theirs() -> object:
        state = module.ChatCompletionStreamState()
        for chunk in chunks:
            state.handle_chunk(chunk)
        return state.get_final_completion().choices[0].message.tool_calls[0].function.arguments

    if theirs() != "".join(pieces):
        raise AssertionError("the SDK gives other arguments")
    return _against("openai", partial(assemble, chunks), theirs, effort, per=len(chunks))


def against_partial(effort: Effort, *, peer: str, size: int) -> Measured:
    """A partial parser after every delta, on all that has come: that is how it is used."""
    pieces = streams.pieces(streams.arguments(size))
    module = import_module(PEERS[peer])
    parse: Callable[[str], Any] = module.loads if peer == "partial-json-parser" else partial(_jiter, module)

    def theirs() -> object:
        text, view = "", None
        for piece in pieces:
            text += piece
            view = parse(text)
        return view

    return _against(peer, partial(preview.viewed, pieces), theirs, effort, per=len(pieces))


def against_json_repair(effort: Effort) -> Measured:
    """A short text in JavaScript's notation, read with the tool's schema."""
    module = import_module(PEERS["json-repair"])
    schema = {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["query"],
    }
    tool = Tool.from_json_schema(name="search", input_schema=schema, handler=_nothing)

    def ours() -> object:
        return repair_arguments(_MALFORMED, tool).arguments

    def theirs() -> object:
        return module.loads(_MALFORMED, schema=schema)

    if ours() != theirs():
        raise AssertionError("the two sides of this row give different arguments")
    return _against("json-repair", ours, theirs, effort)


def _against(
    peer: str, ours: Callable[[], object], theirs: Callable[[], object], effort: Effort, *, per: int = 1
) -> Measured:
    value, detail = ratio(repeated(ours), repeated(theirs), effort, per=per)
    return Measured(value, f"{detail}, {peer} {installed(peer)}")


def _jiter(module: Any, text: str) -> Any:
    return module.from_json(text.encode(), partial_mode="trailing-strings")


def _nothing(**arguments: object) -> None:
    """Stand in for the tool."""


ROWS = tuple(
    row
    for peer, row in (
        ("openai", Row("peer-openai", "against the OpenAI SDK's accumulator, 10 KB", "x", 1.0, against_openai)),
        (
            "jiter",
            Row(
                "peer-jiter",
                "a view after every delta, against jiter's partial mode, 10 KB",
                "x",
                1.0,
                partial(against_partial, peer="jiter", size=10_000),
            ),
        ),
        (
            "partial-json-parser",
            Row(
                "peer-partial-json-parser",
                "the same against partial-json-parser, 1 KB",
                "x",
                1.0,
                partial(against_partial, peer="partial-json-parser", size=1_000),
            ),
        ),
        (
            "json-repair",
            Row("peer-json-repair", "a short malformed text, against json_repair", "x", 10.0, against_json_repair),
        ),
    )
    if installed(peer)
)
