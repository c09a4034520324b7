"""The commands that a workflow's checks would run, for the person who trusts them."""

from __future__ import annotations

import os

from interlock.authoring.library import Loaded
from interlock.ledger.decisions.trust import Trustable, trustable
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import Shown, find_session


class TrustPage(Shown, frozen=True):
    """The checks of a workflow, and the folder that they would run in."""

    workflow: str
    folder: str
    checks: tuple[Trustable, ...]


def trust_page(ledger: Ledger, workflow_id: str, session_id: str = "") -> TrustPage:
    """Show the checks of a workflow as it is now, or as a session has it."""
    folder = ledger.settings.check_folder or ledger.settings.project
    if folder is None:
        next_action = "Start the server with --check-folders, or with --project."
        raise LedgerError("NOT_FOUND", "There is no folder to run checks in.", next_action)
    if session_id:
        workflow = ledger.position(find_session(ledger, session_id).session_id).plan.workflow
    else:
        loaded = ledger.library.load(workflow_id)
        if not isinstance(loaded, Loaded):
            raise LedgerError(
                "NOT_FOUND", f"There is no workflow {workflow_id}.", "See the list of workflows."
            )
        workflow = loaded.workflow
    return TrustPage(workflow.id, os.path.realpath(folder), tuple(trustable(ledger, workflow, folder)))
