"""`interlock export ID`: a session as a bundle, as a page to read, or as events for other systems."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

import click
import msgspec

from interlock.authoring.sources.atomic_write import replace_file
from interlock.cli.options import EVERYBODY, optional_session_argument, owner_option, with_ledger
from interlock.cli.references import session_named
from interlock.cli.screen import CHECK_FAILED, USAGE, inform, stop
from interlock.ledger.evidence.event_stream import streamed_log
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.repair import inspect, mark, session_batches
from interlock.ledger.transfer.export_import import export_session
from interlock.ledger.transfer.text_export import as_html, as_markdown, banner_of
from interlock.store.protocol import SessionRow

Format = Literal["json", "markdown", "html"]
Streamed = Literal["events", "otel"]


@click.command(epilog="Example: interlock export hmc3gzdk --output session.json")
@optional_session_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown", "html"]),
    default="json",
    show_default=True,
    help="json can be imported; the others are for reading.",
)
@click.option(
    "--events", "streamed", flag_value="events", help="Export events instead, one JSON object a line."
)
@click.option("--otel", "streamed", flag_value="otel", help="Export OpenTelemetry spans instead (OTLP JSON).")
@click.option("--after", type=click.IntRange(-1), metavar="N", help="Only events and spans after event N.")
@click.option(
    "--all",
    "positions",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Events or spans of every session since the last time; this file keeps the positions.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@owner_option
@with_ledger
def command(
    ledger: Ledger,
    ref: str | None,
    form: Format,
    streamed: Streamed | None,
    after: int | None,
    positions: Path | None,
    output: Path | None,
    owner: str,
) -> None:
    """Export a session. Its log and its pinned workflows are in it; tokens and keys are not.

    With --events or --otel it exports what happened for other systems, from a position on.
    """
    if (ref is None) is (positions is None):
        stop(USAGE, "Name a session, or say --all FILE.")
    if streamed is None and (after is not None or positions is not None):
        stop(USAGE, "--after and --all are for --events and --otel.")
    if positions is not None and after is not None:
        stop(USAGE, "--all has its own positions; leave --after out.")
    if streamed is not None and positions is not None:
        known = _stream(ledger, streamed, _all_sessions(ledger, owner), _positions(positions), output)
        replace_file(positions, msgspec.json.encode(known), durable=True)
    elif ref is not None:
        session = session_named(ledger, ref, owner)
        if streamed is None:
            _export(ledger, session, form, output)
            return
        known = {} if after is None else {session.session_id: after}
        known = _stream(ledger, streamed, [session.session_id], known, output)
        inform(f"Next time: --after {known[session.session_id]}")


def _export(ledger: Ledger, session: SessionRow, form: Format, output: Path | None) -> None:
    bundle = export_session(ledger.store, session, ledger.pins, ledger.clock())
    match form:
        case "json":
            text = msgspec.json.encode(bundle) + b"\n"
        case "markdown":
            text = as_markdown(bundle).encode()
        case "html":
            text = as_html(bundle).encode()
    with _written(output) as file:
        file.write(text)
    if banner := banner_of(bundle.session.meta):
        finding = inspect(ledger.store, session.session_id, ledger.pins)
        if finding is not None:
            mark(ledger.store, finding)  # so that no run continues from the damage (rule 44)
        stop(CHECK_FAILED, banner)
    if output is not None:
        inform(f"Wrote {output}.")


def _stream(
    ledger: Ledger,
    streamed: Streamed,
    session_ids: Iterable[str],
    known: dict[str, int],
    output: Path | None,
) -> dict[str, int]:
    """Write what came after the known positions; return the new ones. A damaged log is named."""
    reached: dict[str, int] = {}
    with _written(output) as file:
        for session_id in session_ids:
            log = streamed_log(ledger.store, session_id)
            if log is None:
                continue
            since = known.get(session_id, -1)
            if since > log.position and log.log.whole:
                cut = f"{session_id} ends with event {log.position}, before {since}"
                inform(f"interlock: {cut}: it was restored or repaired, and is exported again.")
                since = -1
            for line in log.events_after(since) if streamed == "events" else log.spans_after(since):
                file.write(msgspec.json.encode(line) + b"\n")
            reached[session_id] = max(since, log.position)
            if not log.log.whole:
                inform(
                    f"interlock: {session_id} is damaged after event {log.position}; run `interlock doctor`."
                )
        file.flush()
    return reached


def _positions(file: Path) -> dict[str, int]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, int]) if file.exists() else {}
    except msgspec.DecodeError:
        stop(USAGE, f"{file} holds no positions. Name another file, or remove it to export everything again.")


def _all_sessions(ledger: Ledger, owner: str) -> Iterator[str]:
    for batch in session_batches(ledger.store, 500):
        with ledger.store.reading() as reader:
            rows = reader.sessions_among(batch)
        yield from (row.session_id for row in rows if owner in (EVERYBODY, row.owner))


@contextmanager
def _written(output: Path | None) -> Iterator[BinaryIO]:
    """Open where a result goes: a file, or stdout."""
    if output is None:
        yield sys.stdout.buffer
        return
    with output.open("wb") as file:
        yield file
