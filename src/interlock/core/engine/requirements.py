"""What keeps a step from being done: missing input, unmet contracts, unproven capabilities.

One reason model serves all modes: what blocks a guided run is a recorded gap in never-stop mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Step, UserInput
from interlock.core.engine import capabilities, contracts
from interlock.core.engine.decisions import DECISION, counts, reported
from interlock.core.run import events as e
from interlock.core.run.commands import Decision, Terms
from interlock.core.run.output import Output
from interlock.core.run.reasons import (
    Blocker,
    BlockerCode,
    ContextKey,
    Severity,
    WorkflowStep,
    as_gap,
    downgraded,
    ordered,
)
from interlock.core.run.state import RunState


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
    """Weigh everything against the step under the mode and risk policy that hold here."""
    stopping: list[Blocker] = []
    gaps: list[e.GapRecorded] = []
    for blocker in _reasons(plan, state, step, output):
        if state.preferences.never_stops:
            gaps.append(_gap(blocker, key, "critical"))
        elif downgraded(blocker, state.preferences):
            gaps.append(_gap(blocker, key, "warning"))
        else:
            stopping.append(blocker)
    for need in step.user_input:
        _weigh_input(state, step, need, output, terms, decisions, key, stopping, gaps)
    return Verdict(ordered(stopping), tuple(gaps))


def _reasons(plan: Plan, state: RunState, step: Step, output: Output) -> Iterator[Blocker]:
    yield from contracts.unmet(step, output, plan.scope(state.variables))
    yield from capabilities.missing(step, output)


def _gap(blocker: Blocker, key: str, severity: Severity, detail: str = "") -> e.GapRecorded:
    gap = as_gap(blocker, severity, detail)
    return e.GapRecorded(gap.severity, gap.category, gap.detail, gap.summary, key)


def _weigh_input(
    state: RunState,
    step: Step,
    need: UserInput,
    output: Output,
    terms: Terms,
    decisions: Mapping[str, Decision],
    key: str,
    stopping: list[Blocker],
    gaps: list[e.GapRecorded],
) -> None:
    """A user-only dependency (rule 28): satisfied by its context key or by a decision that counts."""
    if _given(state, step, need, output, terms, decisions):
        return
    blocker = _dependency(step, need, terms)
    if state.preferences.never_stops:
        gaps.append(_gap(blocker, key, "critical", need.reason))
    elif _assumable(state, need):
        gaps.append(_gap(blocker, key, "info", need.reason))
    else:
        stopping.append(blocker)


def _assumable(state: RunState, need: UserInput) -> bool:
    """A choice that the author did not mark as non-assumable may be assumed outside guided mode."""
    return not state.preferences.guided and need.reason == "needs_user_choice" and need.non_assumable is None


def _given(
    state: RunState,
    step: Step,
    need: UserInput,
    output: Output,
    terms: Terms,
    decisions: Mapping[str, Decision],
) -> bool:
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
    if terms.decisions == "user":
        fix = "Tell the user to open the inbox (interlock inbox). Then call again with the fresh ackToken."
        return Blocker(BlockerCode.USER_ONLY_DEPENDENCY, pointer, need.question, fix)
    if need.key:
        fix = f"Ask the user, then send the answer in context as “{need.key}”."
        return Blocker(BlockerCode.USER_ONLY_DEPENDENCY, pointer, need.question, fix, {need.key: "…"})
    example = {"kind": DECISION, "checkpointId": input_id(step, need), "optionId": "done"}
    fix = "Ask the user, then report the decision as this artifact in output.artifacts."
    return Blocker(BlockerCode.USER_ONLY_DEPENDENCY, pointer, need.question, fix, example)
