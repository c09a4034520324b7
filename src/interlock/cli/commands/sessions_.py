"""`interlock sessions`: what work there is, newest first."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.options import json_option, print_json
from interlock.cli.reach import with_ledger
from interlock.cli.screen import STATUS_TONES, Tone, age, line_of, say, table, words
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import SessionLine, session_lines
from interlock.store.protocol import SessionFilter

STATUSES = ("in_progress", "blocked", "complete", "complete_with_gaps")


@click.command(epilog="Example: interlock sessions --awaiting --limit 5")
@click.option("--status", type=click.Choice(STATUSES), help="Only runs that stand like this.")
@click.option("--workflow", metavar="ID", help="Only runs of this workflow.")
@click.option("--awaiting", is_flag=True, help="Only those that wait for a decision or input.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True)
@json_option
@with_ledger
def command(
    ledger: Ledger, status: str | None, workflow: str | None, awaiting: bool, limit: int, as_json: bool
) -> None:
    """List sessions, newest activity first."""
    wanted = SessionFilter(ledger.settings.owner, status, workflow, awaiting, limit=limit + 1)
    found = session_lines(ledger, wanted)
    lines = found[:limit]
    if as_json:
        print_json({"sessions": msgspec.to_builtins(lines), "more": len(found) > limit})
        return
    if not lines:
        say("No sessions.")
    table([_row(one) for one in lines], [_tones(one) for one in lines])
    if len(found) > limit:
        say(f"… and more; see --limit {limit * 2}.")


def _row(line: SessionLine) -> tuple[str, ...]:
    position = f"{words(line.status)} ◆" if line.awaiting else words(line.status)
    return line.ref, age(line.updated_at), position, line.workflow_id, line_of(line.title)


def _tones(line: SessionLine) -> tuple[Tone, ...]:
    return "accent", "quiet", STATUS_TONES.get(line.status, "plain"), "quiet", "plain"
