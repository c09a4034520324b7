"""Gates that are passed: by their answer, their false condition, as optional, or by a gap (I1)."""

from __future__ import annotations

from typing import assert_never

from interlock.core.definition.program import AskGate, ConfirmStep
from interlock.core.guard.audit import question_path
from interlock.core.guard.hearing import I1, Hearing, Verdict, confirmed_step
from interlock.core.run import events as e


def passed(hearing: Hearing, event: e.GatePassed) -> Verdict:
    """Each reason to go past a gate is checked for itself."""
    audit, op = hearing.audit, hearing.due()
    is_due = isinstance(op, (AskGate, ConfirmStep)) and event.key == audit.instance(op.gate.id)
    found = op if is_due else hearing.find(event.key) if event.key in (*audit.passed, audit.open) else None
    if not isinstance(found, (AskGate, ConfirmStep)):
        yield I1(f"gate '{event.key}' is passed where '{audit.next}' is due")
        return
    if event.next != (hearing.program.after(found.key) if is_due else audit.next):
        yield I1(f"'{event.next}' does not follow gate '{event.key}'")
    match event.because:
        case "answered":
            if not audit.answers.get(event.key):
                yield I1(f"gate '{event.key}' is passed as answered, and has no answer")
        case "condition":
            if hearing.applies(found.gate, confirmed_step(found)) or audit.open == event.key:
                yield I1(f"gate '{event.key}' is passed by its condition, which holds")
        case "optional":
            if found.gate.required:
                yield I1(f"gate '{event.key}' is required, and is passed as optional")
        case "mode":
            if audit.applied.guided or not isinstance(found, ConfirmStep):
                yield I1(f"gate '{event.key}' is passed by a mode that stops for it")
        case "advisory":
            yield from _waived(hearing, event.key)
        case _:
            assert_never(event.because)


def _waived(hearing: Hearing, key: str) -> Verdict:
    if hearing.audit.applied.enforcement != "advisory":
        yield I1(f"gate '{key}' is passed without an answer under strict enforcement")
    if key in hearing.audit.showings or question_path(hearing.audit, key) in hearing.audit.declined:
        yield I1(f"gate '{key}' is passed, although it was put to the user")
    yield from hearing.needs_gap("gate_passed", key)


def judged_again(hearing: Hearing, *, everywhere: bool) -> Verdict:
    """Hold what a false condition let pass, and what applies when its round or its activity is left."""
    for key in hearing.audit.passed:
        found = hearing.find(key)
        is_here = everywhere or key.rpartition("::")[0] == hearing.audit.round
        if found is None or not is_here or not found.gate.required or key in hearing.audit.waived:
            continue
        unasked = isinstance(found, ConfirmStep) and not hearing.audit.applied.guided
        if (
            not unasked
            and not hearing.audit.answers.get(key)
            and hearing.applies(found.gate, confirmed_step(found))
        ):
            yield I1(f"gate '{key}' applies by now, and is left behind without an answer")
