"""Questions as the guard renders them, from its own variables, to compare them with what was recorded."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.core.definition.conditions import Scope, variables_of
from interlock.core.definition.expressions import root, variables_in
from interlock.core.definition.program import AskGate, ConfirmStep, Plan
from interlock.core.definition.prompts import question_text, rendered_option
from interlock.core.definition.workflow import Gate, Step, UserInput
from interlock.core.run.questions import Question
from interlock.core.variables.roots import wanted_by_absence


def gate_question(plan: Plan, scope: Scope, op: AskGate | ConfirmStep) -> Question:
    """Render the question of a gate, or of the confirmation of a step."""
    gate, shown = op.gate, list(op.gate.shown_paths())
    paths = [*shown, *variables_of(gate.condition), *gate.decides]
    if isinstance(op, ConfirmStep) and not isinstance(op.step.confirm, bool):
        paths += variables_of(op.step.confirm)
    unset = {root(path) for path in shown if scope.lacks(path)}
    options = tuple(rendered_option(option, scope) for option in gate.options)
    name, text = question_text(gate.name, scope), question_text(gate.message, scope)
    return Question(gate.id, name, text, options, tuple(_roots(plan, paths) - unset))


def input_question(plan: Plan, scope: Scope, step: Step, need: UserInput, key: str) -> Question:
    """Render what only the user can give to a step, for one instance of it."""
    title, text = question_text(step.title, scope), question_text(need.question, scope)
    paths = (*variables_in(need.question), *variables_of(step.condition))
    roots = _roots(plan, paths) - {root(need.key or "")}
    return Question(step.input_id(need), title, text, need.options, tuple(roots), key)


def lacking(scope: Scope, asked: Gate | UserInput) -> list[str]:
    """What the texts of a question show and nobody has set, but for what its answer brings."""
    if isinstance(asked, Gate):
        paths, brings = tuple(asked.text_paths()), wanted_by_absence(asked.condition)
    else:
        paths, brings = variables_in(asked.question), frozenset([asked.key or ""])
    return [path for path in paths if root(path) not in brings and scope.lacks(path)]


def _roots(plan: Plan, paths: Iterable[str]) -> set[str]:
    """The roots of paths; a mode that supplies one of them by default adds what turns it on."""
    roots = set(map(root, paths))
    for mode in plan.workflow.modes:
        if not roots.isdisjoint(map(root, mode.defaults)):
            roots.add(root(mode.activation_variable))
    return roots
