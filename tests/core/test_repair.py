"""Grades, floors, and the conservation check."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolrun import (
    Edit,
    Fault,
    Grade,
    RegistrationError,
    Repaired,
    RepairRequest,
)
from toolrun._core.conservation import conserves
from toolrun._core.repair import Reading, admits, advanced, bind, digest, grade_answer, ordered, worst
from toolrun.repairs import lossless

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
        ("{'a':1}", '{"a":1}', (Edit("x", 1, "'a'", '"a"'),), True),
        ("{'a':1}", '{"b":1}', (Edit("x", 1, "'a'", '"b"'),), False),
        ("{'a\\'b':1}", '{"a\'b":1}', (Edit("x", 1, "'a\\'b'", '"a\'b"'),), True),
        ("{a:1}", '{"a":1}', (Edit("x", 1, "a", '"a"'),), True),
        ('{"a":True}', '{"a":true}', (Edit("x", 5, "True", "true"),), True),
        ('{"a":True}', '{"a":"True"}', (Edit("x", 5, "True", '"True"'),), False),
        ('{"a":"True"}', '{"a":true}', (Edit("x", 5, '"True"', "true"),), False),
        ('{"a":0xff}', '{"a":255}', (Edit("x", 5, "0xff", "255"),), True),
        ('{"a":.50}', '{"a":0.5}', (Edit("x", 5, ".50", "0.5"),), True),
        ('{"a":1.5}', '{"a":1}', (Edit("x", 5, "1.5", "1"),), False),
        ('{"a":"x\ty"}', '{"a":"x\\ty"}', (Edit("x", 7, "\t", "\\t"),), True),
        ('{"a":"\\d"}', '{"a":"\\\\d"}', (Edit("x", 6, "\\", "\\\\"),), True),
        ('{"a":"\\d"}', '{"a":"d"}', (Edit("x", 6, "\\", ""),), False),
        ('{"a":1 /* x */}', '{"a":1  }', (Edit("comment", 7, "/* x */", " "),), True),
        ('{"a":1 x}', '{"a":1 }', (Edit("comment", 7, "x", ""),), False),
        ('{"a":1</p>}', '{"a":1}', (Edit("stray_tag", 6, "</p>", ""),), True),
        ('{"a":1<p>}', '{"a":1}', (Edit("stray_tag", 6, "<p>", ""),), False),
        ("a{}", "{}", (Edit("outer_noise", 0, "a", ""),), True),
        ('{"a":1}{"a":1}', '{"a":1}', (Edit("outer_noise", 7, '{"a":1}', ""),), True),
        ('{"a":1}{"a":2}', '{"a":1}', (Edit("outer_noise", 7, '{"a":2}', ""),), False),
        ('{"a":1}{"a":true}', '{"a":1}', (Edit("outer_noise", 7, '{"a":true}', ""),), False),
        ('{}{"a":1}', '{"a":1}', (Edit("outer_noise", 0, "{}", ""),), True),
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
@given(TEXTS.filter(lambda text: '"' not in text and "\\" not in text), st.data())
def test_an_edit_of_punctuation_is_lossless(text: str, data: st.DataObject):
    """Punctuation between tokens may come and go, if the edit says so; inside of one it takes it apart."""
    at = data.draw(st.integers(0, len(text)))
    added = data.draw(st.text(alphabet=",:{}[] ", max_size=5))
    after = text[:at] + added + text[at:]
    inside = bool(added) and text[at - 1 : at].isalnum() and text[at : at + 1].isalnum() and at > 0

    assert conserves(text, after, (Edit("x", at, "", added),)) == (not inside)
    assert conserves(after, text, (Edit("x", at, added, ""),)) == (not inside)
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
READ = Repaired(text='{"a":2}', readings=(Reading('{"a":2}'),))


@pytest.mark.parametrize(
    ("builtin", "answer", "claim", "expected"),
    [
        (True, LOSSLESS, "hook", Grade.LOSSLESS),
        (True, LOSSLESS, "lossy", Grade.LOSSLESS),
        (True, CHANGED, "lossless", Grade.LOSSY),
        (True, CHANGED, "schema_unique", Grade.LOSSY),
        (True, READ, "lossless", Grade.SCHEMA_UNIQUE),
        (False, READ, "lossless", Grade.HOOK),
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
    claimed = replace(answer, grade=claim)

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
