"""Gates: finding them, when they apply, and what exactly was asked."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from interlock.core.definition.conditions import holds, is_known_false, variables_of
from interlock.core.definition.program import (
    AskGate,
    ConfirmStep,
    DoStep,
    EnterLoop,
    Plan,
    RepeatLoop,
    entrance_gate,
)
from interlock.core.definition.prompts import question_text, rendered_option, text_of
from interlock.core.definition.quoting import quoted
from interlock.core.definition.workflow import Gate, Loop, Step, walk
from interlock.core.run import events as e
from interlock.core.run.keys import item_of, rounds_in
from interlock.core.run.outcomes import NeedAnswer
from interlock.core.run.questions import Question
from interlock.core.run.state import RunState, instance
from interlock.core.values import Json
from interlock.core.variables.roots import gate_roots, unset_in_question

MOST_OF_ITEM = 100


class FoundGate(Struct, frozen=True):
    """A gate of the current activity, the key of its operation, and the step it confirms, if any."""

    gate: Gate
    key: str
    confirms: Step | None = None


def find_gate(plan: Plan, state: RunState, gate_id: str) -> FoundGate | None:
    """Find a gate of the current activity by id; checkpoints before confirmations."""
    if state.activity is None:
        gate = entrance_gate(plan.workflow)
        return FoundGate(gate, "") if gate.id == gate_id else None
    ops = plan.program(state.activity).ops.values()
    for op in ops:
        if isinstance(op, AskGate) and op.gate.id == gate_id:
            return FoundGate(op.gate, op.key)
    for op in ops:
        if isinstance(op, ConfirmStep) and gate_id in (op.gate.id, op.step.id):
            return FoundGate(op.gate, op.key, op.step)
    return None


def found_at(plan: Plan, state: RunState, key: str) -> FoundGate:
    """Return the gate of the current activity that an instance key names."""
    found = find_gate(plan, state, item_of(key))
    assert found is not None, f"the pinned activity has no gate {key!r}"
    return found


def loops_around(plan: Plan, state: RunState, found: FoundGate) -> list[str]:
    """Name the loops that a gate of the current activity is inside of, the outer ones first."""
    loops: list[str] = []
    for op in plan.program(state.activity or "").ops.values():
        if op.key == found.key:
            break
        if isinstance(op, EnterLoop):
            loops.append(op.loop.id)
        elif isinstance(op, RepeatLoop):
            loops.pop()
    return loops


def round_of(state: RunState, key: str) -> dict[str, Json]:
    """Name the round of the innermost loop that an instance of a gate belongs to, and its item (rule 16)."""
    rounds = rounds_in(key)
    if not rounds:
        return {}
    _, number = rounds[-1]
    frames = state.visit.frames[len(rounds) - 1 :]
    items = frames[0].items if frames and frames[0].iteration == number else ()
    return {"iteration": number + 1, **({"item": items[number]} if number < len(items) else {})}


def rounds_text(state: RunState, key: str) -> str:
    """Say for people which rounds an instance belongs to, of the outer loops first, with their items."""
    named: list[str] = []
    for (_, number), frame in zip(rounds_in(key), state.visit.frames, strict=False):
        total = f" of {frame.total}" if frame.total is not None else ""
        item = f": {quoted(text_of(frame.items[number]), MOST_OF_ITEM)}" if number < len(frame.items) else ""
        named.append(f"round {number + 1}{total}{item}")
    return ", ".join(named)


def gate_ids(plan: Plan, state: RunState) -> tuple[str, ...]:
    """Name the gates of the current activity, for error messages."""
    if state.activity is None:
        return ()
    ops = plan.program(state.activity).ops.values()
    return tuple(op.gate.id for op in ops if isinstance(op, (AskGate, ConfirmStep)))


def pending_gates(plan: Plan, state: RunState) -> tuple[Gate, ...]:
    """The required gates that the visit has yet to answer, in order of place: what `gated` calls pending.

    One that a false condition let pass stays among them, and can be dismissed. One that is answered in its
    round comes last if a counted loop has rounds left.
    """
    if state.activity is None or state.visit.exit_to is not None or state.finished:
        return ()
    ops = plan.program(state.activity).ops
    ahead = state.visit.next_key == ""
    loops: list[EnterLoop] = []
    pending: list[Gate] = []
    later: list[Gate] = []
    for op in ops.values():
        ahead = ahead or op.key == state.visit.next_key
        match op:
            case EnterLoop():
                loops.append(op)
            case RepeatLoop():
                loops.pop()
            case AskGate() | ConfirmStep():
                if not _is_asked(plan, state, op):
                    continue
                if _is_pending(plan, state, op.gate, loops, ahead=ahead):
                    pending.append(op.gate)
                elif any(
                    frame.iteration + 1 < (frame.total or 0) for frame in state.visit.frames[: len(loops)]
                ):
                    later.append(op.gate)
            case DoStep():
                continue
    return (*pending, *later)


def _is_asked(plan: Plan, state: RunState, op: AskGate | ConfirmStep) -> bool:
    """Say whether the run holds at the gate in this mode."""
    if isinstance(op, AskGate):
        return op.gate.required
    return state.preferences.guided and needs_confirmation(plan, state, op.step)


def _is_pending(plan: Plan, state: RunState, gate: Gate, loops: Sequence[EnterLoop], *, ahead: bool) -> bool:
    inside = state.visit.frames[: len(loops)]
    if [frame.loop for frame in inside] != [loop.loop.id for loop in loops]:
        return ahead  # its loop has yet to begin, or is over
    key = instance(state.within(frames=inside), gate.id)
    is_settled = key in state.visit.waived or is_answered(plan, state, gate, key)
    return not is_settled and (ahead or key in state.visit.passed)


def is_answered(plan: Plan, state: RunState, gate: Gate, key: str) -> bool:
    """Say whether this instance of the gate has an answer; a dismissal lasts while its condition is false."""
    answer = state.visit.answers.get(key)
    if answer is None:
        return False
    dismissed = answer == "" and gate.condition is not None
    return not (dismissed and holds(gate.condition, plan.scope(state.variables)))


def applies(plan: Plan, state: RunState, found: FoundGate) -> bool:
    """Say whether a gate asks its question as the variables are now."""
    if found.confirms is not None:
        return needs_confirmation(plan, state, found.confirms)
    return holds(found.gate.condition, plan.scope(state.variables))


def needs_confirmation(plan: Plan, state: RunState, step: Step) -> bool:
    """Say whether the step's own rule asks for a confirmation now."""
    if isinstance(step.confirm, bool):
        return step.confirm
    return holds(step.confirm, plan.scope(state.variables))


def auto_advances(gate: Gate) -> bool:
    """Say whether the gate may answer itself after a time (rule 24)."""
    return not gate.blocking and gate.default_option is not None and gate.auto_advance_ms is not None


def is_expired(gate: Gate, opened_at: int, now: int) -> bool:
    """Say whether a gate that does not block has waited long enough: its default is taken (rule 24)."""
    has_default = not gate.blocking and gate.default_option is not None
    return has_default and now - opened_at >= (gate.auto_advance_ms or 0)


def ruled_out(plan: Plan, state: RunState) -> tuple[Gate, ...]:
    """Return the gates that values set in the run rule out, and that nothing in the activity brings back.

    A gate in a loop is judged anew in each round, so it is never among them.
    """
    activity = plan.workflow.activity(state.activity)
    if activity is None:
        return ()
    scope = plan.scope(state.variables)
    gates = [item for item in activity.items if isinstance(item, Gate)]
    closed = [gate for gate in gates if is_known_false(gate.condition, scope)]
    if not closed:
        return ()
    changed = set[str]()
    for item in walk(activity.items):
        match item:
            case Step():
                changed.update(item.inferred)
                changed.update(action.target.partition(".")[0] for action in item.actions if action.target)
            case Gate():
                changed.update(name for option in item.options for name in option.effect.set_variables)
            case Loop():
                changed.update(item.variables())
    return tuple(
        gate
        for gate in closed
        if changed.isdisjoint(path.partition(".")[0] for path in variables_of(gate.condition))
    )


def question_of(plan: Plan, state: RunState, gate: Gate, confirms: Step | None = None) -> Question:
    """Render a gate's question with the variables in force."""
    scope = plan.scope(state.variables)
    options = tuple(rendered_option(option, scope) for option in gate.options)
    text = question_text(gate.message, scope)
    roots = gate_roots(plan, scope, gate, confirms)
    return Question(gate.id, question_text(gate.name, scope), text, options, roots)


def question_shown(
    plan: Plan, state: RunState, need: NeedAnswer, now: int, surface: str, agent: str = ""
) -> e.QuestionShown:
    """Return the event of putting a gate's question; the same words keep the time they were first put."""
    question, opened = question_of(plan, state, need.gate, need.confirms), state.visit.open
    if opened is not None and (opened.key, opened.shown) == (need.key, question.digest):
        now = opened.opened_at
    rule = need.gate.decide
    return e.QuestionShown(
        need.key,
        need.gate.id,
        now,
        question.digest,
        question.text,
        question.roots,
        surface=surface,
        agent=agent,
        unset=unset_in_question(plan.scope(state.variables), need.gate),
        until=now + rule.within_ms if rule is not None and rule.within_ms is not None else 0,
        remind_ms=(rule.remind_ms or 0) if rule is not None else 0,
    )
