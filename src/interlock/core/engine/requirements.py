"""What keeps a step from being done: unmet contracts and criteria, unproven capabilities, missing input.

One model of reasons serves all modes: what blocks a guided run is a recorded gap in never-stop mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from msgspec import Struct

from interlock.core.definition.conditions import Scope
from interlock.core.definition.criteria import failed_checks
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Capability, Contract, Step, UserInput
from interlock.core.engine.decisions import DECISION, counts, reported
from interlock.core.json_schema import violations
from interlock.core.run import events as e
from interlock.core.run.commands import Decision, Terms
from interlock.core.run.output import Output
from interlock.core.run.reasons import (
    Blocker,
    BlockerCode,
    CapabilityPointer,
    ContextKey,
    ContractPointer,
    Severity,
    WorkflowStep,
    as_gap,
    downgraded,
    ordered,
)
from interlock.core.run.state import CapabilityStatus, RunState
from interlock.core.values import Json

ASSESSMENT = "wr.assessment"
OBSERVATION = ("wr.capability_observation", "capability_observation", "wr.contracts.capability_observation")
STRONG = ("probe_step", "attempted_use")
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
STATUSES: tuple[CapabilityStatus, ...] = get_args(CapabilityStatus)


class Verdict(Struct, frozen=True):
    """Reasons that stop the step, and reasons that are only disclosed."""

    stopping: tuple[Blocker, ...] = ()
    gaps: tuple[e.GapRecorded, ...] = ()


def examine(
    plan: Plan,
    state: RunState,
    step: Step,
    key: str,
    output: Output,
    terms: Terms,
    decisions: Mapping[str, Decision] = {},
) -> Verdict:
    """Check the step against all its requirements, under the run's mode and risk policy."""
    stopping: list[Blocker] = []
    gaps: list[e.GapRecorded] = []
    for blocker in (*unmet(step, output, plan.scope(state.variables)), *_unproven(step, output)):
        if state.preferences.never_stops:
            gaps.append(_gap(blocker, key, "critical"))
        elif downgraded(blocker, state.preferences):
            gaps.append(_gap(blocker, key, "warning"))
        else:
            stopping.append(blocker)
    for need in step.user_input:
        if _is_given(state, step, need, output, terms, decisions):
            continue
        blocker = _dependency(step, need, terms)
        if state.preferences.never_stops:
            gaps.append(_gap(blocker, key, "critical", need.reason))
        elif not state.preferences.guided and need.is_assumable:
            gaps.append(_gap(blocker, key, "info", need.reason))
        else:
            stopping.append(blocker)
    return Verdict(ordered(stopping), tuple(gaps))


def _gap(blocker: Blocker, key: str, severity: Severity, detail: str = "") -> e.GapRecorded:
    gap = as_gap(blocker, severity, detail)
    return e.GapRecorded(gap.severity, gap.category, gap.detail, gap.summary, key)


def unmet(step: Step, output: Output, scope: Scope) -> Iterator[Blocker]:
    """Name every contract and criterion of the step that the output does not meet (rule 31)."""
    for contract in step.contracts:
        candidates = [artifact for artifact in output.artifacts if _belongs(artifact, contract)]
        errors = [_errors(contract, artifact) for artifact in candidates]
        if not candidates and contract.required:
            kinds = sorted({str(artifact.get("kind", "without a kind")) for artifact in output.artifacts})
            also = f" Given: {', '.join(kinds)}." if kinds else ""
            text = f"This step needs an artifact of kind '{contract.artifact}'.{also}"
            yield _of_contract(BlockerCode.MISSING_REQUIRED_OUTPUT, contract, text)
        elif candidates and all(errors):
            text = f"The artifact '{contract.artifact}' is not accepted: {'; '.join(errors[-1])}"
            yield _of_contract(BlockerCode.INVALID_REQUIRED_OUTPUT, contract, text)
    if step.criteria is not None:
        yield from _unmet_criteria(step, output.text(), scope)


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


def _errors(contract: Contract, artifact: Mapping[str, Json]) -> list[str]:
    """Name the violations of the schema, else the guidance that the levels of an assessment call for."""
    if not contract.known:
        return []
    if errors := violations(contract.schema, artifact):
        return errors
    dimensions = artifact.get("dimensions")
    values = dimensions.values() if isinstance(dimensions, Mapping) else ()
    levels = [value.get("level") if isinstance(value, Mapping) else value for value in values]
    named = (None, artifact.get("assessmentId"), _assessment_of(contract))
    return [
        followup.guidance
        for followup in contract.followups
        if followup.level in levels and followup.assessment in named
    ]


def _of_contract(code: BlockerCode, contract: Contract, message: str) -> Blocker:
    example = {"kind": contract.artifact} if contract.example is None else contract.example
    return Blocker(code, ContractPointer(contract.ref), message, example=example)


def _unmet_criteria(step: Step, text: str, scope: Scope) -> Iterator[Blocker]:
    failed = failed_checks(step.criteria, text if text.strip() else "", scope)
    pointer = WorkflowStep(step.id)
    if failed and not text.strip():
        message = "This step's output is checked, and none was sent."
        yield Blocker(BlockerCode.MISSING_REQUIRED_OUTPUT, pointer, message)
    elif text.strip():
        for failure in failed:
            yield Blocker(BlockerCode.INVALID_REQUIRED_OUTPUT, pointer, failure.message, failure.requirement)


def observations(output: Output) -> Iterator[e.CapabilityObserved]:
    """Read the capability observations among the artifacts; a contract reports malformed ones."""
    for artifact in output.of_kind(*OBSERVATION):
        capability, status = artifact.get("capability"), artifact.get("status")
        provenance = artifact.get("provenance")
        if capability not in CAPABILITIES or status not in STATUSES:
            continue
        origin: Mapping[str, Json] = (
            provenance if isinstance(provenance, Mapping) else {"kind": "manual_claim"}
        )
        yield e.CapabilityObserved(capability, status, origin.get("kind") in STRONG, origin)


def _unproven(step: Step, output: Output) -> Iterator[Blocker]:
    """Name what keeps a probe step from unlocking its capability: only strong provenance does."""
    seen = [event for event in observations(output) if event.capability == step.probes]
    if step.probes is None or not seen:
        return
    pointer = CapabilityPointer(step.probes)
    strong = [event for event in seen if event.strong]
    if not strong or strong[-1].status == "unknown":
        message = f"This workflow requires {step.probes}, and a claim alone does not show that it works."
        example: Json = {
            "kind": OBSERVATION[0],
            "capability": step.probes,
            "status": "available",
            "provenance": {"kind": "attempted_use", "attemptContext": "workflow_step", "result": "success"},
        }
        yield Blocker(BlockerCode.REQUIRED_CAPABILITY_UNKNOWN, pointer, message, example=example)
    elif strong[-1].status == "unavailable":
        message = f"This workflow requires {step.probes}, and the probe found it unavailable."
        yield Blocker(BlockerCode.REQUIRED_CAPABILITY_UNAVAILABLE, pointer, message)


def _is_given(
    state: RunState,
    step: Step,
    need: UserInput,
    output: Output,
    terms: Terms,
    decisions: Mapping[str, Decision],
) -> bool:
    """Say whether a user-only dependency is met, by its context key or a decision that counts (rule 28)."""
    name = input_id(step, need)
    if name in decisions:
        return True
    in_context = need.key is not None and state.variables.get(need.key) is not None
    decision = reported(output, "", name, *filter(None, [need.key]))
    by_agent = in_context or decision is not None
    return by_agent and counts(decision or Decision("", "agent"), terms, state.preferences)


def input_id(step: Step, need: UserInput) -> str:
    """The name under which the user's answer to a dependency is recorded."""
    return need.key or f"{step.id}:{need.reason}"


def _dependency(step: Step, need: UserInput, terms: Terms) -> Blocker:
    pointer = ContextKey(need.key) if need.key else WorkflowStep(step.id)
    example: Json = {"kind": DECISION, "checkpointId": input_id(step, need), "optionId": "done"}
    if terms.decisions == "user":
        example = None
    elif need.key:
        example = {need.key: "…"}
    return Blocker(BlockerCode.USER_ONLY_DEPENDENCY, pointer, need.question, example=example)
