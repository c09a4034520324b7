"""`interlock sessions`: list sessions, newest first."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.options import json_option, with_ledger
from interlock.cli.screen import STATUS_TONES, Tone, age, inform, line_of, print_json, say, table, words
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import session_lines
from interlock.store.protocol import SessionFilter

START_ONE = "Ask your agent to start a workflow, or work through one: `interlock play wr.small_task`."
STATUSES = ("in_progress", "blocked", "complete", "complete_with_gaps", "abandoned")


@click.command(epilog="Example: interlock sessions --awaiting --limit 5")
@click.option("--status", type=click.Choice(STATUSES), help="Only runs with this status.")
@click.option("--workflow", metavar="ID", help="Only runs of this workflow.")
@click.option("--awaiting", is_flag=True, help="Only runs that wait for a decision or an input.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    metavar="N",
    help="List at most this many.",
)
@json_option
@with_ledger
def command(
    ledger: Ledger, status: str | None, workflow: str | None, awaiting: bool, limit: int, as_json: bool
) -> None:
    """List sessions, newest activity first. ◆ marks those that wait for a decision or an input."""
    wanted = SessionFilter(ledger.owner, status, workflow, awaiting or None, limit=limit + 1)
    lines = session_lines(ledger, wanted)
    sessions = lines[:limit]
    if as_json:
        print_json({"sessions": msgspec.to_builtins(sessions), "more": len(lines) > limit})
        return
    if not sessions:
        say("No sessions.")
        inform("Try without a filter." if status or workflow or awaiting else START_ONE)
    rows, tones = list[tuple[str, ...]](), list[tuple[Tone, ...]]()
    for session in sessions:
        status = f"{words(session.status)} ◆" if session.awaiting else words(session.status)
        title = line_of(session.title)
        rows.append((session.ref, age(session.updated_at), status, session.workflow_id, title))
        tones.append(("accent", "quiet", STATUS_TONES.get(session.status, "plain"), "quiet", "plain"))
    table(rows, tones)
    if len(lines) > limit:
        say(f"… and more; see --limit {limit * 2}.")
