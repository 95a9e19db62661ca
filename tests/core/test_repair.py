"""Grades, floors, the conservation check, and the built-in strategies."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolrun import (
    CallStatus,
    Edit,
    Fault,
    Grade,
    RegistrationError,
    Repaired,
    RepairRequest,
    ToolCall,
)
from toolrun._core.json_text import parse_object
from toolrun._core.repair import admits, advanced, bind, conserves, digest, grade_answer, ordered, worst
from toolrun.repairs import lossless, outer_noise, trailing_comma

FENCE = "`" * 3


def request(text: str, fault: Fault = Fault.PARSE) -> RepairRequest:
    call = ToolCall(
        id="c", name="f", raw_arguments=text, arguments=None, status=CallStatus.PARSE_ERROR, executable=False
    )
    return RepairRequest(call=call, fault=fault, text=text)


def through_the_chain(text: str) -> str | None:
    """The text as the built-in chain leaves it, if strict JSON comes out; every step must be lossless."""
    changed = True
    while changed:
        if isinstance(parse_object(text), dict):
            return text
        changed = False
        for strategy in (outer_noise, trailing_comma):
            answer = strategy(request(text))
            if answer is not None and answer.text != text:
                assert conserves(text, answer.text, answer.edits)
                text, changed = answer.text, True
    return None


# -- conservation ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "edits", "expected"),
    [
        ('{"a":1,}', '{"a":1}', (Edit("x", 6, ",", ""),), True),
        ('{"a":1}', '{"a":1}', (), True),
        ('{"a":1,}', '{"a":1}', (), False),
        ('{"a":1,}', '{"a":2}', (Edit("x", 6, ",", ""),), False),
        ('{"a":1}', '{"a":2}', (Edit("x", 5, "1", "2"),), False),
        ('{"a":12}', '{"a":1}', (Edit("x", 6, "2", ""),), False),
        ('{"a":1}', '{"ab":1}', (Edit("x", 2, "a", "ab"),), False),
        ('{"ab":1}', '{"ba":1}', (Edit("x", 2, "ab", "ba"),), False),
        ("{'a':1}", '{"a":1}', (Edit("x", 1, "'a'", '"a"'),), False),  # what stands in quotes is not looked into
        ("abc", "bc", (Edit("outer_noise", 0, "a", ""),), False),  # there is no outside
        ("a{}", "{}", (Edit("outer_noise", 0, "a", ""),), True),
        ("a,b,c", "abc", (Edit("x", 3, ",", ""), Edit("x", 1, ",", "")), False),  # not in order
        ("a,,b", "ab", (Edit("x", 1, ",,", ""), Edit("x", 2, ",", "")), False),  # they overlap
        ("abc", "abc", (Edit("x", 1, "z", "z"),), False),  # not what stands there
        ("abc", "abc", (Edit("x", -1, "c", "c"),), False),
        ("abc", "abc,", (Edit("x", 3, "", ","),), True),
        ("abc", "abc", (Edit("x", 99, "", ""),), True),
    ],
)
def test_conserves(before: str, after: str, edits: tuple[Edit, ...], expected: bool):
    """Edits that find what they replace, keep each letter and digit, and explain the whole change."""
    assert conserves(before, after, edits) is expected


def test_noise_is_only_noise_outside():
    """The code of outer noise does not let letters go from the middle of the arguments."""
    before, after = '{"a": 100}', '{"a": 1}'

    assert not conserves(before, after, (Edit("outer_noise", 7, "00", ""),))


TEXTS = st.text(alphabet=st.sampled_from('ab1é٣{}[]",: \n\\'), max_size=40)


@settings(max_examples=40, deadline=None)
@given(TEXTS, st.data())
def test_an_edit_that_drops_a_letter_is_not_lossless(text: str, data: st.DataObject):
    """Wherever it is, and whatever punctuation goes with it."""
    assume(text)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    piece = text[start:end]
    assume(any(character.isalnum() for character in piece))
    kept = "".join(character for character in piece if not character.isalnum())

    assert not conserves(text, text[:start] + kept + text[end:], (Edit("x", start, piece, kept),))


@settings(max_examples=40, deadline=None)
@given(TEXTS.filter(lambda text: '"' not in text), st.data())
def test_an_edit_of_punctuation_is_lossless(text: str, data: st.DataObject):
    """Punctuation outside strings may come and go, if the edit says so."""
    at = data.draw(st.integers(0, len(text)))
    added = data.draw(st.text(alphabet=",:{}[] ", max_size=5))
    after = text[:at] + added + text[at:]

    assert conserves(text, after, (Edit("x", at, "", added),))
    assert conserves(after, text, (Edit("x", at, added, ""),))
    assert conserves(text, after, ()) == (not added)


@settings(max_examples=40, deadline=None)
@given(TEXTS, TEXTS)
def test_an_unexplained_change_is_not_lossless(before: str, after: str):
    """Without edits only the same text is conserved."""
    assert conserves(before, after, ()) == (before == after)


@pytest.mark.parametrize(
    ("before", "offset", "piece"),
    [
        ('{"n": 1.5}', 7, "."),
        ('{"n": -1}', 6, "-"),
        ('{"n": 1e-5}', 8, "-"),
        ('{"to": "a@b"}', 9, "@"),
        ('{"path": "/etc"}', 10, "/"),
        ('{"to": "a, b"}', 9, ","),
        ('{"to": "a b"}', 9, " "),
        ('{"text": "x\\ny"}', 11, "\\"),
        ('{"text": "}"}', 10, "}"),
    ],
)
def test_signs_and_the_text_of_strings_are_tokens(before: str, offset: int, piece: str):
    """`1.5` is not `15`, `-1` is not `1`, and what stands inside a string is the model's own."""
    assert before[offset : offset + len(piece)] == piece
    after = before[:offset] + before[offset + len(piece) :]

    assert not conserves(before, after, (Edit("x", offset, piece, ""),))


# -- grades and floors ----------------------------------------------------------------------


def hook(request: RepairRequest) -> None:
    """Answer nothing."""


LOSSLESS = Repaired(text='{"a":1}', edits=(Edit("x", 6, ",", ""),))
CHANGED = Repaired(text='{"a":2}')


@pytest.mark.parametrize(
    ("builtin", "answer", "claim", "expected"),
    [
        (True, LOSSLESS, "hook", Grade.LOSSLESS),
        (True, LOSSLESS, "lossy", Grade.LOSSLESS),
        (True, CHANGED, "lossless", Grade.LOSSY),
        (True, CHANGED, "schema_unique", Grade.LOSSY),
        (False, LOSSLESS, "lossless", Grade.LOSSLESS),
        (False, CHANGED, "lossless", Grade.HOOK),
        (False, LOSSLESS, "hook", Grade.HOOK),
        (False, CHANGED, "hook", Grade.HOOK),
        (False, CHANGED, "schema_unique", Grade.SCHEMA_UNIQUE),
        (False, CHANGED, "lossy", Grade.LOSSY),
    ],
)
def test_grades_of_answers(builtin: bool, answer: Repaired, claim: str, expected: Grade):
    """Nobody claims `lossless`; a built-in hook claims nothing at all; a user's hook may be modest."""
    claimed = Repaired(text=answer.text, edits=answer.edits, grade=claim)

    assert grade_answer(bind(hook, builtin=builtin), '{"a":1,}', claimed.text, claimed) is expected


def test_exact_cannot_be_claimed():
    """A repaired text is not what the model wrote."""
    claimed = Repaired(text='{"a":2}', grade="exact")

    assert grade_answer(bind(hook), '{"a":1}', claimed.text, claimed) is Grade.HOOK


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        ((), Grade.EXACT),
        ((Grade.LOSSLESS,), Grade.LOSSLESS),
        ((Grade.LOSSLESS, Grade.LOSSLESS), Grade.LOSSLESS),
        ((Grade.LOSSLESS, Grade.SCHEMA_UNIQUE), Grade.SCHEMA_UNIQUE),
        ((Grade.LOSSY, Grade.LOSSLESS), Grade.LOSSY),
        ((Grade.HOOK, Grade.LOSSLESS), Grade.HOOK),
    ],
)
def test_the_worst_grade_counts(grades: tuple[Grade, ...], expected: Grade):
    """A chain is as good as its worst step; a person's code makes it `hook`."""
    assert worst(grades) is expected


FLOORS = {
    # floor: what is admitted of (exact, lossless, schema_unique, lossy, hook)
    ("never", False): (True, False, False, False, False),
    ("lossless", False): (True, True, False, False, True),
    ("schema_unique", False): (True, True, True, False, True),
    ("lossy", False): (True, True, True, True, True),
    ("never", True): (True, False, False, False, False),
    ("lossless", True): (True, True, False, False, True),
    ("schema_unique", True): (True, True, False, False, True),
    ("lossy", True): (True, True, False, False, True),
}


@pytest.mark.parametrize(("floor", "destructive"), FLOORS)
def test_floors(floor: str, destructive: bool):
    """What a tool with this floor runs; a destructive one takes nothing below lossless."""
    grades = (Grade.EXACT, Grade.LOSSLESS, Grade.SCHEMA_UNIQUE, Grade.LOSSY, Grade.HOOK)

    admitted = tuple(admits(floor, destructive=destructive, grade=grade) for grade in grades)

    assert admitted == FLOORS[floor, destructive]


def test_nearer_to_running():
    """Faults are looked at in an order; a later one, or none, is progress. No JSON and no object are equally far."""
    rungs = [
        {Fault.INCOMPLETE}, {Fault.IDENTITY}, {Fault.UNKNOWN_TOOL}, {Fault.PARSE, Fault.NOT_OBJECT}, {Fault.SCHEMA},
        {None},
    ]  # fmt: skip
    for height, rung in enumerate(rungs[:-1]):
        for before in rung:
            assert [{advanced(before, after) for after in other} for other in rungs] == [
                {place > height} for place in range(len(rungs))
            ]


# -- binding --------------------------------------------------------------------------------


def test_hooks_are_bound_to_faults():
    """By default to all but `incomplete`, which must be named."""
    default, parse = bind(hook), bind(hook, on="parse")
    several, incomplete = bind(hook, on=["schema", Fault.IDENTITY]), bind(hook, on="incomplete")

    answers = {
        fault: [binding.answers(fault, "f") for binding in (default, parse, several, incomplete)] for fault in Fault
    }

    assert answers == {
        Fault.INCOMPLETE: [False, False, False, True],
        Fault.IDENTITY: [True, False, True, False],
        Fault.UNKNOWN_TOOL: [True, False, False, False],
        Fault.PARSE: [True, True, False, False],
        Fault.NOT_OBJECT: [True, False, False, False],
        Fault.SCHEMA: [True, False, True, False],
    }


def test_hooks_are_bound_to_tools():
    """By registered name; a bound hook is not asked about unknown tools."""
    everywhere, one, two = bind(hook), bind(hook, tools="f"), bind(hook, tools=["f", "g"])

    assert [binding.answers(Fault.PARSE, "f") for binding in (everywhere, one, two)] == [True, True, True]
    assert [binding.answers(Fault.PARSE, "g") for binding in (everywhere, one, two)] == [True, False, True]
    assert [binding.answers(Fault.UNKNOWN_TOOL, None) for binding in (everywhere, one, two)] == [True, False, False]


def test_bindings_that_make_no_sense():
    """Said where the hook is registered."""
    with pytest.raises(RegistrationError, match="must be callable"):
        bind(5)
    with pytest.raises(RegistrationError, match="faults are"):
        bind(hook, on=["parse", "typo"])


def test_the_order_of_hooks():
    """First ones, the chain, the others as registered."""
    a, b, c, d = bind(hook), bind(hook, first=True), bind(hook), bind(hook, first=True)
    chain = lossless()

    assert ordered(chain, (a, b, c, d)) == (b, d, *chain, a, c)


def test_digests():
    """SHA-256 of the UTF-8 bytes, lone surrogates included."""
    assert digest("{}") == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert len(digest("\ud83d")) == 64
    assert digest("\ud83d") != digest("\ude00")


# -- built-in strategies --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"a": 1,}', '{"a": 1}'),
        ('{"a": [1, 2,],}', '{"a": [1, 2]}'),
        ('{"a": {"b": "x",\n},\n}', '{"a": {"b": "x"\n}\n}'),
        ('{"a": true ,}', '{"a": true }'),
        ('{"a": null, }', '{"a": null }'),
        ('{"a": "x,}", "b": [",]",]}', '{"a": "x,}", "b": [",]"]}'),
        ('{"a": "\\",}",}', '{"a": "\\",}"}'),
        (f'{FENCE}json\n{{"a": 1}}\n{FENCE}', '{"a": 1}'),
        (f'{FENCE}\n{{"a": 1}}\n{FENCE}\n', '{"a": 1}'),
        (f'  {FENCE}JSON {{"a": 1}} {FENCE}', '{"a": 1}'),
        (f'{FENCE}json\n{{"a": 1,}}\n{FENCE}', '{"a": 1}'),
        ('\ufeff{"a": 1}', '{"a": 1}'),
        ('\u200b{"a": 1}\u00a0', '{"a": 1}'),
        ('{"a": "`' + FENCE + '"}', '{"a": "`' + FENCE + '"}'),
        # Refused: something may be missing, or which of two was meant is a guess.
        ("{,}", None),
        ('{"a": 1,,}', None),
        ('{"a": [1,,]}', None),
        ('{"a": [,1]}', None),
        ('{"a": ,}', None),
        ('{"a",}', None),
        ('{"a": 1,', None),
        ('{"a": "x,}', None),
        ('{"a": "x,],}', None),
        ('{"a": 1}{"a": 2}', None),
        ('{"a": 1} {"a": 2,}', None),
        (f'{FENCE}json\n{{"a": 1}}\n{FENCE}\n{FENCE}json\n{{"a": 2}}\n{FENCE}', None),
        ('Here it is: {"a": 1}', None),
        ('{"a": 1} Done.', None),
        ("{'a': 1,}", None),
        ('{"a": 1,} // comment', None),
        ('[{"a": 1,},]', None),
        ("", None),
        ("null", None),
        (",}", None),
        ('"{\\"a\\": 1,}"', None),
        ('{"a": NaN,}', None),
        ('{"a": 1, "a": 2,}', None),
        ('{"a": 01,}', None),
        ('{"a": tru,}', None),
        ('{"a": "\ud83d",}', None),
    ],
)
def test_the_chain(raw: str, expected: str | None):
    """Repaired to exactly this, or refused; each step conserves every token."""
    assert through_the_chain(raw) == expected


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.sampled_from('ab,]}{["\\\n`: é')),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(alphabet=st.sampled_from('ab,]}"\\ `'), max_size=4), JSON, max_size=4)


@settings(max_examples=40, deadline=None)
@given(OBJECTS, st.sampled_from([None, 1, 2]))
def test_valid_json_is_never_changed(value: dict[str, object], indent: int | None):
    """Not even by a strategy that is asked although nothing is wrong."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)

    assert trailing_comma(request(text)) is None
    assert outer_noise(request(text)) is None


def with_trailing_commas(value: object) -> str:
    """The value as JSON with a comma behind every last element."""
    if isinstance(value, dict) and value:
        return "{" + "".join(f"{json.dumps(key)}: {with_trailing_commas(item)}, " for key, item in value.items()) + "}"
    if isinstance(value, list) and value:
        return "[" + "".join(f"{with_trailing_commas(item)}," for item in value) + "]"
    return json.dumps(value)


@settings(max_examples=40, deadline=None)
@given(OBJECTS)
def test_commas_go_and_text_stays(value: dict[str, object]):
    """Whatever the strings look like, the value comes out as it was written."""
    text = with_trailing_commas(value)
    repaired = through_the_chain(text)

    assert repaired is not None
    assert json.loads(repaired) == value


@settings(max_examples=40, deadline=None)
@given(OBJECTS, st.sampled_from(["", "json", "JSON"]), st.sampled_from(["\n", " ", "\r\n"]))
def test_a_fence_goes_and_text_stays(value: dict[str, object], tag: str, space: str):
    """One fence around one object: the object comes out as it was, or the call is refused; never another value."""
    body = json.dumps(value, ensure_ascii=False)
    repaired = through_the_chain(f"{FENCE}{tag}{space}{body}{space}{FENCE}")

    assert repaired in (body, None)
    if "\\n" + FENCE not in body and FENCE not in body:
        assert repaired == body


@settings(max_examples=40, deadline=None)
@given(OBJECTS, st.integers(1, 60))
def test_a_cut_text_is_never_completed(value: dict[str, object], cut: int):
    """No prefix of an object becomes one."""
    text = json.dumps(value)
    prefix = text[: max(1, len(text) - cut)]
    assume(prefix != text)

    assert through_the_chain(prefix) is None
    assert through_the_chain(prefix + ",") is None


HOSTILE = {
    "commas": lambda size: '{"a": [' + "," * size + "]}",
    "commas and blanks": lambda size: '{"a": [1' + ", " * (size // 2) + "]}",
    "blanks after a comma": lambda size: '{"a": 1,' + " " * size + "x}",
    "blanks before a comma": lambda size: '{"a": 1' + " " * size + ",}",
    "quotes": lambda size: '"' * size,
    "open strings": lambda size: '{"a": "' + "\\" * size,
    "escapes": lambda size: '{"a": "' + '\\"' * (size // 2) + '",}',
    "brackets": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "braces": lambda size: "{" * size,
    "trailing commas": lambda size: '{"a": [' + "[1,]," * (size // 5) + "]}",
    "fences": lambda size: f"{FENCE}json\n" * (size // 8),
    "blanks": lambda size: " " * size,
    "blanks and a brace": lambda size: "\u200b" * size + "{",
    "fence and blanks": lambda size: FENCE + " " * size + "{",
    "closing fences": lambda size: FENCE + "{}" + f"\n{FENCE}" * (size // 4),
    "braces and fences": lambda size: FENCE + "{" + "}" * size + "x",
    "blanks after braces": lambda size: "{" + "} " * (size // 2) + "x",
    "comma before many blanks": lambda size: '{"a":1' + (", " + " " * 50) * (size // 52) + "}",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("strategy", [outer_noise, trailing_comma])
def test_strategies_are_linear(strategy: object, name: str):
    """Ten times the text takes about ten times as long, however hostile it is; a hundred times would be quadratic."""

    def seconds(size: int) -> float:
        asked = request(HOSTILE[name](size))
        best = 9.0
        for _ in range(3):
            began = time.process_time()
            strategy(asked)
            best = min(best, time.process_time() - began)
        return best

    # A floor, because below it the clock is what is measured.
    assert seconds(100_000) < 40 * max(seconds(10_000), 0.001)
