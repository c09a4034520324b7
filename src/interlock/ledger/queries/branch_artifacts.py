"""The artifacts of a branch in one table of each sort, each row with the revision that it came from.

A later row replaces an earlier one of the same key. Only what was accepted along the branch counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from interlock.ledger.queries.artifacts import (
    ChangedFile,
    LoggedRevision,
    ReviewComment,
    ReviewFinding,
    ReviewHeader,
    Revision,
    RuleChange,
    ShownArtifact,
    VerifiedCheck,
    by_path,
    by_severity,
)
from interlock.ledger.queries.status import Shown
from interlock.ledger.queries.story import RunStory


class BranchArtifacts(Shown, frozen=True):
    """What the artifacts of one branch come to. `omitted` counts the nodes before the first that was read."""

    run_id: str
    tip: int
    artifacts: int
    omitted: int
    header: ReviewHeader | None
    log: tuple[LoggedRevision, ...]
    files: tuple[ChangedFile, ...]
    findings: tuple[ReviewFinding, ...]
    comments: tuple[ReviewComment, ...]
    checks: tuple[VerifiedCheck, ...]
    rules: tuple[RuleChange, ...]


def branch_artifacts(story: RunStory) -> BranchArtifacts:
    """Reduce the artifacts that were accepted along a branch."""
    handed_in = list(revised(story))
    header: ReviewHeader | None = None
    log: list[LoggedRevision] = []
    files: dict[str, ChangedFile] = {}
    findings: dict[tuple[str, ...], ReviewFinding] = {}
    comments: dict[tuple[str, int | None, str], ReviewComment] = {}
    checks: dict[str, VerifiedCheck] = {}
    rules: dict[str, RuleChange] = {}
    for revision, artifact in handed_in:
        if artifact.header is not None:
            header = revised_header(header, replace(artifact.header, revision=revision))
        log += [replace(entry, revision=revision) for entry in artifact.log]
        files |= {file.path: replace(file, revision=revision) for file in artifact.files}
        for finding in artifact.findings:
            place = (finding.file, str(finding.line), finding.title)
            findings[(finding.id,) if finding.id else place] = replace(finding, revision=revision)
        for comment in artifact.comments:
            comments[comment.file, comment.line, comment.title] = replace(comment, revision=revision)
        checks |= {check.name: replace(check, revision=revision) for check in artifact.checks}
        for change in artifact.rules:
            rules = agreed(rules, replace(change, revision=revision))
    return BranchArtifacts(
        run_id=story.run_id,
        tip=story.tip,
        artifacts=len(handed_in),
        omitted=story.omitted,
        header=header,
        log=tuple(log),
        files=by_path(files.values()),
        findings=by_severity(findings.values()),
        comments=tuple(comments.values()),
        checks=tuple(checks.values()),
        rules=tuple(rules.values()),
    )


def revised(story: RunStory) -> Iterator[tuple[Revision, ShownArtifact]]:
    """Yield what was accepted, in order: with notes at a node first, then with the step itself."""
    number = 0
    for step in story.steps:
        for attempt in (*step.noted, *([step.handed_in] if step.handed_in else [])):
            for artifact in attempt.artifacts:
                number += 1
                yield Revision(number, step.node, step.id, attempt.at), artifact


def revised_header(earlier: ReviewHeader | None, later: ReviewHeader) -> ReviewHeader:
    """Keep what a later header leaves out."""
    if earlier is None:
        return later
    return replace(
        later,
        title=later.title or earlier.title,
        classification=later.classification or earlier.classification,
        focus_areas=later.focus_areas or earlier.focus_areas,
        more={**earlier.more, **later.more},
    )


def agreed(rules: dict[str, RuleChange], change: RuleChange) -> dict[str, RuleChange]:
    """Apply one change to the working agreement; a rule that replaces another takes its place."""
    match change.op:
        case "remove":
            return {rule: made for rule, made in rules.items() if rule != change.rule}
        case "replace" if change.replaces in rules:
            items: Iterable[tuple[str, RuleChange]] = (
                (change.rule, change) if rule == change.replaces else (rule, made)
                for rule, made in rules.items()
            )
            return dict(items)
        case _:
            return {**rules, change.rule: change}
