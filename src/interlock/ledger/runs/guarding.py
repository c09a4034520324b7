"""What the guard refuses: logged, and an error where nothing else could be refused."""

from __future__ import annotations

from interlock.core.definition.program import Plan
from interlock.core.engine.decide import guarded, outcome_of
from interlock.core.guard.audit import Audit
from interlock.core.run.commands import Command
from interlock.core.run.outcomes import Code, Decided, Refusal
from interlock.core.run.state import RunState
from interlock.ledger.decisions.approvals import disclosing_approvers


class GuardRefused(Exception):
    """The guard refused to begin a run, or what a child leaves in its parent. The message says why."""


def log_refused(refusal: Refusal, command: Command, where: str) -> None:
    """Log what the guard has refused."""
    from logging import getLogger  # which most processes never need

    broken = f"{refusal.about['invariant']}: {refusal.about['detail']}"
    getLogger("interlock.guard").error("refused %s in %s: %s", type(command).__name__, where, broken)


def surely_decided(plan: Plan, state: RunState, audit: Audit, command: Command, where: str) -> Decided:
    """Decide a command that only the guard refuses."""
    outcome = guarded(plan, audit, command, outcome_of(plan, state, command))
    if isinstance(outcome, Refusal) and outcome.code is Code.GUARD_REFUSED:
        log_refused(outcome, command, where)
        raise GuardRefused(f"{outcome.about['detail']} ({outcome.about['invariant']})")
    assert isinstance(outcome, Decided), "a run can be started, and its children begin and return"
    return disclosing_approvers(plan, state, outcome)
