"""`interlock log ID`: the events of a session, one line each."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import get_args

import click

from interlock.authoring.diagnostics.codes import one_of
from interlock.cli.options import json_option, owner_option, session_argument, with_ledger
from interlock.cli.references import owned_session
from interlock.cli.screen import (
    CHECK_FAILED,
    USAGE,
    clock,
    fit,
    line_of,
    paint,
    print_json,
    print_json_line,
    room_after,
    say,
    stop,
)
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.health import examine
from interlock.ledger.log.records import LogEntry
from interlock.ledger.queries.log_lines import EventLine, event_lines
from interlock.ledger.queries.status import find_session

PAUSE_SECONDS = 0.3
KINDS = [str(kind.__struct_config__.tag) for kind in get_args(LogEntry)]


@click.command(epilog="Example: interlock log hmc3gzdk --kind gate_resolved --kind gap_recorded")
@session_argument
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only events of this kind; repeatable.")
@click.option("--limit", type=click.IntRange(1), help="Only the newest N events.", metavar="N")
@click.option("--follow", "-f", is_flag=True, help="Keep printing as events are recorded.")
@owner_option
@json_option
@with_ledger
def command(
    ledger: Ledger,
    ref: str,
    kinds: tuple[str, ...],
    limit: int | None,
    follow: bool,
    owner: str,
    as_json: bool,
) -> None:
    """Print the events of a session, and verify their chain."""
    for kind in kinds:
        if kind not in KINDS:
            stop(USAGE, f"There is no kind of event '{kind}'; {one_of(kind, KINDS)}.")
    ledger, session = owned_session(ledger, ref, owner)
    report = examine(ledger.store, session)
    events = event_lines(ledger, session.session_id, kinds, end=report.events)
    events = events[-limit:] if limit else events
    if follow:
        _follow(ledger, session.session_id, events, kinds, report.events, as_json)
    elif as_json:
        fields = [event.fields() for event in events]
        print_json({"sessionId": session.session_id, "health": report.health, "events": fields})
    else:
        _show(events, ledger.owner)
    if report.health != "healthy":
        damage = f"The log is damaged ({report.reason}); its first {report.events} events are sound."
        stop(CHECK_FAILED, f"{damage} Run `interlock doctor --repair`.")


def _show(events: list[EventLine], owner: str) -> None:
    for event in events:
        node = "" if event.node is None else f"n{event.node}"
        head = f"{event.index:>4}  {clock(event.at)[11:]}  {node:<4} {event.kind:<20}  "
        say(paint(head, "quiet") + fit(line_of(event.summary(owner)), room_after(len(head))))


def _follow(
    ledger: Ledger,
    session_id: str,
    events: list[EventLine],
    kinds: tuple[str, ...],
    start: int,
    as_json: bool,
) -> None:
    """Print until Ctrl-C, or until the session is removed."""
    with suppress(KeyboardInterrupt):
        while True:
            if as_json:
                for event in events:
                    print_json_line(event.fields())
            else:
                _show(events, ledger.owner)
            time.sleep(PAUSE_SECONDS)
            try:
                session = find_session(ledger, session_id)
            except LedgerError:  # it was removed
                return
            end = session.head_index + 1
            events = event_lines(ledger, session_id, kinds, start=start, end=end) if end > start else []
            start = max(start, end)
