"""`interlock abandon ID`: give up a run for good."""

from __future__ import annotations

import sys

import click
import msgspec

from interlock.cli.options import json_option, owner_option, session_argument, with_ledger
from interlock.cli.references import owned_session
from interlock.cli.screen import CHECK_FAILED, CONFLICT, NOT_FOUND, USAGE, line_of, print_json, say, stop
from interlock.core.run.outcomes import Refusal
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.abandonment import abandon_run
from interlock.store.protocol import RunRow


@click.command(epilog='Example: interlock abandon hmc3gzdk --reason "the ticket was withdrawn"')
@session_argument
@click.option("--reason", default="", metavar="TEXT", help="Why; agents and people read it later.")
@click.option("--run", "wanted", metavar="RUN", help="Which run, by its id, if several are unfinished.")
@owner_option
@json_option
@with_ledger
def command(ledger: Ledger, ref: str, reason: str, wanted: str | None, owner: str, as_json: bool) -> None:
    """Give up a run for good. It stays readable, and nothing in it waits for you any more."""
    ledger, session = owned_session(ledger, ref, owner)
    with ledger.store.reading() as reader:
        runs = reader.runs(session.session_id)
    run = _named(runs, wanted or (ref if ref.startswith("run_") else None), ref)
    asks = sys.stdin.isatty() and not as_json and run.status in ("in_progress", "blocked")
    if asks and not click.confirm(f"Give up {run.workflow_id}, '{line_of(session.title)}'?", err=True):
        stop(CHECK_FAILED, "Nothing was changed.")
    position = abandon_run(ledger, session.session_id, run.run, "cli", reason)
    if isinstance(position, Refusal):
        stop(CONFLICT, f"Run {run.run_id} has ended; there is nothing to give up.")
    how = position.state.abandoned
    assert how is not None, "a run that was given up says so"
    if as_json:
        named = {"sessionId": session.session_id, "runId": run.run_id, "status": "abandoned"}
        print_json({**named, **msgspec.to_builtins(how)})
        return
    say(f"{run.run_id} was {line_of(how.text)}.")


def _named(runs: list[RunRow], wanted: str | None, ref: str) -> RunRow:
    """Return the run that is meant: the one that is named, else the only one, or the only unfinished one."""
    if wanted is not None:
        begins = f"run_{wanted.removeprefix('run_')}"
        matching = [run for run in runs if run.run_id.startswith(begins)]
        if not matching:
            stop(NOT_FOUND, f"Session {ref} has no run {wanted}. See `interlock status {ref}`.")
    else:
        unfinished = [run for run in runs if run.status in ("in_progress", "blocked")]
        matching = unfinished or runs[-1:]
        if not matching:
            stop(NOT_FOUND, f"Session {ref} has no run to give up.")
    if len(matching) > 1:
        names = ", ".join(run.run_id for run in matching)
        stop(USAGE, f"Session {ref} has several unfinished runs; name one with --run: {names}.")
    return matching[0]
