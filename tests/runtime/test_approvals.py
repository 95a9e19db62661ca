"""Approvals: a person decides on exactly what was validated, now or later, here or in another process."""

# Tools with annotations of their own: no postponed evaluation here.
import json
import sys
import threading
import time

import anyio
import pytest

from toolrun import (
    ApprovalAnswered,
    ApprovalExpired,
    ApprovalRequest,
    ApprovalRequested,
    Approve,
    CallStatus,
    Defer,
    Deny,
    Image,
    InvalidToken,
    RegistrationError,
    Repaired,
    Result,
    Runner,
    Tool,
    ToolCall,
    ToolContext,
    ToolRegistry,
    Turn,
    TurnPending,
)

from .responses import anthropic_message, openai_chunks, response

KEY = b"0123456789abcdef"
COMMA = '{"amount": 5, "to": "al",}'


def paying(paid: list[object], **options: object) -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool(**{"approval": True, **options})
    async def pay(amount: int = 1, to: str = "nobody") -> str:
        paid.append((amount, to))
        return f"{amount} to {to}"

    @registry.tool
    async def look(n: int = 0) -> int:
        return n

    return registry


def told(turn: Turn) -> list[tuple[str, str | None, object]]:
    return [(outcome.status, outcome.code, outcome.value) for outcome in turn.outcomes]


# -- while the turn runs --------------------------------------------------------------------


@pytest.mark.parametrize("style", ["sync", "async", "of the tool"])
@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (Approve(), ("succeeded", None, "5 to al")),
        (Approve({"amount": 2, "to": "bo"}), ("succeeded", None, "2 to bo")),
        (Approve({"amount": "2"}), ("denied", "unfit_edit", None)),
        (Approve({"amount": float("nan")}), ("denied", "unfit_edit", None)),
        (Deny("too much"), ("denied", "denied", None)),
        (Defer(), ("deferred", "approval", None)),
        (None, ("denied", "approver", None)),
        (True, ("denied", "approver", None)),
    ],
    ids=["yes", "edit", "unfit edit", "NaN", "no", "later", "None", "True"],
)
async def test_every_decision(style: str, decision: object, expected: tuple[object, ...]):
    """What an approver may say, and what is no answer: only a yes runs the tool."""
    paid: list[object] = []

    def sync(request: ApprovalRequest) -> object:
        return decision

    async def later(request: ApprovalRequest) -> object:
        await anyio.lowlevel.checkpoint()
        return decision

    if style == "of the tool":
        runner = Runner(paying(paid, approval=sync))
    else:
        runner = Runner(paying(paid), approver=sync if style == "sync" else later)

    turn = await runner.run(response(("pay", '{"amount": 5, "to": "al"}'), ("look", '{"n": 3}')))

    assert told(turn) == [expected, ("succeeded", None, 3)]
    assert len(paid) == (expected[0] == "succeeded")


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(3), RuntimeError()], ids=repr)
async def test_an_approver_that_fails_has_not_approved(error: BaseException):
    """The call is denied, its sibling runs, and the developer sees why."""
    paid: list[object] = []

    def fails(request: ApprovalRequest) -> Approve:
        raise error

    turn = await Runner(paying(paid), approver=fails).run(response(("pay", "{}"), ("look", '{"n": 3}')))

    assert told(turn) == [("denied", "approver", None), ("succeeded", None, 3)]
    assert type(error).__name__ in str(turn.outcomes[0].error)
    assert "boom" not in turn.outcomes[0].message
    assert paid == []


async def test_what_an_approver_is_asked():
    """The call, the exact arguments with their digest, the key, the repairs and the deps; changing them changes nothing."""
    paid: list[object] = []
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Approve:
        asked.append(request)
        request.arguments["amount"] = 1_000_000
        request.call.arguments and request.call.arguments.clear()
        return Approve()

    await Runner(paying(paid), approver=approve, run_id="R").run(
        response(("pay", COMMA)), turn_id="T", deps={"user": "kari"}
    )

    (request,) = asked
    assert (request.tool, request.key, request.grade) == ("pay", "R:T:0", "lossless")
    assert request.call.raw_arguments == COMMA
    assert (
        request.digest == "b3ae5d9d5e80c8bc2b8bc88dfbb8ba52b2c1bd9e19dbeac01c5d8bb5f4ae0ffe"
        or len(request.digest) == 64
    )
    assert [record.hook for record in request.repairs] == ["trailing_comma"]
    assert request.deps == {"user": "kari"}
    assert paid == [(5, "al")]


async def test_nobody_is_asked_about_a_call_that_is_unfit():
    """Approval comes after validation."""
    asked: list[ApprovalRequest] = []
    runner = Runner(paying([]), approver=asked.append)

    turn = await runner.run(response(("pay", '{"amount": "x"}'), ("pay", '{"amount": '), ("nobody", "{}")))

    assert [outcome.status for outcome in turn.outcomes] == ["refused"] * 3
    assert asked == []


async def test_an_edit_is_recorded_and_told():
    """The record says what was changed, and the history repeats the call as it was run."""
    paid: list[object] = []
    runner = Runner(paying(paid), approver=lambda request: Approve({"amount": 2}))

    turn = await runner.run(response(("pay", '{"amount": 5}')))

    (outcome,) = turn.outcomes
    (record,) = outcome.repairs
    assert (record.hook, record.fault, record.accepted, record.grade) == ("approver", "approval", True, "hook")
    assert (record.before, record.after) == ('{"amount": 5}', '{"amount":2}')
    assert (outcome.grade, outcome.arguments) == ("hook", {"amount": 2})
    assert json.loads(turn.messages()[0]["tool_calls"][0]["function"]["arguments"]) == {"amount": 2}


async def test_events():
    """Asked, answered, then the attempt; both carry the position."""
    runner = Runner(paying([]), approver=lambda request: Approve())

    async with runner.stream(openai_chunks(("c0", "pay", ["{}"]))) as run:
        seen = [event async for event in run]

    kinds = [type(event).__name__ for event in seen]
    assert kinds[-5:] == ["ApprovalRequested", "ApprovalAnswered", "AttemptStarted", "AttemptEnded", "CallCompleted"]
    requested, answered = seen[-5:-3]
    assert isinstance(requested, ApprovalRequested)
    assert requested.request.tool == "pay"
    assert answered == ApprovalAnswered(0, Approve(), None)


async def test_a_sync_approver_blocks_nobody():
    """It may wait for a person in its thread, while the siblings run."""
    asked, decided = threading.Event(), threading.Event()

    def wait(request: ApprovalRequest) -> Approve:
        asked.set()
        assert decided.wait(5)
        return Approve()

    registry = paying([])

    @registry.tool
    async def decide() -> None:
        await anyio.to_thread.run_sync(asked.wait, 5)
        decided.set()

    turn = await Runner(registry, approver=wait).run(response(("pay", "{}"), ("decide", "{}")))

    assert [outcome.status for outcome in turn.outcomes] == ["succeeded", "succeeded"]


# -- later ----------------------------------------------------------------------------------


async def pending(runner: Runner, *calls: tuple[str, str]) -> Turn:
    return await runner.run(response(*(calls or (("pay", '{"amount": 5, "to": "al"}'), ("look", '{"n": 3}')))))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Approve(), ("succeeded", None, "5 to al")),
        (Approve({"amount": 2}), ("succeeded", None, "2 to nobody")),
        (Approve({"amount": "2"}), ("denied", "unfit_edit", None)),
        (Deny("no"), ("denied", "denied", None)),
        (Result({"receipt": 7}), ("succeeded", None, {"receipt": 7})),
        (Result(error="the bank said no"), ("failed", "elsewhere", None)),
    ],
    ids=["yes", "edit", "unfit edit", "no", "result", "failed elsewhere"],
)
async def test_a_turn_is_resumed(answer: object, expected: tuple[object, ...]):
    """Without an approver the call is deferred; its answer completes the turn, and nothing runs twice."""
    paid: list[object] = []
    runner = Runner(paying(paid))
    turn = await pending(runner)

    with pytest.raises(TurnPending, match="c0"):
        turn.messages()
    resumed = await runner.resume(turn, {"c0": answer})

    assert told(turn) == [("deferred", "approval", None), ("succeeded", None, 3)]
    assert ([item.call.id for item in turn.pending], turn.needs_reply) == (["c0"], False)
    assert told(resumed) == [expected, ("succeeded", None, 3)]
    assert (resumed.pending, resumed.needs_reply, resumed.turn_id) == ((), True, turn.turn_id)
    assert [message["tool_call_id"] for message in resumed.messages()[1:]] == ["c0", "c1"]
    assert len(paid) == (expected[0] == "succeeded" and not isinstance(answer, Result))


async def test_what_was_approved_is_what_runs():
    """A repaired call is not repaired again: the hook that would now say something else is not asked."""
    paid: list[object] = []
    registry = paying(paid)
    amounts = iter([5, 1_000_000])
    registry.repair(lambda request: Repaired(arguments={"amount": next(amounts)}))
    runner = Runner(registry, repairs=())
    turn = await pending(runner, ("pay", "{amount: 5}"))

    turn.pending[0].arguments["amount"] = 9
    resumed = await runner.resume(turn, {"c0": Approve()})

    assert paid == [(5, "nobody")]
    assert resumed.outcomes[0].grade == "hook"
    assert [record.hook for record in resumed.outcomes[0].repairs] == ["<lambda>"]


async def test_free_text_stays_free_text():
    """Also where the name had to be mended before anybody was asked."""
    ran: list[str] = []
    registry = ToolRegistry()

    @registry.tool(approval=True)
    async def run_code(code: str) -> None:
        ran.append(code)

    text = 'print("hi")'
    call = ToolCall(
        id="c0",
        name="functions.run-code",
        raw_arguments=text,
        arguments=None,
        text=text,
        status=CallStatus.OK,
        executable=True,
        kind="custom",
    )
    runner = Runner(registry)

    turn = await runner.resume(await runner.execute([call]), {"c0": Approve()})

    assert [(outcome.status, outcome.arguments) for outcome in turn.outcomes] == [("succeeded", {"code": text})]
    assert ran == [text]


async def test_the_key_is_the_same_as_if_it_had_run_at_once():
    """Run, turn and position of the turn, whichever runner resumes it."""
    keys: list[str] = []
    registry = ToolRegistry()

    @registry.tool(approval=True)
    async def pay(ctx: ToolContext[str]) -> None:
        keys.append(f"{ctx.key} {ctx.deps}")

    turn = await Runner(registry, run_id="R").run(response(("pay", "{}")), turn_id="T", deps="a")
    await Runner(registry, run_id="S").resume(turn, {0: Approve()}, deps="b")

    assert keys == ["R:T:0 b"]


async def test_some_answers_now_and_some_later():
    """Calls without an answer stay deferred."""
    paid: list[object] = []
    runner = Runner(paying(paid))
    turn = await pending(runner, ("pay", '{"amount": 1}'), ("pay", '{"amount": 2}'))

    half = await runner.resume(turn, {"c1": Approve()})
    whole = await runner.resume(half, {"c0": Deny()})

    assert [item.call.id for item in half.pending] == ["c0"]
    assert [outcome.status for outcome in whole.outcomes] == ["denied", "succeeded"]
    assert paid == [(2, "nobody")]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"c9": Approve()}, "no pending call is 'c9'; pending: c0, c1"),
        ({"c0": Defer()}, "must be Approve, Deny or Result"),
        ({"c0": True}, "must be Approve, Deny or Result"),
        ({"c1": Approve()}, "'sign' is only declared, nothing can run it; answer with Result"),
    ],
)
async def test_answers_that_are_none(answers: dict[str, object], message: str):
    """They are refused before anything runs, and the turn can be resumed still."""
    paid: list[object] = []
    registry = paying(paid)
    registry.add(Tool.from_json_schema(name="sign", input_schema={"type": "object"}))
    runner = Runner(registry)
    turn = await pending(runner, ("pay", "{}"), ("sign", "{}"))

    with pytest.raises(ValueError, match=message):
        await runner.resume(turn, {"c0": Approve(), **answers})

    assert paid == []
    assert (await runner.resume(turn, {"c0": Approve(), "c1": Result()})).pending == ()


async def test_a_tool_that_changed_meanwhile():
    """What was approved is validated by the tool that is there now."""
    turn = await pending(Runner(paying([])))
    registry = ToolRegistry()

    @registry.tool
    async def pay(amount: int, currency: str) -> None: ...

    resumed = await Runner(registry).resume(turn, {"c0": Approve()})
    gone = await Runner(ToolRegistry()).resume(turn, {"c0": Approve()})

    assert told(resumed)[0] == ("refused", "schema", None)
    assert told(gone)[0] == ("refused", "unknown_tool", None)


async def test_tools_that_are_only_declared():
    """Their calls are validated and wait for a result, on every wire."""
    registry = ToolRegistry()
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    registry.add(Tool.from_json_schema(name="click", input_schema=schema))
    runner = Runner(registry)

    turn = await runner.run(anthropic_message(("t1", "click", {"x": 1}), ("t2", "click", {"x": "one"})))
    resumed = await runner.resume(turn, {"t1": Result("clicked")})

    assert told(turn) == [("deferred", "declared_only", None), ("refused", "schema", None)]
    results = resumed.messages()[1]["content"]
    assert [(block["tool_use_id"], block.get("is_error", False)) for block in results] == [("t1", False), ("t2", True)]


@pytest.mark.parametrize("named", ["c", 0, 1])
async def test_the_same_call_twice_is_answered_once(named: str | int):
    """A repetition by the provider's own id waits for the same answer, whichever of them is named, and runs once."""
    paid: list[object] = []
    runner = Runner(paying(paid))
    turn = await runner.execute(twice())

    resumed = await runner.resume(turn, {named: Approve()})

    assert [outcome.status for outcome in resumed.outcomes] == ["succeeded", "succeeded"]
    assert paid == [(1, "nobody")]


@pytest.mark.parametrize("answers", [{0: Approve(), 1: Deny()}, {0: Deny(), "c": Approve()}])
async def test_the_same_call_twice_is_not_answered_in_two_ways(answers: dict[str | int, object]):
    """Nothing says which of the two answers holds."""
    paid: list[object] = []
    runner = Runner(paying(paid))
    turn = await runner.execute(twice())

    with pytest.raises(ValueError, match="the call c has another answer already"):
        await runner.resume(turn, answers)

    assert paid == []


def twice() -> tuple[ToolCall, ToolCall]:
    call = ToolCall(id="c", name="pay", raw_arguments="{}", arguments={}, status=CallStatus.OK, executable=True)
    return call, call


@pytest.mark.parametrize("options", [{"barrier": True}, {"conflict_key": "account"}], ids=["barrier", "key"])
async def test_answers_in_another_order(options: dict[str, object]):
    """Calls that have to wait for each other run in call order, in whichever order they are answered."""
    paid: list[object] = []
    runner = Runner(paying(paid, **options), max_concurrency=1)
    turn = await pending(runner, ("pay", '{"amount": 1}'), ("pay", '{"amount": 2}'))

    with anyio.fail_after(5):
        await runner.resume(turn, {"c1": Approve(), "c0": Approve()})

    assert paid == [(1, "nobody"), (2, "nobody")]


def test_without_an_event_loop():
    """`resume_sync` is to `resume` what `run_sync` is to `run`."""
    paid: list[object] = []
    with Runner(paying(paid)) as runner:
        turn = runner.run_sync(response(("pay", "{}")))
        resumed = runner.resume_sync(turn, {"c0": Approve()}, deps=None)

    assert (resumed.outcomes[0].status, paid) == ("succeeded", [(1, "nobody")])


# -- in another process ---------------------------------------------------------------------

OTHER = """
import sys
from toolrun import Approve, Runner, ToolRegistry

registry = ToolRegistry()

@registry.tool(approval=True)
def pay(amount: int = 1, to: str = "nobody") -> str:
    return f"{amount} to {to}"

with Runner(registry, signing_key=b"0123456789abcdef") as runner:
    resumed = runner.resume_sync(sys.stdin.read(), {"c0": Approve()})
    print(runner.dump_turn(resumed))
"""


async def test_a_turn_goes_to_another_process_and_back():
    """There it is resumed, and what it came to can be sent to the model from here."""
    runner = Runner(paying([]), signing_key=KEY, run_id="R")
    turn = await runner.run(response(("pay", COMMA), ("look", '{"n": 3}'), ("look", "{\ud83d"), ("look", '{"n": ')))

    command = [sys.executable, "-c", OTHER]
    answer = await anyio.run_process(command, input=runner.dump_turn(turn).encode())
    resumed = runner.load_turn(answer.stdout.decode())

    assert told(resumed) == [
        ("succeeded", None, "5 to al"),
        ("succeeded", None, 3),
        ("refused", "lone_surrogate", None),
        ("refused", "truncated", None),
    ]
    assert resumed.outcomes[0].repairs == turn.outcomes[0].repairs
    assert resumed.outcomes[0].key == f"R:{turn.turn_id}:0"
    assert resumed.calls == turn.calls
    assert resumed.messages() == (await runner.resume(turn, {"c0": Approve()})).messages()


async def test_a_turn_survives_the_way_as_it_was():
    """Every field comes back, but for exceptions; values are JSON values."""
    registry = paying([])

    @registry.tool
    async def odd() -> object:
        return {"when": (1, 2), "nan": float("inf"), "raw": b"\xff"}

    @registry.tool
    async def draw() -> Image:
        return Image(data=b"\x89PNG\r\n\x1a\n")

    runner = Runner(registry, signing_key=KEY)
    turn = await pending(runner, ("pay", "{}"), ("odd", "{}"), ("odd", '{"x": '), ("draw", "{}"))
    loaded = runner.load_turn(runner.dump_turn(turn))

    assert loaded.outcomes[1].value == {"when": (1, 2), "nan": None, "raw": b"\xff"}
    assert loaded.outcomes[1].message == turn.outcomes[1].message
    assert (loaded.outcomes[2].error, loaded.outcomes[2].code) == (None, "truncated")
    assert loaded.outcomes[0] == turn.outcomes[0]
    assert loaded.outcomes[3] == turn.outcomes[3]
    assert loaded.outcomes[3].parts == (Image(data=b"\x89PNG\r\n\x1a\n"),)
    assert (loaded.wire, loaded.response, loaded.calls) == (turn.wire, turn.response, turn.calls)


async def test_a_changed_turn_is_refused():
    """Whatever was changed: the arguments, the signature, the key, the format; and what is no turn at all."""
    runner = Runner(paying([]), signing_key=KEY)
    token = runner.dump_turn(await pending(runner))
    envelope = json.loads(token)
    changed = [
        token.replace("al", "eve", 1),
        json.dumps({**envelope, "turn": envelope["turn"].replace("5", "6", 1)}),
        json.dumps({**envelope, "signature": "0" * 64}),
        json.dumps({**envelope, "signature": 7}),
        json.dumps({**envelope, "toolrun": 2}),
        token[:-5],
        "",
        "[]",
        "{}",
        "\ud83d",
    ]

    for text in changed:
        with pytest.raises(InvalidToken):
            await runner.resume(text, {"c0": Approve()})
    with pytest.raises(InvalidToken, match="changed since it was written, or signed with another key"):
        Runner(paying([]), signing_key=KEY[::-1]).load_turn(token)


@pytest.mark.parametrize("answer", [Approve(), Result(1)])
async def test_an_answer_that_comes_too_late(answer: object, monkeypatch: pytest.MonkeyPatch):
    """After the time is over nothing runs; the call can be denied, so that the conversation goes on."""
    paid: list[object] = []
    runner = Runner(paying(paid), approval_timeout=60, signing_key=KEY)
    token = runner.dump_turn(await pending(runner))
    in_time = await runner.resume(token, {"c0": Deny()})
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)

    with pytest.raises(ApprovalExpired, match="can only be denied"):
        await runner.resume(token, {"c0": answer})
    denied = await runner.resume(token, {"c0": Deny()})

    assert paid == []
    assert in_time.outcomes[0].status == denied.outcomes[0].status == "denied"


def test_a_turn_without_a_key_stays_here():
    """Signing needs a key, and a key needs to be one."""
    runner = Runner(paying([]))
    turn = runner.run_sync(response(("pay", "{}")))

    with pytest.raises(RegistrationError, match="signing_key"):
        runner.dump_turn(turn)
    for key in (b"short", "a string of sixteen"):
        with pytest.raises(RegistrationError, match="at least 16 bytes"):
            Runner(paying([]), signing_key=key)
    assert "0123456789abcdef" not in repr(Runner(paying([]), signing_key=KEY)._settings)
