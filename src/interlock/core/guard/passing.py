"""Gates that are passed: by their answer, their false condition, as optional, or by a gap (I1)."""

from __future__ import annotations

from typing import assert_never

from interlock.core.definition.program import ConfirmStep
from interlock.core.guard.hearing import I1, Hearing, Verdict
from interlock.core.run import events as e
from interlock.core.run.keys import question_path, rounds_in


def passed(hearing: Hearing, event: e.GatePassed) -> Verdict:
    """Each reason to go past a gate is checked for itself."""
    visit, terms, key = hearing.visit, hearing.terms, event.key
    op = hearing.gate_at(key, (*visit.passed, visit.open)) if visit.activity is not None else None
    if op is None:
        yield I1(f"gate '{key}' is passed where '{visit.next}' is due")
        return
    is_due = op is hearing.due() and key == hearing.audit.instance(op.gate.id)
    if event.next != (hearing.program.after(op.key) if is_due else visit.next):
        yield I1(f"'{event.next}' does not follow gate '{key}'")
    match event.because:
        case "answered":
            if not visit.answers.get(key):
                yield I1(f"gate '{key}' is passed as answered, and has no answer")
        case "condition":
            if hearing.applies(op) or visit.open == key:
                yield I1(f"gate '{key}' is passed by its condition, which holds")
        case "optional":
            if op.gate.required:
                yield I1(f"gate '{key}' is required, and is passed as optional")
        case "mode":
            if terms.guided or not isinstance(op, ConfirmStep):
                yield I1(f"gate '{key}' is passed by a mode that stops for it")
        case "advisory":
            if terms.enforcement != "advisory":
                yield I1(f"gate '{key}' is passed without an answer under strict enforcement")
            if key in visit.showings or question_path(visit.activity, key) in hearing.audit.declined:
                yield I1(f"gate '{key}' is passed, although it was put to the user")
            yield from hearing.needs_gap("gate_passed", key)
        case _:
            assert_never(event.because)


def judged_again(hearing: Hearing, *, everywhere: bool) -> Verdict:
    """Hold what a false condition let pass, and what applies when its round or its activity is left."""
    visit = hearing.visit
    for key in visit.passed:
        op = hearing.find(key)
        is_here = everywhere or rounds_in(key) == visit.around
        is_settled = key in visit.waived or visit.answers.get(key)
        if op is None or not op.gate.required or not is_here or is_settled:
            continue
        is_unasked = isinstance(op, ConfirmStep) and not hearing.terms.guided
        if not is_unasked and hearing.applies(op):
            yield I1(f"gate '{key}' applies by now, and is left behind without an answer")
