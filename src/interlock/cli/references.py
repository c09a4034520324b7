"""Find the session, workflow or source that an argument names, or end the command with what to do instead."""

from __future__ import annotations

from pathlib import Path

from interlock.authoring.diagnostics.diagnostic import ABSENT, located
from interlock.authoring.library import Diagnostic, Library, Loaded
from interlock.authoring.sources.paths import source_at
from interlock.authoring.sources.sources import Source
from interlock.cli.compose import library_of, split_mount
from interlock.cli.config import Config
from interlock.cli.options import EVERYBODY
from interlock.cli.screen import CHECK_FAILED, NOT_FOUND, stop
from interlock.core.principals import LOCAL
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import find_session_of
from interlock.store.protocol import SessionRow


def session_named(ledger: Ledger, ref: str, owner: str) -> SessionRow:
    """Find a session of an owner, or of everybody's, by its id or by the beginning of its id."""
    try:
        return find_session_of(ledger.store, ref, None if owner == EVERYBODY else owner)
    except LedgerError as error:
        whose = _owner_of(ledger, ref)
        if error.code != "NOT_FOUND" or whose is None:
            raise
        raise LedgerError(
            "NOT_FOUND", f"Session {ref} belongs to {whose}.", f"Add --owner {whose}."
        ) from error


def _owner_of(ledger: Ledger, ref: str) -> str | None:
    try:
        return find_session_of(ledger.store, ref, None).owner
    except LedgerError:
        return None


def owned_session(ledger: Ledger, ref: str, owner: str) -> tuple[Ledger, SessionRow]:
    """Find a session, and return it with the ledger of its owner, on which the local user acts."""
    session = session_named(ledger, ref, owner)
    return ledger.of(session.owner, LOCAL.name), session


def source_of(argument: str) -> Source:
    """Read `PATH` or `NAME=PATH`."""
    name, path = split_mount(argument)
    if not path.exists():
        stop(NOT_FOUND, f"There is no file or folder {path}.")
    return source_at(path, name)


def workflow_of(library: Library, workflow_id: str) -> Loaded:
    """Load a workflow by its id."""
    workflow = library.load(workflow_id)
    if isinstance(workflow, Diagnostic):
        if workflow.code != ABSENT:
            stop(CHECK_FAILED, f"{workflow_id} cannot be used: {located(workflow)}; {workflow.next_action}.")
        near = (
            f"Did you mean '{workflow.suggestions[0]}'?" if workflow.suggestions else "See `interlock list`."
        )
        stop(NOT_FOUND, f"There is no workflow '{workflow_id}'. {near}")
    return workflow


def workflow_at(config: Config, argument: str) -> Loaded:
    """Load a workflow by its id or from a path that holds just one."""
    if "/" not in argument and not Path(argument).exists():
        return workflow_of(library_of(config), argument)
    library = Library([source_of(argument)])
    listing = library.listing()
    if len(listing.entries) == 1:
        return workflow_of(library, listing.entries[0].id)
    if listing.entries:
        names = ", ".join(entry.id for entry in listing.entries)
        stop(NOT_FOUND, f"{argument} holds several workflows; name the file of one: {names}.")
    error = next((diagnostic for diagnostic in listing.diagnostics if diagnostic.severity == "error"), None)
    reason = f": {error.message} (line {error.line})" if error else ""
    return stop(
        CHECK_FAILED, f"{argument} holds no usable workflow{reason}. Run `interlock validate {argument}`."
    )
