"""Artifacts by their contract: what the fields of a known kind mean, for people who read a run.

The kind alone decides, never a text. What a contract does not name stays as it was sent, in `rest` or `more`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Literal, TypeAlias

import msgspec
from msgspec import field

from interlock.authoring.compile.builtins import contracts
from interlock.core.values import Json
from interlock.ledger.queries.status import Shown

REVIEW = "mr_review."
SEVERITIES = ("critical", "major", "warning", "minor", "nit", "info")

Tone = Literal["good", "bad", "warning", "neutral"]
TONES: Mapping[str, Tone] = {
    "approved": "good",
    "available": "good",
    "clean": "good",
    "pass": "good",
    "minor": "warning",
    "partial": "warning",
    "uncertain": "warning",
    "unavailable": "warning",
    "blocking": "bad",
    "fail": "bad",
    "rejected": "bad",
}

Fields: TypeAlias = dict[str, Json]


class Revision(Shown, frozen=True):
    """Where a row of a branch's tables came from: the node that its artifact was handed in at.

    `number` counts the artifacts of the branch from 1.
    """

    number: int
    node: int
    step: str
    at: int


class ReviewHeader(Shown, frozen=True):
    """What a review is about."""

    title: str
    classification: str
    focus_areas: tuple[str, ...]
    more: Fields
    revision: Revision | None = None


class LoggedRevision(Shown, frozen=True):
    """An entry of a review's revision log."""

    text: str
    revision: Revision | None = None


class ChangedFile(Shown, frozen=True):
    """A file that a change touches."""

    path: str
    change: str
    summary: str
    risk: str
    additions: int | None
    deletions: int | None
    more: Fields
    revision: Revision | None = None


class ReviewFinding(Shown, frozen=True):
    """What a review found, and where."""

    id: str
    severity: str
    tone: Tone
    title: str
    file: str
    line: int | None
    rationale: str
    suggestion: str
    more: Fields
    revision: Revision | None = None


class ReviewComment(Shown, frozen=True):
    """A comment that is ready to be pasted."""

    title: str
    file: str
    line: int | None
    body: str
    more: Fields
    revision: Revision | None = None


class VerifiedCheck(Shown, frozen=True):
    """One check of a verification, with its evidence."""

    name: str
    result: str
    tone: Tone
    evidence: str
    more: Fields
    revision: Revision | None = None


class RuleChange(Shown, frozen=True):
    """A change to what the user and the agent agreed on."""

    op: str
    rule: str
    replaces: str
    reason: str
    more: Fields
    revision: Revision | None = None


class ArtifactFact(Shown, frozen=True):
    """A named value of an artifact."""

    name: str
    text: str


class ShownArtifact(Shown, frozen=True):
    """An artifact as its contract reads it; `title` is empty where no contract of that kind is known."""

    kind: str
    title: str = ""
    headline: str = ""
    tone: Tone = "neutral"
    facts: tuple[ArtifactFact, ...] = ()
    header: ReviewHeader | None = None
    log: tuple[LoggedRevision, ...] = ()
    files: tuple[ChangedFile, ...] = ()
    findings: tuple[ReviewFinding, ...] = ()
    comments: tuple[ReviewComment, ...] = ()
    checks: tuple[VerifiedCheck, ...] = ()
    rules: tuple[RuleChange, ...] = ()
    rest: Fields = field(default_factory=dict)


def shown_artifact(artifact: Mapping[str, Json]) -> ShownArtifact:
    """Read an artifact by its kind; of an unknown kind everything is the rest."""
    rest = dict(artifact)
    kind = text(rest, "kind")
    name = kind.removeprefix("wr.")
    if name.startswith(REVIEW):
        title = contract_titles().get(f"wr.{name}", "Review")
        return read_review(kind, title, rest)
    reader = READERS.get(name)
    if reader is None or (kind == name and name not in UNPREFIXED):
        return ShownArtifact(kind, rest=rest)
    return reader(kind, contract_titles()[f"wr.{name}"], rest)


@cache
def contract_titles() -> dict[str, str]:
    """Return the title of each built-in contract by the kind of its artifacts."""
    return {pack.kind: pack.title for pack in contracts().values()}


def read_review(kind: str, title: str, rest: Fields) -> ShownArtifact:
    """Read what Appendix A shows for a review; any of its parts may come with any phase."""
    entry = text(rest, "revisionLogEntry")
    files = [changed_file(row) for name in ("changedFiles", "files") for row in rows(rest, name, "path")]
    return ShownArtifact(
        kind,
        title,
        header=review_header(rest),
        log=(LoggedRevision(entry),) if entry else (),
        files=by_path(files),
        findings=findings_in(rest, "findings"),
        comments=tuple(map(comment, rows(rest, "mrComments", "body"))),
        rest=rest,
    )


def review_header(rest: Fields) -> ReviewHeader | None:
    """Take the header of a review, if it is an object."""
    review = rest.get("review")
    if not isinstance(review, Mapping):
        return None
    del rest["review"]
    more = dict(review)
    focus: tuple[str, ...] = ()
    if isinstance(areas := more.get("focusAreas"), list) and all(isinstance(area, str) for area in areas):
        del more["focusAreas"]
        focus = tuple(areas)
    return ReviewHeader(text(more, "mrTitle"), text(more, "classification"), focus, more)


def changed_file(row: Fields) -> ChangedFile:
    return ChangedFile(
        path=text(row, "path"),
        change=text(row, "change"),
        summary=text(row, "summary") or text(row, "note"),
        risk=text(row, "risk"),
        additions=number(row, "additions"),
        deletions=number(row, "deletions"),
        more=row,
    )


def findings_in(rest: Fields, name: str) -> tuple[ReviewFinding, ...]:
    """Take a list of findings, the gravest first."""
    found = []
    for row in rows(rest, name, "title", "summary"):
        severity, (file, line) = text(row, "severity"), location(row)
        found.append(
            ReviewFinding(
                id=text(row, "id"),
                severity=severity,
                tone="bad" if severity.casefold() in ("critical", "major") else "warning",
                title=text(row, "title") or text(row, "summary"),
                file=file,
                line=line,
                rationale=text(row, "rationale"),
                suggestion=text(row, "suggestion"),
                more=row,
            )
        )
    return by_severity(found)


def comment(row: Fields) -> ReviewComment:
    file, line = location(row)
    return ReviewComment(text(row, "title"), file, line, text(row, "body"), row)


def read_verification(kind: str, title: str, rest: Fields) -> ShownArtifact:
    verdict = text(rest, "verdict")
    checks = []
    for row in rows(rest, "checks", "name"):
        name, result = text(row, "name"), text(row, "result")
        checks.append(VerifiedCheck(name, result, tone_of(result), text(row, "evidence"), row))
    return ShownArtifact(
        kind, title, verdict, tone_of(verdict), facts_in(rest, "summary"), checks=tuple(checks), rest=rest
    )


def read_verdict(kind: str, title: str, rest: Fields) -> ShownArtifact:
    """Read the verdict of a review or of a gate."""
    verdict = text(rest, "verdict")
    facts = facts_in(rest, "confidence", "rationale", "summary", "version")
    findings = findings_in(rest, "findings")
    return ShownArtifact(kind, title, verdict, tone_of(verdict), facts, findings=findings, rest=rest)


def read_decision(kind: str, title: str, rest: Fields) -> ShownArtifact:
    headline = ": ".join(filter(None, (text(rest, "checkpointId"), text(rest, "optionId"))))
    return ShownArtifact(kind, title, headline, facts=facts_in(rest, "note"), rest=rest)


def read_loop_control(kind: str, title: str, rest: Fields) -> ShownArtifact:
    decision, facts, metadata = text(rest, "decision"), facts_in(rest, "loopId"), rest.get("metadata")
    if isinstance(metadata, Mapping):
        rest["metadata"] = more = dict(metadata)
        facts += facts_in(more, "reason", "issuesFound", "iterationIndex", "confidence")
        if not more:
            del rest["metadata"]
    return ShownArtifact(kind, title, decision, facts=facts, rest=rest)


def read_capability(kind: str, title: str, rest: Fields) -> ShownArtifact:
    capability, status = text(rest, "capability"), text(rest, "status")
    headline = ": ".join(filter(None, (capability.replace("_", " "), status)))
    facts: tuple[ArtifactFact, ...] = ()
    if isinstance(provenance := rest.get("provenance"), Mapping):
        del rest["provenance"]
        facts = tuple(
            ArtifactFact("known from" if name == "kind" else words(name), plain(value).replace("_", " "))
            for name, value in provenance.items()
        )
    return ShownArtifact(kind, title, headline, tone_of(status), facts, rest=rest)


def read_divergence(kind: str, title: str, rest: Fields) -> ShownArtifact:
    reason = text(rest, "reason").replace("_", " ")
    facts = facts_in(rest, "summary", "relatedStepId")
    return ShownArtifact(kind, title, reason, "warning", facts, rest=rest)


def read_assessment(kind: str, title: str, rest: Fields) -> ShownArtifact:
    facts: list[ArtifactFact] = []
    if isinstance(dimensions := rest.get("dimensions"), Mapping):
        del rest["dimensions"]
        for name, value in dimensions.items():
            judged = dict(value) if isinstance(value, Mapping) else {"level": value}
            facts.append(ArtifactFact(name, ": ".join(map(plain, judged.values()))))
    return ShownArtifact(
        kind, title, text(rest, "assessmentId"), facts=(*facts, *facts_in(rest, "summary")), rest=rest
    )


def read_gaps(kind: str, title: str, rest: Fields) -> ShownArtifact:
    facts = tuple(
        ArtifactFact(f"closed gap {plain(row.pop('gap', '?'))}", "; ".join(map(plain, row.values())))
        for row in rows(rest, "resolved", "summary")
    )
    return ShownArtifact(kind, title, facts=facts, findings=findings_in(rest, "open"), rest=rest)


def read_agreement(kind: str, title: str, rest: Fields) -> ShownArtifact:
    changes = rows(rest, "changes", "rule")
    rules = tuple(
        RuleChange(text(row, "op"), text(row, "rule"), text(row, "replaces"), text(row, "reason"), row)
        for row in changes
    )
    return ShownArtifact(kind, title, rules=rules, rest=rest)


READERS: Mapping[str, Callable[[str, str, Fields], ShownArtifact]] = {
    "verification_report": read_verification,
    "review_verdict": read_verdict,
    "gate_verdict": read_verdict,
    "decision": read_decision,
    "loop_control": read_loop_control,
    "capability_observation": read_capability,
    "workflow_divergence": read_divergence,
    "assessment": read_assessment,
    "gaps": read_gaps,
    "working_agreement_patch": read_agreement,
}
UNPREFIXED = ("working_agreement_patch", "workflow_divergence")  # the contract names these without `wr.`


def by_path(files: Iterable[ChangedFile]) -> tuple[ChangedFile, ...]:
    """Keep the last row of each path, in the order of the paths."""
    return tuple(sorted({file.path: file for file in files}.values(), key=lambda file: file.path))


def by_severity(findings: Iterable[ReviewFinding]) -> tuple[ReviewFinding, ...]:
    """Order findings: the gravest first, then by file and line."""

    def rank(found: ReviewFinding) -> tuple[int, str, int]:
        severity = found.severity.casefold()
        place = SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)
        return place, found.file, found.line or 0

    return tuple(sorted(findings, key=rank))


def tone_of(word: str) -> Tone:
    return TONES.get(word, "neutral")


def rows(fields: Fields, name: str, *keys: str) -> list[Fields]:
    """Take a list whose every row is an object with one of these texts; any other stays where it is."""
    value = fields.get(name)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    found = [dict(row) for row in value if isinstance(row, Mapping)]
    if len(found) < len(value) or not all(any(is_text(row.get(key)) for key in keys) for row in found):
        return []
    del fields[name]
    return found


def facts_in(fields: Fields, *names: str) -> tuple[ArtifactFact, ...]:
    """Take the named values that are plain."""
    present = [name for name in names if isinstance(fields.get(name), (str, int, float))]
    return tuple(ArtifactFact(words(name), plain(fields.pop(name))) for name in present)


def location(fields: Fields) -> tuple[str, int | None]:
    """Take where a row points to: `location`, or `path` or `file` with `line`."""
    place = fields.get("location")
    if is_text(place):
        return text(fields, "location"), None
    if isinstance(place, Mapping):
        fields["location"] = inner = dict(place)
        file, line = text(inner, "file"), number(inner, "line")
        if not inner:
            del fields["location"]
        return file, line
    return text(fields, "path") or text(fields, "file"), number(fields, "line")


def text(fields: Fields, name: str) -> str:
    """Take a text; anything else stays where it is."""
    value = fields.get(name)
    if not isinstance(value, str):
        return ""
    del fields[name]
    return value


def number(fields: Fields, name: str) -> int | None:
    """Take a whole number; anything else stays where it is."""
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    del fields[name]
    return value


def is_text(value: Json) -> bool:
    return isinstance(value, str) and value != ""


def plain(value: Json) -> str:
    """Return a value as it is read."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def words(name: str) -> str:
    """Return the name of a field in words."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
