"""`interlock trust`: let the server run the checks of a workflow, after they were shown in full."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from interlock.authoring.library import Loaded
from interlock.cli.interactive import require_pin, require_terminal
from interlock.cli.options import json_option, owner_option, with_ledger
from interlock.cli.references import owned_session
from interlock.cli.screen import CHECK_FAILED, NOT_FOUND, USAGE, inform, print_json, say, stop
from interlock.core.definition.conditions import describe
from interlock.core.definition.quoting import spelled
from interlock.core.definition.workflow import Workflow
from interlock.core.principals import LOCAL
from interlock.core.values import Json
from interlock.ledger.decisions.trust import Trustable, give_trust, take_trust_back, trustable
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger


@click.command(epilog="Example: interlock trust team.release --project app")
@click.argument("ref", metavar="[WORKFLOW|SESSION]", required=False)
@click.option("--list", "lists", is_flag=True, help="Only show what would run, and what is trusted.")
@click.option("--revoke", is_flag=True, help="Take trust back.")
@owner_option
@json_option
@with_ledger
def command(ledger: Ledger, ref: str | None, lists: bool, revoke: bool, owner: str, as_json: bool) -> None:
    """Let the server run the checks of a workflow in its project.

    Shows each command in full first. A command that is changed later is untrusted again. Needs a terminal,
    and the PIN if one is set.
    """
    folder = ledger.settings.project
    if folder is None:
        stop(USAGE, "There is no folder to run checks in. Name it with --project.")
    ledger = ledger.of(owner, LOCAL.name)
    shown = [
        check for workflow in _workflows(ledger, ref, owner) for check in trustable(ledger, workflow, folder)
    ]
    if as_json:
        print_json({"folder": str(folder), "checks": [_fields(check) for check in shown]})
        return
    if not shown:
        stop(NOT_FOUND, f"{ref or 'No workflow'} has no checks to run.")
    inform(f"In {folder}:")
    for check in shown:
        _show(check)
    if lists:
        return
    wanted = [check for check in shown if check.is_trusted is revoke or (revoke and check.has_changed)]
    if not wanted:
        inform("Nothing to revoke." if revoke else "All of them are trusted.")
        return
    require_terminal("Trust")
    question = "Take trust in these back?" if revoke else f"Let the server run these {len(wanted)}?"
    if not click.confirm(question, default=False, err=True):
        stop(CHECK_FAILED, "Nothing was changed.")
    require_pin(ledger)
    for check in wanted:
        if revoke:
            take_trust_back(ledger, check, folder)
        else:
            give_trust(ledger, check, folder, "cli")
    say(f"{'Revoked' if revoke else 'Trusted'}: {', '.join(check.check.id for check in wanted)}")


def _workflows(ledger: Ledger, ref: str | None, owner: str) -> Iterator[Workflow]:
    """Yield the workflow that is meant, as it is now or as a session has it; all without a name."""
    names = [ref] if ref else [entry.id for entry in ledger.library.listing().entries]
    for name in names:
        loaded = ledger.library.load(name)
        if isinstance(loaded, Loaded):
            yield loaded.workflow
        elif ref:
            try:
                owned, session = owned_session(ledger, ref, owner)
                yield owned.position(session.session_id).plan.workflow
            except LedgerError:
                stop(NOT_FOUND, f"There is no workflow and no session {ref}. See `interlock list`.")


def _show(shown: Trustable) -> None:
    check = shown.check
    state = (
        "trusted"
        if shown.is_trusted
        else "CHANGED since it was trusted"
        if shown.has_changed
        else "not trusted"
    )
    say(spelled(f"{shown.workflow} {check.id}: {state}"))
    say(f"  runs     {shown.runs}")
    say(f"  in       {spelled(check.folder)}, for at most {check.timeout} s")
    say(f"  expects  {spelled(check.expected.text)}")
    if check.condition is not None:
        say(f"  when     {spelled(describe(check.condition))}")
    if shown.has_changed:
        say(f"  trusted  {shown.ran}")


def _fields(shown: Trustable) -> dict[str, Json]:
    check: dict[str, Json] = msgspec.to_builtins(shown.check)
    return {
        "workflow": shown.workflow,
        **check,
        "definition": shown.definition,
        "trusted": shown.is_trusted,
        "changed": shown.has_changed,
    }
