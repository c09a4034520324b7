"""The one door for writes to variables: plain names, declared types, and whose a value is (rules 19 and 26).

From its showing on, a question owns what it shows, reads or sets. What an agent sends for it changes nothing,
unless the call completes a step that is declared to set it and stands after the question.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from interlock.core.definition.program import AskGate, ConfirmStep, DoStep, Plan, step_key
from interlock.core.definition.prompts import text_of
from interlock.core.definition.workflow import Gate, Step
from interlock.core.run.keys import gate_in, question_path, rounds_in
from interlock.core.run.notices import Notice
from interlock.core.run.state import Owner, RunState
from interlock.core.values import MISSING, Json, Variables, set_names
from interlock.core.variables.roots import asked_by_absence, input_roots, wanted_by_absence
from interlock.core.variables.typed_values import fitting, sound

KEPT = "USER_VALUE_KEPT"
CHANGED = "USER_VALUE_CHANGED"


def unowned(
    plan: Plan,
    state: RunState,
    variables: Variables,
    due: Collection[str] = (),
    again: Collection[str] = (),
) -> tuple[dict[str, Json], list[Notice]]:
    """Separate what an agent may write from what a question owns, and say what was kept.

    `due` is what the question shows that the run has come to; `again` is what the run waits for, and a
    question has asked for in vain.
    """
    taken, notices = sound(plan, variables)
    held = (barred(plan, state) - {*again}) | {*due}
    kept = {name: value for name, value in taken.items() if name in held}
    free = {name: value for name, value in taken.items() if name not in held}
    return free, [*notices, *kept_notices(plan, state, kept)]


def barred(plan: Plan, state: RunState, lacking: Collection[str] = ()) -> set[str]:
    """Name what no agent writes: what questions own, here or in the parent, answers decide and loops set.

    `lacking` is what the waiting question shows and nobody has set, also of a loop's own names (rule 30).
    """
    rounds = rounds_of(plan, state).keys() - lacking
    return {*owners(state), *state.ownership.inherited, *plan.decided_only, *rounds}


def left_unset(plan: Plan, state: RunState, names: Collection[str]) -> frozenset[str]:
    """Return those of the names that questions have asked for by their absence, and no answer has brought."""
    shown = state.ownership.shown.items()
    decided = {name for owner in state.ownership.decided.values() for name in owner.roots}
    others = {*decided, *state.ownership.inherited, *plan.decided_only, *rounds_of(plan, state)}
    asking = {name: [path for path, owner in shown if name in owner.roots] for name in names}
    return frozenset(
        name
        for name, paths in asking.items()
        if name not in state.variables
        and name not in others
        and all(name in asked_by_absence(plan.workflow, path) for path in paths)
    )


def rounds_of(plan: Plan, state: RunState) -> dict[str, str]:
    """The names that the loops around the run set for each round, with the loop (rule 30)."""
    loops = [plan.program(state.activity or "").head(frame.loop).loop for frame in state.visit.frames]
    return {name: loop.id for loop in loops for name in loop.variables()}


def owners(state: RunState) -> dict[str, list[tuple[str, Owner]]]:
    """The questions that own each root, by activity and gate."""
    owned: dict[str, list[tuple[str, Owner]]] = {}
    for path, owner in (*state.ownership.shown.items(), *state.ownership.decided.items()):
        for name in owner.roots:
            owned.setdefault(name, []).append((path, owner))
    return owned


def answered_roots(
    plan: Plan, state: RunState, steps: Iterable[Step], reported: Collection[Json]
) -> frozenset[str]:
    """Name what is set and what the questions of these steps show, where the agent reports their answers."""
    if state.preferences.never_stops:  # there an agent's answer is not the user's
        return frozenset()
    return frozenset(
        name
        for step in steps
        for need in step.user_input
        for name in input_roots(plan.workflow, step, need)
        if step.input_id(need) in reported and name in state.variables
    )


def kept_notices(plan: Plan, state: RunState, sent: Variables) -> Iterator[Notice]:
    """Say which values that were sent have changed nothing, and why."""
    owned = owners(state)
    for name, value in sent.items():
        current = state.variables.get(name, MISSING)
        if current == value or (current is MISSING and value is None):
            continue
        stays = "unset" if current is MISSING else text_of(state.variables[name])
        if name not in owned and (setter := _only_setter(plan, state, name)):
            yield Notice(KEPT, f"'{name}' stays {stays}: {setter}. The value that was sent is ignored.")
            continue
        text = f"'{name}' stays {stays}: {why_owned(state, name)}. The value that was sent is ignored."
        yield Notice(KEPT, text)


def _only_setter(plan: Plan, state: RunState, name: str) -> str:
    """Say what alone sets a variable that belongs to no question here; empty if an agent may."""
    if name in state.ownership.inherited:
        return "the parent passes it on as its user saw or decided it"
    if gate := plan.decided_only.get(name):
        return f"only an answer to checkpoint '{gate}' sets it"
    loop = rounds_of(plan, state).get(name)
    return f"loop '{loop}' sets it for each round" if loop else ""


def why_owned(state: RunState, name: str) -> str:
    """Say which question owns a variable."""
    questions = owners(state).get(name, [])
    for path, owner in questions:
        if _is_open(state, owner):
            return f"checkpoint '{gate_in(path)}' is open and shows it, reads it or sets it"
    for path, owner in reversed(questions):
        if owner is state.ownership.decided.get(path):
            return f"the user has decided it at checkpoint '{gate_in(path)}'"
    for path, owner in reversed(questions):
        if owner.key in state.visit.asked:
            break
        return f"the user was shown it when deciding checkpoint '{gate_in(path)}'"
    return "the user is shown it with the question that waits for an answer"


def may_set(plan: Plan, state: RunState, step: Step, name: str) -> bool:
    """Say whether a step that is completed may set what questions own: each stands before it."""
    questions = owners(state).get(name, [])
    if not step.sets(name) or name in state.ownership.inherited or name in rounds_of(plan, state):
        return False
    if any(_is_open(state, owner) for _, owner in questions):
        return False
    return all(_stands_after(plan, state, step, path, owner) for path, owner in questions)


def _is_open(state: RunState, owner: Owner) -> bool:
    return state.visit.open is not None and state.visit.open.key == owner.key


def _stands_after(plan: Plan, state: RunState, step: Step, path: str, owner: Owner) -> bool:
    """Say whether the step is done later than the question was answered, in its round or after it."""
    if owner.visit != state.visit.number or _in_later_round(state, owner):
        return True
    keys = list(plan.program(state.activity or "").ops)
    at = _op_of(plan, state, gate_in(path))
    return at in keys and keys.index(step_key(step.id)) >= keys.index(at)


def _in_later_round(state: RunState, owner: Owner) -> bool:
    """Say whether a loop around the question has begun another round since."""
    for (loop, number), frame in zip(rounds_in(owner.key), state.visit.frames, strict=False):
        if loop != frame.loop:
            return False
        if number != frame.iteration:
            return True
    return False


def _op_of(plan: Plan, state: RunState, gate_id: str) -> str:
    """The operation that asks a question; that of its step for a user-only dependency."""
    for key, op in plan.program(state.activity or "").ops.items():
        match op:
            case AskGate(gate=gate) | ConfirmStep(gate=gate) if gate.id == gate_id:
                return key
            case DoStep(step=step) if any(step.input_id(need) == gate_id for need in step.user_input):
                return key
    return ""


def brought_with(plan: Plan, state: RunState, gate: Gate, variables: Variables) -> dict[str, Json]:
    """Return the variables whose absence the question asks for, and which come with its answer."""
    wanted = wanted_by_absence(gate.condition) - set_names(state.variables)
    taken = fitting(plan, {name: value for name, value in variables.items() if name in wanted})
    return {name: value for name, value in taken.items() if value is not None}


def restored(state: RunState, gate_id: str, sets: Variables) -> dict[str, Json]:
    """Return what an earlier answer to the gate had set and this one does not, as it was before."""
    earlier = state.ownership.decided.get(question_path(state.activity, gate_id))
    undo = earlier.undo if earlier is not None else {}
    return {name: value for name, value in undo.items() if name not in sets}
