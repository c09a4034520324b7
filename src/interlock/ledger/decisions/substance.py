"""What a person needs to know to answer a question: the agent's report, open gaps, what each option leads to.

It is bounded, so that a long report cannot bury the question. Every line that an agent wrote begins with a
bar, so that none can pass for the workflow's or for ours.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.quoting import on_one_line, visible
from interlock.core.engine.decide import outcome_of
from interlock.core.engine.decisions import DECISION, DECISION_REF
from interlock.core.engine.gates import find_gate
from interlock.core.run.channels import Channel
from interlock.core.run.commands import AcknowledgeStep, Answerable, Decision, ResolveCheckpoint
from interlock.core.run.outcomes import Decided
from interlock.core.run.state import KnownGap
from interlock.core.run.surface_policy import EXECUTION, POLICIES
from interlock.core.values import cut
from interlock.ledger.decisions.inbox import WaitingQuestion
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.artifacts import ShownArtifact, shown_artifact
from interlock.ledger.queries.check_results import ShownCheck, checks_at, with_runs
from interlock.ledger.queries.status import PendingLine, Shown, pending_line
from interlock.ledger.queries.story import HandedIn, last_handed_in
from interlock.ledger.runs.position import Position

LONGEST_REPORT = 20_000
MOST_ARTIFACTS = 20
MOST_GAPS = 10
MOST_OF_TEXT = 4_000  # characters of a message that is sent
MOST_OF_LINE = 500
BAR = "│ "
REPORT = "The agent's report:"
MORE = "The report is longer; `interlock notes` shows all of it."


class WhatFollows(Shown, frozen=True):
    """What the run waits for after an option was chosen, if that is known."""

    option: str
    pending: PendingLine | None


class SubstanceLine(Struct, frozen=True):
    """A line of ours about a question: a gap, or a check with what it is worth."""

    kind: Literal["gap", "passed", "failed", "claimed"]
    text: str


class Substance(Shown, frozen=True):
    """What belongs to a question; `shortened` says that the session has more of the report."""

    handed_in: HandedIn | None
    shortened: bool
    checks: tuple[ShownCheck, ...]
    gaps: tuple[KnownGap, ...]
    follows: tuple[WhatFollows, ...] = ()


def substance_of(ledger: Ledger, position: Position, question: WaitingQuestion) -> Substance:
    """Return what belongs to a question that waits at this position."""
    reported = _reported(position, last_handed_in(position), checks_at(ledger.store, position))
    return replace(reported, follows=tuple(_what_follows(ledger, position, question)))


def substance_of_call(position: Position, command: Answerable) -> Substance:
    """Return what belongs to the questions of a command that nobody has recorded yet.

    What it brings is the report, else the one before; checks that ran for it count.
    """
    if isinstance(command, AcknowledgeStep):
        outputs = [command.output]
    else:
        outputs = [claim.output for claim in command.claims]
    artifacts = tuple(
        shown_artifact(artifact)
        for output in outputs
        for artifact in output.artifacts
        if artifact.get("kind") not in (DECISION, DECISION_REF)  # the agent's answer is no report
    )
    notes = tuple(output.notes for output in outputs if output.notes)
    brought = HandedIn(command.now, notes, artifacts) if notes or artifacts else None
    ran = (result.ran for result in command.checked if result.ran is not None)
    return _reported(position, brought or last_handed_in(position), with_runs(position, ran))


def _reported(position: Position, report: HandedIn | None, checks: tuple[ShownCheck, ...]) -> Substance:
    bounded = _bounded(report) if report is not None else None
    return Substance(
        handed_in=bounded,
        shortened=bounded != report,
        checks=checks,
        gaps=tuple(gap for gap in position.state.gap_list if not gap.resolved),
    )


def substance_text(substance: Substance) -> str:
    """Return the substance as a form or a mail has it: cleaned, and cut to what belongs beside a question."""
    lines = [line.text for line in substance_lines(substance)]
    report = [f"{BAR}{cut(visible(line), MOST_OF_LINE, '…')}".rstrip() for line in report_lines(substance)]
    sizes = itertools.accumulate(map(len, report))
    kept = [line for line, size in zip(report, sizes, strict=True) if size <= MOST_OF_TEXT]
    more = [MORE] if len(kept) < len(report) or substance.shortened else []
    return "\n".join([*lines, *([REPORT, *kept, *more] if report else [])])


def substance_lines(substance: Substance) -> Iterator[SubstanceLine]:
    """Yield the open gaps, and what came of the checks."""
    for gap in substance.gaps[:MOST_GAPS]:
        yield SubstanceLine("gap", f"gap, {gap.severity}: {on_one_line(gap.summary)}")
    for check in substance.checks:
        result: Literal["passed", "failed"] = "passed" if check.passed else "failed"
        yield SubstanceLine("claimed" if check.by == "agent" else result, on_one_line(check.text))


def report_lines(substance: Substance) -> Iterator[str]:
    """Yield the lines of the agent's report as they were written, results first."""
    if (report := substance.handed_in) is None:
        return
    for artifact in report.artifacts:
        yield from artifact_lines(artifact)
    for note in report.notes:
        yield from note.splitlines()


def artifact_lines(artifact: ShownArtifact) -> Iterator[str]:
    """Yield an artifact's verdict, then what it is made of, a line for each thing."""
    verdict = f": {on_one_line(artifact.headline)}" if artifact.headline else ""
    yield f"{on_one_line(artifact.kind)}{verdict}"
    for fact in artifact.facts:
        yield f"- {on_one_line(fact.name)}: {on_one_line(fact.text)}"
    for check in artifact.checks:
        evidence = f" ({on_one_line(check.evidence)})" if check.evidence else ""
        yield f"- {on_one_line(check.name)}: {on_one_line(check.result)}{evidence}"
    for finding in artifact.findings:
        yield f"- {on_one_line(finding.severity)}: {on_one_line(finding.title)}"
    for file in artifact.files:
        yield f"- {on_one_line(file.path)}: {on_one_line(file.summary)}"
    if not (verdict or artifact.facts or artifact.checks or artifact.findings or artifact.files):
        yield f"- {on_one_line(', '.join(artifact.rest))}"


def _bounded(report: HandedIn) -> HandedIn:
    """Cut a report to what a person reads before an answer."""
    notes = tuple(
        note if len(note) <= LONGEST_REPORT else f"{note[:LONGEST_REPORT]}…" for note in report.notes
    )
    return replace(report, notes=notes, artifacts=report.artifacts[:MOST_ARTIFACTS])


def _what_follows(ledger: Ledger, position: Position, question: WaitingQuestion) -> Iterator[WhatFollows]:
    """Yield what each option leads to, as the run would go on from here."""
    plan, state = position.plan, position.state
    gate = find_gate(plan, state, question.id)
    policy, now = POLICIES[position.run.surface], ledger.clock()
    terms = replace(ledger.terms(state), min_response_ms=0)
    channel: Channel = "approvers" if question.decide is not None else "console"
    for option in question.options:
        if gate is not None and policy.exits == "claimed":
            outcome = outcome_of(
                plan, state, ResolveCheckpoint(policy, now, terms, channel, question.id, option.id)
            )
        else:
            answers = {question.shown: Decision(option.id, channel)}
            command = AcknowledgeStep(EXECUTION, now, terms, variables=position.kept, decisions=answers)
            outcome = outcome_of(plan, state, command)
        pending = None
        if isinstance(outcome, Decided) and not outcome.blockers:
            pending = pending_line(outcome.awaited, plan.scope(outcome.state.variables))
        yield WhatFollows(option.id, pending)
