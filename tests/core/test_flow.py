"""The flow of one call, driven without an event loop: what is asked, in which order, and what is recorded."""

# Tools with annotations of their own: no postponed evaluation here.
import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any, Literal

import pytest

from toolrun import (
    CallStatus,
    Edit,
    Fault,
    Grade,
    IncompleteCall,
    InvalidArguments,
    MalformedArguments,
    NoSuchTool,
    NotExecuted,
    Outcome,
    Refuse,
    Refused,
    Renamed,
    RepairBudget,
    Repaired,
    RepairRefused,
    RepairRequest,
    Succeeded,
    ToolCall,
    ToolRegistry,
    ValidatedCall,
    finalize,
)
from toolrun._core.flow import call_flow
from toolrun._core.repair import HookBinding, bind, ordered
from toolrun._core.steps import AskRepair, Execute, HookAnswer, Note
from toolrun.repairs import lossless

CHAIN = [binding.name for binding in lossless() if Fault.PARSE in binding.on]


class Driven:
    """What a flow did: its steps in order, and how it ended."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Fault]] = []
        self.requests: list[RepairRequest] = []
        self.notes: list[Any] = []
        self.ran: list[ValidatedCall] = []
        self.outcome: Outcome | None = None


def drive(
    call: ToolCall,
    registry: ToolRegistry,
    chain: tuple[HookBinding, ...] | None = None,
    budget: RepairBudget | None = None,
    seconds: float = 0.0,
) -> Driven:
    """Do what each step says, as the runner does, without waiting."""
    done = Driven()
    chain = ordered(lossless(), registry.hooks) if chain is None else chain
    flow = call_flow(call, registry=registry, chain=chain, budget=budget or RepairBudget())
    answer: object = None
    try:
        while True:
            match flow.send(answer):
                case AskRepair(binding, request):
                    done.asked.append((binding.name, request.fault))
                    done.requests.append(request)
                    answer = ask(binding, request, seconds)
                case Note(record):
                    done.notes.append(record)
                    answer = None
                case Execute(validated, tool):
                    done.ran.append(validated)
                    args, kwargs = tool.bind(validated.bound, None)
                    answer = Succeeded(call=call, value=tool.function(*args, **kwargs))
    except StopIteration as end:
        done.outcome = end.value
    assert [record.hook for record in done.notes] == [record.hook for record in done.outcome.repairs]
    return done


def ask(binding: HookBinding, request: RepairRequest, seconds: float) -> HookAnswer:
    try:
        return HookAnswer(binding.hook(request), None, seconds)
    except Exception as error:  # noqa: BLE001  # as the runner does
        return HookAnswer(None, f"the hook raised {type(error).__name__}: {error}", seconds)


def call_of(arguments: str, *, name: str = "pay", finish: str = "tool_calls") -> ToolCall:
    """A call as the finalizer gives it."""
    function = {"name": name, "arguments": arguments}
    message = {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    (call,) = finalize({"choices": [{"message": message, "finish_reason": finish}]})
    return call


def make_registry(**options: Any) -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool(**options)
    def pay(amount: int, to: str = "nobody") -> tuple[int, str]:
        return (amount, to)

    @registry.tool
    def refund(amount: int) -> int:
        return -amount

    return registry


GOOD = '{"amount": 5}'
CUT = '{"amount": 5, "to": "al'


def answering(answer: object) -> Callable[[RepairRequest], Any]:
    def hook(request: RepairRequest) -> Any:
        return answer

    return hook


# -- fit calls ------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [GOOD, ' { "amount" : 5 } ', '{"amount":5,"to":"nobody"}'])
def test_a_fit_call_is_asked_about_nothing(raw: str):
    """Strict first: no hook sees a valid call, and its text goes on byte for byte."""
    registry = make_registry()
    registry.repair(answering(Repaired(arguments={"amount": 9})))

    done = drive(call_of(raw), registry)

    assert done.asked == []
    assert [(validated.text, validated.tool, validated.grade) for validated in done.ran] == [(raw, "pay", "exact")]
    assert (done.outcome.value, done.outcome.grade, done.outcome.repairs) == ((5, "nobody"), Grade.EXACT, ())
    assert done.outcome.arguments == json.loads(raw)


def test_blank_arguments_are_an_empty_object():
    """Of a finished call: validated as `{}`, and refused by a tool that needs more."""
    registry = make_registry()
    registry.tool(name="ping")(lambda: "pong")

    assert drive(call_of("", name="ping"), registry).ran[0].text == "{}"
    assert drive(call_of(" \n", name="ping"), registry).outcome.value == "pong"
    assert drive(call_of(""), registry).outcome.code == "schema"


@pytest.mark.parametrize(
    ("call", "code", "error"),
    [
        (call_of(CUT, finish="length"), "truncated", IncompleteCall),
        (call_of("", finish="length"), "truncated", IncompleteCall),
        (call_of(GOOD, finish="error"), "broken_finish", IncompleteCall),
        (call_of(CUT), "truncated", MalformedArguments),
        (call_of("{amount 5}"), "syntax", MalformedArguments),
        (call_of("[5]"), "not_object", MalformedArguments),
        (call_of('{"amount": 5, "amount": 6}'), "duplicate_key", MalformedArguments),
        (call_of('{"amount": NaN}'), "non_finite", MalformedArguments),
        (call_of('{"amount": 1e999}'), "number_out_of_range", MalformedArguments),
        (call_of('{"amount": "five"}'), "schema", InvalidArguments),
        (call_of('{"amount": "05"}'), "lossy_number", InvalidArguments),
        (call_of("{}"), "schema", InvalidArguments),
        (call_of(GOOD, name="pey"), "unknown_tool", NoSuchTool),
        (call_of("{broken", name="pey"), "unknown_tool", NoSuchTool),
    ],
)
def test_unfit_calls_are_refused(call: ToolCall, code: str, error: type[Exception]):
    """With a code, an error for the developer that has the call, and words for the model."""
    done = drive(call, make_registry())

    assert type(done.outcome) is Refused
    assert done.ran == []
    assert (done.outcome.code, type(done.outcome.error)) == (code, error)
    assert done.outcome.error.call == call
    assert done.outcome.message.startswith("Not run: ")
    assert (done.outcome.started, done.outcome.attempts, done.outcome.grade) == (False, 0, None)


def test_held_calls_are_not_executed():
    """Fit, but policy says no: no hook is asked."""
    registry = make_registry()
    registry.repair(answering(Repaired(arguments={"amount": 9})))

    done = drive(call_of(GOOD, finish="length"), registry)

    assert type(done.outcome) is NotExecuted
    assert (done.outcome.code, done.asked, done.ran) == ("held", [], [])


# -- the order of asking --------------------------------------------------------------------


def named(name: str) -> Callable[[RepairRequest], None]:
    def hook(request: RepairRequest) -> None:
        return None

    hook.__name__ = name
    return hook


def test_the_order_of_asking():
    """`first` hooks, the built-in chain, the others as registered."""
    registry = make_registry()
    registry.repair(named("late"))
    registry.repair(first=True)(named("early"))
    registry.repair(named("later"))

    done = drive(call_of("{broken"), registry)

    assert done.asked == [
        ("early", Fault.PARSE),
        *((name, Fault.PARSE) for name in CHAIN),
        ("late", Fault.PARSE),
        ("later", Fault.PARSE),
    ]


def test_only_hooks_that_are_bound_to_it():
    """To the fault, and to the tool by its registered name."""
    registry = make_registry()
    registry.repair(on="schema")(named("schema"))
    registry.repair(on="parse")(named("parse"))
    registry.repair(tools="pay")(named("pay"))
    registry.repair(tools="refund")(named("refund"))

    def asked(call: ToolCall) -> list[str]:
        return [name for name, _ in drive(call, registry, registry.hooks).asked]

    assert asked(call_of('{"amount": "5"}')) == ["schema", "pay"]
    assert asked(call_of("{broken")) == ["parse", "pay"]
    assert asked(call_of("{broken", name="refund")) == ["parse", "refund"]
    assert asked(call_of(GOOD, name="pey")) == []


@pytest.mark.parametrize(("on", "asked"), [(None, False), ("parse", False), ("incomplete", True)])
def test_unfinished_calls_only_by_name(on: str | None, asked: bool):
    """Closing a cut string writes a plausible wrong value: only a hook that names the fault may."""
    registry = make_registry()
    registry.repair(on=on)(answering(Repaired(arguments={"amount": 5, "to": "alice"})))

    done = drive(call_of(CUT, finish="length"), registry)

    assert [name for name, _ in done.asked] == (["hook"] if asked else [])
    if asked:
        assert (done.outcome.value, done.outcome.grade) == ((5, "alice"), Grade.HOOK)
        assert done.outcome.repairs[0].raw == CUT
    else:
        assert (done.outcome.code, done.ran) == ("truncated", [])


def test_the_first_answer_that_helps_is_taken():
    """None passes on; what comes after the answer is not asked."""
    registry = make_registry()
    registry.repair(named("silent"))
    registry.repair(answering(Repaired(arguments={"amount": 1}, note="from the old client")))
    registry.repair(named("too late"))

    done = drive(call_of("{broken"), registry)

    assert [name for name, _ in done.asked] == [*CHAIN, "silent", "hook"]
    assert done.outcome.value == (1, "nobody")
    (record,) = done.outcome.repairs  # silence leaves no record
    assert (record.hook, record.note, record.accepted) == ("hook", "from the old client", True)


def test_each_hook_is_asked_once_about_each_fault():
    """A hook that never helps is not asked for ever; one that helped is asked about the next fault."""
    registry = make_registry()

    @registry.repair
    def stubborn(request: RepairRequest) -> Repaired:
        return Repaired(text="{still broken")

    @registry.repair
    def halfway(request: RepairRequest) -> Repaired:
        return Repaired(text='{"amount": "5"}')

    done = drive(call_of("{broken"), registry, registry.hooks)

    assert done.asked == [
        ("stubborn", Fault.PARSE),
        ("halfway", Fault.PARSE),
        ("stubborn", Fault.SCHEMA),
        ("halfway", Fault.SCHEMA),
    ]
    assert [record.accepted for record in done.outcome.repairs] == [False, True, False, False]
    assert done.outcome.code == "schema"


def test_after_a_change_from_the_beginning():
    """Hooks before the one that helped are asked about what is left."""
    registry = make_registry()
    seen = []

    @registry.repair
    def types(request: RepairRequest) -> Repaired | None:
        seen.append((request.fault, request.text, request.attempt, len(request.attempts)))
        return Repaired(arguments={"amount": 5}) if request.fault is Fault.SCHEMA else None

    @registry.repair
    def quotes(request: RepairRequest) -> Repaired:
        return Repaired(text=request.text.replace("'", '"'))

    done = drive(call_of("{'amount': '5'}"), registry, registry.hooks)

    assert seen == [(Fault.PARSE, "{'amount': '5'}", 1, 0), (Fault.SCHEMA, '{"amount": "5"}', 3, 1)]
    assert done.outcome.value == (5, "nobody")
    assert [(record.hook, record.before, record.after) for record in done.outcome.repairs] == [
        ("quotes", "{'amount': '5'}", '{"amount": "5"}'),
        ("types", '{"amount": "5"}', '{"amount":5}'),
    ]


# -- what a hook is given -------------------------------------------------------------------


def test_a_request_has_everything():
    """The call, the whole raw text, the place of the error, the definition, the names, the finish."""
    registry = make_registry()
    done = drive(call_of(' {"amount": 5} trailing '), registry, (bind(named("h")),))
    (request,) = done.requests

    assert request.call.raw_arguments == ' {"amount": 5} trailing '
    assert request.text == ' {"amount": 5} trailing '
    assert (request.fault, request.issue.code, request.issue.offset) == (Fault.PARSE, "syntax", 15)
    assert request.definition == registry["pay"].definition
    assert request.known == ("pay", "refund")
    assert (request.finish_reason, request.attempt, request.attempts) == ("tool_calls", 1, ())
    assert request.seconds_left == 30.0


def test_schema_issues_in_a_request():
    """With their paths; the parsed arguments are in the call."""
    done = drive(call_of('{"amount": "5", "x": 1}'), make_registry(), (bind(named("h")),))
    (request,) = done.requests

    assert request.fault is Fault.SCHEMA
    assert request.issue is None
    assert sorted((issue.path, issue.code) for issue in request.issues) == [
        ("$.amount", "type"),
        ("$.x", "unknown_key"),
    ]
    assert request.call.arguments == {"amount": "5", "x": 1}


def test_an_unknown_tool_has_no_definition():
    """And the names that there are."""
    (request,) = drive(call_of(GOOD, name="pey"), make_registry(), (bind(named("h")),)).requests

    assert (request.fault, request.definition, request.call.name) == (Fault.UNKNOWN_TOOL, None, "pey")


def test_what_a_hook_does_to_its_request_changes_nothing():
    """Neither the call, nor the tool, nor the next hook's request."""
    registry = make_registry()

    def vandal(request: RepairRequest) -> None:
        request.call.arguments["amount"] = 7
        request.definition.input_schema["properties"].clear()
        request.definition.input_schema["required"] = []

    call = call_of('{"amount": "5"}')
    done = drive(call, registry, (bind(vandal), bind(named("next"))))

    assert done.outcome.code == "schema"
    assert call.arguments == {"amount": "5"}
    assert done.requests[1].call.arguments == {"amount": "5"}
    assert done.requests[1].definition.input_schema["required"] == ["amount"]
    assert set(registry["pay"].definition.input_schema["properties"]) == {"amount", "to"}


def test_siblings_and_their_arguments_are_safe_from_hooks():
    """A hook sees the other calls of the response; what it does to them changes nothing."""
    call, other = call_of('{"amount": "5"}'), replace(call_of(GOOD), id="c2", position=1)
    seen = []

    def vandal(request: RepairRequest) -> None:
        seen.append([sibling.id for sibling in request.siblings])
        request.siblings[0].arguments["amount"] = 7
        request.siblings[0].extra["x"] = 1

    registry = make_registry()
    flow = call_flow(call, registry=registry, chain=(bind(vandal),), budget=RepairBudget(), calls=(call, other))
    step = next(flow)
    step.binding.hook(step.request)
    flow.close()

    assert seen == [["c2"]]
    assert other.arguments == {"amount": 5}
    assert other.extra == {}


def test_what_a_hook_keeps_and_changes_later_changes_nothing():
    """The dict that it answered with is its own."""
    kept = {"amount": 5, "to": "al"}
    done = drive(call_of("{broken"), make_registry(), (bind(answering(Repaired(arguments=kept))),))
    kept["amount"] = 9

    assert done.outcome.arguments == {"amount": 5, "to": "al"}
    assert done.outcome.value == (5, "al")


# -- what a hook answers --------------------------------------------------------------------


def test_refuse_ends_it():
    """The reason goes to the model; nobody else is asked."""
    registry = make_registry()
    registry.repair(answering(Refuse("Ask the user first.")))
    registry.repair(named("never"))

    done = drive(call_of("{broken"), registry)

    assert (done.outcome.status, done.outcome.code, done.outcome.message) == (
        "refused",
        "refused",
        "Not run: Ask the user first.",
    )
    assert isinstance(done.outcome.error, RepairRefused)
    assert done.outcome.error.hook == "hook"
    assert done.asked[-1][0] == "hook"
    assert done.outcome.repairs[-1].refusal == "Ask the user first."


def test_renamed():
    """The call runs under the registered name; raw name and new name are in the record."""
    done = drive(call_of(GOOD, name="pey"), make_registry(), (bind(answering(Renamed("pay"))),))

    assert done.outcome.value == (5, "nobody")
    assert (done.outcome.tool, done.outcome.call.name, done.outcome.grade) == ("pay", "pey", Grade.HOOK)
    (record,) = done.outcome.repairs
    assert (record.renamed_from, record.renamed_to, record.accepted) == ("pey", "pay", True)
    assert done.ran[0].text == GOOD


def test_a_rename_is_validated_against_the_new_tool():
    """Other arguments are not made to fit."""
    done = drive(
        call_of('{"amount": 5, "to": "al"}', name="pey"), make_registry(), (bind(answering(Renamed("refund"))),)
    )

    assert (done.outcome.status, done.outcome.code, done.outcome.tool) == ("refused", "schema", "refund")
    assert done.ran == []


def test_a_rename_to_nowhere():
    """Is recorded and passed over."""
    done = drive(call_of(GOOD, name="pey"), make_registry(), (bind(answering(Renamed("nonesuch"))),))

    assert done.outcome.code == "unknown_tool"
    assert done.outcome.repairs[0].refusal == "no tool named 'nonesuch' is registered"


NONSENSE = [
    {"amount": 5}, '{"amount": 5}', True, 0, "", [], object(), Repaired(), Repaired(arguments={"amount": 5}, text="{}"),
    Repaired(text=5), Repaired(arguments=[1]), Repaired(arguments={"amount": object()}), Repaired(text="\ud83d"),
    Repaired(arguments={"amount": 5, "to": "\ud83d"}), Repaired(arguments={"amount": float("nan")}),
    Repaired(text='{"amount": 5}', grade="perfect"), Repaired(text='{"amount": 5}', grade="lossless", edits=5),
    Repaired(text='{"amount": 5}', grade="lossless", edits=("x",)), Renamed(5), Renamed(None), Renamed(["pay"]), Refuse,
    Repaired(text='{"amount": 5'), Repaired(text='{"amount": 5, "amount": 6}'), Repaired(text="[5]"),
    Repaired(arguments={1: 2}), Repaired(arguments={"amount": "five"}), Repaired(arguments={}),
]  # fmt: skip


@pytest.mark.parametrize(
    "answer", NONSENSE, ids=[f"{number} {type(item).__name__}" for number, item in enumerate(NONSENSE)]
)
def test_nonsense_is_recorded_and_passed_over(answer: object):
    """Whatever a hook answers, the flow goes on; the answer never runs unless it is strictly valid."""
    registry = make_registry()
    registry.repair(answering(answer))

    @registry.repair
    def last(request: RepairRequest) -> Repaired:
        return Repaired(arguments={"amount": 1})

    done = drive(call_of("{broken"), registry)

    assert [validated.arguments for validated in done.ran] == [{"amount": 1}]
    assert done.outcome.repairs[-1].accepted
    assert done.outcome.repairs[0].hook == "hook"


@pytest.mark.parametrize("given", [{"rate": float("nan")}, {"rate": float("inf")}, {"note": "\ud83d"}])
def test_an_answer_is_not_changed_on_its_way(given: dict[str, Any]):
    """What JSON cannot say is no answer: it is not made null, or another character, behind the hook's back."""
    registry = ToolRegistry()
    ran = []

    @registry.tool
    def f(rate: float | None = 1.0, note: str = "") -> None:
        ran.append((rate, note))

    done = drive(call_of("{broken", name="f"), registry, (bind(answering(Repaired(arguments=given))),))

    assert ran == []
    assert done.outcome.status == "refused"


def test_a_hook_that_raises_is_recorded():
    """With what it raised."""
    registry = make_registry()

    @registry.repair
    def broken(request: RepairRequest) -> None:
        raise KeyError("table")

    done = drive(call_of("{broken"), registry)

    assert done.outcome.code == "syntax"
    assert [(record.hook, record.refusal) for record in done.outcome.repairs] == [
        ("broken", "the hook raised KeyError: 'table'")
    ]


@pytest.mark.parametrize(
    "answer",
    [
        Repaired(text='{"amount": 5, "amount": 6}'),
        Repaired(text='{"amount": NaN}'),
        Repaired(text='{"amount": true}'),
        Repaired(arguments={"amount": "five"}),
        Repaired(arguments={"amount": 5, "bogus": 1}),
        Repaired(arguments={}),
        Repaired(text="{}"),
        Repaired(text=""),
    ],
)
def test_every_answer_is_parsed_and_validated_again(answer: Repaired):
    """As strictly as if the model had written it; nothing is ever `{}` because a hook said so."""
    done = drive(call_of("{broken"), make_registry(), (bind(answering(answer)),))

    assert done.ran == []
    assert done.outcome.status == "refused"


def test_an_answer_that_does_not_help_is_not_kept():
    """The next hook starts from the text before it; the refusal says why."""
    registry = make_registry()
    registry.repair(answering(Repaired(text="{worse")))
    registry.repair(named("next"))

    done = drive(call_of("{broken"), registry, registry.hooks)

    assert [request.text for request in done.requests] == ["{broken", "{broken"]
    assert done.outcome.repairs[0].refusal.startswith("Not run: the arguments are not one valid JSON object")
    assert done.requests[1].attempts == done.outcome.repairs


# -- records --------------------------------------------------------------------------------


def test_the_audit_record():
    """Raw text and its digest, edits, before and after, grade, verdict, seconds."""
    raw = '{"amount": 5, "to": "al",}'
    done = drive(call_of(raw), make_registry(), seconds=0.25)
    noise, comma = [None, *done.outcome.repairs]

    assert noise is None  # it had nothing to say
    assert (comma.hook, comma.fault, comma.accepted, comma.grade) == ("trailing_comma", "parse", True, Grade.LOSSLESS)
    assert (comma.raw, comma.before, comma.after) == (raw, raw, '{"amount": 5, "to": "al"}')
    assert comma.raw_sha256 == sha256(raw.encode()).hexdigest()
    assert comma.edits == (Edit("trailing_comma", 24, ",", ""),)
    assert comma.refusal is None
    assert comma.seconds == 0.25
    assert done.outcome.grade is Grade.LOSSLESS
    assert done.outcome.arguments == {"amount": 5, "to": "al"}
    assert done.outcome.call.raw_arguments == raw


def test_two_steps_of_the_chain():
    """Each has its record; the raw text is the model's in both."""
    fence = "`" * 3
    raw = f'{fence}json\n{{"amount": 5,}}\n{fence}'
    done = drive(call_of(raw), make_registry())

    assert [(record.hook, record.before, record.after, record.raw) for record in done.outcome.repairs] == [
        ("outer_noise", raw, '{"amount": 5,}', raw),
        ("trailing_comma", '{"amount": 5,}', '{"amount": 5}', raw),
    ]
    assert [record.accepted for record in done.outcome.repairs] == [True, True]
    assert (done.outcome.value, done.outcome.grade) == ((5, "nobody"), Grade.LOSSLESS)


def test_a_refused_call_keeps_its_records():
    """What was tried is told to the developer."""
    registry = make_registry()
    registry.repair(on="parse")(answering(Repaired(arguments={"amount": "x"})))

    done = drive(call_of("{broken"), registry, registry.hooks)

    assert done.outcome.status == "refused"
    assert [(record.hook, record.accepted) for record in done.outcome.repairs] == [("hook", True)]
    assert done.outcome.code == "schema"  # nearer than before, but not there


# -- floors ---------------------------------------------------------------------------------

COMMA = '{"amount": 5,}'


@pytest.mark.parametrize(
    ("options", "grade", "runs"),
    [
        ({"repair": "never"}, "lossless", False),
        ({"repair": "never"}, "hook", False),
        ({"repair": "lossless"}, "lossless", True),
        ({"repair": "lossless"}, "schema_unique", False),
        ({"repair": "lossless"}, "hook", True),
        ({}, "schema_unique", True),
        ({}, "lossy", False),
        ({"repair": "lossy"}, "lossy", True),
        ({"destructive": True}, "schema_unique", False),
        ({"destructive": True, "repair": "lossy"}, "lossy", False),
        ({"destructive": True}, "lossless", True),
        ({"destructive": True}, "hook", True),
    ],
)
def test_floors(options: dict[str, Any], grade: str, runs: bool):
    """What a tool does not admit does not run, and the record says so."""
    registry = make_registry(**options)
    edits = (Edit("x", 12, ",", ""),) if grade == "lossless" else ()
    hook = answering(Repaired(text='{"amount": 5}', grade=grade, edits=edits))

    done = drive(call_of(COMMA), registry, (bind(hook),))

    assert bool(done.ran) is runs
    (record,) = done.outcome.repairs
    assert (record.accepted, record.grade) == (runs, grade)
    if not runs:
        assert record.refusal == f"the tool does not admit a {grade} repair"
        assert done.outcome.status == "refused"


def test_a_false_claim_of_lossless_is_a_hooks():
    """The check decides, and the tool's floor applies to what it finds."""
    hook = answering(Repaired(text='{"amount": 6}', grade="lossless", edits=(Edit("x", 12, ",", ""),)))

    done = drive(call_of(COMMA), make_registry(), (bind(hook),))

    assert done.outcome.grade is Grade.HOOK


def test_a_rename_is_not_admitted_by_never():
    """`repair="never"` shuts out every change, a name's too."""
    done = drive(call_of(GOOD, name="pey"), make_registry(repair="never"), (bind(answering(Renamed("pay"))),))

    assert done.ran == []


@pytest.mark.parametrize("options", [{"repair": "lossless"}, {"destructive": True}])
def test_every_step_has_to_be_admitted_by_the_tool_that_runs(options: dict[str, Any]):
    """A lossy repair for one tool does not reach a stricter one by a rename."""
    registry = ToolRegistry()
    ran = []

    @registry.tool(repair="lossy")
    def draft(amount: int, kind: Literal["draft"]) -> None:
        ran.append("draft")

    @registry.tool(**options)
    def pay(amount: int) -> None:
        ran.append("pay")

    def lossy(request: RepairRequest) -> Repaired:
        return Repaired(text='{"amount": 500}', grade="lossy")

    chain = (bind(lossy, on="parse"), bind(answering(Renamed("pay")), on="schema"))
    done = drive(call_of('{"amount": 5OO', name="draft"), registry, chain)

    assert ran == []
    assert done.outcome.status == "refused"


# -- budgets --------------------------------------------------------------------------------


@pytest.mark.parametrize(("hooks", "asked"), [(0, 0), (1, 1), (3, 3), (100, 5)])
def test_the_budget_of_questions(hooks: int, asked: int):
    """So many questions a call, then it is refused with what was wrong."""
    chain = tuple(bind(named(f"h{number}")) for number in range(5))

    done = drive(call_of("{broken"), make_registry(), chain, RepairBudget(hooks=hooks))

    assert len(done.asked) == asked
    assert done.outcome.code == "syntax"


@pytest.mark.parametrize(
    ("budget", "asked", "left"),
    [
        (RepairBudget(seconds=None), 5, [None, None, None, None, None]),
        (RepairBudget(seconds=1), 2, [1, 0.5]),
        (RepairBudget(seconds=1.2), 3, [1.2, 0.7, 0.2]),
        (RepairBudget(seconds=0), 0, []),
    ],
)
def test_the_budget_of_seconds(budget: RepairBudget, asked: int, left: list[float | None]):
    """The seconds of all hooks together; each is told what is left."""
    chain = tuple(bind(named(f"h{number}")) for number in range(5))

    done = drive(call_of("{broken"), make_registry(), chain, budget, seconds=0.5)

    assert len(done.asked) == asked
    assert [request.seconds_left for request in done.requests] == pytest.approx(left)


def test_a_chain_of_one_hook_twice():
    """The same function bound twice is two hooks."""
    done = drive(call_of("{broken"), make_registry(), (bind(named("twice")), bind(named("twice"))))

    assert len(done.asked) == 2


# -- identity -------------------------------------------------------------------------------


def test_a_nameless_call():
    """Its fault is identity; a rename can heal it, other arguments cannot."""
    nameless = replace(
        call_of(GOOD),
        name=None,
        name_readings=(),
        status=CallStatus.PARSE_ERROR,
        arguments=None,
        executable=False,
        code="nameless",
    )
    registry = make_registry()

    refused = drive(nameless, registry, (bind(answering(Repaired(arguments={"amount": 5}))),))
    renamed = drive(nameless, registry, (bind(answering(Renamed("pay"))),))

    assert (refused.outcome.code, refused.ran) == ("nameless", [])
    assert refused.requests[0].fault is Fault.IDENTITY
    assert renamed.outcome.value == (5, "nobody")
    assert renamed.outcome.grade is Grade.HOOK


def test_a_name_that_changed_midway():
    """The same, and the hook sees both readings."""
    conflict = replace(
        call_of(GOOD),
        name_readings=("pay", "refund"),
        status=CallStatus.PARSE_ERROR,
        arguments=None,
        executable=False,
        code="identity_conflict",
    )

    done = drive(conflict, make_registry(), (bind(named("h")),))

    assert (done.outcome.code, done.requests[0].fault) == ("identity_conflict", Fault.IDENTITY)
    assert done.requests[0].candidates == ("pay", "refund")


def test_two_readings_of_a_name():
    """One is registered: it is meant. Both are: nobody knows, and a hook may say."""
    registry = make_registry()
    one = replace(call_of(GOOD), name="pa", name_readings=("pa", "pay"))
    both = replace(call_of(GOOD), name="refund", name_readings=("refund", "pay"))

    known = drive(one, registry)
    unknown = drive(both, registry)
    said = drive(both, registry, (bind(answering(Renamed("refund"))),))

    assert (known.outcome.tool, known.outcome.value) == ("pay", (5, "nobody"))
    assert (unknown.outcome.code, unknown.ran) == ("unknown_tool", [])
    assert unknown.asked == [("tool_name", Fault.UNKNOWN_TOOL)]
    assert (said.requests[0].candidates, said.outcome.value) == (("refund", "pay"), -5)


# -- free text ------------------------------------------------------------------------------


def test_free_text_goes_to_the_one_text_parameter():
    """Not parsed as JSON, whatever it looks like; a tool without such a parameter gets nothing."""
    registry = make_registry()

    @registry.tool
    def shell(script: str) -> str:
        return script

    def free(name: str, text: str) -> ToolCall:
        return replace(call_of(GOOD, name=name), kind="custom", raw_arguments=text, text=text, arguments=None)

    assert drive(free("shell", '{"a": 1,}'), registry).outcome.value == '{"a": 1,}'
    assert drive(free("shell", ""), registry).outcome.value == ""
    for text in (GOOD, COMMA, "ls"):
        done = drive(free("pay", text), registry)
        assert (done.outcome.code, done.ran) == ("custom_text", [])
