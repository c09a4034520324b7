"""What commands reach for: the ledger behind the shared options, and a session by its short id."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from interlock.cli.compose import ledger_of, library_of
from interlock.cli.exits import CONFLICT, NOT_FOUND
from interlock.cli.options import config_of, data_options
from interlock.cli.screen import line_of, stop
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import find_session, session_lines
from interlock.store.protocol import Reader, SessionFilter, SessionRow

Command = Callable[..., None]

OFFERED = 20


def with_ledger(command: Command) -> Command:
    """Hand the command an open ledger in place of the options that lead to it."""

    @data_options
    @wraps(command)
    def opened(
        data_dir: str | None, project: str | None, workflows: tuple[str, ...], *given: Any, **named: Any
    ) -> None:
        ledger = ledger_of(config_of(data_dir, project, workflows))
        try:
            command(ledger, *given, **named)
        finally:
            ledger.store.close()

    return opened


def session_argument(command: Command) -> Command:
    return click.argument("ref", metavar="ID", shell_complete=_sessions)(command)


def workflow_argument(command: Command) -> Command:
    return click.argument("workflow_id", metavar="ID", shell_complete=_workflows)(command)


def session_of(ledger: Ledger, reader: Reader, ref: str) -> SessionRow:
    """The session that a person means, or the end of the command."""
    found = find_session(reader, ref, ledger.settings.owner)
    return give_up(found) if isinstance(found, LedgerError) else found


def give_up(error: LedgerError) -> NoReturn:
    """End the command with what the ledger says."""
    code = CONFLICT if error.code in ("AMBIGUOUS", "CONFLICT") or error.after_ms else 1
    stop(NOT_FOUND if error.code == "NOT_FOUND" else code, f"{error.message} {error.next_action}".rstrip())


def _sessions(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    ledger = ledger_of(config_of(ctx.params.get("data_dir"), None))
    with ledger.store.reading() as reader:
        lines = session_lines(reader, SessionFilter(owner=ledger.settings.owner, limit=OFFERED))
    ledger.store.close()
    begun = incomplete.removeprefix("sess_")
    return [CompletionItem(one.ref, help=line_of(one.title)) for one in lines if one.ref.startswith(begun)]


def _workflows(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    listing = library_of(config_of(ctx.params.get("data_dir"), None)).listing()
    return [CompletionItem(one.id, help=one.name) for one in listing.entries if one.id.startswith(incomplete)]
