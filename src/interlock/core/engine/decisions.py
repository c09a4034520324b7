"""Decisions: whose answer counts (rule 27), and the record that an answer leaves (rule 26)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlock.core.definition.workflow import Gate
from interlock.core.engine.gates import shown
from interlock.core.run import events as e
from interlock.core.run.commands import Decision, Terms
from interlock.core.run.outcomes import NeedAnswer
from interlock.core.run.output import Output
from interlock.core.run.preferences import Preferences
from interlock.core.run.reasons import Blocker, BlockerCode, ContractPointer, Severity
from interlock.core.run.state import RunState
from interlock.core.values import Json

DECISION = "wr.decision"
DECISION_REF = "wr.contracts.decision"
BY_THE_USER = ("elicitation", "console", "cli")


def counts(decision: Decision, terms: Terms, preferences: Preferences) -> bool:
    """Say whether this channel may answer; the mode outranks the policy."""
    return preferences.never_stops or terms.decisions != "user" or decision.channel in BY_THE_USER


def reported(output: Output, client: str, *gate_ids: str) -> Decision | None:
    """The agent's report of a decision, as an artifact of contract `wr.contracts.decision`."""
    for artifact in output.of_kind(DECISION, DECISION_REF):
        option = artifact.get("optionId")
        if artifact.get("checkpointId") in gate_ids and isinstance(option, str):
            return Decision(option, "agent", client, str(artifact.get("note") or ""))
    return None


def resolved(
    gate: Gate,
    key: str,
    decision: Decision | None,
    now: int,
    *,
    how: e.Resolved = "chosen",
    agent: str = "",
    again: str | None = None,
    resumable: bool = False,
) -> e.GateResolved:
    """The record of a decision, with the effects of the chosen option."""
    option = gate.option(decision.option) if decision else None
    effect = option.effect if option else None
    return e.GateResolved(
        key=key,
        gate=gate.id,
        how=how,
        at=now,
        channel=decision.channel if decision else "server",
        shown=shown(gate),
        question=gate.message,
        options=tuple(listed.id for listed in gate.options),
        option=option.id if option else None,
        client=decision.client if decision else "",
        note=decision.note if decision else "",
        agent=agent,
        next=again,
        sets=effect.set_variables if effect else {},
        transition_to=effect.transition_to if effect else None,
        skip_activities=effect.skip_activities if effect else (),
        resumable=resumable,
    )


def undecided_gap(state: RunState, need: NeedAnswer, decision: Decision) -> Iterator[e.GapRecorded]:
    """Record a gap where never-stop mode decides without the user (rule 27)."""
    if not state.preferences.never_stops or decision.channel in BY_THE_USER:
        return
    severity: Severity = "info" if need.confirms else "critical"
    text = f"'{need.gate.message}' was decided without the user: {decision.option}."
    yield e.GapRecorded(severity, "user_only_dependency", "needs_user_choice", text, need.key)


def example_decision(gate: Gate) -> Mapping[str, Json]:
    """The payload that would answer the gate."""
    choice = " | ".join(option.id for option in gate.options)
    return {"kind": DECISION, "checkpointId": gate.id, "optionId": choice}


def decision_missing(gate: Gate, terms: Terms) -> Blocker:
    """Block an acknowledgement that needs the user's decision and has none."""
    if terms.decisions == "user":
        text = f"'{gate.name}' waits for the user's own decision: {gate.message}"
        return Blocker(BlockerCode.USER_ONLY_DEPENDENCY, ContractPointer(DECISION_REF), text)
    return Blocker(
        BlockerCode.USER_ONLY_DEPENDENCY,
        ContractPointer(DECISION_REF),
        f"'{gate.name}' needs the user's decision: {gate.message}",
        example=example_decision(gate),
    )


def unknown_option(gate: Gate, option: str) -> Blocker:
    """Block an acknowledgement whose decision names an option that the gate does not have."""
    valid = ", ".join(listed.id for listed in gate.options)
    return Blocker(
        BlockerCode.INVALID_REQUIRED_OUTPUT,
        ContractPointer(DECISION_REF),
        f"'{option}' is not an option of '{gate.name}'. Valid options: {valid}.",
        example=example_decision(gate),
    )
