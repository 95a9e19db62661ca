"""Asking repair hooks, and judging what they answer: parsed and validated as if the model had written it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from toolrun._core import results
from toolrun._core.calls import ToolDefinition
from toolrun._core.conservation import same
from toolrun._core.examining import Candidate, Finding, examine
from toolrun._core.json_text import dump_strictly
from toolrun._core.records import Grade, RepairRecord
from toolrun._core.repair import (
    Declined,
    Fault,
    Renamed,
    Repaired,
    RepairRequest,
    admits,
    advanced,
    digest,
    grade_answer,
)

if TYPE_CHECKING:
    from toolrun._core.calls import ToolCall
    from toolrun._core.records import JsonObject
    from toolrun._core.registry import ToolRegistry
    from toolrun._core.repair import HookBinding, Reading
    from toolrun._core.steps import HookAnswer


class Judgement(NamedTuple):
    """What came of an answer: the record, and the new candidate with what it turns out to be, if it was accepted."""

    record: RepairRecord
    candidate: Candidate | None = None
    finding: Finding | None = None
    candidates: tuple[str, ...] = ()


def next_hook(chain: tuple[HookBinding, ...], finding: Finding, asked: set[tuple[int, Fault]]) -> HookBinding | None:
    """Each hook is asked once about each fault; after a change, from the beginning again."""
    fault = finding.fault
    if fault is None:
        return None
    return next(
        (
            binding
            for binding in chain
            if (id(binding), fault) not in asked and binding.answers(fault, finding.tool_name)
        ),
        None,
    )


def make_request(
    call: ToolCall,
    candidate: Candidate,
    finding: Finding,
    registry: ToolRegistry,
    records: list[RepairRecord],
    attempt: int,
    left: float | None,
    calls: tuple[ToolCall, ...],
    binding: HookBinding,
    readings: tuple[str, ...],
) -> RepairRequest:
    definition = finding.tool.definition if finding.tool else None
    if definition is not None and not binding.builtin:
        definition = ToolDefinition(
            name=definition.name,
            description=definition.description,
            input_schema=copy.deepcopy(definition.input_schema),
        )
    return RepairRequest(
        call=_copied(call, binding),
        fault=finding.fault or Fault.SCHEMA,
        text=candidate.text,
        issue=finding.issue,
        issues=finding.issues,
        definition=definition,
        known=registry.names,
        finish_reason=call.finish_reason,
        attempts=tuple(records),
        candidates=readings,
        attempt=attempt,
        seconds_left=left,
        siblings=tuple(_copied(other, binding) for other in calls if other.position != call.position),
    )


def _copied(call: ToolCall, binding: HookBinding) -> ToolCall:
    """A copy that a hook may change as it likes; built-in ones change nothing."""
    return call if binding.builtin else replace(call, arguments=copy.deepcopy(call.arguments), extra=dict(call.extra))


def judge(
    call: ToolCall,
    candidate: Candidate,
    finding: Finding,
    registry: ToolRegistry,
    binding: HookBinding,
    answer: HookAnswer,
) -> Judgement:
    """Parse and validate an answer as if the model had written it; keep it only if it helps and is admitted."""
    answer, fitting = _only_reading(call, candidate, registry, answer)
    changed, refusal = _apply(candidate, registry, binding, answer)
    if changed is None:
        record = make_record(binding, call, candidate, finding, answer, refusal=refusal)
        return Judgement(record, candidates=fitting)
    found = examine(call, changed, registry)
    tool = found.tool
    barred = tool and next(
        (g for g in changed.grades if not admits(tool.repair, destructive=tool.destructive, grade=g)), None
    )
    if barred:
        refusal = f"the tool does not admit a {barred} repair"
    elif (
        finding.fault is not None
        and not advanced(finding.fault, found.fault)
        and not _builds(binding, candidate, changed)
    ):
        refusal = found.message or "the answer is still unfit"
    record = make_record(binding, call, candidate, finding, answer, refusal=refusal, changed=changed)
    return Judgement(record) if refusal else Judgement(record, changed, found)


def _only_reading(
    call: ToolCall, candidate: Candidate, registry: ToolRegistry, answer: HookAnswer
) -> tuple[HookAnswer, tuple[str, ...]]:
    """Prove that one of several readings fits, and no other with another value; else it is not known what was meant."""
    decision = answer.decision
    if not isinstance(decision, Repaired) or not decision.is_well_formed() or len(decision.readings) < 2:  # noqa: PLR2004
        return answer, ()
    fitting: list[tuple[Reading, JsonObject]] = []
    for reading in decision.readings:
        found = examine(call, replace(candidate, text=reading.text, rewritten=True), registry)
        fits = found.validated
        if fits is not None and not any(same(fits.arguments, other) for _, other in fitting):
            fitting.append((reading, fits.arguments))
    if len(fitting) != 1:
        count = len(decision.readings)
        detail = (
            f"{len(fitting)} of {count} readings fit the schema"
            if fitting
            else f"none of {count} readings fits the schema"
        )
        declined = Declined("ambiguous" if fitting else "schema", detail)
        return answer._replace(decision=declined), tuple(reading.text for reading, _ in fitting)
    ((only, _),) = fitting
    return answer._replace(decision=replace(decision, text=only.text, arguments=None, edits=only.edits)), ()


def _apply(
    candidate: Candidate, registry: ToolRegistry, binding: HookBinding, answer: HookAnswer
) -> tuple[Candidate | None, str | None]:
    decision = answer.decision
    if answer.failure is not None:
        return None, answer.failure
    if isinstance(decision, Declined):
        return None, results.declined_text(decision.code, decision.detail)
    if isinstance(decision, Renamed):
        meant: object = decision.tool
        if not isinstance(meant, str) or meant not in registry:
            return None, f"no tool named {meant!r} is registered"
        # The ladder finds the only registered tool that can be meant; any other hook is a person's code.
        grade = Grade.SCHEMA_UNIQUE if binding.builtin else Grade.HOOK
        return replace(candidate, renamed=decision.tool, grades=(*candidate.grades, grade)), None
    if not isinstance(decision, Repaired) or not decision.is_well_formed():
        return (
            None,
            f"the hook answered {decision!r}; expected Repaired with arguments or text, Renamed, Refuse or None",
        )
    text = decision.text if decision.text is not None else dump_strictly(decision.arguments)
    if text is None:
        return None, "the hook's arguments cannot be written as strict JSON"
    grade = grade_answer(binding, candidate.text, text, decision)
    return replace(candidate, text=text, rewritten=True, grades=(*candidate.grades, grade)), None


def _builds(binding: HookBinding, before: Candidate, after: Candidate) -> bool:
    """A built-in step may leave the rest to the next one: what comes of all of them is what counts."""
    return binding.builtin and after.grades[-1] is not Grade.LOSSY and after.text != before.text


def make_record(
    binding: HookBinding,
    call: ToolCall,
    candidate: Candidate,
    finding: Finding,
    answer: HookAnswer,
    *,
    refusal: str | None,
    changed: Candidate | None = None,
) -> RepairRecord:
    decision = answer.decision
    renamed = decision.tool if isinstance(decision, Renamed) else None
    return RepairRecord(
        hook=binding.name,
        fault=str(finding.fault),
        accepted=refusal is None,
        grade=changed.grades[-1] if changed is not None else None,
        raw=call.raw_arguments,
        raw_sha256=digest(call.raw_arguments),
        before=candidate.text,
        after=changed.text if changed is not None else None,
        edits=decision.edits if isinstance(decision, Repaired) else (),
        renamed_from=call.name if renamed else None,
        renamed_to=renamed,
        refusal=refusal,
        code=decision.code if isinstance(decision, Declined) else None,
        readings=len(decision.readings) if isinstance(decision, Repaired) else 0,
        note=decision.note if isinstance(decision, Repaired) else "",
        seconds=answer.seconds,
    )
