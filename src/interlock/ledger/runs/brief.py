"""What an agent needs to go on after losing everything: one projection of a run at a node.

Every part has its share of bytes; what does not fit is named, so that nobody takes a part for the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Struct, UnsetType

from interlock.core.definition.program import Plan
from interlock.core.definition.prompts import interpolate, text_of
from interlock.core.definition.workflow import Loop, Workflow, walk
from interlock.core.engine.paths.loops import rounds
from interlock.core.run.state import Replies, RunState
from interlock.core.values import Json, Variables, cut
from interlock.ledger.runs.recap import Recap, recap, session_notes
from interlock.store.protocol import NodeRow, Reader

GOAL_BYTES = 2 * 1024
CONTEXT_BYTES = 4 * 1024
RULES_BYTES = 2 * 1024
DECISIONS_BYTES = 2 * 1024
GAPS_BYTES = 2 * 1024
NOTES_BYTES = 5 * 1024  # one note of the largest size fits
MOST_TOLD = 10  # decisions that the end of a run names
VALUE_BYTES = 400
BY = {
    "agent": "reported by the agent",
    "elicitation": "by a form of the client",
    "server": "taken by the server",
    "time": "taken because nobody decided in time",
    "approvers": "by its approvers",
}


class BriefLine(Struct, frozen=True):
    """A named line of the brief; `value` is that of a variable which is shown whole."""

    name: str
    text: str
    value: Json | UnsetType = UNSET


class Brief(Struct, frozen=True):
    """Goal, context, rules, decisions, open gaps, notes, loops and recap; `omitted` names the rest.

    `notes` are those of the session itself, the recap has those of the run.
    """

    goal: str
    context: tuple[BriefLine, ...]
    rules: tuple[str, ...]
    references: tuple[str, ...]
    decisions: tuple[BriefLine, ...]
    gaps: tuple[BriefLine, ...]
    loops: tuple[str, ...]
    recap: Recap
    notes: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()


def brief(reader: Reader, node: NodeRow, plan: Plan, state: RunState, goal: str, kept: Variables) -> Brief:
    """Return the brief of a run at a node; `kept` is context that waits there. Only notes are read."""
    workflow, scope, known = plan.workflow, plan.scope(state.variables), {**state.variables, **kept}
    items = (item for activity in workflow.activities for item in walk(activity.items))
    counters = {name for item in items if isinstance(item, Loop) for name in item.variables()}
    context = [_variable(name, value) for name, value in known.items() if name not in counters]
    numbered = enumerate(workflow.rules, 1)
    rules = [BriefLine(f"{number}", interpolate(rule, scope)) for number, rule in numbered]
    decisions = [_decision(workflow, state.replies, gate) for gate in state.replies.chosen][::-1]
    gaps = [
        BriefLine(f"gap {gap.number}", f"{gap.summary} ({gap.severity})")
        for gap in reversed(state.gaps.newest)
        if not gap.resolved and gap.severity != "info"
    ]
    noted = enumerate(session_notes(reader, node.session_id), 1)
    notes = [BriefLine(f"note {number}", text) for number, text in noted][::-1]
    omitted = ["the end of the goal"] if len(goal.encode()) > GOAL_BYTES else []
    return Brief(
        # The title is the name of the workflow where nobody has named a goal (rule 42).
        goal="" if goal == workflow.name else cut(goal, GOAL_BYTES, "…"),
        context=_within(CONTEXT_BYTES, context, "context values", omitted),
        rules=tuple(line.text for line in _within(RULES_BYTES, rules, "standing rules", omitted)),
        references=tuple(str(told.get("title") or told.get("id")) for told in workflow.references),
        decisions=_within(DECISIONS_BYTES, decisions, "earlier decisions", omitted)[::-1],
        gaps=_within(GAPS_BYTES, gaps, "earlier gaps", omitted)[::-1],
        loops=tuple(rounds(plan, state)),
        recap=recap(reader, node),
        notes=tuple(
            line.text for line in _within(NOTES_BYTES, notes, "earlier notes of the session", omitted)[::-1]
        ),
        omitted=tuple(omitted),
    )


def outcome_text(workflow: Workflow, state: RunState, session_id: str) -> str:
    """Say what a run that has ended came to: who decided what, what was checked, where the record is."""
    decided = [_decision(workflow, state.replies, gate) for gate in state.replies.chosen][-MOST_TOLD:]
    checked = [f"{name} {'passed' if last.passed else 'failed'}" for name, last in state.checks.items()]
    lines = [
        f"Decided: {'; '.join(f'{line.name}: {line.text}' for line in decided)}." if decided else "",
        f"Checks: {', '.join(checked)}." if checked else "",
        f"The record: interlock log {session_id}.",
    ]
    return " ".join(line for line in lines if line)


def _within(budget: int, lines: Sequence[BriefLine], what: str, omitted: list[str]) -> tuple[BriefLine, ...]:
    """Keep the lines that fit, and name those that do not."""
    kept: list[BriefLine] = []
    for line in lines:
        size = len(f"{line.name}: {line.text}".encode())
        if size > budget:
            break
        budget -= size
        kept.append(line)
    if left_out := [line.name for line in lines[len(kept) :]]:
        omitted.append(f"{len(left_out)} {what}: {cut(', '.join(left_out), VALUE_BYTES, '…')}")
    return tuple(kept)


def _variable(name: str, value: Json) -> BriefLine:
    shown = cut(whole := text_of(value), VALUE_BYTES, "…")
    return BriefLine(name, shown, value if shown == whole else UNSET)


def _decision(workflow: Workflow, replies: Replies, gate_id: str) -> BriefLine:
    """Return a decision in a line: the option that was chosen, by whom, and what the user said with it."""
    chosen, note = replies.chosen[gate_id], replies.note_on(gate_id)
    gates = (gate for activity in workflow.activities for gate in activity.gates())
    options = [gate.option(chosen.option) for gate in gates if gate.id == gate_id]
    label = next((f"{option.id} ({option.label})" for option in options if option is not None), chosen.option)
    said = f"; note: {cut(note, VALUE_BYTES, '…')}" if note else ""
    return BriefLine(gate_id, f"{label or 'dismissed'}, {BY.get(chosen.channel, 'by the user')}{said}")
