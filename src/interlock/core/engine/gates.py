"""Gates: finding them, when they apply, and what exactly was asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.conditions import holds, is_known_false, variables_of
from interlock.core.definition.program import ENTRANCE, AskGate, ConfirmStep, EnterLoop, Plan, RepeatLoop
from interlock.core.definition.prompts import interpolate, rendered_option, variables_in
from interlock.core.definition.workflow import Gate, Loop, Option, Step, Workflow, walk
from interlock.core.hashing import digest_of
from interlock.core.run import events as e
from interlock.core.run.state import RunState, instance
from interlock.core.values import Json


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
    path = key.rpartition("::")[0]
    if not path:
        return {}
    number = int(path.rpartition("@")[2])
    frames = state.frames[path.count("/") :]
    items = frames[0].items if frames and frames[0].iteration == number else ()
    return {"iteration": number + 1, **({"item": items[number]} if number < len(items) else {})}


def gate_ids(plan: Plan, state: RunState) -> tuple[str, ...]:
    """Name the gates of the current activity, for error messages."""
    if state.activity is None:
        return ()
    ops = plan.program(state.activity).ops.values()
    return tuple(op.gate.id for op in ops if isinstance(op, (AskGate, ConfirmStep)))


def pending_gates(plan: Plan, state: RunState) -> tuple[Gate, ...]:
    """The required gates of the activity that have no answer yet: what `gated` calls pending."""
    if state.activity is None or state.exit_to is not None or state.finished:
        return ()
    asked = [op for op in plan.program(state.activity).ops.values() if isinstance(op, (AskGate, ConfirmStep))]
    guided = state.preferences.guided
    return tuple(
        op.gate
        for op in asked
        if not is_answered(plan, state, op.gate)
        and (
            op.gate.required
            if isinstance(op, AskGate)
            else guided and needs_confirmation(plan, state, op.step)
        )
    )


def is_answered(plan: Plan, state: RunState, gate: Gate) -> bool:
    """Say whether the gate has an answer; a dismissal lasts only while the condition stays false."""
    answer = state.answers.get(instance(state, gate.id), state.answers.get(gate.id))
    if answer is None:
        return False
    dismissed = answer == "" and gate.condition is not None
    return not (dismissed and holds(gate.condition, plan.scope(state.variables)))


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


def answerable_early(plan: Plan, state: RunState) -> tuple[FoundGate, ...]:
    """Return the gates that may be answered before they are reached: optional or unbound ones (rule 23)."""
    if state.activity is None or state.open is not None or state.exit_to is not None:
        return ()
    scope, found = plan.scope(state.variables), list[FoundGate]()
    for op in plan.program(state.activity).ops.values():
        if not isinstance(op, AskGate) or (op.gate.required and op.gate.bound_to is not None):
            continue
        gate = FoundGate(op.gate, op.key)
        loops = loops_around(plan, state, gate)
        here = replace(state, frames=state.frames[: len(loops)])
        is_here = [frame.loop for frame in here.frames] == loops
        if is_here and holds(op.gate.condition, scope) and not is_answered(plan, here, op.gate):
            found.append(gate)
    return tuple(found)


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
    changed, texts = set[str](), list[str]()
    for item in walk(activity.items):
        match item:
            case Step():
                changed.update(action.target for action in item.actions if action.target)
                texts += [item.description or "", *(fragment.text for fragment in item.prompt)]
            case Gate():
                changed.update(name for option in item.options for name in option.effect.set_variables)
            case Loop():
                changed.update(item.variables())
    changed.update(re.findall(r"[\w-]+", " ".join(texts)))
    return tuple(
        gate
        for gate in closed
        if changed.isdisjoint(path.partition(".")[0] for path in variables_of(gate.condition))
    )


def entrance_gate(workflow: Workflow) -> Gate:
    """The first gate of a workflow of independent activities: which one to enter (rule 35)."""
    return Gate(
        id=ENTRANCE,
        name="Choose an activity",
        message=f"'{workflow.name}' has independent activities. Which one fits the goal?",
        options=tuple(
            Option(activity.id, activity.name, activity.problem or activity.description)
            for activity in workflow.activities
        ),
    )


class Question(Struct, frozen=True):
    """What the user is asked, as it is shown: text and options with their effects (rule 26).

    `roots` are the variables that it reads or sets; without options the answer is free text.
    """

    id: str
    name: str
    text: str
    options: tuple[Option, ...] = ()
    roots: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """What a decision is bound to: a question that would be shown differently is another one."""
        return digest_of(msgspec.json.encode([self.id, self.name, self.text, self.options]))

    def option(self, option_id: str) -> Option | None:
        return next((option for option in self.options if option.id == option_id), None)


def question_of(plan: Plan, state: RunState, gate: Gate, confirms: Step | None = None) -> Question:
    """Render a gate's question with the variables in force."""
    scope = plan.scope(state.variables)
    options = tuple(rendered_option(option, scope) for option in gate.options)
    text = interpolate(gate.message, scope)
    return Question(gate.id, interpolate(gate.name, scope), text, options, _roots(plan, gate, confirms))


def question_shown(
    plan: Plan,
    state: RunState,
    gate: Gate,
    key: str,
    now: int,
    surface: str,
    *,
    confirms: Step | None = None,
    agent: str = "",
) -> e.QuestionShown:
    """Return the event of putting a gate's question; the same words keep the time they were first put."""
    question, opened = question_of(plan, state, gate, confirms), state.open
    if opened is not None and (opened.key, opened.shown) == (key, question.digest):
        now = opened.opened_at
    return e.QuestionShown(
        key, gate.id, now, question.digest, question.text, question.roots, surface=surface, agent=agent
    )


def _roots(plan: Plan, gate: Gate, confirms: Step | None) -> tuple[str, ...]:
    """Name the roots that a gate's question reads, and those that its options set."""
    paths = [*_paths(gate), *variables_of(gate.condition)]
    if confirms is not None and not isinstance(confirms.confirm, bool):
        paths += variables_of(confirms.confirm)
    return with_modes(plan, roots_of(paths))


def with_modes(plan: Plan, roots: tuple[str, ...]) -> tuple[str, ...]:
    """Add the variables that turn on modes which supply one of these roots."""
    modes = plan.workflow.modes
    switches = [mode.activation_variable for mode in modes if not mode.defaults.keys().isdisjoint(roots)]
    return tuple(dict.fromkeys((*roots, *roots_of(switches))))


def roots_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Name the roots of paths, each once: the root of `a.b` is `a`."""
    return tuple(dict.fromkeys(path.partition(".")[0] for path in paths))


def _paths(gate: Gate) -> Iterator[str]:
    yield from variables_in(gate.name)
    yield from variables_in(gate.message)
    for option in gate.options:
        for text in (option.label, option.description, *option.effect.set_variables.values()):
            yield from variables_in(text) if isinstance(text, str) else ()
        yield from option.effect.set_variables
