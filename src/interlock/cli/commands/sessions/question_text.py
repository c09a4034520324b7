"""A question as a terminal shows it: its words, what each option does, and what the agent reported before it.

Every line that an agent wrote begins with a bar, so that none can pass for the workflow's or for ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.cli.screen import age, clock, fit, line_of, paint, paragraph, say, width
from interlock.ledger.decisions.inbox import QuestionOption, WaitingQuestion
from interlock.ledger.decisions.substance import Substance
from interlock.ledger.queries.artifacts import ShownArtifact

INDENT = " " * 10
BAR = f"{INDENT}│ "
LINES_IN_LIST = 6
LINES_ALONE = 60
MOST_GAPS = 10


def show_question(
    question: WaitingQuestion, substance: Substance, *, among_others: bool = False, lines: int = LINES_ALONE
) -> None:
    """Print a question with its substance; among others of its session also where exactly it is asked."""
    say(paint(fit(f"{question.ref}  {line_of(question.title)}", width()), "strong"))
    where = f", {question.run_id}, node {question.node}" if among_others else ""
    say(paint(f"{INDENT}{question.id}{where}, {age(question.since)}", "quiet"))
    if "::" in question.key:  # in a loop the name says which round and item is meant
        say(paragraph(line_of(question.name), INDENT))
    say(paragraph(question.message, INDENT))
    widest = max((len(option.id) for option in question.options), default=0)
    for option in question.options:
        under = INDENT + " " * (widest + 2)
        text = paragraph(option_text(option, substance), under).removeprefix(under)
        say(f"{INDENT}{paint(option.id.ljust(widest), 'accent')}  {text}")
    if question.decide is not None:
        say(paragraph(line_of(question.decide.text), INDENT))
    if question.decide is not None and question.decide.until:
        then = f"; then {question.decide.then}" if question.decide.then else ""
        say(f"{INDENT}Until {clock(question.decide.until)}{then}.")
    elif question.default:
        say(f"{INDENT}Without an answer: {question.default}, from {clock(question.default_at)} on.")
    _show_report(substance, lines)


def option_text(option: QuestionOption, substance: Substance) -> str:
    """Say what an option is, what it does, and what comes then."""
    description = f": {option.description}" if option.description else ""
    effect = f" ({option.effect})" if option.effect else ""
    pending = next((each.pending for each in substance.follows if each.option == option.id), None)
    if pending is None:
        following = ""
    else:
        following = f"; then: {pending.title}" if pending.title else "; then the run is complete"
    return line_of(f"{option.label}{description}{effect}{following}")


def _show_report(substance: Substance, most: int) -> None:
    for gap in substance.gaps[:MOST_GAPS]:
        text = f"gap, {gap.severity}: {line_of(gap.summary)}"
        say(paint(paragraph(text, INDENT), "warn"))
    for check in substance.checks:
        text = paragraph(line_of(check.text), INDENT)
        say(paint(text, "warn" if check.by == "agent" else "good" if check.passed else "bad"))
    report = list(_report_lines(substance))
    if not report:
        return
    say(paint(f"{INDENT}The agent's report:", "quiet"))
    for line in report[:most]:
        say(line)
    if len(report) > most or substance.shortened:
        say(paint(f"{INDENT}The report is longer; `interlock notes` shows all of it.", "quiet"))


def _report_lines(substance: Substance) -> Iterator[str]:
    """Yield the lines of the agent's report, results first, each behind a bar."""
    if (report := substance.handed_in) is None:
        return
    for text in (
        *(line for artifact in report.artifacts for line in artifact_lines(artifact)),
        *report.notes,
    ):
        for line in paragraph(text, BAR).splitlines():
            yield line or BAR.rstrip()


def artifact_lines(artifact: ShownArtifact) -> Iterator[str]:
    """Yield an artifact's verdict, then what it is made of, a line for each thing."""
    verdict = f": {line_of(artifact.headline)}" if artifact.headline else ""
    yield f"{line_of(artifact.kind)}{verdict}"
    for fact in artifact.facts:
        yield f"- {line_of(fact.name)}: {line_of(fact.text)}"
    for check in artifact.checks:
        evidence = f" ({line_of(check.evidence)})" if check.evidence else ""
        yield f"- {line_of(check.name)}: {line_of(check.result)}{evidence}"
    for finding in artifact.findings:
        yield f"- {line_of(finding.severity)}: {line_of(finding.title)}"
    for file in artifact.files:
        yield f"- {line_of(file.path)}: {line_of(file.summary)}"
    if not (verdict or artifact.facts or artifact.checks or artifact.findings or artifact.files):
        yield f"- {line_of(', '.join(artifact.rest))}"
