"""Variables: who may write which, of which type (I4, I9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.core.definition.conditions import holds
from interlock.core.definition.expressions import RESERVED, root
from interlock.core.definition.program import AskGate, ConfirmStep, DoStep, EnterLoop
from interlock.core.definition.workflow import Action, Gate, UserInput
from interlock.core.guard.hearing import I4, I9, Hearing, Verdict
from interlock.core.guard.rendered import lacking
from interlock.core.guard.rounds import extent, own_names
from interlock.core.run import events as e
from interlock.core.values import MISSING, Json, Variables, same
from interlock.core.variables.roots import asked_by_absence
from interlock.core.variables.typed_values import fitting

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "number": (int, float),
    "string": str,
    "array": (list, tuple),
    "object": Mapping,
}


def written(hearing: Hearing, event: e.ContextSet) -> Verdict:
    """Judge variables that came with a call, or with a step that is declared to set them."""
    if event.source == "parent":
        if hearing.audit.variables or hearing.audit.activity is not None:
            yield I4("a parent passes on at the start, and at no other time")
    else:
        yield from inherited(hearing, event.delta)
    if event.by:
        activity = hearing.workflow.activity(hearing.visit.activity)
        step = activity.step(event.by) if activity is not None else None
        if step is None or event.by != hearing.completed or not all(map(step.sets, event.delta)):
            yield I4(f"step '{event.by}' writes what it is not declared to set, or is not completed here")
        yield from _of_rounds(hearing, event.delta, own_names(hearing))
    elif event.source == "reask":
        hearing.reasked = {name for name in event.delta if hearing.audit.owner_of(name) is not None}
    else:
        yield from by_agent(hearing, event.delta)


def inherited(hearing: Hearing, delta: Variables) -> Verdict:
    """What a question of the parent owns stays as the parent has passed it on."""
    for name in hearing.audit.inherited:
        if name in delta and hearing.audit.variables.get(name, MISSING) != delta[name]:
            yield I4(f"'{name}' is written, and a question of the parent owns it")


def passed(hearing: Hearing, event: e.ChildStarted) -> Verdict:
    """A child begins with what is set in its parent, and not with a default."""
    for name, value in event.passed.items():
        if hearing.audit.variables.get(name) != value:
            yield I4(f"'{name}' is passed on to a child, and is not set so")


def by_agent(hearing: Hearing, delta: Variables) -> Verdict:
    """An agent writes nothing that a question owns, or that only answers or the rounds of loops set."""
    yield from _of_rounds(hearing, delta, own_names(hearing) - _waited_for(hearing))
    again = _asked_for_again(hearing)
    for name, value in delta.items():
        if name in again:
            continue
        owner = hearing.audit.owner_of(root(name)) or hearing.plan.decided_only.get(root(name))
        if owner is not None and hearing.audit.variables.get(name, MISSING) != value:
            yield I4(f"'{name}' is written, and question '{owner}' owns it")


def _of_rounds(hearing: Hearing, delta: Variables, names: set[str]) -> Verdict:
    for name in names & delta.keys():
        if hearing.audit.variables.get(name, MISSING) != delta[name]:
            yield I4(f"'{name}' is written, and a loop sets it for each round")


def _waited_for(hearing: Hearing) -> set[str]:
    """What the question or the loop that is due lacks: an agent sends it, also for a loop's own names."""
    asked: Sequence[Gate | UserInput]
    match hearing.due():
        case EnterLoop(loop=loop) if extent(loop, hearing.scope) is None:
            return {root(str(loop.items or loop.count or "items"))}
        case AskGate(gate=gate) | ConfirmStep(gate=gate):
            asked = (gate,)
        case DoStep(step=step):
            asked = step.user_input
        case _:
            asked = [op.gate for key in hearing.visit.passed if (op := hearing.find(key))]
    return {root(path) for source in asked for path in lacking(hearing.scope, source)}


def _asked_for_again(hearing: Hearing) -> set[str]:
    """What the run waits for, and questions have asked for by its absence in vain."""
    audit = hearing.audit
    decided = {name for owner in audit.set_by.values() for name in owner.roots}
    free = _waited_for(hearing) - decided - {*hearing.plan.decided_only}
    return {
        name
        for name in free - audit.variables.keys()
        if all(
            name in asked_by_absence(hearing.plan.workflow, path)
            for path, owner in audit.shown_by.items()
            if name in owner.roots
        )
    }


def actions(hearing: Hearing, actions: tuple[Action, ...], sets: Variables, where: str) -> Verdict:
    """An action sets what it declares, and nothing else."""
    assigned = [action for action in actions if action.assigns]
    if not assigned and not sets:
        return
    declared = {
        action.assigns or "": action.value
        for action in assigned
        if holds(action.condition, hearing.scope, unknown=False)
    }
    if fitting(hearing.plan, declared) != sets:
        yield I4(f"{where} sets something else than its actions")


def typed(hearing: Hearing, written: Variables) -> Verdict:
    """A name is plain and not reserved, and its value has the declared type and is one of those declared."""
    for name, value in written.items():
        kind, legal = hearing.plan.types.get(name, ""), hearing.plan.legal.get(name, (value,))
        is_of_type = isinstance(value, _TYPES.get(kind, object))
        is_of_type &= kind != "number" or not isinstance(value, bool)
        if "." in name or name in RESERVED or not (is_of_type or value is None):
            yield I9(f"'{name}' is not a plain name, or its value has another type than is declared")
        elif value is not None and not any(same(value, other) for other in legal):
            yield I9(f"the value of '{name}' is none of those that are declared")


def written_by(event: e.Event) -> Variables:
    """All variables that an event writes."""
    written: dict[str, Json] = {}
    for field in ("delta", "restores", "sets"):
        written |= getattr(event, field, {})
    return written
