"""The events of a stream case told otherwise: argument text split elsewhere, and a second call woven in."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]


def split_events(case: Json, seed: str) -> list[Json]:
    """The same events with each piece of argument text split at random places, into events of their own.

    The pieces after the first carry the index alone, like those of a server that says who a call is once.
    """
    random_ = random.Random(seed)
    split = SPLITTERS[case["wire"]]
    return [part for event in case["events"] for part in split(event, random_)]


def pieces(text: str, random_: random.Random) -> list[str]:
    cuts = sorted(random_.sample(range(1, len(text)), k=min(random_.randint(1, 4), len(text) - 1)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _chat(event: Json, random_: random.Random) -> Iterator[Json]:
    """The pieces come first, then the event without them: a chunk's deltas count before its finish."""
    rest = copy.deepcopy(event)
    for choice in rest.get("choices") or ():
        delta = choice.get("delta") or {}
        calls = delta.pop("tool_calls", None)
        for call in [calls] if isinstance(calls, dict) else calls or ():
            for piece in _chat_call(call, random_):
                yield _chunk(event, choice, {"tool_calls": [piece]})
        legacy = delta.pop("function_call", None)
        for piece in _chat_call({"function": legacy}, random_) if legacy else ():
            yield _chunk(event, choice, {"function_call": piece["function"]})
    yield rest


def _chunk(event: Json, choice: Json, delta: Json) -> Json:
    return {**event, "choices": [{"index": choice.get("index", 0), "delta": delta, "finish_reason": None}]}


def _chat_call(call: Json, random_: random.Random) -> Iterator[Json]:
    function = call.get("function")
    text = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(text, str) or len(text) < 2:
        yield call
        return
    first, *others = pieces(text, random_)
    yield {**call, "function": {**function, "arguments": first}}
    place = {"index": call["index"]} if "index" in call else {}
    for piece in others:
        yield {**place, "function": {"arguments": piece}}


def _by_path(kind: str, *path: str) -> Callable[[Json, random.Random], Iterator[Json]]:
    """A splitter for events that hold one text, at one place."""

    def split(event: Json, random_: random.Random) -> Iterator[Json]:
        text: Any = event if str(event.get("type", kind)).endswith(kind) else None
        for key in path:
            text = text.get(key) if isinstance(text, dict) else None
        if not isinstance(text, str) or len(text) < 2:
            yield event
            return
        for piece in pieces(text, random_):
            part = copy.deepcopy(event)
            holder = part
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = piece
            yield part

    return split


def _gemini(event: Json, random_: random.Random) -> Iterator[Json]:
    """A string in pieces says of each but the last that it goes on; arguments that come as an object have no text."""
    told = copy.deepcopy(event)
    for candidate in told.get("candidates") or ():
        for part in (candidate.get("content") or {}).get("parts") or ():
            call = part.get("functionCall") or {}
            if "partialArgs" in call:
                call["partialArgs"] = [piece for given in call["partialArgs"] for piece in _partial(given, random_)]
    yield told


def _partial(given: Json, random_: random.Random) -> Iterator[Json]:
    text = given.get("stringValue", "")
    if len(text) < 2:
        yield given
        return
    *others, last = pieces(text, random_)
    for piece in others:
        yield {**given, "stringValue": piece, "willContinue": True}
    yield {**given, "stringValue": last}


def _whole(event: Json, random_: random.Random) -> Iterator[Json]:  # one of several
    """Arguments that are always an object have no text to split."""
    yield event


SPLITTERS: Final = {
    "openai-chat": _chat,
    "mistral": _chat,
    "anthropic-messages": _by_path("content_block_delta", "delta", "partial_json"),
    "openai-responses": _by_path("_call_arguments.delta", "delta"),
    "bedrock-converse": _by_path("", "contentBlockDelta", "delta", "toolUse", "input"),
    "cohere-v2": _by_path("tool-call-delta", "delta", "message", "tool_calls", "function", "arguments"),
    "gemini": _gemini,
    "ollama": _whole,
}


class Second(NamedTuple):
    """Another call, in events of its own."""

    id: str
    raw: str
    events: list[Json]


def second_call(wire: str) -> Second:
    """A call at an index that no case uses; the wire says of each of its events whose it is."""
    call_id, texts = "zzzzzzzz9", ('{"z":', " 9", "}")
    return Second(call_id, "".join(texts), [*_SECONDS[wire](call_id, texts)])


def _second_chat(id: str, texts: tuple[str, ...]) -> Iterator[Json]:
    yield _chunk({}, {}, {"tool_calls": [{"index": 90, "id": id, "function": {"name": "second", "arguments": ""}}]})
    for text in texts:
        yield _chunk({}, {}, {"tool_calls": [{"index": 90, "function": {"arguments": text}}]})


def _second_messages(id: str, texts: tuple[str, ...]) -> Iterator[Json]:
    block = {"type": "tool_use", "id": id, "name": "second", "input": {}}
    yield {"type": "content_block_start", "index": 90, "content_block": block}
    for text in texts:
        delta = {"type": "input_json_delta", "partial_json": text}
        yield {"type": "content_block_delta", "index": 90, "delta": delta}
    yield {"type": "content_block_stop", "index": 90}


def _second_responses(id: str, texts: tuple[str, ...]) -> Iterator[Json]:
    item = {"type": "function_call", "id": "fc_9", "call_id": id, "name": "second", "arguments": ""}
    yield {"type": "response.output_item.added", "output_index": 90, "item": item}
    for text in texts:
        told = {"output_index": 90, "item_id": "fc_9", "delta": text}
        yield {"type": "response.function_call_arguments.delta", **told}
    yield {"type": "response.output_item.done", "output_index": 90, "item": {**item, "arguments": "".join(texts)}}


def _second_converse(id: str, texts: tuple[str, ...]) -> Iterator[Json]:
    start = {"toolUse": {"toolUseId": id, "name": "second"}}
    yield {"contentBlockStart": {"start": start, "contentBlockIndex": 90}}
    for text in texts:
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": text}}, "contentBlockIndex": 90}}
    yield {"contentBlockStop": {"contentBlockIndex": 90}}


def _second_cohere(id: str, texts: tuple[str, ...]) -> Iterator[Json]:
    start = {"id": id, "type": "function", "function": {"name": "second", "arguments": ""}}
    yield {"type": "tool-call-start", "index": 90, "delta": {"message": {"tool_calls": start}}}
    for text in texts:
        delta = {"message": {"tool_calls": {"function": {"arguments": text}}}}
        yield {"type": "tool-call-delta", "index": 90, "delta": delta}
    yield {"type": "tool-call-end", "index": 90}


_SECONDS: Final = {
    "openai-chat": _second_chat,
    "mistral": _second_chat,
    "anthropic-messages": _second_messages,
    "openai-responses": _second_responses,
    "bedrock-converse": _second_converse,
    "cohere-v2": _second_cohere,
}
"""The wires whose events say whose they are; in the others a call is one event, or goes on with the last."""

INTERLEAVING: Final = frozenset(_SECONDS)


def interleaved(case: Json, seed: str, ends: Callable[[Any], bool]) -> list[Json]:
    """The events with those of a second call at random places between the first of them and the finish."""
    random_ = random.Random(seed)
    events = case["events"]
    proven = next((place for place, event in enumerate(events) if ends(event)), len(events))
    first = min(1, proven)
    woven = second_call(case["wire"]).events
    places = sorted(random_.choices(range(first, proven + 1), k=len(woven)))
    out = list(events)
    for place, event in reversed([*zip(places, woven, strict=True)]):
        out.insert(place, event)
    return out
