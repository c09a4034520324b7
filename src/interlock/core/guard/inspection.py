"""What Interlock promises: nobody goes past a gate without its decision, even if the engine is wrong.

The engine decides a command. Before its events are written, this module judges them with the definition of
the workflow and with what it has learned from earlier events: an exact program counter. Every operation has
its event, so each event must be the one that is due, and a gate is passed only by the answer to its own
instance, by its false condition, as optional, or by a recorded gap that the user's terms allow. The same
judgement is made of a whole log afterwards (`interlock verify`). Each kind of event is judged in a
module of its own: steps, answers, passing (gates), rounds (loops), activities, writing (variables).

I1  Nothing goes past a required gate, confirmation or input without its own answer, a condition that is
    false, a default whose time ran since it was shown, or a gap that mode or enforcement allows.
I2  What was shown is what was decided: an answer is to the question that the variables make, as shown before,
    and shown whole.
I3  The channel is strong enough for the terms, and for the answer that it replaces; never the agent's where
    the user declined or could be asked. A user's answer came with the call, for the very question that it
    answers, and nobody else answers that or asks it again. A gate that names its approvers is decided by as
    many of them as it wants, who agree, and not by who started the run.
I4  What a question owns changes only by its answer, by effects and loops, or by a step declared to set it.
    What a question of the parent owns, no agent of a child changes, nor the names of a loop's round.
I5  A step with a required output is completed with it, or with its gap; one with a check, after that
    has passed for it as it is defined, or with its gap.
I6  Terms only tighten, except by the user.
I7  After the end of a run nothing is recorded but the closing of gaps, the user's only by the user.
I8  A loop whose next round is due is not left.
I9  Whatever is written has a plain name and its declared type.

Nothing of `core.engine` is imported. Both share the definition with the places of its gates
(`definition.program`), conditions (`definition.conditions`), rendering (`definition.prompts`), what a
condition asks for by its absence (`variables.roots`), the list of conversions between types
(`variables.typed_values`), the events, and what approvers have answered (`run.polls`).
Not judged here: the content of an output, what a command of a check really did, and who sat at a user's
channel. A log does not tell what a call brought: that is judged before it is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.definition.program import Plan
from interlock.core.guard import activities, answers, passing, rounds, steps, writing
from interlock.core.guard.audit import Audit, learn
from interlock.core.guard.hearing import I1, I3, I4, I6, I7, Hearing, Verdict, Violation
from interlock.core.run import events as e
from interlock.core.run.channels import is_at_least
from interlock.core.run.commands import Command, StartRun
from interlock.core.run.preferences import (
    AUTONOMY,
    DECISIONS,
    ENFORCEMENT,
    Autonomy,
    DecisionPolicy,
    Enforcement,
)

MOVES = (
    e.StepCompleted,
    e.StepSkipped,
    e.QuestionShown,
    e.GatePassed,
    e.LoopEntered,
    e.LoopIterated,
    e.LoopLeft,
    e.ActivityLeft,
    e.ActivityEntered,
)


def inspect(
    plan: Plan, audit: Audit, events: Sequence[e.Event], command: Command | None = None
) -> Violation | None:
    """Judge the events of one command, in order; return the first violation. A log has no command."""
    verdict = judge(plan, audit, events, command)
    return verdict if isinstance(verdict, Violation) else None


def judge(plan: Plan, audit: Audit, events: Sequence[e.Event], command: Command | None) -> Violation | Audit:
    """Do as `inspect`, and return what the guard has learned from the events if they break nothing."""
    hearing = Hearing(plan, audit, events, command)
    for event in events:
        violation = next(_judged(hearing, event), None)
        if violation is not None:
            return violation
        hearing.audit = learn(hearing.audit, event)
    return I4("a question is not asked again") if hearing.reasked else hearing.audit


def _judged(hearing: Hearing, event: e.Event) -> Verdict:
    """Yield how an event breaks a promise."""
    if hearing.reasked and not (isinstance(event, e.QuestionShown) and hearing.reasked <= {*event.roots}):
        yield I4(f"{', '.join(hearing.reasked)} was changed, and its question is not asked again")
    hearing.reasked = set()
    yield from _runs(hearing, event)
    yield from writing.typed(hearing, writing.written_by(event))
    match event:
        case e.TermsApplied():
            yield from _loosened(hearing, event.decisions, event.enforcement, event.autonomy, "server")
        case e.PreferencesChanged():
            changed = event.policy, event.enforcement, event.effective.autonomy, event.channel
            yield from _loosened(hearing, *changed)
        case e.GapResolved(gap=gap, channel=channel):
            if gap in hearing.audit.users and not is_at_least(channel, "user"):
                yield I7(f"gap {gap} was decided without the user, and is closed by '{channel}'")
        case e.StepCompleted() | e.StepSkipped():
            yield from steps.closed(hearing, event)
        case e.QuestionShown():
            yield from answers.shown(hearing, event)
        case e.GateResolved():
            yield from answers.resolved(hearing, event)
        case e.ApprovalGiven():
            yield from answers.approved(hearing, event)
        case e.QuestionEscalated():
            yield from answers.escalated(hearing, event)
        case e.GatePassed():
            yield from passing.passed(hearing, event)
        case e.LoopEntered() | e.LoopIterated() | e.LoopLeft():
            yield from rounds.loop(hearing, event)
        case e.ActivityLeft():
            yield from activities.left(hearing, event)
        case e.ActivityEntered():
            yield from activities.entered(hearing, event)
        case e.RunCompleted():
            yield from activities.ended(hearing, event)
        case e.ContextSet():
            yield from writing.written(hearing, event)
        case e.CheckRan():
            yield from steps.checked(hearing, event)
        case e.ChildStarted():
            yield from writing.passed(hearing, event)
        case e.ChildReturned():
            yield from writing.inherited(hearing, event.sets)
            yield from writing.by_agent(hearing, event.sets)
        case e.RunStarted() if isinstance(hearing.command, StartRun):
            if event.by != hearing.command.by:
                yield I3("a run is said to be started by somebody else")
            if event.inherited != hearing.command.inherited:
                yield I4("a child begins without what its parent's questions own")
        case _:
            return


def _runs(hearing: Hearing, event: e.Event) -> Verdict:
    """A run starts once and is in progress; nothing moves on while a question is open."""
    if isinstance(event, (e.GapResolved, e.PreferencesChanged, e.TermsApplied, e.ValidationPerformed)):
        return
    is_start, status, opened = isinstance(event, e.RunStarted), hearing.audit.status, hearing.visit.open
    if is_start is (status is not None):
        yield I7("a run starts once" if is_start else "the run has not started")
    elif status not in (None, "in_progress"):
        yield I7(f"the run is {status}")
    if opened and isinstance(event, MOVES) and getattr(event, "key", "") != opened:
        yield I1(f"{type(event).__name__} comes while question '{opened}' is open")


def _loosened(
    hearing: Hearing, policy: DecisionPolicy, enforcement: Enforcement, autonomy: Autonomy, channel: str
) -> Verdict:
    """Nobody but the user loosens the terms of a session; each order has the tightest first."""
    terms = hearing.audit.terms
    is_looser = (
        DECISIONS.index(policy) > DECISIONS.index(terms.policy)
        or ENFORCEMENT.index(enforcement) > ENFORCEMENT.index(terms.enforcement)
        or AUTONOMY.index(autonomy) > AUTONOMY.index(terms.preferences.autonomy)
    )
    if is_looser and not is_at_least(channel, "user"):
        yield I6(f"the terms are looser than those of the session, by channel '{channel}'")
