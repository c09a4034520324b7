"""The checks that a command needs: run where the user has trusted them, and said not to be where not."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from interlock.checks.command import LOOK_SECONDS, NotStarted, run_command, unexpected
from interlock.checks.files import digest_of_files
from interlock.checks.words import arguments_of
from interlock.core.engine.evolve import evolved
from interlock.core.engine.settle import awaited
from interlock.core.run.commands import Checkable, CheckResult, DueCheck
from interlock.core.run.events import CheckRan
from interlock.core.run.outcomes import Ask, Decided, Refusal, RunChecks
from interlock.core.run.surface_policy import POLICIES
from interlock.ledger.decisions.trust import GivenTrust, trusted
from interlock.ledger.git_context import observe
from interlock.ledger.log.commit import Commit
from interlock.ledger.runs.position import Position

if TYPE_CHECKING:
    from interlock.ledger.ledger import Ledger

NO_TIME = "the call had no time left to wait for it"
NO_FOLDER = "this server runs no checks. Ask the user, who can start it with a folder to run them in."


def check_result(ledger: Ledger, position: Position, due: DueCheck, *, may_wait: bool) -> CheckResult | None:
    """Return what came of a check that is due, which is begun if need be; nothing while it runs."""
    folder = ledger.settings.check_folder
    if folder is None:
        return CheckResult(due, _not_run(due, ledger.clock(), NO_FOLDER))
    given = trusted(ledger.store, ledger.owner, folder, position.run.workflow_id, due.check.id)
    if given is None or given.definition != due.definition:
        return CheckResult(due, _not_run(due, ledger.clock(), _untrusted(position, due, folder, given)))
    if due.again and due.valid_for and digest_of_files(folder) == due.valid_for:
        return CheckResult(due, None)
    # What has blocked here before makes another key: a failed check is run anew for the next attempt.
    attempts = len(position.loaded.blocked)
    key = (position.session_id, position.node.node, attempts, due.key, due.definition)
    known = ledger.jobs.passed.get(key)
    if known is not None and known.tree and digest_of_files(folder) == known.tree:
        return CheckResult(due, known)

    def work(is_cancelled: Callable[[], bool]) -> CheckRan:
        return _ran(due, folder, given, ledger.clock, is_cancelled)

    ran = ledger.jobs.result(key, work, may_wait=may_wait)
    if ran is None and not may_wait:
        ran = replace(_not_run(due, ledger.clock(), NO_TIME, given.named), ended="cancelled")
    return None if ran is None else CheckResult(due, ran)


def decided_with_checks(ledger: Ledger, position: Position, command: Checkable) -> Decided | Refusal:
    """Decide a command of somebody who is not asked again, once the checks that it needs have ended."""
    outcome = position.decide(command)
    while isinstance(outcome, RunChecks):
        results = tuple(_awaited_result(ledger, position, due) for due in outcome.checks)
        command = replace(command, checked=(*command.checked, *results))
        outcome = position.decide(command)
    assert not isinstance(outcome, Ask), "whoever answers is not asked"
    return outcome


def keep_rechecked(ledger: Ledger, commit: Commit, position: Position, refusal: Refusal) -> None:
    """Record what checks came to that were run again, and the question that is put again with them."""
    state, policy = evolved(position.state, refusal.kept), POLICIES[position.run.surface]
    kept = Decided(refusal.kept, state, awaited(position.plan, state, policy))
    commit.add_node(
        position.run.run, position.node.node, kept, leads=position.is_tip, held=state.visit.open is not None
    )
    ledger.append(commit.finish())


def _awaited_result(ledger: Ledger, position: Position, due: DueCheck) -> CheckResult:
    """Return what came of a check that is due, once it has ended."""
    while (result := check_result(ledger, position, due, may_wait=True)) is None:
        time.sleep(LOOK_SECONDS)
    return result


def _ran(
    due: DueCheck,
    folder: Path,
    given: GivenTrust,
    clock: Callable[[], int],
    is_cancelled: Callable[[], bool],
) -> CheckRan:
    """Run a check that the user has trusted, and look at the project's files before and after."""
    root = Path(os.path.realpath(folder))
    before = digest_of_files(root)
    try:
        ended = run_command(due.check, root, is_cancelled)
    except NotStarted as refused:
        return _not_run(due, clock(), str(refused), trusted_by=given.named)
    wrong = unexpected(due.check, ended, root)
    return CheckRan(
        key=due.key,
        check=due.check.id,
        definition=due.definition,
        argv=arguments_of(due.check.run),
        folder=due.check.folder,
        ended=ended.how,
        at=clock(),
        passed=ended.how == "exited" and not wrong,
        exit=ended.exit,
        duration_ms=ended.duration_ms,
        output=ended.output,
        output_digest=ended.output_digest,
        head=next((seen.value for seen in observe(root) if seen.key == "git_head_sha"), ""),
        tree_before=before,
        tree_after=digest_of_files(root),
        reason=wrong,
        trusted_by=given.named,
    )


def _not_run(due: DueCheck, now: int, reason: str, trusted_by: str = "") -> CheckRan:
    return CheckRan(
        due.key,
        due.check.id,
        due.definition,
        arguments_of(due.check.run),
        due.check.folder,
        "not_started",
        now,
        reason=reason,
        trusted_by=trusted_by,
    )


def _untrusted(position: Position, due: DueCheck, folder: Path, given: GivenTrust | None) -> str:
    """Say what is to be trusted, and that only the user can."""
    changed = (
        "it has changed since the user trusted it" if given is not None else "the user has not trusted it"
    )
    named = shlex.join(["interlock", "trust", position.run.workflow_id, "--project", str(folder)])
    return f"{changed}: {due.check.run}. Ask the user to run `{named}`, and end your turn."
