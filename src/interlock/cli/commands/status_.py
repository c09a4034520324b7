"""`interlock status ID`: where a session stands."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.exits import CHECK_FAILED, WAITS
from interlock.cli.options import json_option, print_json
from interlock.cli.reach import session_argument, session_of, with_ledger
from interlock.cli.screen import STATUS_TONES, age, clock, fit, line_of, paint, say, stop, talk, width, words
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import RunStatus, SessionStatus, session_status


@click.command(epilog="Example: interlock status hmc3gzdk")
@session_argument
@json_option
@with_ledger
def command(ledger: Ledger, ref: str, as_json: bool) -> None:
    """Show where a session stands. Exits with 4 if it waits for a decision."""
    found = session_status(ledger, session_of(ledger, ref))
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        _show(found)
    if found.reason:
        stop(CHECK_FAILED, f"The log is damaged: {found.reason}. Run `interlock doctor --repair`.")
    if any(run.pending.kind == "decision" and run.decided is None for run in found.runs):
        if not as_json:
            talk(f"It waits for a decision: interlock decide {found.ref}")
        raise click.exceptions.Exit(WAITS)


def _show(found: SessionStatus) -> None:
    say(f"{paint(fit(line_of(found.title), width()), 'strong')}")
    say(paint(f"{found.session_id}, begun {clock(found.created_at)}", "quiet"))
    for name, value in found.observed.items():
        say(fit(f"{name:<14} {line_of(value)}", width()))
    for run in found.runs:
        say()
        _run(run)
    if not found.runs:
        say("No run yet.")


def _run(run: RunStatus) -> None:
    tone = STATUS_TONES.get(run.status, "plain")
    say(f"{paint(run.workflow_id, 'accent')}  {paint(words(run.status), tone)}, {age(run.updated_at)}")
    rows = [("run", run.run_id), ("mode", f"{run.mode}, {run.risk_policy} risk")]
    if run.pending.kind != "nothing":
        rows.append((f"waits for {run.pending.kind}", f"{run.pending.title} ({run.pending.id})"))
    if run.decided is not None:
        rows.append(("decided", f"{run.decided}; the agent goes on with its next call"))
    if run.gaps:
        rows.append(("gaps", f"{run.gaps} recorded"))
    if run.branches > 1:
        rows.append(("branches", f"{run.branches}, preferred tip is node {run.tip}"))
    for name, value in rows:
        say(fit(f"  {name:<20}{line_of(value)}", width()))
