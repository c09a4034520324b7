"""`interlock status ID`: the status of a session and its runs."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.options import json_option, owner_option, session_argument, with_ledger
from interlock.cli.references import owned_session
from interlock.cli.screen import (
    CHECK_FAILED,
    STATUS_TONES,
    WAITS,
    age,
    clock,
    fit,
    inform,
    line_of,
    paint,
    print_json,
    say,
    status_words,
    stop,
    width,
)
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import session_status
from interlock.ledger.runs.whole_session import WholeSession


@click.command(epilog="Example: interlock status hmc3gzdk")
@session_argument
@owner_option
@json_option
@with_ledger
def command(ledger: Ledger, ref: str, owner: str, as_json: bool) -> None:
    """Show the status of a session. Exits with 4 if it waits for a decision."""
    session = session_status(WholeSession(*owned_session(ledger, ref, owner)))
    if as_json:
        print_json(msgspec.to_builtins(session))
    else:
        say(f"{paint(fit(line_of(session.title), width()), 'strong')}")
        say(paint(f"{session.session_id}, started {clock(session.created_at)}", "quiet"))
        for name, value in session.observed.items():
            say(fit(f"{name:<14} {line_of(value)}", width()))
        if not session.runs:
            say("No run yet.")
    for run in () if as_json else session.runs:
        say()
        status = paint(status_words(run.status), STATUS_TONES.get(run.status, "plain"))
        say(f"{paint(run.workflow_id, 'accent')}  {status}, {age(run.updated_at)}")
        rows = [("run", run.run_id), ("mode", f"{run.mode}, {run.risk_policy} risk")]
        if run.abandoned is not None:
            rows.append(("given up", run.abandoned))
        if run.pending.kind != "nothing":
            rows.append((f"waits for {run.pending.kind}", f"{run.pending.title} ({run.pending.id})"))
        if run.decided is not None:
            rows.append(("decided", f"{run.decided}; the agent continues with its next call"))
        if run.gap_list:
            rows.append(("gaps", f"{run.gaps} open"))
        for gap in run.gap_list:
            closed = f", resolved: {gap.resolved}" if gap.resolved else ""
            rows.append((f"  gap {gap.number}", f"{gap.severity}{closed}: {gap.summary}"))
        if run.branches > 1:
            rows.append(("branches", f"{run.branches}, preferred tip is node {run.tip}"))
        for name, value in rows:
            say(fit(f"  {name:<20}{line_of(value)}", width()))
    if session.reason:
        stop(CHECK_FAILED, f"The log is damaged: {session.reason}. Run `interlock doctor --repair`.")
    if any(run.pending.kind == "decision" and run.decided is None for run in session.runs):
        if not as_json:
            inform(f"It waits for a decision: interlock decide {session.ref}")
        raise click.exceptions.Exit(WAITS)
