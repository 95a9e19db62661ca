"""The two texts that this library began with: their code, ported, and every place where the answers differ on purpose.

The first accumulates arguments by index and parses at the end; the second hardens that in a TypeScript provider. Where
they are right, the answers are the same.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from toolrun import CallStatus, FinishPolicy, finalize

from .events import (
    DONE,
    Json,
    block_start,
    block_stop,
    chat,
    chunk,
    input_delta,
    message_delta,
    messages,
    piece,
    tool_block,
    tool_start,
)

# -- the first text's four snippets, in Python ----------------------------------------------


@dataclass
class Accumulated:
    """A call as the first text keeps it."""

    id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass
class Run:
    """What the ported code did: what it ran, and what it says of each call at the end."""

    ran: list[tuple[str | None, Any]] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)


def accumulate_chat(events: list[Json]) -> Run:
    """Snippet one: OpenAI chat completions. Undefined indexes are one key, as in the map of the original."""
    by_index: dict[Any, Accumulated] = {}
    run = Run()
    finished = False
    for event in events:
        if event == DONE:
            continue
        choice = (event.get("choices") or [{}])[0]
        for call in (choice.get("delta") or {}).get("tool_calls") or []:
            acc = by_index.setdefault(call.get("index"), Accumulated())
            if call.get("id"):
                acc.id = call["id"]
            function = call.get("function") or {}
            if function.get("name"):
                acc.name = function["name"]
            if function.get("arguments"):
                acc.arguments += function["arguments"]
        if choice.get("finish_reason") not in ("tool_calls", "stop"):
            continue
        finished = True
        run.ran += [(acc.name, json.loads(acc.arguments)) for acc in by_index.values()]
    run.said = [recover(acc, finished=finished) for acc in by_index.values()]
    return run


def accumulate_messages(events: list[Json]) -> Run:
    """Snippet two: Anthropic messages; a call runs at the stop of its block."""
    by_index: dict[int, Accumulated] = {}
    run = Run()
    for event in events:
        kind = event["type"]
        if kind == "content_block_start" and event["content_block"]["type"] == "tool_use":
            by_index[event["index"]] = Accumulated(event["content_block"]["id"], event["content_block"]["name"])
        elif kind == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            by_index[event["index"]].arguments += event["delta"]["partial_json"]
        elif kind == "content_block_stop" and event["index"] in by_index:
            acc = by_index[event["index"]]
            run.ran.append((acc.name, json.loads(acc.arguments)))
    return run


def close_partial(text: str) -> Any:
    """Snippet three: a guess at unfinished arguments, for display alone."""
    if len(re.findall(r'(?<!\\)"', text)) % 2:
        text += '"'
    text += "]" * (text.count("[") - text.count("]")) + "}" * (text.count("{") - text.count("}"))
    try:
        return json.loads(text)
    except ValueError:
        return None


def recover(acc: Accumulated, *, finished: bool) -> tuple[str, str]:
    """Snippet four: what is said of a call at the end."""
    if not finished:
        return "incomplete", acc.arguments
    try:
        json.loads(acc.arguments)
    except ValueError:
        return "parse_error", acc.arguments
    return "ok", acc.arguments


# -- where the first text is right ----------------------------------------------------------

ARGUMENTS = '{"query": "partial json", "limit": 10}'
PIECES = [ARGUMENTS[:9], ARGUMENTS[9:18], ARGUMENTS[18:28], ARGUMENTS[28:]]


def said(events: list[Json]) -> list[tuple[str, str]]:
    return [(call.status.value, call.raw_arguments) for call in finalize(events)]


def ran(events: list[Json], *, policy: FinishPolicy | None = None) -> list[tuple[str | None, Any]]:
    return [(call.name, call.arguments) for call in finalize(events, policy=policy) if call.executable]


def one_call(*texts: str, finish: str | None = "tool_calls") -> list[Json]:
    return chat(piece("", index=0, id="c", name="search"), *(piece(text, index=0) for text in texts), finish=finish)


AGREED = {
    "four fragments": one_call(*PIECES),
    "finish stop": one_call(*PIECES, finish="stop"),
    "two calls, interleaved": chat(
        piece("", index=0, id="c", name="search"),
        piece("", index=1, id="d", name="read"),
        piece('{"q":', index=0),
        piece('{"p":', index=1),
        piece("1}", index=0),
        piece("2}", index=1),
    ),
    "arguments that do not parse": one_call('{"q": trux}'),
    "no finish": one_call(*PIECES, finish=None),
    "no finish, cut": one_call(*PIECES[:2], finish=None),
    "no finish, nothing came": one_call(finish=None),
    "content beside the call": [{"choices": [{"index": 0, "delta": {"content": "x"}}]}, *one_call(*PIECES)],
}


@pytest.mark.parametrize("events", AGREED.values(), ids=AGREED.keys())
def test_chat_agrees(events: list[Json]) -> None:
    """Accumulate by index, parse once at the end, run nothing without a finish: the same answers."""
    try:
        run = accumulate_chat(events)
    except ValueError:  # the original has no guard there; its fourth snippet says parse_error
        assert said(events) == [("parse_error", '{"q": trux}')]
        assert ran(events) == []
    else:
        assert ran(events) == run.ran
        assert said(events) == run.said


def test_no_fragment_is_parsed() -> None:
    """None of the four fragments parses; the whole does. That is the first text's own check."""
    for fragment in PIECES:
        with pytest.raises(ValueError, match=r"."):
            json.loads(fragment)
    assert ran(one_call(*PIECES)) == [("search", {"query": "partial json", "limit": 10})]


def test_messages_agree() -> None:
    """The same for blocks in a message that ends."""
    events = messages(
        block_start(0, "text", text=""), tool_block(1, "t1", "f", '{"a":', "1}"), tool_block(2, "t2", "g", '{"b":2}')
    )
    assert ran(events) == accumulate_messages(events).ran == [("f", {"a": 1}), ("g", {"b": 2})]


def test_display_is_never_run() -> None:
    """The guess at unfinished arguments is a plausible wrong value: nothing of the kind runs."""
    text = '{"paths": ["/data/a", "/data/b'
    assert close_partial(text) == {"paths": ["/data/a", "/data/b"]}
    for finish in ("tool_calls", "stop", "length", None):
        (call,) = finalize(one_call(text, finish=finish))
        assert (call.arguments, call.executable) == (None, False)


# -- where the first text is not followed ---------------------------------------------------


def test_block_stop_is_no_proof() -> None:
    """A block stop runs nothing: a call that was cut before its first byte stops too."""
    cut = messages(tool_block(0, "t", "delete_all", ""), message_delta("max_tokens"), reason=None)
    with pytest.raises(ValueError, match="Expecting value"):
        accumulate_messages(cut)
    assert ran(cut) == []
    early = messages(tool_block(0, "t", "f", '{"a":1}'), reason=None)
    assert accumulate_messages(early).ran == [("f", {"a": 1})]
    assert [(call.status, call.code) for call in finalize(early)] == [(CallStatus.INCOMPLETE, "no_finish")]


def test_blank_arguments_of_a_finished_call() -> None:
    """A call without arguments is `{}` once it is finished; the first text's parse raises."""
    with pytest.raises(ValueError, match="Expecting value"):
        accumulate_chat(one_call())
    assert ran(one_call()) == [("search", {})]
    assert ran(messages(tool_block(0, "t", "now"))) == [("now", {})]


def test_missing_finish() -> None:
    """No finish reason but the terminator is a finish; with neither, both texts' cautious reading holds."""
    assert accumulate_chat([*one_call(*PIECES, finish=None), DONE]).ran == []
    assert len(ran([*one_call(*PIECES, finish=None), DONE])) == 1
    assert ran(one_call(*PIECES, finish=None)) == []


def test_other_spellings_of_a_finish() -> None:
    """Other words for a finish are known, in any case."""
    events = one_call(*PIECES, finish="TOOL_USE")
    assert accumulate_chat(events).ran == []
    assert len(ran(events)) == 1


def test_finish_that_repeats() -> None:
    """Each call is finalized once; the first text runs it again for every finish reason."""
    events = [*one_call('{"a":1}'), chunk(finish="tool_calls")]
    assert len(accumulate_chat(events).ran) == 2
    assert len(ran(events)) == 1


def test_pieces_after_the_finish() -> None:
    """Calls are read when the stream ends; the first text parses at the finish, too early."""
    events = [*one_call('{"a":'), chunk(piece("1}", index=0))]
    with pytest.raises(ValueError, match="Expecting value"):
        accumulate_chat(events)
    assert ran(events) == [("search", {"a": 1})]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"x": NaN}', dict),
        ('{"x": Infinity}', dict),
        ('{"x": 1e999}', dict),
        ('{"x": 1, "x": 2}', dict),
        ('{"x": "\\ud83d"}', dict),
        ("[1]", list),
        ("null", type(None)),
        ('"{}"', str),
    ],
)
def test_strict_json(text: str, read: type) -> None:
    """What a lenient parser reads, and no provider takes back, does not run."""
    assert [type(value) for _, value in accumulate_chat(one_call(text)).ran] == [read]
    assert said(one_call(text)) == [("parse_error", text)]


def test_name_that_changes() -> None:
    """A name that changes in the middle is a conflict; in the first text the last one wins."""
    events = chat(piece('{"p":', index=0, id="c", name="delete"), piece("1}", index=0, id="c", name="read"))
    assert accumulate_chat(events).ran == [("read", {"p": 1})]
    assert ran(events) == []


def test_another_id_at_the_index() -> None:
    """Another id at a used index is another call; the first text glues them together."""
    events = chat(piece('{"a":1}', index=0, id="c", name="f"), piece('{"b":2}', index=0, id="d", name="g"))
    with pytest.raises(ValueError, match="Extra data"):
        accumulate_chat(events)
    assert ran(events) == [("f", {"a": 1}), ("g", {"b": 2})]


def test_no_index() -> None:
    """Calls without an index are told apart by id or name; the first text glues them together."""
    events = chat(piece('{"a":1}', id="c", name="f"), piece('{"b":2}', id="d", name="g"))
    with pytest.raises(ValueError, match="Extra data"):
        accumulate_chat(events)
    assert ran(events) == [("f", {"a": 1}), ("g", {"b": 2})]


def test_other_choices() -> None:
    """Calls of another choice are another answer to the same question; in the first text they mix."""
    events = [
        chunk(piece('{"a":1}', index=0, id="c", name="f")),
        chunk(piece('{"a":1}', index=0, id="c", name="f"), choice=1),
        chunk(finish="tool_calls"),
    ]
    with pytest.raises(ValueError, match="Extra data"):
        accumulate_chat(events)
    assert ran(events) == [("f", {"a": 1})]


def test_input_in_the_block_start() -> None:
    """An input that stands in the block start is used if no delta follows; the first text drops it."""
    events = messages(tool_start(0, "t", "f", {"a": 1}), block_stop(0))
    with pytest.raises(ValueError, match="Expecting value"):
        accumulate_messages(events)
    assert ran(events) == [("f", {"a": 1})]


def test_reused_block_index() -> None:
    """The calls of two blocks with one index both come out; nothing is replaced."""
    events = messages(
        tool_start(0, "t1", "f"),
        input_delta(0, '{"a":1}'),
        tool_start(0, "t2", "g"),
        input_delta(0, "{}"),
        block_stop(0),
    )
    assert accumulate_messages(events).ran == [("g", {})]
    assert ran(events) == [("f", {"a": 1}), ("g", {})]


# -- the second text ------------------------------------------------------------------------


def forwards(text: str, finish: Literal["tool-calls", "stop", "length", "error", "content-filter", "other"]) -> bool:
    """Tell whether the second text hands a call on: always after tool-calls, stop or an unknown reason, else if it parses."""
    if finish in ("tool-calls", "stop", "other"):
        return True
    try:
        json.loads(text or "{}")
    except ValueError:
        return False
    return True


EARLY_ROOT_CLOSE = ['{"a":[1]}', "</a>\n<b>", "[2]}"]


def test_early_root_close() -> None:
    """A prefix that parses ends nothing: the whole text is reported, malformed as it is, and runs nothing."""
    whole = "".join(EARLY_ROOT_CLOSE)
    assert json.loads(EARLY_ROOT_CLOSE[0]) == {"a": [1]}
    assert said(one_call(*EARLY_ROOT_CLOSE)) == [("parse_error", whole)]
    assert forwards(whole, "tool-calls")
    anthropic = messages(tool_block(0, "t", "f", *EARLY_ROOT_CLOSE))
    assert said(anthropic) == [("parse_error", whole)]


@pytest.mark.parametrize(
    ("texts", "raw"),
    [
        (['{"text": "}{"', ', "n": "{}"}'], '{"text": "}{", "n": "{}"}'),
        (['{"a": 1}'], '{"a": 1}'),
        (['{"a": 1}', " ", "\n"], '{"a": 1} \n'),
    ],
)
def test_braces_whole_and_trailing_space(texts: list[str], raw: str) -> None:
    """Braces in strings, arguments in one piece, and white space after them are as in the second text."""
    (call,) = finalize(one_call(*texts))
    assert (call.raw_arguments, call.arguments) == (raw, json.loads(raw))


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_whole_calls_of_a_cut_response(finish: str) -> None:
    """The second text hands whole calls of a cut response on; here they are ok and held until a policy says otherwise."""
    events = one_call('{"a": 1}', finish=finish)
    assert forwards('{"a": 1}', "length")
    (call,) = finalize(events)
    assert (call.status, call.code, call.arguments, call.executable) == (CallStatus.OK, "held", {"a": 1}, False)
    assert ran(events, policy=FinishPolicy(run_held={finish})) == [("search", {"a": 1})]


def test_blank_calls_of_a_cut_response() -> None:
    """A call without any arguments in a cut response is cut; the second text hands it on as `{}`."""
    assert forwards("", "length")
    assert said(one_call(finish="length")) == [("incomplete", "")]
    assert ran(one_call(finish="length"), policy=FinishPolicy(run_held={"length"})) == []


def test_calls_of_a_broken_response() -> None:
    """After a finish that says error nothing runs, under no policy; the second text hands whole calls on."""
    events = one_call('{"a": 1}', finish="error")
    assert forwards('{"a": 1}', "error")
    assert said(events) == [("incomplete", '{"a": 1}')]
    assert ran(events, policy=FinishPolicy(run_held={"error"})) == []


def test_unknown_and_missing_finish() -> None:
    """A missing or unknown finish is taken for tool calls in the second text; here only if a policy says so."""
    assert forwards('{"a": 1}', "other")
    for events in (one_call('{"a": 1}', finish=None), one_call('{"a": 1}', finish="other")):
        assert ran(events) == []
        assert ran(events, policy=FinishPolicy(missing_finish="infer")) == [("search", {"a": 1})]


def test_cut_arguments_of_a_cut_response() -> None:
    """Arguments that do not parse in a cut response are dropped there, and reported here with their text."""
    assert not forwards('{"a": ', "length")
    assert said(one_call('{"a": ', finish="length")) == [("incomplete", '{"a": ')]


def test_malformed_after_a_finish() -> None:
    """Malformed arguments after a good finish are handed on whole there, and are a parse error with their text here."""
    assert forwards("{oops", "stop")
    assert said(one_call("{oops", finish="stop")) == [("parse_error", "{oops")]


def test_index_less_deltas() -> None:
    """Deltas without an index as in the second text: one call, two calls, continuations, and a late index."""
    one = chat(piece('{"a":', id="c", name="f"), piece("1"), piece("}"))
    assert ran(one) == [("f", {"a": 1})]
    by_name = chat(piece('{"a":1}', name="f"), piece('{"b":2}', name="g"))
    assert ran(by_name) == [("f", {"a": 1}), ("g", {"b": 2})]
    same_name = chat(piece('{"a":1}', name="f"), piece('{"a":2}', name="f"))
    assert ran(same_name) == [("f", {"a": 1}), ("f", {"a": 2})]
    bound = chat(piece('{"a":', id="c", name="f"), piece("1}", index=0))
    assert ran(bound) == [("f", {"a": 1})]


def test_another_id_without_a_name() -> None:
    """Another id at a used index is a new call there; here not if it has no name and the arguments are unfinished."""
    events = chat(piece("", index=0, id="a", name="f"), piece('{"x":', index=0, id="b"), piece("1}", index=0, id="c"))
    assert [(call.id, call.arguments) for call in finalize(events)] == [("a", {"x": 1})]


def test_resends() -> None:
    """An identical resend of complete arguments is dropped; an equal piece of unfinished ones is not. As there."""
    assert ran(one_call('{"a":1}', '{"a":1}')) == [("search", {"a": 1})]
    assert said(one_call("[", "[", "]]")) == [("parse_error", "[[]]")]
    assert ran(one_call('{"a": "', '{"a": "', '"}')) == []
    assert said(one_call('{"a": "', '{"a": "', '"}')) == [("parse_error", '{"a": "{"a": ""}')]


def test_reused_id_at_another_index() -> None:
    """An id that comes again for another tool gets an id of its own; a result can be told apart by nothing else."""
    events = chat(piece('{"a":1}', index=0, id="c", name="f"), piece('{"b":2}', index=1, id="c", name="g"))
    first, second = finalize(events)
    assert (first.id, second.name, second.arguments) == ("c", "g", {"b": 2})
    assert second.synthetic_id
    assert second.id != "c"
