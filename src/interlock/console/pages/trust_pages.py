"""The commands that a workflow's checks would run, for the person who trusts them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from interlock.authoring.diagnostics.diagnostic import ABSENT, Diagnostic, absence, located
from interlock.core.definition.conditions import describe
from interlock.core.definition.workflow import Workflow
from interlock.core.principals import Principal
from interlock.core.run.channels import Channel
from interlock.ledger.decisions.trust import Trustable, trustable
from interlock.ledger.decisions.user_pin import has_pin
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import Shown, find_session


class TrustedBefore(Shown, frozen=True):
    """What was trusted last under the name of a check, by whom and when."""

    run: str
    by: str
    channel: Channel
    at: int


class TrustLine(Shown, frozen=True):
    """A check in full. `definition` is the digest of all of it, which goes back with the request."""

    check: str
    state: Literal["trusted", "changed", "untrusted"]
    run: str
    folder: str
    seconds: int
    expects: str
    condition: str
    definition: str
    trusted: TrustedBefore | None


class TrustPage(Shown, frozen=True):
    """The checks of a workflow, and the folder that they would run in.

    `claimed` are checks that no project has defined: the server does not run them. `owner` is whose sessions
    they are run for, `owners` are all for whom the server runs checks.
    """

    workflow: str
    name: str
    folder: str
    checks: tuple[TrustLine, ...]
    claimed: tuple[str, ...]
    owner: str
    owners: tuple[str, ...]
    needs_pin: bool
    can_decide: bool


def trust_page(
    ledger: Ledger, principal: Principal, workflow_id: str, session_id: str = "", owner: str = ""
) -> TrustPage:
    """Show the checks of a workflow as it is now, or as a session has it."""
    owners = tuple(sorted(ledger.settings.check_folders)) if principal.decides else ()
    if not owner and principal.name not in owners and ledger.settings.project is None:
        owner = next(iter(owners), "")  # somebody who decides for others has no folder of their own
    owned = ledger.of(owner if owner and principal.decides else principal.name)
    workflow, folder = workflow_to_trust(owned, workflow_id, session_id), folder_of_checks(owned)
    return TrustPage(
        workflow=workflow.id,
        name=workflow.name,
        folder=os.path.realpath(folder),
        checks=tuple(map(_line, trustable(owned, workflow, folder))),
        claimed=tuple(dict.fromkeys(check.id for check in workflow.checks() if not check.run)),
        owner=owned.owner,
        owners=owners,
        needs_pin=has_pin(ledger.store, principal.name),
        can_decide=principal.decides,
    )


def folder_of_checks(ledger: Ledger) -> Path:
    """Return the folder that checks of the ledger's owner run in."""
    folder = ledger.settings.check_folder or ledger.settings.project
    if folder is None:
        next_action = "Start the server with --check-folders, or with --project."
        raise LedgerError("NOT_FOUND", "There is no folder to run checks in.", next_action)
    return folder


def workflow_to_trust(ledger: Ledger, workflow_id: str, session_id: str) -> Workflow:
    """Return a workflow as it is now, or as the newest run of a session that follows it is pinned to it."""
    if session_id:
        session = find_session(ledger, session_id)
        with ledger.store.reading() as reader:
            runs = [run for run in reader.runs(session.session_id) if run.workflow_id == workflow_id]
        if not runs:
            message = f"This session has no run of {workflow_id}."
            raise LedgerError("NOT_FOUND", message, "Choose one of its runs.")
        return ledger.pins.plan(ledger.content, runs[-1].workflow_hash).workflow
    loaded = ledger.library.load(workflow_id)
    if isinstance(loaded, Diagnostic):
        message = absence(loaded) if loaded.code == ABSENT else located(loaded)
        raise LedgerError("NOT_FOUND", message, loaded.next_action)
    return loaded.workflow


def untrusted_checks(ledger: Ledger, workflow: Workflow) -> Iterator[str]:
    """Yield the checks that the server would run for a run of this workflow, if somebody trusted them."""
    folder = ledger.settings.check_folder or ledger.settings.project
    if folder is None:
        yield from dict.fromkeys(check.id for check in workflow.checks() if check.run)
        return
    yield from (shown.check.id for shown in trustable(ledger, workflow, folder) if not shown.is_trusted)


def _line(shown: Trustable) -> TrustLine:
    check, given = shown.check, shown.trusted
    return TrustLine(
        check=check.id,
        state="trusted" if shown.is_trusted else "changed" if shown.has_changed else "untrusted",
        run=shown.runs,
        folder=check.folder,
        seconds=check.timeout,
        expects=check.expected.text,
        condition=describe(check.condition) if check.condition is not None else "",
        definition=shown.definition,
        trusted=TrustedBefore(shown.ran, given.by, given.channel, given.at) if given is not None else None,
    )
