"""`interlock sessions`: list sessions, newest first."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.options import EVERYBODY, json_option, owned_lines, owner_option, with_ledger
from interlock.cli.screen import (
    STATUS_TONES,
    Tone,
    age,
    inform,
    line_of,
    print_json,
    say,
    status_words,
    table,
)
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.run_lines import SHOWN_STATUSES

START_ONE = "Ask your agent to start a workflow, or work through one: `interlock play wr.small_task`."


@click.command(epilog="Example: interlock sessions --awaiting --limit 5")
@click.option(
    "--status",
    type=click.Choice(SHOWN_STATUSES),
    help="Only runs with this status. stale: no activity for stale-hours (a setting; 24).",
)
@click.option("--workflow", metavar="ID", help="Only runs of this workflow.")
@click.option("--awaiting", is_flag=True, help="The same as --status waiting: for a decision or an input.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    metavar="N",
    help="List at most this many.",
)
@owner_option
@json_option
@with_ledger
def command(
    ledger: Ledger,
    status: str | None,
    workflow: str | None,
    awaiting: bool,
    limit: int,
    owner: str,
    as_json: bool,
) -> None:
    """List sessions, newest activity first. ◆ marks those that wait for a decision or an input."""
    if awaiting and status not in (None, "waiting"):
        raise click.UsageError("--awaiting is the same as --status waiting; give one of them.")
    listed = owned_lines(ledger, owner, limit, "waiting" if awaiting else status or "", workflow or "")
    if as_json:
        print_json({"sessions": msgspec.to_builtins(listed.lines), "more": listed.more})
        return
    if not listed.lines:
        say("No sessions.")
        inform(_advice(ledger, owner, filtered=bool(status or workflow or awaiting)))
    rows, tones = list[tuple[str, ...]](), list[tuple[Tone, ...]]()
    for session in listed.lines:
        status = f"{status_words(session.status)} ◆" if session.awaiting else status_words(session.status)
        title = line_of(session.title)
        ref = (session.ref, session.owner) if owner == EVERYBODY else (session.ref,)
        rows.append((*ref, age(session.updated_at), status, session.workflow_id, title))
        tone = STATUS_TONES.get(session.status, "plain")
        named: tuple[Tone, ...] = ("accent", "plain")
        tones.append((*named[: len(ref)], "quiet", tone, "quiet", "plain"))
    table(rows, tones)
    if listed.more:
        say(f"… and more; see --limit {limit * 2}.")


def _advice(ledger: Ledger, owner: str, *, filtered: bool) -> str:
    """Say what to do about an empty list."""
    if filtered:
        return "Try without a filter."
    others = owner != EVERYBODY and owned_lines(ledger, EVERYBODY, 1).lines
    return "Others have sessions; --owner all lists them." if others else START_ONE
