"""`interlock log ID`: the events of a session, one line each."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from interlock.cli.exits import CHECK_FAILED
from interlock.cli.options import json_option, print_json
from interlock.cli.reach import session_argument, session_of, with_ledger
from interlock.cli.screen import clock, fit, json_lines, line_of, paint, say, stop, width
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.health import examine
from interlock.ledger.queries.log_lines import EventLine, event_lines
from interlock.ledger.queries.status import find_session

PAUSE_SECONDS = 0.3


@click.command(epilog="Example: interlock log hmc3gzdk --kind gate_resolved --kind gap_recorded")
@session_argument
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only events of this kind; repeatable.")
@click.option("--limit", type=click.IntRange(1), help="Only the newest so many.")
@click.option("--follow", "-f", is_flag=True, help="Go on printing as events are recorded.")
@json_option
@with_ledger
def command(
    ledger: Ledger, ref: str, kinds: tuple[str, ...], limit: int | None, follow: bool, as_json: bool
) -> None:
    """Print what was recorded, and check its chain of digests."""
    session = session_of(ledger, ref)
    report = examine(ledger.store, session)
    lines = event_lines(ledger, session.session_id, kinds, end=report.events)
    lines = lines[-limit:] if limit else lines
    if follow:
        _follow(ledger, session.session_id, lines, kinds, report.events, as_json)
    elif as_json:
        events = [line.fields() for line in lines]
        print_json({"sessionId": session.session_id, "health": report.health, "events": events})
    else:
        _print(lines)
    if report.health != "healthy":
        kept = f"The log is damaged ({report.reason}); its first {report.events} events are sound."
        stop(CHECK_FAILED, f"{kept} Run `interlock doctor --repair`.")


def _print(lines: list[EventLine]) -> None:
    for line in lines:
        node = "" if line.node is None else f"n{line.node}"
        head = f"{line.index:>4}  {clock(line.at)[11:]}  {node:<4} {line.kind:<20}  "
        say(paint(head, "quiet") + fit(line_of(line.summary), _room(len(head))))


def _room(taken: int) -> int | None:
    limit = width()
    return None if limit is None else max(limit - taken, 12)


def _follow(
    ledger: Ledger, session_id: str, lines: list[EventLine], kinds: tuple[str, ...], start: int, as_json: bool
) -> None:
    """Print until the reader has enough."""
    try:
        for batch in _batches(ledger, session_id, lines, kinds, start):
            if as_json:
                for line in batch:
                    json_lines(line.fields())
            else:
                _print(batch)
    except KeyboardInterrupt:
        return


def _batches(
    ledger: Ledger, session_id: str, lines: list[EventLine], kinds: tuple[str, ...], start: int
) -> Iterator[list[EventLine]]:
    yield lines
    while True:
        time.sleep(PAUSE_SECONDS)
        session = find_session(ledger, session_id, ledger.settings.owner)
        if isinstance(session, LedgerError):
            return
        end = session.head_index + 1
        fresh = event_lines(ledger, session_id, kinds, start=start, end=end) if end > start else []
        start = max(start, end)
        yield fresh
