"""What a person needs to know to answer a question: the agent's report, open gaps, what each option leads to.

It is bounded, so that a long report cannot bury the question. Every line that an agent wrote begins with a
bar, so that none can pass for the workflow's or for ours.
"""

from __future__ import annotations

import itertools
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.quoting import on_one_line, visible
from interlock.core.engine.decide import outcome_of
from interlock.core.engine.gates import find_gate
from interlock.core.run.channels import Channel
from interlock.core.run.commands import AcknowledgeStep, Answerable, Decision, ResolveCheckpoint
from interlock.core.run.outcomes import Decided, PendingLine, pending_line
from interlock.core.run.questions import DECISION, DECISION_REF
from interlock.core.run.state import KnownGap
from interlock.core.run.surface_policy import EXECUTION, POLICIES
from interlock.core.values import cut
from interlock.ledger.decisions.inbox import WaitingQuestion
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.artifacts import ShownArtifact, shown_artifact
from interlock.ledger.queries.check_results import ShownCheck, checks_at, with_runs
from interlock.ledger.queries.status import Shown
from interlock.ledger.queries.story import HandedIn, last_handed_in
from interlock.ledger.runs.position import Position

MOST_ARTIFACTS = 20  # of a report; its notes are short, as they are recorded
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
    return replace(reported, follows=_what_follows(position, question, ledger.clock()))


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
        if artifact.get("kind") not in (DECISION, DECISION_REF)  # the agent's answer is not a report
    )
    notes = tuple(output.notes for output in outputs if output.notes)
    brought = HandedIn(command.now, notes, artifacts) if notes or artifacts else None
    ran = (result.ran for result in command.checked if result.ran is not None)
    return _reported(position, brought or last_handed_in(position), with_runs(position, ran))


def _reported(position: Position, report: HandedIn | None, checks: tuple[ShownCheck, ...]) -> Substance:
    bounded = replace(report, artifacts=report.artifacts[:MOST_ARTIFACTS]) if report is not None else None
    return Substance(
        handed_in=bounded,
        shortened=bounded != report,
        checks=checks,
        gaps=tuple(gap for gap in position.state.gaps.newest if not gap.resolved),
    )


def substance_text(substance: Substance) -> str:
    """Return the substance as a form or a mail has it: cleaned, and cut to what belongs beside a question."""
    lines = [line.text for line in substance_lines(substance)]
    report = [f"{BAR}{cut(visible(line), MOST_OF_LINE, '…')}".rstrip() for line in report_lines(substance)]
    sizes = itertools.accumulate(map(len, report))
    kept = [line for line, size in zip(report, sizes, strict=True) if size <= MOST_OF_TEXT]
    more = [MORE] if len(kept) < len(report) or substance.shortened else []
    return "\n".join([*lines, *([REPORT, *kept, *more] if report else [])])


def substance_lines(substance: Substance) -> list[SubstanceLine]:
    """Return the open gaps, and what came of the checks."""
    lines = [
        SubstanceLine("gap", f"gap, {gap.severity}: {on_one_line(gap.summary)}")
        for gap in substance.gaps[:MOST_GAPS]
    ]
    for check in substance.checks:
        result: Literal["passed", "failed"] = "passed" if check.passed else "failed"
        lines.append(SubstanceLine("claimed" if check.by == "agent" else result, on_one_line(check.text)))
    return lines


def report_lines(substance: Substance) -> list[str]:
    """Return the lines of the agent's report as they were written, results first."""
    if (report := substance.handed_in) is None:
        return []
    results = [line for artifact in report.artifacts for line in artifact_lines(artifact)]
    return [*results, *(line for note in report.notes for line in note.splitlines())]


def artifact_lines(artifact: ShownArtifact) -> list[str]:
    """Return an artifact's verdict, then what it is made of, a line for each thing."""
    verdict = f": {on_one_line(artifact.headline)}" if artifact.headline else ""
    lines = [f"{on_one_line(artifact.kind)}{verdict}"]
    lines += [f"- {on_one_line(fact.name)}: {on_one_line(fact.text)}" for fact in artifact.facts]
    for check in artifact.checks:
        evidence = f" ({on_one_line(check.evidence)})" if check.evidence else ""
        lines.append(f"- {on_one_line(check.name)}: {on_one_line(check.result)}{evidence}")
    named = [(finding.severity, finding.title) for finding in artifact.findings]
    named += [(file.path, file.summary) for file in artifact.files]
    lines += [f"- {on_one_line(name)}: {on_one_line(text)}" for name, text in named]
    if not verdict and len(lines) == 1:
        lines.append(f"- {on_one_line(', '.join(artifact.rest))}")
    return lines


def _what_follows(position: Position, question: WaitingQuestion, now: int) -> tuple[WhatFollows, ...]:
    """Return what each option leads to, as the run would go on from here."""
    plan, state, policy = position.plan, position.state, POLICIES[position.run.surface]
    terms = replace(position.terms, min_response_ms=0)
    channel: Channel = "approvers" if question.decide is not None else "console"
    options = [option.id for option in question.options]
    if policy.exits == "claimed" and find_gate(plan, state, question.id) is not None:
        answer = ResolveCheckpoint(policy, now, terms, channel, question.id)
        outcomes = [outcome_of(plan, state, replace(answer, option=option)) for option in options]
    else:
        step = AcknowledgeStep(EXECUTION, now, terms, variables=position.kept)
        decisions = ({question.shown: Decision(option, channel)} for option in options)
        outcomes = [outcome_of(plan, state, replace(step, decisions=decision)) for decision in decisions]
    pending = (
        pending_line(outcome.awaited, plan.scope(outcome.state.variables))
        if isinstance(outcome, Decided) and not outcome.blockers
        else None
        for outcome in outcomes
    )
    return tuple(map(WhatFollows, options, pending))
