"""Output contracts: which artifact a step must deliver, and what is wrong with the one delivered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interlock.core.definition.conditions import Scope
from interlock.core.definition.criteria import failures
from interlock.core.definition.workflow import Contract, Step
from interlock.core.json_schema import violations
from interlock.core.run.output import Output
from interlock.core.run.reasons import Blocker, BlockerCode, ContractPointer, WorkflowStep
from interlock.core.values import Json

ASSESSMENT = "wr.assessment"


def unmet(step: Step, output: Output, scope: Scope) -> Iterator[Blocker]:
    """Name every contract and criterion of the step that the output does not meet (rule 31)."""
    for contract in step.contracts:
        yield from _unmet(contract, output.artifacts)
    if step.criteria is not None:
        yield from _unmet_criteria(step, output, scope)


def _unmet(contract: Contract, artifacts: Sequence[Mapping[str, Json]]) -> Iterator[Blocker]:
    candidates = [artifact for artifact in artifacts if _belongs(artifact, contract)]
    if not candidates:
        if contract.required:
            yield _missing(contract, artifacts)
        return
    diagnostics = [_problems(contract, artifact) for artifact in candidates]
    if all(diagnostics):
        yield _invalid(contract, diagnostics[-1])


def _belongs(artifact: Mapping[str, Json], contract: Contract) -> bool:
    if artifact.get("kind") not in (contract.artifact, contract.ref):
        return False
    wanted = _assessment_of(contract)
    return wanted is None or artifact.get("assessmentId", wanted) == wanted


def _assessment_of(contract: Contract) -> str | None:
    """The one assessment that this contract asks for, where a step asks for several."""
    example = contract.example
    if contract.artifact != ASSESSMENT or not isinstance(example, Mapping):
        return None
    named = example.get("assessmentId")
    return named if isinstance(named, str) else None


def _problems(contract: Contract, artifact: Mapping[str, Json]) -> list[str]:
    if not contract.known:
        return []
    return violations(contract.schema, artifact) or _followups(contract, artifact)


def _followups(contract: Contract, artifact: Mapping[str, Json]) -> list[str]:
    levels = _levels(artifact.get("dimensions"))
    named = artifact.get("assessmentId")
    return [
        followup.guidance
        for followup in contract.followups
        if followup.level in levels and followup.assessment in (None, named, _assessment_of(contract))
    ]


def _levels(dimensions: Json) -> set[str]:
    if not isinstance(dimensions, Mapping):
        return set()
    raw = (one.get("level") if isinstance(one, Mapping) else one for one in dimensions.values())
    return {level for level in raw if isinstance(level, str)}


def _missing(contract: Contract, artifacts: Sequence[Mapping[str, Json]]) -> Blocker:
    given = sorted({str(artifact.get("kind", "without a kind")) for artifact in artifacts})
    also = f" Given: {', '.join(given)}." if given else ""
    return Blocker(
        BlockerCode.MISSING_REQUIRED_OUTPUT,
        ContractPointer(contract.ref),
        f"This step needs an artifact of kind “{contract.artifact}”.{also}",
        "Add it to output.artifacts and send the call again with the fresh ackToken.",
        _example(contract),
    )


def _example(contract: Contract) -> Json:
    return {"kind": contract.artifact} if contract.example is None else contract.example


def _invalid(contract: Contract, diagnostics: Sequence[str]) -> Blocker:
    return Blocker(
        BlockerCode.INVALID_REQUIRED_OUTPUT,
        ContractPointer(contract.ref),
        f"The artifact “{contract.artifact}” is not accepted: {'; '.join(diagnostics)}",
        "Correct it in output.artifacts and send the call again with the fresh ackToken.",
        _example(contract),
    )


def _unmet_criteria(step: Step, output: Output, scope: Scope) -> Iterator[Blocker]:
    text = output.text()
    pointer = WorkflowStep(step.id)
    if not text.strip():
        if failures(step.criteria, "", scope):
            yield Blocker(
                BlockerCode.MISSING_REQUIRED_OUTPUT,
                pointer,
                "This step's output is checked, and none was sent.",
                "Put the result into output.notesMarkdown and send the call again with the fresh ackToken.",
            )
        return
    for failure in failures(step.criteria, text, scope):
        yield Blocker(BlockerCode.INVALID_REQUIRED_OUTPUT, pointer, failure.message, failure.fix)
